"""Rows are matched as a bijection, and weights are judged by the published levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcheck.engine.networks.blame.matching import ULPS, judge, match_rows, ulp32
from symcheck.engine.networks.subject.values import SignedPermutation


def rows(seed: int, n: int = 12, k: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, k))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_any_signed_permutation_of_distinct_rows_is_recovered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rows(seed)
    index, sign = rng.permutation(12), rng.choice([-1, 1], 12)
    moved = np.empty_like(table)
    moved[index] = sign[:, None] * table
    match = match_rows(moved, table)
    assert match is not None
    assert match.close.all()
    assert np.array_equal(match.permutation.index, index)
    assert np.array_equal(match.permutation.sign, sign)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.sampled_from([1e-9, 1e-6, 1e-3, 1e-2]))
def test_one_wrong_entry_leaves_the_permutation_as_it_is(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    table = rows(seed)
    index = rng.permutation(12)
    moved = np.empty_like(table)
    moved[index] = table
    moved[rng.integers(12), rng.integers(5)] += size
    match = match_rows(moved, table)
    assert match is not None
    assert np.array_equal(match.permutation.index, index)
    assert (match.permutation.sign == 1).all()


@pytest.mark.parametrize("bias", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("size", [1e-4, 0.1, 0.6, 3.0])
def test_one_wrong_weight_under_a_change_of_all_signs_leaves_its_unit_paired(size: float, bias: float) -> None:
    """Under x -> -x a unit is close to itself with the sign reversed, as close as its bias is small."""
    half = np.random.default_rng(0).normal(size=(4, 5)) * np.array([1, 1, 1, 1, bias])
    table = np.concatenate([half, half * np.array([-1, -1, -1, -1, 1])]) + 0.0
    table[1, 3] += size
    match = match_rows(table * np.array([-1, -1, -1, -1, 1]), table)
    assert match is not None
    assert match.close.all()
    assert match.permutation.index.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert (match.permutation.sign == 1).all()


def changed(share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and the same with exactly this share of them moved by at most 3 float32 ulps of the largest."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(40, 50))
    places = rng.permutation(weights.size)[: round(share * weights.size)]
    moved = weights.copy()
    moved.flat[places] += 3.0 * ulp32(np.abs(weights).max()) * rng.uniform(-1, 1, size=len(places))
    return moved, weights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.01, 0.26, 0.4, 0.5])
def test_small_differences_in_no_more_than_half_of_a_layer_are_faults(share: float, seed: int) -> None:
    assert judge(*changed(share, seed)).level == "failed"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.51, 0.7, 1.0])
def test_small_differences_in_most_of_a_layer_are_rounding_and_one_large_one_among_them_is_not(
    share: float, seed: int
) -> None:
    moved, weights = changed(share, seed)
    assert judge(moved, weights).level == "rounded"
    moved[7, 7] += 1e-5
    assert judge(moved, weights).level == "failed"


def summed(seed: int, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights that are sums over a basis with random coefficients, in float32, forwards and backwards."""
    rng = np.random.default_rng(seed)
    products = rng.normal(size=(terms, 1600)).astype(np.float32) * rng.normal(size=(terms, 1)).astype(np.float32)
    left, right = np.zeros(1600, dtype=np.float32), np.zeros(1600, dtype=np.float32)
    for i in range(terms):
        left, right = left + products[i], right + products[-1 - i]
    return left.astype(np.float64).reshape(40, 40), right.astype(np.float64).reshape(40, 40)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("terms", [4, 5, 6, 10])
def test_a_basis_summed_in_float32_in_another_order_is_rounding_and_one_wrong_weight_in_it_is_not(
    terms: int, seed: int
) -> None:
    left, right = summed(seed, terms)
    assert judge(left, right).level == "rounded"
    for size in (1e-4, 1e-6):
        wrong = right.copy()
        wrong[seed, 3] += size * np.abs(right).max()
        assert judge(left, wrong).level == "failed"


