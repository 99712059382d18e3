"""Fail-fast for deterministic outcomes: one certain violation of an equation is enough."""

from __future__ import annotations

from collections.abc import Sequence

from symcheck.engine.environments.cases.pairs import Measurement, join_measurements
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.equations import Part

_FIRST = 500  # number of pairs before the first evaluation: one batch


class FirstViolation:
    """Whether the pairs stepped so far violate an equation; evaluated each time their number has doubled.

    The pairs are tested as at the end of the run: a violation must repeat and exceed the effect of rounding. So every
    violation found here would also be one at the end, and repeated evaluation does not affect the level.

    Args:
        bench: the environment.
        parts: the equations that are tested pair by pair.
        random: whether other parts of the dynamics are random.
    """

    def __init__(self, bench: Workbench, parts: Sequence[Part], *, random: bool = False) -> None:
        self._bench = bench
        self._parts, self._random = parts, random
        self._next = _FIRST

    def __call__(self, stepped: Sequence[Measurement], planned: int) -> bool:
        """Whether to stop now.

        Args:
            stepped: the pairs so far.
            planned: the final number of pairs.

        Returns:
            True if an equation is violated.
        """
        count = sum(len(part.cases) for part in stepped)
        if not self._next <= count < planned:
            return False
        self._next = 2 * count
        drawn = join_measurements(list(stepped))
        evidence = PairedEvidence(self._bench, random=self._random, drawn=drawn, diagnose=False)
        return evidence.refutes(self._parts)
