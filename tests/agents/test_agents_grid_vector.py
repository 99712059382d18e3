"""The vectorised grid world against the Gymnasium environment, and policies tabulated over its observations."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from reference_agents import evaluation
from reference_agents.catalog import find_network, find_task
from reference_agents.environments.predator_prey import PredatorPreyVector, all_images
from reference_agents.learning.distributions import Categorical
from reference_agents.networks.factory import make_network
from reference_agents.networks.tabulated import TabulatedNetwork
from symcheck.envs.predator_prey import MOVES, PREY_MOVES, PredatorPreyEnv, draw, wrap

TASK = find_task("gridworld")


def test_every_step_is_one_that_the_scalar_environment_could_take() -> None:
    vector = PredatorPreyVector([0, 1], 8)
    vector.reset()
    rng = np.random.default_rng(0)
    prey_moved = 0
    for _ in range(300):
        before, actions = vector.displacements.copy(), rng.integers(0, 5, (2, 8))
        step = vector.step(actions)
        for index in np.ndindex(2, 8):
            moved = wrap(before[index] + MOVES[actions[index]])
            possible = [wrap(moved - prey) for prey in MOVES]
            found = [k for k, end in enumerate(possible) if np.array_equal(step.final_observation[index], draw(end))]
            assert len(found) == 1
            prey_moved += found[0] > 0
            caught = not possible[found[0]].any()
            assert bool(step.terminated[index]) is caught
            assert step.reward[index] == np.float32(1.0 if caught else -0.1)
            assert np.array_equal(step.observation[index], draw(vector.displacements[index]))
    # five standard deviations of a frequency of 4,800 draws
    assert abs(prey_moved / 4800 - PREY_MOVES) < 5 * np.sqrt(PREY_MOVES * (1 - PREY_MOVES) / 4800)


def test_greedy_pursuit_scores_what_the_scalar_environment_gives_it() -> None:
    def pursue(displacement: np.ndarray) -> int:
        return int(np.argmin([np.abs(wrap(displacement + move)).sum() for move in MOVES]))

    env, returns = PredatorPreyEnv(), []
    for episode in range(400):
        env.reset(seed=episode)
        total, terminated = 0.0, False
        while not terminated:
            _, reward, terminated, _, _ = env.step(np.int64(pursue(env.get_state())))
            total += reward
        returns.append(total)
    table = torch.full((49, 5), -torch.inf)
    for code in range(49):
        table[code, pursue(np.array([code // 7 - 3, code % 7 - 3]))] = 0.0
    coded = functools.partial(PredatorPreyVector, coded=True)
    vectorised = evaluation.play(lambda codes, running: table[codes], Categorical(), coded, [0], episodes=400, index=0)
    # two means of 400 returns of standard deviation 0.2: five standard errors of their difference
    assert abs(np.mean(returns) - vectorised.mean()) < 5 * np.sqrt(2) * np.std(returns) / 20


def test_starts_are_uniform_over_displacements() -> None:
    codes = np.concatenate([PredatorPreyVector([seed], 100).reset() for seed in range(100)], axis=1)
    pictures, counts = np.unique(codes.reshape(10_000, -1), axis=0, return_counts=True)
    assert len(pictures) == 49
    # chi-square with 48 degrees of freedom: mean 48, standard deviation 9.8; five of them
    assert ((counts - 10_000 / 49) ** 2 / (10_000 / 49)).sum() < 48 + 5 * 9.8


def test_codes_number_the_images_that_the_same_environment_shows() -> None:
    shown, coded = PredatorPreyVector([0, 1], 4), PredatorPreyVector([0, 1], 4, coded=True)
    assert np.array_equal(all_images()[coded.reset()], shown.reset())
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = rng.integers(0, 5, (2, 4))
        one, other = shown.step(actions), coded.step(actions)
        assert np.array_equal(all_images()[other.observation], one.observation)
        assert np.array_equal(all_images()[other.final_observation], one.final_observation)
        assert np.array_equal(one.reward, other.reward)


@pytest.mark.parametrize("name", ["equivariant", "cnn", "averaged"])
def test_a_tabulated_network_has_the_answers_and_the_gradients_of_the_network_itself(name: str) -> None:
    plain, inner = (make_network(TASK, find_network(TASK, name), [0, 1], torch.device("cpu")) for _ in range(2))
    tabulated = TabulatedNetwork(inner, all_images(), torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        codes = torch.randint(0, 49, (2, 80), generator=generator)
        pictures = torch.from_numpy(all_images())[codes]
        expected, actual = plain.forward(pictures, keep=True), tabulated.forward(codes, keep=True)
        for one, other in zip(actual, expected, strict=True):
            # float32 sums of at most 1,600 terms of order one, in another order
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        derivatives = [torch.randn(one.shape, generator=generator) for one in expected]
        plain.backward(*derivatives)
        tabulated.backward(*derivatives)
        scale = plain.parameters.gradients.abs().max().item()
        torch.testing.assert_close(
            tabulated.parameters.gradients, plain.parameters.gradients, rtol=1e-3, atol=1e-5 * scale
        )
        for network in (plain, tabulated):
            network.parameters.values.sub_(0.01 * network.parameters.gradients / scale)
            network.refresh()
