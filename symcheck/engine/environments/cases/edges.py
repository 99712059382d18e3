"""Search for termination thresholds: neighbouring states of which one step terminates and the other does not.

If every point of a box is a state, one coordinate is bisected between a state whose step terminates and one whose step
does not, until the two ends are neighbouring floats. A comparison that is `>=` on one side and `>` on the other differs
exactly there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement, Pairs
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.envs.models.model import BatchModel
from symcheck.symmetry.exact_images import images_are_exact

_SEARCHES, _AT_ONCE = 14, 7  # number of thresholds searched for along each coordinate, and number per batch
_TRIES = 56  # states from which the search starts
_MOST_COORDINATES, _MOST_BETWEEN = 12, 6
_BEYOND = 0.1  # relative to the range of visited states: a threshold lies at its rim or slightly beyond
_HALVINGS = 80  # bisection steps: 52 bits of mantissa, and the exponents between 1 and 1e-8
_FEWEST_TIES = 8  # ties that must all lie on one side; by chance 2 in 2^8
_SAME = 4 * float(np.finfo(np.float64).eps)  # values at the same threshold are equal up to the last bits


def threshold_cases(
    pairs: Pairs,
    measured: Measurement,
    rng: np.random.Generator,
    in_time: Callable[[], bool] = lambda: True,
    *,
    between: bool = False,
    model: BatchModel | None = None,
) -> list[Case]:
    """Cases on both sides of termination thresholds, as close as floats allow.

    Args:
        pairs: makes cases and steps.
        measured: steps taken so far; the search goes beyond the states from which none of them terminated.
        rng: selects among them.
        in_time: whether the time budget allows another search.
        between: whether to search at numbers between those of visited states, although no box of states is known.
        model: the environment's batched form, for a faster search; the environment steps both ends of every threshold
            that it finds, and if one of them behaves otherwise, the environment itself is searched.

    Returns:
        Two cases per threshold, with the action and generator of the step that revealed it. Empty if no box of states
        is known (`thresholds_may_hide` says so) or if nothing terminated.
    """
    going = np.flatnonzero(~measured.left.terminated)
    vectors = _vectors(measured) if between else pairs.placement.access.box
    if not vectors or measured.left.terminated.sum() == 0 or not len(going):
        return []
    states = np.array([case.situation.state for case in measured.cases], dtype=np.float64)
    low, high = states.min(axis=0), states.max(axis=0)
    reach = (0.0 if between else _BEYOND) * (high - low)
    edges: list[tuple[Case, Situation]] = []
    for j in rng.permutation(states.shape[1])[: _MOST_BETWEEN if between else _MOST_COORDINATES]:
        inside = [measured.cases[int(row)] for row in rng.choice(going, size=_TRIES)]
        upward = rng.random(_TRIES) < 0.5
        goals = np.where(upward, high[j] + reach[j], low[j] - reach[j])
        made, enough = pairs.placement.between if between else pairs.placement.at, len(edges) + 2 * _SEARCHES
        # From half of the states, the threshold is reached only where the episode has already ended.
        for case, state in _bisect(pairs, inside, int(j), goals, _SEARCHES if between else 2 * _SEARCHES, model):
            situation = None if pairs.placement.access.ended(state) else made(state, "edge")
            if situation is not None:
                edges.append((case, situation))
            if len(edges) >= enough:
                break
        if not in_time():
            break
    words, actions = [case.word for case, _ in edges], [case.action for case, _ in edges]
    return pairs.cases(words, [situation for _, situation in edges], actions)


def _vectors(measured: Measurement) -> bool:
    """Whether states are vectors of float64 numbers."""
    state = measured.cases[0].situation.state
    return type(state) is np.ndarray and state.ndim == 1 and state.dtype == np.float64


def thresholds_may_hide(pairs: Pairs, state: Any) -> bool:
    """Whether thresholds near a state may exist but cannot be searched for, because no box of states is known."""
    whole = isinstance(state, int | np.integer) or (isinstance(state, np.ndarray) and state.dtype.kind in "biu")
    return not (pairs.placement.access.box or whole)


Ends = Callable[[npt.NDArray[np.intp], Floats], npt.NDArray[np.bool_]]


def _bisect(
    pairs: Pairs, inside: list[Case], j: int, goals: Floats, most: int, model: BatchModel | None
) -> Iterator[tuple[Case, Floats]]:
    """Pairs of neighbouring states between which steps begin to terminate along coordinate j, with their cases.

    The pairs are found a few at a time, so a caller can stop early.
    """
    states = np.array([case.situation.state for case in inside], dtype=np.float64)
    actions = [case.action for case in inside]

    def ends(rows: npt.NDArray[np.intp], values: Floats) -> npt.NDArray[np.bool_]:
        changed = states[rows]
        changed[:, j] = values
        return pairs.stepper.outcomes(list(changed), [actions[row] for row in rows]).terminated

    def ends_in_model(rows: npt.NDArray[np.intp], values: Floats) -> npt.NDArray[np.bool_]:
        if model is None:
            return ends(rows, values)
        changed = states[rows]
        changed[:, j] = values
        return model.step(changed, np.stack([actions[row] for row in rows])).terminated

    every = np.flatnonzero(ends(np.arange(len(inside)), goals))[:most]
    for ending in (every[first : first + _AT_ONCE] for first in range(0, len(every), _AT_ONCE)):
        low, high = _thresholds(ends_in_model, ending, states[ending, j], goals[ending])
        # A threshold of the environment may be elsewhere: the batched form agrees on sampled steps only.
        if model is not None and (ends(ending, low).any() or not ends(ending, high).all()):
            low, high = _thresholds(ends, ending, states[ending, j], goals[ending])
        at = np.repeat(states[ending], 2, axis=0)
        at[:, j] = np.stack([low, high], axis=1).reshape(-1)
        yield from zip((inside[row] for row in np.repeat(ending, 2)), at, strict=True)


def _thresholds(ends: Ends, rows: npt.NDArray[np.intp], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Two neighbouring values, by bisection: steps at the lower one continue, steps at the higher one terminate."""
    low, high = low.copy(), high.copy()
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        between = np.flatnonzero((middle != low) & (middle != high))
        if not len(between):
            break
        over = ends(rows[between], middle[between])
        low[between] = np.where(over, low[between], middle[between])
        high[between] = np.where(over, middle[between], high[between])
    return low, high


