"""Statistics of many coordinates end within the time budget, and a long one does not cost the other verdicts."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck_properties  # noqa: F401
from symcheck.cli import channel, watching
from symcheck.cli.channel import Tag
from symcheck.cli.salvage import report_end
from symcheck.engine import clock
from symcheck.engine.budget import Budget, Handed
from symcheck.engine.clock import TimeUp, computing, computing_until, raise_if_overdue
from symcheck.engine.environments.methods import trajectory
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Progress
from symcheck.engine.features import normal_scores
from symcheck.engine.options import EnvOptions
from symcheck.engine.regression import Fit
from symcheck.engine.unfinished import Ledger
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1, -1]], [[1, 0]])
STEP_S, OPERATION_S, BUDGET_S = 0.001, 0.01, 60.0  # of a step and of one operation on whole columns, on the fake clock


class Line(gym.Env[Any, int]):
    """A point that two actions push, in a black box; each step takes a millisecond of the fake clock."""

    observation_space = spaces.Box(-9.0, 9.0, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, now: list[float], start: float = 0.0) -> None:
        self.now, self.start = now, start

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.steps = self.np_random.uniform(-1, 1, 2) + self.start, 0
        return self.x.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.now[0] += STEP_S
        self.steps += 1
        self.x = 0.9 * self.x + (0.1 if action else -0.1) + self.np_random.normal(0, 0.05, 2)
        return self.x.copy(), float(np.abs(self.x).sum()), False, self.steps == 20, {}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of a fake clock, which only steps and the test advance."""
    at = [0.0]
    fake = SimpleNamespace(monotonic=lambda: at[0])
    for module in ("symcheck.engine.clock", "symcheck.engine.environments.runner", trajectory.__name__):
        monkeypatch.setattr(f"{module}.time", fake)
    return at


def take_long(monkeypatch: pytest.MonkeyPatch, now: list[float], part: str, seconds: float) -> None:
    """Let the statistics of one part take this long per pair of episodes."""
    compare = trajectory.TrajectoryEvidence._compare

    def slowly(self: Any, tested: Any, word: Any, group: Any, look: Any) -> Any:
        for _ in range(round(len(group.plain) * seconds / OPERATION_S) if tested == part else 0):
            now[0] += OPERATION_S
            raise_if_overdue()
        return compare(self, tested, word, group, look)

    monkeypatch.setattr(trajectory.TrajectoryEvidence, "_compare", slowly)


def verdicts(now: list[float], **world: float) -> tuple[dict[str, str], dict[str, Any]]:
    """The verdicts, and the reasons of those that are not decided, by the name of the property."""
    options = EnvOptions(samples=600, max_time=BUDGET_S)
    run = run_env(lambda: Line(now, **world), MIRROR, options=options, target="line", command="")
    reasons = {each.name: each.reason.code for each in run.properties if each.reason is not None}
    return {each.name: each.verdict for each in run.properties}, reasons


def test_one_long_statistic_leaves_the_other_verdicts(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    take_long(monkeypatch, now, "transition", 1000.0)
    decided, reasons = verdicts(now)
    assert (decided["reward_invariance"], decided["initial_invariance"]) == ("passed", "passed")
    assert (decided["transition_invariance"], reasons["transition_invariance"]) == ("undecided", "time_up")


def test_a_wrong_start_is_found_beside_a_long_statistic(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    take_long(monkeypatch, now, "transition", 1000.0)
    decided, _ = verdicts(now, start=0.5)
    assert decided["initial_invariance"] == "failed"


def test_statistics_that_fit_cost_no_verdict(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    take_long(monkeypatch, now, "transition", 0.01)
    decided, reasons = verdicts(now)
    assert set(decided.values()) <= {"proved", "passed"}, reasons
    assert now[0] < BUDGET_S


def test_only_as_many_episodes_are_played_as_can_be_tested(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    take_long(monkeypatch, now, "transition", 0.5)  # sixty pairs are asked for: half a minute for each analysis
    decided, _ = verdicts(now)
    assert now[0] < BUDGET_S
    assert decided["transition_invariance"] == "passed"


def test_the_tests_of_a_run_share_alpha_without_one_that_is_late() -> None:
    budget = Budget(0.01)

    def end_late() -> dict[tuple[int, ...], Handed]:
        raise TimeUp

    budget.add("late", end_late, planned=1)
    budget.add("reward", lambda: {(0,): Handed(0.5, True)}, planned=1)
    assert budget.level("reward", (0,)) == 0.01
    with pytest.raises(TimeUp):
        budget.level("late", (0,))


@pytest.mark.parametrize("work", [lambda: Fit(np.ones((4, 1))), lambda: normal_scores(np.ones((4, 1)))])
def test_statistics_look_at_the_clock(work: Any) -> None:
    with computing_until(time.monotonic() - 1), pytest.raises(TimeUp):
        work()
    with computing_until(time.monotonic() + 1000):
        work()


def test_an_inner_deadline_never_extends_an_outer_one() -> None:
    with computing_until(time.monotonic() - 1), computing_until(time.monotonic() + 1000), pytest.raises(TimeUp):
        raise_if_overdue()


def test_what_is_allowed_to_take_longer_is_not_interrupted() -> None:
    with computing_until(time.monotonic() - 1):
        with clock.Clock().overtime():
            raise_if_overdue()
        with pytest.raises(TimeUp):
            raise_if_overdue()


def test_the_alarm_interrupts_steps_and_waits_for_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []
    monkeypatch.setattr("signal.setitimer", lambda _, seconds: again.append(seconds))
    with computing():
        watching._raise_time_up()
    assert len(again) == 1
    with pytest.raises(TimeUp):
        watching._raise_time_up()


def test_a_run_that_is_stopped_says_what_did_not_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[bytes] = []

    def note(tag: bytes, content: bytes = b"") -> None:
        if tag == Tag.PROGRESS:
            told.append(content)

    monkeypatch.setattr(channel, "is_open", lambda: True)
    monkeypatch.setattr(channel, "send", note)
    listen = watching._listener(Ledger(), None, reports=True)
    for done, what in itertools.product((0, 1), ("playing episodes", "computing the statistics of reward")):
        listen(Progress(done, 1, what))
    assert told == [b"playing episodes", b"computing the statistics of reward"] * 2  # though no time has passed
    report_end([], 9, progress=told[-1].decode(), was_late=True, interrupted=False)
    assert "ran out, in computing the statistics of reward, and this did not end" in capsys.readouterr().err
