"""The action on the units of a layer, inferred from its weights, and how far the weights are from being equivariant.

A layer y = W u + b whose input transforms by R gives y(Lx) = W R u + b. If the rows of [W R, b] are the rows of [W, b]
in another order (or with other signs), that order is the action on y for every input, and need not be declared. Rows
are first matched exactly, and the remaining rows by the assignment with the least total distance. Thus a layer with one
wrong weight is still matched, and later layers are tested independently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.subject.values import Judgement, Level, SignedPermutation
from symcheck.statements.statement import Statement, state

ULPS = 4.0
"""Differences up to this number of float32 ulps count as rounding, for every dtype: the published level for weights."""
SPREAD = 0.5
"""Small absolute differences count as rounding only if they occur in more than this fraction of a layer's entries."""
OUTLIER = 5.0
"""A difference is an outlier if it exceeds the typical difference by more than this factor. The largest of 100,000
normally distributed values lies at 4.5."""
GAP = 2.5
"""An outlier is isolated if it exceeds the next smaller difference by this factor. Rounding errors of float32 sums are
small multiples of a unit, and some filters sum larger terms than others. Their distribution has a long tail, but no
such gap (127 of 320 layers of escnn had differences beyond `OUTLIER`; the largest step between them was by a factor of
1.8)."""
MANY = 16
"""Minimum number of differing entries for which coincidental agreements are counted. With fewer, the distribution of
differences is unknown; in a layer of four weights, a single wrong weight differs from its image in two places."""
SUMMED = 32.0
"""Differences up to this number of ulps of the largest weight are described as rounding of float32 sums: twice the
largest value measured, in 9x9 filters that escnn sums over its bases."""
LISTED = 8
"""Maximum number of rows with wrong entries that a judgement lists."""
LARGEST_ASSIGNMENT = 4096
"""Maximum number of unmatched rows for which an assignment is searched (its cost is cubic)."""
MOST_ALIKE = 64
"""Maximum number of unmatched rows that are compared entry by entry."""
CLOSE = 0.1
"""Relative distance up to which two rows count as images of each other; for unrelated rows it is about 1."""


@dataclass(frozen=True, eq=False)
class Match:
    """The best-fitting permutation of rows, and the rows that it fits.

    Attributes:
        permutation: row i of B goes to row index[i] of T with its sign.
        close: rows matched exactly or within 10 %, shape (rows of B,), bool.
    """

    permutation: SignedPermutation
    close: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    @property
    def found(self) -> bool:
        """Whether at least half of the rows have an image, so that later layers can be tested."""
        return bool(self.close.mean() >= 0.5) if len(self.close) else True


def match_rows(moved: Floats, rows: Floats, *, signs: bool = True) -> Match | None:
    """The signed permutation that best satisfies moved[index[i]] = sign[i] * rows[i].

    Args:
        moved: rows of [W R, b], shape (n, k).
        rows: rows of [W, b], all distinct, shape (n, k).
        signs: whether a row may map to the negative of a row.

    Returns:
        The match; None if too many rows remain to be searched.

    Example:
        >>> rows = np.array([[1.0, 2.0], [2.0, 1.0]])
        >>> match_rows(rows[:, ::-1], rows).permutation.index
        array([1, 0])

    Cost: linear in the entries for exact matches; cubic in the number of remaining rows.
    """
    n = len(rows)
    index = np.full(n, -1, dtype=np.int64)
    sign = np.ones(n, dtype=np.int64)
    # Adding 0.0 turns -0.0 into 0.0: they are equal but differ in their bytes.
    table = {row.tobytes(): i for i, row in enumerate(rows + 0.0)}
    left = _match_exactly(moved + 0.0, table, index, sign, 1, list(range(n)))
    # Rows that are equal bit by bit are all matched: nothing is left to assign.
    if not left:
        return Match(SignedPermutation(index, sign), index >= 0)
    if len(left) <= n // 2:
        # a single wrong weight: otherwise its unit may be closer to itself with the sign reversed
        left = _match_but_one(moved, rows, index, sign, left)
        if not left:
            return Match(SignedPermutation(index, sign), index >= 0)
        # most units are permuted without signs, so prefer matches without signs for the others
        unsigned = index.copy()
        close = _assign(moved, rows, unsigned, sign.copy(), np.array(left), signs=False)
        if close.all() or not signs:
            return Match(SignedPermutation(unsigned, sign), close)
    # 0.0 - x and not -x, so that zeros stay positive.
    if signs:
        left = _match_exactly(0.0 - moved, table, index, sign, -1, left)
    if len(left) > LARGEST_ASSIGNMENT:
        return None
    close = _assign(moved, rows, index, sign, np.array(left, dtype=np.int64), signs=signs)
    return Match(SignedPermutation(index, sign), close)


