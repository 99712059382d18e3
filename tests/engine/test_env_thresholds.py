"""Thresholds are sought where a box of states is known; elsewhere the evidence says that they were not."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import symcheck as sc
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry
from symcheck_reports.terminal import run_lines

NOT_SOUGHT = "states near a termination threshold were not searched for"


class HalfOpen(gym.Env[Any, Any]):
    """A walk that ends above 2, and at or below -2: the mirror holds everywhere but at one number."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere between -1 and 1."""
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1.0, 1.0)
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Walk by 0.3."""
        self.x += 0.3 if action else -0.3
        return np.array([self.x]), 1.0, bool(self.x > 2 or self.x <= -2), False, {}

    def get_state(self) -> Any:
        """The place."""
        return np.array([self.x])

    def set_state(self, state: Any) -> None:
        """Go there."""
        self.x = float(state[0])


class Closed(HalfOpen):
    """The same with both ends closed: the mirror holds."""

    def step(self, action: Any) -> Any:
        """Walk by 0.3."""
        obs, reward, _, *rest = super().step(action)
        return obs, reward, bool(abs(self.x) >= 2), *rest


class Doubled(HalfOpen):
    """The same, showing twice where it is: the state is not the observation."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start anywhere between -1 and 1."""
        obs, info = super().reset(seed=seed)
        return 2 * obs, info

    def step(self, action: Any) -> Any:
        """Walk by 0.3."""
        obs, *rest = super().step(action)
        return 2 * obs, *rest


class Cells(HalfOpen):
    """A walk over cells that refuses to be put between them."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start at one of three cells."""
        super().reset(seed=seed)
        self.x = float(self.np_random.integers(-1, 2))
        return np.array([self.x]), {}

    def step(self, action: Any) -> Any:
        """Walk by one."""
        self.x += 1.0 if action else -1.0
        return np.array([self.x]), 1.0, bool(abs(self.x) >= 4), False, {}

    def set_state(self, state: Any) -> None:
        """Go to a cell."""
        if state[0] != round(state[0]):
            raise ValueError("no cell")
        self.x = float(state[0])


MIRROR = Symmetry("mirror", catalog.cyclic(2), [[-1]], [[1, 0]])
TWICE = Symmetry("mirror", catalog.cyclic(2), [[-1]], [[1, 0]], state=[[-1]])


def _ending(make: Any, symmetry: Symmetry, **options: Any) -> Any:
    return sc.verify_env(make, symmetry, samples=500, **options)["termination_invariance"]


@pytest.mark.parametrize("seed", range(4))
def test_an_end_that_is_open_on_one_side_only_is_no_pass_although_no_box_of_states_is_known(seed: int) -> None:
    result = _ending(HalfOpen, MIRROR, seed=seed)
    assert result.verdict == "undecided"
    assert result.reason.code == "threshold_in_doubt"
    assert result.reason.fields == {"coordinate": "observation[0]", "ends_at": -2.0, "goes_on_at": 2.0}
    assert "terminates at observation[0] = -2 and continues at 2 (>= on one side and > on the" in result.detail
    assert "states between visited ones" in result.detail


@pytest.mark.parametrize("seed", range(4))
def test_ends_that_are_alike_on_both_sides_pass_and_say_where_they_were_sought(seed: int) -> None:
    result = _ending(Closed, MIRROR, seed=seed)
    assert result.verdict == "passed"
    sought = result.bound["region"].fields["thresholds"]
    assert sought.code == "thresholds_sought_between"
    assert sought.fields["states"] > 0
    assert "states between visited ones" in str(result.bound["region"])


def test_states_that_cannot_be_set_between_visited_ones_are_left_alone() -> None:
    result = _ending(Cells, MIRROR)
    assert result.verdict == "passed"
    assert NOT_SOUGHT in str(result.bound["region"])


def test_a_pass_says_that_thresholds_were_not_sought_where_no_box_of_states_is_known() -> None:
    result = _ending(Doubled, TWICE)
    assert result.verdict == "passed"
    thresholds = result.bound["region"].fields["thresholds"]
    assert (thresholds.code, thresholds.fields["why"]) == ("thresholds_not_sought", "points")
    assert str(thresholds).endswith("not every point between two states is known to be a state")
    assert thresholds in result.notes


def test_the_terminal_says_it_once_beside_the_region_that_all_share() -> None:
    (run,) = sc.verify_env(Doubled, TWICE, samples=500).results
    regions = [line.plain.strip() for line in run_lines(run) if "region:" in line.plain]
    assert len(regions) == 3
    assert "states: " in regions[0]
    assert regions[1].startswith(f"region: {NOT_SOUGHT}")


def test_nothing_is_said_where_thresholds_were_sought() -> None:
    result = _ending("CartPole-v1", Symmetry("mirror", catalog.cyclic(2), [[-1] * 4], [[1, 0]]))
    assert result.verdict == "passed"
    assert "end the episode" in result.detail
    assert NOT_SOUGHT not in result.detail


def test_nothing_is_said_where_states_are_whole_numbers_and_no_threshold_lies_between() -> None:
    # Transposing the corridor of four cells: cell k goes to itself, and the two actions that stay are exchanged.
    nothing = Symmetry("nothing", catalog.cyclic(2), [[0, 1, 2, 3]], [[0, 3, 2, 1]])
    corridor = lambda: gym.make("FrozenLake-v1", desc=["SFFG"], is_slippery=False)  # noqa: E731
    result = _ending(corridor, nothing, method="paired")
    assert result.verdict == "passed"
    assert "end the episode" in result.detail
    assert NOT_SOUGHT not in result.detail
