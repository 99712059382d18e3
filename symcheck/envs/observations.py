"""Observations from an environment, for testing networks on realistic inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from symcheck.envs.seeding import reset_seed
from symcheck.errors import TargetError


def collect_observations(make: Callable[[], gym.Env[Any, Any]], count: int, seed: int) -> npt.NDArray[Any]:
    """Roll out a uniform policy and stack its observations.

    Args:
        make: builds the environment.
        count: the number of observations, at least 1.
        seed: seeds the environment and the policy.

    Returns:
        Observations, shape (count, *observation_space.shape), in the space's dtype.

    Raises:
        TargetError: observations are not arrays of one shape, so they cannot be stacked.

    Example:
        >>> collect_observations(lambda: gym.make("CartPole-v1"), 3, seed=0).shape
        (3, 4)
    """
    env = make()
    space = env.observation_space
    if not isinstance(space, gym.spaces.Box | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        raise TargetError(
            f"expected an environment with Box observations, got {space}.",
            where="--env",
            remedy="Flatten the observations with gymnasium.wrappers.FlattenObservation, or give --input-shape.",
        )
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=reset_seed(seed))
    # Copied, because environments may reuse one buffer.
    observations = [np.array(observation)]
    while len(observations) < count:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        # Only the first reset is seeded; later resets continue with the same generator.
        if terminated or truncated:
            observation, _ = env.reset()
        observations.append(np.array(observation))
    env.close()
    return np.stack(observations)


def subspaces(space: gym.Space[Any]) -> dict[Any, gym.Space[Any]] | None:
    """The sub-spaces of a Dict (by key) or Tuple (by position), or None for any other space.

    Example:
        >>> list(subspaces(gym.spaces.Dict(x=gym.spaces.Discrete(2))))
        ['x']
    """
    if isinstance(space, gym.spaces.Dict):
        return dict(space.spaces)
    if isinstance(space, gym.spaces.Tuple):
        return dict(enumerate(space.spaces))
    return None
