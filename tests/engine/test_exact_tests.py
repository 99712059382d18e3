"""Exact tests against all patterns of signs, and promised powers against simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from symcheck.engine.environments.methods.second_look import Suspects
from symcheck.engine.statistics import sign_flip_test, swap_test

SIGNS = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))


def _of_all_patterns(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The largest standardised |sum| of any feature under each of the 1,024 patterns."""
    root = np.sqrt((rows**2).sum(axis=0))
    return np.asarray(np.abs(SIGNS @ (rows / root)).max(axis=1))


@pytest.mark.parametrize("kind", ["continuous", "ties"])
def test_sampled_flips_give_the_p_value_of_all_patterns(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        rows = rng.normal(0.3, 1, size=(10, 3)) if kind == "continuous" else rng.choice([-1.0, 1.0, 1.0], size=(10, 3))
        test = sign_flip_test(rows, level=0.05, rng=rng)
        null = _of_all_patterns(rows)
        exact = float((null >= test.statistics.max() * (1 - 1e-9)).mean())
        # 1,999 flips: four standard deviations, and the observed pattern that counts as one more.
        assert abs(test.p_value - exact) <= 4 * math.sqrt(exact * (1 - exact) / 1999) + 1 / 1999


def test_the_critical_value_is_exceeded_with_the_probability_of_the_level() -> None:
    rng = np.random.default_rng(1)
    over = []
    for _ in range(40):
        rows = rng.normal(size=(10, 2))
        over.append(float((_of_all_patterns(rows) > sign_flip_test(rows, level=0.05, rng=rng).critical).mean()))
    # Of 1,999 flips a quantile at 0.95 is 0.005 off; the mean of 40 is 0.001 off.
    assert np.mean(over) == pytest.approx(0.05, abs=0.004)


@pytest.mark.parametrize(("level", "flips"), [(0.01, 1999), (1e-3, 4000), (1e-4, 40_000)])
def test_the_smallest_p_value_is_one_of_the_flips_and_below_the_level(level: float, flips: int) -> None:
    rows = np.random.default_rng(0).normal(3, 1, size=(60, 1))
    assert sign_flip_test(rows, level=level, rng=np.random.default_rng(1)).p_value == 1 / (flips + 1)


def test_early_looks_bound_every_feature() -> None:
    rows = np.random.default_rng(0).normal(0.2, 1, size=(400, 5))
    test = sign_flip_test(rows, level=0.01, rng=np.random.default_rng(1), sampled=False)
    assert test.p_value == pytest.approx(min(1.0, 2 * 5 * math.exp(-(float(test.statistics.max()) ** 2) / 2)))
    assert test.critical == pytest.approx(math.sqrt(2 * math.log(2 * 5 / 0.01)))


def test_the_pairs_that_are_needed_find_the_difference_in_nine_of_ten_runs() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 400, 1))
    shifted = swap_test(x, y + 0.5, ["x"], level=0.01, rng=rng)
    assert shifted.needed < 400
    # The difference that was seen, which sampling put beside the 0.5 that was planted.
    seen = shifted.statistic / math.sqrt(400) * math.sqrt(2)
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(2, shifted.needed, 1))
        found += swap_test(x, y + seen, ["x"], level=0.01, rng=rng).p_value <= 0.01
    # Binomial(40, 0.9) is below 29 with probability 0.001. Shifts are of normal scores, which pooling shrinks a little.
    assert found >= 29


@pytest.mark.parametrize("dim", [2, 5])
def test_a_promised_shift_is_found_among_several_coordinates_of_few_pairs(dim: int) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y, design = rng.normal(size=(80, dim)), rng.normal(size=(80, dim)), rng.normal(size=(80, 3))
        names = [f"x{i}" for i in range(dim)]
        shift = swap_test(x, y, names, level=0.01, rng=np.random.default_rng(0), design=design).detectable(rng).change
        y[:, 0] += shift
        found += swap_test(x, y, names, level=0.01, rng=np.random.default_rng(0), design=design).p_value <= 0.01
    # Binomial(40, 0.9) is below 29 with probability 0.001. Larger shifts than 1 are shrunk by pooled normal scores.
    assert found >= 29


def test_a_learned_feature_and_the_named_ones_have_half_of_the_level_each() -> None:
    named_won = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y, design = rng.normal(size=(200, 1)), rng.normal(size=(200, 1)), rng.normal(size=(200, 4))
        named = swap_test(x, y, ["x"], level=0.005, rng=np.random.default_rng(3))
        both = swap_test(x, y, ["x"], level=0.01, rng=np.random.default_rng(3), design=design)
        if both.moment != "law":
            assert both.p_value == min(1.0, 2 * named.p_value)
            named_won += 1
    assert named_won
    # A difference that is learned for certain has the smallest p-value of its own flips, doubled.
    side = np.sign(design[:, :1] * design[:, 1:2])
    products = np.concatenate([design, design[:, :1] * design[:, 1:2]], axis=1)
    learned = swap_test(x - 3 * side, y + 3 * side, ["x"], level=0.01, rng=np.random.default_rng(3), design=products)
    assert learned.moment == "law"
    assert learned.p_value == 2 / 2000


def test_what_may_violate_among_unseen_suspects_is_two_bounds_of_half_the_level() -> None:
    """1,000 suspects of 10,000 pairs; 600 were looked at, half of them picked at random, and none violates."""
    looked = Suspects(rounding=list(range(600)), unseen=list(range(400)))
    share = beta.ppf(1 - 0.005, 1001, 9000)
    among = 1 - 0.005 ** (1 / 300)
    assert looked.largest_violating_fraction(10_000, 0.01) == pytest.approx(share * among, rel=1e-6)
