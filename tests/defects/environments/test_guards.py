"""Every method against every reason not to pass: too little time, interrupts, memories, values that are no numbers.

A clock that only the worlds move makes time budgets the same on every machine.
"""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from small_worlds import C2, REVERSED, SWAP, BlackWorld, Hidden, Seen, Table, corridor, mirror, plain, pushed, spread

import symcheck as sc
from symcheck.envs.state_access import register_state_access
from symcheck.symmetry.symmetry import Symmetry

EQUATIONS = ("reward_invariance", "transition_invariance", "termination_invariance")
METHODS = ("paired", "distribution", "trajectory")


def shaken(s: Any, a: Any, rng: Any) -> Any:
    """The damped point with noise on its speed, in what it is paid and in when it ends: nothing repeats."""
    x, v = pushed(s, a)
    paid = -abs(x) + rng.normal(0, 0.1)
    return np.array([x, v + rng.normal(0, 0.1)]), paid, rng.random() < 0.1 * min(abs(x), 1.0)


MOVES = {"paired": plain, "distribution": shaken, "trajectory": shaken}
KINDS: dict[str, Any] = {"paired": Seen, "distribution": Seen, "trajectory": BlackWorld}


def _world(method: str, move: Any = None, **parts: Any) -> Any:
    return lambda: gym.wrappers.TimeLimit(KINDS[method](move or MOVES[method], **parts), 20)


def _verified(world: Any, method: str, symmetry: Symmetry | None = None, **options: Any) -> Any:
    return sc.verify_env(world, symmetry or mirror(), **{"samples": 800, "method": method, "alpha": 0.002, **options})


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds; it stands still unless a world moves it."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def _slow(method: str, clock: list[float], *, step: float = 1.0, reset: float = 0.0) -> Any:
    """The method's world, whose steps and resets take so many seconds."""

    def move(s: Any, a: Any, rng: Any) -> Any:
        clock[0] += step
        return MOVES[method](s, a, rng)

    def start(rng: Any) -> Any:
        clock[0] += reset
        return spread(rng)

    return _world(method, move, start=start)


@pytest.mark.parametrize(
    ("method", "budget", "verdict", "checked"),
    [
        ("paired", 1, "undecided", (0, 0)),  # a pair takes two steps
        ("paired", 3300, "undecided", (100, 399)),  # fewer than a tenth of what was asked for
        ("paired", 9000, "passed", (400, 3999)),
        ("distribution", 8000, "undecided", (100, 1999)),  # fewer than half
        ("distribution", 12_000, "passed", (2000, 4000)),
        ("trajectory", 200, "undecided", (0, 15)),  # fewer than 8 pairs of episodes
        ("trajectory", 3000, "undecided", (16, 249)),  # fewer than half
        ("trajectory", 6000, "passed", (250, 999)),
    ],
)
def test_a_pass_needs_a_share_of_the_samples_whatever_the_time(
    method: str, budget: float, verdict: str, checked: tuple[int, int], clock: list[float]
) -> None:
    report = _verified(_slow(method, clock), method, samples=4000, max_time=budget)
    transition = report["transition_invariance"]
    assert (transition.verdict, checked[0] <= transition.checked <= checked[1]) == (verdict, True), transition
    assert (transition.reason is not None and transition.reason.code == "time_up") == (verdict == "undecided")
    assert (transition.bound is None) == (verdict == "undecided")


@pytest.mark.parametrize(("each", "verdict"), [(6.0, "undecided"), (1.0, "passed")])
def test_a_start_needs_a_hundred_pairs_of_resets(each: float, verdict: str, clock: list[float]) -> None:
    report = _verified(_slow("paired", clock, step=0.0, reset=each), "paired", samples=2000, max_time=600)
    start = report["initial_invariance"]
    assert start.verdict == verdict, start
    assert (20 <= start.checked < 100) == (verdict == "undecided")
    assert start.checked < 501  # the time was up in both


def test_an_enumeration_needs_no_time(clock: list[float]) -> None:
    report = sc.verify_env(
        lambda: Table(corridor(), [0, 0, 0, 1, 0, 0, 0]), Symmetry("flip", C2, REVERSED, SWAP), max_time=1e-9
    )
    assert report.verdict == "proved"


# --- interrupts -------------------------------------------------------------------------------------------------------


def _interrupted(method: str, at: int, wind: float = 0.0) -> Any:
    """Ctrl-C at one step."""
    taken = [0]

    def move(s: Any, a: Any, rng: Any) -> Any:
        taken[0] += 1
        if taken[0] == at:
            raise KeyboardInterrupt
        following, reward, end = MOVES[method](s, a, rng)
        return following + np.array([0.0, wind]), reward, end

    return _world(method, move)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_run_passes_nothing_that_it_did_not_finish(method: str) -> None:
    report = _verified(_interrupted(method, 3500 if method != "trajectory" else 500), method, samples=2000)
    assert report.results[0].interrupted
    for part in EQUATIONS:
        assert report[part].verdict == "undecided"
        assert report[part].reason.code == "interrupted"
        assert report[part].bound is None


