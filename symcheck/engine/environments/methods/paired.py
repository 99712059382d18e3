"""The paired method, for deterministic environments: set s and g s, step a and g a, compare.

Every pair that exceeds its tolerance is examined again before a violation is reported. The simplest violation is shown,
with its likely causes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.environments.cases.edges import Tie
from symcheck.engine.environments.cases.minimise import simplest
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement
from symcheck.engine.environments.cases.sizes import approximate_size, per_coordinate
from symcheck.engine.environments.cases.workbench import Evidence, Workbench
from symcheck.engine.environments.causes.diagnosis import likely_causes
from symcheck.engine.environments.causes.violations import Violations
from symcheck.engine.environments.methods.counterexamples import SinglePairs, visible_columns
from symcheck.engine.environments.methods.pair_sample import Enough, PairSample
from symcheck.engine.environments.methods.second_look import SecondLook, Suspects
from symcheck.engine.environments.methods.value_gap import ComparedPairs, ValueGap, paired_gap
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.scales import swamped_rows
from symcheck.envs.models.model import BatchModel
from symcheck.envs.stepping.step_differences import FAR_ABOVE
from symcheck.statements.statement import Statement, state
from symcheck.verdict import MOST_SWAMPED, Facts, decide

_NEGLIGIBLE = 1e-6  # relative to the spread of a coordinate: the limit of amplified rounding in a smooth step
_RARELY_SEEN = 1 / 240  # fraction of the steps: rarer lost terminations may not have been observed
_LOOKED_BESIDE = 24  # number of suspects whose neighbourhood is examined
_FEWEST = 100  # minimum number of checks for a verdict when time runs out (or a tenth of the requested number)


@dataclass(frozen=True)
class _Examined:
    """One property's pairs: both sides, residuals, tolerances, and the outcome of the second look at suspects.

    `swamped` marks the drawn pairs whose tolerance would hide most faults. `excluded` is the share of drawn pairs in
    which rounding cannot be distinguished from a violation: the swamped pairs, and suspects at which outcomes are
    discontinuous in every state. `hidden` counts violations if none exceeds the loss of setting a state, and is 0
    otherwise.
    """

    comparison: Comparison
    residual: Floats
    limits: Floats
    suspects: Suspects
    tie: Tie | None
    swamped: Bools
    excluded: float
    hidden: int = 0

    @property
    def refuted(self) -> bool:
        """Whether a pair violates the property by more than the loss of setting a state."""
        return (bool(self.suspects.confirmed) or self.tie is not None) and not self.hidden


class PairedEvidence:
    """Evidence from stepping both sides of every pair.

    Args:
        bench: the environment, the pool and the options.
        random: whether the dynamics are random in pairs that do not repeat; see `SecondLook`.
        model: the environment's batched form; see `PairSample`.
        enough: called after each batch; True stops there; see `PairSample`.
        drawn: pairs already stepped, to be judged as they are; None to draw pairs.
        diagnose: whether to search for likely causes.
        compare_distributions: makes evidence from distributions, given the parts that repeat, for intermittently random
            outcomes; None leaves these undecided.
    """

    method = "paired"

    def __init__(
        self,
        bench: Workbench,
        *,
        random: bool = False,
        model: BatchModel | None = None,
        enough: Enough | None = None,
        drawn: Measurement | None = None,
        diagnose: bool = True,
        compare_distributions: Callable[[frozenset[Part]], Evidence] | None = None,
    ) -> None:
        self.bench, self.pairs = bench, bench.pairs
        self.sample = PairSample(bench, model=model, enough=enough, given=drawn)
        self._random, self._diagnose, self._compare_distributions = random, diagnose, compare_distributions
        self._judged_by_distributions = False
        self._examined: dict[Part, _Examined] = {}

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        examined = self._examine(part)
        facts = self._facts(examined)
        result = self._summarise(name, examined, facts)
        if examined.refuted:
            return self._explain(result, examined)
        if self._compare_distributions is not None and facts.unrepeatable:
            self._judged_by_distributions = True
            note = state("rarely_random", count=facts.unrepeatable, checked=facts.checked)
            judged: PropertyResult = self._distribution_evidence.judge(name, part)
            return dataclasses.replace(judged, notes=(note, *judged.notes))
        return result

    def refutes(self, parts: Sequence[Part]) -> bool:
        """Whether any pair violates one of these properties."""
        return any(self._examine(part).refuted for part in parts)

    def swamped(self, parts: Sequence[Part]) -> dict[Part, float]:
        """The properties without violation for which too many pairs are dominated by rounding, and their share."""
        examined = {part: self._examine(part) for part in parts if not self._examine(part).refuted}
        return {part: one.excluded for part, one in examined.items() if one.excluded > MOST_SWAMPED}

    def violates(self, part: Part, case: Case, *, carefully: bool = False) -> bool:
        """Whether one case violates a property beyond its tolerance; see `SinglePairs`."""
        return self._single.violates(part, case, carefully=carefully)

    def counterexample(self, part: Part, case: Case) -> tuple[Counterexample, Measurement]:
        """One case in the form of a report, and its measurement."""
        return self._single.show(part, case)

    @functools.cached_property
    def _distribution_evidence(self) -> Any:
        parts = [part for part in STEP_PARTS if not self._examine(part).suspects.unrepeatable]
        return self._compare_distributions(frozenset(parts)) if self._compare_distributions else None

    def value_gap(self, failed: set[str], discount: float) -> ValueGap | None:
        """The value gap of the violations; see `symcheck.engine.environments.methods.value_gap`."""
        if self._judged_by_distributions:
            gap: ValueGap | None = self._distribution_evidence.value_gap(failed, discount)
            return gap
        return paired_gap(self.pairs_for_gap(discount), failed)

    def pairs_for_gap(self, discount: float) -> ComparedPairs:
        """The pairs from which a value gap is estimated."""
        sample = self.sample
        alpha, rng = self.bench.options.alpha, self.bench.rng("value gap")
        return ComparedPairs(
            self.pairs, sample.drawn, sample.measured, self._largest, sample.checked, alpha, discount, rng
        )

    def _largest(self, part: Part, unit: Floats | float = 1.0) -> float:
        """The largest residual of any coordinate, in units given by coordinate."""
        spread = np.where(np.asarray(unit) > 0, unit, 1.0)  # a coordinate that never varied has no scale
        worst = self.sample.tally(part).worst
        screened = float((worst / spread).max()) if worst.size else 0.0
        return max(float((self._examine(part).residual / spread).max()), screened)

    @property
    def _single(self) -> SinglePairs:
        return SinglePairs(self.bench, self.sample.tolerance)

    @property
    def _second_look(self) -> SecondLook:
        return SecondLook(self.pairs, self.sample.tolerance, self._random)

    def _examine(self, part: Part) -> _Examined:
        if part not in self._examined:
            sample = self.sample
            comparison = self.pairs.comparison(part, sample.measured)
            residual, limits = comparison.residual(), sample.tolerance.of(comparison)
            rng = self.bench.rng(f"confirm {part}")
            suspects = self._second_look.sort(sample.measured, comparison, residual, limits, rng)
            tie = self._second_look.find_tie(sample.measured, comparison, suspects, self.bench.words)
            swamped = swamped_rows(comparison.expected, comparison.actual, limits, comparison.coordinates.epsilon)
            # thresholds were searched for deliberately, so they are excluded
            swamped = swamped[: len(sample.drawn.cases)]
            excluded = float(swamped.mean()) + self._share_of_jumps(comparison, residual, suspects)
            hidden = self._count_hidden(comparison, residual, limits, suspects)
            self._examined[part] = _Examined(comparison, residual, limits, suspects, tie, swamped, excluded, hidden)
        return self._examined[part]

    def _share_of_jumps(self, comparison: Comparison, residual: Floats, suspects: Suspects) -> float:
        """The share of drawn pairs that are suspects and discontinuous in every state, not at a threshold."""
        drawn, epsilon = self.sample.drawn.cases, comparison.coordinates.epsilon
        # Slightly larger rounding hides nothing; a discontinuity may be far smaller than the spread.
        jumps = swamped_rows(comparison.expected, comparison.actual, residual, epsilon, share=_NEGLIGIBLE)
        jumps |= (residual[:, epsilon == 0] > 0).any(axis=1)
        rows = [row for row in suspects.rounding if row < len(drawn) and jumps[row]]
        share = len([row for row in (*rows, *suspects.unseen) if row < len(drawn)]) / len(drawn)
        if share <= MOST_SWAMPED or suspects.confirmed or not rows:
            return 0.0
        rows, part, tolerance = rows[:_LOOKED_BESIDE], comparison.part, self.sample.tolerance
        some = Comparison(part, comparison.coordinates, comparison.expected[rows], comparison.actual[rows])
        moved = tolerance.nudges_nearby(part, [drawn[row] for row in rows], self.bench.rng(f"beside {part}"))
        return share * float((some.residual() <= tolerance.of(some, moved)).all(axis=1).mean())

    def _facts(self, examined: _Examined) -> Facts:
        sample, suspects, part = self.sample, examined.suspects, examined.comparison.part
        outcomes = sample.outcomes(examined.comparison)
        uncertain = len(suspects.unseen) + sample.tally(part).not_asked
        counted = uncertain if suspects.speak_for_violations else 0
        violations = len(suspects.rounding) if examined.tie is not None else len(suspects.confirmed) + counted
        threshold = sample.between.doubt if part == "termination" else None
        asked, options = self.bench.options.samples, self.bench.options
        return Facts(
            checked=sample.checked,
            least=max(min(_FEWEST, asked), asked // 10),
            violations=violations if examined.refuted else 0,
            quantity=BY_PART[part].noun,
            finite=outcomes.finite,
            stuck=outcomes.stuck,
            moved=sample.moved,
            constant=outcomes.constant,
            silent=self.bench.silent(part),
            unrepeatable=len(suspects.unrepeatable),
            # If all examined suspects were rounding, they represent the unexamined ones; see the bound.
            unjudged=0 if examined.hidden else sample.tally(part).not_asked if suspects.representative else uncertain,
            swamped=examined.excluded,
            interrupted=self.bench.interrupted,
            # Otherwise every equation is refuted, and this one was requested.
            stopped=sample.stopped and options.fail_fast,
            time_up=self.bench.clock.is_limited,
            doubts=tuple(doubt for doubt in (self._caution(examined), threshold) if doubt),
            prevented=sample.prevented,
        )

    def _caution(self, examined: _Examined) -> Statement | None:
        """Why a pass of this property would not be trusted."""
        caution = self.bench.caution if examined.comparison.part in self.bench.touched else None
        if caution is None or not examined.hidden:
            return caution
        return dataclasses.replace(caution, fields={**caution.fields, "hidden": examined.hidden, "times": FAR_ABOVE})

    def _count_hidden(self, comparison: Comparison, residual: Floats, limits: Floats, suspects: Suspects) -> int:
        """The number of violations if all are within the loss of setting a state, otherwise 0."""
        loss, part, violations = self.bench.loss, comparison.part, suspects.confirmed
        if loss is None or part not in self.bench.touched or not violations:
            return 0
        if part == "termination":  # a slightly different state terminates on the other side of a threshold
            share = len(violations) / len(residual)
            return len(violations) if share <= FAR_ABOVE * max(loss.ends, _RARELY_SEEN) else 0
        beyond = limits[violations] + FAR_ABOVE * loss.of(part, residual.shape[1])
        return len(violations) if (residual[violations] <= beyond).all() else 0

    def _summarise(self, name: str, examined: _Examined, facts: Facts) -> PropertyResult:
        comparison, suspects = examined.comparison, examined.suspects
        residual, limits = self._compared_rows(examined)
        over = ~(residual <= limits)
        visible = visible_columns(self.pairs, comparison.part)
        if over[:, visible].any():  # show observed differences before hidden ones
            over[:, visible.stop or over.shape[1] :] = False
        ranked = np.where(over, residual, 0.0) if over.any() else residual
        worst = np.unravel_index(int(np.argmax(ranked)), residual.shape)
        decision = decide(facts)
        bound: dict[str, Any] | None = None
        if decision.holds:
            alpha = self.bench.options.alpha
            value = suspects.largest_violating_fraction(self.sample.independent, alpha)
            value = min(1.0, value + float(examined.swamped.mean()))  # without visible evidence, nothing is excluded
            bound = {"kind": "violation_fraction", "value": value, "confidence": 1 - alpha}
            bound["region"] = self._region_of(comparison.part)
        return PropertyResult(
            name,
            decision.verdict,
            self.method,
            checked=facts.checked,
            violations=facts.violations or facts.unjudged or examined.hidden,
            max_residual=float(residual[worst]),
            tolerance=float(limits[worst]),
            unit=BY_PART[comparison.part].unit,
            bound=bound,
            notes=tuple(self._notes(examined)),
            per_coordinate=per_coordinate(comparison, residual, limits),
            reason=decision.reason,
            facts=facts,
        )

    def _compared_rows(self, examined: _Examined) -> tuple[Floats, Floats]:
        """Residuals and tolerances of all rows not explained by rounding, and the largest accepted by the screen."""
        suspects = examined.suspects
        kept = np.ones(len(examined.residual), dtype=bool)
        kept[suspects.rounding] = False  # their tolerance comes from their own nudge, not from the run
        if suspects.confirmed and (self._random or suspects.unrepeatable):
            # among the others, randomness changes some by more
            kept = np.isin(np.arange(len(kept)), suspects.confirmed)
        if not kept.any():
            kept[:] = True
        residual, limits = examined.residual[kept], examined.limits[kept]
        tally = self.sample.tally(examined.comparison.part)
        if tally.largest.shape != residual.shape[1:]:
            return residual, limits
        return np.concatenate([residual, tally.largest[None]]), np.concatenate([limits, tally.limits[None]])

    def _region_of(self, part: Part) -> Statement:
        """The region from which the pairs of one property were drawn, and the excluded part."""
        region, thresholds = self.sample.region, self.sample.thresholds
        if part != "termination" or thresholds is None:
            return region
        return state("region_and_thresholds", region=region, thresholds=thresholds)

    def _notes(self, examined: _Examined) -> list[Statement]:
        sample, screened = self.sample, self.sample.screened
        part, suspects, swamped = examined.comparison.part, examined.suspects, int(examined.swamped.sum())
        notes = [state("pairs_drawn", pairs=sample.checked, region=sample.region), *sample.exits]
        if part == "termination":
            thresholds = [] if sample.thresholds is None else [sample.thresholds]
            notes += [*thresholds, state("pairs_ending", pairs=sample.ends)]
            notes += [self.pairs.own_cuts.note] if self.pairs.own_cuts else []
        if screened is not None:
            # Both sides of every drawn pair were compared with the batched form.
            steps = 2 * len(sample.drawn.cases)
            notes.append(state("pairs_batched", pairs=screened.checked, source=screened.source, steps=steps))
        if suspects.rounding:
            notes.append(state("pairs_within_rounding", pairs=len(suspects.rounding)))
        if swamped:
            notes.append(state("pairs_swamped", pairs=swamped, drawn=len(sample.drawn.cases)))
        if suspects.unseen and suspects.representative:
            notes.append(state("pairs_not_rerun", pairs=len(suspects.unseen)))
        return [*notes, state(BY_PART[part].tolerance)]

    def _explain(self, result: PropertyResult, examined: _Examined) -> PropertyResult:
        """The failed result with its counterexample, its likely causes and its size."""
        sample, tie, part, suspects = self.sample, examined.tie, examined.comparison.part, examined.suspects
        cases = [sample.measured.cases[row] for row in ([tie.row] if tie else suspects.confirmed)]
        # If some pairs do not repeat, a smaller case may differ by chance.
        shrinks = tie is None and not suspects.unrepeatable
        case = self._single.shrink(part, cases) if shrinks else simplest(self.pairs, cases)
        example, shown = self._single.show(part, case)
        others = len(suspects.rounding) * (tie is None) + len(suspects.unrepeatable)
        others += 0 if suspects.speak_for_violations else len(suspects.unseen)
        size = approximate_size(examined.comparison, result.max_residual or 0.0)
        violations = Violations(
            part=part,
            pairs=self.pairs,
            measured=sample.measured,
            comparison=examined.comparison,
            tolerance=sample.tolerance,
            confirmed=suspects.confirmed,
            share=sample.share(examined.comparison) - others / sample.checked,
            rounded=not suspects.speak_for_violations,
            repeats=self._second_look.repeats,
            rng=self.bench.rng,
            in_time=self.bench.in_time,
        )
        asked = self._diagnose and not self.bench.interrupted  # after Ctrl-C, do not search for causes
        return dataclasses.replace(
            result,
            max_residual=example.residual if tie else result.max_residual,
            counterexample=example,
            causes=self.bench.clock.while_in_time(lambda: tuple(likely_causes(violations, case, shown, tie)), ())
            if asked
            else (),
            approximate=size is not None,
            notes=(*([size] if size else []), *result.notes, state("shrunk", violations=result.violations)),
        )


register_method("paired")
