"""Single-precision rounding that goes to one side, in worlds where chance is rare: nobody is accused of it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.groups import cyclic
from symcheck.symmetry.symmetry import Symmetry


class KickedBall(gym.Env[Any, Any]):
    """A ball between two walls that is kicked back now and then, in float32; the mirror takes x to 1 - x."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, noisy_reward: bool = False) -> None:
        self.noisy_reward = noisy_reward

    def get_state(self) -> Any:
        return np.array([self.x, self.v], np.float32)

    def set_state(self, state: Any) -> None:
        self.x, self.v = np.float32(state[0]), np.float32(state[1])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.set_state([self.np_random.uniform(0, 1), self.np_random.uniform(-0.1, 0.1)])
        return self.get_state(), {}

    def step(self, action: Any) -> Any:
        f = np.float32
        self.v = f(f(0.95) * self.v + f(0.01) * f(2 * int(action) - 1))
        self.x = f(self.x + f(0.1) * self.v)
        if self.np_random.random() < 0.05:
            self.v = -self.v
        if not 0 <= self.x <= 1:
            self.x, self.v = np.clip(self.x, f(0), f(1)), f(0)
        reward = -float(abs(self.x - f(0.5)))
        if self.noisy_reward and self.np_random.random() < 0.1:
            reward += float(self.np_random.normal()) * 0.1
        return self.get_state(), reward, False, False, {}


@pytest.mark.parametrize("noisy_reward", [False, pytest.param(True, marks=pytest.mark.long)])
def test_rounding_to_one_side_among_rare_chance_accuses_nobody(noisy_reward: bool) -> None:
    flip = Symmetry("flip", cyclic(2), [{"signs": [-1, -1], "offset": [1, 0]}], [[1, 0]])
    for seed in range(2):
        report = sc.verify_env(lambda: KickedBall(noisy_reward), flip, samples=3_000, seed=seed)
        assert {item.name: item.verdict for item in report.results[0].properties}["transition_invariance"] == "passed"
        assert report["reward_invariance"].verdict == "passed"
