"""Robust typical sizes and spreads of the values of a coordinate, insensitive to outliers.

A range sensor that reads 1e6 if nothing is near, a penalty of -1e15 or a diverged simulation would dominate every mean.
Therefore sizes are low quantiles of distinct values, and spreads are those of the densest tenth of them, so up to nine
in ten values may be outliers. Outliers are still compared with each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.clock import raise_if_overdue
from symcheck.spaces.coordinates import Coordinates, finite

FLOAT64_EPSILON = float(np.finfo(np.float64).eps)
FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
_ROWS = 2000  # number of values used: quantiles need no more
_LOW, _OFTEN = 0.25, 0.75  # quantiles of the distinct sizes, and of all sizes
_ORDINARY = 100.0  # largest size relative to which a float32 zero is rounded; larger ones may mean "nothing in range"
_LEAST = 0.01  # rounding of a zero, in ulps of its summands
_DENSEST = 0.1  # fraction of the distinct values that determines the spread
_STEPS = 8  # minimum number of distinct values for a spread, if there are enough
_CELL = 8.0  # in rounding units: values closer than this count as equal
_JITTER = 4  # cells: a coordinate with a smaller spread varies only by rounding
_RARE = 0.1  # fraction of values at either end that is ignored for the spread
_NOTICEABLE = 0.1  # fraction of that spread, or of a distance from its middle, that a tolerance must not reach
# A tenth of the cases may lie at discontinuities without loosening the tolerance of all others. The 90% quantile is
# typical only if it is close to the median: chaos in some states must not loosen the tolerance in others.
_TYPICAL_QUANTILE, _MOST_TYPICAL = 0.9, 16.0
_MOST_MOVED = 1e-6  # relative effect on a value of one ulp of a float32 state: eight such units
_SAME_SIZE = 1e3  # cancellation of three digits is common; larger losses need tolerances from nudges
# larger rounding units than float32's, and the fraction of a spread that they may hide
COARSE, _FEW_UNITS, _HIDDEN = 1e-5, 1, 1e-3
_FAR = 30.0  # a gap of this multiple of the inner range separates outliers


def typical_sizes(values: Floats, epsilon: Floats) -> Floats:
    """A typical size of each coordinate, shape (dim,); 0 if all values are 0 or none is a number.

    Args:
        values: shape (n, dim).
        epsilon: rounding units, shape (dim,).

    Example:
        >>> sizes = np.append(np.linspace(0.1, 1.0, 91), [1e30] * 40)
        >>> round(float(typical_sizes(sizes[:, None], np.full(1, 1e-16))[0]), 2)
        0.32
        >>> typical_sizes(np.array([[1.0], [6e-17], [-1.0], [-1.8e-16]]), np.full(1, 2.2e-16)).tolist()
        [1.0]
    """
    sizes = np.abs(_some_rows(values))
    sizes = np.sort(np.where(np.isfinite(sizes) & (sizes > 0), sizes, np.inf), axis=0)
    often = _low_quantile(sizes, _OFTEN)
    repeated = np.zeros(sizes.shape, dtype=np.bool_)
    repeated[1:] = sizes[1:] == sizes[:-1]
    # Exact zeros, and repetitions of one value, carry no information about the size of the others.
    distinct = np.sort(np.where(repeated, np.inf, sizes), axis=0)
    low = _low_quantile(distinct, _LOW)
    # The computed cosine of a right angle, 6e-17, is the rounding of 1 and not a size; 1e-39 of the largest float is
    # not rounding.
    unit = np.where(often <= _ORDINARY, np.maximum(epsilon, FLOAT64_EPSILON), FLOAT64_EPSILON)
    is_zero = (low <= _CELL * unit * often) & (low >= _LEAST * FLOAT64_EPSILON * often)
    above = np.sort(np.where(distinct > _CELL * unit * often, distinct, np.inf), axis=0)
    return np.where(is_zero, _low_quantile(above, _LOW), low)


def _low_quantile(ascending: Floats, share: float) -> Floats:
    """A quantile of the finite values of each column, shape (dim,), 0 if there are none; others are sorted last."""
    if not len(ascending):
        return np.zeros(ascending.shape[1])
    count = np.isfinite(ascending).sum(axis=0)
    at = (share * np.maximum(count - 1, 0)).astype(np.intp)
    return np.where(count > 0, np.take_along_axis(ascending, at[None], axis=0)[0], 0.0)


def sizes_beside_others(values: Floats, epsilon: Floats) -> Floats:
    """Typical sizes; for a constant coordinate, at least that of the varying coordinates, shape (dim,).

    A start computed as sin(pi) is 1.2e-16, which is rounding error relative to the other coordinates, not an
    independent value.

    Args:
        values: shape (n, dim).
        epsilon: rounding units, shape (dim,).
    """
    sizes = typical_sizes(values, epsilon)
    varying = (values != values[:1]).any(axis=0) & (sizes > 0)
    if not varying.any():
        return sizes
    return np.where(varying, sizes, np.maximum(sizes, np.median(sizes[varying])))


def bulk_bounds(values: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """The range of most values of a coordinate: outside it lies a gap of many times its width.

    Long tails, such as those of a squared error, belong to the range; a maximum reading that means "nothing in range"
    does not.

    Args:
        values: shape (n, dim).
        epsilon: rounding units, shape (dim,).

    Returns:
        (lowest, highest), both of shape (dim,); infinite if there are no outliers.

    Example:
        >>> values = np.append(np.linspace(0.0, 1.0, 101), [1e30] * 50)[:, None]
        >>> round(float(bulk_bounds(values, np.full(1, 1e-7))[1][0]), 3)
        1.0
    """
    lowest, highest = np.full((2, values.shape[1]), [[-np.inf], [np.inf]])
    for j in np.flatnonzero(epsilon > 0):
        raise_if_overdue()
        distinct = _distinct_values(values[:, j], epsilon[j])
        steps = max(int(_DENSEST * len(distinct)), min(len(distinct) - 1, _STEPS))
        if steps < 1:
            continue
        with np.errstate(over="ignore"):  # between the largest floats of either sign
            gaps = np.diff(distinct)
            first = int(np.argmin(distinct[steps:] - distinct[:-steps]))
            last = first + steps
            above = np.flatnonzero(gaps[last:] > _FAR * (distinct[last:-1] - distinct[first]))
            below = np.flatnonzero(gaps[:first] > _FAR * (distinct[last] - distinct[1 : first + 1]))
        # Extend by one cell, because distinct values are rounded.
        if len(above):
            highest[j] = distinct[last + above[0]] + _CELL * epsilon[j] * abs(distinct[last + above[0]])
        if len(below):
            lowest[j] = distinct[below[-1] + 1] - _CELL * epsilon[j] * abs(distinct[below[-1] + 1])
    return lowest, highest


def _distinct_values(column: Floats, epsilon: float) -> Floats:
    """The finite values of a column, ascending, without duplicates up to some rounding units, shape (count,)."""
    some = _some_rows(column)
    mantissa, exponent = np.frexp(some[np.isfinite(some)])
    cell = _CELL * epsilon
    return np.unique(np.ldexp(np.round(mantissa / cell) * cell, exponent))


def swamped_rows(
    expected: Floats, actual: Floats, limits: Floats, epsilon: Floats, *, share: float = _NOTICEABLE
) -> Bools:
    """Rows whose tolerance is a noticeable part of the spread of values, so that it would hide most faults, shape (n,).

    Args:
        expected: shape (n, dim).
        actual: shape (n, dim).
        limits: tolerances, shape (n, dim).
        epsilon: rounding units, shape (dim,).
        share: the fraction of the spread above which a tolerance is noticeable.

    Example:
        >>> values, limits = np.linspace(0.0, 1.0, 101)[:, None], np.full((101, 1), 1e-6)
        >>> limits[:5] = 0.5
        >>> int(swamped_rows(values, values, limits, np.full(1, 1e-7)).sum())
        5
    """
    swamped = np.zeros(len(expected), dtype=np.bool_)
    for j in np.flatnonzero(epsilon > 0):
        values = np.concatenate([expected[:, j], actual[:, j]])
        numbers = values[np.isfinite(values)]
        if not len(numbers):
            continue
        low, middle, high = np.quantile(numbers, (_RARE, 0.5, 1 - _RARE))
        with np.errstate(over="ignore", invalid="ignore"):
            spread = high - low
            # An outlier may have a correspondingly large tolerance: compare with its distance.
            distance = np.fmax(np.abs(expected[:, j] - middle), np.abs(actual[:, j] - middle))
        if spread > _JITTER * _CELL * epsilon[j] * abs(middle):
            swamped |= limits[:, j] > share * np.fmax(spread, distance)
    return swamped


class TypicalMovement:
    """The typical effect of a nudge on outcomes of a given size, learned from a few cases.

    Rounding scales with the value, and the rounding error of a small sum is that of its summands; therefore cases of up
    to a thousand times the size are taken into account. If nudges change outcomes by a large part of their size, each
    case gets a tolerance from its own nudge.

    Args:
        sizes: the sizes of the cases' outcomes, shape (cases, dim).
        moved: the changes due to a nudge, shape (cases, dim).
    """

    def __init__(self, sizes: Floats, moved: Floats) -> None:
        order = np.argsort(finite(sizes), axis=0)
        self._sizes = np.take_along_axis(finite(sizes), order, axis=0)
        moved = np.take_along_axis(moved, order, axis=0)
        # Row k covers the k smallest cases.
        quantiles = [np.quantile(moved[:k], (0.5, _TYPICAL_QUANTILE), axis=0) for k in range(1, len(moved) + 1)]
        self._typical = np.array([0 * moved[0], *(np.minimum(most, _MOST_TYPICAL * half) for half, most in quantiles)])

    def of(self, sizes: Floats) -> Floats:
        """The typical change of outcomes of these sizes, shape (n, dim)."""
        typical = np.zeros_like(sizes)
        for j in np.flatnonzero(self._typical[-1] > 0):
            counted = np.searchsorted(self._sizes[:, j], _SAME_SIZE * sizes[:, j], side="right")
            typical[:, j] = self._typical[counted, j]
        return np.minimum(typical, _MOST_MOVED * sizes)


@dataclass(frozen=True)
class Bulk:
    """Values with their outliers identified.

    Attributes:
        values: shape (n, dim).
        far: True for outliers, shape (n, dim); NaN and infinities are not outliers.
        filled: the values with a typical value in place of outliers, and 0 in place of non-numbers.
    """

    values: Floats
    far: Bools
    filled: Floats

    def without(self, common: Floats) -> Floats:
        """Values minus the part that a fit of `filled` explains; outliers and non-numbers are left unexplained."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isfinite(self.values), self.values - common, self.values)

    def tie(self, epsilon: Floats, units: float) -> Floats:
        """The given number of rounding units of each value, or of a typical one if that is larger, shape (n, dim).

        Dtypes as coarse as float16 use fewer units, because 64 of them would hide faults.
        """
        sizes = np.maximum(finite(np.abs(self.values)), typical_sizes(self.values, epsilon))
        tie = units * epsilon * np.minimum(sizes, np.finfo(np.float32).max)
        fewer = np.maximum(tie * _FEW_UNITS / units, _HIDDEN * self.filled.std(axis=0))
        return np.where(epsilon > COARSE, np.minimum(tie, fewer), tie)


