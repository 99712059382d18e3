"""Operations that only move entries: reshape, permute, slice, concatenate, pad, expand, nearest upsampling.

Each is run once on the entries' numbers, which tells where every entry came from; its class comes along.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.precision import DROPOUTS
from symcheck.engine.networks.squares import splits
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, as_array, rule
from symcheck.engine.networks.values import (
    Dense,
    Interval,
    Keyed,
    LayerRecord,
    Opaque,
    Pending,
    SignedPermutation,
    Tracked,
    Value,
    regroup,
)
from symcheck.statements.statement import Statement, state

IDENTITIES = ("contiguous", "clone", "detach", "data", "cpu", "cuda", "detach_", "alias", "positive", "requires_grad_")


@rule(*IDENTITIES)
def same(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value | None:
    """Operations that change nothing."""
    return call.value(x)


@rule(*DROPOUTS, "dropout_")
def no_dropout(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value | None:
    """Dropout outside training: the identity (in training the tracer stops before this rule)."""
    return call.value(x)


@rule("reshape", "view", "flatten", "squeeze", "unsqueeze", "ravel", "view_as", "reshape_as", "unflatten", "squeeze_")
def reshape(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value | None:
    # `view(dtype)` reads the bits as other numbers.
    """Operations that keep the order of entries in memory."""
    if any(isinstance(item, torch.dtype) for item in args):
        raise NotUnderstoodError(state("SYM168"))
    value = call.value(x)
    if value is None or isinstance(value, Opaque):
        return value
    if isinstance(value, Tracked):
        moved = Tracked(call.shape, value.cls, value.images, _reshaped_origin(value.origin, call.shape), value.interval)
        # A flattened image with more than one position: a hint for the next layer's cause.
        images = len(value.shape) >= 4 and value.shape[-1] > 1 and len(call.shape) == 2
        moved.flattened = value.shape[1:] if images else value.flattened
        return moved
    if isinstance(value, Dense):
        return Dense(call.shape, value.maps, value.interval)
    return replace(value, shape=call.shape)


def _reshaped_origin(origin: Pending | None, shape: tuple[int, ...]) -> Pending | None:
    return None if origin is None else replace(origin, shape=shape)


def moved_entries(call: Call, function: Any, tensors: list[Any], *args: Any, **kwargs: Any) -> Value | list[Value]:
    """The value(s) of `function(tensors, ...)`, an operation that only moves entries."""
    marks, parts, start = [], [], 0
    for tensor in tensors:
        count = tensor.numel()
        # Entries are numbered through all operands; the function then shows where each went.
        marks.append(torch.arange(start, start + count, dtype=torch.float64).reshape(tensor.shape))
        parts.append((start, call.value(tensor), tensor))
        start += count
    moved = function(marks, *args, **kwargs)
    many = isinstance(moved, tuple | list)
    values = [_gather_parts(parts, as_array(item).astype(np.int64)) for item in (moved if many else [moved])]
    return values if many else values[0]


def _gather_parts(parts: Any, source: Ints) -> Value:
    shape, flat = source.shape, source.reshape(-1)
    if len(parts) == 1:
        return gather_entries(parts[0][1], flat, shape)
    table, owner = _class_table(parts)
    cls = table[flat]
    images = _joint_images(parts, owner)
    return compress_classes(shape, cls, images, _joint_interval(parts, owner))


def _class_table(parts: Any) -> tuple[Ints, dict[int, int]]:
    """The class of each entry of all operands in one numbering, and where each operand's classes start."""
    offsets: dict[int, int] = {}
    pieces, count = [], 0
    for _, value, tensor in parts:
        # A constant's classes are its distinct numbers.
        if value is None:
            numbers, inverse = np.unique(as_array(tensor).reshape(-1), return_inverse=True)
            key, size, cls = id(tensor), len(numbers), inverse.reshape(-1)
        elif isinstance(value, Tracked):
            key, size, cls = id(value), value.classes, value.cls
            if value.origin is not None:
                value.origin.use()
        else:
            raise NotUnderstoodError(state("SYM121"))
        # An operand that appears twice has its classes once.
        if key not in offsets:
            offsets[key] = count
            count += size
        pieces.append(cls + offsets[key])
    return np.concatenate(pieces).astype(np.int64), offsets


