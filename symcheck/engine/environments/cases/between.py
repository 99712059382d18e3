"""Thresholds where no box of states is known: sought at numbers between those of visited states, and only reported.

A state whose coordinate lies between the values that visited states have need not be a state, so nothing that happens
there refutes a claim. One thing is said nevertheless: where ending begins at the same number on both sides, and at that
number itself one side ends and the other does not, every time, then the comparison is `>` on one side and `>=` on the
other. Whether that number can be reached is left to the reader, and the verdict is undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symcheck.engine.environments.cases.edges import one_sided_tie, threshold_cases
from symcheck.engine.environments.cases.pairs import Measurement, Pairs
from symcheck.engine.environments.subject.placement import Word
from symcheck.errors import SymcheckError
from symcheck.statements.statement import Statement, state
from symcheck.verdict import ReasonCode


@dataclass(frozen=True)
class Between:
    """What was found between visited states.

    Attributes:
        count: pairs at thresholds that were examined.
        doubt: what speaks against the claim there; None where nothing does.
    """

    count: int = 0
    doubt: Statement | None = None


def between(
    pairs: Pairs, measured: Measurement, words: tuple[Word, ...], rng: np.random.Generator, in_time: Callable[[], bool]
) -> Between:
    """Look for one-sided thresholds between visited states.

    Args:
        pairs: makes cases and steps.
        measured: steps already taken.
        words: the elements that are tested.
        rng: picks states.
        in_time: whether the time budget allows another search.

    Returns:
        Nothing found where states are not vectors of floats, or are not read back as they were set.
    """
    try:
        cases = threshold_cases(pairs, measured, rng, in_time, between=True)
        if not cases:
            return Between()
        beside = pairs.measure(cases)
    except SymcheckError:  # what lies between two states need not be one
        return Between()
    transition, ending = pairs.comparison("transition", beside), pairs.comparison("termination", beside)
    # Only ends that differ can show a threshold that is open on one side.
    apart = np.flatnonzero(ending.expected[:, 0] != ending.actual[:, 0])
    for word in words:
        tie = one_sided_tie(pairs, word, transition, ending, [int(row) for row in apart if cases[row].word == word])
        if tie is not None:
            closed = tie.threshold if tie.closed_above else -tie.threshold
            name = transition.coordinates.names[tie.coordinate]
            doubt = state(ReasonCode.THRESHOLD_IN_DOUBT.value, coordinate=name, ends_at=closed, goes_on_at=-closed)
            return Between(len(cases), doubt)
    return Between(len(cases))
