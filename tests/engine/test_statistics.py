"""Levels, powers and bounds of the exact tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from symcheck.engine import statistics
from symcheck.engine.detectable import NORMAL_90
from symcheck.engine.features import Region, distinct_columns, normal_quantile, normal_scores
from symcheck.engine.statistics import (
    largest_fraction,
    sign_flip_test,
    swap_test,
)


@pytest.mark.parametrize(
    ("violations", "samples", "alpha"), [(0, 100, 0.05), (1, 50, 0.01), (3, 400, 0.1), (7, 9, 0.05)]
)
def test_the_largest_fraction_is_the_clopper_pearson_bound(violations: int, samples: int, alpha: float) -> None:
    from scipy.stats import beta

    oracle = beta.ppf(1 - alpha, violations + 1, samples - violations)
    assert largest_fraction(violations, samples, alpha) == pytest.approx(oracle, rel=1e-9)


def test_a_sample_of_violations_alone_excludes_nothing() -> None:
    assert largest_fraction(5, 5, 0.05) == 1.0


def test_normal_quantiles_are_those_of_scipy() -> None:
    from scipy.stats import norm

    p = np.linspace(0.001, 0.999, 200)
    # The formula promises 4.5e-4.
    np.testing.assert_allclose(normal_quantile(p), norm.ppf(p), atol=5e-4)


def test_values_within_the_tie_share_a_score() -> None:
    scores = normal_scores(np.array([[0.7], [0.7 + 1e-9], [2.0]]), np.array([1e-8]))
    assert scores[0, 0] == scores[1, 0] < scores[2, 0]


def test_not_a_number_is_a_value_like_any_other() -> None:
    scores = normal_scores(np.array([[np.nan], [np.nan], [1.0]]))
    assert scores[0, 0] == scores[1, 0] < scores[2, 0]


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("kind", ["normal", "atoms", "rare", "missing", "heavy", "constant"])
def test_the_swap_test_holds_its_level(kind: str, sampled: bool) -> None:
    draws = {
        "normal": lambda rng: rng.normal(size=(40, 2)),
        "atoms": lambda rng: rng.integers(0, 2, size=(40, 2)).astype(float),
        "rare": lambda rng: (rng.random((40, 2)) < 0.05).astype(float),
        "missing": lambda rng: np.where(rng.random((40, 2)) < 0.3, np.nan, rng.normal(size=(40, 2))),
        "heavy": lambda rng: rng.standard_cauchy(size=(40, 2)),
        "constant": lambda rng: np.ones((40, 2)),
    }[kind]
    rejected = 0
    runs = 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        test = swap_test(draws(rng), draws(rng), ["x", "y"], level=0.05, rng=rng, sampled=sampled)
        rejected += test.p_value <= 0.05
    # Binomial(200, 0.05) exceeds 20 with probability 1e-3.
    assert rejected <= 20


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        (lambda x, rng: x + np.array([0.3, 0]), "mean of x"),
        (lambda x, rng: x * [1, 1.3], "spread of y"),
        (lambda x, rng: np.stack([rng.exponential(size=len(x)) - 1, x[:, 1]], axis=1), "skew of x"),
        (lambda x, rng: np.stack([x[:, 0], 0.5 * x[:, 0] + math.sqrt(0.75) * x[:, 1]], axis=1), "product of x and y"),
    ],
)
def test_the_swap_test_names_what_differs(change: object, feature: str) -> None:
    rng = np.random.default_rng(3)
    expected = rng.normal(size=(3000, 2))
    actual = change(rng.normal(size=(3000, 2)), rng)  # type: ignore[operator]
    test = swap_test(expected, actual, ["x", "y"], level=0.01, rng=rng)
    assert test.p_value <= 0.01
    assert feature in test.feature


def test_the_learned_feature_is_a_ridge_regression_on_every_second_pair() -> None:
    rng = np.random.default_rng(0)
    differences, design = rng.normal(size=(60, 2)), rng.normal(size=(60, 8)) * np.arange(1, 9)
    # The same as a regression on more rows: one hundredth of the mean squared column, for each column.
    more = np.sqrt(0.01 * (design[::2] ** 2).sum() / 8) * np.eye(8)
    rows, targets = np.concatenate([design[::2], more]), np.concatenate([differences[::2], np.zeros((8, 2))])
    learned = differences[1::2] * (design[1::2] @ np.linalg.lstsq(rows, targets, rcond=None)[0])
    test, coordinate = statistics._learn_feature(differences, design, 0.01, rng, sampled=False)
    totals = learned.sum(axis=1)
    assert test.statistics == pytest.approx([abs(totals.sum()) / np.sqrt((totals**2).sum())], rel=1e-9)
    assert coordinate == np.argmax(np.abs(learned.sum(axis=0)))


def test_a_difference_of_opposite_sign_in_two_regions_needs_the_weight() -> None:
    rng = np.random.default_rng(0)
    side = np.where(rng.normal(size=2000) > 0, 1.0, -1.0)
    expected = rng.normal(size=(2000, 1))
    actual = rng.normal(size=(2000, 1)) + 0.4 * side[:, None]
    plain = swap_test(expected, actual, ["x"], level=0.01, rng=np.random.default_rng(1))
    split = swap_test(
        expected, actual, ["x"], level=0.01, rng=np.random.default_rng(1), weights=[(Region("by side", "there"), side)]
    )
    assert plain.p_value > 0.01 >= split.p_value
    assert split.feature == "mean of x by side"


def _normal(rng: np.random.Generator, change: float) -> np.ndarray:
    return rng.normal(change, 1, size=(600, 1))


def _paid_once_in_200(rng: np.random.Generator, change: float) -> np.ndarray:
    odds = 0.005 + change * math.sqrt(0.005 * 0.995)
    return (rng.random((600, 1)) < odds).astype(float)


def _unequal_weights(rng: np.random.Generator, change: float) -> np.ndarray:
    weight = 0.05 + change * math.sqrt(9 * 0.05 * 0.95 + 0.01) / 3
    return 3.0 * (rng.random((600, 1)) < weight) + rng.normal(0, 0.1, size=(600, 1))


def _heavy_tails(rng: np.random.Generator, change: float) -> np.ndarray:
    return rng.standard_t(3, size=(600, 1)) + change * math.sqrt(3)


@pytest.mark.parametrize("draw", [_normal, _paid_once_in_200, _unequal_weights, _heavy_tails])
def test_the_detectable_change_is_detected_in_nine_of_ten_runs(draw: Any) -> None:
    sizes, found, runs = [], 0, 40
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sizes.append(swap_test(draw(rng, 0), draw(rng, 0), ["x"], level=0.01, rng=rng).detectable(rng).change)
    for seed in range(runs):
        rng = np.random.default_rng(100 + seed)
        test = swap_test(draw(rng, 0), draw(rng, float(np.median(sizes))), ["x"], level=0.01, rng=rng)
        found += test.p_value <= 0.01
    # Binomial(40, 0.9) is below 30 with probability 1.5e-3; what a shift needs finds 21 of the rare payments.
    assert found >= 30


def test_a_change_of_the_odds_needs_more_than_a_shift_and_a_shift_of_all_what_it_needed() -> None:
    rng = np.random.default_rng(0)
    rare, plain = (
        swap_test(draw(rng, 0), draw(rng, 0), ["x"], level=0.01, rng=rng) for draw in (_paid_once_in_200, _normal)
    )
    for test in (rare, plain):
        assert test.detectable(rng).shift == pytest.approx((test.critical + NORMAL_90) * math.sqrt(2 / 600))
    assert rare.detectable(rng).change > 1.3 * rare.detectable(rng).shift
    assert plain.detectable(rng).change < 1.15 * plain.detectable(rng).shift


def test_a_level_beyond_sampled_flips_still_rejects_by_hoeffding() -> None:
    rows = np.random.default_rng(0).normal(1, 1, size=(400, 1))
    assert sign_flip_test(rows, level=1e-9, rng=np.random.default_rng(1)).p_value < 1e-9
    noise = np.random.default_rng(0).normal(0, 1, size=(400, 1))
    assert sign_flip_test(noise, level=1e-9, rng=np.random.default_rng(1)).p_value > 1e-9


def test_p_values_do_not_depend_on_which_side_is_called_expected() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 100, 2))
    one = swap_test(x, y, ["x", "y"], level=0.01, rng=np.random.default_rng(0))
    two = swap_test(y, x, ["x", "y"], level=0.01, rng=np.random.default_rng(0))
    assert one.p_value == two.p_value
    assert one.shift == pytest.approx(-two.shift)


def test_a_difference_that_no_named_feature_sees_is_learned() -> None:
    rng = np.random.default_rng(0)
    design = rng.normal(size=(3000, 2))
    wave = np.sign(design[:, :1] * design[:, 1:])
    features = np.concatenate([design, design[:, :1] * design[:, 1:]], axis=1)
    expected = rng.normal(size=(3000, 1)) - 0.25 * wave
    actual = rng.normal(size=(3000, 1)) + 0.25 * wave
    blind = swap_test(expected, actual, ["x"], level=0.01, rng=np.random.default_rng(1))
    seeing = swap_test(expected, actual, ["x"], level=0.01, rng=np.random.default_rng(1), design=features)
    assert blind.p_value > 0.01 >= seeing.p_value
    assert "learned" in seeing.feature


def test_learning_keeps_the_level() -> None:
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, y, design = rng.normal(size=(60, 1)), rng.normal(size=(60, 1)), rng.normal(size=(60, 5))
        rejected += swap_test(x, y, ["x"], level=0.05, rng=rng, design=design).p_value <= 0.05
    # Binomial(200, 0.05) exceeds 20 with probability 1e-3.
    assert rejected <= 20


def test_a_selection_of_distinct_columns_is_the_same_after_every_swap() -> None:
    rng = np.random.default_rng(0)
    members = rng.integers(0, 2, size=(2, 40, 6)).astype(float)
    members[:, :, 3], members[:, :, 5] = members[:, :, 1], 7.0  # a repeated column, and one that never varies
    kept = distinct_columns(np.concatenate(members), range(6))
    assert kept == [0, 1, 2, 4]
    swapped = rng.integers(0, 2, size=40).astype(bool)[:, None]
    after = [np.where(swapped, members[1 - side], members[side]) for side in (0, 1)]
    assert distinct_columns(np.concatenate(after), range(6)) == kept
    members[1, 3, 3] += 1.0  # columns that differ in one value are both kept
    assert distinct_columns(np.concatenate(members), range(6)) == [0, 1, 2, 3, 4]
