"""Games of OpenSpiel: deterministic ones of perfect information, their observation tensors as boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.array_types import Bools
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.games.game import Outcome, call
from symcheck.games.played import LibraryRules


def load(name: str) -> Any:
    """An OpenSpiel game by its name.

    Raises:
        MissingExtraError: OpenSpiel is not installed.
        TargetError: the library has no such game.
    """
    try:
        import pyspiel
    except ImportError as error:
        raise MissingExtraError("games", needed_for=f"the OpenSpiel game {name!r}") from error
    try:
        return pyspiel.load_game(name)
    except Exception as error:  # pyspiel's own exception, or RuntimeError in older versions
        text = described(error)
        raise TargetError(
            f"OpenSpiel has no game {name!r}: {text[:200]}.",
            where="TARGET",
            remedy="Name one of pyspiel.registered_names(), with parameters in brackets: hex(board_size=4).",
        ) from error


def rules_of(game: Any, label: str) -> LibraryRules:
    """The rules of one game; a board is the observation tensor of the player to move, in the game's own shape.

    Args:
        game: a `pyspiel.Game`.
        label: the name of the game in reports.

    Raises:
        TargetError: the game has chance or hidden information, or no observations.
    """
    kind = game.get_type()
    described_kind = (kind.dynamics.name, kind.chance_mode.name, kind.information.name)
    if described_kind != ("SEQUENTIAL", "DETERMINISTIC", "PERFECT_INFORMATION"):
        raise TargetError(
            "expected a turn-based game without chance and with perfect information, got "
            f"{', '.join(described_kind).lower().replace('_', ' ')}.",
            where="TARGET",
        )
    if not kind.provides_observation_tensor:
        raise TargetError(f"{label} has no observation tensors, so there is no board to transform.", where="TARGET")
    shape = tuple(game.observation_tensor_shape())
    actions = int(game.num_distinct_actions())

    def legal(state: Any) -> Bools:
        mask = np.zeros(actions, dtype=bool)
        mask[state.legal_actions()] = True
        return mask

    def board(state: Any) -> Any:
        # After the end of the game there is no player to move: use the first player's observation.
        tensor = state.observation_tensor(max(0, state.current_player()))
        return np.asarray(tensor, dtype=np.float64).reshape(shape)

    return LibraryRules(
        actions,
        start=game.new_initial_state,
        legal=legal,
        step=lambda state, action: call("State.child", state.child, action),
        outcome=_returns_at_end,
        board=board,
    )


def _returns_at_end(state: Any) -> Outcome | None:
    """The returns of all players, once the game is over."""
    return tuple(map(float, state.returns())) if state.is_terminal() else None
