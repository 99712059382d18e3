"""The figures of a learning-curve page: medians with their bands, single runs, sensitivity to the learning rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symcheck_reports import svg
from symcheck_reports.curve_statistics import QuantileCurve
from symcheck_reports.formatting import count, number, one_line, plural

# More points than pixels are invisible: draw every k-th point and the last one.
MAX_POINTS = 240
COLOURS = 8
DASHES = 5
_WIDTH = 720.0
_HALF_WIDTH = 520.0


@dataclass(frozen=True)
class Frame:
    """The plotting area and its two scales.

    Attributes:
        x: the horizontal scale, from data to user units.
        y: the vertical scale, from data to user units.
        width: the width of the figure.
        height: the height of the figure.
    """

    x: svg.Scale
    y: svg.Scale
    width: float
    height: float


@dataclass(frozen=True)
class Drawn:
    """One network in the figures.

    Attributes:
        name: its name.
        style: the CSS classes of its colour and dash.
        curve: its quantiles.
        reached: steps at which the median reaches the threshold; infinite if it does not.
    """

    name: str
    style: str
    curve: QuantileCurve
    reached: float = math.inf


def style(index: int) -> str:
    """Colour and dash of the index-th network.

    Example:
        >>> style(0), style(1)
        ('s1 d1', 's2 d2')
    """
    return f"s{index % COLOURS + 1} d{index % DASHES + 1}"


def legend_mark(classes: str) -> Markup:
    """A short sample of a network's line."""
    line = svg.element("path", d="M1 5H34", class_=f"line {classes}")
    return svg.element("svg", line, viewBox=Markup("0 0 35 10"), aria_hidden="true")


def learning_curves(drawn: Sequence[Drawn], threshold: float | None, name: str, task: str) -> Markup:
    """Median return of each network over environment steps, with a band from the 25% to the 75% quantile.

    Args:
        drawn: the networks, at least one with a curve.
        threshold: drawn as a line; a dot marks where each median first reaches it.
        name: an id that is unique on the page.
        task: the task, for the description.
    """
    frame = _frame([d.curve for d in drawn], threshold, height=400.0)
    parts = _draw_axes(frame)
    # Draw bands below lines below marks. The parts of a network share its number, so that its legend can hide them.
    parts += [_group_of_curve(i, _band(d, frame)) for i, d in enumerate(drawn)]
    parts += _threshold(frame, threshold)
    for i, d in enumerate(drawn):
        parts.append(_group_of_curve(i, _line(d.curve.env_steps, d.curve.median, frame, f"line {d.style}")))
    if threshold is not None:
        reached = [(i, d) for i, d in enumerate(drawn) if math.isfinite(d.reached)]
        parts += [_group_of_curve(i, _reach_mark(d, frame, threshold)) for i, d in reached]
    return svg.figure(
        parts,
        name=name,
        title=f"Return over environment steps on {one_line(task, 80)}",
        description=_describe(drawn, threshold),
        width=frame.width,
        height=frame.height,
    )


def _group_of_curve(index: int, part: Markup) -> Markup:
    return svg.element("g", part, data_curve=index)


def _describe(drawn: Sequence[Drawn], threshold: float | None) -> str:
    ends = []
    for d in drawn:
        last, steps = number(float(d.curve.median[-1]), 4), count(int(d.curve.env_steps[-1]))
        reached = f", reaches {number(threshold)} at {count(int(d.reached))}" if math.isfinite(d.reached) else ""
        ends.append(f"{one_line(d.name, 60)}: median {last} at {steps} steps{reached}")
    return "; ".join(ends) + ". Bands run from the 25% to the 75% quantile over runs."


def runs(
    env_steps: Sequence[Sequence[int]],
    returns: Sequence[Sequence[float]],
    drawn: Drawn,
    frame_of: Sequence[QuantileCurve],
    threshold: float | None,
    name: str,
) -> Markup:
    """Every run of one network as a thin line, its median on top; the frame is the same for all networks.

    Args:
        env_steps: the environment steps of each run.
        returns: the returns of each run.
        drawn: the network.
        frame_of: the curves of all networks, for the scales.
        threshold: drawn as a line.
        name: an id that is unique on the page.
    """
    every = [v for run in returns for v in run if math.isfinite(v)]
    frame = _frame(frame_of, threshold, height=300.0, also=every, width=_HALF_WIDTH)
    parts = [*_draw_axes(frame), *_threshold(frame, threshold)]
    parts += [_line(s, r, frame, f"thin {drawn.style.split()[0]}") for s, r in zip(env_steps, returns, strict=True)]
    parts.append(_line(drawn.curve.env_steps, drawn.curve.median, frame, f"line {drawn.style.split()[0]}"))
    return svg.figure(
        parts,
        name=name,
        title=f"All runs of {one_line(drawn.name, 80)}",
        description=f"{plural(len(returns), 'run')} as thin lines, the median as a thick one.",
        width=frame.width,
        height=frame.height,
    )


