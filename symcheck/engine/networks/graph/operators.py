"""What torch's core operators compute, in the few kinds of nodes that a certificate knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.entries import Entries, constant
from symcheck.engine.networks.graph.nodes import LARGEST, Graph, NoCertificateError
from symcheck.statements.statement import state

Operator = Callable[..., Any]
F = TypeVar("F", bound=Operator)
OPERATORS: dict[str, Operator] = {}
"""By the name of the core operator, without its overload."""
_SAME_NAMES = (
    "relu tanh sigmoid sin cos tan sinh cosh exp log log2 log1p expm1 sqrt erf sign trunc floor ceil logical_not"
)
_RENAMED = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "neg": "negative",
    "abs": "absolute",
    "sgn": "sign",
    **{name: name for name in _SAME_NAMES.split()},
}
_BINARY = {
    "mul": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "fmax": "maximum",
    "fmin": "minimum",
    "atan2": "arctan2",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
}
_COMPARING = frozenset(("eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "bitwise_and", "bitwise_or"))


def operator(*names: str) -> Callable[[F], F]:
    """Register what computes operators of these names."""

    def register(function: F) -> F:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def _ids(graph: Graph, item: Any) -> Floats:
    """Ids of a tensor or of a number."""
    return item.array if isinstance(item, Entries) else graph.constants(np.asarray(float(item)))


def pointwise(graph: Graph, function: str, parameters: Sequence[float], *arguments: Any, like: Entries) -> Entries:
    """A function of each entry."""
    return like.like(graph.pointwise(function, parameters, [_ids(graph, item) for item in arguments], function))


def _unary(function: str) -> Operator:
    return lambda graph, x: pointwise(graph, function, (), x, like=x)


OPERATORS.update({name: _unary(function) for name, function in _RENAMED.items()})


def compose(graph: Graph, x: Entries, *steps: tuple[Any, ...]) -> Entries:
    """Functions one after the other: (name, parameters, arguments); "it" stands for what came before, "x" for x."""
    result = x
    for function, parameters, *arguments in steps:
        given = [result if item == "it" else x if isinstance(item, str) else item for item in arguments]
        result = pointwise(graph, function, parameters, *given, like=x)
    return result


_LINEAR_PART = (("divide", (), "x", 6.0), ("add", (), "it", 0.5), ("clamp", (0.0, 1.0), "it"))
_COMPOSED: dict[str, tuple[tuple[Any, ...], ...]] = {
    "silu": (("sigmoid", (), "x"), ("multiply", (), "x", "it")),
    "mish": (("softplus", (1.0, 20.0), "x"), ("tanh", (), "it"), ("multiply", (), "x", "it")),
    "hardsigmoid": _LINEAR_PART,
    "hardswish": (*_LINEAR_PART, ("multiply", (), "x", "it")),
    "reciprocal": (("divide", (), 1.0, "x"),),
    "rsqrt": (("sqrt", (), "x"), ("divide", (), 1.0, "it")),
    "erfc": (("erf", (), "x"), ("subtract", (), 1.0, "it")),
}


def _composed(name: str) -> Operator:
    return lambda graph, x: compose(graph, x, *_COMPOSED[name])


OPERATORS.update({name: _composed(name) for name in _COMPOSED})


@operator("leaky_relu")
def _leaky_relu(graph: Graph, x: Entries, slope: float = 0.01) -> Entries:
    return _prelu(graph, x, slope)


@operator("elu")
def _elu(graph: Graph, x: Entries, alpha: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Entries:
    return pointwise(graph, "elu", (float(alpha), float(scale), float(inner)), x, like=x)


@operator("softplus")
def _softplus(graph: Graph, x: Entries, beta: float = 1.0, threshold: float = 20.0) -> Entries:
    return pointwise(graph, "softplus", (float(beta), float(threshold)), x, like=x)


@operator("threshold")
def _threshold(graph: Graph, x: Entries, bound: float, value: float) -> Entries:
    return pointwise(graph, "where", (), pointwise(graph, "greater", (), x, bound, like=x), x, value, like=x)


@operator("hardshrink")
def _hardshrink(graph: Graph, x: Entries, bound: float = 0.5) -> Entries:
    outside = pointwise(graph, "greater", (), pointwise(graph, "absolute", (), x, like=x), bound, like=x)
    return pointwise(graph, "where", (), outside, x, 0.0, like=x)


@operator("softshrink")
def _softshrink(graph: Graph, x: Entries, bound: float = 0.5) -> Entries:
    size = pointwise(graph, "subtract", (), pointwise(graph, "absolute", (), x, like=x), bound, like=x)
    return pointwise(
        graph,
        "multiply",
        (),
        pointwise(graph, "sign", (), x, like=x),
        pointwise(graph, "relu", (), size, like=x),
        like=x,
    )


def _binary(name: str) -> Operator:
    def compute(graph: Graph, x: Any, y: Any) -> Entries:
        like = next(item for item in (x, y) if isinstance(item, Entries))
        result = pointwise(graph, _BINARY[name], (), x, y, like=like)
        return Entries(result.ids, torch.bool) if name in _COMPARING else result

    return compute


OPERATORS.update({name: _binary(name) for name in _BINARY})


@operator("add", "sub", "rsub")
def _add_first(graph: Graph, x: Any, y: Any, *, alpha: float = 1, function: str = "add") -> Entries:
    like: Entries = next(item for item in (x, y) if isinstance(item, Entries))
    if alpha != 1:
        y = pointwise(graph, "multiply", (), y, alpha, like=like)
    return pointwise(graph, function, (), x, y, like=like)


OPERATORS["sub"] = lambda graph, x, y, *, alpha=1: _add_first(graph, x, y, alpha=alpha, function="subtract")
OPERATORS["rsub"] = lambda graph, x, y, alpha=1: OPERATORS["sub"](graph, y, x) if alpha == 1 else _refuse("rsub")


def _refuse(name: str) -> NoReturn:
    raise NoCertificateError(state("SYM190", operation=name))


@operator("div")
def _divide(graph: Graph, x: Any, y: Any, *, rounding_mode: str | None = None) -> Entries:
    if rounding_mode is not None:
        _refuse("div with rounding")
    return pointwise(graph, "divide", (), x, y, like=x if isinstance(x, Entries) else y)


@operator("gelu")
def _gelu(graph: Graph, x: Entries, *, approximate: str = "none") -> Entries:
    if approximate == "none":
        return pointwise(graph, "gelu", (), x, like=x)
    cube = pointwise(graph, "multiply", (), pointwise(graph, "pow", (3.0,), x, like=x), 0.044715, like=x)
    inner = pointwise(graph, "add", (), x, cube, like=x)
    scaled = pointwise(graph, "multiply", (), inner, math.sqrt(2 / math.pi), like=x)
    outer = pointwise(graph, "add", (), pointwise(graph, "tanh", (), scaled, like=x), 1.0, like=x)
    return pointwise(graph, "multiply", (), pointwise(graph, "multiply", (), x, 0.5, like=x), outer, like=x)


@operator("log_sigmoid_forward")
def _log_sigmoid(graph: Graph, x: Entries) -> tuple[Entries, None]:
    steps = (("negative", (), "x"), ("softplus", (1.0, math.inf), "it"), ("negative", (), "it"))
    return compose(graph, x, *steps), None


@operator("round")
def _round(graph: Graph, x: Entries, *, decimals: int = 0) -> Entries:
    if decimals:
        _refuse("round with decimals")
    return pointwise(graph, "rint", (), x, like=x)


@operator("pow")
def _power(graph: Graph, x: Any, exponent: Any) -> Entries:
    if isinstance(exponent, Entries) or not isinstance(x, Entries):
        _refuse("pow with an exponent that depends on the input")
    return pointwise(graph, "pow", (float(exponent),), x, like=x)


@operator("clamp", "hardtanh")
def _clamp(graph: Graph, x: Entries, low: Any = None, high: Any = None) -> Entries:
    if isinstance(low, Entries) or isinstance(high, Entries):
        x = x if low is None else pointwise(graph, "maximum", (), x, low, like=x)
        return x if high is None else pointwise(graph, "minimum", (), x, high, like=x)
    bounds = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    return pointwise(graph, "clamp", bounds, x, like=x)


OPERATORS["hardtanh"] = lambda graph, x, low=-1.0, high=1.0: _clamp(graph, x, low, high)
OPERATORS["relu6"] = lambda graph, x: _clamp(graph, x, 0.0, 6.0)
OPERATORS["clamp_min"] = lambda graph, x, low: _clamp(graph, x, low, None)
OPERATORS["clamp_max"] = lambda graph, x, high: _clamp(graph, x, None, high)


@operator("_prelu_kernel")
def _prelu(graph: Graph, x: Entries, slope: Any) -> Entries:
    positive = pointwise(graph, "greater", (), x, 0.0, like=x)
    return pointwise(graph, "where", (), positive, x, pointwise(graph, "multiply", (), x, slope, like=x), like=x)


@operator("where")
def _where(graph: Graph, condition: Entries, x: Any, y: Any) -> Entries:
    like = next((item for item in (x, y) if isinstance(item, Entries)), condition)
    if condition.is_constant:  # a choice that is made once only moves entries
        chosen = np.where(graph.numbers(condition.array) != 0, _ids(graph, x), _ids(graph, y))
        return like.like(chosen)
    return pointwise(graph, "where", (), condition, x, y, like=like)


@operator("masked_fill")
def _masked_fill(graph: Graph, x: Entries, mask: Entries, value: Any) -> Entries:
    return _where(graph, mask, value, x)


@operator("constant_pad_nd")
def _pad(graph: Graph, x: Entries, pad: Sequence[int], value: float = 0.0) -> Entries:
    fill = float(_ids(graph, value))
    return Entries(torch.constant_pad_nd(x.ids, list(pad), fill), x.dtype)


# Products


@operator("mm", "bmm", "mv", "dot", "matmul")
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
    pairs = graph.pointwise("multiply", (), [a[..., :, None, :], b.swapaxes(-1, -2)[..., None, :, :]], "product")
    return x.like(total(graph, pairs))


def _dropped(result: Entries, axis: int) -> Entries:
    return Entries(result.ids.squeeze(axis), result.dtype)


def _by_constants(graph: Graph, a: Floats, b: Floats, name: str) -> Floats:
    """Products of values with constant matrices; matrices that are the same make one node."""
    if b.ndim == 2:
        return graph.linear(a, b.T, None, name)
    a = np.broadcast_to(a, (*b.shape[:-2], *a.shape[-2:]))
    result = np.empty((*a.shape[:-1], b.shape[-1]))
    batches: dict[bytes, list[tuple[int, ...]]] = {}
    for place in np.ndindex(b.shape[:-2]):
        batches.setdefault(b[place].tobytes(), []).append(place)
    for places in batches.values():
        rows = graph.linear(np.stack([a[place] for place in places]), b[places[0]].T, None, name)
        for place, row in zip(places, rows, strict=True):
            result[place] = row
    return result


@operator("addmm", "baddbmm")
def _addmm(graph: Graph, bias: Entries, x: Entries, y: Entries, *, beta: float = 1, alpha: float = 1) -> Entries:
    if beta != 1 or alpha != 1:
        _refuse("addmm with factors")
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
        _refuse("convolution with weights that depend on the input")
    ids, w = x.array, weight.array
    zero = float(_ids(graph, 0.0))
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
        _refuse("convolution that crops")
    windows = _windows(ids, w.shape[2:], stride, sides, dilation, zero)
    if groups > 1:
        w = _over_all_channels(w, groups, zero)
    rows = windows.reshape(*windows.shape[:-2], -1)
    b = None if bias is None else bias.array
    return x.like(np.moveaxis(graph.linear(rows, w.reshape(len(w), -1), b, "convolution"), -1, 1))


def _over_all_channels(w: Floats, groups: int, zero: float) -> Floats:
    """Filters of groups with zeros for the channels of the others, which the action may put in their place."""
    count, width = len(w) // groups, w.shape[1]
    result = np.full((len(w), width * groups, *w.shape[2:]), zero)
    for group in range(groups):
        rows = slice(group * count, (group + 1) * count)
        result[rows, group * width : (group + 1) * width] = w[rows]
    return result


def _spread(ids: Floats, stride: Sequence[int], zero: float) -> Floats:
    """Zeros between entries."""
    shape = [(n - 1) * s + 1 for n, s in zip(ids.shape[2:], stride, strict=True)]
    result = np.full((*ids.shape[:2], *shape), zero)
    result[(slice(None), slice(None), *(slice(None, None, s) for s in stride))] = ids
    return result


def _windows(
    ids: Floats,
    kernel: Sequence[int],
    stride: Sequence[int],
    sides: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    fill: float,
) -> Floats:
    """Entries under a window, shape (samples, *places, channels, entries of the kernel)."""
    ids = np.pad(ids, [(0, 0), (0, 0), *sides], constant_values=fill)
    n = len(kernel)
    for axis, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        places = (ids.shape[2 + 2 * axis] - d * (k - 1) - 1) // s + 1
        index = np.arange(places)[:, None] * s + np.arange(k) * d
        ids = np.take(ids, index, axis=2 + 2 * axis)
    order = (0, *(2 + 2 * axis for axis in range(n)), 1, *(3 + 2 * axis for axis in range(n)))
    ids = ids.transpose(order)
    return ids.reshape(*ids.shape[: n + 2], -1)


# Pools and sums


def total(graph: Graph, x: Floats, factor: float = 1.0) -> Floats:
    """Ids of sums along the last axis."""
    weight = graph.constants(np.full((1, x.shape[-1]), factor))
    return graph.linear(x, weight, None, "sum")[..., 0]


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
    def compute(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False) -> Entries:
        return _along(x, dim, keepdim, lambda rows: graph.reduce(function, rows, function))

    return compute


OPERATORS.update({"amax": _extreme("max"), "amin": _extreme("min"), "prod": _extreme("prod")})


def _extreme_with_place(function: str) -> Operator:
    def compute(graph: Graph, x: Entries, dim: Any = None, keepdim: bool = False) -> Any:
        values = _extreme(function)(graph, x, dim, keepdim)
        return values if dim is None else (values, None)

    return compute


OPERATORS.update({"max": _extreme_with_place("max"), "min": _extreme_with_place("min")})


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
            _refuse("pooling over half windows")
        sides.append((p, p))
    windows = _windows(ids, kernel, stride, sides, dilation, fill)
    return windows if x.ids.ndim == n + 2 else windows[0]


def _pooled(x: Entries, result: Floats) -> Entries:
    return x.like(np.moveaxis(result, -1, -3))


@operator("max_pool2d_with_indices")
def _max_pool(
    graph: Graph, x: Entries, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> tuple[Entries, None]:
    fill = float(_ids(graph, -math.inf))
    kernel = list(kernel) * (2 // len(kernel))
    windows = _pool_windows(graph, x, kernel, stride, padding, dilation, ceil, fill)
    return _pooled(x, graph.reduce("max", windows, "max_pool2d")), None


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
        _refuse("average pooling that leaves padding out")
    windows = _pool_windows(graph, x, kernel, stride, padding, 1, ceil, float(_ids(graph, 0.0)))
    return _pooled(x, total(graph, windows, 1.0 / (divisor or windows.shape[-1])))


def _adaptive(compute: Callable[[Graph, Floats], Floats]) -> Callable[[Graph, Entries, Sequence[int]], Entries]:
    def pool(graph: Graph, x: Entries, size: Sequence[int]) -> Entries:
        ids = x.array
        result = np.empty((*ids.shape[: -len(size)], *size))
        for place in np.ndindex(*size):
            window = ids
            for axis, (cell, cells) in enumerate(zip(place, size, strict=True)):
                n, at = ids.shape[axis - len(size)], axis - len(size)
                # the cell's bounds, rounded outwards
                window = np.take(window, range(cell * n // cells, -((cell + 1) * n // -cells)), axis=at)
            result[(..., *place)] = compute(graph, window.reshape(*ids.shape[: -len(size)], -1))
        return x.like(result)

    return pool


_adaptive_max = _adaptive(lambda graph, rows: graph.reduce("max", rows, "adaptive_max_pool"))
_adaptive_mean = _adaptive(lambda graph, rows: total(graph, rows, 1.0 / rows.shape[-1]))
OPERATORS["adaptive_max_pool2d"] = lambda graph, x, size: (_adaptive_max(graph, x, size), None)
OPERATORS["_adaptive_avg_pool2d"] = _adaptive_mean


def constant_of(graph: Graph, tensor: torch.Tensor) -> Entries:
    """Ids of a tensor that the graph holds."""
    return constant(graph, tensor)
