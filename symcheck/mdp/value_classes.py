"""Classes of numbers that count as equal.

1/3 + 1/3 and 2/3 differ in their last bit; as probabilities they are the same. Each class contains the numbers within a
tolerance of its representative; classes do not change when more numbers are added.
"""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Floats, Ints

ROUNDING = 1e-11
"""Differences that count as rounding, relative to the scale of the numbers.

Summing a distribution of 10,000 outcomes has an error of at most 10,000 half ulps of 1, which is 1.1e-12. Intended
differences in a model are far larger."""


class ValueClasses:
    """Assigns numbers to classes; numbers added later join the existing classes.

    Args:
        width: numbers at most this far from a class's representative belong to it.
        chained: whether a run of new numbers with gaps of at most `width` forms one class, which suits rounding;
            otherwise no class is wider than `width`.

    Example:
        >>> classes = ValueClasses(1e-11)
        >>> classes.of(np.array([1 / 3 + 1 / 3, 0.5, 2 / 3])).tolist()
        [1, 0, 1]
        >>> classes.of(np.array([0.1, 0.5])).tolist()
        [2, 0]
    """

    def __init__(self, width: float, *, chained: bool = True) -> None:
        self.width = width
        self.chained = chained
        self._representatives: Floats = np.zeros(0)
        self._ids: Ints = np.zeros(0, dtype=np.int64)
        self._count = 0

    def of(self, values: Floats) -> Ints:
        """The class of each number, shape as given (flat); new classes are numbered as they appear.

        Cost: n log n for n numbers, plus the number of existing classes if new ones appear.
        """
        classes = self._lookup(values)
        if (classes < 0).any():
            self._add(np.unique(values[classes < 0]))
            classes = self._lookup(values)
        return classes

    def _lookup(self, values: Floats) -> Ints:
        if not len(self._representatives):
            return np.full(len(values), -1, dtype=np.int64)
        # The representatives on either side of each number are the nearest ones.
        after = np.searchsorted(self._representatives, values, side="right")
        sides = np.maximum(after - 1, 0), np.minimum(after, len(self._representatives) - 1)
        # the older class of the two, so that the choice is stable
        first: Ints = np.minimum(*(self._class_at(side, values) for side in sides))
        return np.where(first < self._count, first, -1)

    def _class_at(self, place: Ints, values: Floats) -> Ints:
        """The class of each representative if the number is near it, otherwise an invalid class."""
        near = np.abs(self._representatives[place] - values) <= self.width
        return np.where(near, self._ids[place], self._count)

    def _add(self, fresh: Floats) -> None:
        """New classes for sorted distinct numbers that are far from all representatives."""
        if self.chained:
            kept = fresh
            # Chained: neighbours within the width share a class, whatever the length of the chain.
            ids = np.concatenate([[0], np.cumsum(np.diff(fresh) > self.width)])
        else:
            kept = _class_starts(fresh, self.width)
            ids = np.arange(len(kept))
        merged = np.concatenate([self._representatives, kept])
        order = np.argsort(merged, kind="stable")
        self._representatives = merged[order]
        # Ids follow the representatives into sorted order.
        self._ids = np.concatenate([self._ids, ids.astype(np.int64) + self._count])[order]
        self._count += int(ids[-1]) + 1


def _class_starts(fresh: Floats, width: float) -> Floats:
    """The left ends of classes no wider than `width` that cover sorted numbers."""
    starts = []
    at = 0
    while at < len(fresh):
        starts.append(fresh[at])
        at = int(np.searchsorted(fresh, fresh[at] + width, side="right"))
        # the sum above is rounded, but membership is decided by the difference
        while fresh[at - 1] - starts[-1] > width:
            at -= 1
    return np.array(starts)
