"""Built-in state access for batches of pure JAX environments: one vector per slot, the leaves of its state."""

from __future__ import annotations

from typing import Any

from symcheck.envs.state_access.record import Origin, StateAccess

_BATCH = "symcheck.envs.jax_batch:JaxBatch"


def built_in(env: Any) -> StateAccess | None:
    """The batched access of an unwrapped batch, or None for any other environment."""
    if not any(f"{base.__module__}:{base.__name__}" == _BATCH for base in type(env).__mro__):
        return None
    return StateAccess(
        lambda target, states: target.put_states(states),
        f"{type(env.pure).__name__}: the leaves of its state",
        Origin.BUILT_IN,
        get=lambda target: target.read_states(),
        batched=True,
    )
