"""Products: matrices, convolutions as linear layers on windows, and sums along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.entries import Entries
from symcheck.engine.networks.graph.nodes import LARGEST, Graph, NoCertificateError
from symcheck.engine.networks.graph.operators import ids_of, operator, pointwise, refuse
from symcheck.statements.statement import state


def total(graph: Graph, x: Floats, factor: float = 1.0) -> Floats:
    """Ids of sums along the last axis."""
    weight = graph.constants(np.full((1, x.shape[-1]), factor))
    return graph.linear(x, weight, None, "sum")[..., 0]


@operator("mm", "bmm", "mv", "dot", "matmul", "_sparse_mm")
def product(graph: Graph, x: Entries, y: Entries, name: str = "product") -> Entries:
    """Matrix products."""
    a, b = x.array, y.array
    if a.ndim == 1:
        return _dropped(product(graph, x.like(a[None]), y), 0 if b.ndim == 1 else -2)
    if b.ndim == 1:
        return _dropped(product(graph, x, y.like(b[:, None])), -1)
    if y.is_constant:
        return x.like(_by_constants(graph, a, b, name))
    if x.is_constant:
        return x.like(_by_constants(graph, b.swapaxes(-1, -2), a.swapaxes(-1, -2), name).swapaxes(-1, -2))
    if a.size * b.shape[-1] > LARGEST:
        raise NoCertificateError(state("SYM192", operation=name))
    factors = np.broadcast_arrays(a[..., :, None, :], b.swapaxes(-1, -2)[..., None, :, :])
    pairs = graph.reduce("prod", np.stack(factors, axis=-1), "product")
    return x.like(total(graph, pairs))


def _dropped(result: Entries, axis: int) -> Entries:
    return Entries(result.ids.squeeze(axis), result.dtype)


@operator("_trilinear")
def _trilinear(
    graph: Graph,
    x: Entries,
    weight: Entries,
    y: Entries,
    expand_x: Sequence[int],
    expand_weight: Sequence[int],
    expand_y: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Entries:
    factors = []
    for item, added in ((x, expand_x), (weight, expand_weight), (y, expand_y)):
        ids = item.array
        for axis in sorted(added):
            ids = np.expand_dims(ids, axis)
        factors.append(ids)
    products = graph.reduce("prod", np.stack(np.broadcast_arrays(*factors), axis=-1), "bilinear")
    kept = [axis for axis in range(products.ndim) if axis not in summed]
    rows = products.transpose(*kept, *summed)
    return x.like(total(graph, rows.reshape(*rows.shape[: len(kept)], -1)))


def _by_constants(graph: Graph, a: Floats, b: Floats, name: str) -> Floats:
    """Products of values with constant matrices; equal matrices share one node."""
    if b.ndim == 2:
        return graph.linear(a, b.T, None, name)
    a = np.broadcast_to(a, (*b.shape[:-2], *a.shape[-2:]))
    result = np.empty((*a.shape[:-1], b.shape[-1]))
    batches: dict[bytes, list[tuple[int, ...]]] = {}
    for place in np.ndindex(b.shape[:-2]):
        batches.setdefault(graph.numbers(b[place]).tobytes(), []).append(place)
    for places in batches.values():
        rows = graph.linear(np.stack([a[place] for place in places]), b[places[0]].T, None, name)
        for place, row in zip(places, rows, strict=True):
            result[place] = row
    return result


@operator("_cdist_forward", "_euclidean_dist")
def _distances(graph: Graph, x: Entries, y: Entries, p: float = 2.0, _: int | None = None) -> Entries:
    """Distances between all pairs of rows."""
    if p not in (1.0, 2.0, np.inf):
        refuse(f"distances with p = {p:g}")
    rows = np.broadcast_arrays(x.array[..., :, None, :], y.array[..., None, :, :])
    if rows[0].size > LARGEST:
        raise NoCertificateError(state("SYM192", operation="distance"))
    gaps = graph.add(rows, (1.0, -1.0), "distance")
    if p == 2.0:
        squares = graph.reduce("prod", np.stack([gaps, gaps], axis=-1), "distance")
        return pointwise(graph, "sqrt", (), x.like(total(graph, squares)), like=x)
    sizes = pointwise(graph, "absolute", (), x.like(gaps), like=x).array
    return x.like(total(graph, sizes) if p == 1.0 else graph.largest(sizes, "distance"))


@operator("addmm", "baddbmm")
def _addmm(graph: Graph, bias: Entries, x: Entries, y: Entries, *, beta: float = 1, alpha: float = 1) -> Entries:
    if beta != 1 or alpha != 1:
        refuse("addmm with factors")
    if bias.is_constant and bias.ids.ndim == 1 and y.is_constant and y.ids.ndim == 2:
        return x.like(graph.linear(x.array, y.array.T, bias.array, "linear"))
    return pointwise(graph, "add", (), product(graph, x, y), bias, like=x)


@operator("convolution", "_convolution")
def _convolution(
    graph: Graph,
    x: Entries,
    weight: Entries,
    bias: Entries | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Entries:
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        refuse("convolution with weights that depend on the input")
    ids, w = x.array, weight.array
    zero = float(ids_of(graph, 0.0))
    # a single number applies to all axes
    stride, padding, dilation = (list(n) * ((w.ndim - 2) // len(n)) for n in (stride, padding, dilation))
    sides = [(p, p) for p in padding]
    if transposed:
        kernel = w.shape[2:]
        ids = _spread(ids, stride, zero)
        reach = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
        sides = [(r, r + o) for r, o in zip(reach, output_padding, strict=True)]
        w = w.reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
        w = np.flip(w, tuple(range(3, w.ndim))).reshape(-1, *w.shape[2:])
        stride = [1] * len(kernel)
    if any(min(side) < 0 for side in sides):
        refuse("convolution that crops")
    windows = windows_of(ids, w.shape[2:], stride, sides, dilation, zero)
    if groups > 1:
        w = _over_all_channels(w, groups, zero)
    rows = windows.reshape(*windows.shape[:-2], -1)
    b = None if bias is None else bias.array
    return x.like(np.moveaxis(graph.linear(rows, w.reshape(len(w), -1), b, "convolution"), -1, 1))


def _over_all_channels(w: Floats, groups: int, zero: float) -> Floats:
    """Filters of grouped convolutions, extended by zeros, because the action may permute channels across groups."""
    count, width = len(w) // groups, w.shape[1]
    result = np.full((len(w), width * groups, *w.shape[2:]), zero)
    for group in range(groups):
        rows = slice(group * count, (group + 1) * count)
        result[rows, group * width : (group + 1) * width] = w[rows]
    return result


def _spread(ids: Floats, stride: Sequence[int], zero: float) -> Floats:
    """Insert zeros between entries."""
    shape = [(n - 1) * s + 1 for n, s in zip(ids.shape[2:], stride, strict=True)]
    result = np.full((*ids.shape[:2], *shape), zero)
    result[(slice(None), slice(None), *(slice(None, None, s) for s in stride))] = ids
    return result


def windows_of(
    ids: Floats,
    kernel: Sequence[int],
    stride: Sequence[int],
    sides: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    fill: float,
) -> Floats:
    """Entries under a window, shape (samples, *positions, channels, kernel entries)."""
    ids = np.pad(ids, [(0, 0), (0, 0), *sides], constant_values=fill)
    n = len(kernel)
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        places = (ids.shape[2 + 2 * axis] - d * (k - 1) - 1) // s + 1
        index = np.arange(places)[:, None] * s + np.arange(k) * d
        ids = np.take(ids, index, axis=2 + 2 * axis)
    order = (0, *(2 + 2 * axis for axis in range(n)), 1, *(3 + 2 * axis for axis in range(n)))
    ids = ids.transpose(order)
    return ids.reshape(*ids.shape[: n + 2], -1)
