"""Statistics against closed forms and full enumeration: scores, tails, flips, levels, and what a result promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from symcheck.engine.detectable import NORMAL_90
from symcheck.engine.features import hermite_features, normal_quantile, normal_scores
from symcheck.engine.sequential import looks
from symcheck.engine.statistics import (
    holm,
    largest_fraction,
    sign_flip_test,
    swap_test,
)


@pytest.mark.parametrize(
    ("violations", "samples", "alpha"),
    [(40, 20_000, 0.01), (300, 100_000, 1e-6), (1, 2, 0.5), (999, 1000, 0.05), (500, 1000, 0.05), (0, 1, 0.05)],
)
def test_the_largest_fraction_is_exact_at_every_size(violations: int, samples: int, alpha: float) -> None:
    from scipy.stats import beta

    oracle = beta.ppf(1 - alpha, violations + 1, samples - violations)
    # lgamma of 1e5 rounds by 1e6 ulp of 1: 1e-9 of a probability.
    assert largest_fraction(violations, samples, alpha) == pytest.approx(oracle, rel=1e-7)


def test_more_violations_than_samples_exclude_nothing() -> None:
    assert largest_fraction(6, 5, 0.05) == 1.0


@pytest.mark.parametrize("p_values", list(itertools.permutations([0.001, 0.012, 0.02, 0.3])))
def test_holm_rejects_what_the_definition_rejects(p_values: tuple[float, ...]) -> None:
    levels = holm(p_values, 0.04)
    ordered = sorted(p_values)
    first_kept = next(i for i, p in enumerate(ordered) if p > 0.04 / (4 - i))
    rejected = [p <= level for p, level in zip(p_values, levels, strict=True)]
    assert rejected == [p in ordered[:first_kept] for p in p_values]
    assert [levels[p_values.index(p)] for p in ordered] == pytest.approx([0.01, 0.04 / 3, 0.02, 0.04])


def test_holm_of_no_test_and_after_the_first_that_stays() -> None:
    assert holm([], 0.05) == []
    assert holm([0.5, 0.01, 0.6], 0.03) == pytest.approx([0.015, 0.01, 0.015])


def test_scores_are_the_quantiles_of_the_middle_ranks() -> None:
    from scipy.stats import norm

    pooled = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 5.0], [2.0, np.nan], [-np.inf, 1.0]])
    ranks = np.array([[5.0, 3.0], [2.0, 3.0], [3.5, 5.0], [3.5, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(normal_scores(pooled), norm.ppf((ranks - 0.5) / 5), atol=5e-4)  # the formula's error


def test_a_tie_is_a_gap_of_at_most_what_is_given_in_its_own_column() -> None:
    pooled = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]])
    scores = normal_scores(pooled, np.array([1.0, 0.5]))
    assert scores[0, 0] == scores[1, 0] < scores[2, 0]
    assert scores[0, 1] < scores[1, 1] < scores[2, 1]


def test_quantiles_are_odd_and_reach_far_tails() -> None:
    from scipy.stats import norm

    p = np.array([1e-12, 1e-6, 1e-3, 0.2])
    np.testing.assert_allclose(normal_quantile(p), norm.ppf(p), atol=5e-4)  # the formula's error
    np.testing.assert_allclose(normal_quantile(1 - p), -normal_quantile(p), atol=1e-4)  # 1 - 1e-12 rounds
    assert normal_quantile(np.array([0.5]))[0] == 0
    assert norm.ppf(0.9) == pytest.approx(NORMAL_90, abs=1e-4)


def test_hermite_polynomials_are_orthonormal_under_the_normal_distribution() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    features, labels = hermite_features(nodes[:, None], ["x"])
    gram = (features * (weights / weights.sum())[:, None]).T @ features
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-12)  # Gauss quadrature is exact up to degree 23
    assert [label[:3] for label in labels] == [(f"{m} of x", 0, m) for m in ("mean", "spread", "skew", "tails")]


@pytest.mark.parametrize(("dim", "products"), [(1, 0), (2, 1), (3, 3), (12, 66), (13, 0)])
def test_products_of_pairs_are_features_of_up_to_twelve_coordinates(dim: int, products: int) -> None:
    scores = np.random.default_rng(0).normal(size=(5, dim))
    features, labels = hermite_features(scores, [f"x{i}" for i in range(dim)])
    assert features.shape[1] == len(labels) == 4 * dim + products
    for column, (name, first, moment, _, other) in enumerate(labels[4 * dim :], start=4 * dim):
        second = int(name.rpartition("x")[2])
        assert moment == "product"
        assert second == other
        np.testing.assert_array_equal(features[:, column], scores[:, first] * scores[:, second])


def test_flips_agree_with_all_patterns_of_signs() -> None:
    rng = np.random.default_rng(0)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=12)))
    for shift in (0.0, 0.5, 1.0):
        rows = rng.normal(shift, 1.0, size=(12, 2))
        test = sign_flip_test(rows, level=0.05, rng=np.random.default_rng(1))
        root = np.sqrt((rows**2).sum(axis=0))
        np.testing.assert_allclose(test.statistics, np.abs(rows.sum(axis=0)) / root)
        null = np.abs(signs @ (rows / root)).max(axis=1)
        exact = float((null >= test.statistics.max() * (1 - 1e-4)).mean())
        # 1,999 flips: a standard deviation is at most sqrt(p / 1999); four of them, and the 1 that is counted in.
        assert abs(test.p_value - exact) <= 4 * math.sqrt(exact / 1999) + 1 / 2000
        assert test.critical == pytest.approx(float(np.quantile(null, 0.95)), abs=0.1)  # sparse patterns
        assert test.live


def test_flips_are_drawn_unless_they_are_declined() -> None:
    rows = np.random.default_rng(0).normal(0.3, 1.0, size=(60, 1))
    drawn, told, bound = (
        sign_flip_test(rows, level=0.05, rng=np.random.default_rng(1), **given)
        for given in ({}, {"sampled": True}, {"sampled": False})
    )
    assert drawn.p_value == told.p_value < bound.p_value
    assert drawn.critical < bound.critical == pytest.approx(math.sqrt(2 * math.log(2 / 0.05)))
    assert bound.p_value == pytest.approx(2 * math.exp(-(float(bound.statistics[0]) ** 2) / 2))
    x, y = np.random.default_rng(2).normal(size=(2, 60, 1))
    swaps = [
        swap_test(x, y, ["x"], level=0.05, rng=np.random.default_rng(1), **given).p_value
        for given in ({}, {"sampled": True}, {"sampled": False})
    ]
    assert swaps[0] == swaps[1] < swaps[2]


@pytest.mark.parametrize(("level", "flips"), [(0.05, 1999), (0.001, 4000), (1e-4, 40_000)])
def test_a_strict_level_draws_as_many_flips_as_it_needs(level: float, flips: int) -> None:
    rows = np.ones((40, 1))  # no pattern of 40 signs is drawn that reaches the sum of all
    p_value = sign_flip_test(rows, level=level, rng=np.random.default_rng(0)).p_value
    assert p_value == pytest.approx(1 / (flips + 1))
    assert p_value <= level


def test_differences_of_zero_can_reject_nothing() -> None:
    test = sign_flip_test(np.zeros((20, 3)), level=0.05, rng=np.random.default_rng(0))
    assert (test.p_value, test.critical, test.live) == (1.0, math.inf, False)
    assert test.statistics.tolist() == [0.0, 0.0, 0.0]
    same = np.random.default_rng(0).normal(size=(20, 2))
    swapped = swap_test(same, same, ["x", "y"], level=0.05, rng=np.random.default_rng(0))
    assert (swapped.p_value, swapped.needed, swapped.coordinates) == (1.0, 0, ())
    assert swapped.detectable(np.random.default_rng(0)) == (0.0, 0.0)
    assert not swapped.live


def test_a_column_that_never_differs_leaves_the_others_as_they_are() -> None:
    rows = np.random.default_rng(0).normal(0.5, 1.0, size=(50, 1))
    alone = sign_flip_test(rows, level=0.05, rng=np.random.default_rng(1))
    beside = sign_flip_test(np.concatenate([0 * rows, rows], axis=1), level=0.05, rng=np.random.default_rng(1))
    assert beside.statistics.tolist() == [0.0, *alone.statistics]
    assert beside.p_value == alone.p_value


def test_the_pairs_needed_find_the_difference_in_nine_of_ten_runs() -> None:
    shift, runs = 0.5, 100
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 4000, 1))
    needed = swap_test(x, y + shift, ["x"], level=0.05, rng=np.random.default_rng(0)).needed
    found = 0
    for seed in range(runs):
        a, b = np.random.default_rng(seed).normal(size=(2, needed, 1))
        found += swap_test(a, b + shift, ["x"], level=0.05, rng=np.random.default_rng(0)).p_value <= 0.05
    # Binomial(100, 0.9) is below 79 or is 100 with probability 1e-3 and 3e-5.
    assert 79 <= found < 100


def test_all_coordinates_that_differ_are_named_once_the_most_different_first() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 2000, 4))
    y = y * [1, 1, 2, 1] + [0.3, 0, 0, 1.0]
    test = swap_test(x, y, ["a", "b", "c", "d"], level=0.01, rng=rng)
    assert set(test.coordinates) == {0, 2, 3}
    assert test.coordinates[0] == test.coordinate == 3
    assert len(test.coordinates) == 3
    assert (test.feature, test.moment, test.pairs) == ("mean of d", "mean", 2000)
    assert test.shift == pytest.approx(1.0, abs=0.1)  # two means of 2,000 values: 0.03 each way


def test_a_learned_difference_names_the_coordinate_that_carries_it() -> None:
    rng = np.random.default_rng(0)
    design = rng.normal(size=(3000, 2))
    wave = np.sign(design[:, :1] * design[:, 1:])
    features = np.concatenate([design, design[:, :1] * design[:, 1:]], axis=1)
    move = np.array([[0.0, 0.0, 0.25]])
    expected, actual = (rng.normal(size=(3000, 3)) + s * wave * move for s in (-1, 1))
    test = swap_test(expected, actual, ["x", "y", "z"], level=0.01, rng=np.random.default_rng(1), design=features)
    assert (test.moment, test.coordinate, test.coordinates) == ("law", 2, (2,))
    assert 0 < test.needed < 3000
    assert test.shift == pytest.approx(float((actual - expected)[:, 2].mean()))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_counts_as_zero_in_the_shift(value: float) -> None:
    x = np.random.default_rng(0).normal(size=(50, 1))
    y = x.copy()
    y[:10] = value
    shift = swap_test(x, y, ["x"], level=0.05, rng=np.random.default_rng(0)).shift
    assert shift == pytest.approx(-float(x[:10].sum()) / 50)


def test_early_looks_begin_at_fifty_pairs() -> None:
    assert [len(looks(n)) for n in (99, 100, 199, 200, 399, 400)] == [1, 2, 2, 3, 3, 4]
