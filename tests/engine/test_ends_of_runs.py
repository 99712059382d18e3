"""How a run ends before it is complete: by its time limit between two steps, or by an environment that raises."""

import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.clock import Clock, TimeUp, not_after
from symcheck.errors import TargetError

MIRROR = sc.Symmetry("point reflection", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])


class Line(gym.Env[Any, Any]):
    """A point on a line that counts its steps over all copies."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)
    begun: list[float]
    x: Any

    def __init_subclass__(cls) -> None:
        cls.begun = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 2)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        self.begun.append(time.monotonic())
        self.meet_trouble()
        self.x = 0.9 * self.x + (0.1 if action else -0.1)
        return self.x.copy(), self.paid(), False, False, {}

    def paid(self) -> float:
        return 1.0

    def meet_trouble(self) -> None:
        pass

    def get_state(self) -> Any:
        return self.x.copy()

    def set_state(self, state: Any) -> None:
        self.x = np.array(state, dtype=float)


def test_no_step_begins_after_the_time_limit() -> None:
    class Slow(Line):
        def meet_trouble(self) -> None:
            time.sleep(0.02)

    report = sc.verify_env(Slow, MIRROR, max_time=1.0)
    assert report.verdict == "undecided"
    assert report["transition_invariance"].reason.code == "time_up"
    assert not report.interrupted
    # The pool alone would take 10,000 steps; a busy machine may delay the one that was allowed.
    assert Slow.begun[-1] - Slow.begun[0] < 1.5


def test_a_failure_found_in_time_is_shown_although_time_is_up() -> None:
    class Broken(Line):
        def paid(self) -> float:
            return float(self.x[0])

    complete = sc.verify_env(Broken, MIRROR, samples=300)
    assert complete["reward_invariance"].verdict == "failed"
    clock = Clock(time.monotonic(), 1e-9)
    with clock.overtime():
        clock.check()
    with pytest.raises(TimeUp):
        clock.check()
    assert clock.while_in_time(lambda: [clock.check()], ["as found"]) == ["as found"]


def test_a_run_ends_with_its_command_whatever_its_own_limit() -> None:
    with not_after(time.monotonic() - 1):
        report = sc.verify_env(Line, MIRROR, max_time=1000.0)
    assert report["transition_invariance"].reason.code == "time_up"


@pytest.mark.parametrize(("rewards", "found"), [("odd", True), ("even", False)])
def test_an_environment_that_raises_ends_the_run_unless_a_failure_was_found(rewards: str, found: bool) -> None:
    class Raising(Line):
        def paid(self) -> float:
            return float(self.x[0] if rewards == "odd" else abs(self.x[0]))

        def meet_trouble(self) -> None:
            # While pairs are stepped; states were gathered before.
            if 2500 <= len(self.begun) < 2502:
                raise ValueError("no fuel")

    if not found:
        with pytest.raises(TargetError, match="no fuel"):
            sc.verify_env(Raising, MIRROR, samples=1000)
        return
    report = sc.verify_env(Raising, MIRROR, samples=1000)
    assert report["reward_invariance"].verdict == "failed"
    assert report["reward_invariance"].counterexample is not None
    assert report["transition_invariance"].reason.code == "interrupted"
