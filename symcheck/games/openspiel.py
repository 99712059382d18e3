"""Games of OpenSpiel: deterministic ones of perfect information, their observation tensors as boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.array_types import Bools
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.games.game import Outcome, Symmetries, call
from symcheck.games.played import PlayedGame


def load(name: str) -> Any:
    """An OpenSpiel game by its name.

    Raises:
        MissingExtraError: OpenSpiel is not installed.
        TargetError: it has no such game.
    """
    try:
        import pyspiel
    except ImportError as error:
        raise MissingExtraError("games", needed_for=f"the OpenSpiel game {name!r}") from error
    try:
        return pyspiel.load_game(name)
    except Exception as error:  # of pyspiel's own, and RuntimeError in older versions
        text = described(error)
        raise TargetError(
            f"OpenSpiel has no game {name!r}: {text[:200]}.",
            where="TARGET",
            remedy="Name one of pyspiel.registered_names(), with parameters in brackets: hex(board_size=4).",
        ) from error


class OpenSpielGame(PlayedGame):
    """One game.

    Args:
        game: a `pyspiel.Game`.
        symmetries: the function of the images, of observation tensors in the game's own shape.
        label: how reports call the game.
        symmetries_label: how they call the function.

    Raises:
        TargetError: the game has chance or hidden information, or no observations.
    """

    def __init__(self, game: Any, symmetries: Symmetries | None, label: str, symmetries_label: str) -> None:
        super().__init__(symmetries, label, symmetries_label)
        kind = game.get_type()
        described_kind = (kind.dynamics.name, kind.chance_mode.name, kind.information.name)
        if described_kind != ("SEQUENTIAL", "DETERMINISTIC", "PERFECT_INFORMATION"):
            raise TargetError(
                "expected a game of moves in turn, without chance and with perfect information, got "
                f"{', '.join(described_kind).lower().replace('_', ' ')}.",
                where="TARGET",
            )
        if not kind.provides_observation_tensor:
            raise TargetError(f"{label} has no observation tensors, so there is no board to move.", where="TARGET")
        self._game = game
        self._shape = tuple(game.observation_tensor_shape())
        self.actions = int(game.num_distinct_actions())

    def start(self) -> Any:
        """The initial state."""
        return self._game.new_initial_state()

    def legal(self, state: Any) -> Bools:
        """The legal actions of the player to move."""
        mask = np.zeros(self.actions, dtype=bool)
        mask[state.legal_actions()] = True
        return mask

    def step(self, state: Any, action: int) -> Any:
        """The child."""
        return call("State.child", state.child, action)

    def outcome(self, state: Any) -> Outcome | None:
        """The returns of all players, once the game is over."""
        return tuple(map(float, state.returns())) if state.is_terminal() else None

    def board(self, state: Any) -> Any:
        """The observation of the player to move, of the first player once the game is over."""
        tensor = state.observation_tensor(max(0, state.current_player()))
        return np.asarray(tensor, dtype=np.float64).reshape(self._shape)
