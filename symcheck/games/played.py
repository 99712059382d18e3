"""What games have in common whose boards cannot be set: their images are reached by playing the moved moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcheck.array_types import Floats
from symcheck.games.alphazero import no_symmetries
from symcheck.games.game import Symmetries, board_key, call, copy_of, read_images


class PlayedGame:
    """A game of a library, with a function of images that the user gives.

    Args:
        symmetries: (board, pi) -> [(board, pi), ...], where a board is an observation.
        label: how reports call the game.
        symmetries_label: how they call the function.

    Raises:
        TargetError: no function was given.
    """

    is_whole = False

    def __init__(self, symmetries: Symmetries | None, label: str, symmetries_label: str) -> None:
        if symmetries is None:
            raise no_symmetries(label)
        self._symmetries = symmetries
        self.label = label
        self.symmetries_label = symmetries_label

    def state_of(self, board: Any) -> Any:
        """None: an observation is no state."""
        return None

    def before_canonical(self, state: Any, action: int) -> tuple[Any, Callable[[Any], Any]] | None:
        """None: the libraries have no canonical form."""
        return None

    def images(self, board: Any, policy: Floats) -> list[tuple[Any, Floats]]:
        """The user's function, the policy as a list."""
        name = self.symmetries_label
        return read_images(name, call(name, self._symmetries, copy_of(board), policy.tolist()))

    def board(self, state: Any) -> Any:
        """What the player to move observes."""
        raise NotImplementedError

    def key(self, state: Any) -> bytes:
        """Of the board."""
        return board_key(self.board(state))
