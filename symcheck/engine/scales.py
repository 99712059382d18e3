"""How large the values of a coordinate typically are, and how far they spread, whatever a few of them say.

A range sensor that shows 1e6 where nothing is near, a penalty of -1e15 or a simulator that blows up would rule every
mean. So sizes are low quantiles of distinct values, and spreads are those of the densest tenth of them: up to nine in
ten values may be far off. Values that are far off are still compared, among themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.spaces.coordinates import Coordinates

FLOAT64_EPSILON = float(np.finfo(np.float64).eps)
FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
_ROWS = 2000  # of the values that are looked at: quantiles need no more
_LOW = 0.25  # quantile of the distinct sizes
_DENSEST = 0.1  # share of the distinct values whose spread counts
_STEPS = 8  # between distinct values at least, where there are so many
_CELL = 8.0  # rounding units: values closer than this are one value
_JITTER = 4  # cells: a coordinate that spreads no further varies by rounding only
_NOTICEABLE = 0.1  # share of a spread, or of a distance from the middle, that a tolerance may not reach
_FAR = 100.0  # widths of the densest tenth, from its middle: 25 standard deviations of a normal distribution


def typical_sizes(values: Floats) -> Floats:
    """A typical size of each coordinate, shape (dim,); 0 where all values are 0 or none is a number.

    Args:
        values: shape (n, dim).

    Example:
        >>> sizes = np.append(np.linspace(0.1, 1.0, 91), [1e30] * 40)
        >>> round(float(typical_sizes(sizes[:, None])[0]), 2)
        0.32
    """
    sizes = np.sort(np.abs(_some_rows(values)), axis=0)
    repeated = np.zeros(sizes.shape, dtype=np.bool_)
    repeated[1:] = sizes[1:] == sizes[:-1]
    # Zeros are exact, and one value that returns is one value: neither says how large the others are.
    sizes[repeated | (sizes == 0) | ~np.isfinite(sizes)] = np.inf
    sizes.sort(axis=0)
    count = np.isfinite(sizes).sum(axis=0)
    picked = (_LOW * np.maximum(count - 1, 0)).astype(np.intp)
    found = np.take_along_axis(sizes, picked[None], axis=0)[0] if len(sizes) else np.full(sizes.shape[1], np.inf)
    return np.where(np.isfinite(found), found, 0.0)


def sizes_beside_others(values: Floats) -> Floats:
    """Typical sizes; of a coordinate that never varies, at least that of the coordinates that do, shape (dim,).

    A start that is written as sin(pi) is 1.2e-16: rounding of the numbers beside it, and no size of its own.

    Args:
        values: shape (n, dim).
    """
    sizes = typical_sizes(values)
    varying = (values != values[:1]).any(axis=0) & (sizes > 0)
    if not varying.any():
        return sizes
    return np.where(varying, sizes, np.maximum(sizes, np.median(sizes[varying])))


def spreads(values: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Middle and width of the densest tenth of each coordinate's distinct values.

    Args:
        values: shape (n, dim).
        epsilon: rounding units, shape (dim,).

    Returns:
        (middles, widths), both of shape (dim,); a width is 0 where the coordinate is a whole number, or varies by
        rounding only.

    Example:
        >>> values = np.append(np.linspace(0.0, 1.0, 101), [1e30] * 50)[:, None]
        >>> round(float(spreads(values, np.full(1, 1e-7))[1][0]), 2)
        0.1
    """
    some = _some_rows(values)
    middles, widths = np.zeros((2, values.shape[1]))
    for j in np.flatnonzero(epsilon > 0):
        column = some[:, j]
        mantissa, exponent = np.frexp(column[np.isfinite(column)])
        cell = _CELL * epsilon[j]
        distinct = np.unique(np.ldexp(np.round(mantissa / cell) * cell, exponent))
        if len(distinct) < 2:
            continue
        steps = max(int(_DENSEST * len(distinct)), min(len(distinct) - 1, _STEPS))
        with np.errstate(over="ignore"):  # between the largest floats of either sign
            gaps = distinct[steps:] - distinct[:-steps]
        at = int(np.argmin(gaps))
        middle = (distinct[at] + distinct[at + steps]) / 2
        if gaps[at] > _JITTER * cell * abs(middle):
            middles[j], widths[j] = middle, gaps[at]
    return middles, widths


