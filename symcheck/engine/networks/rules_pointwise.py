"""Pointwise operations: activations, sums and products, scales and shifts by constants.

An activation commutes with permutations always, with signs only if it is odd (even functions forget the sign). A scale
or shift by constants commutes if the constants are themselves carried along by the action: batch normalisation with
statistics that differ between images of one channel does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.rules_movement import broadcast_constant, moved_classes, regroup_value
from symcheck.engine.networks.rules_scaling import scaled
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import (
    AffineMap,
    Dense,
    Interval,
    Keyed,
    LayerRecord,
    Opaque,
    Pending,
    SignedPermutation,
    Tracked,
    Value,
)
from symcheck.statements.statement import state

ODD = (
    "tanh tanh_ softsign tanhshrink hardshrink softshrink sin asinh atan arctan erf sinh sign sgn neg negative neg_ "
    "trunc"
)
EVEN = "abs absolute abs_ square cos cosh"
OTHER = (
    "relu relu_ relu6 leaky_relu leaky_relu_ elu elu_ selu celu gelu silu mish softplus sigmoid sigmoid_ logsigmoid "
    "log_sigmoid _threshold hardsigmoid hardswish exp log sqrt rsqrt log1p expm1 reciprocal round floor ceil threshold "
    "log2 log10 exp_ "
    "selu_ celu_ acos asin tan erfc logit nan_to_num"
)
BOUNDED_SLOPE = {
    # name: (largest slope, |f(0)|); GELU and SiLU: maxima of their derivatives, rounded up
    **dict.fromkeys(
        ("relu", "relu_", "relu6", "leaky_relu", "tanh", "softsign", "sin", "atan", "neg", "abs"), (1.0, 0.0)
    ),
    "elu": (1.0, 0.0),
    "gelu": (1.13, 0.0),
    "silu": (1.1, 0.0),
    "sigmoid": (0.25, 0.5),
}


def tracked(call: Call, x: Any) -> Tracked:
    """The tracked value of an operand.

    Raises:
        NotUnderstoodError: it has no permutation of its own.
    """
    value = call.value(x)
    if isinstance(value, Tracked):
        if value.origin is not None:
            value.origin.use()
        return value
    if isinstance(value, Pending):
        value.use()
        value.record.level = "failed"
        value.record.matched = False
        raise NotUnderstoodError(value.record.cause or state("SYM130"), value.record)
    raise NotUnderstoodError(state("SYM125", operation=call.name))


def kept(value: Tracked, call: Call) -> Tracked:
    """The value after a function that keeps classes and signs, with the bounds that its slope allows."""
    interval = None
    slope = BOUNDED_SLOPE.get(call.name)
    if value.interval is not None and slope is not None and call.shape == value.shape:
        interval = Interval(value.interval.size * slope[0] + slope[1], value.interval.drift * slope[0])
    return Tracked(call.shape, value.cls, value.images, interval=interval)


@rule(*ODD.split())
def odd(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value:
    """f(-u) = -f(u): signs pass through."""
    _refuse_moving_options(call, args, kwargs)
    return kept(tracked(call, x), call)


@rule(*EVEN.split())
def even(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value:
    """f(-u) = f(u): signs vanish."""
    _refuse_moving_options(call, args, kwargs)
    value = kept(tracked(call, x), call)
    images = tuple(SignedPermutation(image.index, np.ones_like(image.sign)) for image in value.images)
    return Tracked(value.shape, value.cls, images, interval=value.interval)


@rule(*OTHER.split())
def other(call: Call, x: Any, *args: Any, **kwargs: Any) -> Value:
    """Any other function: permutations only."""
    _refuse_moving_options(call, args, kwargs)
    value = unsigned(call, tracked(call, x))
    if call.name in ("leaky_relu", "elu") and _slope(args, kwargs) > 1:
        return Tracked(call.shape, value.cls, value.images)
    if call.name == "softplus":
        return Tracked(call.shape, value.cls, value.images, interval=_softplus_interval(value, *args, **kwargs))
    return kept(value, call)


def _refuse_moving_options(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A slope or threshold that is itself computed from the input is not a constant of the function."""
    if any(call.value(option) is not None for option in (*args, *kwargs.values())):
        raise NotUnderstoodError(state("SYM155", operation=call.name, depends="options"))


