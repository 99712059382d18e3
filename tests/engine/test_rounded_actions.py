"""Actions that wrappers compute in float32: their rounding is no violation, and a shifted action is one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.envs.stepping.rounded_actions import computed_box, moved_actions


class Bins(gym.wrappers.DiscretizeAction):
    """The bins of an interval, moved by an offset."""

    offset = 0.0

    def action(self, action: Any) -> Any:
        return super().action(action) + np.float32(self.offset)  # type: ignore[no-untyped-call]


class Shifted(Bins):
    offset = 1e-4


@pytest.mark.parametrize("bins", [3, 5])
@pytest.mark.parametrize(("wrapper", "verdict"), [(Bins, "passed"), (Shifted, "failed")])
def test_the_rounding_of_a_middle_bin_is_no_violation(bins: int, wrapper: Any, verdict: str) -> None:
    claim = sc.Symmetry("mirror", sc.groups.cyclic(2), [[1, -1, -1]], [list(range(bins))[::-1]], state=[[-1, -1]])
    report = sc.verify_env(lambda: wrapper(gym.make("Pendulum-v1"), bins), claim, samples=300)
    assert report["transition_invariance"].verdict == verdict
    if verdict == "passed":
        assert not report["transition_invariance"].approximate


def test_inner_actions_are_moved_by_units_within_their_bounds() -> None:
    env = gym.wrappers.DiscretizeAction(gym.make("Pendulum-v1"), 5)
    box = computed_box(env)
    assert box is not None
    assert box == env.unwrapped.action_space
    assert computed_box(gym.make("Pendulum-v1")) is None
    assert computed_box(gym.make("CartPole-v1")) is None
    env.reset(seed=0)
    with moved_actions(env, box, 4):
        env.step(2)
        # Four units of 2, the larger bound.
        assert float(env.unwrapped.last_u) == pytest.approx(4 * 2.384186e-07 + 5.960464e-08, rel=1e-6)  # type: ignore[attr-defined]
    assert "step" not in vars(env.unwrapped)
    env.step(2)
    assert float(env.unwrapped.last_u) == pytest.approx(5.960464e-08, rel=1e-6)  # type: ignore[attr-defined]
