"""Effect sizes: the difference behind a rejecting test, for its most significant feature, in plain units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.features import Feature, Region
from symcheck.spaces.coordinates import finite

_NAMES = {
    "mean": "mean",
    "spread": "standard deviation",
    "skew": "skewness",
    "tails": "kurtosis",
    "product": "correlation",
}
_PLURALS = {"skewness": "skewnesses", "kurtosis": "kurtoses"}


@dataclass(frozen=True)
class Effect:
    """One statistic of one coordinate, measured on both sides.

    Attributes:
        statistic: its name, for instance "standard deviation".
        coordinate: the coordinate's name.
        other: the second coordinate of a correlation.
        region: the pairs it was computed on, for instance "under action 1"; "" for all pairs.
        expected: its value on the mapped side.
        actual: its value on the other side.
    """

    statistic: str
    coordinate: str
    other: str
    region: str
    expected: float
    actual: float

    @property
    def place(self) -> str:
        """The coordinate, or both coordinates of a correlation."""
        return f"{self.coordinate} and {self.other}" if self.other else self.coordinate

    @property
    def unit(self) -> str:
        """What the difference of both sides is a difference of, for instance "difference of standard deviations"."""
        return f"difference of {_PLURALS.get(self.statistic, f'{self.statistic}s')}"

    @property
    def digits(self) -> int:
        """The number of significant digits at which both sides differ in print; at least three."""
        apart = (k for k in range(3, 17) if f"{self.expected:.{k}g}" != f"{self.actual:.{k}g}")
        return next(apart, 3)


def measure_effect(
    feature: Feature,
    names: Sequence[str],
    sides: tuple[Floats, Floats],
    centred: tuple[Floats, Floats],
    weights: Sequence[tuple[Region, Floats]],
) -> Effect:
    """The effect size of a feature, inside or outside its region, whichever is larger.

    Args:
        feature: the most significant feature.
        names: the names of the coordinates.
        sides: expected and actual values, shape (n, dim), for means.
        centred: the same after regression on (s, a), for all other statistics.
        weights: the weights of the pairs, shape (n,), by region; positive inside it.

    Returns:
        The statistic on both sides.

    Example:
        >>> x = np.array([[0.0], [2.0], [0.0], [2.0]])
        >>> measure_effect(Feature("spread of x", 0, "spread"), ["x"], (x, 2 * x), (x, 2 * x), []).actual
        2.0
    """
    values = sides if feature.moment == "mean" else centred
    rows: list[tuple[str, Bools]] = [("", np.ones(len(sides[0]), dtype=np.bool_))]
    if feature.region >= 0:
        region, weight = weights[feature.region]
        rows = [(region.inside, weight > 0), (region.outside, weight <= 0)]
    measured = []
    for text, kept in rows:
        expected, actual = (_statistic(feature, finite(side[kept])) for side in values)
        measured.append((abs(actual - expected), text, expected, actual))
    _, text, expected, actual = max(measured, key=lambda each: each[0])
    other = names[feature.other] if feature.other >= 0 else ""
    return Effect(_NAMES[feature.moment], names[feature.coordinate], other, text, expected, actual)


def _statistic(feature: Feature, values: Floats) -> float:
    column = values[:, feature.coordinate]
    if feature.moment == "mean":
        return float(column.mean())
    centred, spread = column - column.mean(), float(column.std())
    if feature.moment == "spread" or spread == 0:
        return spread
    if feature.moment == "product":
        other = values[:, feature.other]
        return float(np.mean(centred * (other - other.mean())) / (spread * max(float(other.std()), 1e-300)))
    return float(np.mean((centred / spread) ** (3 if feature.moment == "skew" else 4)))
