"""Residuals divided by their tolerances, on one logarithmic scale.

Properties and coordinates differ in unit; the ratio residual / tolerance is comparable. A ratio below 1 holds, a ratio
above 1 does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.formatting import one_line, scientific
from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView

# Maximum number of rows of the figure; the table next to it has more.
MAX_ROWS = 24
MAX_TABLE_ROWS = 80
_WIDTH, _ROW, _TOP, _BOTTOM = 520.0, 40.0, 34.0, 46.0
_LEFT, _RIGHT = 46.0, 506.0
_ZERO_X = 8.0
# The range of the axis, wider than float64 precision; values beyond it are drawn at the edge.
_MOST_DECADES = 30.0


@dataclass(frozen=True)
class Row:
    """One residual.

    Attributes:
        name: property or coordinate.
        residual: the residual, in the property's own unit.
        tolerance: the tolerance, in the same unit; None if none applies.
        is_coordinate: whether the row belongs to the property above it.
        unit: the residual's norm and unit, for properties.
    """

    name: str
    residual: float | None
    tolerance: float | None
    is_coordinate: bool
    unit: str = ""

    @property
    def ratio(self) -> float | None:
        """Residual over tolerance; NaN and infinities count as infinite, None if there is no tolerance."""
        if self.residual is None or self.tolerance is None:
            return None
        if self.residual == 0:
            return 0.0
        if not math.isfinite(self.residual) or not self.tolerance > 0:
            return math.inf
        return abs(self.residual) / self.tolerance


def build(run: RunView) -> Section | None:
    """The section, or None if no property has a residual."""
    rows = [
        Row(name, _finite(residual), _finite(tolerance), index > 0, p.unit if index == 0 else "")
        for p in run.properties
        for index, (name, residual, tolerance) in enumerate(p.residuals)
    ]
    if not rows:
        return None
    drawn = _most_telling([row for row in rows if row.ratio is not None])
    listed = rows if len(rows) <= MAX_TABLE_ROWS else _most_telling(rows, MAX_TABLE_ROWS)
    table = [(r, scientific(r.residual), scientific(r.tolerance), ratio_text(r.ratio)) for r in listed]
    return section(
        "residuals",
        f"{run.anchor}-residuals",
        "Residuals against tolerance",
        figure=draw(drawn, f"{run.anchor}-residual-figure") if drawn else "",
        rows=table,
        units=_units(rows),
        left_out=len(rows) - len(listed),
        not_drawn=sum(row.ratio is not None for row in rows) - len(drawn),
    )


def _units(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Each unit with the properties that are measured in it."""
    units: dict[str, list[str]] = {}
    for row in rows:
        if row.unit:
            units.setdefault(row.unit, []).append(one_line(row.name, 80))
    return list(units.items())


def _finite(value: float | str | None) -> float | None:
    """A number from the results, where NaN may already be a string."""
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


def _most_telling(rows: Sequence[Row], limit: int = MAX_ROWS) -> list[Row]:
    """The rows with the largest ratio, in their own order."""
    if len(rows) <= limit:
        return list(rows)
    ratios = [-1.0 if row.ratio is None else row.ratio for row in rows]
    kept = sorted(range(len(rows)), key=lambda i: -ratios[i])[:limit]
    return [rows[i] for i in sorted(kept)]


def ratio_text(ratio: float | None) -> str:
    """The ratio as text: "0", "3.1e-04", "310"."""
    if ratio is None:
        return "–"
    if math.isinf(ratio):
        return "∞"
    return f"{ratio:.2g}" if 0.01 <= ratio < 1000 else scientific(ratio)


def draw(rows: Sequence[Row], name: str) -> Markup:
    """The figure: a dot per row on a logarithmic axis of residual over tolerance, with the tolerance at 1.

    Args:
        rows: rows whose ratio is not None.
        name: an id that is unique on the page.
    """
    exponents = [
        min(max(math.log10(r.ratio), -_MOST_DECADES), _MOST_DECADES) for r in rows if r.ratio and math.isfinite(r.ratio)
    ]
    low = math.floor(min([*exponents, -1.0]) - 0.3)
    high = math.ceil(max([*exponents, 0.0]) + 0.7)
    scale = svg.Scale(10.0**low, 10.0**high, _LEFT, _RIGHT, log=True)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    base = _TOP + _ROW * len(rows) + 6
    parts = _axis(scale, low, high, base)
    for index, row in enumerate(rows):
        parts += _draw_row(row, scale, _TOP + _ROW * index)
    over = [row.name for row in rows if row.ratio is not None and row.ratio > 1]
    summary = f"Above tolerance: {one_line(', '.join(over), 400)}." if over else "All are within tolerance."
    return svg.figure(
        parts,
        name=name,
        title="Residual divided by tolerance, logarithmic scale",
        description=f"{len(rows)} residuals, each divided by its own tolerance. {summary} The table has the numbers.",
        width=_WIDTH,
        height=height,
    )


def _axis(scale: svg.Scale, low: int, high: int, base: float) -> list[Markup]:
    parts = [svg.segment(_ZERO_X, base, to_x=_RIGHT, class_="axis")]
    parts.append(svg.element("text", "0", x=_ZERO_X, y=base + 19, class_="tick mid"))
    for exponent in svg.decades(low, high, 4):
        x = scale(10.0**exponent)
        label = "1" if exponent == 0 else f"1e{exponent}"
        parts.append(svg.segment(x, base, to_y=base + 4, class_="axis"))
        anchor = "end" if x > _RIGHT - 16 else "mid"
        parts.append(svg.element("text", label, x=x, y=base + 19, class_=f"tick {anchor}"))
    limit = scale(1.0)
    parts.append(svg.segment(limit, _TOP - 8, to_y=base, class_="limit"))
    anchor = "limit-text end" if limit > _WIDTH / 2 else "limit-text"
    parts.append(
        svg.element("text", "tolerance", x=limit + (-6 if limit > _WIDTH / 2 else 6), y=_TOP - 14, class_=anchor)
    )
    return parts


def _draw_row(row: Row, scale: svg.Scale, top: float) -> list[Markup]:
    ratio = row.ratio if row.ratio is not None else 0.0
    over = ratio > 1
    x = _ZERO_X if ratio == 0 else scale(min(max(ratio, scale.low), scale.high))
    y = top + 29
    label = ("· " if row.is_coordinate else "") + one_line(row.name, 34)
    shown = f"{ratio_text(row.ratio)}{' above' if over else ''}"
    return [
        svg.segment(_ZERO_X, y, to_x=_RIGHT, class_="track"),
        svg.element("text", label, x=_ZERO_X - 6, y=top + 17, class_="" if row.is_coordinate else "strong"),
        svg.element("text", shown, x=_RIGHT, y=top + 17, class_="tick end"),
        svg.segment(_ZERO_X, y, to_x=x, class_=f"stem {'over' if over else 'ok'}"),
        _dot(x, y, over),
    ]


def _dot(x: float, y: float, over: bool) -> Markup:
    """A circle within tolerance, a diamond above it, so that the mark does not depend on colour."""
    if over:
        return svg.element("path", d=f"M{svg.coordinate(x)} {svg.coordinate(y - 7)}l7 7-7 7-7-7z", class_="over")
    return svg.element("circle", cx=x, cy=y, r=5, class_="ok")
