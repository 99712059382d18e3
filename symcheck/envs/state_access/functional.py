"""Built-in state access for functional environments, which receive their state as an argument at each step.

Two classes keep that value in `env.state`: Gymnasium's `FunctionalJaxEnv`, and
`symcheck.envs.functional.FunctionalEnv`, which wraps any `FuncEnv`. States are NumPy arrays, or tuples of arrays if the
value is a tuple; setting converts them to the type that the environment uses. JAX's random key is not part of the
state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.envs.state_access.record import Origin, StateAccess

_HOSTS = frozenset(("gymnasium.envs.functional_jax_env:FunctionalJaxEnv", "symcheck.envs.functional:FunctionalEnv"))


def built_in(env: Any) -> StateAccess | None:
    """The built-in access of an unwrapped functional environment, or None for any other class.

    Args:
        env: the unwrapped environment.

    Returns:
        Access whose states are arrays, or tuples of arrays.
    """
    if not any(f"{base.__module__}:{base.__name__}" in _HOSTS for base in type(env).__mro__):
        return None
    jax = hasattr(env, "rng")

    def set_random(target: Any, key: Any) -> None:
        target.rng = key

    return StateAccess(
        set_functional,
        f"functional environments: the state of {type(env.func_env).__name__}",
        Origin.BUILT_IN,
        get=lambda target: as_arrays(target.state),
        get_random=(lambda target: target.rng) if jax else None,
        set_random=set_random if jax else None,
    )


def set_functional(env: Any, state: Any) -> None:
    """Put a functional environment into a state, converted to the type of its current state.

    Args:
        env: the unwrapped environment; it must have been reset.
        state: an array, or a tuple of them.
    """
    env.state = _cast_like(state, env.state)


def as_arrays(value: Any) -> Any:
    """Convert a state to a NumPy array, or to a tuple of arrays if it is a tuple.

    Example:
        >>> as_arrays((1, [2.0, 3.0]))
        (array(1), array([2., 3.]))
    """
    if isinstance(value, tuple):
        return tuple(as_arrays(part) for part in value)
    return np.array(value)


def _cast_like(value: Any, example: Any) -> Any:
    """Convert a value to the type, dtype and library of an example."""
    if isinstance(example, tuple):
        parts = [_cast_like(part, kept) for part, kept in zip(value, example, strict=True)]
        return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
    if type(example).__module__.startswith("jax"):
        import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]

        return jnp.asarray(np.asarray(value), dtype=example.dtype)
    if isinstance(example, np.ndarray | np.generic):
        return np.array(value, dtype=example.dtype).reshape(np.shape(example))
    return type(example)(np.asarray(value).item()) if isinstance(example, int | float) else value
