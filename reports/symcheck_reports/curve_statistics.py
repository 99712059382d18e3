"""Statistics of learning curves over seeds: quantile curves, steps to a threshold, IQM, probability of improvement.

Runs, not evaluations, are the independent units: every interval resamples whole runs. A run that stopped early is kept:
after it stopped, it counts as the lowest return on the page and as never reaching the threshold, so a failure cannot
improve the statistics of its network.

Sources: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (IQM, probability
of improvement); the rest derived here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcheck_reports.curve_model import NetworkCurves, SeedCurve

# Percentile-bootstrap resamples; at 2,000 the Monte-Carlo error of a 95% bound is well below the spread of 25 runs.
RESAMPLES = 2000
CONFIDENCE = 0.95
# Minimum number of runs for an interval: resampling one run gives width 0, and resampling two little more.
LEAST_RUNS = 3
_SEED = 0
_Statistic = Callable[[NDArray[np.float64]], Any]


@dataclass(frozen=True)
class QuantileCurve:
    """The 25%, 50% and 75% quantile of the return over runs, at each evaluation.

    Attributes:
        env_steps: shape (n,), increasing.
        low: 25% quantile, shape (n,).
        median: 50% quantile, shape (n,).
        high: 75% quantile, shape (n,).
    """

    env_steps: NDArray[np.int64]
    low: NDArray[np.float64]
    median: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval over runs.

    Attributes:
        value: the estimate; infinite if too many runs never reached the threshold.
        low: lower end of the interval; NaN if there are too few runs for one.
        high: upper end of the interval, likewise.
    """

    value: float
    low: float
    high: float


def grid(network: NetworkCurves) -> NDArray[np.int64]:
    """All steps at which any run was evaluated, increasing, shape (n,)."""
    steps = [np.asarray(curve.env_steps, dtype=np.int64) for curve in network.curves if len(curve.env_steps)]
    return np.unique(np.concatenate(steps)) if steps else np.zeros(0, dtype=np.int64)


def returns_on_grid(network: NetworkCurves, floor: float) -> NDArray[np.float64]:
    """The returns of all runs on their common grid.

    A run is interpolated linearly between its own evaluations and at missing (NaN) ones. Before its first evaluation it
    has the value of the first; after its last one it has `floor` if it stopped early, and otherwise the value of the
    last.

    Args:
        network: its runs.
        floor: the return of a run that stopped early.

    Returns:
        Shape (runs, n).
    """
    steps = grid(network)
    stopped = {failed.seed for failed in network.failed_runs}
    rows = [_on_grid(curve, steps, floor if curve.seed in stopped else None) for curve in network.curves]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(steps))


def _on_grid(curve: SeedCurve, steps: NDArray[np.int64], floor: float | None) -> NDArray[np.float64]:
    own = np.asarray(curve.env_steps, dtype=np.float64)
    returns = np.asarray(curve.returns, dtype=np.float64)
    known = np.isfinite(returns)
    if not known.any():
        return np.full(len(steps), floor if floor is not None else np.nan)
    values = np.interp(steps, own[known], returns[known])
    if floor is not None:
        values[steps > own[known][-1]] = floor
    return values


def lowest_return(networks: Sequence[NetworkCurves]) -> float:
    """The lowest finite return of any run; NaN if there is none."""
    finite = [v for network in networks for curve in network.curves for v in curve.returns if math.isfinite(v)]
    return min(finite, default=math.nan)


def quantile_curve(network: NetworkCurves, floor: float) -> QuantileCurve:
    """Quantiles over runs at each evaluation, from the first evaluation that every run has.

    Args:
        network: its runs.
        floor: the return of a run that stopped early (see `lowest_return`).
    """
    returns = returns_on_grid(network, floor)
    returns = returns[~np.isnan(returns).all(axis=1)] if returns.size else returns
    steps = grid(network)
    if not returns.size:
        empty = np.zeros(0)
        return QuantileCurve(steps[:0], empty, empty, empty)
    known = steps >= max(_first_known(curve) for curve in network.curves)
    low, median, high = np.quantile(returns[:, known], (0.25, 0.5, 0.75), axis=0)
    return QuantileCurve(steps[known], low, median, high)


def _first_known(curve: SeedCurve) -> float:
    """Steps of a run's first finite evaluation; -inf for a run without one, which is not drawn."""
    return next((float(s) for s, r in zip(curve.env_steps, curve.returns, strict=True) if math.isfinite(r)), -math.inf)


