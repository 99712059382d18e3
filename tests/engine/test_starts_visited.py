"""Episodes that never end do not keep a run from seeing other starts, and their cuts are no ends."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import symcheck as sc
from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.pool import Pool, roll_out
from symcheck.engine.environments.controls.set_vs_reached import compare_set_with_reached
from symcheck.engine.environments.methods.selection import prepare
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions

SIZE = 5
ROWS = sc.Symmetry(
    "left and right",
    sc.groups.cyclic(2),
    observation=[{"matrix": [[1, 0], [0, -1]], "offset": [0, SIZE - 1]}],
    action=[[1, 0]],
    state=[{"matrix": [[1, 0], [0, -1]], "offset": [0, SIZE - 1]}],
)


class Corridors(gym.Env[Any, Any]):
    """Five corridors side by side: nobody leaves the one that an episode begins in, and no episode ends."""

    observation_space = gym.spaces.MultiDiscrete([SIZE, SIZE])
    action_space = gym.spaces.Discrete(2)

    def __init__(self, wall: int | None = None, limit: int | None = None) -> None:
        self.wall, self.limit = wall, limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin anywhere."""
        super().reset(seed=seed)
        self.row, self.column = (int(place) for place in self.np_random.integers(0, SIZE, size=2))
        self.steps = 0
        return np.array([self.row, self.column]), {}

    def step(self, action: Any) -> Any:
        """Go left or right; a wall keeps its corridor's last column empty."""
        last = SIZE - 2 if self.row == self.wall else SIZE - 1
        self.column = int(np.clip(self.column + 2 * int(action) - 1, 0, last))
        self.steps += 1
        cut = self.limit is not None and self.steps >= self.limit
        return np.array([self.row, self.column]), float(self.column == 2), False, cut, {}

    def get_state(self) -> Any:
        """Row and column."""
        return np.array([self.row, self.column])

    def set_state(self, state: Any) -> None:
        """Put it there."""
        self.row, self.column = (int(place) for place in state)


def rolled_out(env: Corridors, steps: int) -> tuple[Any, Pool]:
    """The workbench and a pool of so many steps."""
    bench = prepare(lambda: env, ROWS, EnvOptions(samples=1000), "corridors", ignore, Clock())
    pool = Pool()
    roll_out(bench.pairs.stepper, bench.pairs.placement, steps, pool)
    return bench, pool


@pytest.mark.parametrize("wall", range(SIZE))
def test_a_wall_in_one_corridor_is_found_wherever_it_is(wall: int) -> None:
    report = sc.verify_env(lambda: Corridors(wall), ROWS, samples=1000)
    assert report["transition_invariance"].verdict == "failed"


def test_corridors_without_a_wall_pass() -> None:
    assert sc.verify_env(Corridors, ROWS, samples=1000).verdict == "passed"


def test_endless_episodes_are_cut_so_that_many_starts_are_seen() -> None:
    _, pool = rolled_out(Corridors(), 2000)
    assert pool.episodes >= 32
    assert len(pool.visits) <= 3000
    assert not pool.ends
    numbers = np.diff(np.flatnonzero([visit.situation.origin == "start" for visit in pool.visits]))
    assert numbers.max() == 2000  # one is followed as far as the steps reach


@pytest.mark.parametrize("limit", [100, 400, 900])
def test_two_whole_episodes_are_seen_where_they_end_by_themselves(limit: int) -> None:
    _, pool = rolled_out(Corridors(limit=limit), 2000)
    assert len(pool.ends) >= 2
    assert pool.episodes >= 6


def test_a_cut_is_no_step_from_one_episode_into_the_next() -> None:
    bench, pool = rolled_out(Corridors(), 2000)
    reached = compare_set_with_reached(bench.pairs.stepper, pool, np.random.default_rng(0))
    assert reached.caution is None
    assert not reached.remarks
