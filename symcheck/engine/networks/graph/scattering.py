"""Writes or adds entries at known positions: scatter, index_add and index_put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.graph.entries import Entries, as_tensor
from symcheck.engine.networks.graph.nodes import Graph
from symcheck.engine.networks.graph.operators import as_stored, ids_of, operator, refuse
from symcheck.engine.networks.graph.products import total


def _places_of(x: Entries) -> torch.Tensor:
    return torch.arange(x.ids.numel()).reshape(x.ids.shape)


def _known(graph: Graph, index: Any) -> torch.Tensor:
    if not isinstance(index, Entries) or not index.is_constant:
        refuse("writing at indices that depend on the input")
    return as_tensor(graph, index)


@operator("index_add")
def _add_rows(graph: Graph, x: Entries, dim: int, index: Any, source: Entries, *, alpha: float = 1) -> Entries:
    if alpha != 1:
        refuse("index_add with a factor")
    return _write_entries(graph, x, _places_of(x).index_select(dim, _known(graph, index)), source, "sum")


@operator("scatter")
def _scatter(
    graph: Graph,
    x: Entries,
    dim: int,
    index: Any,
    source: Any,
    *,
    reduce: Any = None,
    adds: bool = False,
    how: str | None = None,
    include_self: bool = True,
) -> Entries:
    how = "sum" if adds else {"add": "sum", "multiply": "prod"}.get(reduce, reduce) or how
    places = _known(graph, index)
    cut = tuple(slice(0, n) if axis != dim % x.ids.ndim else slice(None) for axis, n in enumerate(places.shape))
    if isinstance(source, Entries):
        source = Entries(source.ids[tuple(slice(0, n) for n in places.shape)], source.dtype)
    return _write_entries(graph, x, _places_of(x)[cut].gather(dim, places), source, how, include_self)


@operator("scatter_reduce")
def _scatter_reduce(
    graph: Graph, x: Entries, dim: int, index: Any, source: Entries, reduce: str, *, include_self: bool = True
) -> Entries:
    return _scatter(graph, x, dim, index, source, how=reduce, include_self=include_self)


@operator("index_reduce")
def _reduce_rows(
    graph: Graph, x: Entries, dim: int, index: Any, source: Entries, reduce: str, *, include_self: bool = True
) -> Entries:
    places = _places_of(x).index_select(dim, _known(graph, index))
    return _write_entries(graph, x, places, source, reduce, include_self)


@operator("scatter_add")
def _scatter_add(graph: Graph, x: Entries, dim: int, index: Any, source: Entries) -> Entries:
    return _scatter(graph, x, dim, index, source, adds=True)


@operator("index_put", "_index_put_impl")
def _put(
    graph: Graph, x: Entries, indices: Sequence[Any], source: Entries, accumulate: bool = False, *_: Any
) -> Entries:
    places = [None if index is None else _known(graph, index) for index in indices]
    return _write_entries(graph, x, torch.ops.aten.index(_places_of(x), places), source, "sum" if accumulate else None)


def _write_entries(
    graph: Graph, x: Entries, places: torch.Tensor, source: Any, how: str | None, include_self: bool = True
) -> Entries:
    """Written values replace the previous values, or are combined with them."""
    if isinstance(source, Entries) and not x.dtype.is_floating_point and source.dtype not in (x.dtype, torch.bool):
        refuse("numbers written into a tensor of another dtype")
    if how is not None and not x.dtype.is_floating_point:
        refuse("combining integers")
    ids = ids_of(graph, as_stored(source, x.dtype))
    written: Floats = np.broadcast_to(ids, places.shape).reshape(-1)
    result = x.array.reshape(-1).copy()
    targets: Ints = places.numpy().reshape(-1)
    order = np.argsort(targets, kind="stable")
    distinct, starts, counts = np.unique(targets[order], return_index=True, return_counts=True)
    if how is None and counts.max(initial=0) > 1:
        refuse("several entries written at one index")
    for count in np.unique(counts):  # positions that receive the same number of entries form one node
        chosen = counts == count
        columns = [written[order[starts[chosen] + k]] for k in range(count)]
        if how is not None and include_self:
            columns = [result[distinct[chosen]], *columns]
        result[distinct[chosen]] = columns[0] if how is None else _combine_columns(graph, how, columns)
    return x.like(result.reshape(x.ids.shape))


def _combine_columns(graph: Graph, how: str, columns: Sequence[Floats]) -> Floats:
    """Entries of several arrays of one shape as one."""
    if how == "sum":
        return graph.add(columns, [1.0] * len(columns), "scatter")
    rows = np.stack(columns, axis=-1)
    if how == "mean":
        return total(graph, rows, 1.0 / len(columns))
    if how in ("amax", "amin"):
        return graph.largest(rows, "scatter") if how == "amax" else graph.reduce("place", rows, "scatter", (0.0,))
    if how == "prod":
        return graph.reduce("prod", rows, "scatter")
    return refuse(how)
