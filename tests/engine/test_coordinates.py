"""Flattening spaces and comparing values: NaN, infinities, the circle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium import spaces

from symcheck.errors import TargetError
from symcheck.spaces.coordinates import SpaceCodec, vector_coordinates


def test_nan_matches_nan_and_nothing_else() -> None:
    coordinates = vector_coordinates("x", 3, epsilon=1e-7)
    expected, actual = np.array([np.nan, np.nan, 1.0]), np.array([np.nan, 1.0, np.nan])
    assert coordinates.residual(expected, actual).tolist() == [0.0, math.inf, math.inf]


def test_infinities_match_themselves_only() -> None:
    coordinates = vector_coordinates("x", 2, epsilon=1e-7)
    residual = coordinates.residual(np.array([np.inf, np.inf]), np.array([np.inf, -np.inf]))
    assert residual.tolist() == [0.0, math.inf]


def test_a_coordinate_bounded_by_pi_is_compared_on_the_circle() -> None:
    box = spaces.Box(np.float32([-np.pi, -1]), np.float32([np.pi, 1]))
    coordinates = SpaceCodec(box, "observation").coordinates
    residual = coordinates.residual(np.array([math.pi - 0.1, 0.9]), np.array([-math.pi + 0.1, -0.9]))
    assert residual == pytest.approx([0.2, 1.8])


def test_pi_and_minus_pi_are_brought_onto_one_branch() -> None:
    coordinates = vector_coordinates("x", 1, epsilon=0.0, angles=(0,))
    values = np.array([[math.pi], [-math.pi], [-1.0], [4.0]])
    assert coordinates.on_one_branch(values)[:, 0] == pytest.approx([math.pi, math.pi, -1.0, 4 - 2 * math.pi])


def test_unrolled_angles_have_no_branch() -> None:
    coordinates = vector_coordinates("x", 2, epsilon=0.0, angles=(0,))
    wider, (values,) = coordinates.unrolled([np.array([[math.pi, 5.0], [-math.pi, 5.0]])])
    assert wider.names == ("x[1]", "cos(x[0])", "sin(x[0])")
    np.testing.assert_allclose(values[0], values[1], atol=1e-15)


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (spaces.Discrete(3), ("obs",)),
        (spaces.MultiBinary(2), ("obs[0]", "obs[1]")),
        (spaces.MultiDiscrete([2, 3]), ("obs[0]", "obs[1]")),
        (spaces.Box(0, 1, (1, 2)), ("obs[0][0]", "obs[0][1]")),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))), ("obs[0]", "obs[1][0]")),
    ],
)
def test_every_coordinate_has_a_name_and_a_place(space: spaces.Space[object], names: tuple[str, ...]) -> None:
    codec = SpaceCodec(space, "obs")
    assert codec.coordinates.names == names
    space.seed(0)
    assert codec.flatten_batch([space.sample() for _ in range(4)]).shape == (4, len(names))


def test_whole_numbers_have_no_rounding_unit() -> None:
    assert SpaceCodec(spaces.Box(0, 255, (2,), np.uint8), "obs").coordinates.epsilon.tolist() == [0.0, 0.0]


def test_a_space_that_cannot_be_compared_is_named() -> None:
    class Unheard(spaces.Space[object]):
        def sample(self, *args: object, **kwargs: object) -> object:
            return object()

    with pytest.raises(TargetError, match="Unheard spaces cannot be compared"):
        SpaceCodec(Unheard(), "observation")
