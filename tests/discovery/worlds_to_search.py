"""Small environments with known symmetries, and copies of them with one planted fault."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Vector(gym.Env):
    """An environment whose state is its observation; subclasses say how a step moves it."""

    size = 2
    action_space: gym.Space = gym.spaces.Box(-1, 1, (2,), np.float64)
    start = 0.5

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.size,), np.float64)
        self.x = np.zeros(self.size)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.x = self.centre() + self.np_random.uniform(-self.start, self.start, self.size)
        return self.x.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.x, reward = self.move(self.x, action)
        return self.x.copy(), float(reward), False, False, {}

    def centre(self) -> np.ndarray:
        return np.zeros(self.size)

    def get_state(self) -> np.ndarray:
        return self.x.copy()

    def set_state(self, state: Any) -> None:
        self.x = np.array(state, dtype=np.float64)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        raise NotImplementedError


class Plane(Vector):
    """A point pulled to the origin of a plane: every signed permutation of the axes is a symmetry (D4)."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        pulled = x - 0.1 * x * (1 + x**2)  # axis by axis: no other rotation
        return pulled + 0.05 * np.asarray(action), -float((x**4).sum())


class SlantedPlane(Plane):
    """A plane shown with its first axis bent: of its mirrors only that of the second axis maps observations."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        _, reward, *rest = super().step(action)
        return self.shown(), reward, *rest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self.shown(), {}

    def shown(self) -> np.ndarray:
        return np.array([self.x[0] + 0.5 * self.x[1] ** 2, self.x[1]])


class WindyPlane(Plane):
    """Wind along the first axis leaves the reflection of the second."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        moved, reward = super().move(x, action)
        return moved + np.array([0.02, 0.0]), reward


class PlaneWithBiasedReward(Plane):
    """The dynamics keep D4, the reward only the reflection of the second axis."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        moved, reward = super().move(x, action)
        return moved, reward + x[0]


class PlaneWithRareBand(Plane):
    """A reward in a band on the right that few states are in: only the second axis may be reflected."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        moved, reward = super().move(x * np.array([1.0, 1.3]), action)
        return moved, reward + float(0.05 < x[0] < 0.05013)


class RoundPlane(Vector):
    """A point pulled to the origin alike from all sides: any rotation is a symmetry."""

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        return x - 0.1 * x * (1 + (x**2).sum()) + 0.05 * np.asarray(action), -float((x**2).sum())


