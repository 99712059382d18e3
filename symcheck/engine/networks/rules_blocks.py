"""Operations on blocks of entries that do not care about order within a block: reductions, softmax, normalisations.

A block is known by the classes it holds, with multiplicity. The action must carry blocks to blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from symcheck.array_types import Ints
from symcheck.engine.networks.rules_movement import regroup_value
from symcheck.engine.networks.rules_pointwise import extreme, tracked, unsigned
from symcheck.engine.networks.rules_scaling import scaled
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import Interval, Keyed, LayerRecord, Opaque, Tracked, Value
from symcheck.statements.statement import state

LINEAR = ("mean", "sum", "nanmean", "nansum")


def blocks_of_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> Ints:
    """Positions of each block, shape (blocks, size): a block runs over the given axes."""
    rest = tuple(axis for axis in range(len(shape)) if axis not in axes)
    # Axes of the blocks last, then one row for each block.
    positions = np.arange(int(np.prod(shape))).reshape(shape).transpose(*rest, *axes)
    size = int(np.prod([shape[axis] for axis in axes]))
    return np.ascontiguousarray(positions).reshape(-1, size)


def _reduced_axes(dim: Any, rank: int) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(rank))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return tuple(sorted(d % rank for d in dims)) if dims else tuple(range(rank))


def block_keys(call: Call, value: Tracked, blocks: Ints) -> tuple[Ints, list[tuple[Ints, Ints]]]:
    """A number for each block's content, and per generator the number and the common sign of its image.

    Raises:
        NotUnderstoodError: some block is not carried to a block.
    """
    # The classes in a block, sorted: what a reduction sees of it.
    content = np.sort(value.cls[blocks], axis=1)
    unique, numbers = np.unique(content, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1).astype(np.int64)
    place = {row.tobytes(): i for i, row in enumerate(unique)}
    images = []
    for image in value.images:
        moved = np.sort(image.index[content], axis=1)
        places = [place.get(row.tobytes(), -1) for row in moved]
        # The image of some block is no block.
        if min(places, default=0) < 0:
            raise NotUnderstoodError(state("SYM112", operation=call.name))
        signs = image.sign[content]
        # 1 or -1 where the whole block has one sign, else 0.
        common = np.where((signs == signs[:, :1]).all(axis=1), signs[:, 0], 0)
        images.append((np.array(places, dtype=np.int64), common))
    return numbers, images


LIPSCHITZ = frozenset({"mean", "amax", "amin", "max", "min"}) | frozenset(
    f"adaptive_{kind}_pool{rank}d" for kind in ("avg", "max") for rank in (1, 2)
)
"""Reductions that move by no more than the entry that moves most."""


def reduce_blocks(call: Call, value: Tracked, blocks: Ints, shape: tuple[int, ...], *, mode: str) -> Tracked:
    """One entry per block. Mode "linear": a common sign passes; "even": signs vanish; "plain": no signs."""
    if mode == "plain":
        value = unsigned(call, value)
    numbers, images = block_keys(call, value, blocks)
    rows = []
    for moved, common in images:
        if mode == "linear" and (common == 0).any():
            raise NotUnderstoodError(state("SYM115", operation=call.name))
        rows.append(([moved], common if mode == "linear" else np.ones_like(common)))
    result = regroup_value(shape, Keyed([numbers], rows), state("SYM112", operation=call.name))
    if value.interval is not None and call.name in LIPSCHITZ:
        size = value.interval.size[value.cls[blocks]].max(axis=1)
        drift = value.interval.drift[value.cls[blocks]].max(axis=1)
        # Where each class of the result appears first: its bounds are those of that block.
        first = np.empty(result.classes, dtype=np.int64)
        first[result.cls[::-1]] = np.arange(len(result.cls))[::-1]
        result.interval = Interval(size[first], drift[first])
    return result


@rule(
    *("mean", "sum", "amax", "amin", "max", "min", "logsumexp", "std", "var", "prod", "norm", "vector_norm"),
    *("median", "nanmean", "nansum", "aten.linalg_vector_norm"),
)
def reduction(call: Call, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Reductions over axes; `max` and `min` of two tensors are entrywise."""
    # `max(x, other)` is no reduction.
    other = kwargs.get("other", args[0] if args else None)
    if isinstance(other, torch.Tensor):
        return extreme(call, x, other)
    value = tracked(call, x)
    if call.name.endswith("norm"):
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        mode = "even"
    else:
        dim = kwargs.get("dim", kwargs.get("axis", args[0] if args else None))
        mode = "linear" if call.name in LINEAR else "plain"
    blocks = blocks_of_axes(value.shape, _reduced_axes(dim, len(value.shape)))
    first = call.result if isinstance(call.result, torch.Tensor) else call.result[0]
    result = reduce_blocks(call, value, blocks, tuple(first.shape), mode=mode)
    if isinstance(call.result, torch.Tensor):
        return result
    # Of values and indices only the values are followed.
    return [result] + [_indices(call)] * (len(call.result) - 1)


