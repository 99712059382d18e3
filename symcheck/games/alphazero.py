"""Games with the interface of AlphaZero implementations: `getNextState`, `getValidMoves`, `getSymmetries` and others.

States are canonical boards: the player to move is always player 1, as in the tree search that plays the game.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.errors import TargetError, suggestion
from symcheck.games.game import (
    Outcome,
    Symmetries,
    ask_for_images,
    board_key,
    call,
    copy_of,
    in_form_of,
    is_plain,
    numbers,
)

REQUIRED = ("getInitBoard", "getActionSize", "getNextState", "getValidMoves", "getGameEnded", "getCanonicalForm")


class AlphaZeroGame:
    """One game; boards are copied before every call.

    Args:
        game: an object with the functions in `REQUIRED`.
        symmetries: the function that returns the images; None for the game's own `getSymmetries`.
        label: the name of the game in reports.
        symmetries_label: the name of the function in reports.

    Raises:
        TargetError: a function is missing, or the game cannot be started.
    """

    def __init__(self, game: Any, symmetries: Symmetries | None, label: str, symmetries_label: str) -> None:
        missing = [name for name in REQUIRED if not callable(getattr(game, name, None))]
        if missing:
            known = [name for name in dir(game) if not name.startswith("_")]
            raise TargetError(
                f"a game must have {', '.join(REQUIRED)}, but {type(game).__name__} lacks {', '.join(missing)}.",
                where="TARGET",
                remedy=suggestion(missing[0], known),
            )
        self._game = game
        own = getattr(game, "getSymmetries", None)
        if symmetries is None and not callable(own):
            raise no_symmetries(label)
        self._symmetries: Any = own if symmetries is None else symmetries
        self.label = label
        self.symmetries_label = symmetries_label
        size = call("getActionSize", game.getActionSize)
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise TargetError(f"expected getActionSize to return a whole number above 0, got {size!r}.", where="TARGET")
        self.actions = int(size)
        # For other boards it is unknown whether the compared data is complete.
        self._first = self.start()
        self.is_whole = is_plain(self._first)
        self._refuse_encoded_images()

    def start(self) -> Any:
        """The canonical board of the first player."""
        return self._canonical(call("getInitBoard", self._game.getInitBoard), 1)

    def legal(self, state: Any) -> Bools:
        """`getValidMoves` of player 1."""
        given = call("getValidMoves", self._game.getValidMoves, copy_of(state), 1)
        moves = np.asarray(given).ravel()
        if moves.shape != (self.actions,) or moves.dtype.kind not in "biuf":
            raise TargetError(
                f"getActionSize returns {self.actions}, so getValidMoves must return {self.actions} "
                f"numbers; got {moves.dtype} of shape {np.shape(given)}.",
                where="TARGET",
            )
        if np.isnan(moves).any():
            raise TargetError("expected getValidMoves to return 0 or 1 for each move, got NaN.", where="TARGET")
        return np.asarray(moves != 0)

    def step(self, state: Any, action: int) -> Any:
        """The next canonical board."""
        board, canonical = self.before_canonical(state, action)
        return canonical(board)

    def before_canonical(self, state: Any, action: int) -> tuple[Any, Callable[[Any], Any]]:
        """The next board, and its canonical form for the player who moves next."""
        given = call("getNextState", self._game.getNextState, copy_of(state), 1, action)
        try:
            board, player = given
        except (TypeError, ValueError) as error:
            raise TargetError(
                f"expected getNextState to return (board, player), got {type(given).__name__}.", where="TARGET"
            ) from error
        # A copy, because the game may make its next move on the same array.
        return copy_of(board), functools.partial(self._canonical, player=player)

    def _canonical(self, board: Any, player: Any) -> Any:
        return copy_of(call("getCanonicalForm", self._game.getCanonicalForm, copy_of(board), player))

    def outcome(self, state: Any) -> Outcome | None:
        """`getGameEnded` for player 1; None if it is 0."""
        value = call("getGameEnded", self._game.getGameEnded, copy_of(state), 1)
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise TargetError(f"expected getGameEnded to return a number, got {value!r}.", where="TARGET") from error
        if np.isnan(number):
            raise TargetError("expected getGameEnded to return a number, got NaN.", where="TARGET")
        return None if number == 0 else (number,)

    def board(self, state: Any) -> Any:
        """The state itself."""
        return state

    def state_of(self, board: Any) -> Any:
        """The board itself, in the container and dtype of the game's own boards."""
        return in_form_of(self._first, board)

    def images(self, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
        """The images of the board and the policy by `getSymmetries`."""
        return ask_for_images(self.symmetries_label, self._symmetries, board, policy)

    def key(self, state: Any) -> bytes:
        """The key of the board."""
        return self.board_key(state)

    def board_key(self, board: Any) -> bytes:
        """The numbers of a board; for an object, the string that identifies it in the tree search."""
        text = getattr(self._game, "stringRepresentation", None)
        if is_plain(board) or not callable(text):
            return board_key(board)
        return board_key(call("stringRepresentation", text, copy_of(board)))

    def _refuse_encoded_images(self) -> None:
        """Reject images whose size always differs from that of boards: they are network inputs, not boards."""
        board = numbers(self._first)
        if board is None:
            return
        images = [image for image, _ in self.images(self._first, np.full(self.actions, 1 / self.actions))]
        shapes = {np.shape(array) for array in map(numbers, images) if array is not None}
        if shapes and all((len(shape), math.prod(shape)) != (board.ndim, board.size) for shape in shapes):
            raise TargetError(
                f"{self.symmetries_label} must return boards of shape {board.shape}, but every image has "
                f"shape {', '.join(map(str, sorted(shapes)))}.",
                where="TARGET",
                remedy="Return images of the board itself. Encode them for the network afterwards.",
            )


def no_symmetries(label: str) -> TargetError:
    """The error for a game without images."""
    return TargetError(
        f"{label} claims no symmetries: it has no getSymmetries, and no function was given.",
        where="TARGET",
        remedy="Give a function (board, pi) -> [(board, pi), ...] with --symmetries file.py:function "
        "(symmetries=... in Python).",
    )
