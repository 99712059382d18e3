"""States that are pictures: turned and flipped as pictures, whichever way their rows are laid out in memory."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc


class Dot(gym.Env[Any, Any]):
    """A dot walks along the fourth of six rows; its picture is its state. `pull` is worth more on the right."""

    observation_space = gym.spaces.Box(0, 255, (6, 8), np.uint8)
    action_space = gym.spaces.Discrete(2)
    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, pull: float = 0.0, slip: int = 0) -> None:
        self.pull, self.slip, self.place = pull, slip, 0

    def get_state(self) -> Any:
        picture = np.zeros((6, 8), np.uint8)
        picture[3, self.place] = 255
        return picture

    def set_state(self, state: Any) -> None:
        self.place = int(np.asarray(state)[3].argmax())

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(8))
        return self.get_state(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = min(max(self.place + (1 + self.slip if action else -1), 0), 7)
        return self.get_state(), abs(self.place - 3.5) + self.pull * self.place, False, False, {}


def _report(env: Dot, **state: Any) -> Any:
    flip = sc.Symmetry("flip", sc.groups.cyclic(2), observation=["flip_lr"], action=[[1, 0]], **state)
    return sc.verify_env(lambda: env, flip, samples=200)


@pytest.mark.parametrize("state", [{}, {"state": ["flip_lr"]}])
def test_a_flip_of_a_picture_that_is_the_state_holds(state: dict[str, Any]) -> None:
    report = _report(Dot(), **state)
    assert report.verdict == "passed"


@pytest.mark.parametrize("state", [{}, {"state": ["flip_lr"]}])
def test_a_step_that_slips_to_one_side_is_accused_in_the_row_of_the_dot(state: dict[str, Any]) -> None:
    failed = [p for p in _report(Dot(slip=1), **state).properties if p.verdict == "failed"]
    assert [p.name for p in failed] == ["reward_invariance", "transition_invariance"]
    assert failed[1].counterexample is not None
    assert failed[1].counterexample.where.startswith("observation[3]")


def test_a_reward_that_pulls_to_one_side_is_the_only_thing_accused() -> None:
    assert [p.name for p in _report(Dot(pull=0.1)).properties if p.verdict == "failed"] == ["reward_invariance"]