def first_reach(env_steps: Sequence[int] | NDArray[np.int64], returns: Sequence[float], threshold: float) -> float:
    """Steps taken at the first evaluation that reaches `threshold`; infinite if none does.

    Example:
        >>> first_reach([500, 1000, 1500], [20.0, 480.0, 300.0], 475)
        1000.0
    """
    reached = (float(s) for s, r in zip(env_steps, returns, strict=True) if math.isfinite(r) and r >= threshold)
    return next(reached, math.inf)


def steps_to_threshold(network: NetworkCurves, threshold: float) -> NDArray[np.float64]:
    """The steps at which each run first reached `threshold`, shape (runs,); infinite if it never did."""
    reached = [first_reach(curve.env_steps, curve.returns, threshold) for curve in network.curves]
    return np.array(reached, dtype=np.float64)


def median_steps(reached: NDArray[np.float64]) -> Estimate:
    """The median over runs of the steps to a threshold, with a percentile-bootstrap interval.

    Order statistics are used without interpolation, so runs that never reached the threshold (infinite) are counted.

    Args:
        reached: the result of `steps_to_threshold`, shape (runs,).

    Example:
        >>> median_steps(np.array([1000.0, 2000.0, np.inf])).value
        2000.0
    """
    return _bootstrap(reached, lambda sample: np.quantile(sample, 0.5, axis=-1, method="inverted_cdf"))


def interquartile_mean(scores: NDArray[np.float64]) -> Estimate:
    """The mean of the middle half of the runs' scores, with a percentile-bootstrap interval.

    Example:
        >>> interquartile_mean(np.array([0.0, 1.0, 3.0, 100.0])).value
        2.0
    """

    def middle(sample: NDArray[np.float64]) -> NDArray[np.float64]:
        cut = int(0.25 * sample.shape[-1])
        inner: NDArray[np.float64] = np.sort(sample, axis=-1)[..., cut : sample.shape[-1] - cut]
        return np.asarray(inner.mean(axis=-1))

    return _bootstrap(scores, middle)


def probability_of_improvement(scores: NDArray[np.float64], others: NDArray[np.float64]) -> Estimate:
    """The probability that a run of one network scores higher than a run of the other; ties count half.

    Args:
        scores: shape (runs,).
        others: shape (other runs,).

    Example:
        >>> probability_of_improvement(np.array([2.0, 3.0]), np.array([1.0, 3.0])).value
        0.625
    """
    wins = (scores[:, None] > others[None, :]) + 0.5 * (scores[:, None] == others[None, :])
    if min(wins.shape) < LEAST_RUNS:
        return Estimate(float(wins.mean()), math.nan, math.nan)
    rng = np.random.default_rng(_SEED)
    rows = rng.integers(len(scores), size=(RESAMPLES, len(scores)))
    columns = rng.integers(len(others), size=(RESAMPLES, len(others)))
    sampled = np.array([wins[np.ix_(row, column)].mean() for row, column in zip(rows, columns, strict=True)])
    low, high = _interval(sampled)
    return Estimate(float(wins.mean()), low, high)


def mean_return(network: NetworkCurves, floor: float) -> NDArray[np.float64]:
    """The mean return over training (the area under its curve over its length) of every run that has a return."""
    return np.asarray(_measured(network, floor).mean(axis=1))


def final_return(network: NetworkCurves, floor: float) -> NDArray[np.float64]:
    """The return of the last evaluation of every run that has a return."""
    return np.asarray(_measured(network, floor)[:, -1])


def _measured(network: NetworkCurves, floor: float) -> NDArray[np.float64]:
    """The finite rows of `returns_on_grid`: a run without a finished episode has no return, rather than 0."""
    returns = returns_on_grid(network, floor)
    if not returns.size:
        return np.zeros((0, 1))
    return returns[~np.isnan(returns).any(axis=1)]


def _bootstrap(values: NDArray[np.float64], statistic: _Statistic) -> Estimate:
    if not len(values):
        return Estimate(math.nan, math.nan, math.nan)
    if len(values) < LEAST_RUNS:
        return Estimate(float(statistic(values)), math.nan, math.nan)
    rng = np.random.default_rng(_SEED)
    samples = values[rng.integers(len(values), size=(RESAMPLES, len(values)))]
    low, high = _interval(np.asarray(statistic(samples), dtype=np.float64))
    return Estimate(float(statistic(values)), low, high)


def _interval(sampled: NDArray[np.float64]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(sampled, (tail, 1 - tail), method="inverted_cdf")
    return float(low), float(high)
