"""Scores of observed episodes against those of their images: sums too large to be due to chance within an orbit.

Given an orbit, each member is equally likely to be the observed episode. A score may be any function of an episode; it
is computed for every member. If a score depends on a feature (a position, or a distance), it is summed over intervals
of many widths, because a fault may lie anywhere and be narrow or wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.discovery.rollouts import SKEWED

CELLS = 16  # cells of a feature, about equally filled; a power of two, because neighbours are merged repeatedly
INTERVALS = 41  # intervals of all widths except the whole: 16, 8 + 7, 4 + 3, 2 + 1
_ROUNDING = 1e-5  # relative to a feature's range: a rounded image stays in the cell of its exact value


@dataclass(frozen=True)
class Leaning:
    """The deviation of the scores of observed episodes from those of their orbits.

    Attributes:
        largest: the largest of all self-normalised sums.
        tests: their number.
    """

    largest: float = 0.0
    tests: int = 0

    def __or__(self, other: Leaning) -> Leaning:
        return Leaning(max(self.largest, other.largest), self.tests + other.tests)

    def exceeds(self, order: int, level: float, *, sides: int = 2) -> bool:
        """Whether a deviation of this size has at most the given probability by chance.

        Args:
            order: the order of the orbits.
            level: the probability.
            sides: 1 for a one-sided test of higher scores, 2 for a two-sided test.

        Example:
            >>> Leaning(9.0, 10).exceeds(2, 1e-4), Leaning(3.0, 10).exceeds(2, 1e-4)
            (True, False)
        """
        if not self.tests:
            return False
        # A self-normalised sum of symmetric terms exceeds x with probability exp(-x^2 / 2) at most (Hoeffding).
        return self.largest > math.sqrt(2 * math.log(sides * self.tests / level)) * (SKEWED if order > 2 else 1.0)


def lean(sums: Floats, scale: float | Floats, *, sides: int = 2) -> Leaning:
    """The deviation of the observed episodes, which are the first members of their orbits.

    Args:
        sums: shape (episodes, order, features).
        scale: the unit of scores, so that rounding does not count as a score.
        sides: 1 for a one-sided test of higher scores.
    """
    sums = sums - sums.mean(axis=1, keepdims=True)
    size = np.sqrt((sums**2).mean(axis=1).sum(axis=0))
    # Images with scores equal up to rounding give no evidence.
    real = size > 1e-9 * scale
    leaning = sums[:, 0].sum(axis=0) / np.where(real, size, np.inf)
    largest = float((np.abs(leaning) if sides == 2 else leaning).max(initial=0.0))
    return Leaning(largest, int(real.sum()))


class Episodes:
    """Groups the scores of steps by episode.

    Args:
        episode: the episode of each step.
    """

    def __init__(self, episode: npt.NDArray[np.int64]) -> None:
        self._at = np.unique(episode, return_inverse=True)[1]
        self._count = int(self._at.max(initial=-1)) + 1
        self._lengths = np.bincount(self._at)
        self._sorted = np.argsort(self._at, kind="stable")
        self._begins = np.concatenate([[0], np.cumsum(self._lengths)[:-1]]).astype(np.intp)

    def lean(self, scores: Floats, *, sides: int = 2) -> Leaning:
        """The deviation of scores of steps, shape (steps, order, features)."""
        sums = np.add.reduceat(scores[self._sorted], self._begins, axis=0)
        # Normalise by length, so that an episode with many such steps does not outweigh all others.
        return lean(sums / self._lengths.reshape(-1, 1, 1), np.abs(scores).sum(axis=(0, 1)), sides=sides)

    def multiply(self, ways: Floats, follows: Floats) -> Floats:
        """Means over each episode of the products of two rows of numbers, shape (episodes, ways x follows)."""
        ways, follows = ways[self._sorted], follows[self._sorted]
        ends = [*self._begins[1:], len(ways)]
        made = [ways[a:b].T @ follows[a:b] / (b - a) for a, b in zip(self._begins, ends, strict=True)]
        return np.stack(made).reshape(len(made), -1)

    def lean_on_intervals(self, scores: Floats, feature: Floats) -> Leaning:
        """The deviation of scores on intervals of a feature with many widths; both arrays have shape (steps, order)."""
        cells = _cells_of(feature)
        if cells is None:
            return Leaning()
        order = feature.shape[1]
        rows = (self._at[:, None] * order + np.arange(order)) * CELLS + cells
        shape = (self._count, order, CELLS)
        counted = np.bincount(rows.ravel(), weights=scores.ravel(), minlength=math.prod(shape))
        sums: Floats = counted.reshape(shape) / self._lengths.reshape(-1, 1, 1)
        widths = [sums]
        while widths[-1].shape[-1] > 2:
            first, second = widths[-1][..., ::2], widths[-1][..., 1::2]
            # Also use intervals shifted by half a width, because a fault may cross an edge.
            widths[-1:] = [widths[-1], second[..., :-1] + first[..., 1:], first + second]
        return lean(np.concatenate(widths, axis=-1), float(np.abs(scores).sum()))


def _cells_of(feature: Floats) -> npt.NDArray[np.int64] | None:
    """The cell of each value, all cells about equally filled; None if all values are the same."""
    extent = float(np.ptp(feature))
    if extent <= 1e-9 * float(np.abs(feature).max(initial=0.0)):
        return None
    # An edge lies slightly below a value, so that no value is on it and rounded images stay on their side.
    edges = np.quantile(feature, np.arange(1, CELLS) / CELLS, method="lower") - _ROUNDING * extent
    return np.searchsorted(edges, feature)


def moving_columns(images: list[Floats]) -> Bools:
    """Which columns differ between the members of an orbit."""
    moving = np.zeros(images[0].shape[1], dtype=bool)
    for image in images[1:]:
        moving |= (image != images[0]).any(axis=0)
    return moving
