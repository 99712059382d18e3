"""Every counterexample in full: input and image, expected and measured values, causes, how to reproduce it."""

from __future__ import annotations

from typing import Any

from symcheck_reports import boards, png, sketches
from symcheck_reports.templating import Section, section
from symcheck_reports.views import CounterexampleView, Picture, RunView


def build(run: RunView) -> Section | None:
    """The section, or None if there is no counterexample to show."""
    if not run.counterexamples:
        return None
    title = "Counterexample" if len(run.counterexamples) == 1 else "Counterexamples"
    shown = [
        (view, [(p.caption, picture_uri(p), p.low, p.high) for p in view.pictures], _scenes(run, view))
        for view in run.counterexamples
    ]
    return section("counterexamples", f"{run.anchor}-counterexamples", title, shown=shown)


def _scenes(run: RunView, view: CounterexampleView) -> list[sketches.Scene]:
    if view.boards:
        drawn = [
            (caption, boards.figure(drawing, f"{view.anchor}-board{i}", caption))
            for i, (caption, drawing) in enumerate(view.boards)
        ]
        return [sketches.Scene(caption, drawing) for caption, drawing in drawn]
    return sketches.scenes(run.target, view)


def picture_uri(picture: Picture) -> str:
    """The grid as a PNG in a `data:` address; several channels that are not colours are drawn side by side."""
    values, shape = picture.values, picture.shape
    if len(shape) == 3 and shape[2] == 3:
        rows = [[[_level(part, picture) for part in pixel] for pixel in row] for row in values]
        return png.data_uri(png.encode_rgb(rows))
    if len(shape) == 3 and shape[0] <= 4:
        values = [[part for channel in values for part in channel[row]] for row in range(shape[1])]
    elif len(shape) == 3:
        values = [[part for channel in range(shape[2]) for part in (pixel[channel] for pixel in row)] for row in values]
    return png.data_uri(png.encode_grey([[_level(value, picture) for value in row] for row in values]))


def _level(value: Any, picture: Picture) -> int:
    return png.brightness(value, picture.low, picture.high)
