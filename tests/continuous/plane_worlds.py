"""Worlds for claims of continuous groups: particles, cars, rotors and tracks, each with a fault that can be planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

Move = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, float, bool]]


class World(gym.Env):
    """A world of a vector: `move(state, action, rng)` gives next state, reward and end."""

    def __init__(
        self,
        move: Move,
        size: int,
        actions: int,
        *,
        start: Callable[[np.random.Generator], np.ndarray] | None = None,
        dtype: Any = np.float32,
        settable: bool = True,
        bound: float = np.inf,
    ) -> None:
        self.move, self.start = move, start or (lambda rng: rng.normal(size=size))
        self.observation_space = gym.spaces.Box(-bound, bound, (size,), dtype)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (actions,), np.float32)
        self.x = np.zeros(size)
        if settable:
            self.get_state, self.set_state = lambda: self.x.copy(), self._put

    def _put(self, state: Any) -> None:
        self.x, self.time = np.array(state, dtype=np.float64), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._put(self.start(self.np_random))
        return self.x.astype(self.observation_space.dtype), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.x, reward, ended = self.move(self.x, np.asarray(action, dtype=np.float64), self.np_random)
        self.time += 1
        return self.x.astype(self.observation_space.dtype), float(reward), bool(ended), self.time >= 60, {}


def particle(
    *,
    coriolis: float = 0.0,
    gravity: float = 0.0,
    quartic: float = 0.0,
    stretch: float = 0.0,
    clip: str = "",
    noise: Any = None,
    tilt: float = 0.0,
) -> Move:
    """A particle in the plane or in space, pulled to the origin; every argument but Coriolis breaks SO(n)."""

    def move(state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, bool]:
        n = len(state) // 2
        x, v = state[:n], state[n:]
        if clip == "square":
            action = np.clip(1.5 * action, -1.0, 1.0)
        if clip == "ball":
            action = action / max(1.0, float(np.linalg.norm(action)))
        force = -x / (x @ x + 0.1) - quartic * x**3
        force[-1] = force[-1] * (1 + stretch) - gravity
        if coriolis:
            force = force + coriolis * np.array([-v[1], v[0]])
        v = v + 0.05 * (force + action)
        if noise is not None:
            v = v + 0.1 * noise(rng)
        x = x + 0.05 * v
        if clip == "walls":
            x = np.clip(x, -2.0, 2.0)
        return np.concatenate([x, v]), -x @ x - 0.1 * action @ action + tilt * x[0], x @ x > 16

    return move


def rotor(state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, bool]:
    """A vector that a (pseudo)vector of angular velocity turns."""
    x, w = state[:3], state[3:]
    return np.concatenate([x + 0.05 * np.cross(w, x), 0.99 * w + 0.05 * action]), -x @ x, False


def car(*, wind: float = 0.0) -> Move:
    """A car with position, heading as cosine and sine, and speed; the action is thrust and steering."""

    def move(state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, bool]:
        x, y, cos, sin, speed = state
        heading, speed = np.arctan2(sin, cos) + 0.1 * action[1], 0.95 * speed + 0.1 * action[0]
        x, y = x + 0.1 * speed * np.cos(heading) + wind, y + 0.1 * speed * np.sin(heading)
        return np.array([x, y, np.cos(heading), np.sin(heading), speed]), -(x**2) - y**2, x**2 + y**2 > 25

    return move


def car_start(rng: np.random.Generator) -> np.ndarray:
    """Anywhere, heading anywhere."""
    heading = rng.uniform(-np.pi, np.pi)
    return np.array([*rng.normal(size=2), np.cos(heading), np.sin(heading), 0.3 * rng.normal()])


def track(*, wall: float = np.inf, spring: float = 0.0) -> Move:
    """A cart on an endless track; a wall or a spring gives places a name."""

    def move(state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, bool]:
        x, v = state
        v = 0.98 * v + 0.1 * action[0] - spring * x
        x = x + 0.1 * v
        if abs(x) > wall:
            x, v = np.sign(x) * wall, 0.0
        return np.array([x, v]), -(v**2), False

    return move


def two_bodies(*, anchor: float = 0.0, unequal: float = 0.0) -> Move:
    """Two bodies that attract each other; an anchor breaks shifts, unequal masses break the exchange."""

    def move(state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, bool]:
        p, q, u, w = state.reshape(4, 2)
        pull = -(p - q) / ((p - q) @ (p - q) + 0.1)
        u = u + 0.05 * (1 + unequal) * (pull + action[:2]) - anchor * p
        w = w + 0.05 * (-pull + action[2:])
        return np.concatenate([p + 0.05 * u, q + 0.05 * w, u, w]), -(p - q) @ (p - q), False

    return move
