"""Operators that move entries, on numbered terms: views, copies, joins, choices, entries written at constant places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from symcheck.engine.networks.terms import Entry, NotComparedError, Terms, each
from symcheck.engine.networks.terms_operators import Entries, Operation, make_block, operator

_VIEWS = (
    "view _unsafe_view reshape _reshape_alias expand permute transpose t numpy_T select slice unsqueeze squeeze "
    "unbind split split_with_sizes chunk narrow diagonal unfold detach alias movedim swapaxes unflatten"
)
_COPIES = (
    "flip roll repeat clone contiguous lift_fresh_copy lift_fresh index_select pixel_shuffle pixel_unshuffle "
    "channel_shuffle native_channel_shuffle rot90 take gather index _unsafe_index repeat_interleave "
    "slice_copy select_copy"
)


@operator(*_VIEWS.split(), *_COPIES.split())
def move(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The operator itself, on the numbers of terms."""
    if not isinstance(x, Entries) or any(isinstance(item, Entries) for item in tree_flatten((args, kwargs))[0]):
        return make_block(operation, x, *args, **kwargs)  # places that depend on values
    return operation.target(x.numbers, *args, **kwargs)


@operator("cat", "stack")
def join(operation: Operation, tensors: Sequence[Any], dim: int = 0) -> torch.Tensor:
    """Tensors one after the other, constants among them."""
    return operation.target([operation.numbers(item, operation.dtype) for item in tensors], dim)  # type: ignore[no-any-return]


@operator("tril", "triu")
def cut_corner(operation: Operation, x: Entries, diagonal: int = 0) -> Any:
    """Zero on one side of a diagonal."""
    if x.dtype == torch.bool:
        raise NotComparedError(operation.name)
    return operation.target(x.numbers, diagonal)


@operator("constant_pad_nd")
def pad(operation: Operation, x: Entries, pads: Sequence[int], value: Any = 0) -> torch.Tensor:
    """A number around the entries."""
    filler = operation.terms.constant(bool(value) if x.dtype == torch.bool else float(value))
    return torch.ops.aten.constant_pad_nd(x.numbers, pads, filler)  # type: ignore[no-any-return]


@operator("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "upsample_nearest2d")
def repeat_entries(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Entries again at other places; numbers of terms are exact in float64."""
    return operation.target(x.numbers.double(), *args, **kwargs).long()  # type: ignore[no-any-return]


@operator("_to_copy", "to")
def cast(operation: Operation, x: Entries, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Casts between floating dtypes count as the identity."""
    return operation.numbers(x, operation.dtype).clone()


@operator("copy")
def overwrite(operation: Operation, x: Any, source: Any, non_blocking: bool = False) -> torch.Tensor:
    """What is copied, in the shape of what it replaces."""
    return operation.numbers(source, operation.dtype).expand(operation.outputs[0][0])


@operator(
    "fill",
    "zero",
    "full_like",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "empty_like",
    "new_empty",
)
def fill(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """One number everywhere; where none is given, one that nobody may read."""
    shape, dtype = operation.outputs[0]
    name = operation.name
    if "empty" in name:
        return operation.terms.unset(shape)
    given = args[-1] if name in ("fill", "full_like", "new_full") else float("ones" in name)
    return operation.numbers(given, dtype).expand(shape).clone()


@operator("where")
def where(operation: Operation, condition: Any, yes: Any, no: Any) -> torch.Tensor:
    """One of two entries, by a condition."""
    a, b = (operation.numbers(item, operation.dtype) for item in (yes, no))
    return each(operation.terms.choose, operation.numbers(condition, torch.bool), a, b)


@operator("masked_fill")
def masked_fill(operation: Operation, x: Any, mask: Any, value: Any) -> torch.Tensor:
    """A number where a mask is true."""
    return where(operation, mask, value, x)


@operator("scatter", "scatter_add", "index_add", "index_put", "_index_put_impl", "scatter_reduce")
def scatter(operation: Operation, x: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Entries written, or added, at constant places."""
    shape = operation.outputs[0][0]
    before = operation.numbers(x, operation.dtype)
    if operation.name.startswith(("index_put", "_index_put")):
        indices, source, accumulate = args[0], args[1], (args[2] if len(args) > 2 else kwargs.get("accumulate", False))
        _refuse_moving_places(operation, indices)
        places = torch.arange(math.prod(shape)).reshape(shape)
        places = torch.ops.aten.index(places, list(indices))
        way = "sum" if accumulate else "last"
    else:
        dim, index, source = args[0], args[1], args[2]
        if kwargs.get("alpha", 1) != 1 or not shape:
            raise NotComparedError(operation.name)
        _refuse_moving_places(operation, [index])
        kind = args[3] if operation.name == "scatter_reduce" else kwargs.get("reduce", "last")
        way = "sum" if operation.name in ("scatter_add", "index_add") else str(kind)
        places = _target_places(operation, dim, index)
    if way != "last" and operation.dtype == torch.bool:
        raise NotComparedError(f"{operation.name} of boolean entries")
    written = operation.numbers(source, operation.dtype)
    if operation.name.startswith("scatter") and written.ndim:
        written = written[tuple(slice(0, n) for n in places.shape)]  # only as far as the index reaches
    result, targets, entries = (t.reshape(-1).tolist() for t in (before, places, written.expand(places.shape)))
    own = bool(kwargs.get("include_self", True))
    made = _scattered(operation.terms, result, targets, entries, way, include_self=own)
    return torch.tensor(made, dtype=torch.int64).reshape(shape)


def _refuse_moving_places(operation: Operation, indices: Sequence[Any]) -> None:
    if any(isinstance(item, Entries) for item in indices):
        raise NotComparedError(f"{operation.name} at places that depend on the input")


def _target_places(operation: Operation, dim: int, index: torch.Tensor) -> torch.Tensor:
    """The flat place of the result to which each entry goes."""
    shape = operation.outputs[0][0]
    places = torch.arange(math.prod(shape)).reshape(shape)
    if operation.name == "index_add":
        return places.index_select(dim, index.reshape(-1))
    cut = tuple(slice(0, n) if k != dim % len(shape) else slice(None) for k, n in enumerate(index.shape))
    return places[cut].gather(dim, index)


def _scattered(
    terms: Terms, result: list[Entry], places: list[int], written: list[Entry], way: str, *, include_self: bool
) -> list[Entry]:
    groups: dict[int, list[Entry]] = {}
    for place, entry in zip(places, written, strict=True):
        groups.setdefault(place, []).append(entry)
    ways: dict[str, Callable[[list[Entry]], Entry]] = {
        "sum": terms.add,
        "add": terms.add,
        "prod": terms.multiply,
        "amax": terms.largest,
        "amin": lambda entries: -terms.largest([-entry for entry in entries]),
        "mean": lambda entries: terms.divide(terms.add(entries), terms.constant(float(len(entries)))),
    }
    if way != "last" and way not in ways:
        raise NotComparedError(f"scatter with {way}")
    if way == "last" and any(len(set(group)) > 1 for group in groups.values()):
        raise NotComparedError("several entries written at one place")
    for place, group in groups.items():
        own = [result[place]] if include_self else []
        result[place] = group[0] if way == "last" else ways[way](own + group)
    return result
