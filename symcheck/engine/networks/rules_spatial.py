"""Convolutions and pooling: the action splits into a permutation of channels and a symmetry of the square (or line).

For a window that starts at s p - pad and holds K entries d apart, a flip of the input is a flip of the output if and
only if the windows fill the padded axis exactly: (H + pads - d (K - 1) - 1) divisible by the stride s, with equal pads
on both sides. Otherwise the flipped windows lie elsewhere, whatever the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.matching import judge, match_rows
from symcheck.engine.networks.rules_blocks import blocks_of_axes, reduce_blocks
from symcheck.engine.networks.rules_linear import given_match
from symcheck.engine.networks.rules_pointwise import tracked, unsigned
from symcheck.engine.networks.squares import Split, Square, channel_classes, splits
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import (
    Interval,
    LayerRecord,
    SignedPermutation,
    Tracked,
    Value,
    distinct_rows,
    first_places,
)
from symcheck.statements.statement import Statement, state


@dataclass(frozen=True)
class Axis:
    """The windows along one axis."""

    size: int
    kernel: int
    stride: int
    dilation: int
    pad_low: int
    pad_high: int

    @property
    def rest(self) -> int:
        """Entries of the padded axis that no window reaches."""
        return (self.size + self.pad_low + self.pad_high - self.dilation * (self.kernel - 1) - 1) % self.stride

    @property
    def flips(self) -> bool:
        """Whether a flip of the input is a flip of the output."""
        return self.rest == 0 and self.pad_low == self.pad_high

    def problem(self, square: str) -> Statement:
        """Why it does not flip, and at which sizes it would."""
        if self.pad_low != self.pad_high:
            return state("SYM102", before=self.pad_low, after=self.pad_high, square=square)
        reach = self.size + self.pad_low + self.pad_high - self.dilation * (self.kernel - 1) - 1
        window = self.dilation * (self.kernel - 1) + 1
        # The sizes next to this one at which the last window ends at the border.
        smaller, larger = self.size - self.rest, self.size - self.rest + self.stride
        return state(
            "SYM101",
            stride=self.stride,
            square=square,
            size=self.size,
            padding=self.pad_low + self.pad_high,
            window=window,
            reach=reach,
            sizes=[smaller, larger],
        )


def _spatial_split(call: Call, value: Tracked, axes: tuple[Axis, Axis], name: str, kind: str) -> list[Split]:
    chosen = []
    for generator in range(call.tracer.generators):
        options = splits(value, generator)
        if not options:
            raise NotUnderstoodError(state("SYM106", operation=kind))
        fitting = [split for split in options if _problem(split.square, axes) is None]
        if not fitting:
            cause = _problem(options[0].square, axes) or state("SYM106", operation=kind)
            record = call.record(LayerRecord(name, kind, "failed", cause=cause, matched=False))
            raise NotUnderstoodError(cause, record)
        chosen.append(fitting[0])
    return chosen


def _problem(square: Square, axes: tuple[Axis, Axis]) -> Statement | None:
    rows, columns = axes
    # A transpose exchanges rows and columns: their windows must be alike.
    if square.transpose and (rows.kernel, rows.stride, rows.dilation, rows.pad_low, rows.pad_high, rows.size) != (
        columns.kernel,
        columns.stride,
        columns.dilation,
        columns.pad_low,
        columns.pad_high,
        columns.size,
    ):
        return state("SYM103", square=square.name)
    if square.flip_rows and not rows.flips:
        return rows.problem(square.name)
    if square.flip_columns and not columns.flips:
        return columns.problem(square.name)
    return None


def assemble_image(
    shape: tuple[int, ...],
    channel: Ints,
    images: list[SignedPermutation],
    chosen: list[Split],
    interval: Interval | None = None,
) -> Tracked:
    """The value of that shape whose channels are moved by `images` and whose positions by the squares.

    `interval` has the bounds of each class of channels, which hold at every position.
    """
    height, width = (shape[2] if len(shape) == 4 else 1), shape[-1]
    area = height * width
    # Class numbers: channel class * area + position.
    cls = (channel[:, None] * area + np.arange(area)[None, :]).reshape(-1)
    result = []
    for image, split in zip(images, chosen, strict=True):
        source = split.square.apply(np.arange(area).reshape(height, width)).reshape(-1)
        target = np.empty(area, dtype=np.int64)
        # `source` lists where entries come from; its inverse is where they go.
        target[source] = np.arange(area)
        index = (image.index[:, None] * area + target[None, :]).reshape(-1)
        result.append(SignedPermutation(index, np.repeat(image.sign, area)))
    everywhere = None if interval is None else Interval(interval.size.repeat(area), interval.drift.repeat(area))
    return Tracked(shape, cls.astype(np.int64), tuple(result), interval=everywhere)


def channel_interval(value: Tracked) -> Interval | None:
    """Bounds of each class of channels: the largest over its positions."""
    if value.interval is None:
        return None
    _, first, grid = channel_classes(value)
    entries = grid[first].reshape(len(first), -1)
    return Interval(value.interval.size[entries].max(axis=1), value.interval.drift[entries].max(axis=1))


def _two(item: Any) -> tuple[int, int]:
    if isinstance(item, int):
        return item, item
    items = tuple(int(i) for i in item)
    return items if len(items) == 2 else (items[0], items[0])


def _line(item: Any) -> tuple[int, int]:
    return (0, item if isinstance(item, int) else int(next(iter(item))))


def pair_of(item: Any, flat: bool) -> tuple[int, int]:
    """A setting along height and width; along a line, of which the height is absent."""
    return _line(item) if flat else _two(item)


def _window_axes(
    value: Tracked, kernel: tuple[int, int], stride: Any, padding: Any, dilation: Any
) -> tuple[Axis, Axis]:
    flat = len(value.shape) == 3
    pair = _line if flat else _two
    s, d = pair(stride), pair(dilation)
    if padding == "same":
        total = [d[i] * (kernel[i] - 1) for i in (0, 1)]
        # torch pads the larger half at the end.
        pads = [(t // 2, t - t // 2) for t in total]
    else:
        p = (0, 0) if padding == "valid" else pair(padding)
        pads = [(p[0], p[0]), (p[1], p[1])]
    columns = Axis(value.shape[-1], kernel[1], s[1], d[1], *pads[1])
    rows = Axis(1, 1, 1, 1, 0, 0) if flat else Axis(value.shape[2], kernel[0], s[0], d[0], *pads[0])
    return rows, columns


@rule("conv2d", "conv1d")
def conv(
    call: Call,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """Cross-correlation: filters are matched as rows, moved by the channels' action and the square."""
    value = tracked(call, x)
    W = call.constant(weight)
    name, kind = call.owner(weight, bias), "Conv1d" if W.ndim == 3 else "Conv2d"
    # A line is an image of height 1.
    W = W[:, :, None, :] if W.ndim == 3 else W
    b = np.zeros(len(W)) if bias is None else call.constant(bias)
    axes = _window_axes(value, (W.shape[2], W.shape[3]), stride, padding, dilation)
    chosen = _spatial_split(call, value, axes, name, kind)
    W = _ungroup(W, groups)
    channel, first, _ = channel_classes(value)
    W = _summed_channels(W, channel, len(first))
    return match_filters(call, W, b, chosen, LayerRecord(name, kind), channel_interval(value))


