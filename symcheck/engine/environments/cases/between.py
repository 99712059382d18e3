"""Thresholds between visited states, for environments without a known box of states.

They are reported, but never decide.

A vector whose coordinate lies between the values of two visited states need not be a state, so its outcome cannot
refute a claim. One finding is reported nevertheless. Suppose that termination begins at the same number on both sides,
and that exactly at this number one side always terminates and the other never does. Then one side compares with `>` and
the other with `>=`. The verdict is undecided, because it is not known whether that number can be reached.
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
    """Findings between visited states.

    Attributes:
        count: the number of pairs at thresholds that were examined.
        doubt: evidence against the claim there; None if there is none.
    """

    count: int = 0
    doubt: Statement | None = None


def between(
    pairs: Pairs, measured: Measurement, words: tuple[Word, ...], rng: np.random.Generator, in_time: Callable[[], bool]
) -> Between:
    """Search for one-sided thresholds between visited states.

    Args:
        pairs: builds and steps cases.
        measured: steps taken so far.
        words: the tested elements.
        rng: picks states.
        in_time: whether the time budget allows another search.

    Returns:
        The findings; empty if states are not vectors of floats, or do not read back as they were set.
    """
    try:
        cases = threshold_cases(pairs, measured, rng, in_time, between=True)
        if not cases:
            return Between()
        beside = pairs.measure(cases)
    except SymcheckError:  # a point between two states need not be a state
        return Between()
    transition, ending = pairs.comparison("transition", beside), pairs.comparison("termination", beside)
    # Only different terminations can show a threshold that is open on one side.
    apart = np.flatnonzero(ending.expected[:, 0] != ending.actual[:, 0])
    for word in words:
        tie = one_sided_tie(pairs, word, transition, ending, [int(row) for row in apart if cases[row].word == word])
        if tie is not None:
            closed = tie.threshold if tie.closed_above else -tie.threshold
            name = transition.coordinates.names[tie.coordinate]
            doubt = state(ReasonCode.THRESHOLD_IN_DOUBT.value, coordinate=name, ends_at=closed, goes_on_at=-closed)
            return Between(len(cases), doubt)
    return Between(len(cases))
