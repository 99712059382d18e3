"""Features for comparing two samples: ranks as normal scores, their moments and products, also by region.

A feature of an outcome can be any function that is computed in the same way on both sides; swap tests stay exact. More
features detect more kinds of difference, each with slightly less power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symcheck.array_types import Floats, Indices
from symcheck.engine.clock import raise_if_overdue

WIDEST_PRODUCTS = 12  # maximum number of coordinates for which every pairwise product is a feature
# maximum number of coordinates for which skews and tails are features; beyond it, only means and spreads
_WIDEST_TAILS = 512
_MOST_WEIGHTED = 2000  # maximum number of features that are averaged by region: for 10,000 pairs they take 160 MB
WIDEST_TIE = 16.0  # largest range of ties, in multiples of the tie width
_MOMENTS = ("mean", "spread", "skew", "tails")


class Feature(NamedTuple):
    """The description of one feature column.

    Attributes:
        name: the name in reports.
        coordinate: index of its (first) coordinate.
        moment: "mean", "spread", "skew", "tails" or "product".
        region: index of the weight used in its average; -1 if all pairs have equal weight.
        other: index of the second coordinate of a product; -1 otherwise.
    """

    name: str
    coordinate: int
    moment: str
    region: int = -1
    other: int = -1


def distinct_columns(pooled: Floats, columns: Sequence[int]) -> list[int]:
    """The columns that vary and do not repeat an earlier one, such as one of the pixels of a larger cell.

    A swap of the members of pairs changes none of these relations, so tests on a selection stay exact.

    Args:
        pooled: both members of every pair, shape (n, dim).
        columns: indices of columns, in order.

    Returns:
        Some of the indices; the first one if no column varies.

    Example:
        >>> distinct_columns(np.array([[0.0, 5.0, 0.0, 1.0], [1.0, 5.0, 1.0, 0.0]]), [0, 1, 2, 3])
        [0, 3]
    """
    first: dict[bytes, int] = {}
    for j in columns:
        column = np.nan_to_num(pooled[:, j], nan=0.0, posinf=0.0, neginf=0.0)
        if (column != column[0]).any():
            first.setdefault(pooled[:, j].tobytes(), j)
    return list(first.values()) or list(columns[:1])


def normal_scores(pooled: Floats, tie: Floats | None = None) -> Floats:
    """Ranks of each column as normal quantiles; ties share the average, NaN is a tie below all numbers.

    Args:
        pooled: shape (n, dim).
        tie: shape (dim,) or (n, dim): neighbouring values closer than this count as equal, unless they form a dense
            range many times as wide, in which distance carries no information.

    Returns:
        Shape (n, dim), finite.
    """
    scores = np.empty_like(pooled)
    n = len(pooled)
    for j in range(pooled.shape[1]):
        raise_if_overdue()
        column = np.where(np.isnan(pooled[:, j]), -np.inf, pooled[:, j])
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        with np.errstate(invalid="ignore"):
            gaps = np.diff(ordered)  # inf - inf is NaN, which is not a gap
        widths = np.zeros(n) if tie is None else np.broadcast_to(tie, pooled.shape)[:, j][order]
        new = _number_ties(ordered, gaps, widths)
        counts = np.bincount(new)
        # Ranks start at 1: the average rank of each group of ties.
        middle = np.cumsum(counts) - (counts - 1) / 2
        scores[order, j] = normal_quantile((middle - 0.5) / n)[new]
    return scores


def _number_ties(ordered: Floats, gaps: Floats, tie: Floats) -> Indices:
    """The index of the group of ties of each ordered value, counted from 0; see `normal_scores`."""
    apart = gaps > np.maximum(tie[1:], tie[:-1])
    new = np.concatenate([[0], np.cumsum(apart)])
    first = np.flatnonzero(np.diff(new, prepend=-1))
    last = np.append(first[1:], len(ordered)) - 1
    with np.errstate(invalid="ignore"):
        dense = (ordered[last] - ordered[first] > WIDEST_TIE * np.maximum(tie[first], tie[last]))[new]
    return np.concatenate([[0], np.cumsum(apart | ((gaps > 0) & dense[1:]))]) if dense.any() else new


def normal_quantile(p: Floats) -> Floats:
    """Quantiles of the standard normal distribution, to about 1e-4; ample for scores.

    Args:
        p: probabilities strictly between 0 and 1.

    Returns:
        The quantiles, same shape.

    Example:
        >>> [round(float(q), 2) for q in normal_quantile(np.array([0.5, 0.975]))]
        [0.0, 1.96]

    Source: Abramowitz and Stegun (1964), formula 26.2.23, absolute error below 4.5e-4.
    """
    tail = np.minimum(p, 1 - p)
    t = np.sqrt(-2 * np.log(np.clip(tail, 1e-300, 0.5)))
    top = 2.515517 + 0.802853 * t + 0.010328 * t**2
    bottom = 1 + 1.432788 * t + 0.189269 * t**2 + 0.001308 * t**3
    return np.where(p < 0.5, -1.0, 1.0) * np.where(tail == 0.5, 0.0, t - top / bottom)


def hermite_features(
    scores: Floats, names: Sequence[str], *, widest: int = WIDEST_PRODUCTS
) -> tuple[Floats, list[Feature]]:
    """Hermite polynomials 1 to 4 of every coordinate, and products of pairs.

    Args:
        scores: normal scores, shape (n, dim).
        names: the names of the coordinates.
        widest: with more coordinates than this, products are omitted.

    Returns:
        Features, shape (n, count), means of all coordinates first, then spreads; and their descriptions. With more than
        512 coordinates, only means and spreads.
    """
    dim = scores.shape[1]
    # Orthonormal under the normal distribution: every feature has variance 1 if scores are normal.
    columns, squares = [scores, spreads(scores)], scores * scores
    if dim <= _WIDEST_TAILS:  # products, because NumPy's powers above the second are slow
        columns.append((squares - 3) * scores / math.sqrt(6))
        columns.append(((squares - 6) * squares + 3) / math.sqrt(24))
    labels = [
        Feature(f"{moment} of {name}", j, moment) for moment in _MOMENTS[: len(columns)] for j, name in enumerate(names)
    ]
    if 1 < dim <= widest:
        products, more = products_of(scores, names)
        columns.append(products)
        labels += more
    return np.concatenate(columns, axis=1), labels


def spreads(scores: Floats) -> Floats:
    """The second Hermite polynomial, which is large for scores far from 0 on either side."""
    return np.asarray((scores**2 - 1) / math.sqrt(2))


def products_of(scores: Floats, names: Sequence[str]) -> tuple[Floats, list[Feature]]:
    """Products of all pairs of columns, shape (n, pairs), and their descriptions."""
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    labels = [Feature(f"product of {names[i]} and {names[j]}", i, "product", other=j) for i, j in pairs]
    return np.stack([scores[:, i] * scores[:, j] for i, j in pairs], axis=1), labels


class Region(NamedTuple):
    """A subset of pairs and its complement, in words.

    Attributes:
        text: the suffix of a feature's name, for both.
        inside: the subset.
        outside: the complement.
    """

    text: str
    inside: str
    outside: str = "elsewhere"


def weigh_features(
    differences: Floats, described: Sequence[Feature], weights: Sequence[tuple[Region, Floats]]
) -> tuple[list[Floats], list[Feature]]:
    """Features by region: means and spreads with every weight first, then products, skews and tails.

    Args:
        differences: the differences of features, shape (n, count).
        described: their descriptions.
        weights: the weights of the rows, shape (n,), by region; only the first ones if there are too many features.

    Returns:
        Blocks of columns, shape (n, some), and their descriptions; about 2,000 columns at most.
    """
    blocks: list[Floats] = []
    labels: list[Feature] = []
    for moments in (("mean",), ("spread",), ("product",), ("skew", "tails")):
        picked = [i for i, feature in enumerate(described) if feature.moment in moments]
        for number, (region, weight) in enumerate(weights):
            if not picked or len(labels) + len(picked) > _MOST_WEIGHTED:
                break
            blocks.append(differences[:, picked] * weight[:, None])
            labels += [described[i]._replace(name=f"{described[i].name} {region.text}", region=number) for i in picked]
    return blocks, labels
