"""Any Gymnasium environment for many runs: one scalar environment each, stepped one after the other.

Slower than an environment written for many runs, and good for all others. Episodes restart within the step that ends
them, here and not in Gymnasium's vectorisers: no step is made up between two episodes, and the last observation of an
episode is kept before the environment can overwrite it.

Every episode has a seed of its own, so that an environment is where its episode's seed and actions have led it. That
is how its state is saved, whatever it consists of: it is played again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from reference_agents.environments.vector import Step
from reference_agents.randomness import Purpose, episode_seed
from symcheck.array_types import Array, Bools, Floats
from symcheck.envs.targets import resolve_environment
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
        # The stream is (purpose, index): training and each evaluation have seeds of their own.
        self._id, self._seeds, self._stream = environment_id, tuple(seeds), (purpose, index)
        self._episodes = np.zeros((len(seeds), environments), dtype=np.int64)
        # Actions of the episode under way, by (run, environment): what a resumed training plays again.
        self._played: dict[tuple[int, ...], list[Any]] = {place: [] for place in np.ndindex(self._episodes.shape)}
        self._environments = [[make(environment_id) for _ in range(environments)] for _ in seeds]
        first = self._environments[0][0]
        check_spaces(first, environment_id)
        self.observation_shape: tuple[int, ...] = first.observation_space.shape or ()
        self._space = first.action_space
        # Coordinates of a continuous action; one number stands for a discrete one.
        self.action_numbers = int(self._space.shape[0]) if isinstance(self._space, gym.spaces.Box) else 1
        self._observation = np.zeros((*self._episodes.shape, *self.observation_shape), dtype=np.float32)

    def reset(self) -> Array:
        """Start every episode afresh, from the seeds."""
        self._episodes[:] = 0
        for place in self._played:
            self._observation[place] = self._begin(place)
        return self._observation.copy()

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Step every active environment once, actions clipped to their bounds; ended episodes restart."""
        # Environments that stand still keep their last observation in both.
        final, following = self._observation.copy(), self._observation.copy()
        shape = self._episodes.shape
        reward = np.zeros(shape, dtype=np.float32)
        terminated, truncated = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for place in self._played:
            if active is not None and not active[place]:
                continue
            observation, reward[place], terminated[place], truncated[place], _ = self._act(place, actions[place])
            final[place] = observation
            # A new episode has a seed from its number, independent of how long the others last.
            if terminated[place] or truncated[place]:
                self._episodes[place] += 1
                observation = self._begin(place)
            following[place] = observation
        self._observation = following
        return Step(following.copy(), final, reward, terminated, truncated)

    def random_actions(self, uniforms: Floats) -> Array:
        """Each action with the same probability, or uniform between the bounds."""
        if isinstance(self._space, gym.spaces.Box):
            spread: Array = (self._space.low + uniforms * (self._space.high - self._space.low)).astype(np.float32)
            return spread
        count = int(self._space.n) if isinstance(self._space, gym.spaces.Discrete) else 1
        drawn: Array = (count * uniforms[..., 0]).astype(np.int64)
        return drawn

    def state(self) -> dict[str, Any]:
        """The number of every episode, and what was done in it."""
        played = [np.array(actions) for actions in self._played.values()]
        return {
            "episodes": torch.from_numpy(self._episodes.copy()),
            "lengths": [len(actions) for actions in played],
            # One flat tensor; `lengths` says where each episode's actions end.
            "actions": torch.from_numpy(np.concatenate([actions for actions in played if len(actions)]))
            if any(map(len, played))
            else torch.zeros(0),
            "observation": torch.from_numpy(self._observation.copy()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Play every unfinished episode again.

        Raises:
            TargetError: where that leads elsewhere, so that the environment depends on more than seed and actions.
        """
        self._episodes = state["episodes"].numpy()
        remaining = iter(state["actions"].numpy())
        for place, length in zip(self._played, state["lengths"], strict=True):
            observation = self._begin(place)
            for _ in range(length):
                observation = self._act(place, next(remaining))[0]
            self._observation[place] = observation
        # NaN observations equal themselves here.
        if not np.array_equal(self._observation, state["observation"].numpy(), equal_nan=True):
            raise TargetError(
                f"expected {self._id!r} to repeat itself from the same seeds and actions, but it does not.",
                where="--resume",
                remedy="Such a training cannot be resumed bit for bit: start a new one.",
            )

    def _begin(self, place: tuple[int, ...]) -> Any:
        """The first observation of the place's current episode."""
        self._played[place].clear()
        seed = episode_seed(self._seeds[place[0]], *self._stream, place[1], int(self._episodes[place]))
        return self._at(place).reset(seed=seed)[0]

    def _act(self, place: tuple[int, ...], action: Any) -> tuple[Any, ...]:
        """Step one environment, and remember what was done."""
        self._played[place].append(action)
        return self._at(place).step(self._action(action))

    def _at(self, place: tuple[int, ...]) -> gym.Env[Any, Any]:
        return self._environments[place[0]][place[1]]

    def _action(self, action: Any) -> Any:
        if isinstance(self._space, gym.spaces.Box):
            # The space's bounds: a Gaussian policy samples beyond them.
            return np.clip(action, self._space.low, self._space.high)
        return int(action)


def make(environment_id: str) -> gym.Env[Any, Any]:
    """The environment of an id.

    Raises:
        TargetError: an id that Gymnasium does not know, or whose environment cannot be built.
        MissingExtraError: an id whose extra is not installed.
    """
    try:
        return gym.make(environment_id, disable_env_checker=True)
    except gym.error.Error as error:
        if isinstance(error, gym.error.DependencyNotInstalled):
            resolve_environment(environment_id, where="--env")  # names the extra
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
