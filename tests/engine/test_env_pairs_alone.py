"""Evidence from pairs by itself: hidden losses, compared rows, suspects and bounds, each limit from both sides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symcheck.engine.environments.cases.pairs import Comparison
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.methods import paired, second_look
from symcheck.engine.environments.methods.paired import PairedEvidence, _Examined
from symcheck.engine.environments.methods.second_look import MOST_LOOKED_AT, SecondLook, Suspects
from symcheck.engine.statistics import largest_fraction
from symcheck.envs.stepping.step_differences import FAR_ABOVE
from symcheck.spaces.coordinates import Coordinates
from symcheck.statements.statement import state
from symcheck.verdict import MOST_SWAMPED

RNG = np.random.default_rng
NAN, INF = float("nan"), float("inf")
NONE: Any = None


def comparison(part: Any, expected: Any, actual: Any, epsilon: float = 2.0**-24) -> Comparison:
    left, right = np.asarray(expected, float), np.asarray(actual, float)
    ones = np.ones(left.shape[1])
    names = tuple(f"x[{j}]" for j in range(len(ones)))
    return Comparison(part, Coordinates(names, epsilon * ones, 0 * ones, -INF * ones, INF * ones), left, right)


def evidence(**more: Any) -> Any:
    """Evidence that was made without an environment."""
    made: Any = object.__new__(PairedEvidence)
    fields: dict[str, Any] = {"_random": False, "_examined": {}, "_diagnose": True, "_compare_distributions": None}
    for name, item in (fields | more).items():
        setattr(made, name, item)
    return made


def examined(
    residual: Any,
    limits: Any,
    suspects: Suspects,
    *,
    tie: Any = None,
    hidden: int = 0,
    excluded: float = 0.0,
    part: Any = "transition",
    swamped: Any = (False,),
) -> _Examined:
    residual, limits = np.atleast_2d(np.asarray(residual, float)), np.atleast_2d(np.asarray(limits, float))
    sides = comparison(part, np.zeros_like(residual), residual)
    return _Examined(sides, residual, limits, suspects, tie, np.array(swamped), excluded, hidden)


def test_a_pair_refutes_unless_setting_a_state_loses_as_much() -> None:
    def refutes(suspects: Suspects, **more: Any) -> bool:
        return examined([0.0], [0.0], suspects, **more).refuted

    assert refutes(Suspects(confirmed=[1]))
    assert not refutes(Suspects(confirmed=[1]), hidden=1)
    assert refutes(Suspects(), tie=object())
    assert not refutes(Suspects(rounding=[1], unrepeatable=[2], unseen=[3]))


@pytest.mark.parametrize("loss", [0.5, 0.0])
def test_violations_are_hidden_within_a_multiple_of_the_loss_in_every_coordinate(loss: float) -> None:
    limits = np.full((3, 2), 0.1)

    def hidden(
        residual: Any, confirmed: list[int], part: Any = "transition", touched: Any = ("transition", "reward")
    ) -> int:
        lost = SimpleNamespace(of=lambda part, dim: np.full(dim, loss), ends=0.0)
        made = evidence(bench=SimpleNamespace(loss=lost, touched=touched))
        residual = np.asarray(residual, float)
        counted: int = made._count_hidden(
            comparison(part, residual * 0, residual), residual, limits, Suspects(confirmed=confirmed)
        )
        return counted

    most = 0.1 + FAR_ABOVE * loss
    assert hidden([[most, most], [0, 0], [most, 0]], [0, 2]) == 2
    assert hidden([[most * 1.01, 0], [0, 0], [0, 0]], [0]) == 0
    assert hidden([[0, most * 1.01], [0, 0], [most, 0]], [0, 2]) == 0
    assert hidden([[NAN, 0], [0, 0], [0, 0]], [0]) == 0
    assert hidden([[most, most], [9, 9], [0, 0]], [0]) == 1
    assert hidden([[most, most], [0, 0], [0, 0]], []) == 0
    assert hidden([[most, most], [0, 0], [0, 0]], [0], touched=("reward",)) == 0
    assert (
        evidence(bench=SimpleNamespace(loss=None, touched=("reward",)))._count_hidden(
            comparison("reward", [[0.0]], [[1.0]]), np.ones((1, 1)), np.zeros((1, 1)), Suspects(confirmed=[0])
        )
        == 0
    )


@pytest.mark.parametrize("ends", [0.0, 0.01])
def test_other_ends_are_hidden_up_to_a_multiple_of_their_share(ends: float) -> None:
    limit = FAR_ABOVE * max(ends, paired._RARELY_SEEN)
    residual = np.ones((100_000, 1))
    made = evidence(bench=SimpleNamespace(loss=SimpleNamespace(ends=ends), touched=("termination",)))
    sides = comparison("termination", residual * 0, residual)
    for count, kept in ((int(limit * 1e5 * 0.99), True), (int(limit * 1e5 * 1.01) + 1, False)):
        suspects = Suspects(confirmed=list(range(max(count, 1))))
        assert made._count_hidden(sides, residual, residual * 0, suspects) == (len(suspects.confirmed) if kept else 0)


def sample(largest: Any = (), **more: Any) -> Any:
    tally = SimpleNamespace(
        largest=np.asarray(largest, float), limits=np.full(len(largest), 0.3), worst=np.zeros(0), not_asked=0
    )
    return SimpleNamespace(tally=lambda part: tally, **more)


def test_rows_that_rounding_explains_are_left_out_of_the_largest_residual() -> None:
    residual, limits = [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], np.full((3, 2), 0.5)

    def rows(suspects: Suspects, largest: Any = (), *, random: bool = False) -> list[float]:
        made = evidence(sample=sample(largest), _random=random)
        kept, tolerances = made._compared_rows(examined(residual, limits, suspects))
        assert kept.shape == tolerances.shape
        first: list[float] = kept[:, 0].tolist()
        return first

    assert rows(Suspects()) == [1.0, 2.0, 3.0]
    assert rows(Suspects(rounding=[2])) == [1.0, 2.0]
    assert rows(Suspects(rounding=[0, 1, 2])) == [1.0, 2.0, 3.0]
    assert rows(Suspects(confirmed=[1], rounding=[2])) == [1.0, 2.0]
    assert rows(Suspects(confirmed=[1], rounding=[2]), random=True) == [2.0]
    assert rows(Suspects(confirmed=[1], unrepeatable=[0])) == [2.0]
    assert rows(Suspects(unrepeatable=[0]), random=True) == [1.0, 2.0, 3.0]
    assert rows(Suspects(), [7.0, 0.0]) == [1.0, 2.0, 3.0, 7.0]
    assert rows(Suspects(), [7.0]) == [1.0, 2.0, 3.0]


def test_a_caution_concerns_the_properties_that_it_touches_and_tells_what_is_hidden() -> None:
    caution = state("SYM056", pairs=3)
    made = evidence(bench=SimpleNamespace(caution=caution, touched=("transition",)))
    assert made._caution(examined([0.0], [0.0], Suspects())) == caution
    assert made._caution(examined([0.0], [0.0], Suspects(), part="reward")) is None
    told = made._caution(examined([0.0], [0.0], Suspects(confirmed=[0]), hidden=1))
    assert dict(told.fields) == {"pairs": 3, "hidden": 1, "times": FAR_ABOVE}
    assert (
        evidence(bench=SimpleNamespace(caution=None, touched=("transition",)))._caution(
            examined([0.0], [0.0], Suspects(), hidden=1)
        )
        is None
    )


def test_too_many_swamped_pairs_are_told_where_nothing_is_refuted() -> None:
    most = MOST_SWAMPED
    given = {
        "reward": examined([0.0], [0.0], Suspects(), excluded=most),
        "transition": examined([0.0], [0.0], Suspects(), excluded=most * 1.01),
        "termination": examined([0.0], [0.0], Suspects(confirmed=[0]), excluded=1.0),
    }
    made = evidence(_examined=given)
    assert made.swamped(tuple(given)) == {"transition": most * 1.01}
    assert made.refutes(["termination"])
    assert not made.refutes(["reward", "transition"])
    made.sample = sample()
    made.sample.tally(NONE).worst = np.array([4.0, 6.0])
    made._examined["reward"] = examined([[1.0, 3.0]], [0.0, 0.0], Suspects())
    assert made._largest("reward") == 6.0
    assert made._largest("reward", np.array([1.0, 3.0])) == 4.0
    assert made._largest("reward", np.array([0.0, 100.0])) == 4.0


def test_suspects_stand_for_those_that_were_not_examined() -> None:
    rounding = list(range(MOST_LOOKED_AT))
    assert Suspects(rounding=rounding).representative
    assert not Suspects(rounding=rounding[1:]).representative
    assert not Suspects(rounding=rounding, confirmed=[0]).representative
    assert not Suspects(rounding=rounding, unrepeatable=[0]).representative
    assert Suspects(confirmed=[1], rounding=[2]).speak_for_violations
    assert not Suspects(confirmed=[1], rounding=[2, 3]).speak_for_violations
    assert not Suspects(confirmed=[1], unrepeatable=[2]).speak_for_violations
    assert Suspects().largest_violating_fraction(100, 0.01) == largest_fraction(0, 100, 0.01)
    told = Suspects(rounding=rounding, unseen=[1] * 200).largest_violating_fraction(10_000, 0.01)
    assert told == largest_fraction(800, 10_000, 0.005) * largest_fraction(0, 300, 0.005)
    assert Suspects(rounding=rounding, unseen=[1] * 200).largest_violating_fraction(700, 0.01) == (
        largest_fraction(700, 700, 0.005) * largest_fraction(0, 300, 0.005)
    )


def test_the_worst_suspects_alternate_with_random_ones() -> None:
    residual = np.array([[0.0, 5.0], [0.3, 0.0], [0.05, 0.1], [0.0, NAN], [9.0, 0.0], [0.2, 0.0]])
    limits = np.full((6, 2), 0.1)
    drawn = [second_look._worst_and_random(residual, limits, RNG(seed)) for seed in range(5)]
    worst = [4, 0, 1, 5, 3]
    for rows in drawn:
        assert sorted(rows) == sorted(worst)
        assert all(set(worst[:k]) <= set(rows[: 2 * k]) for k in range(1, 6))
        assert rows[0] == 4
    assert len({tuple(rows) for rows in drawn}) > 1
    assert second_look._worst_and_random(residual[2:3], limits[2:3], RNG(0)) == []
    exact = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert set(second_look._worst_and_random(exact, exact * 0, RNG(0))) == {0, 1}
    many = np.arange(1.0, 101.0)[:, None]
    order = second_look._worst_and_random(many, np.full((100, 1), 0.5), RNG(0))
    assert len(order) == len(set(order)) == 100
    assert (order[0], sum(row >= 80 for row in order[:40]) >= 20) == (99, True)


class Repeating:
    """Pairs whose sides differ by a residual, and from themselves by a drift; nudges move them by an effect."""

    def __init__(self, residual: Any, drift: Any, effect: Any) -> None:
        self.residual, self.drift, self.effect = (
            np.asarray(item, float)[:, None] for item in (residual, drift, effect)
        )
        self.measured: list[int] = []

    def measure(self, cases: list[int]) -> Any:
        self.measured.append(len(cases))
        return cases

    def comparison(self, part: Any, cases: Any) -> Comparison:
        rows = list(cases)
        return comparison(part, self.drift[rows], self.residual[rows] + self.drift[rows])

    def of(self, some: Comparison, nudge: Any = 0.0) -> Any:
        return np.full_like(some.expected, 0.01)

    def tolerance_up_to(self, sought: Any, some: Any, plain: Any, rng: Any) -> Any:
        return np.maximum(0.01, self.effect[list(plain)])

    def sorted_by(self, *, random: bool = False) -> Suspects:
        rows = len(self.residual)
        sides = comparison("reward", np.zeros((rows, 1)), self.residual)
        measured: Any = SimpleNamespace(cases=list(range(rows)))
        look = SecondLook(self, self, random)  # type: ignore[arg-type]
        return look.sort(measured, sides, self.residual, np.full((rows, 1), 0.01), RNG(0))


def test_a_violation_repeats_and_exceeds_the_effect_of_a_nudge() -> None:
    pairs = Repeating([1.0, 1.0, 1.0, 1.0, 0.005], [0.0, 0.02, 0.0, 0.009, 0.0], [0.0, 0.0, 2.0, 0.0, 0.0])
    told = pairs.sorted_by()
    assert sorted(told.confirmed) == [0, 3]
    assert (told.rounding, told.unrepeatable, told.unseen) == ([2], [1], [])
    assert sum(pairs.measured) == 4 + 2 + 2  # what repeats is stepped three times
    for residual, drift, confirmed in ((0.037, 0.009, True), (0.035, 0.009, False)):
        assert bool(Repeating([residual], [drift], [0.0]).sorted_by().confirmed) is confirmed
    some = Repeating([1.0, 1.0], [0.0, 0.0], [0.0, 2.0])
    told = some.sorted_by(random=True)
    assert (told.confirmed, told.rounding) == ([0], [1])
    assert len(some.measured) == 16


@pytest.mark.parametrize(("times", "confirmed"), [(0.95, False), (1.15, True)])
@pytest.mark.parametrize("sum_of", [0.0, 3e5])
def test_random_pairs_may_differ_by_the_float32_rounding_of_what_they_sum_up(
    sum_of: float, times: float, confirmed: bool
) -> None:
    values = np.append(np.linspace(1e5, 1.1e5, 40), sum_of)[:, None]
    apart = np.zeros_like(values)
    apart[-1] = times * second_look._SINGLE * max(sum_of, 1e5)  # a sum that vanishes rounds as its terms do
    pairs: Any = Repeating(apart[:, 0], [0.0] * 41, [0.0] * 41)
    pairs.comparison = lambda part, cases: comparison(part, values[list(cases)], (values + apart)[list(cases)])
    pairs.of = lambda some, nudge=0.0: np.full_like(some.expected, 1e-9)
    pairs.tolerance_up_to = lambda sought, some, plain, rng: np.full_like(some.expected, 1e-9)
    measured: Any = SimpleNamespace(cases=list(range(41)))
    told = SecondLook(pairs, pairs, True).sort(
        measured, comparison("reward", values, values + apart), apart, np.full((41, 1), 1e-9), RNG(0)
    )
    assert (told.confirmed, told.rounding) == (([40], []) if confirmed else ([], [40]))


def test_enough_confirmed_violations_end_the_second_look() -> None:
    told = Repeating([1.0] * 60, [0.0] * 60, [0.0] * 60).sorted_by()
    assert (len(told.confirmed), len(told.unseen)) == (24, 36)
    rounding = Repeating([1.0] * 700, [0.0] * 700, [2.0] * 700).sorted_by()
    assert (len(rounding.rounding), len(rounding.unseen)) == (600, 100)
    assert SecondLook(NONE, NONE).repeats == 3
    assert SecondLook(NONE, NONE, random=True).repeats == 16


def bench(**more: Any) -> Workbench:
    fields: dict[str, Any] = dict.fromkeys(("pairs", "pool", "options", "emit", "clock", "budget"))
    return Workbench(**(fields | {"words": ((0,),)} | more))


def test_a_claim_moves_if_an_action_an_observation_or_a_state_changes() -> None:
    def moved(
        observation: Any = None, action: Any = None, held: Any = None, kind: Any = "map", visits: bool = True
    ) -> bool:
        def same(x: Any) -> Any:
            return x

        situation = SimpleNamespace(obs=1, state=5)
        bound = SimpleNamespace(
            observation=lambda word, obs: (observation or same)(obs), action=lambda word, a, obs: (action or same)(a)
        )
        placement = SimpleNamespace(kind=kind, image=lambda word, s: SimpleNamespace(state=(held or same)(s.state)))
        pool = SimpleNamespace(
            visits=[SimpleNamespace(action=2, situation=situation)] if visits else [], situations=[situation]
        )
        return bench(pairs=SimpleNamespace(bound=bound, placement=placement), pool=pool).moved

    def other(x: Any) -> Any:
        return x + 1

    assert not moved()
    assert moved(observation=other)
    assert moved(action=other)
    assert not moved(action=other, visits=False)
    assert moved(held=other)
    assert not moved(held=other, kind=None)


def test_a_workbench_knows_its_streams_levels_and_coordinates() -> None:
    options = SimpleNamespace(seed=3, fail_fast=False)
    made = bench(options=options)
    assert made.rng("a").integers(1 << 60) == made.rng("a").integers(1 << 60) != made.rng("b").integers(1 << 60)
    assert bench(options=SimpleNamespace(seed=4)).rng("a").integers(1 << 60) != made.rng("a").integers(1 << 60)
    budget = SimpleNamespace(smallest=1e-3, level=lambda name, word: 0.5)
    assert bench(options=options, budget=budget).judged_at("reward", (0,), 1e-4) == 0.5
    fast = bench(options=SimpleNamespace(seed=3, fail_fast=True), budget=budget)
    assert [fast.judged_at("reward", (0,), p) for p in (1e-3, 1.1e-3)] == [1e-3, 0.5]
    pool = SimpleNamespace(silent_coordinates=lambda codec, starts: ("starts",) if starts else ("all",))
    quiet = bench(
        pool=pool,
        pairs=SimpleNamespace(stepper=SimpleNamespace(codec=None), bound=SimpleNamespace(compared_words=((1,),))),
    )
    assert [quiet.silent(part) for part in ("reward", "termination", "transition", "start")] == [
        (),
        (),
        ("all",),
        ("starts",),
    ]
    assert quiet.comparing().words == ((1,),)
    caution: Any = object()
    ends: Any = frozenset(["termination"])
    assert bench(caution=caution, touched=ends).touches_ends_only
    assert not bench(touched=ends).touches_ends_only
    assert not bench(caution=caution).touches_ends_only
    told: list[Any] = []
    bench(emit=told.append).progress("playing")(3, 9)
    assert (told[0].done, told[0].total, told[0].what) == (3, 9, "playing")


def test_a_bound_is_on_changes_or_on_the_share_of_pairs_that_differ() -> None:
    region: Any = state("region_episodes", episodes=1)

    def bound(change: float, shift: float = 0.5) -> dict[str, Any]:
        detectable: Any = SimpleNamespace(change=change, shift=shift)
        return shift_bound(detectable, 200, 0.01, unit="units", region=region)

    assert bound(2.0) == {
        "kind": "mean_shift",
        "value": 2.0,
        "shift": 0.5,
        "unit": "units",
        "confidence": 0.9,
        "region": region,
    }
    assert {name: bound(INF).get(name) for name in ("kind", "value", "shift")} == {
        "kind": "mean_shift",
        "value": 0.5,
        "shift": None,
    }
    for change in (0.0, NAN):
        assert bound(change) == {
            "kind": "violation_fraction",
            "value": largest_fraction(0, 200, 0.01),
            "confidence": 0.99,
            "region": region,
        }
