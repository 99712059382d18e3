"""Unknown operators, for which only one fact is used: equal arguments give equal results.

A group average, or copies with tied weights, are equivariant for any operators inside: f(L x) and K f(x) call the same
operators on the same numbers. Therefore an operator without a rule becomes a function of all entries of one sample, in
their order. An operator is accepted only if it treats each slice along the batch axis separately and in the same way,
and does not distinguish 0 from -0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from symcheck.array_types import Bools, Floats
from symcheck.certificate_checker import UNKNOWN
from symcheck.engine.networks.graph.entries import Entries
from symcheck.engine.networks.graph.nodes import Graph, NoCertificateError
from symcheck.statements.statement import state

_BY_SLICE_NAMES = (
    "sort argsort topk argmax argmin max min gather bucketize searchsorted kthvalue mode median nanmedian cummax "
    "cummin cumprod logcumsumexp scatter scatter_add scatter_reduce cdist _cdist_forward embedding var std amax amin "
    "aminmax count_nonzero nansum renorm index_select grid_sampler_2d grid_sampler_3d max_pool2d_with_indices prod "
    "max_pool3d_with_indices adaptive_max_pool2d upsample_bicubic2d upsample_trilinear3d upsample_linear1d "
)
BY_SLICE = frozenset(_BY_SLICE_NAMES.split())
"""Operators that apply the same computation to each slice along the batch axis separately."""
_TELLING_ZEROS_NAMES = "copysign signbit nextafter frexp atan2 reciprocal div remainder fmod ldexp rsqrt pow"
_TELLING_ZEROS = frozenset(_TELLING_ZEROS_NAMES.split())
"""Pointwise operators that distinguish 0 from -0, or expose how a number is stored."""
_MOST_ARGUMENTS = 1_000_000
"""Maximum number of argument entries of one operator: each result is a function of all argument entries of a sample."""


def as_unknown(graph: Graph, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    """The results of an operator, as unknown functions.

    Args:
        graph: receives the nodes, and the functions by name.
        node: the operator in the captured graph.
        values: the values of the preceding nodes.

    Returns:
        `Entries` in the operator's own structure; None if the operator is not accepted.

    Raises:
        NoCertificateError: its arguments mix samples, or there are too many.
    """
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten" or target._schema.is_mutable:
        return None
    if torch.Tag.nondeterministic_seeded in target.tags:
        return None  # random draws are not a function of the arguments
    name = target._schema.name.removeprefix("aten::")
    pointwise = torch.Tag.pointwise in target.tags and name not in _TELLING_ZEROS
    # casts to shorter whole numbers round numbers out of range differently in vectors and alone
    pointwise = pointwise or (name == "_to_copy" and node.kwargs.get("dtype") == torch.int64)
    if not pointwise and name not in BY_SLICE:
        return None
    made = tree_flatten(node.meta.get("val"))[0]
    if not all(isinstance(item, torch.Tensor) and not item.is_complex() for item in made):
        return None
    given = [item for item in tree_flatten((node.args, dict(node.kwargs)))[0] if isinstance(item, fx.Node)]
    tensors = [item for item in given if isinstance(values[item], Entries)]
    if len(tensors) < len(given) or not tensors:
        return None  # an argument is a batch size
    call = _Call(node, tensors, [values[item].dtype for item in tensors])
    if any(np.isnan(graph.numbers(ids[ids < 0])).any() for ids in (values[item].array for item in tensors)):
        return None  # memory that was never written to
    if pointwise:
        return _entry_by_entry(graph, call, [values[item] for item in tensors], made[0].dtype)
    size = graph.size_of_batch
    return _slice_by_slice(graph, call, [(values[item], axis_of(item.meta["val"], size)) for item in tensors], size)


class _Call:
    """An operator with all its arguments except the values of its tensors."""

    def __init__(self, node: fx.Node, tensors: list[fx.Node], dtypes: list[torch.dtype]) -> None:
        self.node = node
        self.tensors = tensors
        self.dtypes = dtypes

    def name_with(self, *shapes: Any) -> str:
        """A name that identifies the operator together with its arguments."""
        places = {item: f"%{k}" for k, item in enumerate(self.tensors)}
        given = fx.node.map_aggregate(
            (self.node.args, dict(self.node.kwargs)), lambda item: _placeholder_of(item, places)
        )
        told = repr((str(self.node.target), given, [str(item) for item in self.dtypes], shapes))
        short = str(self.node.target).removeprefix("aten.").partition(".")[0]
        return f"{UNKNOWN}{short} {hashlib.sha256(told.encode()).hexdigest()[:24]}"

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """The operator's result."""
        by_node = dict(zip(self.tensors, tensors, strict=True))
        args, kwargs = fx.node.map_aggregate(
            (self.node.args, dict(self.node.kwargs)),
            lambda item: by_node.get(item, item),  # type: ignore[arg-type]
        )
        operator: Any = self.node.target
        return list(tree_flatten(operator(*args, **kwargs))[0])


