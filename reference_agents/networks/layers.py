"""Linear layers of many runs at once, with weights spanned by a basis of intertwiners.

The weight of a layer from `channels_in` copies of rho_in to `channels_out` copies of rho_out is

    W[(o, d), (i, e)] = sum over r of coefficient[r, i, o] * basis[r, d, e],

so the layer is equivariant for every value of the coefficients. Weights are stored transposed and component-major,
(runs, dim_in * channels_in, dim_out * channels_out), because each entry of the basis then copies one contiguous block
of coefficients, and the product with the activations is one `baddbmm`. Gradients are written by hand: `collect` is the
transpose of `expand`, and the tests compare it with automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.networks.plans import LinearPlan
from symcheck.array_types import Floats

_MOST_BLOCKS = 64  # for more entries, one product with the basis is faster than copying block by block


class Expansion:
    """Maps coefficients (runs, rank, c_in, c_out) to matrices (runs, d_in * c_in, d_out * c_out), and its transpose.

    On the CPU, if each entry of the matrix depends on at most one basis element (true of all signed permutation
    representations) and there are few entries, blocks are copied; otherwise the basis is applied as a matrix. A GPU
    would start one kernel for each block.
    """

    def __init__(self, basis: Floats, device: torch.device) -> None:
        self.rank, self.dim_out, self.dim_in = basis.shape
        self.identity = basis.shape == (1, 1, 1) and basis[0, 0, 0] == 1.0
        # (basis element, row, column, value) of every entry that is not zero.
        entries = [(int(r), int(o), int(i), float(basis[r, o, i])) for r, o, i in zip(*np.nonzero(basis), strict=True)]
        # If no two basis elements share an entry, each block of the matrix is one scaled coefficient.
        distinct = len({(o, i) for _, o, i, _ in entries}) == len(entries)
        self._blocks = entries if distinct and len(entries) <= _MOST_BLOCKS and device.type == "cpu" else None
        # (rank, d_in * d_out): a product with coefficients gives all blocks.
        flat = basis.transpose(0, 2, 1).reshape(self.rank, -1)
        self._basis = torch.as_tensor(flat, dtype=torch.float32, device=device)

    def expand(self, coefficients: torch.Tensor) -> torch.Tensor:
        """The matrices, shape (runs, d_in * c_in, d_out * c_out); a view of the coefficients for a dense layer."""
        runs, _, c_in, c_out = coefficients.shape
        if self.identity:
            return coefficients[:, 0]
        if self._blocks is None:
            flat = torch.bmm(self._basis.T.expand(runs, -1, -1), coefficients.flatten(2))
            spread = flat.view(runs, self.dim_in, self.dim_out, c_in, c_out)
            # Blocks (d_in, d_out, c_in, c_out) to a matrix with the representation as the outer index.
            return spread.transpose(2, 3).reshape(runs, self.dim_in * c_in, self.dim_out * c_out)
        matrix = coefficients.new_zeros(runs, self.dim_in, c_in, self.dim_out, c_out)
        for r, o, i, value in self._blocks:
            torch.mul(coefficients[:, r], value, out=matrix[:, i, :, o])
        return matrix.view(runs, self.dim_in * c_in, self.dim_out * c_out)

    def collect(self, matrix: torch.Tensor, out: torch.Tensor) -> None:
        """The transpose of `expand`: converts gradients of matrices to gradients of coefficients, written to `out`."""
        runs, _, c_in, c_out = out.shape
        if self.identity:
            out[:, 0].copy_(matrix)
            return
        blocks = matrix.reshape(runs, self.dim_in, c_in, self.dim_out, c_out)
        if self._blocks is None:
            flat = blocks.transpose(2, 3).reshape(runs, self.dim_in * self.dim_out, c_in * c_out)
            out.copy_(torch.bmm(self._basis.expand(runs, -1, -1), flat).view_as(out))
            return
        out.zero_()
        for r, o, i, value in self._blocks:
            out[:, r].add_(blocks[:, i, :, o], alpha=value)


class Lifting:
    """Rearranges inputs so that a layer into the regular representation is one product with its coefficients.

    If every basis matrix has exactly one nonzero entry in each row, as for intertwiners into a regular representation,
    then row d of the weight contains the coefficients themselves, reordered and with signs:

        y_d = value * sum over r of coefficient[r] * sign[d, r] * x[index[d, r]].

    So instead of copying the coefficients into a weight of |G| times their size, the inputs are rearranged |G| times
    and multiplied by the coefficients directly. No weight is built and no gradient is collected, and the products are
    larger.

    Args:
        index: the source of the r-th input of row d, shape (dim_out, rank); each row is a permutation.
        sign: the sign of that input, same shape.
        value: the absolute value of the basis's entries.
        bias_value: the common value of the entries of the bias's only basis vector.
        device: the device of the activations.
    """

    def __init__(
        self, index: npt.NDArray[np.int64], sign: Floats, value: float, bias_value: float, device: torch.device
    ) -> None:
        self.dim_out, self.rank = index.shape
        self.value, self.bias_value = value, bias_value
        self._index = torch.as_tensor(index.ravel(), device=device)
        # The inverse permutation of each row, as one flat index into all rows.
        self._inverse = torch.as_tensor(
            np.argsort(index, axis=1).ravel() + np.repeat(np.arange(self.dim_out) * self.rank, self.rank), device=device
        )
        signs = torch.as_tensor(sign.reshape(1, 1, -1, 1), dtype=torch.float32, device=device)
        self._signs = None if bool((signs == 1.0).all()) else signs

    @classmethod
    def of(cls, plan: LinearPlan, device: torch.device) -> Lifting | None:
        """The lifting of a layer, or None if it has none."""
        rank, _, dim_in = plan.weight_basis.shape
        rows = plan.weight_basis.transpose(1, 0, 2)  # (dim_out, rank, dim_in)
        # The absolute values of all entries, and the column of the entry for each row and element.
        values, index = np.unique(np.abs(rows[rows != 0])), np.abs(rows).argmax(2)
        # Each row must use every input component once; then the row is a signed permutation of the inputs.
        permutes = rank == dim_in > 1 and all(len(set(row)) == dim_in for row in index.tolist())
        bias_values = np.ones(1) if plan.bias_basis is None else np.unique(plan.bias_basis)
        one_bias = plan.bias_basis is None or len(plan.bias_basis) == 1
        # Exactly one entry in each row of each basis element.
        single = len(values) == 1 and bool(((rows != 0).sum(2) == 1).all())
        if not (permutes and single and one_bias and len(bias_values) == 1):
            return None
        # The sign of the only entry.
        return cls(index, np.sign(rows.sum(2)), float(values[0]), float(bias_values[0]), device)

    def lift(self, x: torch.Tensor) -> torch.Tensor:
        """(runs, batch, rank * channels) to (runs, batch * dim_out, rank * channels)."""
        runs, batch, units = x.shape
        # (runs, batch, dim_out * rank, channels): the inputs in the order of each output component.
        lifted = x.view(runs, batch, self.rank, -1).index_select(2, self._index)
        # In place is safe, because index_select copies.
        if self._signs is not None:
            lifted.mul_(self._signs)
        return lifted.view(runs, batch * self.dim_out, units)

    def lower(self, d_lifted: torch.Tensor) -> torch.Tensor:
        """The transpose of `lift`: (runs, batch * dim_out, rank * channels) to (runs, batch, rank * channels)."""
        runs, _, units = d_lifted.shape
        blocks = d_lifted.view(runs, -1, self.dim_out * self.rank, units // self.rank)
        if self._signs is not None:
            blocks = blocks * self._signs
        sorted_blocks = blocks.index_select(2, self._inverse)
        # The transpose of repeating is summing over the repeats.
        return sorted_blocks.view(runs, -1, self.dim_out, units).sum(2)


class StackedLinear:
    """The weight and the bias of one layer of every run.

    Args:
        plan: the plan of the layer.
        values: views of the parameters by name, each (runs, *shape).
        gradients: views of their gradients by name.
        device: the device of the parameters.

    Attributes:
        weight: coefficients of the weight, shape (runs, rank, channels_in, channels_out).
        weight_gradient: the gradients of `weight`, same shape.
        bias: coefficients of the bias, shape (runs, rank, 1, channels_out); None without one.
        bias_gradient: the gradients of `bias`, same shape.
        matrix: the weights of y = x W + b, shape (runs, inputs, outputs); after `refresh`.
        offset: the biases, shape (runs, 1, outputs); after `refresh`.
    """

    def __init__(
        self,
        plan: LinearPlan,
        values: Mapping[str, torch.Tensor],
        gradients: Mapping[str, torch.Tensor],
        device: torch.device,
    ) -> None:
        self.plan = plan
        weight, bias = f"{plan.name}.weight", f"{plan.name}.bias"
        self.weight, self.weight_gradient = values[weight], gradients[weight]
        self.bias, self.bias_gradient = values.get(bias), gradients.get(bias)
        self._weight_expansion = Expansion(plan.weight_basis, device)
        self._bias_expansion = None if plan.bias_basis is None else Expansion(plan.bias_basis, device)

    def refresh(self) -> None:
        """Rebuild the matrices after the parameters have changed."""
        self.matrix = self._weight_expansion.expand(self.weight)
        if self.bias is not None and self._bias_expansion is not None:
            self.offset = self._bias_expansion.expand(self.bias)
        else:
            # A layer without bias has an offset of zeros, so that all layers use the same product.
            self.offset = self.matrix.new_zeros(len(self.matrix), 1, self.plan.outputs)

    def write_gradients(self, d_matrix: torch.Tensor, d_offset: torch.Tensor) -> None:
        """Convert derivatives with respect to the matrix and the offset to gradients of the parameters."""
        self._weight_expansion.collect(d_matrix, self.weight_gradient)
        if self.bias_gradient is not None and self._bias_expansion is not None:
            self._bias_expansion.collect(d_offset, self.bias_gradient)
