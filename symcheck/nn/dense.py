"""From equivariant networks to plain torch ones: the same function, no symcheck needed to run it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import cast

from torch import nn

from symcheck.errors import SymcheckError
from symcheck.nn.basis_layer import BasisLayer
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.nonlinearity import PointwiseNonlinearity
from symcheck.nn.sequential import EquivariantHeads, EquivariantSequential, PlainHeads


def to_dense(net: nn.Module) -> nn.Module:
    """A plain torch network of the same function, on channel-major flat activations.

    Networks built of symcheck modules become `torch.nn.Sequential`s of `Linear`, `Conv2d`, activations and pools. They
    take flat inputs, `(batch, channels * dim)` or `(batch, channels * dim, height, width)`, and those with separate
    axes as well; they return flat outputs. A module of the user's own is copied, and the symcheck layers inside it are
    replaced by plain ones that keep the `(batch, channels, dim)` shapes, so that its `forward` still works.

    Args:
        net: an equivariant module, or any module that holds some.

    Returns:
        A network with its own copy of all weights, in the same train or eval mode.

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
        plain: nn.Module = _flattened(net)
    else:
        plain = copy.deepcopy(net)
        _replace_inside(plain)
    return plain.train(net.training)


def _flattened(net: EquivariantModule) -> nn.Module:
    """The plain network behind a `Flatten` that merges channels and components, and leaves flat inputs alone."""
    plain = copy.deepcopy(net.materialize())
    taken = net.input_type
    if taken is None or taken.flat:
        return plain
    flatten = _merge(taken)
    if isinstance(plain, PlainHeads):
        return PlainHeads(nn.Sequential(flatten, plain.body), dict(plain.heads.items()))
    parts = list(plain) if isinstance(plain, nn.Sequential) else [plain]
    return nn.Sequential(flatten, *parts)


def _merge(taken: FieldType) -> nn.Flatten:
    """(batch, channels, dim, ...) to (batch, channels * dim, ...); flat activations pass unchanged."""
    return nn.Flatten(1, -1) if taken.spatial is None else nn.Flatten(1, -3)


def _replace_inside(module: nn.Module) -> None:
    for name, child in list(module.named_children()):
        if isinstance(child, EquivariantModule):
            setattr(module, name, _same_shapes(child))
        else:
            _replace_inside(child)


def _same_shapes(module: EquivariantModule) -> nn.Module:
    """A plain module with the same input and output shapes as the equivariant one."""
    if isinstance(module, PointwiseNonlinearity):
        return copy.deepcopy(module.activation)
    if isinstance(module, EquivariantHeads):
        heads = {name: _same_shapes(cast(EquivariantModule, head)) for name, head in module.heads.items()}
        return PlainHeads(_same_shapes(module.body), heads)
    if isinstance(module, EquivariantSequential):
        plain = (_same_shapes(m) if isinstance(m, EquivariantModule) else copy.deepcopy(m) for m in module)
        return nn.Sequential(*plain)
    if isinstance(module, BasisLayer):
        taken = cast(FieldType, module.input_type)
        made = module.propagate(taken)
        return nn.Sequential(_merge(taken), module.materialize(), nn.Unflatten(1, (made.channels, made.rho.dim)))
    plain_shapes = _PLAIN_SHAPES.get(type(module).__name__)
    if plain_shapes is None:
        raise SymcheckError(
            f"{type(module).__name__} has no plain torch counterpart that keeps separate channels.",
            where="to_dense",
            remedy="Build the network with EquivariantSequential instead.",
        )
    return plain_shapes(module)


def _pool(pool: nn.Module) -> nn.Module:
    """Pools the pixels of (batch, channels, dim, height, width)."""
    return nn.Sequential(pool, nn.Flatten(2))


def _split(module: EquivariantModule) -> nn.Module:
    taken = cast(FieldType, module.input_type)
    return nn.Unflatten(1, (taken.channels, taken.rho.dim))


_PLAIN_SHAPES: dict[str, Callable[[EquivariantModule], nn.Module]] = {
    "GlobalMaxPool": lambda module: _pool(nn.AdaptiveMaxPool3d((None, 1, 1))),
    "GlobalAveragePool": lambda module: _pool(nn.AdaptiveAvgPool3d((None, 1, 1))),
    "SplitChannels": _split,
    "MergeChannels": lambda module: nn.Flatten(1, 2),
    "FlattenPixels": lambda module: nn.Flatten(2),
}
"""Plain modules for (batch, channels, dim, ...) activations; the 3-d pools treat `dim` as depth and leave it."""