def _joint_images(parts: Any, offsets: dict[int, int]) -> tuple[SignedPermutation, ...]:
    generators = next(len(v.images) for _, v, _ in parts if isinstance(v, Tracked))
    result = []
    for i in range(generators):
        index, sign = [], []
        done: set[int] = set()
        for _, value, tensor in parts:
            key = id(tensor) if value is None else id(value)
            if key in done:
                continue
            done.add(key)
            if isinstance(value, Tracked):
                index.append(value.images[i].index + offsets[key])
                sign.append(value.images[i].sign)
            else:
                size = len(np.unique(as_array(tensor)))
                # A constant is its own image.
                index.append(np.arange(size) + offsets[key])
                sign.append(np.ones(size, dtype=np.int64))
        result.append(SignedPermutation(np.concatenate(index), np.concatenate(sign)))
    return tuple(result)


def _joint_interval(parts: Any, offsets: dict[int, int]) -> Interval | None:
    size, drift, done = [], [], set()
    for _, value, tensor in parts:
        key = id(tensor) if value is None else id(value)
        if key in done:
            continue
        done.add(key)
        if value is None:
            numbers = np.unique(as_array(tensor))
            size.append(np.abs(numbers))
            drift.append(np.zeros(len(numbers)))
        elif value.interval is None:
            return None
        else:
            size.append(value.interval.size)
            drift.append(value.interval.drift)
    bounds = Interval(np.concatenate(size), np.concatenate(drift))
    return bounds if np.isfinite(bounds.size).all() else None


def gather_entries(value: Value, source: Ints, shape: tuple[int, ...]) -> Value:
    """The value whose entry k is entry source[k] of `value`."""
    if isinstance(value, Tracked):
        moved = compress_classes(shape, value.cls[source], value.images, value.interval)
        if value.origin is not None:
            moved.origin = _select_rows(value.origin, source, shape)
        return moved
    if isinstance(value, Pending):
        return _select_rows(value, source, shape)
    if isinstance(value, Dense):
        return _moved_dense(value, source, shape)
    return value


def _select_rows(value: Pending, source: Ints, shape: tuple[int, ...]) -> Pending:
    return replace(value, shape=shape, weight=value.weight[source], bias=value.bias[source])


def _moved_dense(value: Dense, source: Ints, shape: tuple[int, ...]) -> Value:
    """A selection of entries of a dense action, where no other entry leaks into them."""
    # Entries that are left out must not reach those that stay.
    outside = np.setdiff1d(np.arange(len(value.maps[0].offset)), source)
    for affine in value.maps:
        if affine.matrix[np.ix_(source, outside)].any() or len(np.unique(source)) != len(source):
            raise NotUnderstoodError(state("SYM123"))
    maps = tuple(type(m)(m.matrix[np.ix_(source, source)], m.offset[source]) for m in value.maps)
    interval = value.interval and Interval(value.interval.size[source], value.interval.drift[source])
    return Dense(shape, maps, interval)


