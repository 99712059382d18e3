"""Whole episodes by themselves: what counts as an end, how many are played, which element is named, when to stop."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from symcheck.engine.clock import Clock, TimeUp
from symcheck.engine.environments.methods import trajectory
from symcheck.engine.environments.methods.trajectory import TrajectoryEvidence, _Tested
from symcheck.engine.episodes import EpisodePairs, Transitions
from symcheck.engine.sequential import Look, Looked
from symcheck.engine.statistics import SignFlipTest
from symcheck.envs.stepping.stepper import Stepper
from symcheck.verdict import ReasonCode

NAN = float("nan")


def make_evidence(**fields: Any) -> Any:
    """Evidence without an environment."""
    made: Any = object.__new__(TrajectoryEvidence)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def make_bench(**fields: Any) -> Any:
    given: dict[str, Any] = {"in_time": lambda share=1.0: True, "progress": lambda what: lambda done, total: None}
    given |= {"clock": Clock(), "computing": lambda part: nullcontext()}
    return SimpleNamespace(**(given | fields))


def episode(length: int, end: float = 0.0) -> Transitions:
    ended = np.zeros(length)
    ended[-1] = end
    return Transitions(np.zeros((length, 1)), [0] * length, np.zeros(length), np.zeros((length, 1)), ended, True)


class Counting(gym.Env[Any, Any]):
    """Shows the number of the step, and ends by itself after some of them."""

    observation_space = spaces.Box(-100, 100, (1,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, terminates: int = 0, truncates: int = 0) -> None:
        self.terminates, self.truncates = terminates, truncates

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return np.array([0.0]), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.array([float(self.t)]), 10.0 * self.t, self.t == self.terminates, self.t == self.truncates, {}


def evidence_of(env: gym.Env[Any, Any]) -> Any:
    """An element that negates observations and adds one to actions, in cycles."""
    stepper = Stepper(env, None, "counting", seed=0)
    bound = SimpleNamespace(
        source=None,
        drawn=lambda word: word,
        observation=lambda word, obs: -np.asarray(obs),
        action=lambda word, action, obs: (int(action) + 1 + int(obs[0])) % 3,
    )
    refused: list[Any] = []
    pairs = SimpleNamespace(
        stepper=stepper, bound=bound, refuse_exits=lambda word, before, after: refused.append((word, before, after))
    )
    view = SimpleNamespace(apply=lambda flat: 2 * flat)
    return make_evidence(bench=make_bench(pairs=pairs), _view=view), refused


@pytest.mark.parametrize(
    ("env", "ended"),
    [
        (Counting(terminates=3), [0, 0, 1.0]),
        (Counting(truncates=3), [0, 0, 0.5]),
        (Counting(terminates=3, truncates=3), [0, 0, 1.0]),
        (gym.wrappers.TimeLimit(Counting(), 3), [0, 0, 0]),
        (gym.wrappers.TimeLimit(Counting(truncates=2), 3), [0, 0.5]),
        (gym.wrappers.TimeLimit(Counting(terminates=3), 3), [0, 0, 1.0]),
        (Counting(), [0] * 5),
    ],
)
def test_a_termination_counts_one_a_cut_of_the_environment_half_and_a_time_limit_nothing(env: Any, ended: Any) -> None:
    played = evidence_of(env)[0]._episode(None, 5)
    assert played.ended.tolist() == ended
    steps = len(ended)
    assert played.obs.ravel().tolist() == [2.0 * t for t in range(steps)]
    assert played.following.ravel().tolist() == [2.0 * (t + 1) for t in range(steps)]
    assert played.rewards.tolist() == [10.0 * (t + 1) for t in range(steps)]
    assert played.shows_numbers


def test_an_image_has_the_actions_of_the_states_before_it_and_the_images_of_all_observations() -> None:
    made, refused = evidence_of(Counting(terminates=4))
    played = made._episode(("g",), 9)
    ((word, before, after),) = refused
    assert word == ("g",)
    assert after == played.actions == [(int(action) + 1 + t) % 3 for t, action in enumerate(before)]
    assert played.obs.ravel().tolist() == [0.0, -2.0, -4.0, -6.0]
    assert played.following.ravel().tolist() == [-2.0, -4.0, -6.0, -8.0]
    assert played.rewards.tolist() == [10.0, 20.0, 30.0, 40.0]


def test_observations_without_any_number_after_a_step_are_noticed() -> None:
    class Silent(Counting):
        def step(self, action: Any) -> Any:
            return np.array([NAN]), *super().step(action)[1:]

    assert not evidence_of(Silent(terminates=2))[0]._episode(None, 5).shows_numbers


@pytest.mark.parametrize(("level", "pairs"), [(0.01, 22), (0.4, 16), (0.08, 16), (0.07, 18), (1e-6, 2 * (3 + 22))])
def test_twice_as_many_pairs_are_needed_as_the_learned_feature_can_reject_with(level: float, pairs: int) -> None:
    assert make_evidence(bench=make_bench(level=level))._telling_pairs == pairs
    # The most extreme patterns of half of the pairs are rarer than the share of the level, with room for four of them.
    if pairs > 16:  # 16 is the smallest number
        assert 2.0 ** (1 - pairs / 2) * 4 <= 0.4 * level


@pytest.mark.parametrize(("stopped", "least"), [(False, 100), (True, 22)])
def test_half_of_the_requested_steps_must_have_been_played_unless_a_rejection_stopped_it(
    stopped: bool, least: int
) -> None:
    def make(steps: int, pairs: int) -> EpisodePairs:
        return EpisodePairs([episode(steps)] * pairs, [episode(steps)] * pairs)

    groups = {"a": make(10, 50), "b": make(5, 30)}
    made = make_evidence(bench=make_bench(level=0.01), groups=groups, _stopped=stopped, _asked=2000)
    assert made._least_pairs == least
    assert make_evidence(bench=made.bench, groups=groups, _stopped=stopped, _asked=20)._least_pairs == 22
    assert made._fewest_pairs == 30


@pytest.mark.parametrize(
    ("asked", "played", "lengths", "longer"),
    [
        (7_999, 0, (), False),
        (7_999, 4, (101,), False),
        (8_000, 0, (), True),
        (8_000, 1, (100,), False),
        (8_000, 3, (101,), True),
        (8_000, 4, (3,), True),
        (8_000, 5, (3,), False),
    ],
)
def test_every_fourth_pair_is_played_longer_or_all_if_the_first_ended_late(
    asked: int, played: int, lengths: Any, longer: bool
) -> None:
    pairs = [episode(*lengths, 1.0) for _ in range(played)]
    assert make_evidence(_asked=asked)._is_played_on(EpisodePairs(pairs, list(pairs))) is longer


def test_one_side_that_ended_early_or_did_not_end_does_not_lengthen_all_pairs() -> None:
    made = make_evidence(_asked=8_000)
    late, cut, early = episode(101, 1.0), episode(101, 0.0), episode(100, 1.0)
    assert made._is_played_on(EpisodePairs([late], [late]))
    for other in (cut, early):
        assert not made._is_played_on(EpisodePairs([late], [other]))
        assert not made._is_played_on(EpisodePairs([other], [late]))


@pytest.mark.parametrize(("asked", "longest"), [(1, 250), (20_000, 250), (20_079, 250), (20_080, 251), (80_000, 1000)])
def test_forty_long_pairs_fit_into_the_requested_steps(asked: int, longest: int) -> None:
    assert make_evidence(_asked=asked)._long == longest


def play(made: Any, steps: float, *, in_time: Any = lambda share: True, stops: int | None = None) -> Any:
    """The groups after playing, and what was asked of every episode."""
    asked: list[Any] = []

    def one(word: Any, longest: int) -> Transitions:
        if stops is not None and len(asked) == stops:
            raise TimeUp
        asked.append((word, longest))
        return episode(5)

    made._episode, made._asked = one, 100
    made.bench = make_bench(level=0.4, in_time=in_time)
    groups = EpisodePairs([], [])
    made._play("g", groups, steps)
    return groups, asked


def test_plain_and_mapped_episodes_alternate_until_the_steps_are_reached() -> None:
    groups, asked = play(make_evidence(), 200)
    assert asked == [(None, 100), ("g", 100)] * 20
    assert len(groups.plain) == len(groups.mapped) == 20
    assert len(play(make_evidence(), 201)[0].plain) == 21
    assert len(play(make_evidence(), 10)[0].plain) == 16  # fewer could not reject


def test_time_ends_the_playing_and_leaves_whole_pairs_only() -> None:
    shares: list[float] = []

    def in_time(share: float) -> bool:
        shares.append(share)
        return len(shares) <= 3

    assert len(play(make_evidence(), 500, in_time=in_time)[0].plain) == 3
    assert set(shares) == {0.9}
    groups, asked = play(make_evidence(), 500, stops=7)
    assert len(asked) == 7
    assert (len(groups.plain), len(groups.mapped)) == (3, 3)


def make_tested(p_value: float, *, live: bool = True, critical: float = 4.0, statistic: float = 1.0) -> _Tested:
    return _Tested(SignFlipTest(p_value, np.array([statistic]), critical), ["a mean"], live, critical)


def evaluate(p_values: Any, *, level: float = 0.01, stopped: bool = False, blamed: Any = None, ends: int = 0) -> Any:
    """The result of these tests, one an element, and what was asked."""
    asked: dict[str, Any] = {}
    pairs = [episode(3, float(k < ends)) for k in range(300)]
    groups = {word: EpisodePairs(pairs, [episode(3)] * 300) for word in p_values}
    made = make_evidence(groups=groups, _stopped=stopped)
    made._test_all = lambda part: {word: make_tested(p) for word, p in p_values.items()}

    def judged_at(name: str, word: Any, p_value: float) -> float:
        asked.update(name=name, word=word, p_value=p_value)
        return level

    made.bench = make_bench(judged_at=judged_at)
    made._blame_start = lambda: blamed
    made._missable_shift = lambda part, criticals, checked: {"criticals": criticals, "checked": checked}
    made._why_episodes = lambda: "asked"
    made._describe_rejection = lambda result, part, tested, word: asked.update(described=word) or result
    result: Any = trajectory.PropertyResult("name", "undecided", "trajectory", checked=7)
    facts: Any = trajectory.Facts(checked=7)
    return *made._evaluate(result, "termination", facts), asked


def test_the_most_significant_element_decides_at_its_level() -> None:
    result, facts, asked = evaluate({"g": 0.5, "h": 0.002, "k": 0.9})
    assert asked == {"name": "termination of episodes", "word": "h", "p_value": 0.002, "described": "h"}
    assert (result.p_value, result.violations, facts.violations, facts.unattributed) == (0.002, 1, 1, None)
    assert [note.code for note in result.notes] == ["tested_at_level"]
    assert result.notes[0].fields["level"] == 0.01
    assert evaluate({"g": 0.01})[1].violations == 1
    passed, facts, _ = evaluate({"g": 0.0101, "h": 0.3})
    assert (passed.violations, facts.violations, passed.p_value) == (0, 0, 0.0101)
    assert passed.bound == {"criticals": [4.0, 4.0], "checked": 7}
    assert [note.code for note in passed.notes] == ["tested_at_level", "larger_effects_only"]


def test_a_rejection_that_the_start_may_explain_is_not_described() -> None:
    reason: Any = SimpleNamespace(code="a start")
    result, facts, asked = evaluate({"g": 1e-6}, blamed=reason)
    assert (facts.violations, facts.unattributed) == (1, reason)
    assert "described" not in asked
    assert result.counterexample is None


def test_tests_that_stopped_early_claim_no_bound() -> None:
    result, facts, _ = evaluate({"g": 0.5}, stopped=True)
    assert (result.bound, facts.violations) == (None, 0)
    assert [note.code for note in result.notes] == ["tested_at_level", "playing_stopped"]


@pytest.mark.parametrize(("ends", "told"), [(0, False), (1, True), (199, True), (200, False)])
def test_few_terminations_limit_what_a_pass_says(ends: int, told: bool) -> None:
    codes = [note.code for note in evaluate({"g": 0.5}, ends=ends)[0].notes]
    assert ("few_ends" in codes) is told


@pytest.mark.parametrize(
    ("lengths", "end", "limit", "fields"),
    [
        ((5, 100), 0.0, None, {"last_step": 100}),
        ((5, 100), 0.0, 100, {}),
        ((5, 100), 0.0, 101, {"last_step": 100}),
        ((5, 100), 0.5, None, {}),
        ((5, 100), 1.0, None, {}),
        ((100, 100), 1.0, None, {}),
    ],
)
def test_the_last_step_is_told_where_episodes_go_on_after_it(lengths: Any, end: float, limit: Any, fields: Any) -> None:
    bench = make_bench(pairs=SimpleNamespace(stepper=SimpleNamespace(time_limit=limit)))
    short, long = lengths
    group = EpisodePairs([episode(short, end)], [episode(long, end)])
    assert make_evidence(bench=bench)._last_step(group) == fields
    both = EpisodePairs([episode(100, 1.0)], [episode(100)])
    assert make_evidence(bench=bench)._last_step(both) == ({} if limit == 100 else {"last_step": 100})


@pytest.mark.parametrize(
    ("access", "kind", "method", "why"),
    [
        (None, None, "trajectory", "no_access"),
        ("set", None, "trajectory", "no_state_map"),
        ("set", "map", "trajectory", "asked"),
        ("set", "map", "auto", "lossy"),
    ],
)
def test_the_reason_for_whole_episodes_is_what_is_missing_first(access: Any, kind: Any, method: str, why: str) -> None:
    pairs = SimpleNamespace(stepper=SimpleNamespace(access=access), placement=SimpleNamespace(kind=kind))
    bench = make_bench(pairs=pairs, options=SimpleNamespace(method=method))
    assert make_evidence(bench=bench)._why_episodes() == why


@pytest.mark.parametrize(
    ("claimed", "start", "survives", "code", "told"),
    [
        (True, "passed", False, None, None),
        (True, "passed", True, ReasonCode.START_FOLLOWS_PAST, None),
        (True, "failed", False, ReasonCode.START_ASYMMETRIC, "failed"),
        (True, "undecided", True, ReasonCode.START_ASYMMETRIC, "undecided"),
        (False, "passed", False, ReasonCode.START_ASYMMETRIC, "unclaimed"),
    ],
)
def test_dynamics_are_blamed_only_if_the_claimed_start_passed_and_nothing_survives_a_reset(
    claimed: bool, start: str, survives: bool, code: Any, told: Any
) -> None:
    bound = SimpleNamespace(symmetry=SimpleNamespace(initial=claimed))
    made = make_evidence(
        bench=make_bench(pairs=SimpleNamespace(bound=bound)),
        _start=SimpleNamespace(verdict=start),
        _start_evidence=SimpleNamespace(surviving=np.array([False, survives])),
        _why_episodes=lambda: "asked",
    )
    reason = made._blame_start()
    assert (None if reason is None else reason.code) == (None if code is None else code.value)
    if told is not None:
        assert reason.fields["start"] == told


def refuted(p_values: Any, *, pairs: int = 50, fast: bool = False, needed: Any = lambda part: True) -> tuple[bool, Any]:
    """Whether an early look refutes, with p-values by part; its weight is a half."""
    made = make_evidence(_parts=tuple(p_values), _needed=needed, _looks_so_far=Looked(0.01), _stopped=False, _tests={})
    made.bench = make_bench(options=SimpleNamespace(fail_fast=fast))
    look = Look(0.5, 0.5, last=False)

    def test(part: Any, word: Any, group: Any, at: Look) -> _Tested:
        made._looks_so_far.add((part, word), p_values[part][word], at)
        return make_tested(p_values[part][word])

    made._test = test
    groups = {word: SimpleNamespace(plain=[0] * (pairs + 7 * word)) for word in (0, 1)}
    said = made._is_refuted(groups, look)
    assert made._stopped is said
    assert bool(made._tests) is said
    return said, made._tests


def test_an_early_look_stops_if_every_part_is_refuted_or_any_with_fail_fast() -> None:
    clear, open_ = {0: 0.9, 1: 0.005}, {0: 0.9, 1: 0.0051}
    assert refuted({"reward": clear, "transition": clear})[0]
    assert set(refuted({"reward": clear, "transition": clear})[1]) == {"reward", "transition"}
    assert not refuted({"reward": clear, "transition": open_})[0]
    assert not refuted({"reward": open_, "transition": open_})[0]
    assert refuted({"reward": clear, "transition": open_}, fast=True)[0]
    assert refuted({"reward": open_, "transition": clear}, fast=True)[0]
    assert not refuted({"reward": open_, "transition": open_}, fast=True)[0]
    assert refuted({"reward": open_, "transition": clear}, needed=lambda part: part == "transition")[0]
    assert not refuted({"reward": clear}, pairs=49)[0]
    assert not refuted({"reward": clear}, needed=lambda part: False)[0]


def test_only_parts_that_are_needed_and_have_enough_pairs_are_handed_in() -> None:
    made = make_evidence(_needed=lambda part: part == "reward", groups={"g": SimpleNamespace(plain=[0] * 22)})
    made.bench = make_bench(level=0.01)
    made._test_all = lambda part: {"g": make_tested(0.2, live=False)}
    handed = made._hand_in("reward")
    assert set(handed) == {"g"}
    assert (handed["g"].p_value, handed["g"].live) == (0.2, False)
    assert made._hand_in("transition") == {}
    made.groups = {"g": SimpleNamespace(plain=[0] * 21)}
    assert made._hand_in("reward") == {}
