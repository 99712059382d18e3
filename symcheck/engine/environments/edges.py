"""Looking for thresholds on purpose: the states from which an episode just ends, and just does not.

Where a box is the set of states, one coordinate is moved between a state whose step terminates and one whose step does
not, and the interval is halved until its ends are neighbouring floats. A comparison that is `>=` on one side and `>`
on the other differs exactly there and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.engine.environments.coordinates import Vector
from symcheck.engine.environments.pairs import Case, Comparison, Measurement, Pairs
from symcheck.engine.environments.placement import Situation
from symcheck.symmetry.bound import BoundSymmetry
from symcheck.symmetry.entries import AffineEntry, IdentityEntry

_SEARCHES = 48
_HALVINGS = 80  # 52 bits of mantissa, and the exponents between 1 and 1e-8
_FEWEST_TIES = 8  # all on one side by chance: 2 in 2^8
_SAME = 4 * float(np.finfo(np.float64).eps)  # values at one threshold are equal but for the last bits


def threshold_cases(pairs: Pairs, measured: Measurement, rng: np.random.Generator) -> list[Case]:
    """Cases on both sides of termination thresholds, as close as floats allow.

    Args:
        pairs: makes cases and steps.
        measured: steps already taken; those that terminated show where to look.
        rng: picks among them.

    Returns:
        Two cases a threshold, with action and generator of the step that showed it; empty where no box of states is
        known, or nothing terminated.
    """
    ended = np.flatnonzero(measured.left.terminated)
    going = np.flatnonzero(~measured.left.terminated)
    if not pairs.placement.access.box or not len(ended) or not len(going):
        return []
    cases: list[Case] = []
    for _ in range(_SEARCHES):
        inside = measured.cases[int(rng.choice(going))]
        beyond = measured.cases[int(rng.choice(ended))]
        for state in _bisected(pairs, inside, beyond, rng):
            situation = pairs.placement.at(state, "edge")
            if situation is not None:
                cases.append(pairs.case(inside.word, situation, inside.action))
    return cases


def _bisected(pairs: Pairs, inside: Case, beyond: Case, rng: np.random.Generator) -> list[Vector]:
    """The two neighbouring states between which the step from `inside` begins to terminate, along one coordinate."""
    start = np.array(inside.situation.state, dtype=np.float64)
    goal = np.array(beyond.situation.state, dtype=np.float64)
    for j in rng.permutation(start.size):
        moved = start.copy()
        moved[j] = goal[j]
        if pairs.placement.access.ended(moved) or not pairs.stepper.outcome(moved, inside.action).terminated:
            continue
        low, high = start[j], goal[j]
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            if middle in (low, high):
                break
            moved[j] = middle
            if pairs.stepper.outcome(moved, inside.action).terminated:
                high = middle
            else:
                low = middle
        return [_with(start, j, low), _with(start, j, high)]
    return []


def _with(state: Vector, j: int, value: float) -> Vector:
    changed = state.copy()
    changed[j] = value
    return changed


@dataclass(frozen=True)
class Tie:
    """A threshold that is closed on one side and open on the other.

    Attributes:
        row: a case that shows it.
        coordinate: index of the coordinate of the next state that sits at the threshold.
        threshold: its absolute value.
        closed_above: whether +threshold terminates and -threshold does not, rather than the other way round.
    """

    row: int
    coordinate: int
    threshold: float
    closed_above: bool


def one_sided_tie(bound: BoundSymmetry, transition: Comparison, termination: Comparison, rows: list[int]) -> Tie | None:
    """Whether mismatches that a nudge can move are nevertheless a fault: exact ties, always on the same side.

    Judged only where rounding is ruled out: the map is a signed permutation, so that images are exact, and the two
    next states are exact images of each other, so that the same number was compared with its threshold. Rounding
    inside the comparison would then fall on either side; here all fall on one.

    Args:
        bound: the symmetry.
        transition: next states of both sides, all cases.
        termination: whether both sides ended, all cases.
        rows: cases whose termination differs and that a nudge moves.

    Returns:
        The tie, or None where rounding may explain the mismatches.
    """
    if not _exact(bound):
        return None
    residual = transition.residual()
    exact = [row for row in rows if not residual[row].any()]
    if len(exact) < _FEWEST_TIES:
        return None
    for j in range(transition.coordinates.dim):
        values = transition.actual[exact, j]
        threshold = float(np.median(np.abs(values)))
        at = np.abs(np.abs(values) - threshold) <= _SAME * threshold
        tied = [row for row, there in zip(exact, at, strict=True) if there and threshold > 0]
        ended_image = termination.actual[tied, 0] > termination.expected[tied, 0]
        votes = (transition.actual[tied, j] > 0) == ended_image
        if len(tied) >= _FEWEST_TIES and (votes.all() or not votes.any()):
            return Tie(tied[0], j, threshold, closed_above=bool(votes.all()))
    return None


def _exact(bound: BoundSymmetry) -> bool:
    entries: list[Any] = [*(bound.symmetry.observation), *(bound.symmetry.state or ())]
    return all(
        isinstance(entry, IdentityEntry) or (isinstance(entry, AffineEntry) and entry.is_signed_permutation)
        for entry in entries
    )


def outside(situation: Situation, pairs: Pairs) -> str:
    """Where the observation of a situation leaves the bounds of its space, in words; "" where it does not.

    Args:
        situation: usually an image.
        pairs: knows the space.

    Returns:
        For instance "observation[0] = -1.55 is below -1.2".
    """
    coordinates = pairs.stepper.codec.coordinates
    flat = pairs.stepper.codec.flatten(situation.obs)
    slack = 1e-5 * np.maximum(1.0, np.abs(flat))  # bounds are declared in float32: 1e-5 is 80 of its units
    for j in range(flat.size):
        if flat[j] < coordinates.low[j] - slack[j]:
            return f"{coordinates.names[j]} = {flat[j]:.6g} is below {coordinates.low[j]:.6g}"
        if flat[j] > coordinates.high[j] + slack[j]:
            return f"{coordinates.names[j]} = {flat[j]:.6g} is above {coordinates.high[j]:.6g}"
    return ""
