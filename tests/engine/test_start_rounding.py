"""Starts that rounding moved are one start; starts that are elsewhere are not, however small or far off they are."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[1, 0]])


class Cart(gym.Env[Any, Any]):
    """A cart that is mirrored by changing both signs; where it starts is given."""

    def __init__(self, start: Any, dtype: type = np.float64) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype)
        self.action_space = gym.spaces.Discrete(2)
        self.start, self.dtype = start, dtype

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start at `start`, which is a number or draws one."""
        super().reset(seed=seed)
        place = self.start(self.np_random) if callable(self.start) else self.start
        self.state = np.array([place, self.np_random.uniform(-1, 1)])
        return self.state.astype(self.dtype), {}

    def step(self, action: Any) -> Any:
        """Move on."""
        x, v = self.state
        v = 0.9 * v + 0.1 * (2 * int(action) - 1)
        self.state = np.array([x + 0.1 * v, v])
        return self.state.astype(self.dtype), float(-x * x), False, False, {}


def verdict(start: Any, dtype: type = np.float64) -> str:
    """What is said of the start distribution."""
    return sc.verify_env(lambda: Cart(start, dtype), MIRROR, samples=2000)["initial_invariance"].verdict


@pytest.mark.parametrize(
    ("start", "dtype"),
    [(0.0, np.float64), (np.sin(np.pi), np.float64), (-2.2e-12, np.float32), (np.sin(np.float32(np.pi)), np.float32)],
)
def test_a_start_that_is_zero_but_for_rounding_is_its_own_image(start: float, dtype: type) -> None:
    assert verdict(start, dtype) == "passed"


@pytest.mark.parametrize(("start", "dtype"), [(1e-9, np.float64), (1e-4, np.float32)])
def test_a_start_beside_zero_fails(start: float, dtype: type) -> None:
    assert verdict(start, dtype) == "failed"


def wander(rng: np.random.Generator) -> float:
    """Around 0 in float32 digits that are rounding of where episodes lead, and yet many places."""
    return float(rng.uniform(-1e-3, 1e-3))


def lean(rng: np.random.Generator) -> float:
    """The same, a little to the right."""
    return wander(rng) + 3e-4


def saturate(rng: np.random.Generator) -> float:
    """Far off on either side now and then, and a little to the right elsewhere."""
    return float(rng.choice([-1e6, 1e6])) if rng.random() < 0.05 else lean(rng)


def test_starts_that_lean_are_found_beside_far_off_ones() -> None:
    assert verdict(wander, np.float32) == "passed"
    assert verdict(lean, np.float32) == "failed"
    assert verdict(saturate, np.float32) == "failed"