class Ball(Vector):
    """A point with a speed, pulled to the origin of space alike from all sides: any rotation of space (SO(3))."""

    size = 6
    action_space = gym.spaces.Box(-1, 1, (3,), np.float64)
    swirl = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        gym.Env.reset(self, seed=seed)
        directions = self.np_random.normal(size=(2, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self.x = (0.5 * directions * self.np_random.uniform(size=(2, 1))).reshape(-1)
        return self.x.copy(), {}

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        place, speed = x[:3], x[3:]
        speed = 0.95 * speed - 0.1 * place * (1 + place @ place) + 0.05 * np.asarray(action)
        speed = speed + self.swirl * np.array([speed[1], -speed[0], 0.0])
        return np.concatenate([place + 0.1 * speed, speed]), -float(place @ place)


class BallInAMagneticField(Ball):
    """A force turns speeds about the third axis, which alone may be turned about then."""

    swirl = 0.01


class OffCentre(Vector):
    """A particle in a well at 0.7: the reflection about 0.7 is a symmetry, about 0 it is not."""

    action_space = gym.spaces.Discrete(3)

    def centre(self) -> np.ndarray:
        return np.array([0.7, 0.0])

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        place, speed = x
        speed = 0.95 * speed - 0.1 * np.sin(place - 0.7) + 0.02 * (int(action) - 1)
        return np.array([place + 0.1 * speed, speed]), -((place - 0.7) ** 2)


class TwinActions(Vector):
    """A line on which actions 1 and 2 do the same."""

    size = 1
    action_space = gym.spaces.Discrete(4)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        push = (-1.0, 0.0, 0.0, 1.0)[int(action)]
        return 0.9 * x + 0.1 * push, -float(x[0] ** 2)


class BlackBox(gym.Env):
    """Another environment whose state cannot be reached."""

    def __init__(self, inner: gym.Env) -> None:
        self._inner = inner
        self.observation_space, self.action_space = inner.observation_space, inner.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        return self._inner.reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return self._inner.step(action)


class ManyActions(Vector):
    """Joint actions of more values than are matched."""

    action_space = gym.spaces.MultiDiscrete([9] * 8)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        return x, 0.0


class GoalPlane(Vector):
    """A point and a goal that differs between episodes; few states are near it, and only the reward knows."""

    size = 6

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        gym.Env.reset(self, seed=seed)
        wide = np.array([2.0, 1.0])
        place, goal = self.np_random.uniform(-wide, wide), self.np_random.uniform(-wide, wide)
        self.x = np.concatenate([place, np.zeros(2), goal])
        return self.x.copy(), {}

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float]:
        place, speed, goal = x[:2], x[2:4], x[4:]
        speed = np.clip(speed + 0.1 * np.asarray(action), -1, 1)
        place = np.clip(place + 0.1 * speed, [-2, -1], [2, 1])
        return np.concatenate([place, speed, goal]), float(np.hypot(*(place - goal)) < 0.3)


class Lines(gym.Env):
    """Stones on a 3 x 3 board, a reward for a full row, column or diagonal: the group of the square (D4)."""

    observation_space: gym.Space = gym.spaces.Box(0, 1, (9,), np.int8)
    action_space = gym.spaces.Discrete(9)
    rows = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.cells = np.zeros(9, np.int8)
        return self.show(), {}

    def show(self) -> Any:
        return self.cells.copy()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.cells[int(action)] = 1
        full = any(all(self.cells[i] for i in row) for row in self.rows)
        return self.show(), float(full), full, False, {}

    def get_state(self) -> np.ndarray:
        return self.cells.copy()

    def set_state(self, state: Any) -> None:
        self.cells = np.array(state, np.int8)


class LinesWithoutCorner(Lines):
    """The rules leave out a diagonal: what exchanges both diagonals is no symmetry any more."""

    rows = Lines.rows[:-1]


class LinesInParts(Lines):
    """The board as a picture with its one channel last, and the number of stones beside it."""

    observation_space = gym.spaces.Dict(
        board=gym.spaces.Box(0, 1, (3, 3, 1), np.int8), stones=gym.spaces.Box(0, 9, (1,), np.float64)
    )

    def show(self) -> Any:
        return {"board": self.cells.reshape(3, 3, 1).copy(), "stones": np.array([float(self.cells.sum())])}


class FallingBall(gym.Env):
    """A ball falls through a picture, a paddle waits below: columns may be reversed, the picture not turned about."""

    observation_space = gym.spaces.Box(0, 1, (6, 5), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._ball, self._paddle = [0, int(self.np_random.integers(5))], 2
        return self._picture(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._paddle = int(np.clip(self._paddle + int(action) - 1, 0, 4))
        self._ball[0] += 1
        ended = self._ball[0] == 5
        reward = (1.0 if self._ball[1] == self._paddle else -1.0) if ended else 0.0
        return self._picture(), reward, ended, False, {}

    def _picture(self) -> np.ndarray:
        picture = np.zeros((6, 5), np.float32)
        picture[tuple(self._ball)] = picture[5, self._paddle] = 1.0
        return picture


class Turned(gym.Env):
    """A point that drifts to one side, in half of the episodes to the other, which nothing shows: sides are alike."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float64)
    sides = (-1.0, 1.0)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._side, self._step = self.np_random.choice(self.sides), 0
        self._x = self.np_random.uniform(-0.5, 0.5, 1)
        return self._x.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._x, self._step = 0.5 * self._x + self._side * (0.1 + 0.6 * np.asarray(action)), self._step + 1
        return self._x.copy(), float(-abs(self._x[0])), False, self._step >= 400, {}


class Drifting(Turned):
    """A point that always drifts to the same side."""

    sides = (1.0,)


def falling_ball() -> FallingBall:
    return FallingBall()


def plane() -> Plane:
    return Plane()


def hidden_cartpole() -> BlackBox:
    return BlackBox(gym.make("CartPole-v1"))
