"""A point on a line whose claims, states, noise and faults are chosen by the test, and what checks of it share."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import symcheck as sc
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods.selection import prepare
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1, -1]], [[1, 0]])


class Point(gym.Env[Any, Any]):
    """Position and speed; two actions push left and right. Every fault is off unless it is asked for.

    Args:
        noise: standard deviation of the push.
        wind: a constant push, which breaks the mirror symmetry.
        late: wind from the sixth step of an episode on, counted by a clock that is no part of the state.
        clocked: whether setting a state leaves that clock running.
        ends: whether it terminates beyond 2.
    """

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(
        self, *, noise: float = 0.0, wind: float = 0.0, late: float = 0.0, clocked: bool = False, ends: bool = True
    ) -> None:
        self.noise, self.wind, self.late, self.clocked, self.ends = noise, wind, late, clocked, ends

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start at rest anywhere between -1 and 1."""
        super().reset(seed=seed)
        self.x, self.v, self.t = float(self.np_random.uniform(-1, 1)), 0.0, 0
        return self.observe(), {}

    def observe(self) -> Any:
        """Position and speed."""
        return np.array([self.x, self.v])

    def step(self, action: Any) -> Any:
        """Push."""
        self.t += 1
        push = (0.1 if action else -0.1) + self.wind + (self.late if self.t > 5 else 0.0)
        self.v = 0.9 * self.v + push + (self.noise * self.np_random.normal() if self.noise else 0.0)
        self.x += self.v
        return self.observe(), -abs(self.x), bool(self.ends and abs(self.x) > 2), False, {}


class Settable(Point):
    """A point whose state can be set and read."""


def _set(env: Any, state: Any) -> None:
    env.x, env.v = float(state[0]), float(state[1])
    if not env.clocked:
        env.t = 0


sc.register_state_access(Settable, set=_set, get=lambda env: np.array([env.x, env.v]))


def bench_of(
    make: Any, symmetry: Symmetry = MIRROR, *, emit: Any = ignore, clock: Any = None, **options: Any
) -> Workbench:
    """A workbench before any state is gathered."""
    told = EnvOptions(**{"samples": 200, **options})
    return prepare(make, symmetry, told, "small world", emit, Clock() if clock is None else clock)
