"""What a broken symmetry of random dynamics costs: distances between laws, with what sampling alone would show."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

C2 = catalog.cyclic(2)
RING = Symmetry("mirror", C2, [[0, 4, 3, 2, 1]], [[1, 0]], state=[lambda s: (-s) % 5])


class Ring(gym.Env[Any, Any]):
    """Five cells in a ring; one way slips more often by `slip`, and pays `bonus` more on average."""

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(2)

    def __init__(self, slip: float = 0.0, bonus: float = 0.0) -> None:
        self.slip, self.bonus = slip, bonus

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere."""
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(5))
        return self.s, {}

    def step(self, action: Any) -> Any:
        """Go, unless it slips."""
        reward = float(self.s == 0) + self.bonus * int(action) * self.np_random.normal(1.0, 0.5)
        if self.np_random.random() < 0.8 - self.slip * int(action):
            self.s = (self.s + (1 if action else -1)) % 5
        return self.s, reward, False, False, {}

    def get_state(self) -> Any:
        """The cell."""
        return self.s

    def set_state(self, state: Any) -> None:
        """Go there."""
        self.s = int(state)


class Point(gym.Env[Any, Any]):
    """A damped point pushed with noise; on one side the push is stronger."""

    observation_space, action_space = spaces.Box(-np.inf, np.inf, (1,), np.float64), spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the centre."""
        super().reset(seed=seed)
        self.x = self.np_random.normal(0, 0.5)
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Push."""
        reward = -abs(self.x)
        self.x = 0.5 * self.x + (0.6 if action else -0.3) + 0.3 * self.np_random.normal()
        return np.array([self.x]), reward, False, False, {}

    def get_state(self) -> Any:
        """The place."""
        return np.array([self.x])

    def set_state(self, state: Any) -> None:
        """Go there."""
        self.x = float(state[0])


def _bound(report: Any, name: str) -> dict[str, Any]:
    bound = report[name].bound
    assert bound is not None
    assert bound["kind"] == "value_gap"
    return dict(bound)


def test_a_slip_is_the_total_variation_of_few_outcomes() -> None:
    report = symcheck.verify_env(lambda: Ring(slip=0.2), RING, samples=1000, discount=0.9)
    bound = _bound(report, "transition_invariance")
    assert report["transition_invariance"].method == "distribution"
    assert bound["transition_distance"] == "total variation"
    # Of 2 x 400 outcomes of either side: a standard deviation of 0.022.
    assert bound["epsilon_transition"] == pytest.approx(0.2, abs=0.09)
    assert 0 < bound["noise_transition"] < 0.1
    # Rewards of 0 and 1 span 10; epsilon_T of them, discounted, once a step for ever.
    assert bound["value"] == pytest.approx(min(10, 0.9 * bound["epsilon_transition"] * 10 / 0.1))
    assert bound["estimate"] == "from lower estimates of suprema"


def test_rewards_are_compared_by_their_means() -> None:
    bound = _bound(symcheck.verify_env(lambda: Ring(bonus=0.3), RING, samples=1000, discount=0.9), "reward_invariance")
    # The mean of 2 x 400 rewards of standard deviation 0.15.
    assert bound["epsilon_reward"] == pytest.approx(0.3, abs=0.03)
    assert bound["epsilon_transition"] == 0
    assert bound["value"] == pytest.approx(bound["epsilon_reward"] / 0.1)


def test_continuous_outcomes_are_a_wasserstein_distance_apart() -> None:
    mirror = Symmetry("mirror", C2, [[-1]], [[1, 0]])
    bound = _bound(symcheck.verify_env(Point, mirror, samples=1000, discount=0.5), "transition_invariance")
    assert bound["transition_distance"].startswith("Wasserstein-1")
    # The sides are 0.3 apart, places spread by about 0.7; noise of 0.3 under 400 samples shows far less.
    assert 0.25 < bound["epsilon_transition"] < 0.7
    assert bound["noise_transition"] < 0.1
    assert 0 < bound["value"] < 10


def test_a_gap_between_laws_is_accepted_or_refused_as_any_other() -> None:
    def verify(accept: float) -> Any:
        return symcheck.verify_env(lambda: Ring(bonus=0.3), RING, samples=1000, discount=0.9, accept_gap=accept)

    accepted, refused = verify(4.0), verify(1.0)
    assert accepted.verdict == "passed"
    within = accepted["reward_invariance"]
    assert (within.approximate, within.accepted_by) == (True, "accept_gap")
    assert within.detail.startswith("Within the 4 allowed by --accept-gap")
    assert "Sampling noise alone would give" in within.detail
    noise = within.notes[0].fields["gap"].fields["noise"]
    assert noise == [within.bound["noise_reward"], within.bound["noise_transition"]]
    assert refused.verdict == "failed"


def test_episodes_say_why_they_know_no_gap() -> None:
    mirror = Symmetry("no action map", C2, [[-1]], [[0, 1]])
    report = symcheck.verify_env(Point, mirror, samples=2000, method="trajectory", accept_gap=1e9)
    assert report.verdict == "failed"
    assert "cannot be estimated from whole episodes" in report["transition_invariance"].detail