def _softplus_interval(value: Tracked, beta: float = 1.0, threshold: float = 20.0, **_: Any) -> Interval | None:
    """|f(u)| <= |u| + log(2) / beta, of slope at most 1; beyond the threshold torch jumps to u, and nothing is said."""
    if value.interval is None or not (beta * value.interval.size <= threshold).all():
        return None
    return Interval(value.interval.size + float(np.log(2.0)) / beta, value.interval.drift)


def _slope(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    number = args[0] if args else kwargs.get("negative_slope", kwargs.get("alpha", 0.01))
    return abs(float(number))


@rule("hardtanh", "hardtanh_", "clamp", "clamp_", "clip", "clip_")
def clamp(call: Call, x: Any, min_val: Any = None, max_val: Any = None, *args: Any, **kwargs: Any) -> Value:
    """Clamping is odd between bounds of opposite sign."""
    low = kwargs.get("min", min_val)
    high = kwargs.get("max", max_val)
    if call.name.startswith("hardtanh"):
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    return _clamp_between(call, x, low, high)


@rule("clamp_min", "clamp_min_")
def clamped_below(call: Call, x: Any, min: Any) -> Value:  # noqa: A002 (torch's own name)
    """At least a number."""
    return _clamp_between(call, x, min, None)


@rule("clamp_max", "clamp_max_")
def clamped_above(call: Call, x: Any, max: Any) -> Value:  # noqa: A002 (torch's own name)
    """At most a number."""
    return _clamp_between(call, x, None, max)


def _clamp_between(call: Call, x: Any, low: Any, high: Any) -> Value:
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        return _clamped_by_entry(call, x, low, high)
    value = tracked(call, x)
    symmetric = low is not None and high is not None and low == -high
    return kept(value if symmetric else unsigned(call, value), call)


def _clamped_by_entry(call: Call, x: Any, low: Any, high: Any) -> Value:
    """Bounds of each entry: they must be carried along, and change places with its sign."""
    value = tracked(call, x)
    bounds = [
        np.full(int(np.prod(call.shape)), default) if side is None else broadcast_constant(call, side, call.shape)
        for side, default in ((low, -np.inf), (high, np.inf))
    ]
    cls = moved_classes(call, x, call.shape)
    images = []
    for image in value.images:
        sign = image.sign[cls]
        # A negative sign exchanges the bounds: -u lies in [-high, -low].
        least = np.where(sign > 0, bounds[0], -bounds[1])
        most = np.where(sign > 0, bounds[1], -bounds[0])
        images.append(([image.index[cls], least, most], sign))
    return regroup_value(
        call.shape, Keyed([cls, *bounds], images), state("SYM114", operation=call.name, constant="bounds")
    )


def unsigned(call: Call, value: Tracked) -> Tracked:
    """The value, refused if the action negates any of it.

    Raises:
        NotUnderstoodError: some generator negates entries.
    """
    if any((image.sign < 0).any() for image in value.images):
        cause = state("SYM113", operation=call.name)
        record = call.record(LayerRecord(call.owner(), call.name, "failed", cause=cause, matched=False))
        raise NotUnderstoodError(cause, record)
    return value


@rule("prelu")
def prelu(call: Call, x: Any, weight: Any) -> Value:
    """One slope for all, or one per channel that must be carried along."""
    value = unsigned(call, tracked(call, x))
    slopes = call.constant(weight).reshape(-1)
    if len(slopes) == 1:
        return kept(value, call)
    shape = (1, -1) + (1,) * (len(value.shape) - 2)
    per_entry = np.broadcast_to(slopes.reshape(shape), value.shape).reshape(-1)
    result = scaled(call, value, per_entry, np.zeros_like(per_entry), call.owner(weight), "PReLU")
    if result.interval is not None and value.interval is not None:  # f(u) is u or a u, of slope at most 1 + |a|
        size = np.maximum(result.interval.size, value.interval.size)
        result.interval = Interval(size, result.interval.drift + value.interval.drift)
    return result


def _pair(call: Call, x: Any, y: Any) -> tuple[Ints, Ints, list[tuple[Ints, Ints, Ints, Ints]]]:
    a, b = tracked(call, x), tracked(call, y)
    ca, cb = moved_classes(call, x, call.shape), moved_classes(call, y, call.shape)
    images = []
    # (class image, sign) of both operands for each generator.
    for p, q in zip(a.images, b.images, strict=True):
        images.append((p.index[ca], p.sign[ca], q.index[cb], q.sign[cb]))
    return ca, cb, images


def _combine(call: Call, x: Any, y: Any, sign: Callable[[Ints, Ints], Ints | None]) -> Value:
    ca, cb, images = _pair(call, x, y)
    keyed = Keyed([ca, cb])
    rows: list[tuple[Any, Ints]] = []
    for pa, sa, pb, sb in images:
        joint = sign(sa, sb)
        if joint is None:
            raise NotUnderstoodError(state("SYM115", operation=call.name))
        rows.append(([pa, pb], joint))
    keyed.images = rows
    result = regroup_value(call.shape, keyed, state("SYM122", operation=call.name))
    ia, ib = tracked(call, x).interval, tracked(call, y).interval
    if ia is not None and ib is not None and call.name in ("add", "sub", "add_", "sub_", "__iadd__"):
        # Where each class of the result appears first: bounds of a sum are sums of bounds.
        first = np.full(result.classes, -1, dtype=np.int64)
        first[result.cls[::-1]] = np.arange(len(result.cls))[::-1]
        result.interval = Interval(ia.size[ca[first]] + ib.size[cb[first]], ia.drift[ca[first]] + ib.drift[cb[first]])
    return result


def _constant_side(call: Call, x: Any, y: Any) -> tuple[Any, Any, bool]:
    """(value, constant, whether the constant is on the left)."""
    left = call.value(x) is None
    return (y, x, True) if left else (x, y, False)


@rule("add", "add_", "__add__", "__radd__", "__iadd__", "sub", "sub_", "__rsub__", "rsub", "subtract", "__isub__")
def add(call: Call, x: Any, y: Any, *, alpha: Any = 1, **kwargs: Any) -> Value:
    """Sums and differences of values, or of a value and a constant."""
    if "rsub" in call.name:
        x, y = y, x
    difference = "sub" in call.name
    if alpha != 1:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="alpha"))
    if call.value(x) is not None and call.value(y) is not None:
        pending = _added_pending(call, x, y, -1.0 if difference else 1.0)
        return pending or _combine(call, x, y, lambda a, b: a if (a == b).all() else None)
    value, constant, left = _constant_side(call, x, y)
    sign = -1.0 if difference and left else 1.0
    shift = broadcast_constant(call, constant, call.shape) * (-1.0 if difference and not left else 1.0)
    if np.isinf(shift).any():
        return _with_infinities(call, value, shift)
    return _scaled_broadcast(call, value, np.full(shift.shape, sign), shift, constant)


