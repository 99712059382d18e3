"""Failing fast where outcomes repeat: one pair that violates an equation for certain is enough."""

from __future__ import annotations

from collections.abc import Sequence

from symcheck.engine.environments.cases.pairs import Measurement, join_measurements
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.equations import Part

_FIRST = 500  # pairs that are stepped before the first question; one batch


class FirstViolation:
    """Whether the pairs stepped so far violate an equation, asked each time their number has doubled.

    They are judged as at the end: a violation must repeat and exceed what rounding does. So nothing is a violation here
    that would not be one there, and asking often costs no level.

    Args:
        bench: the environment.
        parts: the equations that are judged pair by pair.
        random: whether the dynamics are random otherwise.
    """

    def __init__(self, bench: Workbench, parts: Sequence[Part], *, random: bool = False) -> None:
        self._bench = bench
        self._parts, self._random = parts, random
        self._next = _FIRST

    def __call__(self, stepped: Sequence[Measurement], planned: int) -> bool:
        """Whether to stop here.

        Args:
            stepped: the pairs so far.
            planned: how many there will be.

        Returns:
            True if some equation is violated.
        """
        count = sum(len(part.cases) for part in stepped)
        if not self._next <= count < planned:
            return False
        self._next = 2 * count
        drawn = join_measurements(list(stepped))
        evidence = PairedEvidence(self._bench, random=self._random, drawn=drawn, diagnose=False)
        return evidence.refutes(self._parts)
