"""What the engine asks of a game, whichever library it is from.

A *state* is the game's own; a *board* is what images act on, numbers in any shape. Where a board is the whole state
(AlphaZero's canonical form), an image is a state by itself. Elsewhere the image of a state is reached by playing the
moved moves from the start.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from symcheck.array_types import Array, Bools, Floats
from symcheck.errors import TargetError, described

Outcome = tuple[float, ...]
Symmetries = Callable[[Any, list[float]], Sequence[tuple[Any, Any]]]


class Game(Protocol):
    """A deterministic game of perfect information, with the images of its positions.

    Attributes:
        label: how reports call it.
        actions: length of the policy vector.
        is_whole: whether a board determines what follows, so that equal boards are equal states.
        symmetries_label: how reports call the function of the images.
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
        """The next state, seen by the player who is to move in it."""

    def outcome(self, state: Any) -> Outcome | None:
        """The result, seen likewise; None while the game continues."""

    def board(self, state: Any) -> Any:
        """What images act on."""

    def state_of(self, board: Any) -> Any:
        """The state that a board is; None where boards cannot be set."""

    def images(self, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
        """All images of a board and a policy vector, as the user's function lists them."""

    def key(self, state: Any) -> bytes:
        """Equal states have equal keys."""

    def before_canonical(self, state: Any, action: int) -> tuple[Any, Callable[[Any], Any]] | None:
        """The next board before its canonical form, and that form; None where the game has none."""


def numbers(board: Any) -> Array | None:
    """A board as an array of numbers; None where it is none.

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
    """Equal boards have equal keys, whatever the types of their numbers.

    Example:
        >>> board_key(np.array([[0, 1]], dtype=np.int8)) == board_key([[-0.0, 1.0]])
        True
        >>> board_key([[0, 1]]) == board_key([[0], [1]])
        False
    """
    array = numbers(board)
    if array is None:
        return pickle.dumps(board)
    # Zeros that a canonical form negated are zeros.
    return repr(array.shape).encode() + (array.astype(np.float64) + 0.0).tobytes()


def copy_of(board: Any) -> Any:
    """A board that others may change."""
    return board.copy() if isinstance(board, np.ndarray) else copy.deepcopy(board)


def call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a game's function; what it raises names it.

    Raises:
        TargetError: it raised.
    """
    try:
        return function(*arguments)
    except Exception as error:
        raise TargetError(f"{name} raised {described(error)}.", where="TARGET") from error


def read_images(name: str, given: Any) -> list[tuple[Any, Floats]]:
    """What a function of images returned, as pairs of a board and a flat policy.

    Args:
        name: of the function, for messages.
        given: what it returned.

    Raises:
        TargetError: it is not a list of pairs.
    """
    try:
        pairs = [(board, np.asarray(policy, dtype=np.float64).ravel()) for board, policy in given]
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"expected {name} to return a list of (board, policy), got {type(given).__name__}: {described(error)}.",
            where="TARGET",
        ) from error
    if not pairs:
        raise TargetError(f"expected {name} to return at least one image, got none.", where="TARGET")
    return pairs
