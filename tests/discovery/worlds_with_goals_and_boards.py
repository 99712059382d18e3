"""Worlds with goals as numbers, boards of several channels, and commands, each beside a twin with a fault."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from worlds_with_known_groups import Hidden, World


class NumberedGoal(World):
    """A place and one of four sides to go to, as a number: reversed with a reflection in the diagonal (C2).

    The group with all permutations of the values is D4; only the reversal of the values is searched.
    """

    action_space = spaces.Discrete(5)
    low, high = (-1.0, -1.0, 0.0), (1.0, 1.0, 3.0)
    known = 2
    sides = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.0, 0.0]])
    pays = (1.0, 1.0, 1.0, 1.0)

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            place=spaces.Box(-np.inf, np.inf, (2,), np.float64), goal=spaces.Discrete(4)
        )

    def show(self, x: np.ndarray) -> Any:
        return {"place": x[:2].copy(), "goal": int(x[2])}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        gym.Env.reset(self, seed=seed)
        self.x = np.append(self.np_random.uniform(-1, 1, 2), self.np_random.integers(4))
        return self.show(self.x), {}

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        place = 0.95 * x[:2] + 0.1 * self.sides[action]
        goal = int(x[2])
        return np.append(place, x[2]), float(self.pays[goal] * place @ self.sides[goal]), False


class NumberedGoalThatPaysMore(NumberedGoal):
    """The first side pays 1% more (C1)."""

    known = 1
    pays = (1.01, 1.0, 1.0, 1.0)


class Pieces(World):
    """Stones of two kinds on a board of 4 x 4, one channel for each; a block of 2 x 2 pays (D4)."""

    action_space = spaces.Discrete(16)
    low = high = (0,) * 32
    whole = True
    known = 8
    pays = np.ones((3, 3))

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(0, 1, (2, 4, 4), np.uint8)

    def show(self, x: np.ndarray) -> Any:
        return x.reshape(2, 4, 4).astype(np.uint8)

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        """Stones of the two kinds are placed in turn."""
        stones = x.copy().reshape(2, 16)
        if stones[:, action].any():
            return x, -1.0, True
        stones[int(stones.sum()) % 2, action] = 1
        board = stones[0].reshape(4, 4)
        blocks = board[:-1, :-1] * board[1:, :-1] * board[:-1, 1:] * board[1:, 1:]
        return stones.ravel(), float((blocks * self.pays).sum()), bool(blocks.any() or stones.any(axis=0).all())


class PiecesWithDearCorner(Pieces):
    """One corner pays a tenth more: the reflection in the diagonal is left (C2)."""

    known = 2
    pays = np.array([[1.1, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])


class Plate(World):
    """A plate is tilted as commanded: two angles, their rates, two commands; deviations cost (D4)."""

    low, high = (-0.2, -0.2, -0.1, -0.1, -0.3, -0.3), (0.2, 0.2, 0.1, 0.1, 0.3, 0.3)
    known = 8

    def move(self, x: np.ndarray, action: Any) -> tuple[np.ndarray, float, bool]:
        rates = 0.9 * x[2:4] + 0.1 * np.asarray(action) - 0.05 * np.sin(x[:2])
        angles = x[:2] + 0.1 * rates
        paid = float(np.exp(-20 * ((angles - x[4:]) ** 2).sum()))
        return np.concatenate([angles, rates, x[4:]]), paid * self.weigh(x[4:]), False

    def weigh(self, command: np.ndarray) -> float:
        """The weight of the reward."""
        return 1.0


class PlateThatPaysLess(Plate):
    """Commands far to one side pay a tenth less (C2)."""

    known = 2

    def weigh(self, command: np.ndarray) -> float:
        """The weight of the reward."""
        return 0.9 if command[0] > 0.2 else 1.0


def hidden_plate() -> Hidden:
    """The plate as a black box."""
    return Hidden(Plate(), 8)


def hidden_plate_that_pays_less() -> Hidden:
    """The other plate as a black box: only episodes show what a command pays."""
    return Hidden(PlateThatPaysLess(), 2)