def _match_exactly(
    moved: Floats, table: dict[bytes, int], index: Ints, sign: Ints, s: int, todo: list[int]
) -> list[int]:
    left = []
    for place in todo:
        i = table.get(moved[place].tobytes())
        # Each row is used once; equal rows are assigned by distance.
        if i is None or index[i] >= 0:
            left.append(place)
        else:
            index[i], sign[i] = place, s
    return left


def _match_but_one(moved: Floats, rows: Floats, index: Ints, sign: Ints, todo: list[int]) -> list[int]:
    """Match rows that equal exactly one free row in all entries but one, of which at least two are not zero."""
    if len(todo) > MOST_ALIKE:
        return todo
    left = []
    for place in todo:
        free = np.flatnonzero(index < 0)
        equal = rows[free] == moved[place]
        alike = np.flatnonzero((equal.sum(axis=1) == equal.shape[1] - 1) & ((equal & (moved[place] != 0)).sum(1) >= 2))
        if len(alike) == 1:
            index[free[alike[0]]], sign[free[alike[0]]] = place, 1
        else:
            left.append(place)
    return left


def _assign(
    moved: Floats, rows: Floats, index: Ints, sign: Ints, left: Ints, *, signs: bool
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    from scipy.optimize import linear_sum_assignment

    free = np.flatnonzero(index < 0)
    a, b = rows[free], moved[left]
    plus = _distances(a, b)
    # An infinite cost excludes a sign if none is allowed.
    minus = _distances(a, -b) if signs else np.full_like(plus, np.inf)
    cost = np.minimum(plus, minus)
    i, j = linear_sum_assignment(cost)
    index[free[i]] = left[j]
    sign[free[i]] = np.where(minus[i, j] < plus[i, j], -1, 1)
    # Exact matches are close; assigned ones are close if their distance is small relative to the rows.
    close = np.ones(len(index), dtype=bool)
    size = np.maximum(np.linalg.norm(a, axis=1)[i], np.linalg.norm(b, axis=1)[j])
    close[free[i]] = cost[i, j] <= CLOSE * size
    return close


def _distances(a: Floats, b: Floats) -> Floats:
    """Euclidean distances by the expanded square; the assignment needs only orders of magnitude."""
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a.b; rounding may make it negative.
    square = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * (a @ b.T)
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def judge(left: Floats, right: Floats, noise: float | Floats = 0.0) -> Judgement:
    """Compare two weight arrays that should be equal, by the published levels.

    Args:
        left: the measured array, shape (rows, columns).
        right: the required array, of the same shape.
        noise: float64 rounding error in `left` or `right`; smaller differences count as exact.

    Returns:
        exact; rounded (each entry within 4 float32 ulps of the larger weight, or all within 4 ulps of the largest
        weight, spread over most entries, without outliers); otherwise failed.

    Example:
        >>> judge(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0 + 2e-9]])).level
        'rounded'
        >>> judge(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0 + 2e-6]])).level
        'failed'
    """
    if left.size == 0:
        return Judgement("exact", 0.0, 0.0, 0.0, (0, 0), (0.0, 0.0), (), ())
    difference = np.abs(left - right)
    larger = np.maximum(np.abs(left), np.abs(right))
    beyond = ~(difference <= noise)  # NaN fails
    pattern: Statement | None = None
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(difference), np.inf, difference))), difference.shape)
    residual, largest = float(difference[worst]), float(larger.max())
    # In units of the larger of the two weights, entry by entry.
    ulps = difference / ulp32(larger)
    relative = residual / largest if largest > 0 else 0.0
    if not beyond.any() and np.isfinite(residual):
        level: Level = "exact"
    elif (ulps[beyond] <= ULPS).all():
        level = "rounded"
    # Too large entry by entry, but possibly rounding of larger sums: the distribution of differences decides.
    elif np.isfinite(residual) and np.isfinite(largest) and largest > 0:
        spread = _describe_spread(difference, ulps, beyond, larger)
        level, pattern = ("rounded", None) if spread.is_rounding else ("failed", spread.pattern)
    else:
        level = "failed"
    place = (int(worst[0]), int(worst[1]) if len(worst) > 1 else 0)
    off = beyond & ~(ulps <= ULPS)
    wrong = tuple(int(row) for row in np.flatnonzero(off.any(axis=1))[:LISTED])
    columns = tuple(int(column) for column in np.flatnonzero(off.any(axis=0))[:LISTED])
    values = (float(right[worst]), float(left[worst]))
    return Judgement(level, residual, float(ulps.max()), relative, place, values, wrong, columns, pattern)


