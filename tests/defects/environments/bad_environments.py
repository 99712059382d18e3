"""Environments and maps that break their contract, one a class; `verify-env` reads this file as a user's own."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import symcheck as sc


class Point(gym.Env[Any, Any]):
    """A damped point on a line, symmetric; subclasses spoil one thing each."""

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space[Any] = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.s = 0, self.np_random.uniform(-0.3, 0.3, 2)
        return self.show(), {}

    def show(self) -> Any:
        return self.s.copy()

    def step(self, action: Any) -> Any:
        v = 0.9 * self.s[1] + (0.3 if action else -0.3)
        self.s, self.t = np.array([self.s[0] + 0.1 * v, v]), self.t + 1
        return self.show(), 0.0, bool(abs(self.s[0]) > 1), self.t > 30, {}


def put(env: Any, state: Any) -> None:
    env.s = np.array(state, dtype=float)


sc.register_state_access(Point, set=put)


class RaisesInStep(Point):
    def step(self, action: Any) -> Any:
        if self.s[0] > 0.4:
            raise RuntimeError("the simulator diverged")
        return super().step(action)


class RaisesInReset(Point):
    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        RaisesInReset.resets += 1
        if RaisesInReset.resets % 5 == 4:
            raise OSError("licence expired")
        return super().reset(seed=seed)


class LeavesPython(Point):
    def step(self, action: Any) -> Any:
        raise SystemExit(0)


class OnlyNaN(Point):
    def show(self) -> Any:
        return np.full(2, np.nan)


class NaNOnOneSide(Point):
    def show(self) -> Any:
        return np.where(self.s[0] < -0.2, np.nan, self.s)


class ReusesItsBuffer(Point):
    buffer = np.zeros(2)

    def show(self) -> Any:
        self.buffer[:] = self.s
        return self.buffer


class TakesNoSeed(Point):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class SeedlessNoise(Point):
    """Its generator is made anew each time: no seed reaches it."""

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        self.s[1] += np.random.default_rng().normal(0, 0.1)
        return self.show(), *rest


class GrowsInStep(Point):
    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return (np.append(obs, 0.0) if self.t > 5 else obs), *rest


class ChangesItsSpace(Point):
    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        self.resets += 1
        if self.resets > 3:
            self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
            return np.append(obs, 0.0), info
        return obs, info


class RandomNowAndThen(Point):
    """Registered as deterministic; one step in a hundred is not, from a generator that no reset seeds."""

    noise = np.random.default_rng(0)  # of the class: the same tests draw the same numbers

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        self.s[1] += 0.01 * (self.noise.random() < 0.01)
        return self.show(), *rest


class OldStep(Point):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or truncated, info


class OldReset(Point):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]


class PaysNothing(Point):
    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, None, *rest


class PaysAnArray(Point):
    def step(self, action: Any) -> Any:
        obs, reward, *rest = super().step(action)
        return obs, np.array([reward]), *rest


class EndsTwice(Point):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, *rest = super().step(action)
        return obs, reward, np.array([terminated, False]), *rest


class ShowsText(Point):
    def show(self) -> Any:
        return "hello"


class CannotBeSet(Point):
    pass


def refuse(env: Any, state: Any) -> None:
    raise ValueError("the scene is locked")


class IgnoresSetting(Point):
    pass


class WrongSample(Point):
    pass


class SampleRaises(Point):
    pass


sc.register_state_access(CannotBeSet, set=refuse)
sc.register_state_access(IgnoresSetting, set=lambda env, state: None)
sc.register_state_access(WrongSample, set=put, sample=lambda rng, n: [np.zeros(3)] * n)
sc.register_state_access(SampleRaises, set=put, sample=lambda rng: [])  # type: ignore[arg-type,misc]


class Track(gym.Env[Any, Any]):
    observation_space = spaces.Box(-5, 5, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1)
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + (0.1 if action else -0.1)
        return np.array([self.x]), 0.0, False, False, {}

    def get_state(self) -> Any:
        return np.array([self.x])

    def set_state(self, state: Any) -> None:
        if abs(state[0]) > 4:
            raise ValueError(f"{state[0]} is off the track")
        self.x = float(state[0])


class UnevenActions(Point):
    action_space = spaces.Box(np.array([-0.5], np.float32), np.array([1.0], np.float32))

    def step(self, action: Any) -> Any:
        return super().step(action[0] > 0)


def claim(**parts: Any) -> sc.Symmetry:
    given = {"observation": [[-1, -1]], "action": [[1, 0]], **parts}
    return sc.Symmetry(name="mirror", group=sc.groups.cyclic(2), **given)


mirror = claim()
negated_actions = claim(action=[[-1]])
action_too_large = claim(action=[lambda a, obs: a + 1])
action_no_number = claim(action=[lambda a, obs: "left"])
action_half = claim(action=[lambda a, obs: 0.5])
observation_shorter = claim(observation=[lambda obs: obs[:1]])
observation_raises = claim(observation=[lambda obs: 1 / 0])
observation_nothing = claim(observation=[lambda obs: None])
state_off_track = claim(observation=[[-1]], state=[lambda x: x + 9])
state_raises = claim(observation=[[-1]], state=[lambda x: 1 / 0])
state_longer = claim(observation=[[-1]], state=[lambda x: np.append(x, 0.0)])
