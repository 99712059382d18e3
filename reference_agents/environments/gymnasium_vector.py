"""Any Gymnasium environment for many runs: single environments, stepped one after the other.

This is slower than an environment written for many runs, but works for all others. Episodes restart within the step
that ends them. The restart is implemented here and not by Gymnasium's vectorisers, so there is no artificial step
between two episodes, and the last observation of an episode is copied before the environment can overwrite it.

Every episode has its own seed, so the state of an environment is determined by the seed and the actions of its episode.
Its state is saved in this form and restored by replaying the episode.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from reference_agents.encoding.environment import EncodedEnvironment, encoded_environment
from reference_agents.environments.vector import Step
from reference_agents.randomness import Purpose, episode_seed
from symcheck.array_types import Array, Bools, Floats
from symcheck.errors import TargetError, described


@contextlib.contextmanager
def _one_warning() -> Iterator[None]:
    """Suppress MuJoCo's warnings about models compiled here; they were shown for the first copy."""
    mujoco = sys.modules.get("mujoco")
    replace = getattr(mujoco, "set_mju_user_warning", None)
    if mujoco is None or replace is None:
        yield
        return
    before = mujoco.get_mju_user_warning()
    replace(lambda message: None)
    try:
        yield
    finally:
        replace(before)


class GymnasiumVector:
    """All environments of all runs.

    Args:
        environment: a registered Gymnasium id, or an environment with the encoding of its spaces.
        seeds: one seed per run, from which the stream of each environment is derived.
        environments: the number of environments of each run.
        purpose: the purpose of the stream that seeds the environments.
        index: the index of the stream among those of that purpose.
        limit: the number of steps after which an episode is truncated; None for no limit.

    Raises:
        TargetError: an unknown id, or spaces that cannot be encoded.
    """

    def __init__(
        self,
        environment: str | EncodedEnvironment,
        seeds: Sequence[int],
        environments: int,
        *,
        purpose: Purpose = Purpose.ENVIRONMENT,
        index: int = 0,
        limit: int | None = None,
    ) -> None:
        # The stream is (purpose, index): training and each evaluation have separate seeds.
        self._seeds, self._stream, self._limit = tuple(seeds), (purpose, index), limit
        # Actions of registered environments are drawn in the environment's units.
        encoded = encoded_environment(environment, "", scaled=False) if isinstance(environment, str) else environment
        self._encoded = encoded
        self._episodes = np.zeros((len(seeds), environments), dtype=np.int64)
        # Actions of the current episode by (run, environment), which a resumed training replays.
        self._played: dict[tuple[int, ...], list[Any]] = {place: [] for place in np.ndindex(self._episodes.shape)}
        with _one_warning():
            self._environments = [[encoded.make() for _ in range(environments)] for _ in seeds]
        self._refuse_one_for_all()
        self.observation_shape = encoded.observation.shape
        self.action_numbers = encoded.action.action_numbers
        self._observation = np.zeros((*self._episodes.shape, *self.observation_shape), dtype=np.float32)

    def _refuse_one_for_all(self) -> None:
        """Reject a factory that returns the same object every time."""
        count = self._episodes.size
        if len({id(environment) for row in self._environments for environment in row}) < count:
            raise TargetError(
                f"{self._encoded.label} must return a new environment each time, but some of {count} "
                "calls returned the same object.",
                where="--env",
                remedy="Return a new one from the factory, or give an environment that can be copied.",
            )

    def reset(self) -> Array:
        """Start a new episode in every environment, from the seeds."""
        self._episodes[:] = 0
        for place in self._played:
            self._observation[place] = self._begin(place)
        return self._observation.copy()

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Step every active environment once, actions clipped to their bounds; ended episodes restart.

        Raises:
            TargetError: an environment raised, or returned a number that is not finite.
        """
        # Inactive environments keep their last observation in both arrays.
        final, following = self._observation.copy(), self._observation.copy()
        shape = self._episodes.shape
        reward = np.zeros(shape, dtype=np.float32)
        terminated, truncated = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for place in self._played:
            if active is not None and not active[place]:
                continue
            observation, reward[place], terminated[place], truncated[place] = self._act(place, actions[place])
            final[place] = observation
            # The seed of an episode depends on its number, not on the length of other episodes.
            if terminated[place] or truncated[place]:
                self._episodes[place] += 1
                observation = self._begin(place)
            following[place] = observation
        self._observation = following
        return Step(following.copy(), final, reward, terminated, truncated)

    def random_actions(self, uniforms: Floats) -> Array:
        """Uniformly random actions, within the bounds if there are any."""
        return self._encoded.action.random(uniforms)

    def state(self) -> dict[str, Any]:
        """The number of every episode, and its actions."""
        played = [np.array(actions) for actions in self._played.values()]
        return {
            "episodes": torch.from_numpy(self._episodes.copy()),
            "lengths": [len(actions) for actions in played],
            # One flat tensor; `lengths` gives the number of actions of each episode.
            "actions": torch.from_numpy(np.concatenate([actions for actions in played if len(actions)]))
            if any(map(len, played))
            else torch.zeros(0),
            "observation": torch.from_numpy(self._observation.copy()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replay every unfinished episode.

        Raises:
            TargetError: the replay differs, because the environment depends on more than seed and actions.
        """
        self._episodes = state["episodes"].numpy()
        remaining = iter(state["actions"].numpy())
        for place, length in zip(self._played, state["lengths"], strict=True):
            observation = self._begin(place)
            for _ in range(length):
                observation = self._act(place, next(remaining))[0]
            self._observation[place] = observation
        # NaN counts as equal to NaN.
        if not np.array_equal(self._observation, state["observation"].numpy(), equal_nan=True):
            raise TargetError(
                f"{self._encoded.label!r} does not reproduce its episodes from the same seeds and actions.",
                where="--resume",
                remedy="The training run cannot be resumed bit for bit; start a new one.",
            )

    def close(self) -> None:
        """Close every environment."""
        for environment in itertools.chain.from_iterable(self._environments):
            # Keep what was trained and played, even if the cleanup of third-party code fails.
            with contextlib.suppress(Exception):
                environment.close()

    def _begin(self, place: tuple[int, ...]) -> Array:
        """The first observation of the current episode of one environment."""
        self._played[place].clear()
        seed = episode_seed(self._seeds[place[0]], *self._stream, place[1], int(self._episodes[place]))
        answer = self._call(place, lambda: self._at(place).reset(seed=seed), "reset")
        return self._encode(place, self._parts(place, answer, "reset", "observation, info")[0])

    def _act(self, place: tuple[int, ...], action: Any) -> tuple[Array, float, bool, bool]:
        """Step one environment, and record the action."""
        played = self._played[place]
        played.append(action)
        decoded = self._encoded.action.decode(action)
        answer = self._call(place, lambda: self._at(place).step(decoded), "step")
        parts = self._parts(place, answer, "step", "observation, reward, terminated, truncated, info")
        shown, *numbers, _ = parts
        try:
            # An array with one entry counts as a number, as in Gymnasium's wrappers.
            reward, terminated, truncated = map(_read_number, numbers)
        except (TypeError, ValueError) as error:
            given = ", ".join(repr(number)[:60] for number in numbers)
            raise self._fault(
                place, f"returned ({given}) as reward, terminated and truncated, expected a number and two truth values"
            ) from error
        if not np.isfinite(reward):
            raise self._fault(place, f"returned the reward {numbers[0]}")
        cut = self._limit is not None and len(played) >= self._limit
        return self._encode(place, shown), reward, bool(terminated), bool(truncated) or cut

    def _parts(self, place: tuple[int, ...], answer: Any, what: str, expected: str) -> tuple[Any, ...]:
        """The result of a call, checked to be a tuple as Gymnasium's interface requires."""
        count = expected.count(",") + 1
        if not isinstance(answer, tuple | list) or len(answer) != count:
            of = (
                f"{type(answer).__name__} of {len(answer)}"
                if isinstance(answer, tuple | list)
                else type(answer).__name__
            )
            raise self._fault(place, f"returned {of} from {what}(), expected ({expected})")
        return tuple(answer)

    def _call(self, place: tuple[int, ...], call: Callable[[], Any], what: str) -> Any:
        try:
            return call()
        except (Exception, SystemExit) as error:  # a user's code may raise any exception
            raise self._fault(place, f"raised in {what}(): {described(error)}") from error

    def _encode(self, place: tuple[int, ...], shown: Any) -> Array:
        try:
            observation: Array = self._encoded.observation.encode(shown)
            fits = observation.shape == self.observation_shape
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise self._fault(place, f"returned an observation outside its space ({described(error)})") from error
        if not fits:
            raise self._fault(
                place, f"returned an observation of {observation.size} components, expected {self.observation_shape}"
            )
        if not np.isfinite(observation).all():
            at = int(np.flatnonzero(~np.isfinite(observation))[0])
            raise self._fault(place, f"returned the observation {observation.reshape(-1)[at]} (number {at})")
        return observation

    def _fault(self, place: tuple[int, ...], problem: str) -> TargetError:
        """The error of an environment and its place; steps and episodes are counted from 1."""
        return TargetError(
            f"{self._encoded.label} {problem} at step {len(self._played[place])} of episode "
            f"{int(self._episodes[place]) + 1} (environment {place[1] + 1} of seed {self._seeds[place[0]]}).",
            where="--env",
            remedy="Fix the environment; everything saved before is kept.",
        )

    def _at(self, place: tuple[int, ...]) -> gym.Env[Any, Any]:
        return self._environments[place[0]][place[1]]


def _read_number(given: Any) -> float:
    """Convert a number, or an array with one entry. Text is rejected, although NumPy could parse it."""
    array = np.asarray(given)
    if array.dtype.kind not in "biufO":
        raise TypeError
    return float(array.astype(float).item())
