"""A counterexample as boards: rows of cells as text, with the differing moves and cells marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Array
from symcheck.engine.games.comparing import Violation
from symcheck.games.game import numbers

Drawing = dict[str, Any]
"""`rows`: strings of cells, row by row; `marks`: [row, column] of differing cells; `moved`: cells of the move."""

_SYMBOLS = {0: ".", 1: "X", -1: "O"}  # X is to move
_LARGEST = 26  # maximum number of cells per row; wider boards would be unreadable


def draw(part: str, violation: Violation) -> tuple[tuple[str, Drawing], ...]:
    """The boards of a counterexample.

    Args:
        part: the property.
        violation: a violation of the property.

    Returns:
        (caption, drawing) pairs; empty if boards are not grids.
    """
    node, k = violation.position.node, violation.image
    image = node.images[k]
    actions = node.rules.game.actions
    if part == "next_state":
        moved = None if image.moves is None or violation.action is None else int(image.moves[violation.action])
        wrong = _differing_cells(violation.expected, violation.actual)
        named: list[tuple[str, Any, list[list[int]], list[int | None]]] = [
            ("the position and the move", node.board, [], [violation.action]),
            (f"image {k} and the image of the move", image.board, [], [moved]),
            ("expected: the image of the next position", violation.expected, wrong, []),
            ("the next position of the image", violation.actual, wrong, []),
        ]
    elif part == "legal_moves":
        expected, actual = violation.expected, violation.actual
        known = isinstance(expected, list) and isinstance(actual, list)
        disagreeing = sorted(set(expected) ^ set(actual)) if known else []
        sources: list[int | None] = (
            [] if image.moves is None else [int(np.flatnonzero(image.moves == m)[0]) for m in disagreeing]
        )
        named = [
            ("the position", node.board, [], sources),
            (f"image {k}; marked: moves that disagree", image.board, _cells(disagreeing, image.board, actions), []),
        ]
    elif part == "policy_map" and violation.action is not None:
        named = [
            ("the position and the move", node.board, [], [violation.action]),
            (
                f"image {k}; marked: where pi has the move; in parentheses: where it leads",
                image.board,
                _cells(violation.actual, image.board, actions),
                violation.expected,
            ),
        ]
    else:
        named = [("the position", node.board, [], []), (f"image {k}", image.board, [], [])]
    drawings = [(caption, _draw_board(board, marks, moves, actions)) for caption, board, marks, moves in named]
    return tuple((caption, drawing) for caption, drawing in drawings if drawing is not None)


def _draw_board(board: Any, marks: Sequence[list[int]], moves: Iterable[int | None], actions: int) -> Drawing | None:
    grid = grid_of(board)
    if grid is None:
        return None
    rows = [[_symbol(value) for value in row] for row in grid.tolist()]
    return {"rows": rows, "marks": list(marks), "moved": _cells(moves, board, actions)}


def grid_of(board: Any) -> Array | None:
    """A board as a grid: each cell shows the number of the plane that is set there; layers are placed side by side.

    Example:
        >>> grid_of([[0, 1], [-1, 0]]).tolist()
        [[0, 1], [-1, 0]]
        >>> grid_of(np.eye(2).reshape(2, 1, 2)).tolist()
        [[1, 2]]
    """
    array = numbers(board)
    if array is None or array.ndim not in (1, 2, 3) or not array.size:
        return None
    if array.ndim == 1:
        array = array[None]
    if array.ndim == 3:
        planes = np.moveaxis(array, _plane_axis(array.shape), 0)
        # Stones of two players in one plane, or layers of a three-dimensional board.
        if (planes < 0).any() or ((planes != 0).sum(axis=0) > 1).any():
            array = np.concatenate(list(planes), axis=1)
        else:
            array = np.where((planes != 0).any(axis=0), (planes != 0).argmax(axis=0) + 1, 0)
    return array if max(array.shape) <= _LARGEST else None


def _plane_axis(shape: tuple[int, ...]) -> int:
    return 0 if shape[1] == shape[2] or shape[0] <= shape[2] else 2


def _symbol(value: float) -> str:
    if value in _SYMBOLS:
        return _SYMBOLS[int(value)]
    return str(int(value)) if value == int(value) else f"{value:.2g}"


def _cells(moves: Iterable[int | None], board: Any, actions: int) -> list[list[int]]:
    """The places of moves on the drawing: their cells, or the tops of their columns; empty if unknown."""
    array = numbers(board)
    if array is None or array.ndim not in (1, 2, 3):
        return []
    shape = array.shape if array.ndim < 3 else tuple(np.delete(array.shape, _plane_axis(array.shape)))
    rows, columns = (1, *shape)[-2:]
    cells = math.prod(shape)
    each = actions // cells  # moves of one cell
    found = []
    for move in moves:
        if move is None:
            continue
        if each and move < each * cells and actions - each * cells < cells:
            found.append(list(divmod(move // each, columns)))
        elif actions == columns:
            found.append([0, move])
    return [cell for cell in found if cell[0] < rows]


def _differing_cells(one: Any, other: Any) -> list[list[int]]:
    first, second = grid_of(one), grid_of(other)
    if first is None or second is None or first.shape != second.shape:
        return []
    return [[int(i), int(j)] for i, j in np.argwhere(first != second)]
