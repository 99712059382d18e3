"""Where two samples differ most: a box of states, actions and step numbers, for the diagnosis of a rejecting test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from symcheck.array_types import Bools, Floats

_CUTS = 33  # quantiles of a column between which intervals begin and end
_ROUNDS = 8  # maximum number of nested intervals
_MOST_TRIED = 32  # columns with the clearest intervals, to which the search is restricted after the first round
_BETTER = 1.1  # required ratio of deviations of an interval to those of the interval that contains it
_CLEARER = 1.25  # required ratio for the whole box; larger, because the selection of a box alone raises the ratio
_RARE = 0.05  # up to this share of relevant steps, all sides of the box are fitted around them
_COMMON = 0.5  # a side that contains more than this share of all steps is not informative
_LONGEST = 8.0  # times the median size; larger values are clipped, so that no single value determines a place
_IMAGES = 0.8  # weight of a box among the images; the same difference also appears in the original episodes


class Side(NamedTuple):
    """One side of a box, with its ends.

    Attributes:
        name: the name of a coordinate or an action, or the step number.
        low: the smallest value in the box.
        high: the largest value in the box.
    """

    name: str
    low: float
    high: float


def locate(signed: Floats, columns: Floats, names: list[str], own: Bools) -> tuple[list[Side], Bools]:
    """The box in which the sum of signed values is furthest from 0 for their number, found one interval at a time.

    Args:
        signed: scores of one sample and negated ones of the other, shape (n,); 0 where nothing counts.
        columns: the position of each value, shape (n, k).
        names: the names of the columns.
        own: whether each value comes from the environment itself, not from an image, shape (n,).

    Returns:
        The sides of the box, and the rows inside; no side if the difference is no clearer there than everywhere.

    Example:
        >>> x = np.linspace(-1, 1, 2001)
        >>> bump = np.where((x > 0.5) & (x < 0.6), 1.0, 0.0)
        >>> both, own = np.concatenate([bump, -bump[::-1]]), np.arange(4002) < 2001
        >>> [side], inside = locate(both, np.tile(x, 2)[:, None], ["x"], own)
        >>> side.name, round(side.low, 2), round(side.high, 2), int(inside.sum())
        ('x', 0.5, 0.6, 198)
    """
    everywhere = np.ones(len(signed), dtype=np.bool_)
    rows = np.flatnonzero((signed != 0) & np.isfinite(signed) & np.isfinite(columns).all(axis=1))
    if not len(rows):
        return [], everywhere
    count = len(rows)
    rare = count <= _RARE * len(signed)
    sizes = np.abs(signed[rows])
    longest = _LONGEST * float(np.median(sizes))
    scores = np.clip(signed, -longest, longest) / math.sqrt(np.mean(np.minimum(sizes, longest) ** 2))
    first = best = _interval(scores[rows], np.zeros(count), own[rows])[0]
    kept, cut = list(range(len(names))), set[int]()
    rounds = 0
    while rounds < _ROUNDS:
        tried = {j: _interval(scores[rows], columns[rows, j], own[rows]) for j in kept}
        kept = sorted(tried, key=lambda j: -tried[j][0])[:_MOST_TRIED]
        (deviations, low, high), j = tried[kept[0]], kept[0]
        if deviations <= _BETTER * best:
            break
        best, rounds = deviations, rounds + 1
        rows = rows[(columns[rows, j] >= low) & (columns[rows, j] <= high)]
        cut.add(j)
    # The expected maximum of as many sums of random signs; every round chooses among this number of boxes again.
    chance = math.sqrt(2 * rounds * math.log(columns.shape[1] * min(_CUTS, count) ** 2))
    # Rare events have a place even if they occur on one side only.
    if best < max(chance, 0.0 if rare else _CLEARER * first):
        return [], everywhere
    sides, inside = [], everywhere
    for j, name in enumerate(names):
        low, high = columns[rows, j].min(), columns[rows, j].max()
        within = (columns[:, j] >= low) & (columns[:, j] <= high)
        if j in cut or (rare and within.mean() < _COMMON):
            sides.append(Side(name, float(low), float(high)))
            inside = inside & within
    return sides, inside


def _interval(scores: Floats, column: Floats, own: Bools) -> tuple[float, float, float]:
    """The interval of a column in which scores add up furthest from 0, in deviations under random signs; its ends."""
    edges = np.unique(np.quantile(column, np.linspace(0, 1, _CUTS), method="nearest"))
    bins = np.searchsorted(edges, column)
    sums, counts, ours = (
        np.concatenate([[0.0], np.cumsum(np.bincount(bins, weights=weights, minlength=len(edges)))])
        for weights in (scores, np.ones(len(scores)), own)
    )
    start, end = np.triu_indices(len(edges) + 1, k=1)
    size = counts[end] - counts[start]
    weight = np.where(ours[end] - ours[start] >= size / 2, 1.0, _IMAGES)
    deviations = weight * np.abs(sums[end] - sums[start]) / np.sqrt(size)
    at = int(np.argmax(deviations))
    low = edges[start[at] - 1] if start[at] else -np.inf
    return float(deviations[at]), float(np.nextafter(low, np.inf)), float(edges[end[at] - 1])
