"""Screens by themselves: which states they draw, what they count, and which pairs the environment steps again."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from worlds_with_settings import Settable, bench_of

from symcheck.engine.environments.methods import pair_sample
from symcheck.engine.environments.methods.pair_sample import PairSample
from symcheck.engine.environments.methods.screen import Screen, Tally, _worst_and_random, agrees, applicable
from symcheck.engine.environments.methods.selection import _gather_states
from symcheck.engine.environments.subject.placement import Situation
from symcheck.engine.options import DEFAULT_SAMPLES
from symcheck.envs.models.model import BatchModel, Transitions

RNG = np.random.default_rng
ANY: Any = None


def model_of(wind: Any = 0.0, *, ended: Any = None, reward: float = 0.0, state_showing: Any = None) -> BatchModel:
    """The batched form of `Settable`, with faults."""

    def step(states: Any, actions: Any) -> Transitions:
        push = np.where(actions == 1, 0.1, -0.1) + (wind(states) if callable(wind) else wind)
        speed = 0.9 * states[:, 1] + push
        place = states[:, 0] + speed
        after = np.stack([place, speed], axis=1)
        return Transitions(after, after.copy(), -np.abs(place) + reward, np.abs(place) > 2)

    return BatchModel(
        "a formula",
        step,
        lambda states: states.copy(),
        ended or (lambda states: np.abs(states[:, 0]) > 2),
        state_showing,
    )


def gather_bench(samples: int = 300, **options: Any) -> Any:
    bench = bench_of(Settable, samples=samples, **options)
    return dataclasses.replace(bench, pool=_gather_states(bench, RNG(1)))


@pytest.fixture(scope="module")
def bench() -> Any:
    return gather_bench()


@pytest.fixture(scope="module")
def sample(bench: Any) -> PairSample:
    made = PairSample(bench)
    assert made.drawn.cases
    return made


def screen_of(bench: Any, sample: PairSample, model: BatchModel) -> Screen:
    return Screen(bench, model, sample.tolerance, sample.drawn)


def test_a_batched_form_agrees_if_every_number_of_both_sides_does(sample: PairSample) -> None:
    assert agrees(model_of(), sample.drawn)
    assert not agrees(model_of(1e-12), sample.drawn)
    assert not agrees(model_of(reward=1e-12), sample.drawn)
    # A difference on the image side alone, in states that no left side has.
    left = {float(case.situation.state[0]) for case in sample.drawn.cases}
    images = [float(case.image.state[0]) for case in sample.drawn.cases]
    only = next(x for x in images if x not in left)
    assert not agrees(model_of(lambda states: np.where(states[:, 0] == only, 1e-9, 0.0)), sample.drawn)


def test_a_symmetric_form_has_nothing_suspicious(bench: Any, sample: PairSample) -> None:
    screened = screen_of(bench, sample, model_of()).run(20_000, lambda: True)
    assert (screened.checked, screened.suspects, screened.moved, screened.source) == (20_000, None, True, "a formula")
    for tally in screened.tallies.values():
        assert (tally.suspicious, tally.asked, tally.not_asked) == (0, 0, 0)
        assert (tally.largest <= tally.limits).all()
    assert 0 < screened.ends < 5_000
    assert screened.tallies["termination"].low.tolist() == [0.0]
    assert screened.tallies["termination"].high.tolist() == [1.0]
    assert screened.tallies["reward"].high[0] <= 0.0


def test_what_exceeds_its_tolerance_is_counted_once_a_pair_and_part(bench: Any, sample: PairSample) -> None:
    broken = model_of(lambda states: np.where(states[:, 0] > 0, 0.25, 0.0))
    screened = screen_of(bench, sample, broken).run(5_000, lambda: True)
    transition, reward = screened.tallies["transition"], screened.tallies["reward"]
    # Either side of every pair is on the windy half, unless it stands in the middle.
    assert transition.suspicious == screened.checked == 5_000
    assert transition.worst.max() == pytest.approx(0.25)
    assert transition.largest.max() == 0.0
    assert reward.worst.max() == pytest.approx(0.25)
    assert screened.suspects is not None
    # At most 48 a batch: 5,000 pairs are one batch; each part asks for as many, and some are shared.
    assert 48 <= len(screened.suspects.cases) <= 3 * 48
    assert transition.asked == len(screened.suspects.cases)
    assert transition.not_asked == 5_000 - transition.asked
    assert {case.situation.origin for case in screened.suspects.cases} == {"screen"}


def test_time_is_asked_before_every_batch(bench: Any, sample: PairSample) -> None:
    left = iter([True, False])
    screened = screen_of(bench, sample, model_of()).run(3 * 8192, lambda: next(left))
    assert screened.checked == 8192
    assert screen_of(bench, sample, model_of()).run(100, lambda: False).checked == 0
    whole = screen_of(bench, sample, model_of()).run(8192 + 5, lambda: True)
    assert whole.checked == 8197


def test_states_are_those_of_the_run_and_longer_rollouts_that_begin_at_its_starts(
    bench: Any, sample: PairSample
) -> None:
    screen = screen_of(bench, sample, model_of())
    own = len(bench.pool.situations)
    states, region = screen._pool(own + 5_000, RNG(0))
    assert len(states) == own + 5_000
    assert region.fields["origins"] == {"own": own, "rollout": 5_000}
    assert region.fields["count"] == own + 5_000
    np.testing.assert_array_equal(states[:own], [s.state for s in bench.pool.situations])
    assert (np.abs(states[own:, 0]) <= 2).all()  # an episode that ended begins again
    few, region = screen._pool(own - 1, RNG(0))
    assert (len(few), region.fields["origins"]) == (own, {"own": own, "rollout": 0})


def test_rollouts_have_as_many_states_as_asked_and_end_with_the_time_limit(
    bench: Any, sample: PairSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = screen_of(bench, sample, model_of())
    starts = np.array([[0.5, 0.0]])
    for count, chains in ((1, 1), (399, 1), (400, 2), (100_000, 256)):
        states = screen._roll_out(starts, count, RNG(0))
        assert states.shape == (count, 2)
        assert (states[:chains] == starts).all()
        if count > chains:
            assert not (states[chains : chains + 1] == starts).all()
    assert screen._roll_out(starts, 0, RNG(0)).shape == (0, 2)
    assert screen._roll_out(np.zeros((0, 2)), 5, RNG(0)).shape == (0, 2)
    monkeypatch.setattr(type(bench.pairs.stepper), "time_limit", 3)
    again = screen._roll_out(starts, 300, RNG(0))
    begun = np.flatnonzero((again == starts).all(axis=1))
    assert set(np.diff(begun)[1:]) == {3}  # the first episode begins at a random age


def test_every_point_of_a_box_that_has_not_ended_is_drawn(bench: Any, sample: PairSample) -> None:
    asked: list[int] = []

    def draw(rng: Any, count: int) -> Any:
        asked.append(count)
        return np.stack([np.linspace(-4, 4, count), np.zeros(count)], axis=1)

    screen = screen_of(bench, sample, model_of())
    access = SimpleNamespace(box=True, sample=draw, observe=None)
    screen._placement = SimpleNamespace(access=access, kind="observation", inner=None)  # type: ignore[assignment]
    own = len(bench.pool.situations)
    states, region = screen._pool(own + 1001, RNG(0))
    assert asked == [500]
    origins = region.fields["origins"]
    assert (origins["own"], origins["rollout"]) == (own, 501)
    assert 200 <= origins["box"] <= 500
    assert (np.abs(states[-origins["box"] :, 0]) <= 2).all()
    assert len(states) == sum(origins.values())
    access.box = False
    assert "box" not in screen._pool(own + 1001, RNG(0))[1].fields["origins"]


def test_states_known_by_their_observation_are_those_that_it_shows(bench: Any, sample: PairSample) -> None:
    screen = screen_of(bench, sample, model_of(state_showing=lambda shown: shown + 10.0))
    access = SimpleNamespace(box=False, sample=None, observe=None)
    for kind, moved in (("inverse", 10.0), ("observation", 0.0)):
        screen._placement = SimpleNamespace(access=access, kind=kind, inner=None)  # type: ignore[assignment]
        states, _ = screen._pool(1, RNG(0))
        np.testing.assert_array_equal(states, np.stack([s.state for s in bench.pool.situations]) + moved)


def test_half_of_what_is_stepped_again_is_the_worst_and_half_is_random() -> None:
    rows = np.arange(100, 200)
    residual = np.zeros((100, 2))
    residual[:, 1] = np.arange(100)
    residual[3, 0], residual[5, 0] = np.inf, np.nan
    picked = _worst_and_random(rows, residual, 10, RNG(0))
    assert {103, 199, 198, 197, 196} <= set(picked)
    assert len(picked) <= 10
    assert list(picked) == sorted(set(picked))
    assert set(picked) <= set(rows)
    assert len(_worst_and_random(rows, residual, 200, RNG(0))) == 100
    others = {int(row) for seed in range(40) for row in _worst_and_random(rows, residual, 10, RNG(seed))}
    assert len(others) > 80


@pytest.mark.parametrize(
    ("space", "observation", "action", "state", "leaves", "kind", "possible"),
    [
        (spaces.Discrete(2), True, True, None, False, "map", True),
        (spaces.Box(-1, 1, (2,)), True, True, None, False, "observation", True),
        (spaces.Box(-np.inf, np.inf, (2,)), True, True, None, False, "observation", False),
        (spaces.MultiDiscrete([2, 2]), True, True, None, False, "observation", False),
        (spaces.Discrete(2), False, True, None, False, "observation", False),
        (spaces.Discrete(2), True, False, None, False, "observation", False),
        (spaces.Discrete(2), True, True, True, False, "map", True),
        (spaces.Discrete(2), True, True, False, False, "map", False),
        (spaces.Discrete(2), True, True, None, True, "observation", False),
        (spaces.Discrete(2), True, True, None, False, None, False),
    ],
)
def test_batches_need_maps_of_data_actions_as_arrays_and_images_that_stay_inside(
    space: Any, observation: bool, action: bool, state: Any, leaves: bool, kind: Any, possible: bool
) -> None:
    data = {"observation": observation, "action": action, "state": state}
    bound = SimpleNamespace(
        action_space=space, is_data=data.get, has_state=state is not None, may_leave=lambda word: leaves and word == "h"
    )
    pairs = SimpleNamespace(bound=bound, placement=SimpleNamespace(kind=kind))
    made: Any = SimpleNamespace(pairs=pairs, words=("g", "h"))
    assert applicable(made) is possible


def count_of(bench: Any, expected: Any, actual: Any, limits: Any) -> tuple[Tally, Any]:
    screen: Any = object.__new__(Screen)
    left, right = np.asarray(expected, float), np.asarray(actual, float)
    dim = left.shape[1]
    screen._sides = lambda part, batch: (left, right)
    screen._coordinates = {"transition": SimpleNamespace(residual=lambda a, b: np.abs(a - b))}
    screen._tolerance = SimpleNamespace(of=lambda comparison: np.broadcast_to(limits, comparison.expected.shape))
    tally = Tally(*(0, *np.zeros((3, dim))), low=np.full(dim, np.nan), high=np.full(dim, np.nan))
    return tally, screen._count(tally, "transition", ANY)


def test_a_batch_is_counted_by_the_largest_residual_below_and_above_the_tolerance(bench: Any) -> None:
    expected = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, np.nan]]
    actual = [[0.0, 5.0], [1.1, 5.0], [2.0, 5.5], [3.0, 6.0]]
    tally, (rows, residual) = count_of(bench, expected, actual, [0.2, 0.4])
    assert rows.tolist() == [2, 3]
    assert tally.suspicious == 2
    np.testing.assert_allclose(tally.largest, [0.1, 0.0])
    np.testing.assert_allclose(tally.limits, [0.2, 0.4])
    np.testing.assert_allclose(residual[0], [0.0, 0.5])
    np.testing.assert_array_equal(tally.low, [0.0, 5.0])
    np.testing.assert_array_equal(tally.high, [3.0, 6.0])
    at, (rows, _) = count_of(bench, expected[:2], actual[:2], [np.abs(1.1 - 1.0), 0.0])
    assert (at.suspicious, rows.tolist()) == (0, [])
    same, (rows, residual) = count_of(bench, expected[:1], actual[:1], [0.0, 0.0])
    assert (same.suspicious, rows.tolist(), residual.shape) == (0, [], (0, 2))
    every, _ = count_of(bench, expected[1:3], actual[1:3], [0.0, 0.0])
    assert (every.suspicious, every.largest.tolist(), every.limits.tolist()) == (2, [0.0, 0.0], [0.0, 0.0])


def test_cases_for_the_environment_are_limited_in_total_and_shared_between_parts() -> None:
    screen: Any = object.__new__(Screen)
    suspicious = {"reward": np.arange(0, 60), "transition": np.arange(30, 90)}
    screen._count = lambda tally, part, batch: (suspicious[part], np.ones((60, 1)))
    screen._cases = lambda batch, rows: rows.tolist()
    tallies = {"reward": Tally(), "transition": Tally()}
    picked = screen._sorted_out(tallies, ANY, RNG(0))
    assert picked == sorted(set(picked))
    for part, tally in tallies.items():
        assert tally.asked == len(set(picked) & set(suspicious[part].tolist())) >= 40
    full = {"reward": Tally(asked=600), "transition": Tally(asked=590)}
    assert 1 <= len(screen._sorted_out(full, ANY, RNG(0))) <= 10
    assert screen._sorted_out({"reward": Tally(asked=600), "transition": Tally(asked=700)}, ANY, RNG(0)) == []


class Model:
    """A batched form that agrees or not, and one screen of it."""


def screened_with(
    monkeypatch: pytest.MonkeyPatch, *, asked: int, few: int, agreeing: Any = (True, True), **more: Any
) -> tuple[Any, list[int]]:
    """The screen of a run, and the number of pairs that it was asked for."""
    counts: list[int] = []
    suspects = SimpleNamespace(cases=[0])
    result = SimpleNamespace(suspects=more.pop("suspects", suspects), checked=more.pop("checked", 7))

    def make(bench: Any, model: Any, tolerance: Any, drawn: Any) -> Any:
        def run(count: int, proceed: Any) -> Any:
            counts.append(count)
            return result

        return SimpleNamespace(run=run)

    monkeypatch.setattr(pair_sample, "Screen", make)
    monkeypatch.setattr(pair_sample, "agrees", lambda model, measured: agreeing[1])
    made: Any = object.__new__(PairSample)
    made._bench = SimpleNamespace(
        options=SimpleNamespace(samples=asked), interrupted=more.pop("interrupted", False), in_time=lambda share: True
    )
    made._model = more.pop("model", Model())
    made.drawn, made.tolerance = SimpleNamespace(cases=[0] * few), None
    made.stopped = more.pop("stopped", False)
    assert not more
    return made.screened, counts


def test_a_hundred_thousand_pairs_are_screened_unless_fewer_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(asked: int, few: int = 2_000) -> list[int]:
        return screened_with(monkeypatch, asked=asked, few=few)[1]

    assert count(DEFAULT_SAMPLES) == [100_000 - 2_000]
    assert count(300_000) == [298_000]
    assert count(DEFAULT_SAMPLES - 1) == [DEFAULT_SAMPLES - 1 - 2_000]
    assert count(3_000) == [2_000]  # at least as many as the environment stepped
    assert count(2_000) == []


@pytest.mark.parametrize(
    "more", [{"model": None}, {"interrupted": True}, {"stopped": True}, {"agreeing": (True, False)}, {"checked": 0}]
)
def test_a_screen_is_believed_only_if_it_ran_and_agrees_on_its_suspects(
    more: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert screened_with(monkeypatch, asked=9_000, few=2_000)[0] is not None
    assert screened_with(monkeypatch, asked=9_000, few=2_000, suspects=None, agreeing=(True, False))[0] is not None
    assert screened_with(monkeypatch, asked=9_000, few=2_000, **more)[0] is None


def test_situations_of_a_batch_keep_their_states_and_actions(bench: Any, sample: PairSample) -> None:
    screen = screen_of(bench, sample, model_of())
    states = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    batch: Any = SimpleNamespace(word=(0,), states=states, observations=states, actions=np.array([0, 1, 1]))
    cases = screen._cases(batch, np.array([2, 0]))
    assert [case.situation.state.tolist() for case in cases] == [[0.5, 0.6], [0.1, 0.2]]
    assert [int(case.action) for case in cases] == [1, 0]
    assert [int(case.image_action) for case in cases] == [0, 1]
    assert [case.image.state.tolist() for case in cases] == [[-0.5, -0.6], [-0.1, -0.2]]
    assert isinstance(cases[0].situation, Situation)
