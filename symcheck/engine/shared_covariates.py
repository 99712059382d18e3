"""The swap test for pairs with shared covariates, such as the state and action from which both members were stepped.

The part that the covariates explain is removed by one regression, fitted to the mean of both members, which swaps do
not change. If the members differ with opposite signs in two regions, means cancel. Therefore every covariate also
divides the pairs into two sides, which are tested separately.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.effects import measure_effect
from symcheck.engine.features import Region
from symcheck.engine.regression import Fit, polynomial
from symcheck.engine.scales import FLOAT64_EPSILON, bulk
from symcheck.engine.statistics import SwapTest, swap_test

_TIE = 64  # in rounding units: outcomes that differ by a few units due to rounding count as equal
MOST_SIDES = 128
"""Number of coordinates that divide the pairs, at most; single (s, a) come on top."""
_FEWEST_ON_A_SIDE = 20


def swap_test_given(
    expected: Floats,
    actual: Floats,
    names: tuple[str, ...],
    epsilon: Floats,
    *,
    covariates: Floats,
    weights: list[tuple[Region, Floats]],
    level: float,
    rng: np.random.Generator,
    sampled: bool = True,
) -> SwapTest:
    """Test whether the members of pairs have the same distribution, given their shared covariates.

    Args:
        expected: shape (n, dim), one member of each pair.
        actual: shape (n, dim), the other.
        names: the names of the coordinates.
        epsilon: rounding units, shape (dim,); 0 for integers.
        covariates: shared by both members, shape (n, columns).
        weights: the weights of the pairs; see `side_weights`.
        level: the level of the test.
        rng: draws the swaps.
        sampled: whether swaps are drawn; see `swap_test`.

    Returns:
        The test, with the effect size if a named feature differs.
    """
    half = len(expected)
    known = bulk(np.concatenate([expected, actual]), epsilon)
    design = polynomial(covariates)
    common = Fit(design).of((known.filled[:half] + known.filled[half:]) / 2)
    centred = np.split(known.without(np.concatenate([common, common])), 2)
    # Subtracting the common part rounds too, by units of that part.
    rounded = FLOAT64_EPSILON * np.abs(common).max(axis=0, initial=0.0)
    tie = known.tie(np.maximum(epsilon, FLOAT64_EPSILON), _TIE) + _TIE * rounded
    # 1 - x in float32 has one-sided rounding: among residuals of this density, ranks would distinguish the members.
    centred = _join_ties(centred[0], centred[1], np.maximum(tie[:half], tie[half:]))
    test = swap_test(
        centred[0],
        centred[1],
        names,
        level=level,
        rng=rng,
        tie=tie,
        weights=weights,
        design=design,
        sampled=sampled,
    )
    if test.named is None:
        return test
    effect = measure_effect(test.named, names, (expected, actual), (centred[0], centred[1]), weights)
    return dataclasses.replace(test, effect=effect)


def _join_ties(first: Floats, second: Floats, tie: Floats) -> list[Floats]:
    """Replace both members of pairs that differ only by rounding with their mean, which swaps do not change."""
    with np.errstate(invalid="ignore"):
        alike = np.abs(first - second) <= tie
        mean = first + (second - first) / 2
    return [np.where(alike, mean, side) for side in (first, second)]


def side_weights(sides: Floats, names: list[str]) -> list[tuple[Region, Floats]]:
    """High against low values of each covariate, centred; the members may differ with opposite signs in the two."""
    weights = []
    for name, column in zip(names, sides.T, strict=True):
        middle = float(np.median(column))
        # Indicators have their median at one of two values: split them in the middle.
        cut = middle if 0.2 < float((column > middle).mean()) < 0.8 else float(column.min() + column.max()) / 2
        high = (column > cut).astype(np.float64)
        if _FEWEST_ON_A_SIDE <= high.sum() <= len(high) - _FEWEST_ON_A_SIDE:
            weights.append((region_of(name), high - high.mean()))
    return weights


def region_of(name: str) -> Region:
    """The region in which a covariate is high; for the indicator of an action, the steps with that action."""
    if name.startswith("action "):  # an indicator of one action
        return Region(f"under {name} compared with other actions", f"under {name}", "under other actions")
    if "=" in name:
        return Region(f"where {name}", f"where {name}")
    return Region(f"where {name} is high compared with low", f"where {name} is high", f"where {name} is low")
