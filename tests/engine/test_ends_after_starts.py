"""A black box may end episodes at a time that depends on their start, which the last states no longer show."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1, -1]], [[1, 0]])


class Forgetting(gym.Env[Any, int]):
    """A point that forgets its start; some episodes are truncated one step earlier.

    Args:
        early: whether an episode ends early, by the first coordinate of its start.
    """

    observation_space = spaces.Box(-9.0, 9.0, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, early: Any) -> None:
        self.early = early

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.steps = self.np_random.uniform(-1, 1, 2), 0
        self.limit = 29 if self.early(self.x[0]) else 30
        return self.x.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.x = 0.6 * self.x + (0.1 if action else -0.1)
        return self.x.copy(), float(np.abs(self.x).sum()), False, self.steps >= self.limit, {}


def ends_of(early: Any) -> PropertyResult:
    """The verdict on terminations."""
    options = EnvOptions(samples=3000)
    run = run_env(lambda: Forgetting(early), MIRROR, options=options, target="forgetting", command="")
    return next(each for each in run.properties if each.name == "termination_invariance")


def test_a_limit_that_depends_on_the_side_of_the_start_is_found() -> None:
    result = ends_of(lambda x: x > 0)
    assert result.verdict == "failed"
    assert "in episodes that start" in str(result.causes[0].fields["feature"])


@pytest.mark.parametrize("early", [lambda x: abs(x) > 0.5, lambda x: False])
def test_a_limit_that_depends_on_the_distance_of_the_start_passes(early: Any) -> None:
    assert ends_of(early).verdict == "passed"
