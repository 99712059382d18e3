"""Domains of inputs: draws, corners and limits against their definitions, from both sides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from symcheck.engine.networks.subject.domain import Domain, OneHot, domain_of

INF = np.inf
# one entry of each kind: two bounds, whole numbers, a lower bound, an upper bound, none
BOX = Domain(
    np.array([2.0, -3.0, 1.0, -INF, -INF]),
    np.array([4.0, 3.0, INF, -1.0, INF]),
    np.array([False, True, False, False, False]),
)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_draws_are_uniform_between_bounds_and_normal_from_a_single_one(scale: float) -> None:
    x = BOX.draw(np.random.default_rng(0), 20_000, scale)
    assert x.shape == (20_000, 5)
    assert BOX.contains(x).all()
    uniform = [2.0, 2.5, 3.0, 3.5, 4.0]
    np.testing.assert_allclose(np.quantile(x[:, 0], np.linspace(0, 1, 5)), uniform, atol=0.03)
    assert set(x[:, 1]) == set(range(-3, 4))
    inner = np.bincount((x[:, 1] + 3).astype(int))[1:-1] / 20_000
    np.testing.assert_allclose(inner, 1 / 6, atol=0.02)
    away = np.stack([x[:, 2] - 1.0, -1.0 - x[:, 3], np.abs(x[:, 4])], axis=1) / scale
    np.testing.assert_allclose(np.median(away, axis=0), 0.6745, atol=0.03)
    np.testing.assert_allclose((away**2).mean(axis=0), 1.0, atol=0.06)
    assert abs(x[:, 4].mean()) < 0.05 * scale
    assert np.corrcoef(x.T)[~np.eye(5, dtype=bool)].max() < 0.05
    again = BOX.draw(np.random.default_rng(0), 20_000, scale)
    assert np.array_equal(x, again)


def test_corners_are_bounds_and_middles_with_both_bounds_and_the_middle_first() -> None:
    x = BOX.corners(np.random.default_rng(0), 500)
    low, high = np.array([2.0, -3.0, 1.0, -2.0, -1.0]), np.array([4.0, 3.0, 3.0, -1.0, 1.0])
    assert x[:2].tolist() == [low.tolist(), high.tolist()]
    assert x[2].tolist() == [3.0, 0.0, 2.0, -1.5, 0.0]
    for column, values in zip(x.T, x[:3].T, strict=True):
        assert set(column) == set(values)
    assert len({tuple(row) for row in x}) > 100
    assert BOX.corners(np.random.default_rng(0), 2).tolist() == x[:2].tolist()
    assert BOX.contains(x).all()


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("above", [False, True])
def test_an_input_lies_inside_up_to_a_millionth_of_the_width(place: int, above: bool) -> None:
    middle, bound = np.array([3.0, 0.0, 2.0, -1.5, 0.0]), (BOX.high if above else BOX.low)[place]
    side, known = (1.0 if above else -1.0), np.isfinite(bound)
    width = BOX.high[place] - BOX.low[place]
    room = 1e-6 * width if np.isfinite(width) else 0.0
    for beyond, inside in ((0.9 * room, True), (1.1 * room + 1e-12, False)):
        x = middle.copy()
        x[place] = bound + side * beyond if known else side * 1e9
        assert BOX.contains(np.stack([middle, x])).tolist() == [True, inside or not known]
    assert BOX.contains(np.full((1, 5), np.nan)).tolist() == [False]


def test_the_nearest_input_inside_is_the_only_one_of_those_inside_and_whole_where_it_must_be() -> None:
    x = np.array([[9.0, 2.6, -9.0, 9.0, -9.0], [3.0, -2.0, 7.0, -7.0, 7.0]])
    assert BOX.clip(x).tolist() == [[4.0, 3.0, 1.0, -1.0, -9.0], x[1].tolist()]


@pytest.mark.parametrize(("low", "high", "bounded"), [
    ([0.0, -1.0], [1.0, 1.0], True), ([-INF, 0.0], [1.0, 1.0], False), ([0.0, 0.0], [1.0, INF], False)])  # fmt: skip
def test_a_domain_is_bounded_if_every_entry_has_both_bounds(low: Any, high: Any, bounded: bool) -> None:
    assert Domain(np.array(low), np.array(high), np.zeros(2, dtype=bool)).is_bounded is bounded


def test_inputs_are_kept_if_the_images_under_every_generator_lie_inside() -> None:
    box = Domain(np.array([0.0, -1.0]), np.array([1.0, 1.0]), np.zeros(2, dtype=bool))
    maps = [lambda x: x * [1, -1], lambda x: x[:, ::-1]]
    claim: Any = SimpleNamespace(motions=maps, apply=lambda generator, x: maps[generator](x))
    x = np.array([[0.5, 0.5], [0.5, -0.5], [2.0, 0.5]])
    assert box.keeps(claim, x).tolist() == [True, False, False]
    assert box.keeps(claim, np.zeros((0, 2))).tolist() == []


def test_one_hot_vectors_are_drawn_listed_and_recognised() -> None:
    hot = domain_of(gym.spaces.Discrete(3), (3,))
    assert isinstance(hot, OneHot)
    assert domain_of(gym.spaces.Discrete(3), (4,)) is None
    x = hot.draw(np.random.default_rng(0), 3000)
    assert ((x == 0) | (x == 1)).all()
    assert (x.sum(axis=1) == 1).all()
    np.testing.assert_allclose(x.mean(axis=0), 1 / 3, atol=0.04)
    assert np.array_equal(hot.corners(np.random.default_rng(0), 4), np.eye(3)[[0, 1, 2, 0]])
    assert hot.clip(np.array([[0.1, 0.7, 0.6]])).tolist() == [[0, 1, 0]]
    assert hot.contains(np.array([[0, 1, 0], [0, 1, 1], [0, 0.5, 0.5], [1, 0, 0]])).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_bounds_of_a_million_are_unknown_and_parts_are_joined() -> None:
    space = gym.spaces.Box(np.array([-1e6, -9e5, 0.0]), np.array([9e5, 1e6, 1.0]), dtype=np.float64)
    box = domain_of(space, (3,))
    assert box is not None
    assert (box.low.tolist(), box.high.tolist()) == ([-INF, -9e5, 0.0], [9e5, INF, 1.0])
    assert not box.whole.any()
    assert domain_of(gym.spaces.Box(-1e6, 1e6, (2,)), (2,)) is None
    assert domain_of(space, (4,)) is None
    image = gym.spaces.Box(0, 255, (2, 2), dtype=np.uint8)
    pixels = domain_of(image, (2, 2))
    assert pixels is not None
    assert (pixels.low.shape, pixels.whole.all()) == ((2, 2), True)
    parts = gym.spaces.Dict(a=gym.spaces.Box(-1, 1, (2,)), b=gym.spaces.Box(0, 9, (1,), dtype=np.int64))
    joined = domain_of(parts, (3,))
    assert joined is not None
    assert [(a, b, bool(c)) for a, b, c in zip(joined.low, joined.high, joined.whole, strict=True)] == [
        (-1.0, 1.0, False), (-1.0, 1.0, False), (0.0, 9.0, True)]  # fmt: skip