def test_a_violation_seen_before_an_interrupt_fails() -> None:
    report = _verified(_interrupted("paired", 3500, wind=0.1), "paired", samples=2000)
    assert report.results[0].interrupted
    assert report["transition_invariance"].verdict == "failed"
    assert report["termination_invariance"].verdict == "undecided"


# --- memories ---------------------------------------------------------------------------------------------------------


class Worn(Seen):
    """Steps repeat until some thousands were taken; from then on one in forty slips."""

    taken = 0

    def step(self, action: Any) -> Any:
        self.taken += 1
        _, reward, *rest = super().step(action)
        if self.taken > 1500 and self.taken % 40 == 0:
            self.s = self.s + np.array([0.0, self.np_random.normal()])
        return self.s.copy(), reward, *rest


def test_pairs_that_do_not_repeat_are_neither_passed_nor_accused() -> None:
    report = _verified(lambda: gym.wrappers.TimeLimit(Worn(), 20), "paired", samples=1000)
    transition = report["transition_invariance"]
    assert transition.verdict == "undecided"
    assert transition.reason.code == "not_repeatable"
    assert transition.bound is None
    assert report["reward_invariance"].verdict == "passed"


class Tiring(Seen):
    """Pushes weaken as an episode goes on, on either side alike; a state that is set is rested."""

    noise = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.strength = 1.0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.strength *= 0.8
        self.s = pushed(self.s, 0, force=(1.0 if action else -1.0) * self.strength)
        self.s[1] += self.noise * self.np_random.normal()
        return self.s.copy(), 0.0, False, False, {}


class TiringAndShaken(Tiring):
    noise = 0.02


def _rest(env: Any, state: Any) -> None:
    env.s, env.strength = np.array(state), 1.0


register_state_access(Tiring, set=_rest)


@pytest.mark.parametrize(("kind", "method"), [(Tiring, "paired"), (TiringAndShaken, "distribution")])
def test_a_state_that_setting_does_not_restore_passes_nothing(kind: Any, method: str) -> None:
    report = _verified(lambda: gym.wrappers.TimeLimit(kind(), 20), method, samples=1000)
    for part in EQUATIONS:
        assert report[part].verdict == "undecided"
        assert "hidden state" in report[part].detail
    assert report["initial_invariance"].verdict == "passed"


def test_episodes_of_the_same_world_are_whole_and_pass() -> None:
    report = _verified(lambda: gym.wrappers.TimeLimit(TiringAndShaken(), 20), "trajectory", samples=1000)
    assert report.verdict == "passed"


# --- values that are no numbers ---------------------------------------------------------------------------------------


def _broken(method: str, where: str, value: float, one_sided: bool) -> Any:
    """Pays or shows `value` beyond 0.1: on the right alone, or on both sides."""

    def out(x: float) -> bool:
        return x > 0.1 if one_sided else abs(x) > 0.1

    def move(s: Any, a: Any, rng: Any) -> Any:
        following, reward, end = MOVES[method](s, a, rng)
        return following, value if where == "reward" and out(s[0]) else reward, end

    def show(s: Any) -> Any:
        return np.array([s[0], math.copysign(value, s[0]) if where == "transition" and out(s[0]) else s[1]])

    kind = BlackWorld if method == "trajectory" else Hidden
    return lambda: gym.wrappers.TimeLimit(kind(move, show=show), 20)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["reward", "transition"])
def test_what_is_no_number_on_one_side_alone_fails_and_on_both_is_compared(
    method: str, value: float, where: str
) -> None:
    symmetry = mirror(state=[[-1, -1]], initial=False)
    verdicts = [
        _verified(_broken(method, where, value, one_sided), method, symmetry, samples=400)[
            f"{where}_invariance"
        ].verdict
        for one_sided in (True, False)
    ]
    # Where the start is not claimed to be symmetric, episodes accuse nobody.
    assert verdicts == ["failed" if method != "trajectory" else "undecided", "passed"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_enumeration_compares_what_is_no_number(value: float) -> None:
    """Both ends pay it, or one of them pays 1 instead: then the claim fails, and nothing bounds what that costs."""
    flip = Symmetry("flip", C2, REVERSED, SWAP)

    def paid(right: float) -> Any:
        table = corridor()
        for actions in table.values():
            for a, outcomes in actions.items():
                actions[a] = [
                    (p, to, (right if to else value) if ended else 0.0, ended) for p, to, _, ended in outcomes
                ]
        return sc.verify_env(lambda: Table(table, [0, 0, 0, 1, 0, 0, 0]), flip)["reward_invariance"]

    assert paid(value).verdict == "proved"
    broken = paid(1.0)
    assert (broken.verdict, broken.bound) == ("failed", None)
