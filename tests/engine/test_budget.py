"""One alpha for a run: Holm's levels, what spends nothing, and that the environments agree."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import symcheck_properties  # noqa: F401
from symcheck.engine.budget import Budget, Handed
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import holm
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def _rejected(p_values: list[float], alpha: float) -> list[bool]:
    return [p <= level for p, level in zip(p_values, holm(p_values, alpha), strict=True)]


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.3]))
def test_holm_rejects_what_closed_testing_with_bonferroni_rejects(p_values: list[float], alpha: float) -> None:
    """Oracle: a claim is rejected when every set of claims that contains it is (min p <= alpha / size)."""
    everything = range(len(p_values))
    sets = [one for size in range(1, len(p_values) + 1) for one in itertools.combinations(everything, size)]
    kept = [one for one in sets if not min(p_values[i] for i in one) <= alpha / len(one)]
    assert _rejected(p_values, alpha) == [not any(i in one for one in kept) for i in everything]


@given(P_VALUES)
def test_no_level_is_below_an_even_share(p_values: list[float]) -> None:
    assert all(level >= 0.01 / len(p_values) for level in holm(p_values, 0.01))


def test_the_level_holds_under_any_mixture_of_true_and_false_claims() -> None:
    rng = np.random.default_rng(0)
    false_alarms = 0
    for _ in range(4000):
        true = rng.random(3)  # p-values of true claims are uniform
        claims = [*true, 1e-6, 1e-9]
        false_alarms += any(_rejected(claims, 0.05)[:3])
    # 4,000 runs at level 0.05: the mean is at most 200, its standard deviation 14.
    assert false_alarms < 200 + 3 * 14


def test_tests_that_could_not_reject_leave_alpha_to_the_others() -> None:
    budget = Budget(0.01)
    budget.add("reward", lambda: {(0,): Handed(1.0, live=False)}, planned=1)
    budget.add("transition", lambda: {(0,): Handed(0.008, live=True)}, planned=1)
    budget.add("termination", dict, planned=1)
    assert budget.smallest == pytest.approx(0.01 / 3)
    assert budget.level("transition", (0,)) == 0.01
    assert budget.tests == 1


def test_every_test_is_run_before_any_is_judged() -> None:
    asked: list[str] = []

    def source(name: str) -> Any:
        def run() -> dict[tuple[int, ...], Handed]:
            asked.append(name)
            return {(0,): Handed(0.5, live=True)}

        return run

    budget = Budget(0.01)
    for name in ("reward", "initial"):
        budget.add(name, source(name), planned=1)
    budget.level("reward", (0,))
    budget.level("initial", (0,))
    assert asked == ["reward", "initial"]


class Drift(gym.Env[Any, Any]):
    """A noisy point; the noise and the start may each be biased, and nothing else varies."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, noise: float = 0.0, start: float = 0.0) -> None:
        self._noise, self._start = noise, start
        self.x = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the centre."""
        super().reset(seed=seed)
        self.x = self._start + float(self.np_random.normal())
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Move either way, with noise."""
        self.x = 0.9 * self.x + (0.5 if action else -0.5) + self._noise + float(self.np_random.normal())
        return np.array([self.x]), 1.0, False, False, {}

    def get_state(self) -> float:
        """The point."""
        return self.x

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.x = float(state)


def _results(**faults: float) -> dict[str, PropertyResult]:
    flip = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
    options = EnvOptions(samples=1500)
    result = run_env(lambda: Drift(**faults), flip, options=options, target="drift", command="")
    return {one.name: one for one in result.properties}


def test_parts_that_repeat_spend_nothing() -> None:
    found = _results(noise=0.6)
    assert found["transition_invariance"].verdict == "failed"
    levels = {name: note.fields["level"] for name, one in found.items() for note in one.notes if "level" in note.fields}
    assert levels["transition_invariance"] == 0.005  # the start is the only other test
    assert levels["initial_invariance"] == 0.01  # what is left after a rejection


def test_both_of_two_faults_are_found_and_none_where_there_is_none() -> None:
    both, none = _results(noise=0.6, start=0.6), _results()
    failed = {name for name, one in both.items() if one.verdict == "failed"}
    assert failed == {"transition_invariance", "initial_invariance"}
    assert all(one.verdict in ("passed", "proved") for one in none.values())
