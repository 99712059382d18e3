"""What is collected, against plain loops: finished episodes, decorrelated starts, streams that go on after a save."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from reference_agents.catalog import find_task
from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.environments.predator_prey import PredatorPreyVector
from reference_agents.environments.vector import Step
from reference_agents.learning.augmentation import Augmenter
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.rollout import FinishedEpisodes, Rollout, _decorrelate
from reference_agents.networks.views import Views
from reference_agents.randomness import Purpose, generator
from reference_agents.settings import preset


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("chance", [0.02, 0.3])
def test_the_mean_return_is_that_of_the_episodes_that_ended_whole(begun: bool, chance: float) -> None:
    rng = np.random.default_rng(0)
    finished = FinishedEpisodes(2, 3, begun=begun)
    partial, running = [[begun] * 3 for _ in range(2)], [[0.0] * 3 for _ in range(2)]
    expected: list[float] = [math.nan, math.nan]
    for _ in range(60):
        ended_returns: list[list[float]] = [[], []]
        for _ in range(5):
            reward, ended = rng.integers(0, 4, (2, 3)).astype(np.float32), rng.random((2, 3)) < chance
            finished.add(reward, ended)
            for run, place in np.ndindex(2, 3):
                running[run][place] += float(reward[run, place])
                if ended[run, place]:
                    if not partial[run][place]:
                        ended_returns[run].append(running[run][place])
                    partial[run][place], running[run][place] = False, 0.0
        expected = [float(np.mean(new)) if new else old for new, old in zip(ended_returns, expected, strict=True)]
        other = FinishedEpisodes(2, 3)
        other.restore(finished.state())
        for taken in (other.take(), finished.take()):
            np.testing.assert_allclose(taken, expected, rtol=1e-12)  # sums of a few whole numbers


class Counting:
    """A vector environment that shows how many steps each of its environments has taken."""

    action_numbers = 1

    def __init__(self, runs: int, environments: int) -> None:
        self.taken = np.zeros((runs, environments), dtype=np.int64)
        self.uniforms: list[np.ndarray[Any, Any]] = []

    def reset(self) -> np.ndarray[Any, Any]:
        """None so far."""
        self.taken[:] = 0
        return self.taken.copy()

    def random_actions(self, uniforms: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Remember what actions are made of."""
        self.uniforms.append(uniforms.copy())
        return uniforms[..., 0]

    def step(self, actions: np.ndarray[Any, Any], *, active: np.ndarray[Any, Any] | None = None) -> Step:
        """Count."""
        self.taken += 1 if active is None else active
        none = np.zeros(self.taken.shape, dtype=bool)
        return Step(self.taken.copy(), self.taken.copy(), none.astype(np.float32), none, none)


class Restarting(Counting):
    """The same of environments that cannot stand still."""

    def step(self, actions: np.ndarray[Any, Any], *, active: np.ndarray[Any, Any] | None = None) -> Step:
        """All of them move."""
        assert active is None
        return super().step(actions)

    def restart(self, chosen: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Begin some afresh."""
        self.taken[chosen] = 0
        return self.taken.copy()


@pytest.mark.parametrize("make", [Counting, Restarting])
@pytest.mark.parametrize("longest", [0, 1, 3])
def test_each_environment_starts_after_a_random_number_of_random_actions_of_its_own(
    make: type[Counting], longest: int
) -> None:
    seeds, settings = [3, 8], preset("gridworld", "tuned").with_changes(decorrelation_steps=longest, environments=40)
    environment = make(2, 40)
    shown = _decorrelate(environment, seeds, settings)  # type: ignore[arg-type]
    streams = [generator(seed, Purpose.DECORRELATION) for seed in seeds]
    drawn = np.stack([stream.integers(0, longest, 40, endpoint=True) for stream in streams])
    assert set(drawn.ravel()) == set(range(longest + 1))  # 80 draws out of four at most
    np.testing.assert_array_equal(shown, drawn)
    np.testing.assert_array_equal(environment.taken, drawn)
    assert len(environment.uniforms) == longest
    assert all((u >= 0).all() and (u < 1).all() and u.shape == (2, 40, 1) for u in environment.uniforms)


def test_an_augmenter_goes_on_from_a_saved_state_and_not_from_the_start() -> None:
    task = find_task("gridworld")
    settings = preset("gridworld", "tuned").with_changes(environments=10, horizon=10)
    one, other = (Augmenter(Views(task), [0, 1], settings, Categorical()) for _ in range(2))
    observations = torch.randn(2, 100, 1, 21, 21)
    rollout = Rollout(observations, torch.randint(5, (2, 100)), *torch.randn(3, 2, 100))
    first = one.augment(rollout, None)  # type: ignore[arg-type]  # A2C asks no network
    other.restore(one.state())
    second, again = one.augment(rollout, None), other.augment(rollout, None)  # type: ignore[arg-type]
    assert torch.equal(second.actions, again.actions)
    assert torch.equal(second.observations, again.observations)
    assert not torch.equal(first.actions, second.actions)


def test_a_hunter_that_is_not_active_stands_still_and_its_clock_too() -> None:
    grid = PredatorPreyVector([0], 50, coded=True)
    shown = grid.reset()
    active = np.arange(50)[None] % 2 == 0
    grid.elapsed[:] = 7
    step = grid.step(np.full((1, 50), 1), active=active)
    assert (step.observation == shown)[~active].all()
    assert (step.observation != shown)[active].any()
    ended = step.terminated | step.truncated
    assert not ended[~active].any()
    assert (grid.elapsed[~active] == 7).all()
    assert (grid.elapsed[active & ~ended] == 8).all()


@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_random_actions_fill_the_range_between_the_bounds(name: str) -> None:
    vector = GymnasiumVector(name, [0], 1)
    space = gym.make(name).action_space
    uniforms = np.array([[[0.0]], [[0.25]], [[1.0]]])
    expected = [space.low, 0.75 * space.low + 0.25 * space.high, space.high]
    np.testing.assert_allclose(vector.random_actions(uniforms)[:, 0], expected, rtol=1e-6)  # float32
    assert vector.observation_shape == vector.reset().shape[2:] == ((3,) if name == "Pendulum-v1" else (2,))
