"""Black boxes whose actions show after the next observation: a wrong map of actions fails, and the right one passes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.episodes import sides_of_earlier_actions

C2 = sc.groups.cyclic(2)


class HiddenVelocity(gym.Env[Any, Any]):
    """A cart of which only the place is observed; a push changes the velocity, which moves the cart one step later."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.velocity, self.steps = *self.np_random.normal(size=2), 0
        return np.array([self.place]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += self.velocity
        self.velocity = 0.8 * self.velocity + self.push(action)
        self.steps += 1
        return np.array([self.place]), 1.0, self.steps == 20, False, {}

    def push(self, action: Any) -> float:
        return 0.4 * float(action) - 0.2


class Late(HiddenVelocity):
    """A continuous push that arrives five steps late."""

    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)
    queue: list[float]

    def push(self, action: Any) -> float:
        waiting: list[float] = self.queue if self.steps else [0.0] * 5
        self.queue = [*waiting[1:], float(action[0])]
        return waiting[0]


@pytest.mark.parametrize("world", [HiddenVelocity, Late])
@pytest.mark.parametrize("right", [True, False])
def test_an_action_that_shows_later_must_be_mapped(world: type[HiddenVelocity], right: bool) -> None:
    maps = {HiddenVelocity: ([1, 0], [0, 1]), Late: ([-1], [1])}[world]
    report = sc.verify_env(world, sc.Symmetry("mirror", C2, [[-1]], [maps[0] if right else maps[1]]), samples=400)
    assert report["transition_invariance"].verdict == ("passed" if right else "failed")
    assert report.verdict == ("passed" if right else "failed")


def test_the_step_of_the_action_is_named() -> None:
    report = sc.verify_env(HiddenVelocity, sc.Symmetry("mirror", C2, [[-1]], [[0, 1]]), samples=400)
    assert "under action 1 compared with other actions, in the step before" in report["transition_invariance"].detail


def test_no_step_knows_the_actions_of_another_episode() -> None:
    # Two episodes of three steps; the action is high in the first and in the last step.
    column, numbers = np.array([1.0, -1, -1, -1, -1, 1]), np.array([0, 1, 2, 0, 1, 2])
    before, two, earlier = (side for _, side in sides_of_earlier_actions([("high", column)], numbers))
    assert before.tolist() == [0, 1, 0, 0, 0, 0]
    assert two.tolist() == [0, 0, 1, 0, 0, 0]
    assert not earlier.any()
