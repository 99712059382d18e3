"""Looking early: the level is kept, clear violations stop a run, and nothing passes on part of its samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import symcheck_properties  # noqa: F401
from symcheck import verify_env
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.engine.sequential import Looked, combine_p_values, looks
from symcheck.engine.statistics import sign_flip_test, swap_test
from symcheck.errors import OptionError
from symcheck.groups import catalog
from symcheck.statements.statement import Statement
from symcheck.symmetry.symmetry import Symmetry


@given(st.integers(1, 10**7))
def test_the_weights_of_the_looks_sum_to_one_and_the_last_is_by_far_the_largest(planned: int) -> None:
    taken = looks(planned)
    assert sum(look.weight for look in taken) == pytest.approx(1.0)
    assert [look.last for look in taken] == [False] * (len(taken) - 1) + [True]
    assert taken[-1].weight >= 0.9
    assert [look.share for look in taken] == sorted(look.share for look in taken)


def _p_values_of_sums(rng: np.random.Generator, runs: int) -> list[np.ndarray[Any, Any]]:
    """Two-sided p-values of the same growing sum at each look; true claims."""
    from scipy.stats import norm

    pairs = 800
    steps = np.cumsum(rng.normal(size=(runs, pairs)), axis=1)
    at = [round(look.share * pairs) for look in looks(pairs)]
    return [2 * norm.sf(np.abs(steps[:, n - 1]) / math.sqrt(n)) for n in at]


def test_looks_that_depend_on_each_other_reject_true_claims_no_more_often_than_the_level() -> None:
    seen = _p_values_of_sums(np.random.default_rng(0), 5_000)
    weights = [look.weight for look in looks(800)]
    smallest = np.min([p / w for p, w in zip(seen, weights, strict=True)], axis=0)
    rejected = int((smallest <= 0.05).sum())
    # Binomial(5,000, 0.05) exceeds 250 + 3 * 15.4 with probability 1e-3. Without weights one in eight is rejected.
    assert rejected <= 296
    assert (np.min(seen, axis=0) <= 0.05).sum() > 500


def test_leaving_looks_out_never_makes_a_p_value_smaller() -> None:
    every = looks(1000)
    p_values = [0.003, 0.2, 0.0004, 0.03]
    taken = list(zip(p_values, every, strict=True))
    for count in range(1, 5):
        for some in itertools.combinations(taken, count):
            assert combine_p_values(some) >= combine_p_values(taken)


def test_a_test_is_refuted_only_at_its_level() -> None:
    first, *_, last = looks(1000)
    looked = Looked(0.01)
    assert not looked.rejects("reward")
    assert looked.add("reward", 4e-4, first) > 0.01  # 4e-4 / 0.03
    assert not looked.rejects("reward")
    assert looked.add("reward", 0.008, last) == pytest.approx(0.008 / 0.9)
    assert looked.rejects("reward")


def test_hoeffding_s_p_value_is_never_below_that_of_all_patterns_of_signs() -> None:
    rng = np.random.default_rng(0)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
    for _ in range(200):
        rows = rng.standard_t(2, size=(10, 3)) + rng.normal(0, 2)
        bound = sign_flip_test(rows, level=0.01, rng=rng, sampled=False)
        sums = np.abs(signs @ (rows / np.sqrt((rows**2).sum(axis=0)))).max(axis=1)
        exact = float((sums >= bound.statistics.max() * (1 - 1e-9)).mean())
        assert bound.p_value >= exact


def test_what_is_learned_promises_nothing_about_a_shift() -> None:
    """A pass states what the named features would have found, also where the learned feature has the smaller p."""
    won = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y, design = rng.normal(size=(120, 1)), rng.normal(size=(120, 1)), rng.normal(size=(120, 6))
        test = swap_test(x, y, ["x"], level=0.01, rng=np.random.default_rng(0), design=design)
        named = swap_test(x, y, ["x"], level=0.005, rng=np.random.default_rng(0))
        won += test.moment == "law"
        assert test.critical == pytest.approx(named.critical)
    assert won


class Walk(gym.Env[Any, Any]):
    """A noisy point on a line that is paid and ends at random; each may be biased to the right."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, *, start: float = 0.0, wind: float = 0.0, paid: float = 0.0, ends: float = 0.0) -> None:
        self._start, self._wind, self._paid, self._ends = start, wind, paid, ends
        self.x = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start near the centre."""
        super().reset(seed=seed)
        self.x = self._start + float(self.np_random.normal())
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Move either way, with noise."""
        self.x = 0.5 * self.x + (0.5 if action else -0.5) + self._wind + float(self.np_random.normal())
        right = self.x > 0
        reward = float(self.np_random.normal()) + self._paid * right
        ended = bool(self.np_random.random() < 0.1 + self._ends * (1 if right else -1))
        return np.array([self.x]), reward, ended, False, {}


