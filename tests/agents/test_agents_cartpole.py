"""The vectorised CartPole against Gymnasium's scalar environment, bit for bit."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from reference_agents.environments.cartpole import EPISODE_LIMIT, CartPoleVector, dynamics
from reference_agents.randomness import Purpose


@pytest.fixture
def scalar():
    env = gym.make("CartPole-v1")
    yield env
    env.close()


def test_every_step_of_random_episodes_is_bit_for_bit_gymnasiums(scalar) -> None:
    vector = CartPoleVector([3, 4], 2)
    vector.reset()
    rng = np.random.default_rng(0)
    for run, environment in np.ndindex(2, 2):
        scalar.reset(seed=0)
        scalar.unwrapped.state = tuple(vector.states[run, environment])
        vector.elapsed[:] = 0
        for _ in range(200):
            actions = rng.integers(0, 2, (2, 2))
            step = vector.step(actions)
            observation, reward, terminated, truncated, _ = scalar.step(int(actions[run, environment]))
            assert step.final_observation[run, environment].tobytes() == observation.tobytes()
            assert step.reward[run, environment] == reward
            assert bool(step.terminated[run, environment]) is terminated
            assert bool(step.truncated[run, environment]) is truncated
            if terminated or truncated:
                break
            assert step.observation[run, environment].tobytes() == observation.tobytes()


def test_the_dynamics_are_gymnasiums_in_float64_over_the_whole_state_box(scalar) -> None:
    rng = np.random.default_rng(1)
    states = rng.uniform(-1, 1, (500, 4)) * [2.4, 3.0, 0.2, 3.0]
    actions = rng.integers(0, 2, 500)
    expected = []
    for state, action in zip(states, actions, strict=True):
        scalar.reset(seed=0)
        scalar.unwrapped.state = tuple(state)
        scalar.step(int(action))
        expected.append(scalar.unwrapped.state)
    assert dynamics(states, actions).tobytes() == np.array(expected).tobytes()


def test_episodes_end_where_gymnasiums_do_at_either_side_of_each_limit(scalar) -> None:
    rng = np.random.default_rng(1)
    states = rng.uniform(-1, 1, (300, 4)) * [2.6, 1.0, 0.23, 1.0]
    vector = CartPoleVector([0], 300)
    vector.reset()
    vector.states[0] = states
    ended = vector.step(np.zeros((1, 300), dtype=np.int64)).terminated[0]
    expected = []
    for state in states:
        scalar.reset(seed=0)
        scalar.unwrapped.state = tuple(state)
        expected.append(scalar.step(0)[2])
    assert ended.tolist() == expected
    assert all((np.abs(states[ended, k]) < limit).any() for k, limit in ((0, 2.3), (2, 0.2)))  # each limit by itself


def test_a_mirrored_state_and_a_swapped_action_lead_to_the_mirrored_state() -> None:
    rng = np.random.default_rng(2)
    states, actions = rng.uniform(-1, 1, (100, 4)), rng.integers(0, 2, 100)
    assert np.array_equal(dynamics(-states, 1 - actions), -dynamics(states, actions))


def test_an_episode_is_truncated_at_its_500th_step_and_restarts_within_the_start_range() -> None:
    vector = CartPoleVector([0], 1)
    vector.reset()
    for elapsed in range(1, EPISODE_LIMIT + 1):
        vector.states[:] = 0.0
        step = vector.step(np.array([[elapsed % 2]]))
        assert bool(step.truncated) is (elapsed == EPISODE_LIMIT)
        assert not step.terminated.any()
    assert np.abs(step.observation).max() <= 0.05
    assert not np.array_equal(step.observation, step.final_observation)
    assert vector.elapsed.item() == 0


def test_an_inactive_environment_stays_as_it_is() -> None:
    vector = CartPoleVector([0], 2)
    before = vector.reset().copy()
    step = vector.step(np.ones((1, 2), dtype=np.int64), active=np.array([[True, False]]))
    assert np.array_equal(step.observation[0, 1], before[0, 1])
    assert not np.array_equal(step.observation[0, 0], before[0, 0])
    assert vector.elapsed.tolist() == [[1, 0]]


def test_start_states_depend_on_the_runs_own_seed_alone() -> None:
    together = CartPoleVector([5, 6, 7], 3).reset()
    alone = CartPoleVector([6], 3).reset()
    assert np.array_equal(together[1], alone[0])
    assert not np.array_equal(together[0], together[1])


def test_training_and_evaluation_start_from_different_states() -> None:
    training = CartPoleVector([0], 4).reset()
    evaluation = CartPoleVector([0], 4, purpose=Purpose.EVALUATION_ENVIRONMENT).reset()
    assert not np.intersect1d(training, evaluation).size
