"""A failed start distribution shows the statistic that differs, in both samples, with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc

C2 = sc.groups.cyclic(2)
NEGATED, EXCHANGED = [[-1, 1]], [[1, 0]]


def world(draw: Callable[[np.random.Generator], Any]) -> Callable[[], gym.Env[Any, Any]]:
    """Starts drawn by a function; nothing happens afterwards."""

    class Start(gym.Env[Any, Any]):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            self.seen = np.array(draw(self.np_random))
            return self.seen, {}

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return self.seen, 0.0, True, False, {}

    return Start


def draw_correlated(rng: np.random.Generator) -> Any:
    x = rng.normal()
    return [x, 0.8 * x + 0.6 * rng.normal()]


def draw_wide(rng: np.random.Generator) -> Any:
    return [rng.normal(), 3 * rng.normal()]


def draw_shifted(rng: np.random.Generator) -> Any:
    return [rng.normal() + 2, rng.normal()]


def start_result(draw: Callable[[np.random.Generator], Any], observation: Any) -> Any:
    claim = sc.Symmetry("claim", C2, observation, [[0, 1]])
    return sc.verify_env(world(draw), claim, samples=300)["initial_invariance"]


@pytest.mark.parametrize(
    ("draw", "observation", "statistic", "where", "expected", "actual"),
    [
        (draw_correlated, NEGATED, "correlation", "observation[0] and observation[1]", -0.8, 0.8),
        (draw_wide, EXCHANGED, "standard deviation", "observation[0]", 3.0, 1.0),
        (draw_shifted, NEGATED, "mean", "observation[0]", -2.0, 2.0),
    ],
)
def test_the_statistic_that_differs_is_shown_on_both_sides(
    draw: Any, observation: Any, statistic: str, where: str, expected: float, actual: float
) -> None:
    result = start_result(draw, observation)
    shown = result.counterexample
    assert result.verdict == "failed"
    assert shown.where == where or statistic == "standard deviation"
    assert result.unit == f"difference of {statistic}s"
    # 313 pairs at the first interim analysis at least: six standard errors of the widest statistic are 1.0
    sign = 1.0 if shown.where == where else -1.0  # either coordinate of an exchange may be the most significant one
    assert sign * (shown.actual - shown.expected) == pytest.approx(actual - expected, abs=1.0)
    assert shown.residual == result.max_residual == abs(shown.actual - shown.expected)
    assert f"expected and measured are the {statistic} over resets" in result.detail.lower()


def test_starts_without_a_difference_pass() -> None:
    assert start_result(lambda rng: rng.normal(size=2), NEGATED).verdict == "passed"