class _Placeholder:
    """A placeholder for a tensor in a name."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __repr__(self) -> str:
        return self.place


def _placeholder_of(item: Any, places: dict[fx.Node, str]) -> Any:
    return _Placeholder(places[item]) if isinstance(item, fx.Node) else item


def axis_of(value: torch.Tensor, size: Any) -> int | None:
    """The batch axis of a tensor; None if it has none."""
    if size is None:
        return None
    shape: tuple[Any, ...] = tuple(value.shape)
    axes = [axis for axis, n in enumerate(shape) if isinstance(n, torch.SymInt) and size in n.node.expr.free_symbols]
    return axes[0] if axes else None


def _entry_by_entry(graph: Graph, call: _Call, given: list[Entries], dtype: torch.dtype) -> Entries:
    def function(*columns: Floats) -> Floats:
        tensors = [torch.tensor(column).to(kind) for column, kind in zip(columns, call.dtypes, strict=True)]
        return np.asarray(call.run(tensors)[0].double().numpy())

    name = call.name_with()
    graph.unknown[name] = function
    arguments = np.broadcast_arrays(*[item.array for item in given])
    return Entries(torch.from_numpy(graph.pointwise(name, (), arguments, name)), dtype)


def _slice_by_slice(graph: Graph, call: _Call, given: list[tuple[Entries, int | None]], size: Any) -> Any:
    counts = {item.ids.shape[axis] for item, axis in given if axis is not None}
    values, spec = tree_flatten(call.node.meta["val"])
    axes = [axis_of(value, size) for value in values]
    shared = [item for item, axis in given if axis is None]
    if size is not None and (len(counts) != 1 or None in axes or not all(item.is_constant for item in shared)):
        raise NoCertificateError(state("SYM193", operation=call.node.name))
    count = counts.pop() if counts else 1
    rows = np.concatenate([_rows_of(item.array, axis, count) for item, axis in given], axis=1)
    # constants are part of the function, so the sign of a zero is preserved
    fixed: Bools = np.asarray((rows < 0).all(axis=0))
    fixed[fixed] = (graph.numbers(rows[:, fixed]) == graph.numbers(rows[0, fixed])).all(axis=0)
    slices = _Slices(call, given, axes, fixed, graph.numbers(rows[0, fixed]))
    results = []
    for place, (value, axis) in enumerate(zip(values, axes, strict=True)):
        shape = [int(n) for k, n in enumerate(value.shape) if k != axis]
        width = int(np.prod(shape))
        if count * width * rows.shape[1] > _MOST_ARGUMENTS:
            raise NoCertificateError(state("SYM192", operation=call.node.name))
        name = f"{slices.name} {place}"
        graph.unknown[name] = slices.picking(place, width)
        # the last argument is the index of the result's entry; it starts at 1 because a 0 may have a sign
        which = np.broadcast_to(graph.constants(np.arange(1.0, width + 1)), (count, width))
        arguments = [np.broadcast_to(column[:, None], (count, width)) for column in rows[:, ~fixed].T]
        ids = graph.pointwise(name, (), [*arguments, which], name).reshape(count, *shape)
        ids = ids[0] if axis is None else np.moveaxis(ids, 0, axis)
        results.append(Entries(torch.from_numpy(np.ascontiguousarray(ids)), value.dtype))
    return tree_unflatten(results, spec)


class _Slices:
    """An operator as a function of the values in one slice along the batch axis.

    Args:
        call: the operator.
        given: its tensors, each with its batch axis.
        axes: the batch axis of each result.
        fixed: which values of a slice are constants.
        constants: the values of these constants.
    """

    def __init__(
        self,
        call: _Call,
        given: list[tuple[Entries, int | None]],
        axes: list[int | None],
        fixed: Bools,
        constants: Floats,
    ) -> None:
        self._call, self._axes, self._fixed, self._constants = call, axes, fixed, constants
        self._given = [axis for _, axis in given]
        self._shapes = [tuple(n for k, n in enumerate(item.ids.shape) if k != axis) for item, axis in given]
        told = hashlib.sha256(fixed.tobytes() + constants.tobytes()).hexdigest()
        self.name = call.name_with(self._shapes, self._given, told)

    def run(self, arguments: Floats) -> list[torch.Tensor]:
        """The results for rows of arguments, with the batch axis first."""
        numbers = np.empty((len(arguments), len(self._fixed)))
        numbers[:, self._fixed], numbers[:, ~self._fixed] = self._constants, arguments
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        tensors = []
        for part, shape, axis, dtype in zip(
            np.split(numbers, ends, axis=1), self._shapes, self._given, self._call.dtypes, strict=True
        ):
            tensor = torch.tensor(part).to(dtype)
            tensors.append(tensor[0].reshape(shape) if axis is None else tensor.reshape(-1, *shape).movedim(0, axis))
        results = zip(self._call.run(tensors), self._axes, strict=True)
        return [item.unsqueeze(0) if axis is None else item.movedim(axis, 0) for item, axis in results]

    def picking(self, place: int, width: int) -> Callable[..., Floats]:
        """One result as a function of columns of arguments and of the index of the requested entry."""

        def function(*columns: Floats) -> Floats:
            table = np.stack(columns, axis=-1)
            distinct, owner = np.unique(table[:, :-1], axis=0, return_inverse=True)
            made = self.run(distinct)[place].reshape(len(distinct), width).double().numpy()
            return np.asarray(made[owner.reshape(-1), table[:, -1].astype(np.int64) - 1])

        return function


def _rows_of(ids: Floats, axis: int | None, count: int) -> Floats:
    if axis is None:
        return np.broadcast_to(ids.reshape(1, -1), (count, ids.size))
    return np.moveaxis(ids, axis, 0).reshape(count, -1)
