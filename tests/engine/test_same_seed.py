"""A note says where episodes with the same seed and the same actions differ."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck as sc
from symcheck.engine.environments.runner import run_env
from symcheck.engine.options import EnvOptions
from symcheck.statements.statement import Statement

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, -1]], action=[[1, 0]])


class Progress(gym.Env[Any, Any]):
    """Rewards the way made; a black box that starts anywhere in a square."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.before = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = self.np_random.uniform(-1, 1, 2)
        self.before = float(self.s[0])
        return self.s.copy(), {}

    def push(self) -> float:
        return 0.0

    def step(self, action: Any) -> Any:
        x, v = self.s
        v = 0.9 * v + 0.1 * (2 * int(action) - 1) + self.push()
        x = x + 0.1 * v
        reward, self.before, self.s = abs(x) - abs(self.before), float(x), np.array([x, v])
        return self.s.copy(), float(reward), bool(abs(x) > 1.5), False, {}


class LeftOver(Progress):
    """The first reward uses the last position of the episode before."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        before = self.before
        shown = super().reset(seed=seed)
        self.before = before
        return shown


class Windy(Progress):
    """Noise that the seed of the reset controls."""

    def push(self) -> float:
        return float(self.np_random.normal(0, 0.1))


class Tired(Progress):
    """Pushes weaken from episode to episode."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.episodes += 1
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        _, reward, ended, cut, info = super().step(action)
        self.s[1] *= 1 - 1e-3 * min(self.episodes, 100)
        return self.s.copy(), reward, ended, cut, info


@pytest.mark.parametrize(
    ("world", "differing"),
    [(Progress, None), (Windy, None), (LeftOver, ("reward", 1)), (Tired, ("transition", 1))],
)
def test_what_differs_under_one_seed_is_said_and_nothing_else(
    world: type[Progress], differing: tuple[str, int] | None
) -> None:
    result = run_env(world, MIRROR, options=EnvOptions(samples=300), target="world", command="")
    noted = [
        (item.name.removesuffix("_invariance"), note.fields["number"])
        for item in result.properties
        for note in item.notes
        if isinstance(note, Statement) and note.code == "same_seed_differs"
    ]
    assert noted == ([] if differing is None else [differing])
    assert result.verdict != "failed"


def test_the_check_leaves_the_generators_of_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from symcheck.engine.environments.methods import selection

    options = EnvOptions(samples=300)
    with_check = run_env(Windy, MIRROR, options=options, target="world", command="")
    monkeypatch.setattr(selection, "first_difference", lambda stepper, rng: None)
    without = run_env(Windy, MIRROR, options=options, target="world", command="")
    assert [item.p_value for item in with_check.properties] == [item.p_value for item in without.properties]


def test_the_terminal_says_it_below_a_property_that_passes() -> None:
    text = sc.verify_env(LeftOver, MIRROR, samples=2000).to_text()
    assert "note" in text
    assert "after another episode, the reward in step 1 is different" in text
