"""Sets the state of an environment without a setter: copies of start states, and replayed actions."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from symcheck.array_types import Floats
from symcheck.groups.element import Word
from symcheck.symmetry.bound import BoundSymmetry

LONGEST = 40  # maximum number of actions of a state; each is replayed for every pair


@dataclass(frozen=True)
class History:
    """A state, given by the start and the actions that lead to it.

    Attributes:
        start: the flattened observation of the start, shape (dim,).
        actions: the actions since the start.
        seen: observations before each action.
    """

    start: Floats
    actions: tuple[Any, ...] = ()
    seen: tuple[Any, ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        """The history itself, because it is immutable."""
        return self

    def tolist(self) -> dict[str, Any]:
        """The form used in reports."""
        return {"start": self.start.tolist(), "actions": list(self.actions)}


@dataclass(frozen=True)
class Starts:
    """The starts that can be replayed.

    Attributes:
        copies: environments right after a reset, by their observation.
        shown: the observation of each.
    """

    copies: dict[bytes, list[gym.Env[Any, Any]]]
    shown: dict[bytes, Any]


def start_key(flat: Floats) -> bytes:
    """The key of a start: its observation, rounded to float32."""
    return (flat.astype(np.float32) + np.float32(0.0)).tobytes()  # turns minus zero into zero


class ReplayedEnv(gym.Env[Any, Any]):
    """The user's environment, reset to copies of its starts and put into states by replaying actions.

    Args:
        starts: copies of the environment, wrappers included.
        rng: picks starts and copies, so that hidden state of the copies differs between repetitions.
        flatten: the function that flattens observations.
    """

    def __init__(self, starts: Starts, rng: np.random.Generator, flatten: Any) -> None:
        self._starts, self._rng, self._flatten = starts, rng, flatten
        self._inner = next(iter(starts.copies.values()))[0]
        self.observation_space, self.action_space = self._inner.observation_space, self._inner.action_space
        self.history = History(np.zeros(0))
        self.shown: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin at one of the start states."""
        super().reset(seed=seed)
        keys = list(self._starts.copies)
        self._begin(keys[int(self._rng.integers(len(keys)))])
        return self.shown, {}

    def _begin(self, key: bytes) -> None:
        copies = self._starts.copies[key]
        self._inner = copy.deepcopy(copies[int(self._rng.integers(len(copies)))])
        self.shown = self._starts.shown[key]
        self.history = History(self._flatten(self.shown))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the copy; an episode is truncated when its replay would become slow."""
        past = self.history
        self.history = History(past.start, (*past.actions, copy.deepcopy(action)), (*past.seen, self.shown))
        obs, reward, terminated, truncated, info = self._inner.step(action)
        self.shown = copy.deepcopy(obs)
        return obs, reward, terminated, truncated or len(self.history.actions) >= LONGEST, info

    def play(self, history: History) -> Any:
        """Put the environment into a state by replaying its actions; returns its observation."""
        self._begin(start_key(history.start))
        for action in history.actions:
            self.step(copy.deepcopy(action))
        return self.shown

    def read_history(self, value: Any) -> History:
        """Read the history in a report, with the observations along it."""
        start = np.array(value["start"], dtype=np.float64)
        discrete = isinstance(self.action_space, gym.spaces.Discrete)
        actions: tuple[Any, ...] = tuple(
            np.int64(action) if discrete else np.asarray(action, dtype=self.action_space.dtype)
            for action in value["actions"]
        )
        self.play(History(start, actions))
        return self.history


class ReplayedSymmetry:
    """A bound symmetry that maps histories: the start and each action are replaced by their images.

    Args:
        bound: the user's symmetry.
        flatten: the function that flattens observations.
    """

    has_state = True

    def __init__(self, bound: BoundSymmetry, flatten: Any) -> None:
        self._bound = bound
        self._flatten = flatten

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, name)

    def is_data(self, part: Any) -> bool:
        """Whether the maps of a part are data; maps of histories are not."""
        return False if part == "state" else self._bound.is_data(part)

    def state(self, word: Word, history: History) -> History:
        """The image of a history."""
        actions = [self._bound.action(word, a, obs) for a, obs in zip(history.actions, history.seen, strict=True)]
        images = [self._bound.observation(word, obs) for obs in history.seen]
        start = self._bound.observation(word, _first(history, self._bound))
        return History(self._flatten(start), tuple(actions), tuple(images))


def _first(history: History, bound: BoundSymmetry) -> Any:
    """The observation at the start."""
    if history.seen:
        return history.seen[0]
    space = bound.observation_space
    if isinstance(space, gym.spaces.Discrete):
        return np.int64(history.start[0])
    return history.start.astype(space.dtype).reshape(space.shape)
