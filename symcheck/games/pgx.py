"""Games of Pgx: pure functions in JAX, their observations as boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.array_types import Bools
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.games.game import Outcome, Symmetries
from symcheck.games.played import PlayedGame

_SEED = 0


def make(name: str) -> Any:
    """A Pgx game by its name.

    Raises:
        MissingExtraError: Pgx is not installed.
        TargetError: it has no such game.
    """
    try:
        import pgx
    except ImportError as error:
        raise MissingExtraError("games", needed_for=f"the Pgx game {name!r}") from error
    try:
        return pgx.make(name)
    except Exception as error:
        raise TargetError(f"Pgx has no game {name!r}: {described(error)[:200]}.", where="TARGET") from error


class PgxGame(PlayedGame):
    """One game; its functions are compiled once.

    Args:
        env: a `pgx.Env`.
        symmetries: the function of the images, of observations.
        label: how reports call the game.
        symmetries_label: how they call the function.
    """

    def __init__(self, env: Any, symmetries: Symmetries | None, label: str, symmetries_label: str) -> None:
        super().__init__(symmetries, label, symmetries_label)
        try:
            import jax
        except ImportError as error:
            raise MissingExtraError("games", needed_for=f"the Pgx game {label!r}") from error
        self._start = jax.jit(env.init)(jax.random.PRNGKey(_SEED))
        self._step = jax.jit(env.step)
        self.actions = int(np.asarray(self._start.legal_action_mask).size)

    def start(self) -> Any:
        """The initial state; who is the first player is the same each time."""
        return self._start

    def legal(self, state: Any) -> Bools:
        """The mask of legal actions."""
        return np.asarray(state.legal_action_mask, dtype=bool).ravel()

    def step(self, state: Any, action: int) -> Any:
        """The next state."""
        return self._step(state, action)

    def outcome(self, state: Any) -> Outcome | None:
        """The rewards of all players, once the game is over."""
        if not bool(state.terminated) and not bool(state.truncated):
            return None
        return tuple(float(reward) for reward in np.asarray(state.rewards))

    def board(self, state: Any) -> Any:
        """The observation of the player to move."""
        return np.asarray(state.observation, dtype=np.float64)