@rule("sort", "msort", "topk")
def rank_entries(call: Call, x: Any, *args: Any, **kwargs: Any) -> list[Value]:
    """The entries of each block by their size: known by the block and the rank."""
    value = unsigned(call, tracked(call, x))
    if call.name == "topk":
        args = args[1:]
        if not kwargs.get("sorted", args[2] if len(args) > 2 else True):
            raise NotUnderstoodError(state("SYM154", operation=call.name, argument="sorted=False"))
    usual = 0 if call.name == "msort" else -1
    axis = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else usual) % len(value.shape)
    numbers, images = block_keys(call, value, blocks_of_axes(value.shape, (axis,)))
    rest = tuple(n for i, n in enumerate(value.shape) if i != axis)

    def laid(of_block: Ints) -> Ints:
        return np.array(np.broadcast_to(np.expand_dims(of_block.reshape(rest), axis), call.shape)).reshape(-1)

    # Place along the sorted axis: entries are known by block and rank.
    rank = np.indices(call.shape)[axis].reshape(-1)
    rows = [([laid(moved), rank], np.ones_like(rank)) for moved, _ in images]
    why = state("SYM112", operation=call.name)
    result: Value = regroup_value(call.shape, Keyed([laid(numbers), rank], rows), why)
    return [result] if isinstance(call.result, torch.Tensor) else [result, _indices(call)]


def _indices(call: Call) -> Opaque:
    return Opaque(state("SYM159", operation=call.name, indices=True), call.module, call.source)


@rule("softmax", "log_softmax", "softmin", "normalize", "_softmax")
def softmax(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value:
    """Each entry against its block."""
    value = tracked(call, x)
    if call.name == "normalize":
        dim = kwargs.get("dim", args[1] if len(args) > 1 else 1)
        return _against_blocks(
            call, value, blocks_of_axes(value.shape, _reduced_axes(dim, len(value.shape))), signs=True
        )
    dim = kwargs.get("dim", args[0] if args else None)
    if dim is None:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="dim=None"))
    value = unsigned(call, value)
    return _against_blocks(call, value, blocks_of_axes(value.shape, _reduced_axes(dim, len(value.shape))), signs=False)


def _against_blocks(call: Call, value: Tracked, blocks: Ints, *, signs: bool, uniform: bool = False) -> Tracked:
    numbers, images = block_keys(call, value, blocks)
    of_entry = np.empty(len(value.cls), dtype=np.int64)
    block_of = np.repeat(np.arange(len(blocks)), blocks.shape[1])
    of_entry[blocks.reshape(-1)] = block_of
    rows = []
    for image, (moved, common) in zip(value.images, images, strict=True):
        if uniform and (common == 0).any():
            raise NotUnderstoodError(state("SYM112", operation=call.name, signs=True))
        # What divides does not see signs, so an entry keeps its own.
        sign = image.sign[value.cls] if signs else np.ones(len(value.cls), dtype=np.int64)
        rows.append(([image.index[value.cls], moved[of_entry]], sign))
    keyed = Keyed([value.cls, numbers[of_entry]], rows)
    return regroup_value(value.shape, keyed, state("SYM112", operation=call.name))


