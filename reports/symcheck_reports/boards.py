"""Draws boards of games: as text for terminals and Markdown, as SVG for pages.

A drawing is a mapping with `rows` (strings of cells), `marks` (cells that disagree) and `moved` (cells of the move).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.formatting import one_line

_CELL, _MARGIN = 30.0, 6.0
_EMPTY = "."


def is_board(picture: Any) -> bool:
    """Whether a picture of a counterexample is a board.

    Example:
        >>> is_board({"rows": [["."]], "marks": [], "moved": []}), is_board("data:image/png;base64,")
        (True, False)
    """
    return isinstance(picture, Mapping) and "rows" in picture


def text_lines(pictures: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Boards as (label, text) lines: cells that disagree in brackets, those of the move in parentheses.

    Example:
        >>> text_lines([("image 1", {"rows": [["X", "."]], "marks": [[0, 1]], "moved": []})])
        [('board', 'image 1'), ('', '   X [.]')]
    """
    lines = []
    for caption, drawing in pictures:
        if not is_board(drawing):
            continue
        lines.append(("board", one_line(caption, 160)))
        width = max((len(cell) for row in drawing["rows"] for cell in row), default=1)
        for i, row in enumerate(drawing["rows"]):
            cells = [_bracket_cell(drawing, i, j, one_line(cell, 12).rjust(width)) for j, cell in enumerate(row)]
            lines.append(("", f"  {''.join(cells)}".rstrip()))
    return lines


def _bracket_cell(drawing: Mapping[str, Any], i: int, j: int, cell: str) -> str:
    if [i, j] in drawing["marks"]:
        return f"[{cell}]"
    return f"({cell})" if [i, j] in drawing["moved"] else f" {cell} "


def figure(drawing: Mapping[str, Any], name: str, caption: str) -> Markup:
    """A board as SVG: stones as discs, other cells as text, marked cells framed.

    Args:
        drawing: the board.
        name: the figure's id.
        caption: its title.
    """
    rows = drawing["rows"]
    across, down = max((len(row) for row in rows), default=1), len(rows)
    parts = []
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            x, y = _MARGIN + j * _CELL, _MARGIN + i * _CELL
            parts.append(svg.element("path", d=Markup(_square(x, y)), class_="grid"))
            parts += _stone(cell, x + _CELL / 2, y + _CELL / 2)
    for kind, classes in (("moved", "push"), ("marks", "limit")):
        for i, j in drawing[kind]:
            inset = 2.5
            square = _square(_MARGIN + j * _CELL + inset, _MARGIN + i * _CELL + inset, _CELL - 2 * inset)
            parts.append(svg.element("path", d=Markup(square), class_=classes))
    marked = ", ".join(f"row {i + 1} column {j + 1}" for i, j in drawing["marks"])
    written = "; ".join(" ".join(one_line(cell, 12) for cell in row) for row in rows)
    return svg.figure(
        parts,
        name=name,
        title=caption,
        description=f"Rows: {written}." + (f" Marked: {marked}." if marked else ""),
        width=across * _CELL + 2 * _MARGIN,
        height=down * _CELL + 2 * _MARGIN,
    )


def _square(x: float, y: float, side: float = _CELL) -> str:
    return svg.path([(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)])


def _stone(cell: str, x: float, y: float) -> list[Markup]:
    if cell == _EMPTY:
        return []
    if cell == "X":
        return [svg.element("circle", cx=x, cy=y, r=10, class_="solid")]
    if cell == "O":
        return [svg.element("circle", cx=x, cy=y, r=9, class_="body")]
    return [svg.element("text", cell, x=x, y=y + 4.5, class_="mid")]
