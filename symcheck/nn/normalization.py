"""Normalisations that commute with a representation.

Statistics must be invariant: they are computed over whole orbits of components, never for a single component. A plain
`BatchNorm2d` over group channels breaks equivariance as soon as its running statistics differ between components. If
the group only permutes components, means are subtracted too; if it changes signs or rotates, activations are only
divided by their root mean square.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from symcheck.errors import SymcheckError
from symcheck.nn.field_type import EquivariantModule, FieldType, check_channels, require_match
from symcheck.nn.nonlinearity import require_orthogonal
from symcheck.representations.representation import Representation, SignedPermutationRepresentation


def _only_permutes(rho: Representation) -> bool:
    return isinstance(rho, SignedPermutationRepresentation) and rho.is_permutation


class EquivariantBatchNorm(EquivariantModule):
    """Batch normalisation with one set of statistics per channel, shared by its components and pixels.

    Permutation representations: (x - mean) / sqrt(var + eps) * weight + bias. Other orthogonal ones: x / sqrt(mean of
    squares + eps) * weight.

    Args:
        rho: an orthogonal representation on the component axis.
        channels: number of copies of the representation.
        eps: added to the variance.
        momentum: the momentum of the running statistics.
        images: whether activations are images; only `materialize` uses this.

    Raises:
        SymcheckError: not orthogonal, or a number of channels below 1.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> EquivariantBatchNorm(regular(cyclic(4)), 3)(torch.randn(8, 3, 4)).shape
        torch.Size([8, 3, 4])
    """

    running_mean: Tensor
    running_square: Tensor

    def __init__(
        self, rho: Representation, channels: int, *, eps: float = 1e-5, momentum: float = 0.1, images: bool = False
    ) -> None:
        super().__init__()
        require_orthogonal(rho, "EquivariantBatchNorm")
        self.rho = rho
        self.channels = check_channels(channels, "EquivariantBatchNorm(channels)")
        self.eps, self.momentum, self.images = eps, momentum, images
        # A mean over components is invariant only under permutations: a sign would change it.
        self.centred = _only_permutes(rho)
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels)) if self.centred else None
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_square", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, ...) to the same shape."""
        # Statistics of a channel over its components and pixels: the reduction that batch_norm computes.
        if self.centred:
            mean, variance, weight, bias = self.running_mean, self.running_square, self.weight, self.bias
            return functional.batch_norm(x, mean, variance, weight, bias, self.training, self.momentum, self.eps)
        # Without a mean, the second moment replaces the variance.
        square = self.running_square
        if self.training:
            # All axes except the channel axis.
            axes = [axis for axis in range(x.ndim) if axis != 1]
            square = x.square().mean(dim=axes)
            with torch.no_grad():
                self.running_square.lerp_(square.detach(), self.momentum)
        scale = (square + self.eps).rsqrt() * self.weight
        # (1, channels, 1, ...).
        return x * scale.reshape(1, self.channels, *(1,) * (x.ndim - 2))

    def propagate(self, given: FieldType) -> FieldType:
        """The same type."""
        require_match(given, FieldType(self.rho, self.channels, given.spatial), where="EquivariantBatchNorm")
        return given

    def materialize(self) -> nn.Module:
        """The plain batch normalisation, with the statistics repeated over components.

        The function is the same in eval mode. In train mode the plain module computes statistics per component, which
        breaks equivariance.
        """
        kind = nn.BatchNorm2d if self.images else nn.BatchNorm1d
        size = self.channels * self.rho.dim
        plain = kind(size, eps=self.eps, momentum=self.momentum).to(self.weight)
        with torch.no_grad():
            # The plain layer has one number per component, so repeat each channel's number dim times.
            plain.weight.copy_(self.weight.repeat_interleave(self.rho.dim))
            plain.bias.copy_(torch.zeros(size) if self.bias is None else self.bias.repeat_interleave(self.rho.dim))
            cast(Tensor, plain.running_mean).copy_(self.running_mean.repeat_interleave(self.rho.dim))
            cast(Tensor, plain.running_var).copy_(self.running_square.repeat_interleave(self.rho.dim))
        return plain.train(self.training)


class EquivariantLayerNorm(EquivariantModule):
    """Layer normalisation over all channels, components and pixels of one activation.

    Permutation representations: the mean is subtracted and a bias per channel is added. Other orthogonal
    representations: activations are only divided by their root mean square.

    Args:
        rho: an orthogonal representation on the component axis.
        channels: number of copies of the representation.
        eps: added to the variance.

    Raises:
        SymcheckError: not orthogonal, or a number of channels below 1.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> EquivariantLayerNorm(regular(cyclic(4)), 3)(torch.randn(8, 3, 4)).shape
        torch.Size([8, 3, 4])
    """

    def __init__(self, rho: Representation, channels: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        require_orthogonal(rho, "EquivariantLayerNorm")
        self.rho = rho
        self.channels = check_channels(channels, "EquivariantLayerNorm(channels)")
        self.eps = eps
        self.centred = _only_permutes(rho)
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels)) if self.centred else None

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, channels, dim, ...) to the same shape."""
        if self.bias is not None:
            # One group over channels, components and pixels.
            return functional.group_norm(x, 1, self.weight, self.bias, self.eps)
        axes = tuple(range(1, x.ndim))
        scale = (x.square().mean(dim=axes, keepdim=True) + self.eps).rsqrt()
        return x * scale * self.weight.reshape(1, self.channels, *(1,) * (x.ndim - 2))

    def propagate(self, given: FieldType) -> FieldType:
        """The same type."""
        require_match(given, FieldType(self.rho, self.channels, given.spatial), where="EquivariantLayerNorm")
        return given

    def materialize(self) -> nn.Module:
        """`GroupNorm` with one group, for permutation representations.

        Raises:
            SymcheckError: the representation changes signs or rotates: torch has no such module for flat activations.
        """
        if self.bias is None:
            raise SymcheckError("this normalisation has no plain torch counterpart.", where="EquivariantLayerNorm")
        plain = nn.GroupNorm(1, self.channels * self.rho.dim, eps=self.eps).to(self.weight)
        with torch.no_grad():
            plain.weight.copy_(self.weight.repeat_interleave(self.rho.dim))
            plain.bias.copy_(self.bias.repeat_interleave(self.rho.dim))
        return plain.train(self.training)
