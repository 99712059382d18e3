"""Pooling over all pixels; the group acts on the components of the result only."""

from __future__ import annotations

from torch import Tensor, nn

from symcheck.errors import SymcheckError
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.nonlinearity import ALTERNATIVES
from symcheck.representations.representation import (
    Representation,
    SignedPermutationRepresentation,
    require_representation,
)


def _require_images(given: FieldType, where: str) -> FieldType:
    if given.spatial is None or given.flat:
        raise SymcheckError(f"expected images (batch, channels, dim, height, width), got {given}.", where=where)
    # Without pixels the type is that of a vector.
    return FieldType(given.rho, given.channels)


class GlobalMaxPool(EquivariantModule):
    """The largest value over all pixels: (batch, channels, dim, height, width) to (batch, channels, dim).

    Args:
        rho: the representation on the component axis; if given, it is checked immediately.

    Raises:
        SymcheckError: rho changes signs or mixes components, so a maximum does not commute with it.

    Example:
        >>> import torch
        >>> GlobalMaxPool()(torch.zeros(2, 3, 4, 5, 5)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, rho: Representation | None = None) -> None:
        super().__init__()
        if rho is not None:
            self._check(rho)

    @staticmethod
    def _check(rho: Representation) -> None:
        require_representation(rho, "GlobalMaxPool(rho)")
        # A maximum over pixels is computed entry by entry; a sign change would turn it into a minimum.
        if not (isinstance(rho, SignedPermutationRepresentation) and rho.is_permutation):
            raise SymcheckError(
                f"a maximum does not commute with {rho.name}: only permutations of components preserve it.",
                where="GlobalMaxPool",
                remedy=f"Use GlobalAveragePool. {ALTERNATIVES}",
            )

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, height, width) to (batch, channels, dim)."""
        return x.amax(dim=(-2, -1))

    def propagate(self, given: FieldType) -> FieldType:
        """Vectors with the same components."""
        self._check(given.rho)
        return _require_images(given, "GlobalMaxPool")

    def materialize(self) -> nn.Module:
        """`AdaptiveMaxPool2d(1)` and flattening."""
        return nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(1))


class GlobalAveragePool(EquivariantModule):
    """The mean over all pixels: (batch, channels, dim, height, width) to (batch, channels, dim); any representation.

    Args:
        rho: any representation on the component axis.

    Example:
        >>> import torch
        >>> GlobalAveragePool()(torch.zeros(2, 3, 4, 5, 5)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, rho: Representation | None = None) -> None:
        super().__init__()
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, height, width) to (batch, channels, dim)."""
        return x.mean(dim=(-2, -1))

    def propagate(self, given: FieldType) -> FieldType:
        """Vectors with the same components."""
        return _require_images(given, "GlobalAveragePool")

    def materialize(self) -> nn.Module:
        """`AdaptiveAvgPool2d(1)` and flattening."""
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
