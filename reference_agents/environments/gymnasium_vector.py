"""Any Gymnasium environment for many runs: one scalar environment each, stepped one after the other.

Slower than an environment written for many runs, and good for all others. Episodes restart within the step that ends
them, here and not in Gymnasium's vectorisers: no step is made up between two episodes, and the last observation of an
episode is kept before the environment can overwrite it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from reference_agents.environments.vector import Actions, Flags, Observations, Step
from reference_agents.randomness import FloatArray, Purpose, stream_seeds
from symcheck.errors import TargetError


class GymnasiumVector:
    """All environments of all runs.

    Args:
        environment_id: as registered with Gymnasium.
        seeds: one seed per run; each environment has a stream of its own, derived from it.
        environments: environments of each run.
        purpose: which stream seeds the environments.
        index: which of several streams of that purpose.

    Raises:
        TargetError: an unknown id, or spaces other than Box observations and Box or Discrete actions.
    """

    def __init__(
        self,
        environment_id: str,
        seeds: Sequence[int],
        environments: int,
        *,
        purpose: Purpose = Purpose.ENVIRONMENT,
        index: int = 0,
    ) -> None:
        self._seeds = np.array([stream_seeds(seed, purpose, index, environments) for seed in seeds])
        self._environments = [[make(environment_id) for _ in range(environments)] for _ in seeds]
        first = self._environments[0][0]
        check_spaces(first, environment_id)
        self.observation_shape: tuple[int, ...] = first.observation_space.shape or ()
        self._space = first.action_space
        self.action_numbers = int(self._space.shape[0]) if isinstance(self._space, gym.spaces.Box) else 1
        self._observation = np.zeros((*self._seeds.shape, *self.observation_shape), dtype=np.float32)

    def reset(self) -> Observations:
        """Start every episode afresh, from the seeds."""
        for place in np.ndindex(self._seeds.shape):
            self._observation[place] = self._at(place).reset(seed=int(self._seeds[place]))[0]
        return self._observation.copy()

    def step(self, actions: Actions, *, active: Flags | None = None) -> Step:
        """Step every active environment once, actions clipped to their bounds; ended episodes restart."""
        final, following = self._observation.copy(), self._observation.copy()
        reward = np.zeros(self._seeds.shape, dtype=np.float32)
        terminated, truncated = np.zeros(self._seeds.shape, dtype=bool), np.zeros(self._seeds.shape, dtype=bool)
        for place in np.ndindex(self._seeds.shape):
            if active is not None and not active[place]:
                continue
            environment = self._at(place)
            observation, gain, terminated[place], truncated[place], _ = environment.step(self._action(actions[place]))
            final[place], reward[place] = observation, gain
            following[place] = environment.reset()[0] if terminated[place] or truncated[place] else observation
        self._observation = following
        return Step(following.copy(), final, reward, terminated, truncated)

    def random_actions(self, uniforms: FloatArray) -> Actions:
        """Each action with the same probability, or uniform between the bounds."""
        if isinstance(self._space, gym.spaces.Box):
            spread: Actions = (self._space.low + uniforms * (self._space.high - self._space.low)).astype(np.float32)
            return spread
        count = int(self._space.n) if isinstance(self._space, gym.spaces.Discrete) else 1
        drawn: Actions = (count * uniforms[..., 0]).astype(np.int64)
        return drawn

    def state(self) -> dict[str, Any]:
        """What a Gymnasium environment depends on is not known."""
        raise NotImplementedError("the state of a Gymnasium environment cannot be saved")

    def restore(self, state: dict[str, Any]) -> None:
        """What a Gymnasium environment depends on is not known."""
        raise NotImplementedError("the state of a Gymnasium environment cannot be restored")

    def _at(self, place: tuple[int, ...]) -> gym.Env[Any, Any]:
        return self._environments[place[0]][place[1]]

    def _action(self, action: Any) -> Any:
        if isinstance(self._space, gym.spaces.Box):
            return np.clip(action, self._space.low, self._space.high)
        return int(action)


def make(environment_id: str) -> gym.Env[Any, Any]:
    """The environment of an id.

    Raises:
        TargetError: an id that Gymnasium does not know, or whose environment cannot be built.
    """
    try:
        return gym.make(environment_id, disable_env_checker=True)
    except gym.error.Error as error:
        raise TargetError(
            f"expected an environment that Gymnasium can make, got {environment_id!r} ({error}).", where="--env"
        ) from error


def check_spaces(environment: gym.Env[Any, Any], environment_id: str) -> None:
    """Refuse spaces that no agent here can use.

    Raises:
        TargetError: saying which.
    """
    observation, action = environment.observation_space, environment.action_space
    bounded = isinstance(action, gym.spaces.Box) and len(action.shape) == 1 and action.is_bounded()
    if not isinstance(observation, gym.spaces.Box) or not (bounded or isinstance(action, gym.spaces.Discrete)):
        raise TargetError(
            f"expected a Box of observations, and a Discrete or a bounded vector of actions; {environment_id!r} has "
            f"{observation} and {action}.",
            where="--env",
        )
