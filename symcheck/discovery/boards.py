"""Boards: maps of a vector of cells that the table of effects cannot distinguish, because rules span several cells.

A single probe gives little information about a game: in tic-tac-toe all cells have the same effect until two marks are
in a row. If states are integers, the vector is interpreted as a board, and the maps of that board are tested. The shape
of the board is that of the state or of an observed image; a board may have several channels, one for each kind of
piece, and numbers beside it. Without a known shape, every possible shape is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from symcheck.discovery.blocks import (
    Layout,
    blocks_of,
    lay_out,
    layout_of,
    picture_elements,
    sides_in,
    sides_of,
    turn_picture,
    upright,
)
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap

_FEWEST_CELLS = 4
_MOST_CELLS = 128
_MOST_SHAPES = 6


@dataclass(frozen=True)
class Board:
    """A board within a state.

    Attributes:
        shape: height and width, with the number of channels before or after them if there are several.
        layout: whether channels come before height and width, or after them.
        first: the index of its first cell in the state.
    """

    shape: tuple[int, ...]
    layout: Layout = "first"
    first: int = 0

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width."""
        return sides_in(self.shape, self.layout)

    @property
    def size(self) -> int:
        """The number of cells of all channels."""
        return int(np.prod(self.shape))

    @property
    def words(self) -> str:
        """Its size, in words."""
        height, width = self.sides
        channels = self.size // (height * width)
        return f"{height} x {width}" + (f" with {channels} channels" if channels > 1 else "")

    def lift(self, cells: list[int], dim: int) -> SignedMap:
        """A permutation of its cells as a map of the whole state; other numbers are unchanged."""
        index = np.arange(dim)
        index[self.first : self.first + self.size] = self.first + np.array(cells)
        return SignedMap.of(index)


def board_maps(lab: Laboratory) -> Iterator[tuple[str, SignedMap]]:
    """The maps of the boards that the states may represent.

    Args:
        lab: the environment.

    Yields:
        (form of maps, map of states). Rotations and reflections come first, then shifts of a torus by one cell.
    """
    if not lab.is_whole or not _FEWEST_CELLS <= lab.dim <= _MOST_CELLS:
        return
    for board in _list_boards(lab):
        for name in picture_elements(spaces.Box(0, 1, board.sides))[1:]:
            turned = board.lift(turn_picture(name, board.shape, board.layout), lab.dim)
            yield f"rotations and reflections of a board of {board.words}", turned
        for axis in (0, 1):
            if board.sides[axis] > 2:
                shifted = board.lift(shift(board.shape, axis, board.layout), lab.dim)
                yield f"shifts of a torus of {board.words}", shifted


def _list_boards(lab: Laboratory) -> list[Board]:
    """The observed board if it is the state; otherwise boards of observed shapes, then of all shapes that fit."""
    known = list(dict.fromkeys(_known_boards(lab)))
    if lab.shows_state and known:
        return known[:1]
    heights = [h for h in range(1, lab.dim) if lab.dim % h == 0]
    shapes = sorted(((h, lab.dim // h) for h in heights), key=lambda shape: abs(shape[0] - shape[1]))[:_MOST_SHAPES]
    return list(dict.fromkeys([*known, *map(Board, shapes)]))


def _known_boards(lab: Laboratory) -> Iterator[Board]:
    """Boards with the shape of the state or of an observed image, with the numbers beside it after or before it."""
    if len(lab.state_shape) > 1 and (layout := layout_of(spaces.Box(0, 1, lab.state_shape))) is not None:
        yield Board(lab.state_shape, layout)
    for block in blocks_of(lab.observation_space):
        if block.layout is None:
            continue
        if block.size == lab.dim:
            yield Board(block.space.shape or (), block.layout)
            continue
        height, width = sides_of(block.space)
        channels, beside = divmod(lab.dim, height * width)
        shape = (height, width) if channels == 1 else (channels, height, width)
        for first in dict.fromkeys((0, beside)) if channels else ():
            yield Board(shape, first=first)


def shift(shape: tuple[int, ...], axis: int, layout: Layout = "first") -> list[int]:
    """The image of every cell of a torus under a shift by one along the height (0) or the width (1).

    Example:
        >>> shift((1, 3), 1)
        [1, 2, 0]
    """
    numbers = upright(np.arange(int(np.prod(shape))).reshape(shape), layout)
    rolled = lay_out(np.roll(numbers, -1, axis=axis - 2), layout)
    return [int(i) for i in rolled.reshape(-1)]