def compress_classes(
    shape: tuple[int, ...],
    cls: Ints,
    images: tuple[SignedPermutation, ...],
    interval: Interval | None = None,
) -> Tracked:
    """A tracked value of which only some classes are used; they must be closed under the action."""
    used = np.unique(cls)
    if len(used) == images[0].size:
        return Tracked(shape, cls, images, interval=interval)
    # New numbers of the classes that are used; -1 for the others.
    place = np.full(images[0].size, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    kept = []
    for image in images:
        index = place[image.index[used]]
        if (index < 0).any():
            raise NotUnderstoodError(state("SYM120"))
        kept.append(SignedPermutation(index, image.sign[used]))
    bounds = None if interval is None else Interval(interval.size[used], interval.drift[used])
    return Tracked(shape, place[cls], tuple(kept), interval=bounds)


def moved_classes(call: Call, tensor: Any, shape: tuple[int, ...]) -> Ints:
    """The classes of a tracked tensor broadcast to a shape, flattened."""
    value = call.value(tensor)
    if not isinstance(value, Tracked):
        raise NotUnderstoodError(state("SYM124", operation=call.name))
    return np.ascontiguousarray(np.broadcast_to(value.cls.reshape(value.shape), shape)).reshape(-1)


def broadcast_constant(call: Call, constant: Any, shape: tuple[int, ...]) -> Floats:
    """A constant broadcast to a shape, flattened."""
    return np.ascontiguousarray(np.broadcast_to(call.constant(constant), shape)).reshape(-1)


def regroup_value(shape: tuple[int, ...], keyed: Keyed, why: Statement) -> Tracked:
    """A tracked value by its keys.

    Raises:
        NotUnderstoodError: the keys are not carried into each other.
    """
    groups = regroup(keyed)
    if groups is None:
        raise NotUnderstoodError(why)
    return Tracked(shape, *groups)


def _slice_axis(x: torch.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Entries start, start + step, ... before end along one axis, as exported graphs write it."""
    place = [slice(None)] * x.ndim
    place[dim] = slice(start, end, step)
    return x[tuple(place)]


def _register_movers() -> None:
    def mover(name: str, function: Any) -> None:
        def apply(call: Call, x: Any, *args: Any, **kwargs: Any) -> Any:
            if any(call.value(a) is not None for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)):
                raise NotUnderstoodError(state("SYM155", operation=name, depends="indices"))
            moved = moved_entries(call, lambda marks, *a, **k: function(marks[0], *a, **k), [x], *args, **kwargs)
            return still_spatial(call, x, moved, "SYM105") if name == "roll" else moved

        rule(name)(apply)

    names = (
        "permute transpose swapaxes swapdims movedim moveaxis t narrow select index_select expand repeat "
        "repeat_interleave tile flip fliplr flipud rot90 roll chunk split split_with_sizes unbind tensor_split "
        "__getitem__ diagonal broadcast_to unfold"
    )
    for name in names.split():
        mover(name, getattr(torch.Tensor, name, None) or getattr(torch, name))
    mover("slice", _slice_axis)
    for name in ("T", "mT", "H", "mH"):
        mover(name, lambda x, attribute=name: getattr(x, attribute))
    for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"):
        mover(name, getattr(F, name))


_register_movers()


@rule("expand_as")
def expand_like(call: Call, x: Any, other: Any) -> Any:
    """Expansion to another tensor's shape, of which nothing else is used."""
    return None if call.value(x) is None else moved_entries(call, lambda marks: marks[0].expand(call.shape), [x])


@rule("broadcast_tensors")
def broadcast(call: Call, *tensors: Any) -> list[Value | None]:
    """Each expanded to the common shape."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    return [
        None
        if call.value(tensor) is None
        else cast(Value, moved_entries(call, lambda marks: marks[0].expand(call.shape), [tensor]))
        for tensor in given
    ]


@rule("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack")
def join_tensors(call: Call, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """Concatenation and stacking; constants among the parts are allowed."""
    function = getattr(torch, call.name)
    return moved_entries(call, lambda marks: function(marks, *args, **kwargs), list(tensors))


@rule("pad")
def pad_entries(call: Call, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Padding: reflect, replicate and circular repeat entries, constant adds a class of its own."""
    if mode != "constant":
        moved = moved_entries(call, lambda marks: F.pad(marks[0], pad, mode=mode), [x])
        return still_spatial(call, x, moved, "SYM102", amounts=[int(n) for n in pad])
    filler = torch.full((1,), float(value or 0.0), dtype=torch.float64)
    call.tracer.learn(filler, None)
    # The number behind the last entry stands for the filler.
    last = float(x.numel())
    moved = moved_entries(call, lambda marks: F.pad(marks[0], pad, value=last), [x, filler])
    return still_spatial(call, x, moved, "SYM102", amounts=[int(n) for n in pad])


def still_spatial(call: Call, x: Any, moved: Any, code: str, **fields: Any) -> Any:
    """The moved value, refused where the action was a symmetry of the square before and is none after.

    The cause has the code and fields that are given, and the name of the square.

    Raises:
        NotUnderstoodError: with the record of this operation.
    """
    before = call.value(x)
    if not isinstance(before, Tracked) or not isinstance(moved, Tracked) or len(moved.shape) not in (3, 4):
        return moved
    for generator in range(len(moved.images)):
        squares = splits(before, generator)
        if squares and not splits(moved, generator):
            cause = state(code, **fields, square=squares[0].square.name)
            record = call.record(LayerRecord(call.owner(), call.name, "failed", cause=cause, matched=False))
            raise NotUnderstoodError(cause, record)
    return moved


@rule("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_tensor")
def constant(call: Call, x: Any, *args: Any, **kwargs: Any) -> None:
    """Constants made in the image of a tensor, of numbers that are not part of it."""
    if any(call.value(item) is not None for item in (*args, *kwargs.values())):
        raise NotUnderstoodError(state("SYM155", operation=call.name, depends="numbers"))
