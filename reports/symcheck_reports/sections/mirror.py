"""A robot's mirror: the wrong columns of a function, the robot with its wrong joints, differences of the model."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView

_WIDTH, _HEIGHT, _MARGIN = 340.0, 300.0, 74.0


def build(run: RunView) -> Section | None:
    """The section, or None if no column is wrong and no number differs."""
    if not run.columns and not run.differences:
        return None
    title = "Column by column" if run.columns else "The model and its image"
    figures = [
        (caption, _figure(drawing, _bounds(run), f"{run.anchor}-pose{i}", caption))
        for i, (caption, drawing) in enumerate(run.poses)
    ]
    return section("mirror", f"{run.anchor}-mirror", title, run=run, figures=figures)


def _bounds(run: RunView) -> tuple[float, float, float]:
    """Left, top and scale that fit all drawings."""
    points = [(line[k], line[k + 1]) for _, drawing in run.poses for line in drawing["lines"] for k in (0, 2)]
    points += [(joint[0], joint[1]) for _, drawing in run.poses for joint in drawing["joints"]]
    across, up = [p[0] for p in points] or [0.0], [p[1] for p in points] or [0.0]
    extent = max(max(across) - min(across), 1e-6), max(max(up) - min(up), 1e-6)
    # Names are placed at the sides, facing outwards.
    scale = min((_WIDTH - 2 * _MARGIN) / extent[0], (_HEIGHT - _MARGIN) / extent[1])
    # Centre: divide the remaining space between both sides.
    left = (min(across) + max(across)) / 2 - _WIDTH / (2 * scale)
    top = (min(up) + max(up)) / 2 + _HEIGHT / (2 * scale)
    return left, top, scale


def _figure(drawing: dict[str, Any], bounds: tuple[float, float, float], name: str, caption: str) -> Markup:
    left, top, scale = bounds

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - left) * scale, (top - y) * scale

    parts = [
        svg.element("path", d=Markup(svg.path([at(x1, y1), at(x2, y2)])), class_="body rod")
        for x1, y1, x2, y2 in drawing["lines"]
    ]
    wrong = [joint for joint in drawing["joints"] if joint[3]]
    for x, y, _, marked in drawing["joints"]:
        across, down = at(x, y)
        parts.append(
            svg.element("circle", cx=across, cy=down, r=7 if marked else 4, class_="over" if marked else "solid")
        )
    parts += _labels(wrong, at)
    count = len(wrong)
    description = f"{count} {'joint is' if count == 1 else 'joints are'} marked: {', '.join(j[2] for j in wrong)}."
    return svg.figure(parts, name=name, title=caption, description=description, width=_WIDTH, height=_HEIGHT)


def _labels(wrong: list[Any], at: Any) -> list[Markup]:
    """The names of wrong joints next to the joints, moved down if two would overlap."""
    written: list[Markup] = []
    taken: list[tuple[float, float]] = []
    for x, y, label, _ in sorted(wrong, key=lambda joint: -joint[1]):
        across, down = at(x, y)
        to_the_left = across < _WIDTH / 2
        place = down + 4
        while any(abs(place - other) < 13 and side == to_the_left for other, side in taken):
            place += 13
        taken.append((place, to_the_left))
        edge = across - 11 if to_the_left else across + 11
        written.append(
            svg.element(
                "text",
                label,
                x=edge,
                y=min(place, _HEIGHT - 4),
                class_="end limit-text" if to_the_left else "limit-text",
            )
        )
    return written