def swamped_rows(expected: Floats, actual: Floats, limits: Floats, epsilon: Floats) -> Bools:
    """Rows whose tolerance is a noticeable part of what the values spread: they would hide most faults, shape (n,).

    Args:
        expected: shape (n, dim).
        actual: shape (n, dim).
        limits: tolerances, shape (n, dim).
        epsilon: rounding units, shape (dim,).

    Example:
        >>> values, limits = np.linspace(0.0, 1.0, 101)[:, None], np.full((101, 1), 1e-6)
        >>> limits[:5] = 0.5
        >>> int(swamped_rows(values, values, limits, np.full(1, 1e-7)).sum())
        5
    """
    middles, widths = spreads(np.concatenate([expected, actual]), epsilon)
    # A value that is far off may be so with a tolerance to match: its distance is what counts.
    with np.errstate(over="ignore"):
        distance = np.fmax(np.abs(expected - middles), np.abs(actual - middles))
    return np.asarray(((widths > 0) & (limits > _NOTICEABLE * np.fmax(widths, distance))).any(axis=1))


class Near(NamedTuple):
    """Values with the far-off ones marked.

    Attributes:
        values: far-off ones brought nearer in their order, shape (n, dim).
        far: which were, shape (n, dim).
        filled: the values with the coordinate's middle in place of far-off ones and of what is no number.
    """

    values: Floats
    far: Bools
    filled: Floats

    def without(self, common: Floats) -> Floats:
        """Values less what a fit of `filled` explains; no fit explains what is far off or no number."""
        known = np.isfinite(self.values) & ~self.far
        return np.where(known, self.values - common, self.values)


def bring_near(values: Floats, epsilon: Floats) -> Near:
    """Mark values that are far off, and bring them nearer in their order.

    Beyond a hundred widths of the densest tenth distances grow as their logarithm does. What is done depends on the
    pooled values alone, so that tests by swaps keep their level.

    Args:
        values: pooled values of both sides, shape (n, dim).
        epsilon: rounding units, shape (dim,); whole numbers keep their values.

    Returns:
        The values; NaN and infinities stay as they are and are not far.

    Example:
        >>> near = bring_near(np.append(np.linspace(0.0, 1.0, 101), [1e30])[:, None], np.full(1, 1e-7))
        >>> int(near.far.sum()), bool(near.values.max() < 1e5), bool(near.filled.max() <= 1)
        (1, True, True)
    """
    middles, widths = spreads(values, epsilon)
    limits = np.where(widths > 0, _FAR * widths, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.clip(values - middles, -np.finfo(float).max, np.finfo(float).max)
    known = np.isfinite(values)
    far = known & (np.abs(distance) > limits)
    filled = np.where(known & ~far, values, np.where(widths > 0, middles, 0.0))
    if not far.any():
        return Near(values, far, filled)
    with np.errstate(invalid="ignore", divide="ignore"):
        nearer = middles + np.sign(distance) * limits * (1 + np.log(np.abs(distance) / limits))
    return Near(np.where(far, nearer, values), far, filled)


def _some_rows(values: Floats) -> Floats:
    """Evenly spread rows, at most `_ROWS` or so."""
    return values[:: max(1, len(values) // _ROWS)]


def in_float32(values: Floats) -> bool:
    """Whether all values are exactly representable in float32, as values computed in float32 are."""
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        return bool((finite.astype(np.float32).astype(np.float64) == finite).all())


def shown_precision(coordinates: Coordinates, actual: Floats) -> Coordinates:
    """The coordinates with the precision that measured values show: float32 numbers in float64 stay float32.

    Args:
        coordinates: with the rounding units of their dtypes.
        actual: values as the environment gave them, shape (n, dim).

    Only values as the environment gave them count: the image of a float32 number under an affine map is none.
    """
    epsilon = coordinates.epsilon.copy()
    for j in np.flatnonzero((epsilon > 0) & (epsilon < FLOAT32_EPSILON)):
        column = actual[:, j]
        if in_float32(column) and not (column == np.round(column)).all():
            epsilon[j] = FLOAT32_EPSILON
    return replace(coordinates, epsilon=epsilon)