def bulk(values: Floats, epsilon: Floats) -> Bulk:
    """Find the outliers of each coordinate.

    The result depends only on the pooled values, so swap tests keep their level.

    Args:
        values: pooled values of both sides, shape (n, dim).
        epsilon: rounding units, shape (dim,); integers are never outliers.

    Example:
        >>> known = bulk(np.append(np.linspace(0.0, 1.0, 101), [1e30])[:, None], np.full(1, 1e-7))
        >>> int(known.far.sum()), bool(known.filled.max() <= 1)
        (1, True)
    """
    lowest, highest = bulk_bounds(values, epsilon)
    number = np.isfinite(values)
    far = number & ((values < lowest) | (values > highest))
    near = finite(np.where(far, 0.0, values))
    middles = near.sum(axis=0) / np.maximum((number & ~far).sum(axis=0), 1)
    return Bulk(values, far, np.where(far, middles, near))


def _some_rows(values: Floats) -> Floats:
    """Evenly spaced rows, about `_ROWS` at most."""
    return values[:: max(1, len(values) // _ROWS)]


def in_float32(values: Floats) -> bool:
    """Whether all values are exactly representable in float32, as for values computed in float32."""
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        return bool((finite.astype(np.float32).astype(np.float64) == finite).all())


def coarsest_unit(*parts: Coordinates) -> float:
    """The largest rounding unit of some coordinates; 0 if all are integers.

    Images are rounded once more than the original values, so an exact fit on both leaves only this difference.
    """
    return max(float(part.epsilon.max(initial=0.0)) for part in parts)


def shown_precision(coordinates: Coordinates, actual: Floats) -> Coordinates:
    """The coordinates with the precision that measured values have: float32 numbers stored in float64 stay float32.

    Args:
        coordinates: the coordinates with the rounding units of their dtypes.
        actual: values from the environment, shape (n, dim).

    Only values from the environment count, because the image of a float32 number under an affine map need not be one.
    """
    epsilon = coordinates.epsilon.copy()
    for j in np.flatnonzero((epsilon > 0) & (epsilon < FLOAT32_EPSILON)):
        column = actual[:, j]
        if in_float32(column) and not (column == np.round(column)).all():
            epsilon[j] = FLOAT32_EPSILON
    return replace(coordinates, epsilon=epsilon)
