"""Pools by themselves: how many states of each source, where episodes begin and end, and what samples may propose."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from worlds_with_settings import Point, Settable, bench_of

from symcheck.engine.environments.cases import pool as pools
from symcheck.engine.environments.cases.pool import Pool, Visit, gather, roll_out
from symcheck.engine.environments.methods.pair_sample import PairSample
from symcheck.engine.environments.subject.placement import Situation
from symcheck.errors import TargetError

RNG = np.random.default_rng
NAN = float("nan")
ANY: Any = None


def step(flat: Any, *, terminated: bool = False, truncated: bool = False) -> Any:
    return SimpleNamespace(flat=np.asarray(flat, float), obs=np.asarray(flat, float), terminated=terminated,
                           truncated=truncated, reward=0.0)  # fmt: skip


class Plays:
    """A stepper whose episodes have a given length, and which counts what was asked of it."""

    batched = False

    def __init__(self, length: int, end: str = "terminated", dim: int = 1) -> None:
        self.length, self.end, self.asked = length, end, list[int]()
        self.codec = SimpleNamespace(
            coordinates=SimpleNamespace(dim=dim, names=tuple(f"x[{j}]" for j in range(dim))), flatten=np.asarray
        )
        self.env = SimpleNamespace(action_space=SimpleNamespace(sample=lambda: 0))

    def play(self, most: int, in_time: Any, *, read: bool) -> Any:
        self.asked.append(most)
        count = min(most, self.length)
        steps = [
            step([float(t)], **({self.end: True} if self.end and t == self.length - 1 else {})) for t in range(count)
        ]
        return SimpleNamespace(
            actions=[0] * count, steps=steps, seen=[np.array([float(t)]) for t in range(count)], states=[None] * count
        )


def make_placement(**access: Any) -> Any:
    known = {"sample": None, "box": False, "ended": lambda state: False, "source": "user", "get": None} | access
    return SimpleNamespace(
        kind="observation",
        reads_states=False,
        access=SimpleNamespace(**known),
        visited_situation=lambda obs, state, origin: Situation(obs, obs, origin),
        at=lambda state, origin: Situation(state, state, origin),
        not_a_state=lambda state: "",
        current_situation=lambda obs, origin: Situation(obs, obs, origin),
    )


@pytest.mark.parametrize(("samples", "share"), [(1, 200), (800, 200), (804, 201), (16_000, 4_000), (10_000_000, 4_000)])
def test_rollouts_take_a_quarter_of_the_samples_between_200_and_4000_steps(
    samples: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(pools, "roll_out", lambda stepper, placement, steps, pool, in_time: asked.append(steps))
    monkeypatch.setattr(pools, "_propose", lambda *told: asked.append(("proposed", told[2])))
    monkeypatch.setattr(pools, "_explore", lambda *told: asked.append(("explored", told[2])))
    gather(ANY, make_placement(), samples, RNG(0))
    assert asked == [share, ("explored", share)]
    asked.clear()
    gather(ANY, make_placement(sample=len), samples, RNG(0))
    assert asked == [share, ("proposed", share), ("explored", share)]
    asked.clear()
    gather(ANY, make_placement(sample=len, box=True), samples, RNG(0))
    assert asked == [share, ("proposed", share)]
    asked.clear()
    black = make_placement(sample=len)
    black.kind = None
    gather(ANY, black, samples, RNG(0))
    assert asked == [share]


@pytest.mark.parametrize(
    ("length", "steps", "asked"),
    [
        # whole episodes until the steps are taken: 20 episodes of 20 steps are many enough
        (20, 400, [400 - 20 * k for k in range(20)]),
        # one endless episode, and 16 more beginnings of 10 steps for 320 steps
        (10_000, 320, [320, *[10] * 15]),
        (10_000, 6_400, [6_400, *[100] * 31]),
        (10_000, 19, [19]),
        (10_000, 20, [20]),
        (10_000, 40, [40, 10]),
    ],
)
def test_short_episodes_are_added_if_few_have_begun(length: int, steps: int, asked: list[int]) -> None:
    stepper, pool = Plays(length), Pool()
    roll_out(stepper, make_placement(), steps, pool)  # type: ignore[arg-type]
    assert stepper.asked == asked
    assert pool.episodes == len(asked)
    assert len(pool.situations) == len(pool.visits) == sum(min(most, length) for most in asked)
    starts = [i for i, each in enumerate(pool.situations) if each.origin == "start"]
    assert starts == list(np.cumsum([0, *[min(most, length) for most in asked]])[:-1])
    assert {each.origin for i, each in enumerate(pool.situations) if i not in starts} <= {"rollout"}


def test_time_leaves_at_least_one_episode() -> None:
    stepper, pool = Plays(5), Pool()
    roll_out(stepper, make_placement(), 100, pool, lambda: False)  # type: ignore[arg-type]
    assert (len(stepper.asked), len(pool.situations)) == (1, 5)
    left = iter([True, False, False])
    stepper, pool = Plays(5), Pool()
    roll_out(stepper, make_placement(), 100, pool, lambda: next(left))  # type: ignore[arg-type]
    assert len(stepper.asked) == 2


@pytest.mark.parametrize(("end", "ends"), [("terminated", 1), ("truncated", 1), ("", 0)])
def test_steps_that_end_an_episode_are_kept_beside(end: str, ends: int) -> None:
    stepper, pool = Plays(5, end), Pool()
    roll_out(stepper, make_placement(), 5, pool)  # type: ignore[arg-type]
    assert len(pool.ends) == ends
    assert pool.ends == pool.visits[4:] * ends


def visit(shown: Any, after: Any, origin: str = "rollout") -> Visit:
    return Visit(Situation(None, np.asarray(shown, float), origin), 0, step(after))


def test_coordinates_that_were_never_a_number_are_named() -> None:
    codec: Any = SimpleNamespace(coordinates=SimpleNamespace(names=("a", "b")), flatten=np.asarray)
    pool = Pool(visits=[visit([1, NAN], [NAN, NAN], "start"), visit([NAN, NAN], [NAN, 2.0])])
    assert pool.silent_coordinates(codec) == ("a",)
    assert pool.silent_coordinates(codec, starts=True) == ("b",)
    assert Pool().silent_coordinates(codec) == ()
    assert Pool(visits=[visit([1, 1], [1, 1])]).silent_coordinates(codec) == ()
    infinite = Pool(visits=[visit([0, 0], [np.inf, 1.0], "start")])
    assert infinite.silent_coordinates(codec) == ("a",)


def propose(sample: Any, *, in_time: Any = lambda: True, outcome: Any = None, **access: Any) -> Pool:
    pool, placement = Pool(), make_placement(sample=sample, **access)
    if outcome is not None:
        placement.at = lambda state, origin: None
    stepper: Any = SimpleNamespace(
        outcome=lambda held, action: outcome(held), env=SimpleNamespace(action_space=SimpleNamespace(sample=lambda: 0))
    )
    pools._propose(stepper, placement, 40, RNG(0), pool, in_time)
    return pool


def test_proposed_states_are_added_unless_they_have_ended() -> None:
    def draw(rng: Any, count: int) -> Any:
        return np.linspace(-1, 1, count)[:, None]

    assert len(propose(draw).situations) == 40
    assert {each.origin for each in propose(draw).situations} == {"sample"}
    np.testing.assert_array_equal([s.state for s in propose(draw).situations], draw(None, 40))
    inside = propose(draw, ended=lambda state: state[0] > 0).situations
    assert len(inside) == 20
    left = iter([True] * 3 + [False])
    assert len(propose(draw, in_time=lambda: next(left)).situations) == 3
    boxed = propose(draw, box=True).situations
    assert {each.origin for each in boxed} == {"box"}
    moved = [float(each.state[0]) for each in boxed]
    assert moved != draw(None, 40)[:, 0].tolist()
    assert set(moved) - set(draw(None, 40)[:, 0]) <= {0.0, -1.0, 1.0}


def test_a_proposed_state_that_shows_nothing_before_a_step_gives_the_state_after_it() -> None:
    def draw(rng: Any, count: int) -> Any:
        return [np.array([float(k)]) for k in range(count)]

    def outcome(held: Any) -> Any:
        return step(held + 0.5, terminated=held[0] < 10, truncated=held[0] > 29)

    found = propose(draw, outcome=outcome).situations
    assert [float(each.obs[0]) for each in found] == [k + 0.5 for k in range(10, 30)]


@pytest.mark.parametrize(
    ("sample", "wrong", "message"),
    [
        (lambda rng, count: 1 / 0, "", r"sample\(rng, 7\) raised ZeroDivisionError: division by zero"),
        (lambda rng, count: 3, "", "raised TypeError"),
        (lambda rng, count: [5], "where get returns 2 numbers", "proposed the state 5, where get returns 2 numbers"),
    ],
)
def test_samples_that_are_no_states_are_refused(sample: Any, wrong: str, message: str) -> None:
    placement = make_placement(sample=sample)
    placement.not_a_state = lambda state: wrong
    with pytest.raises(TargetError, match=message):
        pools._call_sample(placement, 7, RNG(0))
    assert pools._call_sample(make_placement(), 7, RNG(0)) == []
    assert pools._call_sample(make_placement(sample=lambda rng, count: []), 7, RNG(0)) == []


def test_exploration_goes_further_than_the_rollouts_and_takes_the_steps_it_was_given() -> None:
    bench = bench_of(lambda: Settable(ends=False))
    pool, pairs = Pool(), bench.pairs
    roll_out(pairs.stepper, pairs.placement, 200, pool)
    before = len(pool.situations)
    reach = max(abs(float(each.obs[0])) for each in pool.situations)
    pools._explore(pairs.stepper, pairs.placement, 300, RNG(0), pool, lambda: True)
    new = pool.situations[before:]
    assert {each.origin for each in new} == {"exploration"}
    assert len(new) == 299  # the state after the last step is not kept
    assert max(abs(float(each.obs[0])) for each in new) > reach
    late = Pool(list(pool.situations[:before]))
    pools._explore(pairs.stepper, pairs.placement, 300, RNG(0), late, lambda: False)
    assert len(late.situations) == before
    empty = Pool()
    pools._explore(pairs.stepper, pairs.placement, 300, RNG(0), empty, lambda: True)
    assert empty.situations == []


@pytest.mark.parametrize(("dim", "explored"), [(64, True), (65, False)])
def test_only_up_to_64_coordinates_are_explored(dim: int, explored: bool) -> None:
    class ReachedError(Exception):
        pass

    def poke(state: Any) -> None:
        raise ReachedError

    stepper: Any = Plays(1, dim=dim)
    stepper.poke = poke
    pool = Pool([Situation(np.zeros(dim), np.zeros(dim), "start")])
    if explored:
        with pytest.raises(ReachedError):
            pools._explore(stepper, make_placement(), 5, RNG(0), pool, lambda: True)
    else:
        pools._explore(stepper, make_placement(), 5, RNG(0), pool, lambda: True)
        assert len(pool.situations) == 1


@pytest.fixture(scope="module")
def bench() -> Any:
    made = bench_of(lambda: Settable(wind=0.05))
    return dataclasses.replace(made, pool=gather(made.pairs.stepper, made.pairs.placement, 200, RNG(0)))


def test_pairs_are_drawn_from_the_pool_with_every_element_and_action(bench: Any) -> None:
    sample = PairSample(bench)
    cases = sample._draw(150, RNG(0))
    assert (len(cases), sample.planned, sample.left_out, sample.exits, sample.prevented) == (150, 150, 0, (), None)
    states = {id(each) for each in bench.pool.situations}
    assert {id(case.situation) for case in cases} <= states
    assert {int(case.action) for case in cases} == {0, 1}
    assert {case.word for case in cases} == {(0,)}
    assert len(sample.drawn.cases) == 200
    assert sample.checked == 200


@pytest.mark.parametrize(("left_out", "planned", "told", "prevented"), [
    (0, 100, False, False), (1, 100, True, False), (50, 100, True, False), (51, 100, True, True)])  # fmt: skip
def test_pairs_that_leave_the_space_are_told_and_more_than_half_decide_nothing(
    left_out: int, planned: int, told: bool, prevented: bool, bench: Any
) -> None:
    sample = PairSample(bench)
    sample.left_out, sample.planned = left_out, planned
    assert bool(sample.exits) is told
    assert (sample.prevented is not None) is prevented
    if told:
        assert sample.exits[0].fields == {"left_out": left_out, "drawn": planned}


def test_stepping_stops_where_enough_is_known_and_keeps_what_was_stepped(bench: Any) -> None:
    asked: list[Any] = []

    def enough(parts: Any, planned: int) -> bool:
        asked.append((sum(len(part.cases) for part in parts), planned))
        return len(asked) == 2

    sample = PairSample(bench, enough=enough)
    cases = sample._draw(1200, RNG(0))
    assert len(sample._step(cases).cases) == 1000
    assert asked == [(500, 1200), (1000, 1200)]
    assert sample.stopped
    assert sample._not_sought == "violated"
    whole = PairSample(bench)
    assert len(whole._step(cases[:700]).cases) == 700
    assert not whole.stopped


def test_time_or_an_error_leaves_the_pairs_stepped_so_far(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Limited:
        is_limited, interrupted, refusal = True, False, None

        def __init__(self, batches: int) -> None:
            self.left, self.stopped_by = batches, list[Any]()

        def in_time(self, share: float) -> bool:
            self.left -= 1
            return self.left >= 0

        def stop(self, reason: Any) -> None:
            self.stopped_by.append(reason)

    cases = PairSample(bench)._draw(35, RNG(0))
    for batches, stepped in ((2, 20), (9, 35), (0, 1)):
        timed = dataclasses.replace(bench, clock=Limited(batches))
        assert len(PairSample(timed)._step(cases).cases) == stepped
    clock = Limited(9)
    timed = dataclasses.replace(bench, clock=clock)
    sample, measured = PairSample(timed), []
    real = timed.pairs.measure

    def measure(some: Any) -> Any:
        if len(measured) == 2:
            raise TargetError("broken", where="", remedy="")
        measured.append(len(some))
        return real(some)

    monkeypatch.setattr(timed.pairs, "measure", measure)
    assert len(sample._step(cases).cases) == 20
    assert isinstance(clock.stopped_by[0], TargetError)
    measured[:] = [0, 0]
    with pytest.raises(TargetError):
        sample._step(cases)


def test_pairs_that_were_given_are_judged_as_they_are(bench: Any) -> None:
    measured = bench.pairs.measure(PairSample(bench)._draw(5, RNG(0)))
    given = PairSample(bench, given=measured)
    assert given.drawn is measured
    assert given._not_sought == "violated"
    assert given.checked == 5


def test_black_boxes_and_states_are_told_by_their_origins() -> None:
    bench = bench_of(Point)
    pool = gather(bench.pairs.stepper, bench.pairs.placement, 200, RNG(0))
    assert {each.state for each in pool.situations} == {None}
    assert sum(pool.region().fields["origins"].values()) == pool.region().fields["count"] == len(pool.situations)
