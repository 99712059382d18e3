"""A second look at suspicious pairs: a violation is reported only if it repeats and exceeds rounding.

A pair is a violation if both sides repeat and differ by more than the effect of changing the state by one unit in the
last place. Hundreds of suspects are examined, alternating between the worst and random ones. If rounding explains all
of them, the number of violations among the rest is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.edges import Tie, one_sided_tie
from symcheck.engine.environments.cases.pairs import Comparison, Measurement, Pairs
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.scales import FLOAT32_EPSILON, typical_sizes
from symcheck.engine.statistics import largest_fraction

_AT_ONCE = 24  # number of suspects examined together; this number of confirmed violations is enough for a verdict
_REPEATS, _REPEATS_AMONG_CHANCE = 3, 16  # repetitions of a violation: 4^-16 times 10,000 pairs is 2e-6
_TIMES = 4  # randomness on both sides can give a residual of twice the difference of a side from itself
# Intermediate rounding to float32, which no nudge reveals among random outcomes: 64 of its units, as for ties.
_SINGLE = 64 * FLOAT32_EPSILON
MOST_LOOKED_AT = 600  # number of suspects that are nudged before the result is inconclusive


@dataclass
class Suspects:
    """Suspicious cases after the second look, as row indices of the comparison.

    Attributes:
        confirmed: violations of the claim.
        rounding: differences within the effect of a nudge at that state.
        unrepeatable: outcomes that did not reproduce when they were stepped again.
        unseen: not examined.
    """

    confirmed: list[int] = field(default_factory=list)
    rounding: list[int] = field(default_factory=list)
    unrepeatable: list[int] = field(default_factory=list)
    unseen: list[int] = field(default_factory=list)

    @property
    def representative(self) -> bool:
        """Whether the examined suspects represent the others: they are many, and rounding explains every one."""
        return len(self.rounding) >= MOST_LOOKED_AT and not self.confirmed and not self.unrepeatable

    @property
    def speak_for_violations(self) -> bool:
        """Whether suspects not examined count as violations: most are not explained by rounding or chance."""
        return not self.unrepeatable and len(self.confirmed) >= len(self.rounding)

    def largest_violating_fraction(self, drawn: int, alpha: float) -> float:
        """The largest fraction of pairs that may violate the claim at level alpha.

        All violations are suspects. Suspects are at most a share p of all pairs, and at most a fraction q of them
        violates, because none of those selected at random did (half of those examined were selected at random); each
        bound has level alpha / 2.
        """
        if not self.unseen:
            return largest_fraction(0, drawn, alpha)
        suspects = len(self.rounding) + len(self.unseen)
        share = largest_fraction(min(suspects, drawn), drawn, alpha / 2)
        return share * largest_fraction(0, len(self.rounding) // 2, alpha / 2)


@dataclass(frozen=True)
class SecondLook:
    """Classifies suspicious cases.

    Attributes:
        pairs: steps them again.
        tolerance: the tolerance of the run.
        random: whether the dynamics are random for some of the cases. A violation must then repeat more often, to the
            last bit, and is nudged only after it has repeated.
    """

    pairs: Pairs
    tolerance: Tolerance
    random: bool = False

    @property
    def repeats(self) -> int:
        """The number of times a violation must repeat on both sides.

        If outcomes are random after all, with the same probability p on both sides, a false violation repeats with
        probability at most 4^-repeats.
        """
        return _REPEATS_AMONG_CHANCE if self.random else _REPEATS

    def sort(
        self, measured: Measurement, comparison: Comparison, residual: Floats, limits: Floats, rng: np.random.Generator
    ) -> Suspects:
        """Examine again the cases of one property whose residual exceeds its tolerance.

        Args:
            measured: all cases.
            comparison: both sides of the property.
            residual: shape (n, dim).
            limits: the tolerance, same shape.
            rng: selects suspects, and draws the nudges.
        """
        sorted_out = Suspects()
        suspects = _worst_and_random(residual, limits, rng)
        looked_at = 0
        for start in range(0, min(len(suspects), MOST_LOOKED_AT), _AT_ONCE):
            if len(sorted_out.confirmed) >= _AT_ONCE:
                break
            rows = suspects[start : start + _AT_ONCE]
            looked_at += len(rows)
            repeats, exceeds = self._verify(measured, comparison, rows, residual, rng)
            for row, stable, real in zip(rows, repeats, exceeds, strict=True):
                kind = sorted_out.confirmed if real else sorted_out.rounding
                (kind if stable else sorted_out.unrepeatable).append(row)
        # After enough confirmed violations, the rest need not be examined.
        sorted_out.unseen = suspects[looked_at:]
        return sorted_out

    def _verify(
        self, measured: Measurement, comparison: Comparison, rows: list[int], residual: Floats, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Whether cases repeat, and whether their residual exceeds the effect of a nudge."""
        part, cases = comparison.part, [measured.cases[row] for row in rows]
        before = Comparison(part, comparison.coordinates, comparison.expected[rows], comparison.actual[rows])
        allowed, drift, going = self.tolerance.of(before), np.zeros_like(before.expected), np.arange(len(rows))
        local = allowed.copy()
        explained = np.zeros(len(rows), dtype=np.bool_)
        for number in range(self.repeats):
            measured_again = self.pairs.measure([cases[i] for i in going])
            again = self.pairs.comparison(part, measured_again)
            for before_values, again_values in ((before.expected, again.expected), (before.actual, again.actual)):
                apart = comparison.coordinates.residual(before_values[going], again_values)
                drift[going] = np.maximum(drift[going], apart)
            if number == int(self.random):
                some = Comparison(part, before.coordinates, before.expected[going], before.actual[going])
                sought = np.maximum(residual[rows][going], drift[going])
                local[going] = self.tolerance.tolerance_up_to(sought, some, measured_again, rng)
                allowed = allowed if self.random else local
                # Only violations must repeat more often than once.
                explained[going] = not self.random and (sought <= local[going]).all(axis=1)
            # Sides that differ from themselves by more than rounding are random and are not tested.
            going = going[(drift[going] <= allowed[going]).all(axis=1) & ~explained[going]]
            if not len(going):
                break
        stable = explained | np.isin(np.arange(len(rows)), going)
        limits = np.maximum(local, _TIMES * drift)
        if self.random and stable.any():
            # a sum that nearly vanishes has the rounding error of its terms, which have typical size
            typical = typical_sizes(comparison.expected, comparison.coordinates.epsilon)
            sizes = np.maximum(np.abs(before.expected), np.abs(before.actual))
            limits = np.maximum(limits, _SINGLE * np.where(np.isfinite(sizes), np.maximum(sizes, typical), 0.0))
        within = (residual[rows] <= limits).all(axis=1)  # written so that NaN does not count
        return stable, np.asarray(~within)

    def find_tie(
        self, measured: Measurement, comparison: Comparison, suspects: Suspects, words: tuple[Word, ...]
    ) -> Tie | None:
        """Detect a genuine fault among terminations that a nudge can change: a threshold inclusive on one side only."""
        if comparison.part != "termination" or suspects.confirmed:
            return None
        transition = self.pairs.comparison("transition", measured)
        for word in words:
            rows = [row for row in suspects.rounding if measured.cases[row].word == word]
            tie = one_sided_tie(self.pairs, word, transition, comparison, rows)
            if tie is not None:
                return tie
        return None


def _worst_and_random(residual: Floats, limits: Floats, rng: np.random.Generator) -> list[int]:
    """Rows over their tolerance, alternating between the worst (which may all lie at jumps) and random ones."""
    suspects = np.flatnonzero((~(residual <= limits)).any(axis=1))  # written so that NaN exceeds its limit
    if not len(suspects):
        return []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.nan_to_num(residual[suspects] / limits[suspects], nan=0.0, posinf=np.inf).max(axis=1)
    worst = suspects[np.argsort(-ratio, kind="stable")].tolist()
    mixed = suspects[rng.permutation(len(suspects))].tolist()
    return list(dict.fromkeys(row for pair in zip(worst, mixed, strict=True) for row in pair))
