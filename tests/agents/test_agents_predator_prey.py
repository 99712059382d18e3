"""The grid world: its rules, its images, and its symmetries over every state and action."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from symcheck.envs.predator_prey import MOVES, PredatorPreyEnv, draw, images, wrap
from symcheck.envs.registration import register

STATES = [np.array([row, column]) for row in range(-3, 4) for column in range(-3, 4)]
# state, image and action under each generator of D4
ROTATION = (lambda s: np.array([-s[1], s[0]]), lambda x: np.rot90(x, axes=(-2, -1)), [0, 2, 3, 4, 1])
REFLECTION = (lambda s: np.array([s[0], -s[1]]), lambda x: x[..., ::-1], [0, 1, 4, 3, 2])


@pytest.mark.parametrize(("on_state", "on_image", "on_action"), [ROTATION, REFLECTION])
def test_images_and_moves_transform_together_for_every_state_and_action(on_state, on_image, on_action) -> None:
    for state in STATES:
        assert np.array_equal(draw(on_state(state)), on_image(draw(state)))
        for action, move in enumerate(MOVES):
            moved = wrap(state + move)
            assert np.array_equal(wrap(on_state(state) + MOVES[on_action[action]]), wrap(on_state(moved)))


def test_every_displacement_but_the_hidden_prey_has_its_own_image_with_ten_pixels() -> None:
    pictures = images().reshape(49, -1)
    assert len(np.unique(pictures, axis=0)) == 49
    assert sorted(set(pictures.sum(1).tolist())) == [5, 10]
    assert draw(np.array([0, 0])).sum() == 5


def test_the_prey_appears_where_the_displacement_points_and_the_agent_is_an_x_in_the_centre() -> None:
    image = draw(np.array([1, -2]))[0]
    assert image[12:15, 3:6].tolist() == [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    assert image[9:12, 9:12].tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


def test_catching_the_prey_rewards_one_and_terminates_and_anything_else_costs_a_tenth() -> None:
    env = PredatorPreyEnv()
    env.reset(seed=0)
    outcomes = set()
    for _ in range(400):
        env.set_state(np.array([1, 0]))
        _, reward, terminated, truncated, _ = env.step(np.int64(3))
        outcomes.add((reward, terminated, truncated, bool(env.get_state().any())))
    assert outcomes == {(1.0, True, False, False), (-0.1, False, False, True)}


def test_the_prey_moves_with_probability_015_to_each_neighbour_alike() -> None:
    env = PredatorPreyEnv()
    env.reset(seed=1)
    n, ended = 20_000, []
    for _ in range(n):
        env.set_state(np.array([2, 2]))
        env.step(np.int64(0))
        ended.append(tuple(env.get_state()))
    counts = {end: ended.count(end) / n for end in set(ended)}
    # five standard deviations of a frequency of 20,000 draws
    assert counts[(2, 2)] == pytest.approx(0.85, abs=5 * np.sqrt(0.85 * 0.15 / n))
    assert sorted(counts) == [(1, 2), (2, 1), (2, 2), (2, 3), (3, 2)]
    for neighbour in ((1, 2), (2, 1), (2, 3), (3, 2)):
        assert counts[neighbour] == pytest.approx(0.0375, abs=5 * np.sqrt(0.0375 * 0.9625 / n))


def test_leaving_the_torus_on_one_side_enters_it_on_the_other() -> None:
    env = PredatorPreyEnv()
    env.reset(seed=0)
    ends = set()
    for _ in range(50):
        env.set_state(np.array([3, 0]))
        env.step(np.int64(1))
        ends.add(tuple(env.get_state()))
    assert (-3, 0) in ends


def test_start_cells_are_uniform_and_may_coincide() -> None:
    env = PredatorPreyEnv()
    env.reset(seed=0)
    n, starts = 10_000, []
    for _ in range(n):
        env.reset()
        starts.append(tuple(env.get_state()))
    _, counts = np.unique(np.array(starts), axis=0, return_counts=True)
    assert len(counts) == 49
    # chi-square with 48 degrees of freedom: mean 48, standard deviation 9.8; five of them
    assert ((counts - n / 49) ** 2 / (n / 49)).sum() < 48 + 5 * 9.8


def test_it_is_a_gymnasium_environment_of_100_steps() -> None:
    register()
    register()
    env = gym.make("symcheck/PredatorPrey-v0", render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=0)
    assert env.render().shape == (168, 168, 3)
    env.unwrapped.set_state(np.array([3, 3]))
    for step in range(1, 101):
        env.unwrapped.set_state(np.array([3, 3]))
        _, _, terminated, truncated, _ = env.step(0)
        assert not terminated
        assert truncated is (step == 100)
    env.close()
