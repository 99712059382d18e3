"""A custom environment with a bug that verify-env finds: the motor is 1% stronger to the right.

symcheck verify-env examples/planted_bug.py:fixed --symmetry examples/planted_bug.py:mirror     # passes
symcheck verify-env examples/planted_bug.py:faulty --symmetry examples/planted_bug.py:mirror    # a transition fails
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import symcheck as sc


class Rail(gym.Env[NDArray[np.float64], int]):
    """A cart on a rail: push left, coast or push right; the goal is to stop in the middle.

    Args:
        right: the force of the push to the right; the push to the left has force 1.
    """

    def __init__(self, right: float) -> None:
        self.pushes = np.array([-1.0, 0.0, right])
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(3)
        self.state = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        position, velocity = self.state
        velocity = 0.9 * velocity + 0.1 * self.pushes[action]
        self.state = np.array([position + velocity, velocity])
        return self.state.copy(), -abs(float(position)), bool(abs(self.state[0]) > 3), False, {}

    def get_state(self) -> NDArray[np.float64]:
        return self.state.copy()

    def set_state(self, state: NDArray[np.float64]) -> None:
        self.state = np.array(state)


def faulty() -> Rail:
    """With a bug: the constant of the right motor was tuned by hand."""
    return Rail(right=1.01)


def fixed() -> Rail:
    """Both pushes with the same force."""
    return Rail(right=1.0)


mirror = sc.Symmetry("left-right", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[2, 1, 0]])
