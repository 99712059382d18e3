"""Writes SVG: elements, a framed figure with title and description, linear and logarithmic scales.

Colour, stroke and font come from CSS classes of the page, so a figure adapts to light mode, dark mode and print. There
are no inline styles, because the page's content security policy would block them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from symcheck_reports.formatting import clean


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """One SVG or HTML element; children and attribute values are escaped unless they are markup already.

    Args:
        tag: the element's name.
        children: text or `Markup`.
        **attributes: values; a trailing underscore is dropped and other underscores become hyphens; None leaves the
            attribute out.

    Returns:
        The element.

    Example:
        >>> element("text", "<b>", x=1.25, text_anchor="end", class_="n")
        Markup('<text x="1.2" text-anchor="end" class="n">&lt;b&gt;</text>')
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(str(child) if isinstance(child, Markup) else str(escape(clean(child))) for child in children)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


def _attribute(value: str | float) -> str:
    return coordinate(value) if isinstance(value, int | float) else str(escape(clean(value)))


def coordinate(value: float) -> str:
    """A length in user units, to a tenth.

    Example:
        >>> coordinate(3.0), coordinate(0.26)
        ('3', '0.3')
    """
    return f"{value:.1f}".removesuffix(".0").replace("-0.0", "0")


def segment(x: float, y: float, *, to_x: float | None = None, to_y: float | None = None, class_: str) -> Markup:
    """A straight line from (x, y), across to `to_x` or down to `to_y`.

    Example:
        >>> segment(1, 2, to_x=30, class_="axis")
        Markup('<path d="M1 2H30" class="axis"></path>')
    """
    end = f"H{coordinate(to_x)}" if to_x is not None else f"V{coordinate(to_y if to_y is not None else y)}"
    return element("path", d=Markup(f"M{coordinate(x)} {coordinate(y)}{end}"), class_=class_)


def figure(
    children: Iterable[str],
    *,
    name: str,
    title: str,
    description: str,
    width: float,
    height: float,
    pixels: float | None = None,
) -> Markup:
    """An `svg` element that scales with its column and has an accessible name and description.

    Args:
        children: the drawing, in user units.
        name: an id that is unique on the page.
        title: the accessible name.
        description: the accessible description, one or two sentences.
        width: the width, in user units.
        height: the height, in user units.
        pixels: pixels per user unit, for a figure of fixed size; None fits it to its column.
    """
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *children,
        viewBox=Markup(f"0 0 {coordinate(width)} {coordinate(height)}"),
        width=None if pixels is None else pixels * width,
        height=None if pixels is None else pixels * height,
        class_="figure" if pixels is None else "fixed",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


@dataclass(frozen=True)
class Scale:
    """A map from data to user units, linear or by decades.

    Attributes:
        low: the data value at `start`.
        high: the data value at `end`.
        start: the position of `low`, in user units.
        end: the position of `high`, in user units.
        log: whether the scale is logarithmic.

    Example:
        >>> Scale(1, 100, 0, 200, log=True)(10)
        100.0
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of `value`; values outside the range are drawn at the edge."""
        low, high, at = (
            (math.log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        share = 0.5 if high == low else (at - low) / (high - low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def ticks(low: float, high: float, target: int = 5) -> list[float]:
    """Round values between `low` and `high`, about `target` of them.

    Example:
        >>> ticks(0, 500)
        [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / max(target, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def decades(low: int, high: int, target: int = 5) -> list[int]:
    """Exponents between `low` and `high` to label, at most about `target` of them, including zero if it is inside.

    Example:
        >>> decades(-9, 3)
        [-9, -6, -3, 0, 3]
    """
    step = max(1, math.ceil((high - low) / target))
    return [exponent for exponent in range(low, high + 1) if exponent % step == 0]


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` attribute of a polyline, in moves relative to the last point (shorter than absolute ones).

    Example:
        >>> path([(0, 0), (10, 5.25), (20, 0)])
        'M0 0l10 5.2 10-5.2'
    """
    if not points:
        return ""
    at_x, at_y = round(points[0][0], 1), round(points[0][1], 1)
    written = [f"M{coordinate(at_x)} {coordinate(at_y)}"]
    for x, y in points[1:]:
        step_x, step_y = round(round(x, 1) - at_x, 1), round(round(y, 1) - at_y, 1)
        second = coordinate(step_y)
        written.append(f"{coordinate(step_x)}{'' if second.startswith('-') else ' '}{second}")
        at_x, at_y = round(at_x + step_x, 1), round(at_y + step_y, 1)
    moves = " ".join(written[1:])
    return written[0] + (f"l{moves}" if moves else "") + ("z" if closed else "")
