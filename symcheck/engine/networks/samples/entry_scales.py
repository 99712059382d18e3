"""The scale of each entry of an output: its spread over the inputs, independent of other entries and of markers.

The largest value of an output is not its scale. A mask replaces the logits of forbidden actions with -1e8, an offset
adds 1e6 to all of them, and a second head may have another unit. Relative to these, a wrong policy would look like
rounding. Therefore each entry has its own scale, the spread of its ordinary values. Markers (numbers that mean
"forbidden") are far from ordinary values and close to each other; they are compared among themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats

TINY = 1e-300
"""Stands for the scale of an output that is zero throughout, so that ratios are defined."""
STILL = 1e-13
"""Spread over size up to which an entry is constant in float64."""
_FAR = 1e3  # a value this many times the largest ordinary one, with none in between, is a mark, for example of a mask
_NARROW = 1e-2  # largest range of the marks over their size: masked logits minus their log-sum-exp vary by some units
_EVEN = 1e-2  # smallest interquartile range over range of ordinary values: saturated values spread over many decades
_FEW = 0.02  # smallest fraction of ordinary values for the others to count as marks
_MARKS = 3  # number of different marks that an entry may have: forbidden, padded, infinite
# relative to ordinary outputs: smaller values result from cancellation and carry the rounding of larger terms
_CANCELLED = 1e-3
_SAME_MARK = 1e-6  # largest relative difference of equal marks: eight ulps of a float32 mark


@dataclass(frozen=True, eq=False)
class EntryScales:
    """The scales of one output, entry by entry.

    Attributes:
        spread: the spread of ordinary values on either side of their middle; 0 if constant; shape (size,).
        size: largest ordinary |value|, shape (size,).
        limit: values of larger magnitude are markers; infinite if there are none; shape (size,).
    """

    spread: Floats
    size: Floats
    limit: Floats

    @property
    def filled(self) -> Floats:
        """Scales for comparisons: the spread; for a constant entry its size, otherwise the largest of its output."""
        own = np.where(self.spread > STILL * self.size, self.spread, self.size)
        return np.maximum(np.where(own > 0, own, own.max(initial=0.0)), TINY)

    @property
    def largest(self) -> float:
        """The spread of the output: the largest of its entries."""
        return float(self.spread.max(initial=0.0))

    def beside(self, ordinary: EntryScales) -> EntryScales:
        """The scales for inputs that are smaller or larger than ordinary ones: their own, with a floor.

        The floor is a fraction of the ordinary scale.

        If values barely vary, their size is used, up to the spread on ordinary inputs.
        """
        own = np.maximum(self.spread, np.minimum(self.size, ordinary.spread))
        floor = EntryScales(_CANCELLED * ordinary.spread, _CANCELLED * ordinary.size, ordinary.limit)
        return EntryScales(own, self.size, self.limit).joined(floor)

    def joined(self, other: EntryScales) -> EntryScales:
        """The larger of both, entry by entry; a value is a marker only if both agree."""
        return EntryScales(
            np.maximum(self.spread, other.spread),
            np.maximum(self.size, other.size),
            # if only one of them found marks, use its limit
            np.where(np.isinf(self.limit), other.limit, np.where(np.isinf(other.limit), self.limit, np.maximum(
                self.limit, other.limit))),
        )  # fmt: skip


def entry_scales(*tables: Floats) -> EntryScales:
    """Scales from values of one output.

    Args:
        tables: shapes (n, size); infinite values are markers, NaN counts as absent.

    Example:
        >>> values = np.array([[0.5, 1e6 + 1.0], [-1.0, 1e6 + 2.0], [-1e8, 1e6], [-1e8, 1e6 + 0.5], [0.2, 1e6]])
        >>> entry_scales(values).spread.tolist()
        [0.75, 1.0]
        >>> bool(entry_scales(values).limit[0] < 1e8)
        True
    """
    values = np.concatenate(tables)
    number = np.isfinite(values)
    low, high = np.where(number, values, np.inf).min(axis=0), np.where(number, values, -np.inf).max(axis=0)
    some = number.any(axis=0)
    low, high = np.where(some, low, 0.0), np.where(some, high, 0.0)
    sizes = np.maximum(np.abs(low), np.abs(high))
    limit = np.full(values.shape[1], np.inf)
    spread = 0.5 * high - 0.5 * low
    # Only a column with both small and large values can have marks.
    quarter = np.quantile(np.where(number, np.abs(values), np.inf), 0.02, axis=0, method="lower")
    for j in np.flatnonzero(some & (sizes > _FAR * quarter)):
        ordinary = _ordinary_values(values[number[:, j], j])
        if ordinary is not None:
            sizes[j] = np.abs(ordinary).max()
            spread[j] = 0.5 * (ordinary.max() - ordinary.min())
            limit[j] = _FAR**0.5 * sizes[j]
    return EntryScales(spread, sizes, limit)


def _ordinary_values(column: Floats) -> Floats | None:
    """The values that are not marks; None if they cannot be separated."""
    kept = column
    for _ in range(_MARKS):
        sizes = np.sort(np.abs(kept[kept != 0]))
        jumps = np.flatnonzero(sizes[1:] > _FAR * sizes[:-1])
        if not len(jumps):
            break
        far = sizes[jumps[-1] + 1 :]
        if far[-1] - far[0] > _NARROW * far[-1]:
            break
        kept = kept[np.abs(kept) <= sizes[jumps[-1]]]
    if len(kept) == len(column) or len(kept) < max(2, _FEW * len(column)):
        return None
    # distinct values only: the log-probability of a single allowed action is always 0
    low, high = np.quantile(np.unique(kept), (0.25, 0.75))
    return kept if high - low >= _EVEN * (kept.max() - kept.min()) > 0 else None


def entry_gaps(wanted: Floats, actual: Floats, scales: EntryScales) -> Floats:
    """|wanted - actual|, entry by entry, shape (n, size): 0 between two equal markers, infinite if one is NaN.

    Example:
        >>> scales = EntryScales(np.ones(1), np.ones(1), np.full(1, 1e4))
        >>> entry_gaps(np.array([[-1e8], [0.5]]), np.array([[-1e8 - 8], [-1e8]]), scales).tolist()
        [[0.0], [100000000.5]]
    """
    gap = difference(wanted, actual)
    beyond = np.minimum(np.abs(wanted), np.abs(actual))
    gap[(beyond > scales.limit) & (gap <= _SAME_MARK * beyond)] = 0.0
    return gap


def difference(left: Floats, right: Floats) -> Floats:
    """|left - right|, with equal infinities (masked actions) counted as equal and NaN as infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(left - right)
    # inf - inf is NaN; equal infinities agree.
    gap[left == right] = 0.0
    gap[np.isnan(gap)] = np.inf
    return gap


def output_scale(*values: Floats) -> float:
    """The largest finite |value|, at least `TINY`."""
    sizes = [np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in values]
    return max(float(max(sizes)), TINY)