def _normalise(call: Call, value: Tracked, blocks: Ints, weight: Any, bias: Any, shape: Any, kind: str) -> Value:
    """Subtract the block's mean, divide by its deviation, then scale and shift by constants of a broadcast shape."""
    try:
        result = _against_blocks(call, value, blocks, signs=True, uniform=kind != "rms_norm")
    except NotUnderstoodError as error:
        record = call.record(LayerRecord(call.owner(weight, bias), kind, "failed", cause=error.reason, matched=False))
        raise NotUnderstoodError(error.reason, record) from error
    if weight is None and bias is None:
        return result
    # Affine parameters are constants of a broadcast shape.
    a = np.ones(()) if weight is None else call.constant(weight)
    b = np.zeros(()) if bias is None else call.constant(bias)
    scale = np.broadcast_to(a.reshape(shape) if a.ndim else a, value.shape).reshape(-1)
    shift = np.broadcast_to(b.reshape(shape) if b.ndim else b, value.shape).reshape(-1)
    return scaled(call, result, scale, shift, call.owner(weight, bias), kind)


@rule("layer_norm", "rms_norm")
def layer_norm(
    call: Call, x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 0, *_: Any
) -> Value:
    """Normalisation over the last axes."""
    value = tracked(call, x)
    axes = tuple(range(len(value.shape) - len(normalized_shape), len(value.shape)))
    shape = (1,) * (len(value.shape) - len(normalized_shape)) + tuple(normalized_shape)
    return _normalise(call, value, blocks_of_axes(value.shape, axes), weight, bias, shape, call.name)


def _channelwise(rank: int) -> tuple[int, ...]:
    return (1, -1) + (1,) * (rank - 2)


@rule("group_norm")
def group_norm(
    call: Call, x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: Any = 0, *_: Any
) -> Value:
    """Normalisation over groups of channels and all positions."""
    value = tracked(call, x)
    # Channels of one sample in groups, with all positions.
    split = (value.shape[0], num_groups, int(np.prod(value.shape[1:])) // num_groups)
    blocks = blocks_of_axes(split, (2,))
    return _normalise(call, value, blocks, weight, bias, _channelwise(len(value.shape)), "group_norm")


@rule("instance_norm")
def instance_norm(
    call: Call,
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    *args: Any,
    **kwargs: Any,
) -> Value:
    """Normalisation of each channel over its positions; with running statistics it is a batch norm in eval mode."""
    if not use_input_stats:
        return batch_norm(call, x, running_mean, running_var, weight, bias, False, *args, **kwargs)
    value = tracked(call, x)
    blocks = blocks_of_axes(value.shape, tuple(range(2, len(value.shape))))
    return _normalise(call, value, blocks, weight, bias, _channelwise(len(value.shape)), "instance_norm")


@rule("batch_norm")
def batch_norm(
    call: Call,
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    """In eval mode a scale and shift per channel, from constant statistics."""
    if training or running_mean is None or running_var is None:
        raise NotUnderstoodError(state("SYM117"))
    value = tracked(call, x)
    # y = (x - mean) / sqrt(var + eps) * weight + bias as one scale and shift.
    scale = 1.0 / np.sqrt(call.constant(running_var) + eps)
    scale = scale if weight is None else scale * call.constant(weight)
    shift = -call.constant(running_mean) * scale
    shift = shift if bias is None else shift + call.constant(bias)
    shape = _channelwise(len(value.shape))
    entries = [np.broadcast_to(part.reshape(shape), value.shape).reshape(-1) for part in (scale, shift)]
    return scaled(call, value, entries[0], entries[1], call.owner(weight, running_mean), "batch_norm")


@rule("aten.batch_norm")
def exported_batch_norm(
    call: Call,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Value:
    """Batch normalisation as exported graphs write it: affine parameters before statistics."""
    return batch_norm(call, x, mean, var, weight, bias, training, momentum, eps)