@dataclass(frozen=True)
class _Spread:
    """The distribution of differences over a layer.

    Attributes:
        share: fraction of its weights that differ.
        units: the largest difference, in float32 units in the last place of the largest weight.
        isolated: whether there are outliers.
    """

    share: float
    units: float
    isolated: bool

    @property
    def is_rounding(self) -> bool:
        """The published level: small relative to the largest weight, over most of the layer, and without outliers."""
        return self.units <= ULPS and self.share > SPREAD and not self.isolated

    @property
    def pattern(self) -> Statement | None:
        """The pattern of rounded sums beyond that level; None for anything else."""
        if self.isolated or self.units > SUMMED or not self.share > SPREAD:
            return None
        return state("SYM134", ulps=self.units, limit=ULPS)


def _describe_spread(
    difference: Floats,
    ulps: Floats,
    beyond: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    larger: Floats,
) -> _Spread:
    """The distribution of differences. Zeros added for grouped convolutions are not counted.

    With float32 weights, rounding leaves some differences at zero by chance. Positive and negative differences are
    equally likely, and small ones more likely than large ones. So if k differences are at most one unit (of sums as
    large as the largest weight), at least k / 2 more are zero, and these count as rounded too. This is applied to
    `MANY` differences or more.
    """
    weights = max(1, int(np.count_nonzero(larger)))
    unit = float(ulp32(larger.max()))
    affected = float(beyond.sum())
    # Float32 sums can agree by chance, when a difference rounds to zero: counted as half of those that differ by one
    # unit.
    if affected >= MANY and bool((larger == larger.astype(np.float32)).all()):
        affected += 0.5 * float((beyond & (difference <= unit)).sum())
    typical = float(np.sqrt((difference[beyond] ** 2).sum() / weights))
    usual = max(ULPS / OUTLIER, float(np.median(ulps[beyond])))
    # rounding is relative to each weight, or absolute (for a basis computed in float32); a wrong weight is an outlier
    # by both measures
    suspected = np.sort(difference[(difference > OUTLIER * typical) & (ulps > OUTLIER * usual)])
    # Outliers must be separated from all other differences by a gap.
    others = difference[difference < suspected[0]].max(initial=0.0) if len(suspected) else 0.0
    ladder = np.concatenate([[others], suspected])
    isolated = bool((ladder[1:] > GAP * ladder[:-1]).any())
    return _Spread(affected / weights, float(difference.max()) / unit, isolated)


def ulp32(values: Floats) -> Floats:
    """The float32 unit in the last place at each value, as float64."""
    with np.errstate(over="ignore"):
        return np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
