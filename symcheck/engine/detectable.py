"""The smallest change of a mean that a test finds with 90% power, for the distribution at hand.

A rank test detects a shift of all values with at least the power of the normal approximation (Chernoff and Savage
1958). A change of the odds, such as a reward paid once in 300 steps instead of once in 500, is harder to find at the
same change of the mean. So the samples are tilted: values x far from the mean become more frequent by a factor
proportional to exp(theta x), as in the distribution of a given mean that is closest to the original. Theta is increased
until 92% of the simulated tests reject. Values near the mean keep their odds, because ranks would see their change
first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.features import normal_quantile
from symcheck.spaces.coordinates import finite

NORMAL_90 = 1.2816  # the 90% quantile of the standard normal distribution, for power
_POWER = 0.92  # power required in simulation: 90% plus one standard error of the simulated fraction
_RUNS, _FEWEST_RUNS = 300, 100
_MOST_DRAWN = 1_000_000  # pairs drawn for all simulated tests
_MOST_OUTCOMES = 8  # number of outcomes for which tilts are computed: those with the heaviest tails
_CELLS, _EXTREMES = 128, 16  # number of distinct values, and of extreme values at each end that are kept separate
_NEAR = 0.75  # largest shift, in standard deviations: two equally frequent values are one from their mean
_TILTS = np.geomspace(1e-3, 30.0, 240)  # theta, per standard deviation; adjacent values differ by 4%
_BEFORE, _AFTER = 12, 60  # tilts simulated around the normal approximation's: half to 13 times its theta


class Detectable(NamedTuple):
    """The changes of a mean that are detected with 90% power, in standard deviations; 0 if the sides never differ.

    Attributes:
        change: for any form of change; infinite if some forms are never detected with this power.
        shift: for the same shift of every outcome.
    """

    change: float
    shift: float


def detectable_change(
    values: Floats, ranks: Floats, differences: Floats, totals: Floats, *, critical: float, rng: np.random.Generator
) -> Detectable:
    """The change of a mean that a test detects with 90% power, in the outcome in which detection is hardest.

    Args:
        values: outcomes of all steps of both sides, shape (steps, dim).
        ranks: their normal scores, equal for values that count as equal, shape (steps, dim).
        differences: totals of the tested scores over one member of each pair minus those over the other, shape (pairs,
            dim).
        totals: totals of the values over the members of pairs, shape (2 pairs, dim); their standard deviation is the
            unit.
        critical: the value that the statistic |sum| / sqrt(sum of squares) of one outcome must exceed.
        rng: draws the simulated tests.

    Returns:
        The changes; 0 if the two sides never differed. If no change of the odds is detected with this power, the change
        is infinite.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 1))
        >>> bool(0.2 < detectable_change(x, x, x[1000:] - x[:1000], x, critical=3.5, rng=rng).change < 0.25)
        True
        >>> rare = (rng.random((2000, 1)) < 0.002).astype(float)
        >>> bool(detectable_change(rare, rare, rare[1000:] - rare[:1000], rare, critical=3.5, rng=rng).change > 0.3)
        True

    Source: for shifts, Chernoff and Savage (1958), Annals of Mathematical Statistics 29, 972-994; for tilting, Kullback
        (1959), Information Theory and Statistics, chapter 3.
    """
    if not math.isfinite(critical):
        return Detectable(0.0, 0.0)
    shift = (critical + NORMAL_90) * math.sqrt(2 / len(differences))
    numbers = finite(values)
    spread = numbers.std(axis=0)
    live = np.flatnonzero((spread > 0) & differences.any(axis=0))
    if not len(live):
        return Detectable(shift, shift)
    tails = (((numbers[:, live] - numbers[:, live].mean(axis=0)) / spread[live]) ** 4).mean(axis=0)
    tilted = [
        _Tilted(values[:, j], ranks[:, j], differences[:, j], totals[:, j], sign)
        for j in live[np.argsort(-tails, kind="stable")[:_MOST_OUTCOMES]]
        for sign in (1.0, -1.0)
    ]
    # Simulate only the outcome and direction that are hardest by the normal approximation.
    hardest = max(tilted, key=lambda each: each.size_at(each.approximate(critical)))
    return Detectable(max(shift, hardest.size_at(hardest.simulate(critical, rng))), shift)


class _Tilted:
    """One outcome, tilted in one direction by every amount on the grid; see `detectable_change` for shapes.

    Args:
        values: the values of the outcome.
        ranks: the ranks of the outcome.
        differences: the differences of the outcome.
        totals: the totals of the outcome.
        sign: 1 if large values become more frequent, -1 if small ones do.
    """

    def __init__(self, values: Floats, ranks: Floats, differences: Floats, totals: Floats, sign: float) -> None:
        self._steps = len(values) / len(totals)  # variance of one member of a pair
        cells, weights = _values_by_rank(values, ranks)
        centred = cells - weights @ cells
        spread = math.sqrt(weights @ centred**2) or 1.0
        # Shape (tilts, cells): the frequency of every value, after tilting.
        outer = np.where(np.abs(centred) > _NEAR * spread, centred / spread, 0.0)
        exponents = sign * np.outer(_TILTS, outer)
        tilted = weights * np.exp(exponents - exponents.max(axis=1, keepdims=True))
        tilted /= tilted.sum(axis=1, keepdims=True)
        change = tilted - weights
        self._sizes = np.abs(change @ centred) * self._steps / (float(finite(totals).std()) or 1.0)
        # Both sides are ranked together, so their scores change too, and the differences in proportion.
        scores = _middle_scores((weights + tilted) / 2)
        deviations = np.sqrt(_mean_and_variance(np.broadcast_to(weights, scores.shape), scores)[1])
        before = math.sqrt(float(_mean_and_variance(weights[None], _middle_scores(weights[None]))[1][0]))
        self._differences, self._scale = differences, deviations / (before or 1.0)
        # The gain in score of a step whose outcome changes, and the growth of its variance.
        self._moved = np.clip(np.abs(change).sum(axis=1) / 2, 1e-300, 1.0)
        self._gain = (change * scores).sum(axis=1) / self._moved
        self._growth = _mean_and_variance(tilted, scores)[1] - deviations**2

    def size_at(self, index: int) -> float:
        """The change of the mean at one tilt; infinite beyond the last tilt, where no change is detected."""
        return float(self._sizes[index]) if index < len(_TILTS) else math.inf

    def approximate(self, critical: float) -> int:
        """The first tilt that is detected with 90% power if sums are normal."""
        pairs = len(self._differences)
        if critical**2 >= pairs:  # the statistic of n pairs never exceeds sqrt(n)
            return len(_TILTS)
        needed = critical / math.sqrt(1 - critical**2 / pairs) + NORMAL_90
        mean = self._steps * self._moved * self._gain
        noise = float(self._differences @ self._differences) / pairs * self._scale**2
        variance = np.maximum(noise + self._steps * self._growth, 0)
        return _first_enough(math.sqrt(pairs) * np.abs(mean) >= needed * np.sqrt(variance))

    def simulate(self, critical: float, rng: np.random.Generator) -> int:
        """The first tilt at which 92% of the simulated tests reject."""
        pairs, near = len(self._differences), self.approximate(critical)
        start = max(0, near - _BEFORE)
        some = slice(start, near + _AFTER)
        if near == len(_TILTS):
            return near
        share, gain, growth = self._moved[some], self._gain[some], self._growth[some]
        runs = min(_RUNS, max(_FEWEST_RUNS, _MOST_DRAWN // pairs))
        # Pairs in random order: the null distribution, shape (runs, pairs).
        both = np.concatenate([self._differences, -self._differences])
        drawn = both[rng.integers(0, 2 * pairs, (runs, pairs), dtype=np.int32)]
        scale = self._scale[some]
        sums, squares = drawn.sum(axis=1)[:, None] * scale, np.einsum("ij,ij->i", drawn, drawn)[:, None] * scale**2
        # Shape (runs, tilts): the steps with a changed outcome. Their number varies according to the growth of the
        # variance.
        steps = round(pairs * self._steps)
        moved = rng.binomial(steps, share, (runs, len(share)))
        counted = np.maximum(share * gain**2, 1e-300)
        added = gain * steps * share + gain * (moved - steps * share) * np.sqrt(np.clip(growth / counted, 0, 1))
        added += np.sqrt(steps * np.maximum(growth - counted, 0)) * rng.normal(size=(runs, 1))
        # Sum of (d + g)^2: the original squares, their growth, and the square of the common gain.
        squares = squares + growth * moved / share + added**2 / pairs + 2 * added * sums / pairs
        rejected = (np.abs(sums + added) > critical * np.sqrt(np.maximum(squares, 0))).mean(axis=0)
        first = _first_enough(rejected >= _POWER)
        return start + first if first < len(rejected) else len(_TILTS)


def _first_enough(enough: npt.NDArray[np.bool_]) -> int:
    """The first index from which all values suffice; the number of values if there is none."""
    return int(np.argmax(enough)) if enough.any() else len(enough)


def _values_by_rank(values: Floats, ranks: Floats) -> tuple[Floats, Floats]:
    """At most about 128 values in rank order, with their frequencies; extreme values are kept separate."""
    levels, owner, count = np.unique(ranks, return_inverse=True, return_counts=True)
    means = np.bincount(owner, weights=finite(values)) / count
    if len(levels) > _CELLS:
        # A value starts a new cell if the fraction below it passes the next multiple of 1 / 96; so do extreme values.
        shares = (np.cumsum(count) - count / 2) / len(values)
        inner = np.floor(shares * (_CELLS - 2 * _EXTREMES)).astype(np.int64)
        opens = np.diff(inner, prepend=-1) > 0
        opens[:_EXTREMES] = opens[-_EXTREMES:] = True
        cell = np.cumsum(opens) - 1
        grouped = np.bincount(cell, weights=count)
        return np.bincount(cell, weights=means * count) / grouped, grouped / len(values)
    return means, count / len(values)


def _middle_scores(weights: Floats) -> Floats:
    """Normal scores of the middle of every cell, shape (rows, cells)."""
    return normal_quantile(np.clip(np.cumsum(weights, axis=1) - weights / 2, 1e-12, 1 - 1e-12))


def _mean_and_variance(weights: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the scores under each row of weights, which need not sum to 1."""
    weights = weights / weights.sum(axis=1, keepdims=True)
    mean = (weights * scores).sum(axis=1)
    return mean, (weights * (scores - mean[:, None]) ** 2).sum(axis=1)
