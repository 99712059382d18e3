"""Gymnasium's wrappers that do not change an environment's behaviour, identified by where they are defined.

A subclass, or a class of the same name from elsewhere, may change anything and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

# Observations, actions, rewards and terminations pass through unchanged.
KEEPS_STEPS = frozenset(
    f"gymnasium.wrappers.common:{name}"
    for name in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics")
)
# The distribution of a step passes through unchanged; the step after the end of an episode may be a reset.
KEEPS_LAWS = KEEPS_STEPS | {"gymnasium.wrappers.common:Autoreset", "gymnasium.wrappers.rendering:RecordVideo"}


def defined_at(layer: Any) -> str:
    """The place where the class of an environment or wrapper is defined, `module:name`.

    Example:
        >>> defined_at(gym.make("CartPole-v1").unwrapped)
        'gymnasium.envs.classic_control.cartpole:CartPoleEnv'
    """
    return f"{type(layer).__module__}:{type(layer).__qualname__}"


def wrappers(env: gym.Env[Any, Any]) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of a stack, outermost first.

    Example:
        >>> [type(layer).__name__ for layer in wrappers(gym.make("CartPole-v1"))]
        ['TimeLimit', 'OrderEnforcing', 'PassiveEnvChecker']
    """
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        yield layer
        layer = layer.env
