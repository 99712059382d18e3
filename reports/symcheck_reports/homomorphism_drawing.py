"""Drawings of a homomorphism: states coloured by block, and the abstract MDP on one state of each block.

If states are cells of a map, both drawings show the map. Up to forty states without a position are arranged around a
circle, block after block; more are laid out in rows by number. Eight hues in three strengths distinguish neighbouring
blocks; blocks are also numbered, so nothing depends on colour alone.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from symcheck_reports import svg
from symcheck_reports.formatting import count, plural
from symcheck_reports.homomorphism_model import HomomorphismModel

MOST_DRAWN = 10_000
"""Maximum number of drawn cells; more would be unreadable, and the file too large."""
MOST_ON_A_CIRCLE = 40
_MOST_LABELS = 441
_MOST_EDGES = 400
_CELL = 40.0
_HUES = 8
_STRENGTHS = (0.3, 0.6, 0.12)
_Place = tuple[float, float]


@dataclass(frozen=True)
class Pair:
    """The drawings of the original and the abstract MDP.

    Attributes:
        original: every state, coloured by block.
        abstract: one state of each block, with the transitions between them.
        caption: the caption of the original.
        abstract_caption: the caption of the abstract MDP.
    """

    original: Markup
    abstract: Markup
    caption: str
    abstract_caption: str


def draw(model: HomomorphismModel) -> Pair | None:
    """Draw both MDPs; None if there are too many states.

    Args:
        model: the page's data.
    """
    states = len(model.block)
    if not 0 < states <= MOST_DRAWN:
        return None
    if model.place is None and states <= MOST_ON_A_CIRCLE:
        return _circles(model)
    return _maps(model)


def _maps(model: HomomorphismModel) -> Pair:
    place = model.place if model.place is not None else _grid_places(len(model.block))
    height, width = max(r for r, _ in place) + 1, max(c for _, c in place) + 1
    size = (width * _CELL, height * _CELL)
    labelled = len(model.block) <= _MOST_LABELS
    cells = _painted(model, place, range(len(model.block)))
    names = [_label(place[s], str(model.block[s])) for s in range(len(model.block))] if labelled else []
    first = _representatives(model)
    ghost = _outlines(place)
    chosen = _painted(model, place, first)
    middle = {model.block[s]: _middle(place[s]) for s in first}
    kept = [_label(place[s], str(model.block[s])) for s in first] if labelled else []
    lines = _draw_edges(model.edges, middle)
    return Pair(
        _figure([ghost, *cells, *names], "original", "Original MDP", _describe_original(model), size),
        _figure([ghost, *chosen, *lines, *kept], "abstract", "Abstract MDP", _describe_abstract(model), size),
        _map_caption(model, labelled),
        "One state of each block is shown." + (_LINES if lines else ""),
    )


_LINES = (
    " Lines connect each block to the blocks to which an action leads; "
    "thick lines mark a probability of one half or more."
)


def _map_caption(model: HomomorphismModel, labelled: bool) -> str:
    what = "on its map" if model.place is not None else "in rows by number"
    signs = "number and colour show" if labelled else "colour shows"
    idle = " States in which no episode takes an action are crossed out." if any(model.idle) else ""
    return f"Every state is drawn {what}; the {signs} its block.{idle}"


def _circles(model: HomomorphismModel) -> Pair:
    order = sorted(range(len(model.block)), key=lambda s: (model.block[s], s))
    around = dict(zip(order, _ring(len(order)), strict=True))
    first = _representatives(model)
    middle = {model.block[s]: at for s, at in zip(first, _ring(len(first)), strict=True)}
    size = (2 * _RING + 2 * _CELL,) * 2
    names = model.labels or [str(s) for s in range(len(model.block))]
    lines = _draw_edges(model.edges, middle)
    dots = [_dot(model.block[s], around[s], names[s]) for s in order]
    abstract = [_dot(block, at, str(block)) for block, at in middle.items()]
    return Pair(
        _figure(
            [*_draw_edges(model.state_edges, around), *dots],
            "original",
            "Original MDP",
            _describe_original(model),
            size,
        ),
        _figure([*lines, *abstract], "abstract", "Abstract MDP", _describe_abstract(model), size),
        "Every state is shown by its name, arranged around the circle block by block; the colour shows the block.",
        "The blocks are shown by their numbers." + (_LINES if lines else ""),
    )


_RING = 150.0


def _ring(points: int) -> list[_Place]:
    angles = [2 * math.pi * k / points - math.pi / 2 for k in range(points)]
    centre = _RING + _CELL
    return [(centre + _RING * math.cos(a), centre + _RING * math.sin(a)) for a in angles]


def _grid_places(states: int) -> list[tuple[int, int]]:
    wide = max(1, math.ceil(math.sqrt(states * 1.4)))
    return [divmod(s, wide) for s in range(states)]


def _representatives(model: HomomorphismModel) -> list[int]:
    """The lowest state of each block, in the order of the blocks."""
    found: dict[int, int] = {}
    for state, block in enumerate(model.block):
        found.setdefault(block, state)
    return [found[block] for block in sorted(found)]


def _painted(model: HomomorphismModel, place: Sequence[tuple[int, int]], states: Sequence[int]) -> list[Markup]:
    """One path for the cells of each tint, and a cross over cells in which no episode acts."""
    cells: dict[int, list[str]] = defaultdict(list)
    crosses = []
    for state in states:
        row, column = place[state]
        x, y = svg.coordinate(column * _CELL), svg.coordinate(row * _CELL)
        cells[_tint(model.block[state])].append(f"M{x} {y}h{_CELL:.0f}v{_CELL:.0f}h-{_CELL:.0f}z")
        if model.idle[state]:
            crosses.append(
                f"M{x} {y}l{_CELL:.0f} {_CELL:.0f}M{x} {svg.coordinate((row + 1) * _CELL)}l{_CELL:.0f} -{_CELL:.0f}"
            )
    tinted = [_tinted("path", tint, d=Markup("".join(parts))) for tint, parts in sorted(cells.items())]
    return [*tinted, svg.element("path", d=Markup("".join(crosses)), class_="grid")] if crosses else tinted


def _outlines(place: Sequence[tuple[int, int]]) -> Markup:
    cells = [
        f"M{svg.coordinate(c * _CELL)} {svg.coordinate(r * _CELL)}h{_CELL:.0f}v{_CELL:.0f}h-{_CELL:.0f}z"
        for r, c in place
    ]
    return svg.element("path", d=Markup("".join(cells)), class_="grid")


def _tint(block: int) -> int:
    return block % (_HUES * len(_STRENGTHS))


def _tinted(tag: str, tint: int, **attributes: str | float | None) -> Markup:
    strength = f"{_STRENGTHS[tint // _HUES]:g}"
    return svg.element(tag, class_=f"bar s{tint % _HUES + 1}", fill_opacity=Markup(strength), **attributes)


def _middle(place: tuple[int, int]) -> _Place:
    return (place[1] + 0.5) * _CELL, (place[0] + 0.5) * _CELL


def _label(place: tuple[int, int], text: str) -> Markup:
    x, y = _middle(place)
    return svg.element("text", text, x=x, y=y + 5, class_="mid")


def _dot(block: int, at: _Place, text: str) -> Markup:
    shown = text if len(text) <= 8 else text[:7] + "…"
    circle = _tinted("circle", _tint(block), cx=at[0], cy=at[1], r=16.0)
    rim = svg.element("circle", cx=at[0], cy=at[1], r=16.0, class_="track")
    return Markup("").join([circle, rim, svg.element("text", shown, x=at[0], y=at[1] + 5, class_="mid")])


def _draw_edges(edges: Sequence[tuple[int, int, float]], middle: dict[int, _Place]) -> list[Markup]:
    """Lines, one for both directions of a pair; thick if the larger probability is at least one half."""
    joined: dict[tuple[int, int], float] = defaultdict(float)
    for source, target, probability in edges:
        key = (min(source, target), max(source, target))
        joined[key] = max(joined[key], probability)
    if len(joined) > _MOST_EDGES:
        return []
    drawn = {True: "", False: ""}
    for (source, target), probability in sorted(joined.items()):
        (x, y), (to_x, to_y) = middle[source], middle[target]
        line = f"M{svg.coordinate(x)} {svg.coordinate(y)}L{svg.coordinate(to_x)} {svg.coordinate(to_y)}"
        drawn[probability >= 0.5] += line
    classes = {True: "axis stem", False: "axis"}
    return [svg.element("path", d=Markup(d), class_=classes[thick]) for thick, d in drawn.items() if d]


def _figure(parts: Sequence[Markup], name: str, title: str, description: str, size: tuple[float, float]) -> Markup:
    width, height = size
    pixels = min(1.5, 460 / width)
    return svg.figure(
        parts,
        name=f"homomorphism-{name}",
        title=title,
        description=description,
        width=width,
        height=height,
        pixels=pixels,
    )


def _describe_original(model: HomomorphismModel) -> str:
    largest = max(Counter(model.block).values())
    return f"{plural(len(model.block), 'state')} in {plural(model.blocks, 'block')}; the largest has {largest}."


def _describe_abstract(model: HomomorphismModel) -> str:
    return f"{plural(model.blocks, 'abstract state')}, {count(len(model.edges))} transitions between different ones."
