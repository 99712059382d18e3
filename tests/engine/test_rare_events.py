"""What happens in few steps of whole episodes, and in one step of each: seen, and correct twins pass."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[1, 0]])


class Cart(gym.Env[Any, Any]):
    """A damped cart; each kind of fault lies on its right side."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, *, kind: str, bad: bool) -> None:
        self.kind, self.bad = kind, bad

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s, self.t = self.np_random.uniform(-1, 1, 2), 0
        return self.s.copy(), {}

    def step(self, action: Any) -> Any:
        x, v = self.s
        faulty = float(self.bad and x > 0)
        push = 0.2 * int(action) - 0.1
        if self.kind == "one step" and self.t == 60:
            push += 0.05 if self.bad else push
        v = 0.9 * v + push
        x, self.t = x + 0.1 * v, self.t + 1
        self.s = np.array([x, v])
        reward = -(x**2)
        if self.kind == "cell":
            reward += 0.3 * (0.8 < (x if self.bad else abs(x)) < 0.9 and 0.2 < (v if self.bad else abs(v)) < 0.4)
        if self.kind == "hidden time":
            reward = reward * 0.99**self.t + 0.02 * x * self.bad
        wall = 1.2 - 0.03 * (self.bad and x < 0)
        over = self.kind == "wall" and abs(x) > wall
        cut = self.kind == "limit" and self.t >= 130 - 10 * faulty
        return self.s.copy(), float(reward), bool(over), bool(cut), {}


class Settable(Cart):
    """Its counter is not restored."""

    def get_state(self) -> Any:
        return self.s.copy()

    def set_state(self, state: Any) -> None:
        self.s = np.array(state, float)


KINDS = [
    ("cell", "reward"),
    ("wall", "termination"),
    pytest.param("hidden time", "reward", marks=pytest.mark.long),
    pytest.param("limit", "termination", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_what_happens_in_few_steps_is_seen_and_its_twin_passes(kind: str, name: str) -> None:
    for bad, verdict in ((True, "failed"), (False, "passed")):
        report = sc.verify_env(lambda bad=bad: Cart(kind=kind, bad=bad), MIRROR, samples=5000)
        assert report[f"{name}_invariance"].verdict == verdict
        assert report["transition_invariance"].verdict == "passed"


def test_a_counter_that_matters_in_one_step_and_is_not_restored_leaves_the_claim_undecided() -> None:
    world = gym.wrappers.TimeLimit(Settable(kind="one step", bad=True), 120)
    result = sc.verify_env(lambda: world, MIRROR, samples=1500)["transition_invariance"]
    assert result.reason is not None
    assert (result.verdict, result.reason.code) == ("undecided", "hidden_step")
    assert "steps with number 61 in" in str(result.reason)
    world = gym.wrappers.TimeLimit(Settable(kind="plain", bad=False), 120)
    assert sc.verify_env(lambda: world, MIRROR, samples=500).verdict == "passed"
