"""What setting a state loses is measured: it is stated, and a claim is judged where it stands far above the loss."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.results import PropertyResult
from symcheck.statements.statement import Statement

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[1, 0]])
PARTS = ("transition_invariance", "reward_invariance", "termination_invariance")


class Cart(gym.Env[Any, Any]):
    """A damped cart; `remember` is what its steps leave behind, and setting its state does not restore."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, wind: float = 0.0) -> None:
        self.wind, self.clock, self.memory = wind, 0, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Anywhere near the middle."""
        super().reset(seed=seed)
        self.s, self.clock, self.memory = self.np_random.uniform(-1, 1, 2), 0, 0.0
        return self.s.copy(), {}

    def hidden_push(self) -> float:
        """What no observation shows."""
        return 0.0

    def hidden_reward(self) -> float:
        """What no observation shows."""
        return 0.0

    def step(self, action: Any) -> Any:
        """Push left or right."""
        v = 0.9 * self.s[1] + 0.1 * (2 * int(action) - 1) + self.hidden_push() + self.wind
        self.s = np.array([self.s[0] + 0.1 * v, v])
        self.clock += 1
        return self.s.copy(), -float(self.s[0] ** 2) + self.hidden_reward(), bool(abs(self.s[0]) > 2), False, {}

    def get_state(self) -> Any:
        """All that can be seen."""
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        """Only what can be seen."""
        self.s = np.array(state, float)


class Alternating(Cart):
    """A clock pushes left and right in turn."""

    def hidden_push(self) -> float:
        """Depends on the time."""
        return 0.05 * (-1.0) ** self.clock


class Buffered(Cart):
    """Every push acts one step later."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """With an empty buffer."""
        self.waiting = 0.0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        """Take the push before, and keep this one."""
        self.memory, self.waiting = self.waiting, 0.1 * (2 * int(action) - 1)
        return super().step(action)

    def hidden_push(self) -> float:
        """The push before instead of this one."""
        return self.memory - self.waiting


class WarmStarted(Cart):
    """A solver that begins where it last ended: a little of the push depends on the past."""

    size = 1e-9

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Forgets nothing."""
        memory = self.memory
        shown = super().reset(seed=seed)
        self.memory = memory
        return shown

    def hidden_push(self) -> float:
        """Half of what it was, and a little of the state."""
        self.memory = 0.5 * self.memory + self.size * math.sin(1e3 * self.s[0])
        return self.memory


class Leaking(WarmStarted):
    """The same with a memory that is not negligible, and yet far less than some faults."""

    size = 1e-4


class Paid(Cart):
    """A clock that pays and moves nothing; a state that is set is paid as one of the first steps."""

    def hidden_reward(self) -> float:
        """Depends on the time."""
        return 0.05 * min(self.clock, 5)

    def set_state(self, state: Any) -> None:
        """As after a reset."""
        super().set_state(state)
        self.clock = 0


def judged(make: Any, samples: int = 500) -> dict[str, PropertyResult]:
    """The three properties of a step."""
    report = sc.verify_env(make, MIRROR, samples=samples)
    return {part: report[part] for part in PARTS}


def reason(result: PropertyResult) -> Statement:
    """Why a result is undecided."""
    assert result.reason is not None
    return result.reason


def test_a_violation_as_large_as_the_loss_is_decided_by_whole_episodes() -> None:
    judgement = judged(Alternating)["transition_invariance"]
    assert (judgement.verdict, judgement.method) == ("failed", "trajectory")
    assert "the largest is 0.1, in observation[1]" in str(judgement.causes[-1])


def test_an_action_buffer_that_is_not_restored_leaves_the_claim_to_whole_episodes() -> None:
    sound = judged(lambda: gym.wrappers.TimeLimit(Buffered(), 30), samples=1000)
    assert {(one.verdict, one.method) for one in sound.values()} == {("passed", "trajectory")}
    for result in sound.values():
        (note,) = [note for note in result.notes if note.code == "episodes_instead"]
        assert note.fields["caution"].fields["lost"] == pytest.approx(0.1)
    broken = judged(lambda: gym.wrappers.TimeLimit(Buffered(0.02), 30), samples=1000)["transition_invariance"]
    assert (broken.verdict, broken.method, broken.causes[-1].code) == ("failed", "trajectory", "SYM051")


def test_whole_episodes_pass_nothing_if_pairs_violate_the_claim_within_the_loss() -> None:
    """A wind that 60 episodes are too few to detect moves every pair."""
    result = judged(lambda: gym.wrappers.TimeLimit(Buffered(1e-4), 30), samples=1000)["transition_invariance"]
    assert (result.verdict, reason(result).code) == ("undecided", "hidden_state")
    assert reason(result).fields["hidden"] > 0
    assert [note.code for note in result.notes].count("episodes_detect_less") == 1


def test_a_method_requested_by_name_is_not_replaced_by_whole_episodes() -> None:
    report = sc.verify_env(lambda: gym.wrappers.TimeLimit(Buffered(), 30), MIRROR, samples=500, method="paired")
    assert {report[part].verdict for part in PARTS} == {"undecided"}
    assert reason(report["reward_invariance"]).code == "hidden_state"


def test_a_violation_far_above_the_loss_is_one() -> None:
    assert judged(lambda: Alternating(wind=5.0))["transition_invariance"].verdict == "failed"


def test_what_a_warm_start_loses_is_tolerated_and_stated() -> None:
    report = sc.verify_env(WarmStarted, MIRROR, samples=500)
    assert report.verdict == "passed"
    said = report.results[0].method_reason.fields["control"]
    # Half of each memory is forgotten: two of them differ by 2 * 2e-9 at most.
    assert 5e-10 < said.fields["lost"] < 4e-9
    assert "times this size are tolerated" in said.text
    tolerance = report["transition_invariance"].tolerance
    assert tolerance == pytest.approx(10 * said.fields["lost"], rel=1e-3)


@pytest.mark.parametrize("wind", [1e-6, 0.01])
def test_a_fault_far_above_what_a_warm_start_loses_is_found(wind: float) -> None:
    assert judged(lambda: WarmStarted(wind))["transition_invariance"].verdict == "failed"


def test_a_loss_that_is_not_negligible_passes_nothing_and_still_refutes() -> None:
    sound, broken = judged(Leaking), judged(lambda: Leaking(wind=0.01))
    assert sound["transition_invariance"].verdict == "undecided"
    assert 5e-5 < reason(sound["transition_invariance"]).fields["lost"] < 4e-4
    assert broken["transition_invariance"].verdict == "failed"


def test_a_memory_that_pays_leaves_steps_and_ends_judged() -> None:
    sound, broken = (judged(lambda wind=wind: gym.wrappers.TimeLimit(Paid(wind), 30)) for wind in (0.0, 0.01))
    assert [sound[part].verdict for part in PARTS] == ["passed"] * 3
    assert [sound[part].method for part in PARTS] == ["paired", "trajectory", "paired"]
    told = sound["reward_invariance"].notes[0].fields["caution"].fields
    assert (told["lost_in"], told["lost"]) == ("reward", pytest.approx(0.2))
    assert broken["transition_invariance"].verdict == "failed"


def test_episodes_that_were_not_compared_to_their_end_pass_nothing() -> None:
    sound = judged(lambda: gym.wrappers.TimeLimit(Buffered(), 400))
    assert {one.verdict for one in sound.values()} == {"undecided"}
    assert {one.notes[-1].text for one in sound.values()} == {
        "whole episodes show no violation up to step 100, but state that is lost when a state is set may have an "
        "effect later: raise --samples"
    }
