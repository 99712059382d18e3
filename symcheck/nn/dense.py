"""Convert equivariant networks to plain torch networks, which compute the same function without symcheck."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import cast

from torch import nn

from symcheck.errors import SymcheckError
from symcheck.nn.basis_layer import BasisLayer
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.nonlinearity import PointwiseNonlinearity
from symcheck.nn.pooling import GlobalAveragePool, GlobalMaxPool
from symcheck.nn.sequential import EquivariantHeads, EquivariantSequential, PlainHeads
from symcheck.nn.shapes import FlattenPixels, MergeChannels, SplitChannels


def to_dense(net: nn.Module) -> nn.Module:
    """The equivalent plain torch network on channel-major flat activations.

    Networks built from symcheck modules become `torch.nn.Sequential`s of `Linear`, `Conv2d`, activations and pooling
    layers. They accept flat inputs, `(batch, channels * dim)` or `(batch, channels * dim, height, width)`, and inputs
    with separate axes; they return flat outputs. A module of your own is copied, and its symcheck layers are replaced
    by plain layers with the same `(batch, channels, dim)` shapes, so that `forward` still works.

    Args:
        net: an equivariant module, or any module that contains equivariant modules.

    Returns:
        A network with its own copy of all weights, in the same mode (train or eval).

    Raises:
        SymcheckError: a part has no plain counterpart (norm and gated nonlinearities).

    Example:
        >>> import torch
        >>> from symcheck.groups import cyclic
        >>> from symcheck.nn.linear import BasisLinear
        >>> from symcheck.representations import regular
        >>> layer = BasisLinear(regular(cyclic(4)), regular(cyclic(4)), 1, 2)
        >>> to_dense(layer)(torch.zeros(3, 4)).shape
        torch.Size([3, 8])
    """
    if not isinstance(net, nn.Module):
        raise SymcheckError(f"expected a torch module, got {net!r}.", where="to_dense")
    if isinstance(net, EquivariantModule):
        plain: nn.Module = _flatten_input(net)
    else:
        # Other modules may contain equivariant ones: copy the module and replace these.
        plain = copy.deepcopy(net)
        _replace_inside(plain)
    return plain.train(net.training)


def _flatten_input(net: EquivariantModule) -> nn.Module:
    """The plain network after a `Flatten` that merges channels and components and does not change flat inputs."""
    plain, taken = copy.deepcopy(net.materialize()), net.input_type
    if taken is None or taken.flat:
        return plain
    # Channels and components become one axis; pixels keep their axes.
    return _behind(nn.Flatten(1, -1 if taken.spatial is None else -3), plain)


def _behind(first: nn.Module, plain: nn.Module) -> nn.Module:
    """A module followed by a plain network; merged into one sequence if the network is a sequence."""
    # For a network with heads, flatten before the shared body.
    if isinstance(plain, PlainHeads):
        return PlainHeads(_behind(first, plain.body), dict(plain.heads.items()))
    return nn.Sequential(first, *(plain if isinstance(plain, nn.Sequential) else [plain]))


def _replace_inside(module: nn.Module) -> None:
    for name, child in list(module.named_children()):
        if isinstance(child, EquivariantModule):
            # The surrounding modules keep their shapes, so the replacement must too.
            setattr(module, name, _same_shapes(child))
        else:
            _replace_inside(child)


def _same_shapes(module: EquivariantModule) -> nn.Module:
    """A plain module with the same input and output shapes as the equivariant one."""
    if isinstance(module, PointwiseNonlinearity):
        return copy.deepcopy(module.activation)
    if isinstance(module, EquivariantHeads):
        # Separate channels and components again for each head.
        heads = {name: _separate_output(head, module.output_types[name]) for name, head in module.heads.items()}
        plain: nn.Module = PlainHeads(copy.deepcopy(module.body.materialize()), heads)
    elif isinstance(module, EquivariantSequential | BasisLayer):
        plain = _separate_output(module, module.propagate(cast(FieldType, module.input_type)))
    elif type(module) in _PLAIN_SHAPES:
        return _PLAIN_SHAPES[type(module)](module)
    else:
        raise SymcheckError(
            f"{type(module).__name__} has no plain torch counterpart that keeps separate channels.",
            where="to_dense",
            remedy="Build the network with EquivariantSequential instead.",
        )
    taken = cast(FieldType, module.input_type)
    if taken.flat:
        return plain
    return _behind(nn.Flatten(-2) if taken.spatial is None else nn.Flatten(1, 2), plain)


def _separate_output(module: nn.Module, made: FieldType) -> nn.Module:
    """The plain network on flat activations; its output has separate channels and components if that of `made` has."""
    plain = copy.deepcopy(cast(EquivariantModule, module).materialize())
    if made.flat:
        return plain
    # The flat axis is split again: the last one for vectors, axis 1 for images.
    split = nn.Unflatten(-1 if made.spatial is None else 1, (made.channels, made.rho.dim))
    return nn.Sequential(*(plain if isinstance(plain, nn.Sequential) else [plain]), split)


def _pool_pixels(pool: nn.Module) -> nn.Module:
    """Pools the pixels of (batch, channels, dim, height, width)."""
    return nn.Sequential(pool, nn.Flatten(2))


def _split(module: EquivariantModule) -> nn.Module:
    taken = cast(FieldType, module.input_type)
    return nn.Unflatten(1, (taken.channels, taken.rho.dim))


_PLAIN_SHAPES: dict[type[nn.Module], Callable[[EquivariantModule], nn.Module]] = {
    GlobalMaxPool: lambda module: _pool_pixels(nn.AdaptiveMaxPool3d((None, 1, 1))),
    GlobalAveragePool: lambda module: _pool_pixels(nn.AdaptiveAvgPool3d((None, 1, 1))),
    SplitChannels: _split,
    MergeChannels: lambda module: nn.Flatten(1, 2),
    FlattenPixels: lambda module: nn.Flatten(2),
}
"""Plain modules for (batch, channels, dim, ...) activations; the 3-d pools treat `dim` as depth and leave it."""
