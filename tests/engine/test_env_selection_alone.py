"""Method selection by itself: for every kind of environment and every request, which method, why, and what is noted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from worlds_with_settings import MIRROR, Point, Settable, bench_of

from symcheck.engine.clock import Clock, TimeUp
from symcheck.engine.environments.controls.determinism import DeterminismCheck
from symcheck.engine.environments.methods import selection
from symcheck.engine.environments.methods.distribution import DistributionEvidence
from symcheck.engine.environments.methods.exact import TabularEvidence
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.selection import Chosen, NoEvidence, choose_method
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence
from symcheck.engine.environments.methods.whole_episodes import WholeEpisodes
from symcheck.engine.equations import STEP_PARTS
from symcheck.errors import OptionError
from symcheck.groups import catalog
from symcheck.statements.statement import state
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import ReasonCode

ANY: Any = None


class Table(gym.Env[Any, Any]):
    """A corridor of three cells with known probabilities; its steps may contradict them."""

    observation_space, action_space = spaces.Discrete(3), spaces.Discrete(2)
    P = {s: {a: [(1.0, min(max(s + 2 * a - 1, 0), 2), 0.0, False)] for a in (0, 1)} for s in range(3)}  # noqa: RUF012

    def __init__(self, true: bool = True, start: Any = (0.5, 0.0, 0.5)) -> None:
        self.true = true
        if start is not None:
            self.initial_state_distrib = np.array(start)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = 2 * int(self.np_random.integers(2))
        return self.s, {}

    def step(self, action: Any) -> Any:
        self.s = self.P[self.s][int(action)][0][1]
        return self.s, 0.0 if self.true else 1.0, False, False, {}


FLIP = Symmetry("flip", catalog.cyclic(2), [[2, 1, 0]], [[1, 0]])


def choose(make: Any, symmetry: Symmetry = MIRROR, **options: Any) -> Chosen:
    return choose_method(bench_of(make, symmetry, **options))


WORLDS: list[tuple[str, Any, Any, dict[str, Any], type, str]] = [
    ("a table", Table, FLIP, {}, TabularEvidence, "method_exact"),
    ("a table, asked", Table, FLIP, {"method": "exact"}, TabularEvidence, "method_exact"),
    ("a table, whole episodes", Table, FLIP, {"method": "trajectory"}, TrajectoryEvidence, "method_trajectory"),
    ("states", Settable, MIRROR, {}, PairedEvidence, "method_paired"),
    ("states, pairs", Settable, MIRROR, {"method": "paired"}, PairedEvidence, "method_paired"),
    ("states, laws", Settable, MIRROR, {"method": "distribution"}, DistributionEvidence, "method_distribution"),
    ("states, whole episodes", Settable, MIRROR, {"method": "trajectory"}, TrajectoryEvidence, "method_trajectory"),
    ("noise", lambda: Settable(noise=0.1), MIRROR, {}, DistributionEvidence, "method_distribution"),
    ("black box", Point, MIRROR, {}, TrajectoryEvidence, "method_trajectory"),
    ("a clock", lambda: Settable(late=0.5), MIRROR, {}, WholeEpisodes, "method_paired"),
    ("a clock, laws", lambda: Settable(late=0.5), MIRROR, {"method": "distribution"}, WholeEpisodes,
     "method_distribution"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "symmetry", "options", "kind", "code"), [w[1:] for w in WORLDS],
                         ids=[w[0] for w in WORLDS])  # fmt: skip
def test_the_strongest_method_that_applies_is_chosen(
    make: Any, symmetry: Any, options: Any, kind: type, code: str
) -> None:
    chosen = choose(make, symmetry, **options)
    assert type(chosen.evidence) is kind
    assert chosen.reason.code == code
    assert chosen.remarks == {}
    assert chosen.bench.pool.situations


def test_random_outcomes_are_not_compared_pair_by_pair() -> None:
    chosen = choose(lambda: Settable(noise=0.1), method="paired")
    assert isinstance(chosen.evidence, NoEvidence)
    assert (chosen.evidence.method, chosen.reason.code) == ("paired", ReasonCode.OUTCOMES_RANDOM.value)
    judged = chosen.evidence.judge("reward_invariance", "reward")
    assert (judged.verdict, judged.checked, judged.method) == ("undecided", 0, "paired")
    assert judged.reason is not None
    assert judged.reason.code == ReasonCode.OUTCOMES_RANDOM.value
    assert NoEvidence(chosen.reason).method == "none"


@pytest.mark.parametrize(
    ("make", "symmetry", "method", "message"),
    [
        (Point, MIRROR, "paired", "--method paired must set the state of the environment"),
        (Point, MIRROR, "distribution", "--method distribution must set the state of the environment"),
        (Settable, MIRROR, "exact", "which this environment does not provide\\."),
        (
            lambda: Table(true=False),
            FLIP,
            "exact",
            "provide: action . in state . led to state . with reward 1, to which",
        ),
    ],
)
def test_a_requested_method_that_does_not_apply_is_an_error(
    make: Any, symmetry: Any, method: str, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        choose(make, symmetry, method=method)


def test_a_table_that_steps_contradict_is_not_used() -> None:
    assert not isinstance(choose(lambda: Table(true=False), FLIP).evidence, TabularEvidence)


@pytest.mark.parametrize(("start", "verdict"), [((0.5, 0.0, 0.5), "proved"), ((0.6, 0.0, 0.4), "failed"),
                                                (None, "undecided")])  # fmt: skip
def test_the_start_distribution_of_a_table_is_that_of_the_environment(start: Any, verdict: str) -> None:
    evidence: Any = choose(lambda: Table(start=start), FLIP).evidence
    assert evidence.judge_start("initial_invariance").verdict == verdict
    assert evidence.judge("transition_invariance", "transition").verdict == "proved"


def test_pairs_of_an_inexact_clock_are_judged_with_a_caution() -> None:
    chosen = choose(lambda: Settable(late=0.5))
    assert chosen.bench.caution is not None
    assert chosen.bench.loss is not None
    assert "transition" in chosen.bench.touched
    exact = choose(Settable)
    assert (exact.bench.caution, exact.bench.loss) == (None, None)
    assert exact.bench.touched == frozenset(STEP_PARTS)
    assert exact.reason.fields["inexact"] == []


def test_fail_fast_stops_pairs_at_a_violation_and_compares_no_distributions() -> None:
    plain: Any = choose(Settable).evidence
    fast: Any = choose(Settable, fail_fast=True).evidence
    assert plain.sample._enough is None
    assert fast.sample._enough is not None
    assert plain._compare_distributions is not None
    assert fast._compare_distributions is None
    assert choose(Settable, method="paired").evidence._compare_distributions is None  # type: ignore[attr-defined]


def test_distributions_for_rare_randomness_reset_before_every_state() -> None:
    chosen: Any = choose(Settable)
    assert not chosen.bench.pairs.stepper.reset_first
    evidence = chosen.evidence._compare_distributions(frozenset({"reward"}))
    assert chosen.bench.pairs.stepper.reset_first
    assert evidence._repeating == {"reward"}


def test_parts_that_repeat_are_compared_pair_by_pair_beside_random_ones() -> None:
    class NoisyReward(Settable):
        def step(self, action: Any) -> Any:
            obs, reward, *rest = super().step(action)
            return obs, reward + self.np_random.normal(), *rest

    evidence: Any = choose(NoisyReward).evidence
    assert evidence._repeating == {"transition", "termination"}


def test_laws_that_were_asked_for_replace_the_pairs_of_next_states_only() -> None:
    evidence: Any = choose(Settable, method="distribution").evidence
    assert evidence._repeating == {"reward", "termination"}


@pytest.mark.parametrize(
    ("behaviour", "caution", "method", "expected"),
    [
        ("stochastic", None, "auto", ["compared", "distribution"]),
        ("stochastic", "why", "auto", ["distribution"]),
        ("stochastic", None, "paired", ["paired"]),
        ("stochastic", None, "distribution", ["compared", "distribution"]),
        ("deterministic", None, "auto", ["paired"]),
        ("deterministic", None, "distribution", ["distribution"]),
        ("deterministic", "why", "paired", ["paired"]),
        ("leaky", None, "auto", []),
        ("leaky", None, "distribution", []),
    ],
)
def test_the_determinism_check_chooses_between_pairs_and_distributions(
    behaviour: Any, caution: Any, method: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    finding = state("control_random")
    check = DeterminismCheck(behaviour, finding, None if caution is None else finding, reset_first=True)

    def note(name: str) -> Any:
        def call(*told: Any) -> Any:
            called.append(name)
            return None

        return call

    monkeypatch.setattr(selection, "check_determinism", lambda stepper, pool, rng: check)
    monkeypatch.setattr(selection, "own_cuts", lambda *told: "cuts")
    monkeypatch.setattr(selection, "compare_in_distribution", note("compared"))
    monkeypatch.setattr(selection, "_choose_distribution", note("distribution"))
    monkeypatch.setattr(selection, "_choose_paired", note("paired"))
    bench = bench_of(Settable, method=method)
    chosen = selection._with_setting(bench, np.random.default_rng(0), ANY)
    assert called == expected
    assert bench.pairs.own_cuts == "cuts"
    assert bench.pairs.stepper.reset_first
    if behaviour == "leaky":
        assert isinstance(chosen.evidence, NoEvidence)
        assert chosen.reason is chosen.evidence.why is finding


@pytest.mark.parametrize(("before", "after", "behaviour", "again"), [
    (False, True, "deterministic", True), (True, True, "deterministic", False), (False, False, "deterministic", False),
    (False, True, "stochastic", False)])  # fmt: skip
def test_states_are_gathered_again_if_only_a_reset_makes_setting_work(
    before: bool, after: bool, behaviour: Any, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = DeterminismCheck(behaviour, state("control_random"), state("control_random"), reset_first=after)
    monkeypatch.setattr(selection, "check_determinism", lambda stepper, pool, rng: check)
    monkeypatch.setattr(selection, "own_cuts", lambda *told: None)
    monkeypatch.setattr(selection, "_gather_states", lambda bench, rng: "new")
    pools: list[Any] = []
    monkeypatch.setattr(selection, "_choose_paired", lambda bench, check, start: pools.append(bench.pool))
    monkeypatch.setattr(selection, "_choose_distribution", lambda bench, check, start: pools.append(bench.pool))
    bench = bench_of(Settable)
    bench.pairs.stepper.reset_first = before
    selection._with_setting(bench, np.random.default_rng(0), ANY)
    assert (pools == ["new"]) is again


@pytest.mark.parametrize(
    ("slots", "share", "differs", "remark"),
    [
        (False, 0.0, ("reward", 7), {"reward": 7}),
        (False, 0.0, None, {}),
        (False, 0.0, TimeUp(), {}),
        (False, 0.11, ("reward", 7), {}),
        (True, 0.0, ("reward", 7), {}),
        (True, 0.11, ("reward", 7), {}),
    ],
)
def test_episodes_of_one_seed_are_compared_in_the_first_tenth_of_the_time(
    slots: bool, share: float, differs: Any, remark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slots:
        pass

    asked: list[Any] = []

    def first_difference(stepper: Any, rng: Any) -> Any:
        asked.append(stepper)
        if isinstance(differs, BaseException):
            raise differs
        return differs

    monkeypatch.setattr(selection, "SlotStepper", Slots)
    monkeypatch.setattr(selection, "first_difference", first_difference)
    stepper: Any = Slots() if slots else SimpleNamespace()
    bench: Any = SimpleNamespace(
        pairs=SimpleNamespace(stepper=stepper),
        in_time=lambda allowed: share < allowed,
        rng=lambda name: np.random.default_rng(0),
    )
    remarks = selection._remark_on_seeds(bench)
    assert {part: note.fields["number"] for part, note in remarks.items()} == remark
    assert len(asked) == (not slots and share < 0.1)


@pytest.mark.parametrize(
    ("dim", "settable", "asked", "samples"),
    [(2, True, 4_000_000, 3_000_000), (2, True, 1_000, 1_000), (16, False, 4_000_000, 3_000_000),
     (8, False, 9_000_000, 6_000_000), (3_000_001, True, 50, 1), (48_000_001, False, 50, 1)],
)  # fmt: skip
def test_samples_are_limited_by_the_numbers_that_are_stored(
    dim: int, settable: bool, asked: int, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        selection,
        "Placement",
        lambda stepper, bound: (
            setattr(stepper.codec, "coordinates", SimpleNamespace(dim=dim))
            or SimpleNamespace(kind="observation" if settable else None, access=SimpleNamespace(observe=None))
        ),
    )
    monkeypatch.setattr(selection, "Pairs", lambda *told: SimpleNamespace(stepper=told[0], placement=told[1]))
    assert bench_of(Settable, samples=asked).options.samples == samples


def test_a_workbench_has_the_options_the_clock_and_the_generators_of_the_claim() -> None:
    clock = Clock(budget_s=1000.0)
    bench = bench_of(Settable, clock=clock, alpha=0.02, seed=5)
    assert bench.clock is clock
    assert bench.pairs.stepper.check_time == clock.check
    assert bench_of(Settable).pairs.stepper.check_time != clock.check
    assert (bench.options.alpha, bench.options.seed, bench.words) == (0.02, 5, ((0,),))
    assert bench.pool.situations == []
    drawn = [bench_of(Settable, seed=seed).pairs.stepper.env.action_space.sample() for seed in (3, 3)]
    assert drawn[0] == drawn[1]
    first = [bench_of(Settable, seed=s).pairs.stepper.env.action_space.sample() for s in range(12)]
    assert len(set(map(int, first))) == 2
