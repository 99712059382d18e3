"""Products of two activations, and invariant features.

Equivariant linear maps and gates alone cannot compute the angle between two vectors. A tensor product followed by an
intertwiner can: the dot product and the cross product of two vectors are examples. Inner products between channels can
too; they are invariant under every orthogonal representation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from symcheck.errors import SymcheckError
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.nn.field_type import EquivariantModule, FieldType, check_channels, require_match
from symcheck.nn.nonlinearity import require_orthogonal
from symcheck.representations import constructors, operations
from symcheck.representations.representation import Representation, require_same_group


class TensorProduct(EquivariantModule):
    """A bilinear layer: z_c = sum over d, r of w_cdr B_r (x_d tensor y_d), B_r a basis of intertwiners to `rho_out`.

    Args:
        rho_first: the representation of x.
        rho_second: the representation of y, of the same group.
        rho_out: the representation of the result.
        channels_in: number of copies of x and of y, multiplied pairwise.
        channels_out: number of copies of the result.

    Raises:
        SymcheckError: different groups, a number of channels below 1, or no product of the two representations
            transforms as `rho_out`, so there is nothing to learn.

    Example:
        >>> from symcheck.groups import so
        >>> from symcheck.representations import vector
        >>> V = vector(so(3))
        >>> layer = TensorProduct(V, V, V, 2, 4)  # the cross product
        >>> layer(torch.randn(8, 2, 3), torch.randn(8, 2, 3)).shape
        torch.Size([8, 4, 3])

    Source: bilinear layers as in M. Finzi, M. Welling, A. G. Wilson (2021), section 6.
    """

    basis: Tensor

    def __init__(
        self,
        rho_first: Representation,
        rho_second: Representation,
        rho_out: Representation,
        channels_in: int,
        channels_out: int,
    ) -> None:
        super().__init__()
        require_same_group(rho_first, rho_second, names=("rho_first", "rho_second"))
        self.channels = check_channels(channels_in, "channels_in"), check_channels(channels_out, "channels_out")
        product = operations.tensor(rho_first, rho_second)
        found = intertwiner_basis(product, rho_out)
        if not found.rank:
            raise SymcheckError(
                f"no product of {rho_first.name} and {rho_second.name} transforms like {rho_out.name}.",
                where="TensorProduct",
                remedy="Choose another output, such as the trivial representation.",
            )
        self.first, self.second, self.rho = rho_first, rho_second, rho_out
        matrices = torch.from_numpy(found.matrices()).to(torch.get_default_dtype())
        self.register_buffer("basis", matrices.reshape(found.rank, rho_out.dim, rho_first.dim, rho_second.dim))
        # The variance of a sum of channels_in * rank products of two unit normal numbers.
        scale = (self.channels[0] * found.rank) ** -0.5
        self.weight = nn.Parameter(scale * torch.randn(self.channels[1], self.channels[0], found.rank))

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Maps two tensors (batch, channels_in, dim) to (batch, channels_out, dim_out); y defaults to x."""
        other = x if y is None else y
        # First build the weight on products of components, (channels_out * out, channels_in * first * second). It needs
        # one matrix product for the whole batch; a sum over the basis for each input takes seven times as long.
        weight = torch.einsum("dcr,roij->docij", self.weight, self.basis).flatten(2).flatten(0, 1)
        products = (x.unsqueeze(-1) * other.unsqueeze(-2)).flatten(1)
        return torch.unflatten(functional.linear(products, weight), 1, (self.channels[1], self.rho.dim))

    def propagate(self, given: FieldType) -> FieldType:
        """The type of the result if both factors are the same activation."""
        require_match(given, FieldType(self.first, self.channels[0]), where="TensorProduct")
        require_match(given, FieldType(self.second, self.channels[0]), where="TensorProduct")
        return FieldType(self.rho, self.channels[1])

    def materialize(self) -> nn.Module:
        """Not available: there is no plain torch counterpart on flat activations.

        Raises:
            SymcheckError: always.
        """
        raise SymcheckError("a tensor product has no plain torch counterpart.", where="TensorProduct")


class InvariantProducts(EquivariantModule):
    """Inner products between channels, (batch, channels, dim) to (batch, channels (channels + 1) / 2, 1).

    Under O(n), every invariant of vectors is a function of these products (first fundamental theorem). Any plain layers
    that follow are therefore invariant.

    Args:
        rho: an orthogonal representation.
        channels: number of copies of the representation.

    Raises:
        SymcheckError: rho is not orthogonal, or the number of channels is below 1.

    Example:
        >>> from symcheck.groups import so
        >>> from symcheck.representations import vector
        >>> InvariantProducts(vector(so(3)), 4)(torch.randn(8, 4, 3)).shape
        torch.Size([8, 10, 1])

    Source: H. Weyl, "The Classical Groups" (1939), section II.9.
    """

    places: Tensor

    def __init__(self, rho: Representation, channels: int) -> None:
        super().__init__()
        require_orthogonal(rho, "InvariantProducts")
        self.rho, self.channels = rho, check_channels(channels, "channels")
        self.input_type = FieldType(rho, channels)
        self.register_buffer("places", torch.triu_indices(channels, channels), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The inner product of every pair of channels, each pair once."""
        products = x @ x.transpose(-2, -1)
        return products[..., self.places[0], self.places[1]].unsqueeze(-1)

    def propagate(self, given: FieldType) -> FieldType:
        """One invariant scalar per pair."""
        require_match(given, FieldType(self.rho, self.channels), where="InvariantProducts")
        return FieldType(constructors.trivial(self.rho.group), self.channels * (self.channels + 1) // 2)

    def materialize(self) -> nn.Module:
        """Not available: there is no plain torch counterpart on flat activations.

        Raises:
            SymcheckError: always.
        """
        raise SymcheckError("inner products have no plain torch counterpart.", where="InvariantProducts")
