"""Gymnasium's transition tables, `P[s][a] = [(probability, next state, reward, terminated), ...]`, through wrappers.

If a wrapper changes rewards or observations, the table no longer describes the environment. Only wrappers that change
neither are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from symcheck.envs.transparent import KEEPS_LAWS, defined_at, wrappers

Table = Mapping[int, Mapping[int, list[tuple[float, int, float, bool]]]]


def opaque_wrapper(env: gym.Env[Any, Any]) -> str | None:
    """The name of the outermost wrapper that may invalidate the table; None if there is none.

    Args:
        env: the environment with the user's wrappers.

    Example:
        >>> opaque_wrapper(gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), float))
        'TransformReward'
    """
    return next((type(layer).__name__ for layer in wrappers(env) if defined_at(layer) not in KEEPS_LAWS), None)


def table_of(env: gym.Env[Any, Any]) -> Table | None:
    """The table `P` of an environment with states and actions in `Discrete` spaces; None for other environments.

    Args:
        env: the environment with the user's wrappers.

    Example:
        >>> table = table_of(gym.make("FrozenLake-v1"))
        >>> table is not None and len(table)
        16
    """
    # Toy-text environments call their table `P`; it belongs to the innermost environment.
    table = getattr(env.unwrapped, "P", None)
    discrete = isinstance(env.observation_space, gym.spaces.Discrete)
    discrete = discrete and isinstance(env.action_space, gym.spaces.Discrete)
    # An environment may have an attribute P of another kind.
    known = isinstance(table, Mapping) and len(table) > 0 and opaque_wrapper(env) is None
    return table if known and discrete else None
