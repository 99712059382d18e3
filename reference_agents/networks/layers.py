"""A linear layer of many runs at once whose weights are spanned by a basis of intertwiners.

The weight of a layer from `channels_in` copies of rho_in to `channels_out` copies of rho_out is

    W[(o, d), (i, e)] = sum over r of coefficient[r, i, o] * basis[r, d, e],

so the layer is equivariant for every value of the coefficients. Weights are stored transposed and component-major,
(runs, dim_in * channels_in, dim_out * channels_out), because then each entry of the basis moves one contiguous block
of coefficients, and the product with the activations is one `baddbmm`. Gradients are written by hand: `collect` is
the transpose of `expand`, and the tests compare it with automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from reference_agents.networks.plans import Basis, LinearPlan

_MOST_BLOCKS = 64  # beyond this, one product with the basis is faster than copying block by block


class Expansion:
    """coefficients (runs, rank, c_in, c_out) to matrices (runs, d_in * c_in, d_out * c_out), and its transpose.

    Where each entry of the matrix takes at most one basis element (every signed permutation representation) and there
    are few of them, blocks are copied; otherwise the basis is applied as a matrix.
    """

    def __init__(self, basis: Basis, device: torch.device) -> None:
        self.rank, self.dim_out, self.dim_in = basis.shape
        self.identity = basis.shape == (1, 1, 1) and basis[0, 0, 0] == 1.0
        entries = [(int(r), int(o), int(i), float(basis[r, o, i])) for r, o, i in zip(*np.nonzero(basis), strict=True)]
        distinct = len({(o, i) for _, o, i, _ in entries}) == len(entries)
        self._blocks = entries if distinct and len(entries) <= _MOST_BLOCKS else None
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
            return spread.transpose(2, 3).reshape(runs, self.dim_in * c_in, self.dim_out * c_out)
        matrix = coefficients.new_zeros(runs, self.dim_in, c_in, self.dim_out, c_out)
        for r, o, i, value in self._blocks:
            torch.mul(coefficients[:, r], value, out=matrix[:, i, :, o])
        return matrix.view(runs, self.dim_in * c_in, self.dim_out * c_out)

    def collect(self, matrix: torch.Tensor, out: torch.Tensor) -> None:
        """The transpose of `expand`: gradients of matrices into gradients of coefficients, written to `out`."""
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


class StackedLinear:
    """The weight and the bias of one layer of every run.

    Args:
        plan: the layer.
        values: views of the parameters by name, each (runs, *shape).
        gradients: views of their gradients by name.
        device: where the parameters live.

    Attributes:
        matrix: the weights of y = x W + b, shape (runs, inputs, outputs).
        offset: the biases, shape (runs, 1, outputs).
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
        self._weight_expansion = Expansion(plan.weight_basis, device)
        self._weight, self._weight_gradient = values[weight], gradients[weight]
        self._has_bias = plan.bias_basis is not None and bias in values
        if plan.bias_basis is not None and bias in values:
            self._bias_expansion = Expansion(plan.bias_basis, device)
            self._bias, self._bias_gradient = values[bias], gradients[bias]
        self.refresh()

    def refresh(self) -> None:
        """Rebuild the matrices after the parameters have changed."""
        self.matrix = self._weight_expansion.expand(self._weight)
        if self._has_bias:
            self.offset = self._bias_expansion.expand(self._bias)
        else:
            self.offset = self.matrix.new_zeros(len(self.matrix), 1, self.plan.outputs)

    def write_gradients(self, d_matrix: torch.Tensor, d_offset: torch.Tensor) -> None:
        """Turn derivatives by the matrix and the offset, of their shapes, into the parameters' gradients."""
        self._weight_expansion.collect(d_matrix, self._weight_gradient)
        if self._has_bias:
            self._bias_expansion.collect(d_offset, self._bias_gradient)
