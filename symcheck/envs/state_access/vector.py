"""Built-in state access for Gymnasium's vector environments: one row per slot.

A `SyncVectorEnv` is set through the environments inside it; CartPole's vectorised environment has one array of states.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcheck.envs.state_access import classic_control
from symcheck.envs.state_access.record import StateAccess

_SYNC = "gymnasium.vector.sync_vector_env:SyncVectorEnv"
_CARTPOLE = "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv"


def built_in(env: Any, find: Callable[[Any], StateAccess | None]) -> StateAccess | None:
    """The built-in access of an unwrapped vector environment, or None for any other.

    Args:
        env: the unwrapped vector environment.
        find: looks up the access of the environments inside.

    Returns:
        Batched access; None if any environment inside has no access.
    """
    names = {f"{base.__module__}:{base.__qualname__}" for base in type(env).__mro__}
    if _CARTPOLE in names:
        return _cartpole(env)
    return _sync(env, find) if _SYNC in names else None


def _cartpole(env: Any) -> StateAccess:
    def set_states(target: Any, states: Any) -> None:
        # Gymnasium's batch of cart-poles has shape (4, slots); states have shape (slots, 4).
        target.state = np.array(states, dtype=np.float64).T.copy()
        target.steps[:] = 0
        target.prev_done[:] = False  # a finished slot would be reset by its next step

    return dataclasses.replace(
        classic_control.cartpole(env),
        set=set_states,
        get=lambda target: np.array(target.state, dtype=np.float64).T,
        what="CartPole, in batches",
        batched=True,
    )


def _sync(env: Any, find: Callable[[Any], StateAccess | None]) -> StateAccess | None:
    inside = [find(inner.unwrapped) for inner in env.envs]
    known = [access for access in inside if access is not None]
    # All or none: batches can be set only if every slot can be set.
    if len(known) < len(inside) or not known:
        return None
    first = known[0]

    def set_states(target: Any, states: Sequence[Any]) -> None:
        for access, inner, state in zip(known, target.envs, states, strict=True):
            access.set(inner.unwrapped, state)

    def get(target: Any) -> Any:
        states = [access.get(inner.unwrapped) for access, inner in zip(known, target.envs, strict=True) if access.get]
        # States with attached data (`CarriedState`) would lose it when stacked.
        plain = all(type(state) is np.ndarray for state in states)
        return np.stack(states) if plain else states

    return dataclasses.replace(
        first,
        set=set_states,
        get=get if all(access.get is not None for access in known) else None,
        in_slots=True,
        batched=True,
        get_random=None,
        set_random=None,
    )
