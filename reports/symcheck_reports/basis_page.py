"""The page of `symcheck basis`: the number of free weights in each layer, and pictures of the filters.

Basis matrices are drawn as Hinton diagrams: one square per weight, whose side grows with the weight's size. Squares of
positive weights are filled, those of negative weights hollow, so the sign does not depend on colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.basis_model import BasisLayer, BasisModel
from symcheck_reports.formatting import count, one_line, plural
from symcheck_reports.templating import PageHead, Section, document, section

# Maximum number of drawn cells; a larger picture would be unreadable, and the matrices are available in Python.
MAX_CELLS = 2500
MAX_PICTURES = 12
CELL = 10.0  # user units: the side of a weight's cell


def render_basis(model: BasisModel) -> str:
    """The page.

    Args:
        model: the layers with their ranks and pictures.

    Returns:
        A complete HTML document that makes no network requests.

    Raises:
        ValueError: `model` has no layer.

    Example:
        >>> layer = BasisLayer("in -> out", "signed", "regular", (2, 4), 4, 8, 1, 2, "exact", [[[1, 0], [0, -1]]])
        >>> "4 free weights where a dense layer has 8" in render_basis(BasisModel("mirror", "C2", 2, [layer]))
        True
    """
    if not model.layers:
        raise ValueError("expected at least one layer, got none")
    head = PageHead("Intertwiner bases", _sentence(model), _empty_layers_sentence(model), facts=_facts(model))
    sections = [_layer_table(model), _filters(model), _again(model)]
    return document(head, [built for built in sections if built is not None])


def _sentence(model: BasisModel) -> str:
    first = model.layers[0]
    free = plural(first.rank, "free weight")
    name = one_line(first.name.replace("->", "→"), 60)
    return f"{one_line(model.symmetry, 80)}: {name} has {free} where a dense layer has {count(first.dense)}."


def _empty_layers_sentence(model: BasisModel) -> str:
    empty = ", ".join(layer.name.replace("->", "→") for layer in model.layers if layer.rank == 0)
    if not empty:
        return "Counts are per pair of input and output channels."
    return f"{one_line(empty, 200)} has no free weight: only the zero layer commutes with the group."


def _facts(model: BasisModel) -> list[tuple[str, str]]:
    return [("symmetry", model.symmetry), ("group", f"{model.group} (order {count(model.order)})")]


def _layer_table(model: BasisModel) -> Section:
    rows = [(layer, _sharing(layer), " × ".join(str(side) for side in layer.shape)) for layer in model.layers]
    return section("basis", "basis", "What the symmetry leaves free", rows=rows)


def _sharing(layer: BasisLayer) -> str:
    return f"{layer.dense / layer.rank:.3g}" if layer.rank else "–"


def _filters(model: BasisModel) -> Section | None:
    drawn = []
    for index, layer in enumerate(model.layers):
        pictures = [p for p in layer.pictures[:MAX_PICTURES] if p and 0 < len(p) * len(p[0]) <= MAX_CELLS]
        figures = [
            hinton(picture, f"basis-{index}-{place}", f"Basis matrix {place + 1} of {layer.name}", layer.shape[2:])
            for place, picture in enumerate(pictures)
        ]
        if figures:
            drawn.append((layer, figures))
    return section("basis_filters", "filters", "The basis, drawn", drawn=drawn) if drawn else None


def _again(model: BasisModel) -> Section | None:
    versions = ", ".join(f"{name} {version}" for name, version in model.versions)
    if not (model.command or versions):
        return None
    return section("basis_again", "again", "Run it again", command=model.command, versions=versions)


def hinton(matrix: Sequence[Sequence[float]], name: str, title: str, tile: Sequence[int] = ()) -> Markup:
    """Draw a matrix as squares: the side shows the size of the weight; filled is positive, hollow negative.

    Args:
        matrix: numbers between -1 and 1, shape (height, width); non-finite numbers are drawn as 0.
        name: an id that is unique on the page.
        title: its title.
        tile: height and width of the filters from which the matrix is laid out; lines are drawn between them.
    """
    height, width = len(matrix), len(matrix[0])
    parts, description = squares(matrix, tile)
    return svg.figure(
        parts,
        name=name,
        title=title,
        description=description,
        width=width * CELL,
        height=height * CELL,
        pixels=_cell_pixels(max(height, width)),
    )


def squares(matrix: Sequence[Sequence[float]], tile: Sequence[int] = ()) -> tuple[list[Markup], str]:
    """The frame and the squares of a matrix, in cells of `CELL` user units, with a description in one sentence.

    Args:
        matrix: numbers between -1 and 1, shape (height, width); non-finite numbers are drawn as 0.
        tile: height and width of the filters from which the matrix is laid out; lines are drawn between them.
    """
    height, width = len(matrix), len(matrix[0])
    filled: list[str] = []
    hollow: list[str] = []
    for i, row in enumerate(matrix):
        for j, weight in enumerate(row):
            if weight and math.isfinite(weight):
                (filled if weight > 0 else hollow).append(_square(i, j, min(abs(float(weight)), 1.0)))
    frame = svg.element("rect", width=width * CELL, height=height * CELL, class_="frame")
    parts = [frame, *_lines(height, width, tile), svg.element("path", d=Markup("".join(filled)), class_="plus")]
    parts.append(svg.element("path", d=Markup("".join(hollow)), class_="minus"))
    description = f"{height} by {width}: {len(filled)} positive and {len(hollow)} negative weights; the others are 0."
    return parts, description


def _cell_pixels(side: int) -> float:
    """Pixels per user unit: cells of 24 pixels for small matrices, of 14 for large ones."""
    return 2.4 if side <= 8 else 1.4


def _lines(height: int, width: int, tile: Sequence[int]) -> list[Markup]:
    """The borders between the filters of a convolution."""
    if len(tile) != 2 or 0 in tile:
        return []
    across = [svg.segment(0, y * CELL, to_x=width * CELL, class_="axis") for y in range(tile[0], height, tile[0])]
    down = [svg.segment(x * CELL, 0, to_y=height * CELL, class_="axis") for x in range(tile[1], width, tile[1])]
    return [*across, *down]


def _square(row: int, column: int, size: float) -> str:
    """A centred square whose area grows with the weight."""
    side = max(2.0, (CELL - 2.5) * math.sqrt(size))
    x, y = column * CELL + (CELL - side) / 2, row * CELL + (CELL - side) / 2
    length = svg.coordinate(side)
    return f"M{svg.coordinate(x)} {svg.coordinate(y)}h{length}v{length}h-{length}z"