class Open(Walk):
    """The same, with its state open."""

    def get_state(self) -> float:
        """The point."""
        return self.x

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.x = float(state)


class Repeating(Open):
    """The same without noise, paid what it moved; to the right a little more."""

    def step(self, action: Any) -> Any:
        """Move either way."""
        self.x = 0.5 * self.x + (0.5 if action else -0.5)
        return np.array([self.x]), abs(self.x) + self._paid * (self.x > 0), False, False, {}


FLIP = Symmetry("flip", catalog.cyclic(2), [[-1]], [[1, 0]])
ALL = {"wind": 0.3, "paid": 5.0, "ends": 0.1}


def results(make: Callable[[], gym.Env[Any, Any]], **options: Any) -> dict[str, PropertyResult]:
    found = run_env(make, FLIP, options=EnvOptions(**options), target="walk", command="")
    return {one.name.removesuffix("_invariance"): one for one in found.properties}


def test_resets_stop_where_the_start_is_clearly_not_symmetric_and_nowhere_else() -> None:
    clear = results(lambda: Repeating(start=0.5), samples=8000)["initial"]
    slight = results(lambda: Repeating(start=0.08), samples=8000)["initial"]
    sound = results(Repeating, samples=8000)["initial"]
    assert (clear.verdict, clear.checked) == ("failed", 251)
    assert Statement("resets_stopped", {"drawn": 251, "planned": 2001}) in clear.notes
    assert clear.causes[0].code == "SYM041"
    assert 0.4 <= clear.causes[0].fields["centre"] <= 0.5
    assert (slight.verdict, slight.checked) == ("failed", 2001)
    assert not any("stopped" in note.code for note in slight.notes)
    assert (sound.verdict, sound.checked) == ("passed", 2001)


def test_a_start_that_one_of_two_generators_refutes_stops_the_resets_of_both() -> None:
    class Plane(gym.Env[Any, Any]):
        observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self.np_random.normal([0.0, 0.7]), {}

        def step(self, action: Any) -> Any:
            return np.zeros(2), 0.0, True, False, {}

    both = Symmetry("mirrors", catalog.klein_four(), [[-1, 1], [1, -1]], [[0, 1], [0, 1]])
    options = EnvOptions(samples=8000, method="trajectory")
    found = run_env(Plane, both, options=options, target="plane", command="")
    start = next(one for one in found.properties if one.name == "initial_invariance")
    assert start.verdict == "failed"
    assert start.counterexample is not None
    assert start.counterexample.where == "observation[1]"
    assert start.checked == 2 * 126


@pytest.mark.parametrize(("make", "whole"), [(Walk, 1500), (Open, 6000)])
def test_sampling_stops_once_every_equation_is_refuted(make: type[Walk], whole: int) -> None:
    """`whole` is what the full sample holds: pairs, or episodes of about ten steps."""
    found = results(lambda: make(**ALL), samples=6000)
    for part in ("reward", "transition", "termination"):
        assert found[part].verdict == "failed", found[part].detail
        assert any(note.code in ("playing_stopped", "sampling_stopped") for note in found[part].notes)
        assert found[part].checked < 0.6 * whole
    assert len({found[part].checked for part in ("reward", "transition", "termination")}) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_black_box_whose_dynamics_are_broken_is_not_accused_of_its_ends(seed: int) -> None:
    """Ends are as likely everywhere, and the two groups visit different states: 12 of 12 seeds were accused once."""
    found = results(lambda: Walk(wind=1.0), samples=2000, seed=seed)
    assert found["transition"].verdict == "failed"
    assert found["termination"].verdict == "passed"


def test_ends_that_depend_on_the_side_are_found_in_a_black_box() -> None:
    found = results(lambda: Walk(ends=0.09), samples=2000)
    assert {part for part, one in found.items() if one.verdict == "failed"} == {"termination"}


