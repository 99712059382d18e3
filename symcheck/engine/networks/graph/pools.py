"""Sums, extremes and normalisations along axes, and pools over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.entries import Entries
from symcheck.engine.networks.graph.nodes import Graph
from symcheck.engine.networks.graph.operators import OPERATORS, Operator, ids_of, operator, pointwise, refuse
from symcheck.engine.networks.graph.products import total, windows_of


def _along(x: Entries, axes: Any, keep: bool, compute: Callable[[Floats], Floats]) -> Entries:
    ids = x.array
    chosen = [axes] if isinstance(axes, int) else list(axes) if axes else list(range(ids.ndim))
    chosen = sorted(axis % max(ids.ndim, 1) for axis in chosen)
    rest = [axis for axis in range(ids.ndim) if axis not in chosen]
    rows = ids.transpose(*rest, *chosen).reshape(*(ids.shape[axis] for axis in rest), -1)
    result = compute(rows)
    return x.like(np.expand_dims(result, tuple(chosen)) if keep else result)


@operator("sum")
def _sum(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Entries:
    return _along(x, dim, keepdim, lambda rows: total(graph, rows))


@operator("mean")
def _mean(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Entries:
    return _along(x, dim, keepdim, lambda rows: total(graph, rows, 1.0 / rows.shape[-1]))


@operator("var")
def _variance(graph: Graph, x: Entries, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    mean = _mean(graph, x, dim, True)
    square = pointwise(graph, "pow", (2.0,), pointwise(graph, "subtract", (), x, mean, like=x), like=x)
    count = x.ids.numel() // max(mean.ids.numel(), 1)
    factor = 1.0 / (count - float(1 if correction is None else correction))
    return _along(square, dim, keepdim, lambda rows: total(graph, rows, factor))


def _variance_and_mean(graph: Graph, x: Entries, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    return _variance(graph, x, dim, correction=correction, keepdim=keepdim), _mean(graph, x, dim, keepdim)


OPERATORS["var_mean"] = _variance_and_mean


@operator("_native_batch_norm_legit_no_training")
def _batch_norm(
    graph: Graph, x: Entries, weight: Any, bias: Any, mean: Entries, variance: Entries, momentum: float, eps: float
) -> tuple[Entries, None, None]:
    def each_channel(item: Entries) -> Entries:
        return Entries(item.ids.reshape(1, -1, *[1] * (x.ids.ndim - 2)), item.dtype)

    factor = 1.0 / np.sqrt(graph.numbers(variance.array) + eps)
    result = pointwise(graph, "subtract", (), x, each_channel(mean), like=x)
    result = pointwise(graph, "multiply", (), result, each_channel(mean.like(graph.constants(factor))), like=x)
    if weight is not None:
        result = pointwise(graph, "multiply", (), result, each_channel(weight), like=x)
    if bias is not None:
        result = pointwise(graph, "add", (), result, each_channel(bias), like=x)
    return result, None, None


@operator("cumsum")
def _cumsum(graph: Graph, x: Entries, dim: int, *, dtype: Any = None) -> Entries:
    rows = np.moveaxis(x.array, dim, -1)
    weight = graph.constants(np.tri(rows.shape[-1]))
    return x.like(np.moveaxis(graph.linear(rows, weight, None, "cumsum"), -1, dim))


def _extreme(function: str) -> Operator:
    def reduced(graph: Graph, rows: Floats) -> Floats:
        if function == "prod":
            return graph.reduce(function, rows, function)
        return graph.largest(rows, function) if function == "max" else graph.reduce("place", rows, function, (0.0,))

    def compute(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False) -> Entries:
        return _along(x, dim, keepdim, lambda rows: reduced(graph, rows))

    return compute


OPERATORS.update({"amax": _extreme("max"), "amin": _extreme("min"), "prod": _extreme("prod")})


def _extreme_with_place(function: str) -> Operator:
    def compute(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False) -> Any:
        values = _extreme(function)(graph, x, dim, keepdim)
        return values if dim is None else (values, None)

    return compute


OPERATORS.update({"max": _extreme_with_place("max"), "min": _extreme_with_place("min")})


def _entries_at_places(graph: Graph, x: Entries, dim: int, places: Sequence[int]) -> Entries:
    """The entries at given positions after sorting along an axis."""
    rows = np.moveaxis(x.array, dim, -1)
    chosen = [graph.reduce("place", rows, "sort", (float(place),)) for place in places]
    return x.like(np.moveaxis(np.stack(chosen, axis=-1), -1, dim))


@operator("sort")
def _sort(graph: Graph, x: Entries, dim: int = -1, descending: bool = False, **_: Any) -> tuple[Entries, None]:
    places = range(x.ids.shape[dim])
    return _entries_at_places(graph, x, dim, places[::-1] if descending else places), None


@operator("topk")
def _largest(
    graph: Graph, x: Entries, k: int, dim: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[Entries, None]:
    places = range(x.ids.shape[dim])
    return _entries_at_places(graph, x, dim, (places[::-1] if largest else places)[:k]), None


@operator("median")
def _median(graph: Graph, x: Entries, dim: int | None = None, keepdim: bool = False) -> Any:
    if dim is None:
        refuse("median of all entries")
    middle = _entries_at_places(graph, x, dim, [(x.ids.shape[dim] - 1) // 2])
    return middle if keepdim else middle.like(middle.array.squeeze(dim)), None


def _pool_windows(
    graph: Graph, x: Entries, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any, ceil: bool, fill: float
) -> Floats:
    n = len(kernel)
    stride = list(stride) or list(kernel)
    stride, padding, dilation = (
        [v] * n if isinstance(v, int) else list(v) * (n // len(v)) for v in (stride, padding, dilation)
    )
    ids = x.array if x.ids.ndim == n + 2 else x.array[None]
    sides = []
    for size, k, s, p, d in zip(ids.shape[2:], kernel, stride, padding, dilation, strict=True):
        reach = size + 2 * p - d * (k - 1) - 1
        if ceil and reach % s:
            refuse("pooling over partial windows")
        sides.append((p, p))
    windows = windows_of(ids, kernel, stride, sides, dilation, fill)
    return windows if x.ids.ndim == n + 2 else windows[0]


def _pooled(x: Entries, result: Floats) -> Entries:
    return x.like(np.moveaxis(result, -1, -3))


@operator("max_pool2d_with_indices")
def _max_pool(
    graph: Graph, x: Entries, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> tuple[Entries, None]:
    fill = float(ids_of(graph, -math.inf))
    kernel = list(kernel) * (2 // len(kernel))
    windows = _pool_windows(graph, x, kernel, stride, padding, dilation, ceil, fill)
    return _pooled(x, graph.largest(windows, "max_pool2d")), None


@operator("avg_pool2d")
def _average_pool(
    graph: Graph,
    x: Entries,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Entries:
    kernel = list(kernel) * (2 // len(kernel))
    if np.any(padding) and not count_include_pad:
        refuse("average pooling that excludes padding")
    windows = _pool_windows(graph, x, kernel, stride, padding, 1, ceil, float(ids_of(graph, 0.0)))
    return _pooled(x, total(graph, windows, 1.0 / (divisor or windows.shape[-1])))


def _adaptive(compute: Callable[[Graph, Floats], Floats]) -> Callable[[Graph, Entries, Sequence[int]], Entries]:
    def pool(graph: Graph, x: Entries, size: Sequence[int]) -> Entries:
        ids = x.array
        windows: dict[int, list[tuple[Any, Floats]]] = {}
        for place in np.ndindex(*size):
            window = ids
            for axis, (cell, cells) in enumerate(zip(place, size, strict=True)):
                n, at = ids.shape[axis - len(size)], axis - len(size)
                # the cell's bounds, rounded outwards
                window = np.take(window, range(cell * n // cells, -((cell + 1) * n // -cells)), axis=at)
            window = window.reshape(*ids.shape[: -len(size)], -1)
            windows.setdefault(window.shape[-1], []).append((place, window))
        result = np.empty((*ids.shape[: -len(size)], *size))
        for group in windows.values():  # windows of the same size form one node
            made = compute(graph, np.stack([window for _, window in group]))
            for k, (cells_of_one, _) in enumerate(group):
                result[(..., *cells_of_one)] = made[k]
        return x.like(result)

    return pool


_adaptive_max = _adaptive(lambda graph, rows: graph.largest(rows, "adaptive_max_pool"))
_adaptive_mean = _adaptive(lambda graph, rows: total(graph, rows, 1.0 / rows.shape[-1]))
OPERATORS["adaptive_max_pool2d"] = lambda graph, x, size: (_adaptive_max(graph, x, size), None)
OPERATORS["_adaptive_avg_pool2d"] = _adaptive_mean