def _with_infinities(call: Call, x: Any, shift: Floats) -> Value:
    """A sum whose infinite entries no longer depend on the input: a mask of attention, or of actions."""
    value = tracked(call, x)
    lost, cls = np.isinf(shift), moved_classes(call, x, call.shape)
    images = []
    for image in value.images:
        signs = np.where(lost, 1, image.sign[cls])
        images.append(([np.where(lost, -1, image.index[cls]), shift * signs], signs))
    keyed = Keyed([np.where(lost, -1, cls), shift], images)
    return regroup_value(call.shape, keyed, state("SYM114", operation=call.name, constant="mask"))


def _added_pending(call: Call, x: Any, y: Any, sign: float) -> Pending | None:
    a, b = _as_pending(call.value(x)), _as_pending(call.value(y))
    # Sums of two linear maps of one value are a linear map of it: residual connections.
    if a is None or b is None or a.parent is not b.parent or a.shape != b.shape:
        return None
    if isinstance(call.value(x), Tracked) and isinstance(call.value(y), Tracked):
        return None
    return Pending(a.shape, a.parent, a.weight + sign * b.weight, a.bias + sign * b.bias, a.noise + b.noise, a.record)


def _as_pending(value: Any) -> Pending | None:
    return value if isinstance(value, Pending) else value.origin if isinstance(value, Tracked) else None