@dataclass(frozen=True)
class Tie:
    """A threshold that is inclusive on one side and exclusive on the other.

    Attributes:
        row: a case that demonstrates it.
        coordinate: index of the coordinate of the next state that lies at the threshold.
        threshold: its absolute value.
        closed_above: True if +threshold terminates and -threshold does not; False in the opposite case.
    """

    row: int
    coordinate: int
    threshold: float
    closed_above: bool


def one_sided_tie(
    pairs: Pairs, word: Word, transition: Comparison, termination: Comparison, rows: list[int]
) -> Tie | None:
    """Detect a one-sided threshold among mismatches that a nudge can remove: exact ties, always on the same side.

    A tie counts only if rounding is ruled out: the map is a signed permutation, so images are exact, and the two next
    states are exact images of each other, so both sides compared the same number with the threshold. Rounding inside
    the comparison would favour either side at random; here all ties fall on one side.

    Args:
        pairs: provides the symmetry.
        word: the element under test.
        transition: next states of both sides, all cases.
        termination: whether both sides ended, all cases.
        rows: cases whose termination differs and that a nudge changes.

    Returns:
        The tie, or None if rounding may explain the mismatches.
    """
    if not images_are_exact(pairs.bound, word, lambda: pairs.stepper.first_obs):
        return None
    residual = transition.residual()
    exact = [row for row in rows if not residual[row].any()]
    if len(exact) < _FEWEST_TIES:
        return None
    for j in range(transition.coordinates.dim):
        values = transition.actual[exact, j]
        threshold = float(np.median(np.abs(values)))
        at = np.abs(np.abs(values) - threshold) <= _SAME * threshold
        tied = [row for row, is_tied in zip(exact, at, strict=True) if is_tied and threshold > 0]
        ended_image = termination.actual[tied, 0] > termination.expected[tied, 0]
        votes = (transition.actual[tied, j] > 0) == ended_image
        if len(tied) >= _FEWEST_TIES and (votes.all() or not votes.any()):
            return Tie(tied[0], j, threshold, closed_above=bool(votes.all()))
    return None
