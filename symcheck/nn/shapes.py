"""Modules that only rearrange axes: between the flat and the (channels, dim) layout, and from pixels to components."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from symcheck.errors import SymcheckError
from symcheck.nn.field_type import EquivariantModule, FieldType, check_channels, require_match
from symcheck.representations import grids
from symcheck.representations.representation import Representation, require_representation


class SplitChannels(EquivariantModule):
    """Splits flat observations or activations: (batch, channels * dim, ...) to (batch, channels, dim, ...).

    Args:
        rho: the representation on the components.
        channels: number of copies of the representation.
        spatial: one spatial operator per generator for images; None for vectors.
        size: height and width of images, if known.

    Raises:
        SymcheckError: a number of channels below 1.

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> SplitChannels(regular(cyclic(2)), 3)(torch.zeros(5, 6)).shape
        torch.Size([5, 3, 2])
    """

    def __init__(
        self,
        rho: Representation,
        channels: int = 1,
        *,
        spatial: tuple[str, ...] | list[str] | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        require_representation(rho, "SplitChannels(rho)")
        channels = check_channels(channels, "SplitChannels(channels)")
        moves = None if spatial is None else tuple(spatial)
        self.input_type: FieldType = FieldType(rho, channels, moves, size, flat=True)
        self._shape = (channels, rho.dim)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels * dim, ...) to (batch, channels, dim, ...)."""
        # (channels * dim) -> (channels, dim): channels are the slow axis.
        return torch.unflatten(x, 1, self._shape)

    def propagate(self, given: FieldType) -> FieldType:
        """The same type with separate channels."""
        require_match(given, self.input_type, where="SplitChannels")
        return replace(given, flat=False)

    def materialize(self) -> nn.Module:
        """An identity, because flat activations do not change."""
        return nn.Identity()

    def extra_repr(self) -> str:
        """The input type."""
        return str(self.input_type)


class MergeChannels(EquivariantModule):
    """Merges (batch, channels, dim, ...) to (batch, channels * dim, ...).

    A head of one channel gives logits (batch, dim).

    Example:
        >>> import torch
        >>> MergeChannels()(torch.zeros(5, 1, 2)).shape
        torch.Size([5, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, ...) to (batch, channels * dim, ...)."""
        return x.flatten(1, 2)

    def propagate(self, given: FieldType) -> FieldType:
        """The same type with merged channels."""
        if given.flat:
            raise SymcheckError(f"expected separate channels, got {given}.", where="MergeChannels")
        return replace(given, flat=True)

    def materialize(self) -> nn.Module:
        """An identity, because flat activations do not change."""
        return nn.Identity()


class FlattenPixels(EquivariantModule):
    """Turns pixels into components: (batch, channels, dim, h, w) to (batch, channels, dim * h * w).

    The output has the type `representations.with_grid(rho, h, w, spatial)`, so a `BasisLinear` after it keeps the
    network equivariant end to end.

    Example:
        >>> import torch
        >>> FlattenPixels()(torch.zeros(5, 3, 2, 4, 4)).shape
        torch.Size([5, 3, 32])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, height, width) to (batch, channels, dim * height * width)."""
        # From axis 2 on: dim, height and width become one axis.
        return x.flatten(2)

    def propagate(self, given: FieldType) -> FieldType:
        """Vectors whose components are the components and pixels of the image."""
        if given.flat or given.spatial is None or given.size is None:
            raise SymcheckError(
                f"expected images of known size, got {given}.",
                where="FlattenPixels",
                remedy="Give input_size= to EquivariantSequential.",
            )
        height, width = given.size
        # Components carry the tensor product of rho and the pixels' permutation.
        return FieldType(grids.with_grid(given.rho, height, width, given.spatial), given.channels)

    def materialize(self) -> nn.Module:
        """Flattens all axes; in channel-major order, the pixels of each component are contiguous."""
        return nn.Flatten(1)
