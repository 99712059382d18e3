"""Shrinks a counterexample: fewest non-zero numbers first, then the simplest numbers.

Every candidate is stepped. Single coordinates of a state are edited only if every point of a box is a state. Otherwise
an edit may produce a vector that is not a state, so the simplest violating case among those visited is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pairs import Case, Pairs
from symcheck.spaces.coordinates import finite
from symcheck.symmetry.exits import find_excess

_MOST_TRIALS = 400  # maximum number of pairs; each takes two steps of the environment
_SIMPLE = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.1, -0.1)


def simplest(pairs: Pairs, cases: list[Case]) -> Case:
    """The case whose observation has the fewest non-zero and then the smallest numbers.

    Args:
        pairs: provides the spaces.
        cases: at least one.

    Returns:
        One of them.
    """

    def size(case: Case) -> tuple[int, float, float]:
        flat = finite(pairs.stepper.codec.flatten(case.situation.obs))
        action = pairs.stepper.action_codec.flatten(case.action)
        return int((flat != 0).sum()), float(np.abs(flat).sum()), float(np.abs(action).sum())

    return min(cases, key=size)


def minimise(pairs: Pairs, case: Case, fails: Callable[[Case], bool]) -> Case:
    """Shrink a failing case; the result still fails.

    Args:
        pairs: builds and steps cases.
        case: a case for which `fails` returns True.
        fails: whether a candidate violates the property.

    Returns:
        The smallest failing case found in a fixed number of trials.
    """
    trials = 0
    improved = True
    while improved and trials < _MOST_TRIALS:
        improved = False
        for candidate in _candidates(pairs, case):
            trials += 1
            if trials >= _MOST_TRIALS:
                break
            if fails(candidate):
                case, improved = candidate, True
                break  # the candidates belong to the old case: start again from the simpler one
    return case


def _candidates(pairs: Pairs, case: Case) -> Iterator[Case]:
    # Actions first: they can be simplified even if states cannot.
    for action in _simpler_actions(pairs, case.action):
        yield from pairs.cases([case.word], [case.situation], [action])
    access = pairs.placement.access
    if not access.box:
        return
    for state in _simpler_vectors(np.array(case.situation.state, dtype=np.float64)):
        situation = None if access.ended(state) else pairs.placement.at(state, case.situation.origin)
        if situation is not None and not find_excess(situation.obs, pairs.stepper.codec):
            yield from pairs.cases([case.word], [situation], [case.action])


def _simpler_actions(pairs: Pairs, action: Any) -> Iterator[Any]:
    if isinstance(action, np.ndarray) and action.dtype.kind == "f":
        for vector in _simpler_vectors(action.astype(np.float64)):
            simpler = vector.astype(action.dtype)
            if pairs.bound.action_space.contains(simpler):
                yield simpler
    elif isinstance(action, int | np.integer):
        for value in range(int(action)):
            if pairs.bound.action_space.contains(value):
                yield type(action)(value)


def _simpler_vectors(vector: Floats) -> Iterator[Floats]:
    """Simpler variants of a vector: a coordinate set to zero or a simple number, or with fewer decimals."""
    flat = vector.reshape(-1)
    for j in np.flatnonzero(flat):
        yield _replace(vector, j, 0.0)
    for j in np.flatnonzero(flat):
        for value in _SIMPLE:
            if _complexity(value) < _complexity(flat[j]):
                yield _replace(vector, j, value)
        for decimals in (0, 1, 2, 3, 4):
            rounded = float(np.round(flat[j], decimals))
            # Zero was already tried for all coordinates.
            if rounded != flat[j] and rounded != 0 and _complexity(rounded) < _complexity(flat[j]):
                yield _replace(vector, j, rounded)


def _replace(vector: Floats, j: Any, value: float) -> Floats:
    changed = vector.copy()
    changed.reshape(-1)[j] = value
    return changed


def _complexity(value: float) -> tuple[int, float]:
    """Sort key: numbers with fewer decimals first, then numbers near 1, then positive ones."""
    text = repr(float(value))
    return len(text.replace("-", "")), abs(abs(value) - 1) + 0.25 * (value < 0)
