"""Small worlds made of functions, whose state can be read and set, and the rows of both catalogues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from symcheck.envs.state_access import register_state_access
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

Move = tuple[Any, Any, Any]
C2 = catalog.cyclic(2)
SWAP = [[1, 0]]


def box(*shape: int, dtype: Any = np.float64) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, dtype)


def spread(rng: np.random.Generator) -> Any:
    return rng.uniform(-0.3, 0.3, 2)


def pushed(s: Any, a: Any, rng: Any = None, force: float | None = None) -> Any:
    """A damped point on a line; (x, v) -> (-x, -v) with the pushes exchanged (or negated) keeps it."""
    push = (1.0 if a else -1.0) if force is None else force
    v = 0.9 * s[1] + 0.3 * push
    return np.array([s[0] + 0.1 * v, v])


def plain(s: Any, a: Any, rng: Any) -> Move:
    following = pushed(s, a)
    return following, -float(following[0] ** 2), abs(following[0]) > 1


def driven(s: Any, a: Any, rng: Any) -> Move:
    """The same with a continuous push in [-1, 1]."""
    following = pushed(s, a, force=float(a[0]))
    return following, -float(following[0] ** 2) - 0.01 * float(a[0]) ** 2, False


PUSH = spaces.Box(-1, 1, (1,), np.float64)


class World(gym.Env[Any, Any]):
    """State `s`, and four functions: `start(rng)`, `move(s, a, rng)`, `show(s)`; `black` worlds cannot be set."""

    def __init__(
        self,
        move: Callable[[Any, Any, Any], Move] = plain,
        start: Callable[[np.random.Generator], Any] = spread,
        show: Callable[[Any], Any] = np.copy,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
    ) -> None:
        self.observation_space = observation_space or box(2)
        self.action_space = action_space or spaces.Discrete(2)
        self.move, self.start, self.show = move, start, show

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.s = self.start(self.np_random)
        return self.show(self.s), {}

    def step(self, action: Any) -> tuple[Any, Any, Any, bool, dict[str, Any]]:
        self.s, reward, terminated = self.move(self.s, action, self.np_random)
        return self.show(self.s), reward, terminated, False, {}


class BlackWorld(World):
    """The same, but nobody can read or set its state."""


class Seen(World):
    """A world whose observation is its state."""


class Hidden(World):
    """A world whose state is read and set apart from its observation."""


register_state_access(Seen, set=lambda env, s: setattr(env, "s", np.array(s)))
register_state_access(Hidden, set=lambda env, s: setattr(env, "s", np.array(s)), get=lambda env: np.array(env.s))


class Table(gym.Env[Any, Any]):
    """A finite MDP that shows its probabilities, as Gymnasium's toy texts do."""

    def __init__(self, table: dict[int, dict[int, list[Any]]], start: Any) -> None:
        self.P = table
        self.initial_state_distrib = np.array(start, dtype=np.float64)
        self.observation_space = spaces.Discrete(len(table))
        self.action_space = spaces.Discrete(len(table[0]))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.s = int(self.np_random.choice(len(self.P), p=self.initial_state_distrib))
        return self.s, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        outcomes = self.P[self.s][int(action)]
        _, self.s, reward, ended = outcomes[self.np_random.choice(len(outcomes), p=[p for p, *_ in outcomes])]
        return self.s, float(reward), bool(ended), False, {}


def corridor(size: int = 7, slip: tuple[float, float] = (0.2, 0.2), pay: tuple[float, float] = (1.0, 1.0)) -> Any:
    """Cells in a row, ends at both walls; a step to the left or right slips the other way with that probability."""
    table: dict[int, dict[int, list[Any]]] = {}
    for cell in range(size):
        table[cell] = {}
        for action, (there, back) in enumerate(((-1, 1), (1, -1))):
            outcomes = []
            for probability, move in ((1 - slip[action], there), (slip[action], back)):
                to = min(max(cell + move, 0), size - 1)
                reward = pay[0] * (to == 0) + pay[1] * (to == size - 1)
                outcomes.append((probability, to, reward, to in (0, size - 1)))
            table[cell][action] = outcomes if action else outcomes[::-1]
    return table


REVERSED = [[6, 5, 4, 3, 2, 1, 0]]


@dataclass(frozen=True)
class Row:
    """One world and a claim about it.

    Attributes:
        name: the kind.
        make: builds the world, with its wrappers.
        symmetry: the claim.
        fails: properties that must fail, "" for correct worlds.
        also: properties that may fail as a consequence.
        cause: text that some cause must contain.
        fast: whether it runs in the default suite; all run in the slow tier.
        options: of the run.
    """

    name: str
    make: Callable[[], gym.Env[Any, Any]]
    symmetry: Symmetry
    fails: str = ""
    also: str = ""
    cause: str = ""
    fast: bool = False
    options: dict[str, Any] | None = None


def mirror(**parts: Any) -> Symmetry:
    """(x, v) -> (-x, -v), pushes exchanged, unless parts say otherwise."""
    return Symmetry(**{"name": "mirror", "group": C2, "observation": [[-1, -1]], "action": SWAP, **parts})


def steer(**parts: Any) -> Symmetry:
    """The same with continuous pushes."""
    return mirror(action=[[-1]], **parts)
