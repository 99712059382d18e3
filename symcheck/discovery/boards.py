"""Boards: maps of a vector of cells that the table of effects cannot distinguish, because rules span several cells.

A single probe gives little information about a game: in tic-tac-toe all cells have the same effect until two marks are
in a row. If states are integers, the vector is interpreted as a board of every possible shape, and the maps of that
board are tested.
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
    """The maps of the boards that the states may represent.

    Args:
        lab: the environment.

    Yields:
        (form of maps, map of states). Rotations and reflections come first, then shifts of a torus by one cell.
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
    """The shape of the observed board; otherwise all shapes with that number of cells, the most nearly square first."""
    shown = lab.observation_space.shape or ()
    if lab.shows_state and layout_of(lab.observation_space) is not None and len(shown) == 2:
        return [(shown[0], shown[1])]
    heights = [h for h in range(1, lab.dim) if lab.dim % h == 0]
    shapes = [(h, lab.dim // h) for h in heights]
    return sorted(shapes, key=lambda shape: abs(shape[0] - shape[1]))[:_MOST_SHAPES]


def shift(shape: tuple[int, int], axis: int) -> SignedMap:
    """Shift every cell of a torus by one along an axis.

    Example:
        >>> shift((1, 3), 1).index
        (1, 2, 0)
    """
    cells = np.arange(shape[0] * shape[1]).reshape(shape)
    return SignedMap.of(np.roll(cells, -1, axis=axis).reshape(-1))
