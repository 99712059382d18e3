"""Gymnasium's wrappers that leave what an environment does as it is, by the place where they are defined.

A subclass, or a class of the same name from elsewhere, may do anything and is none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

# Observations, actions, rewards and ends of every step pass through unchanged.
KEEPS_STEPS = frozenset(
    f"gymnasium.wrappers.common:{name}"
    for name in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics")
)
# The distribution of a step that is taken passes through; the step after an end may be a reset.
KEEPS_LAWS = KEEPS_STEPS | {"gymnasium.wrappers.common:Autoreset", "gymnasium.wrappers.rendering:RecordVideo"}


def defined_at(layer: Any) -> str:
    """Where the class of an environment or wrapper is defined, `module:name`.

    Example:
        >>> defined_at(gym.make("CartPole-v1").unwrapped)
        'gymnasium.envs.classic_control.cartpole:CartPoleEnv'
    """
    return f"{type(layer).__module__}:{type(layer).__qualname__}"


def wrappers(env: gym.Env[Any, Any]) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of a stack, from the outermost on.

    Example:
        >>> [type(layer).__name__ for layer in wrappers(gym.make("CartPole-v1"))]
        ['TimeLimit', 'OrderEnforcing', 'PassiveEnvChecker']
    """
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        yield layer
        layer = layer.env