@rule("aten.convolution")
def exported_convolution(
    call: Call,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    """A convolution as converted graphs write it."""
    if transposed:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="transposed=True"))
    return conv(call, x, weight, bias, stride, padding, dilation, groups)


def _ungroup(W: Floats, groups: int) -> Floats:
    if groups == 1:
        return W
    out, per_group = W.shape[0], W.shape[1]
    # Groups are blocks on the diagonal of an ordinary filter.
    full = np.zeros((out, per_group * groups, *W.shape[2:]))
    for o in range(out):
        start = (o // (out // groups)) * per_group
        full[o, start : start + per_group] = W[o]
    return full


def _summed_channels(W: Floats, channel: Ints, count: int) -> Floats:
    if count == W.shape[1]:
        return W
    result = np.zeros((W.shape[0], count, *W.shape[2:]))
    # Channels of one class have one value, so their filters add up.
    np.add.at(result.swapaxes(0, 1), channel, W.swapaxes(0, 1))
    return result


def moved_filters(W: Floats, split: Split) -> Floats:
    """Filters T with T[o', c, k] = sign[c] W[o', index[c], square(k)]: the layer after its input was moved."""
    back = W[:, split.channels.index] * split.channels.sign[None, :, None, None]
    return np.ascontiguousarray(_pulled_back(split.square, back))


def _pulled_back(square: Square, filters: Floats) -> Floats:
    """Entry q of the result is entry square(q) of the filters: the inverse of `Square.apply`."""
    moved = filters[..., ::-1] if square.flip_columns else filters
    moved = moved[..., ::-1, :] if square.flip_rows else moved
    return np.swapaxes(moved, -2, -1) if square.transpose else moved


def match_filters(
    call: Call,
    W: Floats,
    b: Floats,
    chosen: list[Split],
    record: LayerRecord,
    interval: Interval | None = None,
) -> Value:
    """The value of a convolution whose filters W, shape (out, in, K, K), are matched as rows.

    `interval` bounds each of its input channels, where that is known.

    Raises:
        NotUnderstoodError: with the record, where no permutation of the filters carries the action.
    """
    call.record(record)
    # One row for each filter, with its bias last; adding 0.0 makes zeros positive.
    rows = np.concatenate([W.reshape(len(W), -1), b[:, None]], axis=1) + 0.0
    unique, channel = distinct_rows(rows)
    first = first_places(channel, len(unique))
    images: list[SignedPermutation] = []
    judgements, gaps = [], []
    for split in chosen:
        moved = np.concatenate([moved_filters(W, split).reshape(len(W), -1), b[:, None]], axis=1)[first] + 0.0
        match = given_match(call, record, len(images), len(unique)) or match_rows(moved, unique)
        if match is None:
            raise NotUnderstoodError(state("SYM169", operation=record.kind), record)
        image = match.permutation
        expected = image.sign[:, None] * unique
        judgements.append(judge(moved[image.index], expected))
        gaps.append(np.abs(moved[image.index] - expected))
        images.append(image)
        record.certain = record.certain and bool(match.close.all())
        if not match.found:
            record.matched = False
    worst = max(judgements, key=lambda j: j.rank)
    record.take(worst, first)
    record.images = tuple(images)
    # Columns of a row by the input channel that they belong to.
    record.inputs = tuple(sorted({c // W[0, 0].size for c in worst.columns if c < W[0].size}))
    record.sizes = (W.shape[1], len(W))
    record.level = worst.level if record.matched else "failed"
    record.place = f"filter {first[worst.place[0]]}, entry {worst.place[1]}"
    if not record.matched:
        record.cause = state("SYM130", filters=True, units=list(record.units), inputs=list(record.inputs))
        raise NotUnderstoodError(record.cause, record)
    bounds = None if interval is None else _filter_bounds(unique, W.shape, images, gaps, interval)
    record.bound = None if bounds is None else float(bounds.drift.max(initial=0.0))
    result = assemble_image(call.shape, channel, images, chosen, bounds)
    squares = ", ".join(split.square.name for split in chosen)
    record.representation = f"{squares} with channels: " + "; ".join(image.text() for image in images)
    return result


def _filter_bounds(
    rows: Floats,
    shape: tuple[int, ...],
    images: list[SignedPermutation],
    gaps: list[Floats],
    interval: Interval,
) -> Interval:
    """d_next <= |R' W - W R| m + |W| d + |R' b - b| per filter, with m and d the bounds of whole channels.

    Every output entry sums a filter over one window (or, at the border and where transposed, over part of it), so what
    holds for the whole filter holds everywhere.
    """

    def times(weights: Floats, channels: Floats) -> Floats:
        per_channel = np.abs(weights[:, :-1]).reshape(len(weights), shape[1], -1).sum(axis=2)
        return np.asarray(per_channel @ channels)

    carried = times(rows, interval.drift)
    drift = np.zeros(len(rows))
    for image, gap in zip(images, gaps, strict=True):
        own_drift = np.empty(len(rows))
        own_drift[image.index] = times(gap, interval.size) + gap[:, -1]
        drift = np.maximum(drift, own_drift + carried)
    return Interval(times(rows, interval.size) + np.abs(rows[:, -1]), drift)


@rule("max_pool2d", "max_pool1d", "avg_pool2d", "avg_pool1d")
def pool(
    call: Call,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    *args: Any,
    **kwargs: Any,
) -> Value:
    """Pooling windows: channel by channel, geometry decides."""
    value = tracked(call, x)
    if kwargs.get("return_indices"):
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="return_indices=True"))
    kind = call.name
    if "avg" not in kind:
        value = unsigned(call, value)
    dilation = kwargs.get("dilation", args[0] if args and kind.startswith("max") else 1)
    kernel = _line(kernel_size) if kind.endswith("1d") else _two(kernel_size)
    axes = _window_axes(value, kernel, stride or kernel_size, padding, dilation)
    name = call.owner()
    chosen = _spatial_split(call, value, axes, name, kind)
    channel, _, _ = channel_classes(value)
    # the largest entry of a window, and its mean, move by no more than its entries do; other divisors may enlarge them
    divisor = kwargs.get("divisor_override", args[2] if "avg" in kind and len(args) > 2 else None)
    bounds = channel_interval(value) if divisor is None else None
    return assemble_image(call.shape, channel, [split.channels for split in chosen], chosen, bounds)


@rule("adaptive_avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool1d", "adaptive_max_pool1d")
def adaptive(call: Call, x: Any, output_size: Any, *args: Any, **kwargs: Any) -> Value:
    """Adaptive windows: to size 1 a reduction over all positions; otherwise flips always commute, turns on squares."""
    value = tracked(call, x)
    if "max" in call.name:
        value = unsigned(call, value)
    spatial = tuple(range(2, len(value.shape)))
    if all(call.shape[axis] == 1 for axis in spatial):
        mode = "linear" if "avg" in call.name else "plain"
        return reduce_blocks(call, value, blocks_of_axes(value.shape, spatial), call.shape, mode=mode)
    squares = [split.square for g in range(call.tracer.generators) for split in splits(value, g)[:1]]
    # A turn needs square outputs; flips commute with windows of any size.
    turned = next((square.name for square in squares if square.transpose), "")
    if len(spatial) == 2 and call.shape[2] != call.shape[3] and turned:
        raise NotUnderstoodError(state("SYM103", operation=call.name, shape=list(call.shape[2:]), square=turned))
    size = value.shape[-1]
    plain = Axis(size, 1, 1, 1, 0, 0)
    chosen = _spatial_split(call, value, (plain, plain), call.owner(), call.name)
    channel, _, _ = channel_classes(value)
    return assemble_image(call.shape, channel, [split.channels for split in chosen], chosen, channel_interval(value))