def test_float32_sums_of_few_terms_agree_in_most_of_their_entries() -> None:
    """What the test above rests on: by the share of entries that differ alone, such sums would be accused."""
    for terms in (4, 5):
        assert max(float((left != right).mean()) for left, right in (summed(seed, terms) for seed in range(4))) < 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.4])
def test_float32_weights_of_which_fewer_than_half_were_changed_a_little_are_faults(share: float, seed: int) -> None:
    moved, weights = (array.astype(np.float32).astype(np.float64) for array in changed(share, seed))
    assert judge(moved, weights).level == "failed"


@pytest.mark.parametrize("seed", range(4))
def test_a_long_tail_is_rounding_and_one_weight_beyond_it_is_not(seed: int) -> None:
    """Filters of escnn are sums of different sizes: a few differences are many times the typical one, without a gap."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(80, 80))
    scales = np.exp(1.2 * rng.normal(size=weights.shape))
    noise = scales * rng.normal(size=weights.shape)
    moved = weights + noise * (3.5 * ulp32(np.abs(weights).max()) / np.abs(noise).max())
    assert np.abs(moved - weights).max() > 8.0 * np.sqrt(((moved - weights) ** 2).mean())
    assert judge(moved, weights).level == "rounded"
    moved[3, 4] += 20 * ulp32(np.abs(weights).max())
    assert judge(moved, weights).level == "failed"


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_one_small_weight_off_is_a_fault_in_small_float32_layers_too(n: int) -> None:
    right = np.full((n, 2), 1.0)
    right[:, 1] = 0.01
    left = right.astype(np.float32).astype(np.float64)
    wrong = left.copy()
    wrong[:2, 1] += 0.75 * ulp32(np.array(1.0))  # where it should be its image, and where its image should be it
    wrong = wrong.astype(np.float32).astype(np.float64)
    assert judge(left, wrong).level == "failed"


def test_larger_differences_of_that_pattern_fail_and_the_pattern_is_named() -> None:
    left, right = summed(0, 6)
    wider = left + 8.0 * (right - left)
    judgement = judge(left, wider)
    assert judgement.level == "failed"
    assert judgement.pattern is not None
    assert judgement.pattern.code == "SYM134"
    assert judgement.pattern.fields["ulps"] > judgement.pattern.fields["limit"] == ULPS
    assert "summed from a basis in float32" in str(judgement.pattern)
    wrong = left.copy()
    wrong[2, 2] += 1e-5
    assert judge(left, wrong).pattern is None
    assert judge(left, left + 1e-3).pattern is None


def test_unrelated_rows_are_not_found() -> None:
    match = match_rows(rows(0), rows(1))
    assert match is not None
    assert not match.found


def test_a_permutation_is_preferred_to_a_change_of_sign_where_both_almost_fit() -> None:
    half = rows(2, 6)
    table = np.concatenate([half, -half])
    moved = -table
    moved[0, 0] += 1e-3
    match = match_rows(moved, table)
    assert match is not None
    assert (match.permutation.sign == 1).all()


def test_rows_that_only_change_sign_are_matched_with_signs() -> None:
    table = rows(3)
    match = match_rows(-table, table)
    assert match is not None
    assert np.array_equal(match.permutation.index, np.arange(12))
    assert (match.permutation.sign == -1).all()
    unsigned = match_rows(-table, table, signs=False)
    assert unsigned is not None
    assert not unsigned.found


def test_zero_and_minus_zero_are_the_same_entry() -> None:
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    moved = np.array([[1.0, -0.0], [-0.0, 1.0]])
    match = match_rows(moved, table)
    assert match is not None
    assert match.permutation.index.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ulps", "level"), [(0, "exact"), (1, "rounded"), (4, "rounded"), (5, "failed"), (17, "failed")]
)
def test_a_single_difference_is_judged_in_float32_ulps(ulps: int, level: str) -> None:
    left = rows(4)
    right = left.copy()
    right[3, 2] += ulps * float(ulp32(left[3, 2])) * np.sign(left[3, 2])
    judgement = judge(left, right)
    assert judgement.level == level
    if ulps:
        assert judgement.place == (3, 2)
        assert judgement.ulps == pytest.approx(ulps, rel=1e-6)  # float64 rounding of the sum
    assert judgement.rows == ((3,) if level == "failed" else ())


def test_small_differences_over_most_of_the_layer_are_rounding_but_an_isolated_one_is_not() -> None:
    left = np.full((10, 10), 1e-4)
    left[0, 0] = 1.0
    off = 2 * float(ulp32(np.array(1.0)))
    assert judge(left, left + off).level == "rounded"
    alone = left.copy()
    alone[5, 5] += off
    assert judge(left, alone).level == "failed"


def test_one_wrong_weight_among_rounded_ones_stands_out() -> None:
    rng = np.random.default_rng(0)
    left = rng.normal(size=(64, 64)) * 0.1
    left[0, 0] = 0.5
    right = left + 1e-8 * rng.normal(size=left.shape)
    assert judge(left, right).level == "rounded"
    right[5, 5] = left[5, 5] + 1.5e-7
    assert judge(left, right).level == "failed"
    relative = left * (1 + 6e-8 * rng.normal(size=left.shape))
    assert judge(left, relative).level == "rounded"
    relative[7, 7] = left[7, 7] * (1 + 1e-5)
    assert judge(left, relative).level == "failed"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [1e-9, 1e-8, 2e-8])
def test_rounding_of_a_basis_is_never_taken_for_a_wrong_weight(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(240, 240)) * 0.1
    right = left + noise * rng.normal(size=left.shape)
    assert judge(left, right).level == "rounded"


def test_nan_is_never_equal() -> None:
    left = rows(5)
    right = left.copy()
    right[0, 0] = np.nan
    assert judge(left, right).level == "failed"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_moving_columns_is_the_product_with_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    motion = SignedPermutation(rng.permutation(6), rng.choice([-1, 1], 6))
    matrix = np.zeros((6, 6))
    matrix[motion.index, np.arange(6)] = motion.sign
    W, x = rng.normal(size=(3, 6)), rng.normal(size=6)
    assert np.array_equal(motion.columns(W), W @ matrix)
    assert np.array_equal(motion.apply(x), matrix @ x)


@pytest.mark.parametrize(("units", "level"), [(3.5, "rounded"), (4.5, "failed")])
def test_the_unit_is_that_of_the_larger_of_two_weights(units: float, level: str) -> None:
    """Below 2 the float32 unit is half of what it is at 2: both are compared by the one at 2."""
    left = rows(4) * 0.1
    left[3, 2] = 2.0
    right = left.copy()
    right[3, 2] -= units * float(ulp32(np.array(2.0)))
    assert judge(left, right).level == judge(right, left).level == level


@pytest.mark.parametrize(("change", "close"), [(0.08, True), (0.15, False), (0.5, False)])
def test_a_row_off_by_more_than_a_tenth_is_no_image_of_its_like(change: float, close: bool) -> None:
    table = rows(6)
    moved = table[::-1].copy()
    moved[4] *= 1 + change
    match = match_rows(moved, table)
    assert match is not None
    assert match.close.all() == close
    assert match.close.sum() >= len(table) - 1
    assert match.found


@pytest.mark.parametrize(("unrelated", "found"), [(6, True), (7, False)])
def test_half_of_the_rows_must_have_an_image_for_the_rest_to_be_judged(unrelated: int, found: bool) -> None:
    table = rows(7)
    moved = table[::-1].copy()
    moved[:unrelated] = rows(8)[:unrelated]
    match = match_rows(moved, table)
    assert match is not None
    assert match.found == found
