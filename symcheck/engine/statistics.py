"""Exact tests and bounds: the conclusions that a given number of samples supports at a given level.

All results are valid at every sample size. The two-sample test is a permutation test. Its null distribution comes from
swapping the members of pairs (x_i, y_i). It is valid if each pair is exchangeable under the claim, even with ties and
atoms. The result names the coordinate and the moment that differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.clock import raise_if_overdue
from symcheck.engine.detectable import NORMAL_90, Detectable, detectable_change
from symcheck.engine.effects import Effect
from symcheck.engine.features import (
    WIDEST_PRODUCTS,
    Feature,
    Region,
    hermite_features,
    normal_scores,
    weigh_features,
)

_FEWEST_SWAPS, _MOST_SWAPS = 1999, 200_000
_CHUNK = 4_000_000  # number of signs in memory: 16 MB of float32
_LEARNED_RIDGE = 0.01  # relative to the mean squared column of the design


def largest_fraction(violations: int, samples: int, alpha: float) -> float:
    """The largest violating fraction that the evidence does not exclude (Clopper and Pearson, one-sided).

    With no violation this is 1 - alpha^(1/n).

    Args:
        violations: number of violating samples.
        samples: independent samples drawn, at least 1.
        alpha: probability of error.

    Returns:
        A probability; the true fraction lies below it with confidence 1 - alpha.

    Example:
        >>> round(largest_fraction(0, 10_000, 0.05), 6)
        0.0003
        >>> round(largest_fraction(1, 10, 0.05), 4)
        0.3942

    Source: Clopper and Pearson (1934), Biometrika 26, 404-413.
    """
    if violations >= samples:
        return 1.0
    if violations == 0:
        # 1 - alpha^(1/n), without cancellation for large n.
        return -math.expm1(math.log(alpha) / samples)
    low, high = 0.0, 1.0
    coefficients = _log_coefficients(violations, samples)
    # The tail P(X <= violations) falls as the fraction grows: its root at alpha is the bound.
    while (middle := (low + high) / 2) not in (low, high):  # stop at neighbouring floats
        if _binomial_tail(coefficients, samples, middle) > alpha:
            low = middle
        else:
            high = middle
    return high


def _log_coefficients(most: int, n: int) -> list[float]:
    """Logarithms of the binomial coefficients of n over 0, ..., most, which overflow themselves for large n."""
    return [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(most + 1)]


def _binomial_tail(coefficients: list[float], n: int, p: float) -> float:
    """P(X <= most) for X binomial(n, p) with 0 < p < 1, from the logarithms of the coefficients up to the most."""
    logs = [each + k * math.log(p) + (n - k) * math.log1p(-p) for k, each in enumerate(coefficients)]
    top = max(logs)
    return min(1.0, math.exp(top) * sum(math.exp(log - top) for log in logs))


def holm(p_values: Sequence[float], alpha: float) -> list[float]:
    """The level of each of several tests, such that the probability of rejecting any true claim is at most alpha.

    The i-th smallest of k p-values is compared with alpha / (k - i + 1), as long as all smaller ones reject; the first
    that does not, and all above it, are compared with the level at which the procedure stopped.

    Args:
        p_values: the p-values of k tests, each valid on its own; the tests may depend on each other in any way.
        alpha: probability of a false rejection among all of them.

    Returns:
        k levels, in the order of the p-values: a test rejects if its p-value is at most its level.

    Example:
        >>> holm([0.04, 0.001, 0.015], 0.03)
        [0.03, 0.01, 0.015]

    Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
    """
    count = len(p_values)
    levels = [0.0] * count
    level, rejecting = alpha / max(1, count), True
    for place, i in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        level = alpha / (count - place) if rejecting else level
        # Stepping down ends at the first test that does not reject; later ones share its level.
        rejecting = rejecting and p_values[i] <= level
        levels[i] = level
    return levels


@dataclass(frozen=True)
class SignFlipTest:
    """Result of a sign-flip test on whole rows.

    Attributes:
        p_value: the p-value of the largest statistic over all features; valid at every number of rows.
        statistics: |sum| / sqrt(sum of squares) of every feature, shape (features,); 0 if a feature is constantly 0.
        critical: the value that the largest statistic exceeds with probability `level`.
    """

    p_value: float
    statistics: Floats
    critical: float

    @property
    def live(self) -> bool:
        """Whether any pattern of flips could have rejected; False if every difference is 0."""
        return math.isfinite(self.critical)


def sign_flip_test(
    differences: Floats, *, level: float, rng: np.random.Generator, sampled: bool = True
) -> SignFlipTest:
    """Test exactly whether the rows are symmetric about zero, by flipping the signs of whole rows.

    Args:
        differences: shape (n, features); under the claim, a row and its negative have the same distribution.
        level: the level of the test; it determines the number of flips before any data is examined.
        rng: draws the flips.
        sampled: whether flips are drawn; if not, the p-value is Hoeffding's bound, which is also valid but larger, and
            costs nothing.

    Returns:
        The result.

    Example:
        >>> rows = np.random.default_rng(0).normal(1.0, 1.0, size=(200, 2))
        >>> sign_flip_test(rows, level=0.01, rng=np.random.default_rng(1)).p_value < 0.01
        True

    Source: randomisation by sign changes, Lehmann and Romano (2005), section 15.2.
    """
    # Pairs whose members are equal in all features add nothing to any sum; there are many where outcomes repeat.
    apart: Bools = np.asarray(differences.any(axis=1))
    differences = differences[apart]
    root = np.sqrt((differences**2).sum(axis=0))
    live = root > 0
    if not live.any():
        return SignFlipTest(1.0, np.zeros(differences.shape[1]), math.inf)
    standard = differences[:, live] / root[live]
    statistics = np.zeros(differences.shape[1])
    statistics[live] = np.abs(standard.sum(axis=0))
    # The smallest p-value is 1 / (flips + 1): use four times the number that the level needs.
    flips = int(np.clip(math.ceil(4 / level), _FEWEST_SWAPS, _MOST_SWAPS))
    if not sampled or level * (flips + 1) < 1:  # sampled flips cannot reach such a strict level
        p_value, critical = _hoeffding(float(statistics.max()), standard.shape[1], level)
    else:
        p_value, critical = _permutation(standard, float(statistics.max()), level, flips, rng, apart)
    return SignFlipTest(p_value, statistics, critical)


def _hoeffding(observed: float, features: int, level: float) -> tuple[float, float]:
    """Hoeffding's bound for sums with random signs, summed over the features, and the critical value.

    P(|sum| >= t root) <= 2 exp(-t^2 / 2) for every feature, at every number of rows.
    """
    p_value = min(1.0, 2 * features * math.exp(-(observed**2) / 2))
    return p_value, math.sqrt(2 * math.log(2 * features / level))


@dataclass(frozen=True)
class SwapTest:
    """Result of the two-sample swap test.

    Attributes:
        p_value: valid at every sample size; the smallest possible is 1 / (swaps + 1).
        pairs: number of pairs.
        feature: name of the most significant feature, for instance "mean of observation[0]".
        coordinate: index of that feature's first coordinate.
        moment: "mean", "spread", "skew", "tails" or "product".
        statistic: its standardised difference.
        shift: difference of means of that coordinate, actual minus expected, in the coordinate's unit.
        critical: the value that the statistic of a named feature must exceed.
        needed: number of pairs that would detect the observed difference with 90% power.
        coordinates: all coordinates that differ on their own at the level, without duplicates, most significant first.
        live: whether any pattern of swaps could have rejected; False if the two samples never differ.
        named: the most significant named feature, even if the learned one is more significant; None if there is none.
        effect: its size in plain units, if it was measured.
        compared: values and normal scores of both sides, shapes (2 pairs, dim), expected first.
    """

    p_value: float
    pairs: int
    feature: str
    coordinate: int
    moment: str
    statistic: float
    shift: float
    critical: float
    needed: int
    coordinates: tuple[int, ...]
    live: bool = True
    named: Feature | None = None
    effect: Effect | None = None
    compared: tuple[Floats, Floats] = (np.zeros((0, 1)), np.zeros((0, 1)))

    def detectable(self, rng: np.random.Generator) -> Detectable:
        """The changes of a mean, in standard deviations, that are detected with 90% power at the given level.

        Args:
            rng: draws the simulated tests.
        """
        values, scores = self.compared
        differences = scores[self.pairs :] - scores[: self.pairs]
        # For the named features only: the learned one uses half of the pairs and gives no guarantee.
        return detectable_change(values, scores, differences, values, critical=self.critical, rng=rng)


def swap_test(
    expected: Floats,
    actual: Floats,
    names: Sequence[str],
    *,
    level: float,
    rng: np.random.Generator,
    tie: Floats | None = None,
    weights: Sequence[tuple[Region, Floats]] = (),
    design: Floats | None = None,
    sampled: bool = True,
    widest: int = WIDEST_PRODUCTS,
) -> SwapTest:
    """Test exactly whether x_i (expected) and y_i (actual) have the same distribution, by swapping members of pairs.

    Features of the pooled normal scores of each coordinate (Hermite polynomials 1 to 4, and products of two
    coordinates) are averaged over pairs with a sign; the statistic is the largest standardised average. Under the
    claim every pattern of swaps is equally likely.

    Args:
        expected: shape (n, dim), one member of each pair.
        actual: shape (n, dim), the other.
        names: the names of the coordinates.
        level: the level of the test; it determines the number of swaps before any data is examined.
        rng: draws the swaps.
        tie: shape (dim,) or (2n, dim), expected first: values closer than this count as equal, so that rounding is not
            a difference.
        weights: the weights of the pairs, shape (n,), by region, that do not change under swaps; features are also
            averaged with these weights ("mean of x where s[0] is high").
        design: shape (n, columns): shared covariates of each pair. If given, half of the level goes to one learned
            feature: the difference given the design is learned by regression on one half of the pairs and tested on the
            other.
        sampled: whether swaps are drawn; if not, p-values are Hoeffding's bounds, which are also valid but larger, and
            cost little.
        widest: with more coordinates than this, products are omitted.

    Returns:
        The result, with the p-value.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(2, 500, 1))
        >>> swap_test(x, y + 1.0, ["x"], level=0.01, rng=rng).feature
        'mean of x'

    Source: swaps of exchangeable pairs, as in any permutation test (Lehmann and Romano 2005, section 15.2).
    """
    n, dim = expected.shape
    scores = normal_scores(np.concatenate([expected, actual]), tie)
    # Shape (2n, features): the pooled ranks do not depend on the side of a row.
    features, described = hermite_features(scores, names, widest=widest)
    differences = features[n:] - features[:n]
    weighed, by_region = weigh_features(differences, described, weights)
    described = [*described, *by_region]
    named_level = level if design is None else level / 2
    test = sign_flip_test(np.concatenate([differences, *weighed], axis=1), level=named_level, rng=rng, sampled=sampled)
    compared = (np.concatenate([expected, actual]), scores)
    shifts = _finite(actual).mean(axis=0) - _finite(expected).mean(axis=0)
    if design is not None:
        learned, coordinate = _learn_feature(differences[:, : 2 * dim], design, named_level, rng, sampled=sampled)
        # Two tests at half the level each: Bonferroni.
        test = replace(test, p_value=min(1.0, 2 * test.p_value))
        if 2 * learned.p_value < test.p_value:
            known = described[_named_feature(test.statistics, described, shifts)]
            learned_shift = float(shifts[coordinate % dim])
            said = _from_learned(learned, n, coordinate % dim, learned_shift, test.critical)
            return replace(said, named=known, compared=compared)
    best = _named_feature(test.statistics, described, shifts)
    feature = described[best]
    statistic = float(test.statistics[best])
    over = [i for i in np.argsort(-test.statistics, kind="stable") if test.statistics[i] > test.critical]
    return SwapTest(
        test.p_value,
        n,
        feature.name,
        feature.coordinate,
        feature.moment,
        statistic,
        float(shifts[feature.coordinate]),
        test.critical,
        math.ceil(n * ((test.critical + NORMAL_90) / statistic) ** 2) if statistic > test.critical else 0,
        tuple(dict.fromkeys(described[i].coordinate for i in over if described[i].moment != "product")),
        test.live,
        feature,
        compared=compared,
    )


def _learn_feature(
    differences: Floats, design: Floats, level: float, rng: np.random.Generator, *, sampled: bool
) -> tuple[SignFlipTest, int]:
    """One feature on every second pair, learned from the others, and the column that contributes most.

    Swaps of one half are independent of the other, so the test keeps its level for any learned feature.
    """
    # Every second pair, so that both halves contain early and late pairs.
    teaching, judging = slice(0, None, 2), slice(1, None, 2)
    gram = design[teaching].T @ design[teaching]
    ridge = _LEARNED_RIDGE * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram + ridge, design[teaching].T @ differences[teaching])
    # Shape (pairs, columns): the sum over columns is the learned feature; each column is a contribution.
    parts = differences[judging] * (design[judging] @ weights)
    test = sign_flip_test(parts.sum(axis=1, keepdims=True), level=level, rng=rng, sampled=sampled)
    return test, int(np.argmax(np.abs(parts.sum(axis=0))))


def _from_learned(test: SignFlipTest, pairs: int, coordinate: int, shift: float, critical: float) -> SwapTest:
    statistic = float(test.statistics[0])
    needed = math.ceil(pairs * ((test.critical + NORMAL_90) / statistic) ** 2) if statistic > 0 else 0
    name = "the distribution of the outcome given (s, a), as learned on half of the pairs,"
    p_value = min(1.0, 2 * test.p_value)
    return SwapTest(p_value, pairs, name, coordinate, "law", statistic, shift, critical, needed, (coordinate,))


_SAME_STATISTIC = 1e-3  # features this close are equivalent: one coordinate is a multiple of the other


def _named_feature(statistics: Floats, described: Sequence[Feature], shifts: Floats) -> int:
    """The most significant feature; among equals the simplest, then the coordinate with the largest shift."""
    top = float(statistics.max())
    equal = [i for i in range(len(described)) if statistics[i] >= top * (1 - _SAME_STATISTIC)]
    first = described[equal[0]]
    same = [i for i in equal if (described[i].moment, described[i].region) == (first.moment, first.region)]
    return max(same, key=lambda i: (abs(shifts[described[i].coordinate]), -i))


def _finite(values: Floats) -> Floats:
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def _permutation(
    standard: Floats, observed: float, level: float, flips: int, rng: np.random.Generator, apart: Bools
) -> tuple[float, float]:
    """The p-value of the largest |sum| under random flips, and the critical value.

    `apart` says which of the pairs have a row, because every pair is flipped.
    """
    n = len(apart)
    narrow = standard.astype(np.float32)
    chunk = max(1, _CHUNK // n)
    maxima = []
    for start in range(0, flips, chunk):
        raise_if_overdue()
        # int8: NumPy's default of int64 would take eight times the memory.
        drawn = rng.integers(0, 2, size=(min(chunk, flips - start), n), dtype=np.int8)
        # Temporary arrays of this size take longer than the sums: no copy of all columns, signs in place.
        signs = (drawn if apart.all() else drawn[:, apart]).astype(np.float32)
        signs *= 2
        signs -= 1
        maxima.append(np.abs(signs @ narrow).max(axis=1))
    null = np.concatenate(maxima)
    # Sums are taken in float32 (rounding below 1e-4 of a statistic of order 1): ties count against rejecting.
    p_value = (1 + int((null >= observed * (1 - 1e-4)).sum())) / (flips + 1)
    return p_value, float(np.quantile(null, max(0.0, 1 - level)))