@rule(
    "mul",
    "mul_",
    "multiply",
    "__mul__",
    "__rmul__",
    "__imul__",
    "div",
    "div_",
    "true_divide",
    "__truediv__",
    "__rtruediv__",
)
def multiply(call: Call, x: Any, y: Any, **kwargs: Any) -> Value:
    """Products and quotients of values, or of a value and a constant."""
    if kwargs.get("rounding_mode") is not None:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="rounding_mode"))
    if call.name == "__rtruediv__":
        x, y = y, x
    if call.value(x) is not None and call.value(y) is not None:
        return _combine(call, x, y, lambda a, b: a * b)
    value, constant, left = _constant_side(call, x, y)
    scale = broadcast_constant(call, constant, call.shape)
    if "div" in call.name:
        if left:
            # A constant over a value is no linear map: classes only.
            inverse = tracked(call, value)
            call_shape_value = Tracked(call.shape, moved_classes(call, value, call.shape), inverse.images)
            return scaled(call, call_shape_value, scale, np.zeros_like(scale), _name(call, constant), "constant")
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1.0 / scale
        if not np.isfinite(scale).all():
            raise NotUnderstoodError(state("SYM167"))
    return _scaled_broadcast(call, value, scale, np.zeros_like(scale), constant)


def _scaled_broadcast(call: Call, x: Any, scale: Floats, shift: Floats, constant: Any) -> Value:
    value = call.value(x)
    if isinstance(value, Opaque) or value is None:
        raise NotUnderstoodError(state("SYM154", operation=call.name))
    if isinstance(value, Pending) and value.shape == call.shape:
        noise = value.noise * float(np.abs(scale).max(initial=0.0)) + 4e-16 * float(np.abs(shift).max(initial=0.0))
        weight, bias = value.weight * scale[:, None], value.bias * scale + shift
        return replace(value, shape=call.shape, weight=weight, bias=bias, noise=noise)
    if isinstance(value, Dense):
        return scaled_input(call, value, scale, shift)
    value = tracked(call, x)
    source = Tracked(call.shape, moved_classes(call, x, call.shape), value.images, interval=value.interval)
    result = scaled(call, source, scale, shift, _name(call, constant), "constant")
    origin = value.origin
    if origin is not None and value.shape == call.shape and (scale != 0).all():
        weight, bias = origin.weight * scale[:, None], origin.bias * scale + shift
        result.origin = replace(origin, shape=call.shape, weight=weight, bias=bias)
    return result


def _name(call: Call, constant: Any) -> str:
    return call.owner(constant) if isinstance(constant, torch.Tensor) else call.owner()


@rule("maximum", "minimum", "fmax", "fmin")
def extreme(call: Call, x: Any, y: Any) -> Value:
    """Entrywise extremes: signs must not occur."""
    for side in (x, y):
        if call.value(side) is not None:
            unsigned(call, tracked(call, side))
    if call.value(x) is not None and call.value(y) is not None:
        return _combine(call, x, y, lambda a, b: a)
    value, constant, _ = _constant_side(call, x, y)
    numbers = broadcast_constant(call, constant, call.shape)
    source = tracked(call, value)
    cls = moved_classes(call, value, call.shape)
    keyed = Keyed([cls, numbers], [([p.index[cls], numbers], p.sign[cls]) for p in source.images])
    return regroup_value(call.shape, keyed, state("SYM114", operation=call.name, constant="constant"))


@rule("pow", "__pow__", "pow_")
def power(call: Call, x: Any, exponent: Any) -> Value:
    """Whole powers are odd or even; others take no signs."""
    if isinstance(exponent, torch.Tensor):
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="a tensor as exponent"))
    if float(exponent) == int(exponent):
        return odd(call, x) if int(exponent) % 2 else even(call, x)
    return kept(unsigned(call, tracked(call, x)), call)


def scaled_input(call: Call, value: Dense, scale: Floats, shift: Floats) -> Value:
    """Scale * x + shift of a dense input: a linear layer with a diagonal matrix, waiting for the next."""
    if value.shape != call.shape or (scale == 0).any():
        raise NotUnderstoodError(state("SYM125", operation=call.name))
    maps = []
    for affine in value.maps:
        # The action in scaled coordinates: S M S^-1, with the shift carried along.
        matrix = affine.matrix * scale[:, None] / scale[None, :]
        maps.append(AffineMap(matrix, scale * affine.offset + shift - matrix @ shift))
    interval = value.interval
    if interval is not None:
        interval = Interval(np.abs(scale) * interval.size + np.abs(shift), np.abs(scale) * interval.drift)
    return Dense(call.shape, tuple(maps), interval)
