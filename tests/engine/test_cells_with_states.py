"""Random environments with settable states and a few hundred (s, a): every one of them is compared by itself."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck as sc

SIDE = 9
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
FLIP = [(SIDE - 1 - i // SIDE) * SIDE + i % SIDE for i in range(SIDE**2)]


class SlipperyRoom(gym.Env[Any, Any]):
    """A square room of 81 cells, in which one step of five goes anywhere; one cell may be blocked under one action."""

    observation_space = spaces.Discrete(SIDE**2)
    action_space = spaces.Discrete(4)

    def __init__(self, blocked: bool) -> None:
        self.blocked = blocked

    def get_state(self) -> Any:
        return self.cell

    def set_state(self, state: Any) -> None:
        self.cell = int(state)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(SIDE**2))
        return self.cell, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        x, y = divmod(self.cell, SIDE)
        if self.np_random.random() < 0.2:
            action = self.np_random.integers(4)
        reward = -abs(x - SIDE // 2) - y
        if not (self.blocked and (x, y, int(action)) == (6, 3, 2)):
            x, y = np.clip(np.add((x, y), MOVES[int(action)]), 0, SIDE - 1)
        self.cell = int(x) * SIDE + int(y)
        return self.cell, float(reward), False, False, {}


def _flip(cell: int) -> int:
    return FLIP[cell]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_one_blocked_cell_of_81_fails_and_its_twin_passes(seed: int) -> None:
    claim = sc.Symmetry("flip", sc.groups.cyclic(2), observation=[FLIP], action=[[1, 0, 2, 3]], state=[_flip])
    blocked = sc.verify_env(lambda: SlipperyRoom(True), claim, seed=seed)
    assert blocked["transition_invariance"].verdict == "failed"
    assert blocked["transition_invariance"].method == "distribution"
    assert sc.verify_env(lambda: SlipperyRoom(False), claim, seed=seed).verdict == "passed"