def test_a_black_box_says_that_rewards_may_only_follow_from_broken_dynamics() -> None:
    """Paid for where it was: the reward is invariant, but no fit of it is exact, and the states visited differ."""

    class Paid(Walk):
        def step(self, action: Any) -> Any:
            old = self.x
            seen, _, ended, truncated, info = super().step(action)
            return seen, -abs(old), ended, truncated, info

    found = results(lambda: Paid(wind=0.5), samples=2000)
    assert found["transition"].verdict == found["reward"].verdict == "failed"
    assert "SYM056" in [cause.code for cause in found["reward"].causes]
    assert "SYM056" not in [cause.code for cause in found["transition"].causes]
    alone = results(lambda: Walk(paid=2.0), samples=2000)
    assert alone["reward"].verdict == "failed"
    assert "SYM056" not in [cause.code for cause in alone["reward"].causes]


@pytest.mark.parametrize("make", [Walk, Open])
def test_a_part_that_holds_is_passed_on_all_samples_whatever_else_is_refuted(make: type[Walk]) -> None:
    broken, sound = results(lambda: make(wind=1.0), samples=2000, seed=1), results(make, samples=2000, seed=1)
    assert broken["transition"].verdict == "failed"
    for part in ("reward", "termination"):
        assert broken[part].verdict == "passed", broken[part].detail
        assert broken[part].bound is not None
        # Episodes of the two runs differ in length, so that their number does by a little.
        assert broken[part].checked == pytest.approx(sound[part].checked, rel=0.1)
    assert all(one.verdict in ("passed", "proved") for one in sound.values())


@pytest.mark.parametrize("make", [Walk, Open])
def test_failing_fast_leaves_undecided_what_it_did_not_decide(make: type[Walk]) -> None:
    slow, fast = (results(lambda: make(wind=1.0), samples=3000, fail_fast=fast) for fast in (False, True))
    assert fast["transition"].verdict == "failed"
    assert fast["transition"].checked < slow["transition"].checked / 2
    for part in ("reward", "termination", "initial"):
        assert fast[part].verdict == "undecided"
        assert fast[part].reason == Statement("fail_fast")
        assert fast[part].bound is None


def test_pairs_that_repeat_stop_at_the_first_violation_when_failing_fast() -> None:
    fast = results(lambda: Repeating(paid=0.1), samples=4000, fail_fast=True)
    assert fast["reward"].verdict == "failed"
    assert 0 < fast["reward"].violations <= fast["reward"].checked == 500
    assert fast["transition"].verdict == fast["initial"].verdict == "undecided"
    again = results(lambda: Repeating(paid=0.1), samples=4000, fail_fast=True)
    assert again["reward"].counterexample == fast["reward"].counterexample


@pytest.mark.parametrize("make", [Walk, Open, Repeating])
def test_a_correct_environment_is_checked_as_far_when_failing_fast(make: type[Walk]) -> None:
    slow, fast = (results(make, samples=1000, fail_fast=fast, seed=1) for fast in (False, True))
    assert {part: (one.verdict, one.checked) for part, one in fast.items()} == {
        part: (one.verdict, one.checked) for part, one in slow.items()
    }
    assert all(one.verdict in ("passed", "proved") for one in fast.values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fail_fast": "yes"}, "--fail-fast: expected true or false, got 'yes'"),
        ({"fail_fast": True, "accept_gap": 1.0}, "--fail-fast with --accept-gap"),
    ],
)
def test_options_that_exclude_failing_fast_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        EnvOptions(**given)


def test_failing_fast_at_the_prompt_exits_with_one_and_can_be_replayed(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from symcheck.cli.main import app

    spec, report = tmp_path / "wrong.toml", tmp_path / "r.json"
    spec.write_text('name = "wrong"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, 1, -1]]\naction = [[1, 0]]\n')
    words = ["verify-env", "CartPole-v1", "--symmetry", str(spec), "--discount", "0.9"]
    ran = CliRunner().invoke(app, [*words, "--fail-fast", "--json", str(report)])
    assert ran.exit_code == 1, ran.output
    assert "--fail-fast" in ran.output
    replayed = CliRunner().invoke(app, ["replay", str(report), "--trust"])
    assert replayed.exit_code == 1, replayed.output
    (tmp_path / "b.toml").write_text("")
    refused = CliRunner().invoke(app, [*words, "--fail-fast", "--baseline", str(tmp_path / "b.toml")])
    assert refused.exit_code == 2, refused.output


@pytest.mark.long
def test_what_is_no_distribution_is_decided_on_the_pairs_there_are_where_sampling_stopped_early() -> None:
    report = verify_env("Blackjack-v1", "blackjack/hit-and-stick", seed=1)
    seen = report["observation_equivariance"]
    assert report["transition_invariance"].verdict == "failed"
    assert "sampling_stopped" in [note.code for note in report["transition_invariance"].notes]
    assert (seen.verdict, seen.checked) == ("passed", report["transition_invariance"].checked)
