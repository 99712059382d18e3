"""The value gap of a broken symmetry with random dynamics: estimates of epsilon from sampled distributions.

Pairs of single outcomes do not determine the distance of two distributions at one (s, a). Therefore some (s, a) are
drawn from the pairs of the run and both sides are stepped a few dozen times at each. At those that differ most, many
fresh outcomes are drawn, so that the selection does not bias the estimate. There

* epsilon_R is the difference of mean rewards;
* epsilon_T is the total variation of (next state, termination) if there are few distinct outcomes, and otherwise their
  Wasserstein-1 distance by an optimal matching of the samples, with coordinates in units of their standard deviation;
  terminations are then compared separately.

Distances between samples are biased upward, because two samples of one distribution also differ. This bias is measured
on the same outcomes and reported next to the estimate; it is not subtracted, because the two do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.columns import compared_columns, on_columns
from symcheck.engine.environments.cases.pairs import Case
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods.value_gap import (
    TOTAL_VARIATION,
    WASSERSTEIN,
    ComparedPairs,
    ValueGap,
    cost_of,
)
from symcheck.engine.equations import Part
from symcheck.engine.statistics import largest_fraction
from symcheck.spaces.coordinates import finite

_LOOKED_AT = 32  # number of (s, a)
_FIRST, _AGAIN = 32, 400  # outcomes per side: for the selection, and for the estimate
_DIGITS = 9  # number of decimals to which outcomes are compared: images of equal outcomes differ by rounding


@dataclass(frozen=True)
class _Estimate:
    """An estimated distance of two distributions, and the distance of two samples of a single one."""

    value: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True)
class _Side:
    """Outcomes of one side at one (s, a); the left side is mapped by the claim.

    Attributes:
        rewards: shape (n,).
        ends: shape (n,), 0 or 1.
        states: next states in the compared form, shape (n, dim).
    """

    rewards: Floats
    ends: Floats
    states: Floats


_Distance = Callable[[_Side, _Side], float]


def distribution_gap(
    bench: Workbench, compared: ComparedPairs, repeating: frozenset[Part], failed: set[str]
) -> ValueGap | None:
    """The estimate from fresh outcomes.

    Args:
        bench: the environment.
        compared: the pairs of the run.
        repeating: the parts whose outcomes are not random.
        failed: the violated parts; the others contribute nothing.

    Returns:
        The estimate, at most the span of returns possible with the observed rewards; None if the time is up.
    """
    measured, rng = compared.measured, bench.rng("gap of laws")
    if not bench.in_time():
        return None
    cases = [measured.cases[int(i)] for i in rng.integers(len(measured.cases), size=_LOOKED_AT)]
    sides, columns = _sample(bench, cases, _FIRST)
    every = [side.states for pair in sides for side in pair]
    discrete = all(len(np.unique(states, axis=0)) <= len(states) // 2 for states in every)
    spread = finite(np.concatenate(every)).std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)

    def estimate(distance: _Distance) -> _Estimate:
        """The largest distance, estimated on fresh outcomes."""
        worst = cases[int(np.argmax([distance(*pair) for pair in sides]))]
        first, again = _sample(bench, [worst, worst], _AGAIN, columns)[0]
        value = (distance(*first) + distance(*again)) / 2
        # Two samples of the same side differ only by sampling error.
        return _Estimate(value, (distance(first[0], again[0]) + distance(first[1], again[1])) / 2)

    reward = transition = ends = _Estimate()
    if "reward" in failed:
        reward = _Estimate(compared.largest("reward", 1.0)) if "reward" in repeating else estimate(_of_rewards)
    if "termination" in failed:
        ends = _Estimate(1.0) if "termination" in repeating else estimate(_of_ends)
    if "transition" in failed:
        transition = estimate(_of_few if discrete else lambda left, right: _match(left, right, unit))
    return _bound_values(compared, discrete, reward, transition, ends)


def _bound_values(
    compared: ComparedPairs, discrete: bool, reward: _Estimate, transition: _Estimate, ends: _Estimate
) -> ValueGap:
    span, discount = compared.span, compared.discount
    distance, epsilon, noise = TOTAL_VARIATION, max(transition.value, ends.value), max(transition.noise, ends.noise)
    worth = epsilon * span
    if transition.value > 0 and not discrete:
        lost = cost_of(compared, transition.value, seeded=True)
        if math.isfinite(lost):
            worth = lost + ends.value * span
            distance, epsilon, noise = WASSERSTEIN, transition.value, transition.noise
        else:  # the cost of a displacement is unknown: use the largest one that rewards allow
            worth, epsilon, noise = span, 1.0, 0.0
    value = min((reward.value + discount * worth) / (1 - discount), span)
    exceeding = largest_fraction(0, _LOOKED_AT, compared.alpha)
    confidence, noises = 1 - compared.alpha, (reward.noise, noise)
    return ValueGap(value, reward.value, epsilon, distance, discount, confidence, exceeding, noise=noises)


def _sample(
    bench: Workbench, cases: list[Case], count: int, columns: list[int] | None = None
) -> tuple[list[tuple[_Side, _Side]], list[int]]:
    """Both sides of each (s, a), each stepped the given number of times, in common coordinates."""
    measured = bench.pairs.measure([case for case in cases for _ in range(count)])
    comparison = bench.pairs.comparison("transition", measured)
    columns = compared_columns(bench, comparison) if columns is None else columns
    states = on_columns(comparison, columns)
    stacks = [
        np.split(numbers, len(cases))
        for steps, side in ((measured.left, states.expected), (measured.right, states.actual))
        for numbers in (finite(steps.rewards), steps.terminated.astype(float), finite(side))
    ]
    return [(_Side(*each[:3]), _Side(*each[3:])) for each in zip(*stacks, strict=True)], columns


def _of_rewards(left: _Side, right: _Side) -> float:
    """Difference of mean rewards."""
    return abs(float(left.rewards.mean() - right.rewards.mean()))


def _of_ends(left: _Side, right: _Side) -> float:
    """Total variation of terminating versus continuing."""
    return abs(float(left.ends.mean() - right.ends.mean()))


def _of_few(left: _Side, right: _Side) -> float:
    """Total variation of (next state, termination)."""
    rows = np.concatenate([np.column_stack([side.states, side.ends]) for side in (left, right)])
    kind = np.unique(np.round(rows, _DIGITS), axis=0, return_inverse=True)[1].reshape(-1)
    split = len(left.ends)
    shares = [np.bincount(some, minlength=kind.max() + 1) / len(some) for some in (kind[:split], kind[split:])]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _match(left: _Side, right: _Side, unit: Floats) -> float:
    """Wasserstein-1 distance of next states, coordinates in `unit`."""
    from scipy.optimize import linear_sum_assignment  # loads scipy
    from scipy.spatial.distance import cdist

    costs = cdist(left.states / unit, right.states / unit)
    return float(costs[linear_sum_assignment(costs)].mean())
