"""The interface of games from all libraries that the engine uses.

A *state* belongs to the game; a *board* is an array of numbers, of any shape, to which images apply. If the board is
the whole state (AlphaZero's canonical form), an image is itself a state. Otherwise the image of a state is reached by
playing the images of the moves from the start.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from symcheck.array_types import Array, Bools, Floats
from symcheck.errors import TargetError, described

Outcome = tuple[float, ...]
Symmetries = Callable[[Any, Any], Iterable[tuple[Any, Any]]]
_EXACT = 2**53  # integers up to this have distinct float64 representations


class Game(Protocol):
    """A deterministic game of perfect information, with the images of its positions.

    Attributes:
        label: the name in reports.
        actions: length of the policy vector.
        is_whole: whether a board determines the rest of the game, so that equal boards are equal states.
        symmetries_label: the name in reports of the function that returns the images.
    """

    label: str
    actions: int
    is_whole: bool
    symmetries_label: str

    def start(self) -> Any:
        """The state in which games begin."""

    def legal(self, state: Any) -> Bools:
        """Which actions are legal, (actions,)."""

    def step(self, state: Any, action: int) -> Any:
        """The next state, from the view of the player to move in it."""

    def outcome(self, state: Any) -> Outcome | None:
        """The result, from the view of the player to move; None while the game continues."""

    def board(self, state: Any) -> Any:
        """The board of a state."""

    def state_of(self, board: Any) -> Any:
        """The state with this board; None if boards cannot be set."""

    def images(self, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
        """All images of a board and a policy vector, as the user's function lists them."""

    def key(self, state: Any) -> bytes:
        """Equal states have equal keys."""

    def board_key(self, board: Any) -> bytes:
        """Equal boards have equal keys."""

    def before_canonical(self, state: Any, action: int) -> tuple[Any, Callable[[Any], Any]] | None:
        """The next board before its canonical form, and that form; None if the game has none."""


def numbers(board: Any) -> Array | None:
    """A board as an array of numbers; None if it is not numeric.

    Example:
        >>> numbers([[0, 1], [1, 0]]).shape, numbers({"a": 1}) is None
        ((2, 2), True)
    """
    try:
        array = np.asarray(board)
    except (TypeError, ValueError):  # rows of different lengths
        return None
    return array if array.dtype.kind in "biuf" and array.ndim else None


def board_key(board: Any) -> bytes:
    """A key of a board, independent of number types, the order of a mapping and the memory layout.

    Example:
        >>> board_key(np.array([[0, 1]], dtype=np.int8)) == board_key([[-0.0, 1.0]])
        True
        >>> board_key([[0, 1]]) == board_key([[0], [1]])
        False
        >>> board_key({"a": 1, "b": 0}) == board_key({"b": 0.0, "a": True})
        True
    """
    # As in Python's comparisons: equal numbers have the same key, whatever their types.
    if isinstance(board, int | np.integer | np.bool_):
        return b"%d" % int(board)
    if isinstance(board, float | np.floating):
        number = float(board)
        return b"%d" % int(number) if number.is_integer() else repr(number).encode()
    if isinstance(board, Mapping):
        pairs = sorted(board_key(key) + b":" + board_key(value) for key, value in board.items())
        return b"{" + b",".join(pairs) + b"}"
    array = numbers(board)
    if array is not None:
        return repr(array.shape).encode() + _entries(array)
    if isinstance(board, set | frozenset):
        return b"<" + b",".join(sorted(map(board_key, board))) + b">"
    if isinstance(board, list | tuple | np.ndarray):
        return b"(" + b",".join(map(board_key, board)) + b")"
    if isinstance(board, str | bytes) or board is None:
        return repr(board).encode()
    if dataclasses.is_dataclass(board):
        compared = [(item.name, getattr(board, item.name)) for item in dataclasses.fields(board) if item.compare]
        return type(board).__name__.encode() + board_key(dict(compared))
    return type(board).__name__.encode() + board_key(getattr(board, "__dict__", None) or pickle.dumps(board))


def is_plain(board: Any) -> bool:
    """Whether a board consists of numbers and text in containers, all of which are part of its key.

    Example:
        >>> is_plain(({"a": [[0, 1]]}, 3)), is_plain(object())
        (True, False)
    """
    if numbers(board) is not None or board is None or isinstance(board, bool | int | float | str | bytes | np.generic):
        return True
    if isinstance(board, Mapping):
        return all(is_plain(item) for pair in board.items() for item in pair)
    return isinstance(board, list | tuple | set | frozenset | np.ndarray) and all(map(is_plain, board))


def _entries(array: Array) -> bytes:
    """The numbers as bytes; negated zeros become zeros."""
    if array.dtype.kind == "O" or (array.dtype.kind in "iu" and array.itemsize == 8 and _exceeds_doubles(array)):
        return repr(array.ravel().tolist()).encode()  # bit boards, which float64 would merge
    return (array.astype(np.float64) + 0.0).tobytes()


def _exceeds_doubles(array: Array) -> bool:
    return bool(array.size) and (int(array.max()) > _EXACT or int(array.min()) < -_EXACT)


def in_form_of(board: Any, image: Any) -> Any:
    """An image in the container and dtype of a board, for games that call the board's methods, if no number changes.

    Example:
        >>> in_form_of(np.zeros((1, 2), dtype=np.int8), [[0.0, 1.0]])
        array([[0, 1]], dtype=int8)
        >>> in_form_of([[0, 0]], np.array([[0, 1]]))
        [[0, 1]]
    """
    if type(board) is type(image) and getattr(board, "dtype", None) == getattr(image, "dtype", None):
        return image
    array = numbers(image)
    if array is None or numbers(board) is None:
        return image
    if isinstance(board, np.ndarray):
        cast = array.astype(board.dtype)
        return cast if board_key(cast) == board_key(array) else array
    return _nest(array.tolist(), board)


def _nest(values: Any, board: Any) -> Any:
    """Nested lists in the containers of a board."""
    if not isinstance(values, list) or not isinstance(board, list | tuple):
        return values
    inner = board[0] if len(board) else None
    return type(board)(_nest(item, inner) for item in values)


def copy_of(board: Any) -> Any:
    """A copy of a board that may be modified."""
    return board.copy() if isinstance(board, np.ndarray) else copy.deepcopy(board)


def call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a game; an error names the function.

    Raises:
        TargetError: the function raised an error.
    """
    try:
        return function(*arguments)
    except Exception as error:
        raise TargetError(f"{name} raised {described(error)}.", where="TARGET") from error


def ask_for_images(name: str, function: Symmetries, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
    """The images that a function returns, as pairs of a board and a flat policy.

    Args:
        name: the name of the function, for messages.
        function: (board, pi) -> [(board, pi), ...], or a generator of the pairs.
        board: the function receives a copy.
        policy: passed as a list, or as an array if the function needs one.

    Raises:
        TargetError: the function raised an error, or it returns no pairs.
    """

    def ask(pi: Any) -> list[tuple[Any, Floats]]:
        # Copies, because the function may write its next images into the same arrays.
        return [
            (copy_of(image), np.array(moved, dtype=np.float64).ravel()) for image, moved in function(copy_of(board), pi)
        ]

    try:
        pairs = ask(policy.tolist())
    except Exception as error:
        try:
            pairs = ask(policy.copy())
        except Exception:
            raise TargetError(
                f"{name} must return a list of (board, policy), but raised {described(error)}.",
                where="TARGET",
            ) from error
    if not pairs:
        raise TargetError(f"{name} must return at least one image, but returned none.", where="TARGET")
    return pairs
