"""Stacked frames: what a pass promises for copies of earlier values, and what to do if starts are not symmetric."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.detectable import Detectable, detectable_change
from symcheck.engine.environments.cases.workbench import shift_bound
from symcheck.statements.statement import state
from symcheck_reports.bounds import bound_sentence

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])


class Walk(gym.Env[Any, Any]):
    """A random walk, observed with the place before; after a reset that place is padded with zero."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)
    centre, wind = 0.0, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.places = [0.0, self.centre + self.np_random.normal()]
        self.steps = 0
        return np.array(self.places), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.places = [self.places[1], self.places[1] + 2 * int(action) - 1 + self.wind + self.np_random.normal()]
        self.steps += 1
        return np.array(self.places), 0.0, self.steps == 4, False, {}


class Set(Walk):
    """Leaning starts, wind, and state access; the symmetry does not say how states transform."""

    centre, wind = 1.0, 1.0

    def get_state(self) -> Any:
        return np.array([self.places[1], self.steps])

    def set_state(self, state: Any) -> None:
        self.places, self.steps = [0.0, float(state[0])], int(state[1])


def test_a_copy_of_an_earlier_value_is_promised_in_its_own_unit() -> None:
    result = sc.verify_env(Walk, MIRROR, samples=300)["transition_invariance"]
    assert result.verdict == "passed"
    # Deviations of rounding would make it 1e15; those of the place itself are of the size of an episode.
    assert 0 < result.bound["value"] < 1000


def test_the_remedy_for_starts_that_lean_is_the_state_map_if_states_can_be_set() -> None:
    report = sc.verify_env(Set, MIRROR, samples=300)
    assert report["initial_invariance"].verdict == "failed"
    undecided = [item for item in report if item.verdict == "undecided"]
    assert undecided
    assert all("give the symmetry state= to decide" in str(item.reason) for item in undecided)


def test_without_access_the_remedy_is_to_register_it() -> None:
    class Leaning(Walk):
        centre, wind = 1.0, 1.0

    undecided = [item for item in sc.verify_env(Leaning, MIRROR, samples=300) if item.verdict == "undecided"]
    assert undecided
    assert all("register state access to decide" in str(item.reason) for item in undecided)


@pytest.mark.parametrize(("change", "said"), [(math.inf, "a shift of every outcome by 0.5"), (0.7, "mean by 0.7")])
def test_a_size_that_is_never_detected_is_not_promised(change: float, said: str) -> None:
    bound = shift_bound(Detectable(change, 0.5), 100, 0.01, unit="units", region=state("region_resets", pairs=100))
    assert math.isfinite(float(str(bound["value"])))
    assert said in bound_sentence(bound)


def test_odds_of_one_event_in_a_thousand_are_never_detected_in_a_dozen_pairs() -> None:
    rng = np.random.default_rng(0)
    rare = np.zeros((1000, 1))
    rare[7] = 1.0
    differences = np.zeros((12, 1))
    differences[3] = 1.0
    change = detectable_change(rare, rare, differences, rare[:24], critical=3.5, rng=rng)
    assert math.isinf(change.change)  # the statistic of n pairs is at most sqrt(n)
    assert math.isfinite(change.shift)