def sensitivity(
    series: Sequence[tuple[str, str, Sequence[tuple[float, float, float, float]]]], name: str, label: str
) -> Markup:
    """A score over the learning rate on a logarithmic axis: median and 25% to 75% band of each network.

    Args:
        series: (name, CSS classes, points (rate, low, median, high) by increasing rate).
        name: an id that is unique on the page.
        label: the name of the score.
    """
    rates = [point[0] for _, _, points in series for point in points]
    scores = [value for _, _, points in series for point in points for value in point[1:]]
    low, high = _padded(min(scores), max(scores))
    x = svg.Scale(min(rates) / 1.3, max(rates) * 1.3, 66, _HALF_WIDTH - 18, log=True)
    frame = Frame(x, svg.Scale(low, high, 290, 28), _HALF_WIDTH, 344.0)
    parts = _draw_axes(
        frame, x_ticks=[(rate, f"{rate:g}") for rate in _thinned(sorted(set(rates)))], x_name="learning rate"
    )
    for _, classes, points in series:
        upper = [(frame.x(p[0]), frame.y(p[3])) for p in points]
        lower = [(frame.x(p[0]), frame.y(p[1])) for p in reversed(points)]
        parts.append(svg.element("path", d=Markup(svg.path([*upper, *lower], closed=True)), class_=f"band {classes}"))
        middle = [(frame.x(p[0]), frame.y(p[2])) for p in points]
        parts.append(svg.element("path", d=Markup(svg.path(middle)), class_=f"line {classes}"))
        parts += [svg.element("circle", cx=cx, cy=cy, r=4, class_=f"bar {classes.split()[0]}") for cx, cy in middle]
    return svg.figure(
        parts,
        name=name,
        title=f"{label} over the learning rate",
        description="One line per network, a dot per learning rate; the table has the numbers.",
        width=frame.width,
        height=frame.height,
    )


def _thinned(values: Sequence[float], most: int = 6) -> Sequence[float]:
    return values[:: math.ceil(len(values) / most)] if values else values


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return (0.0 if 0 <= low < 0.4 * high else low - margin), high + margin


def _frame(
    curves: Sequence[QuantileCurve],
    threshold: float | None,
    height: float,
    also: Sequence[float] = (),
    width: float = _WIDTH,
) -> Frame:
    values = [float(v) for c in curves for v in (*c.low, *c.high) if math.isfinite(v)]
    values += [threshold] if threshold is not None else []
    low, high = _padded(min([*values, *also], default=0.0), max([*values, *also], default=1.0))
    last = max((int(c.env_steps[-1]) for c in curves if len(c.env_steps)), default=1)
    return Frame(svg.Scale(0, last, 66, width - 18), svg.Scale(low, high, height - 54, 28), width, height)


def _draw_axes(
    frame: Frame, x_ticks: Sequence[tuple[float, str]] | None = None, x_name: str = "environment steps"
) -> list[Markup]:
    left, right, base = frame.x.start, frame.x.end, frame.y.start
    parts = []
    for value in svg.ticks(frame.y.low, frame.y.high, 6):
        y = frame.y(value)
        parts.append(svg.segment(left, y, to_x=right, class_="grid"))
        parts.append(svg.element("text", number(value), x=left - 9, y=y + 5, class_="tick end"))
    marks = x_ticks or [(v, short_steps(v)) for v in svg.ticks(frame.x.low, frame.x.high, 5)]
    for value, text in marks:
        x = frame.x(value)
        anchor = "end" if x > right - 20 else "mid"
        parts.append(svg.segment(x, base, to_y=base + 5, class_="axis"))
        parts.append(svg.element("text", text, x=min(x, right + 12), y=base + 24, class_=f"tick {anchor}"))
    parts.append(svg.segment(left, base, to_x=right, class_="axis"))
    parts.append(svg.element("text", "return", x=8, y=17, class_="tick"))
    parts.append(svg.element("text", x_name, x=right, y=base + 46, class_="tick end"))
    return parts


def short_steps(steps: float) -> str:
    """A number of steps for an axis.

    Example:
        >>> short_steps(20000), short_steps(1500000), short_steps(500)
        ('20k', '1.5M', '500')
    """
    if abs(steps) >= 1e6:
        return f"{steps / 1e6:g}M"
    return f"{steps / 1e3:g}k" if abs(steps) >= 1e3 else f"{steps:g}"


def _threshold(frame: Frame, threshold: float | None) -> list[Markup]:
    if threshold is None:
        return []
    y = frame.y(threshold)
    line = f"M{svg.coordinate(frame.x.start)} {svg.coordinate(y)}H{svg.coordinate(frame.x.end)}"
    text = f"solved: {number(threshold)}"
    right = frame.x.end
    return [
        svg.element("path", d=line, class_="limit"),
        svg.segment(right - 32, 12, to_x=right, class_="limit"),  # above the frame, outside the range of curves
        svg.element("text", text, x=right - 40, y=17, class_="limit-text end"),
    ]


def _thin_out(size: int) -> list[int]:
    step = max(1, math.ceil(size / MAX_POINTS))
    return sorted({*range(0, size, step), size - 1}) if size else []


def _points(
    steps: Sequence[int] | NDArray[np.int64], values: Sequence[float] | NDArray[np.float64], frame: Frame
) -> list[tuple[float, float]]:
    kept = [i for i in _thin_out(len(steps)) if math.isfinite(values[i])]
    return [(frame.x(float(steps[i])), frame.y(float(values[i]))) for i in kept]


def _line(
    steps: Sequence[int] | NDArray[np.int64],
    values: Sequence[float] | NDArray[np.float64],
    frame: Frame,
    classes: str,
) -> Markup:
    return svg.element("path", d=Markup(svg.path(_points(steps, values, frame))), class_=classes)


def _band(drawn: Drawn, frame: Frame) -> Markup:
    upper = _points(drawn.curve.env_steps, drawn.curve.high, frame)
    lower = _points(drawn.curve.env_steps, drawn.curve.low, frame)
    return svg.element(
        "path", d=Markup(svg.path([*upper, *reversed(lower)], closed=True)), class_=f"band {drawn.style}"
    )


def _reach_mark(drawn: Drawn, frame: Frame, threshold: float) -> Markup:
    x = frame.x(drawn.reached)
    return svg.element("circle", cx=x, cy=frame.y(threshold), r=5.5, class_=f"bar {drawn.style.split()[0]}")
