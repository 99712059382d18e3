"""Library games, whose boards cannot be set: images are reached by playing the images of the moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from symcheck.array_types import Bools, Floats
from symcheck.games.alphazero import no_symmetries
from symcheck.games.game import Outcome, Symmetries, ask_for_images, board_key


@dataclass(frozen=True)
class LibraryRules:
    """The rules of a library's game, as functions of its own states.

    Attributes:
        actions: length of the policy vector.
        start: () -> the initial state, the same each time.
        legal: state -> which actions are legal, (actions,).
        step: (state, action) -> the next state; the given one is not modified.
        outcome: state -> the result of all players; None while the game continues.
        board: state -> the observation of the player to move.
    """

    actions: int
    start: Callable[[], Any]
    legal: Callable[[Any], Bools]
    step: Callable[[Any, int], Any]
    outcome: Callable[[Any], Outcome | None]
    board: Callable[[Any], Any]


class PlayedGame:
    """A game of a library, with a function for its images from the user.

    Args:
        rules: the rules of the game.
        symmetries: (board, pi) -> [(board, pi), ...], where a board is an observation.
        label: the name of the game in reports.
        symmetries_label: the name of the function in reports.

    Raises:
        TargetError: no function was given.
    """

    is_whole = False

    def __init__(self, rules: LibraryRules, symmetries: Symmetries | None, label: str, symmetries_label: str) -> None:
        if symmetries is None:
            raise no_symmetries(label)
        self._symmetries = symmetries
        self.label = label
        self.symmetries_label = symmetries_label
        self.actions = rules.actions
        self.start = rules.start
        self.legal = rules.legal
        self.step = rules.step
        self.outcome = rules.outcome
        self.board = rules.board

    def state_of(self, board: Any) -> Any:
        """Always None: an observation is not a state."""
        return None

    def before_canonical(self, state: Any, action: int) -> tuple[Any, Callable[[Any], Any]] | None:
        """Always None: the libraries have no canonical form."""
        return None

    def images(self, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
        """The images of the board and the policy by the user's function."""
        return ask_for_images(self.symmetries_label, self._symmetries, board, policy)

    def key(self, state: Any) -> bytes:
        """The key of the board."""
        return board_key(self.board(state))

    def board_key(self, board: Any) -> bytes:
        """The key of an observation."""
        return board_key(board)
