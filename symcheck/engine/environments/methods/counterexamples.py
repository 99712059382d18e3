"""Single pairs: tests one pair, finds the simplest violating pair, and formats it for a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.minimise import minimise, simplest
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement, Pairs
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.subject.placement import Situation
from symcheck.engine.equations import Part
from symcheck.engine.results import Counterexample
from symcheck.spaces.coordinates import finite

_PLAINLY = 1e-5  # relative to the differing numbers: reports show five digits, and the sixth is compared


def visible_columns(pairs: Pairs, part: Part) -> slice:
    """The columns that the agent sees: all except those of internal next states."""
    return slice(pairs.stepper.codec.coordinates.dim if part == "transition" else None)


@dataclass(frozen=True)
class SinglePairs:
    """Tests single pairs and formats them for reports.

    Attributes:
        bench: the environment.
        tolerance: the tolerances of the run.
    """

    bench: Workbench
    tolerance: Tolerance

    def violates(
        self, part: Part, case: Case, *, carefully: bool = False, visibly: bool = False, plainly: bool = False
    ) -> bool:
        """Whether one case violates a property beyond its tolerance.

        Args:
            part: the property.
            case: the case; both sides are stepped.
            carefully: also compare with the effect of a nudge at that state.
            visibly: whether only differences that the agent observes count.
            plainly: whether only differences in the leading digits count.

        Returns:
            Whether any residual exceeds its tolerance.
        """
        pairs = self.bench.pairs
        comparison = pairs.comparison(part, pairs.measure([case]))
        rng = self.bench.rng("careful")
        limits = self.tolerance.local_tolerance(comparison, [case], rng) if carefully else self.tolerance.of(comparison)
        if plainly:
            sizes = np.fmax(np.abs(finite(comparison.expected)), np.abs(finite(comparison.actual)))
            limits = np.maximum(limits, _PLAINLY * sizes)
        over = ~(comparison.residual() <= limits)
        return bool((over[:, visible_columns(pairs, part)] if visibly else over).any())

    def shrink(self, part: Part, cases: list[Case]) -> Case:
        """The simplest violating case, starting from the given ones; one of those if time is up."""
        return self.bench.clock.while_in_time(lambda: self._shrink(part, cases), cases[0])

    def _shrink(self, part: Part, cases: list[Case]) -> Case:
        pairs = self.bench.pairs
        # Prefer differences that the agent observes, and differences in the leading digits.
        for visibly, plainly in ((True, True), (True, False), (False, True), (False, False)):
            kept = [case for case in cases if self.violates(part, case, visibly=visibly, plainly=plainly)]
            if kept:
                break
        start = simplest(pairs, kept or cases)
        small = minimise(pairs, start, lambda case: self.violates(part, case, visibly=visibly, plainly=plainly))
        # Shrinking may have moved to a threshold, where a nudge has the same effect.
        return small if self.violates(part, small, carefully=True) else start

    def show(self, part: Part, case: Case) -> tuple[Counterexample, Measurement]:
        """One case in the form of a report, and its measurement."""
        pairs = self.bench.pairs
        with self.bench.clock.overtime():
            measured = pairs.measure([case])
        comparison = pairs.comparison(part, measured)
        residual = comparison.residual()
        column = self._worst_column(comparison, residual)
        dim = pairs.stepper.codec.coordinates.dim
        # Show the observation or the internal state, whichever contains the worst coordinate.
        half = slice(None) if part != "transition" else slice(0, dim) if column < dim else slice(dim, None)
        expected, actual = (_as_reported(part, side[0, half]) for side in (comparison.expected, comparison.actual))
        internal = pairs.placement.kind in ("map", "inverse") or _has_more_digits(case.situation)
        example = Counterexample(
            group_element=pairs.bound.label(case.word),
            observation=case.situation.obs,
            state=case.situation.state if internal else None,
            action=case.action,
            expected=expected,
            actual=actual,
            residual=float(residual[0, column]),
            where=comparison.coordinates.names[column],
            image_observation=case.image.obs,
            image_action=case.image_action,
        )
        return example, measured

    def _worst_column(self, comparison: Comparison, residual: Floats) -> int:
        """The coordinate that exceeds its tolerance most; an observed one if any observed one does."""
        limits = self.tolerance.of(comparison)
        # If the tolerance is 0, any residual exceeds it by an infinite factor.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(residual > 0, residual / np.where(limits > 0, limits, np.finfo(float).tiny), 0.0)[0]
        visible = visible_columns(self.bench.pairs, comparison.part)
        if (~(residual <= limits))[:, visible].any():
            ratio = ratio[visible]
        return int(np.argmax(ratio))


def _has_more_digits(situation: Situation) -> bool:
    """Whether the state has digits that the observation does not show."""
    held, obs = situation.state, situation.obs
    if not (isinstance(held, np.ndarray) and isinstance(obs, np.ndarray)):
        return False
    return not np.array_equal(held.astype(np.float64), obs.astype(np.float64), equal_nan=True)


def _as_reported(part: Part, value: Floats) -> Floats | float | bool | str:
    if part == "termination":
        return "truncated" if value[0] == 0.5 else bool(value[0])
    return float(value[0]) if part == "reward" else value
