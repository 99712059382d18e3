"""Games of Pgx: pure functions in JAX, their observations as boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.games.game import Outcome
from symcheck.games.played import LibraryRules

_SEED = 0


def load(name: str) -> Any:
    """A Pgx game by its name.

    Raises:
        MissingExtraError: Pgx is not installed.
        TargetError: the library has no such game.
    """
    try:
        import pgx
    except ImportError as error:
        raise MissingExtraError("games", needed_for=f"the Pgx game {name!r}") from error
    try:
        return pgx.make(name)
    except Exception as error:
        raise TargetError(f"Pgx has no game {name!r}: {described(error)[:200]}.", where="TARGET") from error


def rules_of(env: Any, label: str) -> LibraryRules:
    """The rules of one game; its functions are compiled once, and the first player is always the same.

    Args:
        env: a `pgx.Env`.
        label: the name of the game in reports.

    Raises:
        MissingExtraError: JAX is not installed.
    """
    try:
        import jax
    except ImportError as error:
        raise MissingExtraError("games", needed_for=f"the Pgx game {label!r}") from error
    initial = jax.jit(env.init)(jax.random.PRNGKey(_SEED))
    return LibraryRules(
        actions=int(np.asarray(initial.legal_action_mask).size),
        start=lambda: initial,
        legal=lambda state: np.asarray(state.legal_action_mask, dtype=bool).ravel(),
        step=jax.jit(env.step),
        outcome=_rewards_at_end,
        board=lambda state: np.asarray(state.observation, dtype=np.float64),
    )


def _rewards_at_end(state: Any) -> Outcome | None:
    """The rewards of all players, once the game is over."""
    if not bool(state.terminated) and not bool(state.truncated):
        return None
    return tuple(float(reward) for reward in np.asarray(state.rewards))
