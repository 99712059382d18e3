"""No verdict is stronger than its evidence: inherited tables, ends told apart by where they happen, hidden state."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import symcheck as sc
from symcheck.errors import OptionError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

C2 = catalog.cyclic(2)


class Fork(gym.Env[Any, Any]):
    """From 0 and from 1 to 2 or 3, evenly: it ends in `ends[s]`. 2 and 3 lead to themselves."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(1)

    def __init__(self, ends: tuple[int, int]) -> None:
        fork = {s: {0: [(0.5, to, 0.0, to == ends[s]) for to in (2, 3)]} for s in (0, 1)}
        self.P = {**fork, **{s: {0: [(1.0, s, 0.0, False)]} for s in (2, 3)}}
        self.initial_state_distrib = np.array([0.5, 0.5, 0.0, 0.0])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """At 0 or 1."""
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(2))
        return self.s, {}

    def step(self, action: Any) -> Any:
        """As the table says."""
        outcomes = self.P[self.s][int(action)]
        _, self.s, reward, ended = outcomes[int(self.np_random.integers(len(outcomes)))]
        return self.s, reward, ended, False, {}


def _verified(make: Any, symmetry: Symmetry, **options: Any) -> Any:
    return sc.verify_env(make, symmetry, **{"samples": 500, **options})


def test_an_end_in_another_state_is_no_proof_although_ends_are_as_likely() -> None:
    exchange = Symmetry("exchange", C2, [[1, 0, 2, 3]], [[0]])
    report = _verified(lambda: Fork((2, 3)), exchange)
    assert report["transition_invariance"].verdict == "proved"
    ended = report["termination_invariance"]
    assert ended.verdict == "failed"
    assert ended.violations == 2
    assert "together" in ended.counterexample.where
    assert _verified(lambda: Fork((2, 2)), exchange).verdict == "proved"
    both = Symmetry("exchange both", C2, [[1, 0, 3, 2]], [[0]])
    assert _verified(lambda: Fork((2, 3)), both).verdict == "proved"


class Windy(FrozenLakeEnv):
    """A lake whose inherited table knows nothing of the wind."""

    def step(self, a: Any) -> Any:
        """Downwind, whatever was done."""
        return super().step(1)


def _sideways() -> Symmetry:
    """Left and right do the same in a corridor of one cell's width that leads down."""
    return Symmetry("sideways", C2, [list(range(4))], [[2, 1, 0, 3]])


CORRIDOR = [["S"], ["F"], ["F"], ["G"]]


def test_a_table_that_the_steps_contradict_proves_nothing() -> None:
    def windy() -> Windy:
        return Windy(desc=CORRIDOR, is_slippery=False)

    def slippery() -> FrozenLakeEnv:
        return FrozenLakeEnv(desc=CORRIDOR, is_slippery=True)

    report = _verified(windy, _sideways())
    assert report["transition_invariance"].verdict == "passed"
    assert report["transition_invariance"].method == "paired"
    with pytest.raises(OptionError, match="to which the table P gives probability 0"):
        _verified(windy, _sideways(), method="exact")
    assert _verified(slippery, _sideways())["transition_invariance"].verdict == "proved"


class Late(gym.Env[Any, Any]):
    """A point on which wind blows from the sixth step on; its clock is not in its state."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)
    wind = 0.5

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere between -1 and 1."""
        super().reset(seed=seed)
        self.x, self.t = float(self.np_random.uniform(-1, 1)), 0
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Push."""
        self.t += 1
        self.x = 0.9 * self.x + (0.3 if action else -0.3) + self.wind * (self.t > 5)
        return np.array([self.x]), 0.0, False, self.t >= 50, {}


class Calm(Late):
    """The same without wind."""

    wind = 0.0


def _go(env: Any, state: Any) -> None:
    env.x, env.t = float(state[0]), 0


def _place(env: Any) -> Any:
    return np.array([env.x])


sc.register_state_access(Late, set=_go, get=_place)


def test_laws_of_set_states_pass_nothing_where_reached_states_behave_differently() -> None:
    """Whole episodes refute what the late wind breaks; they pass nothing if another method was requested."""
    mirror = Symmetry("mirror", C2, [[-1]], [[1, 0]])
    hidden = _verified(Late, mirror, method="distribution")
    assert (hidden["transition_invariance"].verdict, hidden["transition_invariance"].method) == ("failed", "trajectory")
    for name in ("reward_invariance", "termination_invariance"):
        assert hidden[name].verdict == "undecided"
        assert "hidden state" in hidden[name].detail
    assert _verified(Calm, mirror, method="distribution").verdict == "passed"
