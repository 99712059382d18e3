"""Image functions for common boards, for use as `--symmetries symcheck.games.boards:square`.

Each function takes (board, pi) and returns a list of (board, pi). A board is a grid or several planes of a grid, with
shape (rows, columns), (planes, rows, columns) or (rows, columns, planes). `pi` has one entry per cell, with or without
a pass as its last entry, or one entry per column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Array
from symcheck.errors import TargetError

Image = tuple[Array, list[float]]
_Move = Callable[[Array], Array]


def square(board: Any, pi: Sequence[float]) -> list[Image]:
    """The eight images of a square board under rotations and flips.

    Example:
        >>> board, pi = square([[1, 0], [0, 0]], [0.7, 0.1, 0.1, 0.1])[1]
        >>> board.tolist(), pi
        ([[0, 0], [1, 0]], [0.1, 0.1, 0.7, 0.1])
    """
    turns: list[_Move] = [_turn_by(k) for k in range(4)]
    flipped: list[_Move] = [_flipped(turn) for turn in turns]
    return _move_all(board, pi, [*turns, *flipped])


def half_turn(board: Any, pi: Sequence[float]) -> list[Image]:
    """The board and its rotation by 180 degrees, for instance for Hex.

    Example:
        >>> half_turn([[1, 0]], [0.9, 0.1])[1][1]
        [0.1, 0.9]
    """
    return _move_all(board, pi, [_turn_by(0), _turn_by(2)])


def mirror(board: Any, pi: Sequence[float]) -> list[Image]:
    """The board and its left-right mirror image; `pi` may have one entry per column.

    Example:
        >>> mirror([[1, 0, 0], [1, 0, 0]], [0.1, 0.2, 0.7])[1][1]
        [0.7, 0.2, 0.1]
    """
    return _move_all(board, pi, [_turn_by(0), np.fliplr])


def diagonals(board: Any, pi: Sequence[float]) -> list[Image]:
    """The board, its rotation by 180 degrees, and its reflections in both diagonals, for instance for Othello.

    Example:
        >>> [image.tolist() for image, _ in diagonals([[1, 0], [0, 2]], [0, 0, 0, 0])][1]
        [[2, 0], [0, 1]]
    """
    flips: list[_Move] = [np.transpose, lambda grid: np.rot90(np.transpose(grid), 2)]
    return _move_all(board, pi, [_turn_by(0), _turn_by(2), *flips])


def _turn_by(quarters: int) -> _Move:
    return lambda grid: np.rot90(grid, quarters)


def _flipped(turn: _Move) -> _Move:
    return lambda grid: np.fliplr(turn(grid))


def _move_all(board: Any, pi: Sequence[float], moves: Sequence[_Move]) -> list[Image]:
    planes, axis = _planes_of(np.asarray(board), len(pi))
    return [
        (_assemble([move(plane) for plane in planes], axis), _move_policy(pi, planes[0].shape, move)) for move in moves
    ]


def _planes_of(board: Array, entries: int) -> tuple[list[Array], int | None]:
    """The grids of a board, and the axis along which they are stacked; None if it is a single grid."""
    if board.ndim == 2:
        return [board], None
    if board.ndim != 3:
        raise TargetError(f"expected a grid, or planes of one, got shape {board.shape}.", where="board")
    # Most boards have equal numbers of rows and columns; otherwise planes come first if there are fewer of them.
    first = board.shape[1] == board.shape[2] or (board.shape[0] != board.shape[1] and board.shape[0] <= board.shape[2])
    axes = (0, 2) if first else (2, 0)
    # If only one interpretation fits the policy, use that one.
    fitting = (axis for axis in axes if _goes_with_policy(entries, tuple(np.delete(board.shape, axis))))
    axis = next(fitting, axes[0])
    return list(np.moveaxis(board, axis, 0)), axis


def _goes_with_policy(entries: int, shape: tuple[int, ...]) -> bool:
    """Whether a policy has one entry per cell, with or without a pass, or one entry per column."""
    rows, columns = shape
    return entries in (rows * columns, rows * columns + 1, columns)


def _assemble(planes: list[Array], axis: int | None) -> Array:
    return planes[0] if axis is None else np.stack(planes, axis=axis)


def _move_policy(pi: Sequence[float], shape: tuple[int, ...], move: _Move) -> list[float]:
    rows, columns = shape
    entries = np.asarray(pi, dtype=np.float64)
    cells = rows * columns
    if len(entries) == columns != cells:
        # Columns are permuted like the cells of any row.
        return [float(entry) for entry in move(np.tile(entries, (rows, 1)))[0]]
    if len(entries) not in (cells, cells + 1):
        raise TargetError(
            f"pi has {len(entries)} entries. It must have one entry for each of the {cells} cells, "
            f"optionally followed by the pass move, or one entry for each of the {columns} columns.",
            where="pi",
        )
    return [float(entry) for entry in (*move(entries[:cells].reshape(shape)).ravel(), *entries[cells:])]
