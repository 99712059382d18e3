"""The position of the largest entry, by comparisons: `argmax`, and operators that read or compare at it.

The position is represented by indicators, one for each candidate: a product of comparisons that is 1 at the first
largest entry. The value read there is the sum of the entries times their indicators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.entries import Entries, as_tensor
from symcheck.engine.networks.graph.nodes import Graph
from symcheck.engine.networks.graph.operators import OPERATORS, express, operator, refuse

_MOST = 16
"""Maximum number of candidate positions: each entry is compared with all others."""


@operator("argmax", "argmin")
def _largest(
    graph: Graph, x: Entries, dim: int | None = None, keepdim: bool = False, *, smallest: bool = False
) -> Entries:
    if dim is None or not 1 < x.ids.shape[dim] <= _MOST:
        refuse("argmax")
    rows = np.moveaxis(x.array, dim, -1)
    indicators = np.stack([_indicator(graph, rows, place, smallest) for place in range(rows.shape[-1])], axis=-1)
    weights = np.arange(float(rows.shape[-1]))[None]
    ids = graph.linear(indicators, graph.constants(weights), None, "argmax")[..., 0]
    for place, row in zip(ids.reshape(-1).tolist(), indicators.reshape(-1, rows.shape[-1]).tolist(), strict=True):
        graph.indicators[place] = row
    ids = np.expand_dims(ids, dim) if keepdim else ids
    return Entries(torch.from_numpy(np.ascontiguousarray(ids)), torch.int64)


OPERATORS["argmin"] = lambda graph, x, dim=None, keepdim=False: _largest(graph, x, dim, keepdim, smallest=True)


def _indicator(graph: Graph, rows: Floats, place: int, smallest: bool) -> Floats:
    """The indicator of a position: 1 if the first largest (or smallest) entry of a row is there."""
    answers = []
    for other in range(rows.shape[-1]):
        if other != place:
            pair = (rows[..., other], rows[..., place]) if smallest else (rows[..., place], rows[..., other])
            answers.append(express(graph, "greater" if other < place else "greater_equal", (), pair))
    return answers[0] if len(answers) == 1 else graph.reduce("prod", np.stack(answers, axis=-1), "argmax")


def indicators_of(graph: Graph, index: Any) -> Floats | None:
    """The indicators of positions, along a last axis; None if they are not positions of largest entries."""
    if not isinstance(index, Entries) or not index.ids.numel():
        return None
    rows = [graph.indicators.get(place) for place in index.array.reshape(-1).tolist()]
    if any(row is None for row in rows) or len({len(row) for row in rows if row is not None}) > 1:
        return None
    return np.array(rows).reshape(*index.ids.shape, -1)


def equal_to_place(graph: Graph, x: Any, y: Any) -> Entries | None:
    """Whether positions of largest entries equal given numbers; None if neither argument is such a position."""
    place, number = (x, y) if indicators_of(graph, x) is not None else (y, x)
    if indicators_of(graph, place) is None or (isinstance(number, Entries) and not number.is_constant):
        return None
    asked = as_tensor(graph, number).numpy() if isinstance(number, Entries) else np.asarray(float(number))
    ids, asked = np.broadcast_arrays(place.array, asked)
    whole = indicators_of(graph, place.like(ids))
    zero = float(graph.constants(np.zeros(1))[0])
    if whole is None:
        return None
    inside = (asked >= 0) & (asked < whole.shape[-1]) & (asked == np.floor(asked))
    picked = np.take_along_axis(whole, np.where(inside, asked, 0).astype(np.int64)[..., None], axis=-1)[..., 0]
    return Entries(torch.from_numpy(np.where(inside, picked, zero)), torch.bool)


def read_at_places(graph: Graph, name: str, args: Sequence[Any]) -> Entries | None:
    """The entries read at positions of largest entries; None if the operator reads elsewhere."""
    if name == "gather":
        x, dim, index = args[0], args[1] % args[0].ids.ndim, args[2]
        rows = np.moveaxis(x.array, dim, -1)
        places = np.moveaxis(index.array, dim, -1)
        if rows.shape[:-1] != places.shape[:-1]:
            return None
        read = _read_chosen(graph, rows[..., None, :], Entries(torch.from_numpy(places.copy()), index.dtype))
        return None if read is None else x.like(np.moveaxis(read, -1, dim))
    if name == "embedding":
        table = np.moveaxis(args[0].array, 0, -1)
        read = _read_chosen(graph, table, Entries(args[1].ids.unsqueeze(-1), args[1].dtype))
        return None if read is None else args[0].like(read)
    if name == "index" and len(args[1]) == 2 and all(isinstance(item, Entries) for item in args[1]):
        x, (own, index) = args[0], args[1]
        here = np.arange(x.ids.shape[0])
        rows = np.moveaxis(x.array, 1, -1)
        if not own.is_constant or not np.array_equal(as_tensor(graph, own).numpy(), here) or index.ids.ndim != 1:
            return None
        blank = (1,) * (rows.ndim - 2)
        read = _read_chosen(graph, rows, Entries(index.ids.reshape(-1, *blank), index.dtype))
        return None if read is None else x.like(read)
    return None


def _read_chosen(graph: Graph, rows: Floats, index: Entries) -> Floats | None:
    """The entries of rows at positions, with the leading axes of rows and of positions broadcast."""
    chosen = indicators_of(graph, index)
    if chosen is None or chosen.shape[-1] > rows.shape[-1]:
        return None
    pairs = np.broadcast_arrays(chosen, rows[..., : chosen.shape[-1]])
    products = graph.reduce("prod", np.stack(pairs, axis=-1), "gather")
    return graph.add(list(np.moveaxis(products, -1, 0)), [1.0] * products.shape[-1], "gather")
