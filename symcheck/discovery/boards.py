"""Boards: maps of a vector of cells that the table of effects cannot tell from others, as rules span several cells.

A single nudge says little about a game: in tic-tac-toe every cell acts alike until two stand in a row. Where states are
whole numbers, the vector is read as a board of every shape that fits, and the maps of a board are tried by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from gymnasium import spaces

from symcheck.discovery.blocks import layout_of, picture_elements, turn_picture
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap

_FEWEST_CELLS = 4
_MOST_CELLS = 128
_MOST_SHAPES = 6


def board_maps(lab: Laboratory) -> Iterator[tuple[str, SignedMap]]:
    """The maps of boards that the states may be.

    Args:
        lab: the environment.

    Yields:
        (form of maps, map of states): turns and reflections, then shifts of a torus by one cell.
    """
    if not lab.is_whole or not _FEWEST_CELLS <= lab.dim <= _MOST_CELLS:
        return
    for shape in _list_shapes(lab):
        space = spaces.Box(0, 1, shape)
        size = " x ".join(map(str, shape))
        for name in picture_elements(space)[1:]:
            yield f"rotations and reflections of a board of {size}", SignedMap.of(turn_picture(name, shape, "first"))
        for axis in (0, 1):
            if shape[axis] > 2:
                yield f"shifts of a torus of {size}", shift(shape, axis)


def _list_shapes(lab: Laboratory) -> list[tuple[int, int]]:
    """The board that is shown, else all that have so many cells, squarest first."""
    shown = lab.observation_space.shape or ()
    if lab.shows_state and layout_of(lab.observation_space) is not None and len(shown) == 2:
        return [(shown[0], shown[1])]
    heights = [h for h in range(1, lab.dim) if lab.dim % h == 0]
    shapes = [(h, lab.dim // h) for h in heights]
    return sorted(shapes, key=lambda shape: abs(shape[0] - shape[1]))[:_MOST_SHAPES]


def shift(shape: tuple[int, int], axis: int) -> SignedMap:
    """Every cell of a torus moved on by one along an axis.

    Example:
        >>> shift((1, 3), 1).index
        (1, 2, 0)
    """
    cells = np.arange(shape[0] * shape[1]).reshape(shape)
    return SignedMap.of(np.roll(cells, -1, axis=axis).reshape(-1))
