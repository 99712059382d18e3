"""Every symmetry that docs/symmetries.md shows can be read, and means what the page says."""

import re
import tomllib
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from symcheck.symmetry.spec import symmetry_from_mapping

PAGE = (Path(__file__).parents[2] / "docs" / "symmetries.md").read_text()
EXAMPLES = {data["name"]: data for data in map(tomllib.loads, re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S))}
BOX = gym.spaces.Box


def bound(name, observation_space, action_space):
    return symmetry_from_mapping(EXAMPLES[name], name).bind(observation_space, action_space)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_symmetry(name):
    symmetry_from_mapping(EXAMPLES[name], name)


def test_there_is_an_example_of_each_form():
    assert len(EXAMPLES) == 10


def test_a_turn_and_a_mirror_act_as_their_page_says():
    pair, force = BOX(-9, 9, (4,), np.float64), BOX(-1, 1, (2,), np.float64)
    claim = bound("turn and mirror", pair, force)
    # The tested turn, then the reflection of the first axis.
    np.testing.assert_array_equal(claim.observation((1,), np.array([1.0, 2.0, 3.0, 4.0])), [-1, 2, -3, 4])
    turned = claim.observation((0,), np.array([1.0, 0.0, 0.0, 1.0]))
    angle = claim.elements[0].parameters[0]
    np.testing.assert_allclose(turned, [np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle)])
    moved = bound("rigid motions", pair, BOX(-1, 1, (4,), np.float64))
    assert len(moved.tested_words) == 4  # three amounts of two shifts, one angle


def test_two_legs_swap():
    claim = bound("left-right", BOX(-1, 1, (3,)), BOX(-1, 1, (2,)))
    np.testing.assert_array_equal(claim.observation((0,), np.array([1.0, 2.0, 3.0])), [2, 1, -3])


def test_a_third_of_a_turn_has_order_three():
    claim = bound("third of a turn", BOX(-1, 1, (2,), np.float64), gym.spaces.Discrete(3))
    x = np.array([0.3, -0.7])
    # three products of a rotation: a few roundings of numbers below 1
    np.testing.assert_allclose(claim.observation((0, 0, 0), x), x, atol=1e-15)


def test_the_valley_is_kept():
    claim = bound("valley", BOX(-9, 9, (2,), np.float64), gym.spaces.Discrete(3))
    np.testing.assert_allclose(claim.observation((0,), np.array([-np.pi / 6, 0.0])), [-np.pi / 6, 0], rtol=1e-15)


def test_sub_spaces_transform_by_key_and_by_position():
    pair = gym.spaces.Tuple([BOX(-1, 1, (1,)), gym.spaces.Discrete(2)])
    space = gym.spaces.Dict(image=BOX(0, 255, (2, 2), np.uint8), pair=pair, goal=BOX(-1, 1, (1,)))
    claim = bound("image and velocity", space, gym.spaces.Discrete(2))
    image = np.array([[1, 2], [3, 4]], np.uint8)
    moved = claim.observation((0,), {"image": image, "pair": (np.array([0.5]), 0), "goal": np.array([1.0])})
    np.testing.assert_array_equal(moved["image"], [[2, 1], [4, 3]])
    assert moved["pair"][0] == -0.5
    assert moved["pair"][1] == 1
    assert moved["goal"] == 1.0
