"""Torch's core operators in terms of the few kinds of nodes that a certificate supports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch

from symcheck.array_types import Floats
from symcheck.engine.networks.graph.entries import Entries
from symcheck.engine.networks.graph.nodes import Graph, NoCertificateError
from symcheck.engine.networks.graph.ranges import are_defined, lie_between
from symcheck.statements.statement import state

Operator = Callable[..., Any]
F = TypeVar("F", bound=Operator)
OPERATORS: dict[str, Operator] = {}
"""Rules by the name of the core operator, without its overload."""
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
_COMPARING = frozenset(
    ("eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or")
)
"""Operators whose results are booleans, whatever the dtype of their arguments."""


def operator(*names: str) -> Callable[[F], F]:
    """Register the implementation of operators with these names."""

    def register(function: F) -> F:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def ids_of(graph: Graph, item: Any) -> Floats:
    """Ids of a tensor or of a number."""
    return item.array if isinstance(item, Entries) else graph.constants(np.asarray(float(item)))


def pointwise(graph: Graph, function: str, parameters: Sequence[float], *arguments: Any, like: Entries) -> Entries:
    """A function of each entry."""
    ids = [ids_of(graph, item) for item in arguments]
    return like.like(express(graph, function, parameters, np.broadcast_arrays(*ids)))


def express(graph: Graph, function: str, parameters: Sequence[float], x: Sequence[Floats]) -> Floats:
    """A function of entries in terms of supported ones: sums, products, maxima, and functions of one entry."""

    def of(name: str, *ids: Floats) -> Floats:
        return express(graph, name, (), ids)

    def product(*factors: Floats) -> Floats:
        return graph.reduce("prod", np.stack(np.broadcast_arrays(*factors), axis=-1), "multiply")

    if function in ("add", "subtract"):
        return graph.add(x, (1.0, 1.0 if function == "add" else -1.0), function)
    if function == "negative":
        return graph.add(x, (-1.0,), function)
    if function == "maximum":
        return graph.largest(np.stack(x, axis=-1), function)
    if function == "minimum":
        return graph.reduce("place", np.stack(x, axis=-1), function, (0.0,))
    if function == "clamp":  # the median of three numbers, an odd function of all three
        return graph.reduce("place", np.stack(np.broadcast_arrays(*x), axis=-1), function, (1.0,))
    if function == "gelu":
        half, error = graph.constants(np.full(x[0].shape, 0.5)), of("erf", product(x[0], _root_of_half(graph)))
        return product(half, x[0], graph.add((error, ids_of(graph, 1.0)), (1.0, 1.0), function))
    if function == "multiply":
        return product(*x)
    if function == "divide":
        return product(x[0], of("reciprocal", x[1]))
    if function == "pow" and parameters[0] in (1.0, 2.0, 3.0):
        return product(*[x[0]] * int(parameters[0]))
    if function == "logical_not":
        return of("zero", x[0])
    if function in ("logical_and", "logical_or"):
        absent = [of("zero", ids) for ids in x]
        return of("zero", of("maximum", *absent) if function == "logical_and" else product(*absent))
    if function == "not_equal" and np.array_equal(x[0], x[1]):
        return of("isnan", x[0])  # only NaN differs from itself
    if function == "equal" and np.array_equal(x[0], x[1]):
        return of("zero", of("isnan", x[0]))
    if function == "greater" and (x[1] < 0).all() and (graph.numbers(x[1]) <= 0).all() and graph.are_positive(x[0]):
        return graph.constants(np.ones(x[0].shape))
    if function in _COMPARISONS:
        name, swapped, negated = _COMPARISONS[function]
        made = of(name, graph.add(x, (-1.0, 1.0) if swapped else (1.0, -1.0), function))
        return of("zero", made) if negated else made
    return graph.pointwise(function, parameters, x, function)


def _root_of_half(graph: Graph) -> Floats:
    return ids_of(graph, math.sqrt(0.5))


_COMPARISONS = {
    "equal": ("zero", False, False),
    "not_equal": ("zero", False, True),
    "greater": ("positive", False, False),
    "less": ("positive", True, False),
    "greater_equal": ("positive", True, True),
    "less_equal": ("positive", False, True),
}
"""Comparisons as functions of a difference: the function, whether the difference is y - x, and whether to negate the
result."""


def _unary(name: str) -> Operator:
    def compute(graph: Graph, x: Entries) -> Entries:
        result = pointwise(graph, _RENAMED[name], (), x, like=x)
        return Entries(result.ids, torch.bool) if name in _COMPARING else result

    return compute


OPERATORS.update({name: _unary(name) for name in _RENAMED})


def compose(graph: Graph, x: Entries, *steps: tuple[Any, ...]) -> Entries:
    """A composition of functions: (name, parameters, arguments); "it" is the previous result, "x" is x."""
    result = x
    for function, parameters, *arguments in steps:
        given = [result if item == "it" else x if isinstance(item, str) else item for item in arguments]
        result = pointwise(graph, function, parameters, *given, like=x)
    return result


_LINEAR_PART = (("divide", (), "x", 6.0), ("add", (), "it", 0.5), ("clamp", (), "it", 0.0, 1.0))
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


def are_booleans(*items: Any) -> bool:
    """Whether all arguments are boolean tensors, or boolean numbers."""
    return all(item.dtype == torch.bool if isinstance(item, Entries) else isinstance(item, bool) for item in items)


def _binary(name: str) -> Operator:
    def compute(graph: Graph, x: Any, y: Any) -> Entries:
        like = next(item for item in (x, y) if isinstance(item, Entries))
        if name.startswith("bitwise") and not are_booleans(x, y):
            refuse(f"{name} of integers")
        if name.startswith("fm") and not all(are_defined(graph, ids_of(graph, item)) for item in (x, y)):
            refuse(f"{name} of a number that may be NaN")  # it returns the other one
        result = pointwise(graph, _BINARY[name], (), x, y, like=like)
        return Entries(result.ids, torch.bool) if name in _COMPARING else result

    return compute


OPERATORS.update({name: _binary(name) for name in _BINARY})


@operator("add", "sub", "rsub")
def _add_first(graph: Graph, x: Any, y: Any, *, alpha: float = 1, function: str = "add") -> Entries:
    like: Entries = next(item for item in (x, y) if isinstance(item, Entries))
    if are_booleans(x, y):
        refuse("a sum of booleans")  # a logical or
    if alpha != 1:
        y = pointwise(graph, "multiply", (), y, alpha, like=like)
    return pointwise(graph, function, (), x, y, like=like)


OPERATORS["sub"] = lambda graph, x, y, *, alpha=1: _add_first(graph, x, y, alpha=alpha, function="subtract")
OPERATORS["rsub"] = lambda graph, x, y, alpha=1: OPERATORS["sub"](graph, y, x) if alpha == 1 else refuse("rsub")


def refuse(name: str) -> NoReturn:
    """Reject an operator, or a form of it, that certificates do not support."""
    raise NoCertificateError(state("SYM190", operation=name))


@operator("div")
def _divide(graph: Graph, x: Any, y: Any, *, rounding_mode: str | None = None) -> Entries:
    if rounding_mode is not None:
        refuse("div with rounding")
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
        refuse("round with decimals")
    return pointwise(graph, "rint", (), x, like=x)


@operator("pow")
def _power(graph: Graph, x: Any, exponent: Any) -> Entries:
    if isinstance(exponent, Entries) or not isinstance(x, Entries):
        refuse("pow with an exponent that depends on the input")
    return pointwise(graph, "pow", (float(exponent),), x, like=x)


@operator("clamp", "hardtanh")
def _clamp(graph: Graph, x: Entries, low: Any = None, high: Any = None) -> Entries:
    bounds = [ids_of(graph, bound) for bound in (low, high) if bound is not None]
    known = len(bounds) == 2 and all((ids < 0).all() for ids in bounds)
    if known and (graph.numbers(bounds[0]) <= graph.numbers(bounds[1])).all():
        return x.like(express(graph, "clamp", (), (x.array, *bounds)))
    x = x if low is None else pointwise(graph, "maximum", (), x, low, like=x)
    return x if high is None else pointwise(graph, "minimum", (), x, high, like=x)


OPERATORS["hardtanh"] = lambda graph, x, low=-1.0, high=1.0: _clamp(graph, x, low, high)
OPERATORS["relu6"] = lambda graph, x: _clamp(graph, x, 0.0, 6.0)
OPERATORS["clamp_min"] = lambda graph, x, low: _clamp(graph, x, low, None)
OPERATORS["clamp_max"] = lambda graph, x, high: _clamp(graph, x, None, high)


@operator("_prelu_kernel")
def _prelu(graph: Graph, x: Entries, slope: Any) -> Entries:
    positive = pointwise(graph, "greater", (), x, 0.0, like=x)
    return pointwise(graph, "where", (), positive, x, pointwise(graph, "multiply", (), x, slope, like=x), like=x)


def fit_into(graph: Graph, ids: Floats, dtype: torch.dtype) -> bool:
    """Whether the values of entries are in the range of an integer dtype for every input; other values wrap around."""
    info = torch.iinfo(torch.uint8 if dtype == torch.bool else dtype)
    return lie_between(graph, ids, max(info.min, -_LONGEST), min(info.max, _LONGEST))


_LONGEST = 2.0**62
"""Bound of integers of 64 bits, below the largest one: bounds are computed in floating point."""


def cast(graph: Graph, x: Entries, dtype: torch.dtype) -> Entries:
    """A change of dtype: real numbers are unchanged, integers truncate, booleans test for non-zero."""
    if dtype == torch.bool and x.dtype != torch.bool:
        return Entries(pointwise(graph, "not_equal", (), x, 0.0, like=x).ids, dtype)
    if not dtype.is_floating_point and not fit_into(graph, x.array, dtype):
        refuse(f"a cast of numbers that may be out of range for {str(dtype)[6:]}")  # such casts wrap around
    if x.dtype.is_floating_point and not dtype.is_floating_point:
        return Entries(pointwise(graph, "trunc", (), x, like=x).ids, dtype)
    return Entries(x.ids.clone(), dtype)


@operator("where")
def _where(graph: Graph, condition: Entries, x: Any, y: Any) -> Entries:
    like = next((item for item in (x, y) if isinstance(item, Entries)), condition)
    if condition.is_constant:  # a constant condition only rearranges entries
        chosen = np.where(graph.numbers(condition.array) != 0, ids_of(graph, x), ids_of(graph, y))
        return like.like(chosen)
    return pointwise(graph, "where", (), condition, x, y, like=like)


def as_stored(value: Any, dtype: torch.dtype) -> Any:
    """A number as stored in a tensor of a dtype: 2 becomes 1 as a boolean; tensors are unchanged."""
    return value if isinstance(value, Entries) else torch.tensor(value).to(dtype).item()


@operator("masked_fill")
def _masked_fill(graph: Graph, x: Entries, mask: Entries, value: Any) -> Entries:
    return x.like(_where(graph, mask, as_stored(value, x.dtype), x).array)


@operator("constant_pad_nd")
def _pad(graph: Graph, x: Entries, pad: Sequence[int], value: float = 0.0) -> Entries:
    fill = float(ids_of(graph, as_stored(value, x.dtype)))
    return Entries(torch.constant_pad_nd(x.ids, list(pad), fill), x.dtype)
