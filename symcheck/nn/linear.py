"""The linear layer over a basis of intertwiners."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from symcheck.errors import SymcheckError
from symcheck.intertwiners.basis import Kind
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.nn.basis_layer import BasisLayer, Init, is_tracing
from symcheck.nn.block_product import FEWEST_INPUTS, BlockProduct
from symcheck.nn.expansion import BiasExpansion, LinearExpansion, linear_expansion
from symcheck.nn.field_type import FieldType, check_channels, require_match
from symcheck.nn.kept import Kept
from symcheck.representations import constructors
from symcheck.representations.representation import Representation

Shape = tuple[int, ...]


class BasisLinear(BasisLayer):
    """A linear layer f with f(rho_in(g) x) = rho_out(g) f(x) for all values of its coefficients.

    Shapes: (..., channels_in, dim_in) to (..., channels_out, dim_out). A head with channels_out = 1 returns
    (..., 1, dim_out): end a network with `MergeChannels` to obtain plain (batch, dim_out) logits.

    Args:
        rho_in: the representation on the input's component axis.
        rho_out: the representation on the output's component axis, of the same group.
        channels_in: number of copies of the input representation.
        channels_out: number of copies of the output representation.
        bias: whether to add a bias, a combination of intertwiners from the trivial representation.
        basis: "equivariant", or the controls "nullspace" and "random".
        init: "xavier" or "he": the variance of the materialised weight.

    Raises:
        SymcheckError: different groups, a number of channels below 1, an unknown basis or initialiser.

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular, signed_permutation
        >>> C2 = cyclic(2)
        >>> layer = BasisLinear(signed_permutation(C2, [[-1, -1, -1, -1]]), regular(C2), 1, 64)
        >>> x = torch.randn(8, 1, 4)
        >>> layer(x).shape, bool(torch.allclose(layer(-x), layer(x).flip(-1), atol=1e-6))
        (torch.Size([8, 64, 2]), True)

    Source: E. van der Pol et al., "MDP Homomorphic Networks" (2020), section 4.
    """

    _weights: LinearExpansion

    def __init__(
        self,
        rho_in: Representation,
        rho_out: Representation,
        channels_in: int,
        channels_out: int,
        *,
        bias: bool = True,
        basis: Kind = "equivariant",
        init: Init = "xavier",
    ) -> None:
        channels_in = check_channels(channels_in, "channels_in")
        channels_out = check_channels(channels_out, "channels_out")
        weights = linear_expansion(intertwiner_basis(rho_in, rho_out, kind=basis), channels_out, channels_in)
        super().__init__(weights, bias_expansion(rho_out, channels_out, basis) if bias else None, init=init)
        self.input_type: FieldType = FieldType(rho_in, channels_in)
        self.output_type = FieldType(rho_out, channels_out)
        self._out = (channels_out, rho_out.dim)
        self._in = (channels_in, rho_in.dim)
        # In training, use the product by blocks if it saves more time than it costs.
        self._by_blocks = BlockProduct.where_it_pays(self.basis, channels_in, channels_out)
        # Shapes for the last input, so that a loop over equal batches computes them once.
        self._seen: tuple[Shape, int, int, Shape] = ((-1,), 0, 0, ())

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., channels_in, dim_in) to (..., channels_out, dim_out)."""
        kept = self.keep_weight()
        # Training, tracing and subclasses of Tensor go through recorded operations.
        if kept is None or type(x) is not Tensor or is_tracing():
            return self._forward_recorded(x, kept)
        given, rows, columns, made = self._seen
        if x.shape != given:
            rows, columns, made = self._see(x)
        flat, bias = x.reshape(rows, columns), kept.bias
        # One matrix product on flattened inputs; addmm adds the bias in the same call.
        return (torch.mm(flat, kept.weight) if bias is None else bias.addmm(flat, kept.weight)).view(*made)

    def _forward_recorded(self, x: Tensor, kept: Kept | None) -> Tensor:
        """Apply the layer with torch operations only, for autograd, `torch.func`, compilers and tracers."""
        eager = type(x) is Tensor and not is_tracing()
        if eager and x.shape[-2:] != self._in:
            self._refuse(x)
        if kept is None and eager and self._by_blocks is not None and self._is_trained_on(x):
            return self._by_blocks(x, self.weight_coefficients, self._expand_bias())
        if kept is None:
            weight, bias = self._expand()
            # Component-major weights take (batch, dim_in, channels_in).
            x = x.transpose(-2, -1) if self._weights.component_major else x
        else:
            weight, bias = kept.weight, kept.bias
        # The common case of (batch, channels, dim) as one addmm.
        if eager and bias is not None and x.ndim == 3:
            return torch.addmm(bias, x.flatten(1), weight).view(-1, *self._out)
        return torch.unflatten(functional.linear(x.flatten(-2), weight.t(), bias), -1, self._out)

    def _is_trained_on(self, x: Tensor) -> bool:
        """Whether autograd records this pass for the coefficients, uncompiled, on a batch that is large enough."""
        recorded = torch.is_grad_enabled() and self.weight_coefficients.requires_grad
        if not recorded or torch.compiler.is_compiling() or x.shape[:-2].numel() < FEWEST_INPUTS:
            return False
        # in lower precision, the dense product of permutations keeps equal entries equal; blocks would not
        return x.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(x.device.type)

    def _for_product(self, weight: Tensor) -> Tensor:
        """Channel-major, for a product from the right."""
        return self._weights.to_plain(weight).t()

    def _see(self, x: Tensor) -> tuple[int, int, Shape]:
        """Rows, columns and output shape of one matrix product for this input's shape, cached for the next input."""
        if x.shape[-2:] != self._in:
            self._refuse(x)
        lead = x.shape[:-2]
        # Leading axes are the rows, channels and components the columns.
        rows, columns, made = lead.numel(), math.prod(self._in), (*lead, *self._out)
        self._seen = x.shape, rows, columns, made
        return rows, columns, made

    def _refuse(self, x: Tensor) -> None:
        raise SymcheckError(
            f"expected an input of shape (..., {self._in[0]}, {self._in[1]}), got {tuple(x.shape)}.",
            where=f"BasisLinear({self.extra_repr()})",
            remedy="Start with SplitChannels to read flat (batch, channels * dim) inputs.",
        )

    def propagate(self, given: FieldType) -> FieldType:
        """The type of the output. Raises for an input of a different type."""
        require_match(given, self.input_type, where=f"BasisLinear({self.extra_repr()})")
        return self.output_type

    def materialize(self) -> nn.Linear:
        """The equivalent plain layer on channel-major flat activations.

        Returns:
            A `torch.nn.Linear` from channels_in * dim_in to channels_out * dim_out with its own copy of the weight.
        """
        weight, bias = self._plain_weight()
        # On "meta": no memory for weights that are replaced below.
        plain = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta", dtype=weight.dtype)
        plain.weight = nn.Parameter(weight)
        if bias is not None:
            plain.bias = nn.Parameter(bias)
        return plain.train(self.training)


def bias_expansion(rho_out: Representation, channels: int, kind: Kind) -> BiasExpansion:
    """The basis of biases: intertwiners from the trivial representation, one column each."""
    # One column: a bias is a vector b with rho_out(g) b = b.
    return BiasExpansion(intertwiner_basis(constructors.trivial(rho_out.group), rho_out, kind=kind), channels)
