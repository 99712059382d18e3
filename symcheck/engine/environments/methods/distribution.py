"""The distribution method, for random dynamics: set s and g s, step a and g a, and compare the two distributions.

Each pair has its own (s_i, a_i): one member is the mapped outcome g T(s_i, a_i), the other an outcome of (g s_i, g
a_i), drawn independently. Under the claim the two have the same distribution, so they may be swapped in every pair.
Their common part is removed first by one regression on (g s_i, g a_i), fitted to both members together, so that swaps
do not change the fit. The two members never use the same seed: equal noise would hide a biased distribution, and the
same distribution with outcomes in another order would give different draws.

Parts that repeat although the dynamics are random (a constant reward) are tested by the paired method, which is more
powerful.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Indices
from symcheck.engine.budget import Handed
from symcheck.engine.effects import Effect
from symcheck.engine.environments.cases.columns import observed_part
from symcheck.engine.environments.cases.pairs import Comparison, Measurement, join_measurements
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.methods.distribution_gap import distribution_gap
from symcheck.engine.environments.methods.first_violation import FirstViolation
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.value_gap import ValueGap
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.episode_columns import action_columns
from symcheck.engine.equations import BY_PART, STEP_PARTS, Part
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.places import locate
from symcheck.engine.registry import register_method
from symcheck.engine.regression import standardise
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.shared_covariates import MOST_SIDES, side_weights, swap_test_given
from symcheck.engine.statistics import SwapTest
from symcheck.spaces.coordinates import finite
from symcheck.spaces.values import numeric, short_text
from symcheck.statements.statement import state
from symcheck.verdict import Facts, decide

_MOST_CELLS = 512  # maximum number of distinct (s, a) with a separate fit and a separate test


class DistributionEvidence:
    """Evidence from comparing distributions of outcomes.

    Args:
        bench: the environment, the pool and the options.
        repeating: the parts that were equal on repetition in the determinism check; they are tested pair by pair.
        mostly: the parts that were equal on repetition in most pairs; a single pair may refute them, but no pair passes
            them.
    """

    method = "distribution"

    def __init__(self, bench: Workbench, repeating: frozenset[Part], mostly: frozenset[Part] = frozenset()) -> None:
        self.bench = bench
        self.paired = PairedEvidence(bench, random=True, enough=self._clear)
        self._repeating = repeating
        # If setting loses state, a pair may repeat for that reason.
        self._refutable = mostly - repeating if bench.caution is None else frozenset()
        self._pairwise: dict[Part, PropertyResult] = {}
        self._tests: dict[Part, tuple[Comparison, dict[Word, SwapTest]]] = {}
        # Repeating parts are decided by all pairs; interim analyses of the rest only help with fail-fast.
        fast = bench.options.fail_fast
        self._looks = looks(bench.options.samples // len(bench.words) if fast or not repeating else 0)
        self._waiting = list(self._looks[:-1])
        self._violation = FirstViolation(bench, sorted(repeating), random=True) if fast else None
        for part in STEP_PARTS:
            bench.budget.add(part, functools.partial(self._hand_in, part), planned=len(bench.words))

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        pairwise = self._judge_pairwise(part)
        return self._compare(name, part) if pairwise is None else dataclasses.replace(pairwise, name=name)

    def refutes(self, parts: Sequence[Part]) -> bool:
        """Whether any pair violates one of these properties; the tests of distributions are not consulted."""
        judged = [self._judge_pairwise(part) for part in parts]
        return any(result is not None and result.verdict == "failed" for result in judged)

    def value_gap(self, failed: set[str], discount: float) -> ValueGap | None:
        """The value gap of the violations; see `symcheck.engine.environments.methods.distribution_gap`."""
        return distribution_gap(self.bench, self.paired.pairs_for_gap(discount), self._repeating, failed)

    def _hand_in(self, part: Part) -> dict[Word, Handed]:
        if self._judge_pairwise(part) is not None:
            return {}  # parts decided pair by pair use no alpha
        return {word: Handed(test.p_value, test.live) for word, test in self._tests_of(part)[1].items()}

    def _judge_pairwise(self, part: Part) -> PropertyResult | None:
        """The pairwise verdict, if the part repeats or if a repeatable pair refutes it."""
        if part in self._refutable:
            if not self.bench.clock.while_in_time(lambda: self.paired.refutes([part]), False):
                return None
        elif part not in self._repeating and part != "observation":
            return None
        if part not in self._pairwise:
            self._pairwise[part] = self.paired.judge(part, part)
        return None if self._pairwise[part].verdict == "undecided" else self._pairwise[part]

    @functools.cached_property
    def _looks_taken(self) -> Looked:
        return Looked(self.bench.level)  # known after all tests of the run are announced

    def _clear(self, stepped: Sequence[Measurement], planned: int) -> bool:
        """Whether the pairs so far refute every equation, or (with fail-fast) any; called after each batch."""
        if self._violation is not None and self._violation(stepped, planned):
            return True
        count = sum(len(part.cases) for part in stepped)
        if not self._waiting or count < self._waiting[0].share * planned or not self.bench.in_time():
            return False
        look, measured = self._waiting.pop(0), join_measurements(list(stepped))
        fast = self.bench.options.fail_fast
        early: dict[Part, tuple[Comparison, dict[Word, SwapTest]]] = {}
        some = False
        for part in STEP_PARTS:
            if part in self._repeating or measured is None:
                continue  # for fail-fast: repeating parts were tested above
            early[part] = self._test(part, measured, look)
            refuted = any(self._looks_taken.rejects((part, word)) for word in early[part][1])
            if not (refuted or fast):
                return False
            some = some or refuted
        if some:
            self._tests.update(early)
        return some

    def _tests_of(self, part: Part) -> tuple[Comparison, dict[Word, SwapTest]]:
        measured = self.paired.sample.measured  # may stop early, with the tests of the last interim analysis
        if part not in self._tests:
            with self.bench.computing(BY_PART[part].noun):
                self._tests[part] = self._test(part, measured, self._looks[-1])
        return self._tests[part]

    def _test(self, part: Part, measured: Measurement, look: Look) -> tuple[Comparison, dict[Word, SwapTest]]:
        """One interim analysis of one part, under every element; p-values combine all analyses so far."""
        comparison = observed_part(self.bench, self.bench.pairs.comparison(part, measured))
        rng = self.bench.rng(f"swaps of {part}")
        covariates = image_covariates(self.bench, measured)
        tests = {}
        for word, rows in measured.by_test.items():
            level = self.bench.level * look.weight
            shared, coordinates = covariates.rows(rows), comparison.coordinates
            test = swap_test_given(
                comparison.expected[rows],
                comparison.actual[rows],
                coordinates.names,
                coordinates.epsilon,
                covariates=shared.design,
                weights=side_weights(shared.sides, shared.names),
                level=level,
                rng=rng,
                sampled=look.last,
            )
            tests[word] = dataclasses.replace(test, p_value=self._looks_taken.add((part, word), test.p_value, look))
        return comparison, tests

    def _compare(self, name: str, part: Part) -> PropertyResult:
        comparison, tests = self._tests_of(part)
        word = min(tests, key=lambda word: tests[word].p_value)
        test = tests[word]
        level = self.bench.judged_at(part, word, test.p_value)
        sample, options, region = self.paired.sample, self.bench.options, self.bench.pool.region()
        pairs = len(sample.measured.cases)
        notes = [state("outcomes_drawn", pairs=pairs, region=region), state("swap_test", level=level), *sample.exits]
        if part == "termination" and (cuts := self.bench.pairs.own_cuts):
            notes.append(cuts.note)
        if sample.stopped:
            notes.append(state("sampling_stopped", pairs=pairs, planned=options.samples))
        facts = self._facts(part, rejected=test.p_value <= level)
        decision = decide(facts)
        result = PropertyResult(
            name,
            decision.verdict,
            self.method,
            checked=pairs,
            violations=facts.violations,
            unit=BY_PART[part].unit,
            p_value=test.p_value,
            notes=tuple(notes),
            reason=decision.reason,
            facts=facts,
        )
        if facts.violations:
            place = _differing_box(self.bench, sample.measured, sample.measured.by_test[word], comparison, test.effect)
            return _explain(result, comparison, test, self.bench.pairs.bound.label(word), place)
        if not decision.holds:
            return result
        detectable = max(test.detectable(self.bench.rng(f"promises of {part}")) for test in tests.values())
        unit = "standard deviations of the outcome given (s, a)"
        return dataclasses.replace(
            result, bound=shift_bound(detectable, pairs, options.alpha, unit=unit, region=region)
        )

    def _facts(self, part: Part, *, rejected: bool) -> Facts:
        sample = self.paired.sample
        # Not only the tested coordinates, which are a selection.
        comparison = self.bench.pairs.comparison(part, sample.measured)
        outcomes = outcomes_of(comparison.expected, comparison.actual)
        return Facts(
            checked=len(sample.measured.cases),
            least=(self.bench.options.samples - sample.left_out) // 2,
            violations=int(rejected),
            quantity=BY_PART[part].noun,
            finite=outcomes.finite,
            stuck=outcomes.stuck,
            moved=sample.moved,
            constant=outcomes.constant,
            silent=self.bench.silent(part),
            interrupted=self.bench.interrupted,
            stopped=sample.stopped,
            time_up=self.bench.clock.is_limited,
            doubts=(self.bench.caution,) if self.bench.caution else (),
            prevented=sample.prevented,
        )


def _differing_box(
    bench: Workbench, measured: Measurement, rows: Indices, comparison: Comparison, effect: Effect | None
) -> dict[str, object]:
    """Where the means of the coordinate differ clearly, and by how much there, as fields of statements."""
    if effect is None:
        return {}
    states, names = _image_states(bench, measured)
    codec = bench.pairs.stepper.action_codec
    actions = codec.flatten_batch([case.image_action for case in measured.cases])
    names = [f"image {name}" for name in (*names, *codec.coordinates.names)]
    j = comparison.coordinates.names.index(effect.coordinate)
    apart = finite(comparison.actual[rows, j] - comparison.expected[rows, j])
    box = np.concatenate([states, actions], axis=1)[rows]
    place, inside = locate(apart, box, names, np.ones(len(rows), dtype=np.bool_))
    fields = {"place": [side._asdict() for side in place], "there": abs(float(apart[inside].mean()))}
    return fields if place else {}


def _explain(
    result: PropertyResult, comparison: Comparison, test: SwapTest, label: str, place: dict[str, object]
) -> PropertyResult:
    """The failed result with the effect, its size, and the number of pairs needed to detect it."""
    names, effect = comparison.coordinates.names, test.effect
    if effect is None:
        raise ValueError("a test that rejects has a feature")
    size = abs(effect.actual - effect.expected)
    difference = state(
        "SYM043",
        part=comparison.part,
        feature=test.feature,
        statistic="probability" if (comparison.part, effect.statistic) == ("termination", "mean") else effect.statistic,
        coordinate=effect.coordinate,
        region=effect.region,
        expected=effect.expected,
        actual=effect.actual,
        element=label,
        needed=test.needed,
        digits=effect.digits,
        **({"other": effect.other} if effect.other else {}),
        **place,
    )
    others = [state("SYM047", coordinates=[names[i] for i in test.coordinates])] if len(test.coordinates) > 1 else []
    rejected = state(
        "swap_test_rejected",
        feature=test.feature,
        p_value=test.p_value,
        statistic=effect.statistic,
        region=effect.region,
    )
    return dataclasses.replace(
        result,
        counterexample=Counterexample(label, None, None, None, effect.expected, effect.actual, size, effect.place),
        max_residual=size,
        unit=effect.unit,
        causes=(difference, *others, state("SYM048")),
        notes=(rejected, *result.notes),
    )


@dataclasses.dataclass(frozen=True)
class Covariates:
    """The shared covariates of the members of a pair: (g s, g a), as columns.

    Attributes:
        design: the columns for the regression, shape (n, columns).
        sides: the columns that define regions, shape (n, more): coordinates, actions and, if they are few, single (s,
            a).
        names: the names of the sides.
    """

    design: Floats
    sides: Floats
    names: list[str]

    def rows(self, rows: Indices) -> Covariates:
        """The covariates of some of the pairs."""
        return Covariates(self.design[rows], self.sides[rows], self.names)


def image_covariates(bench: Workbench, measured: Measurement) -> Covariates:
    """(g s, g a) of every case; if few are distinct, one indicator for each."""
    states, state_names = _image_states(bench, measured)
    image_actions = [case.image_action for case in measured.cases]
    flat_actions = bench.pairs.stepper.action_codec.flatten_batch(image_actions)
    actions, action_names = action_columns(bench.pairs.stepper.action_codec, image_actions)
    # Actions first: if there are too many features, differences by action are still detected.
    sides = standardise(np.concatenate([actions, states], axis=1)[:, :MOST_SIDES])
    names = [*action_names, *(f"image {name}" for name in state_names)][:MOST_SIDES]
    cells, owner, count = np.unique(
        np.concatenate([states, flat_actions], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    if len(cells) > _MOST_CELLS or count.min() < 2:
        return Covariates(sides, sides, names)
    split = states.shape[1]
    one_each = (owner.reshape(-1, 1) == np.arange(len(cells))).astype(np.float64)
    cell_names = [
        f"s = {short_text(_as_scalar(row[:split]))}, a = {short_text(_as_scalar(row[split:]))}" for row in cells
    ]
    return Covariates(one_each, np.concatenate([sides, one_each], axis=1), [*names, *cell_names])


def _image_states(bench: Workbench, measured: Measurement) -> tuple[Floats, list[str]]:
    """Internal states of the images if they are numeric, otherwise their observations."""
    vectors = [numeric(case.image.state) for case in measured.cases]
    readable = [vector for vector in vectors if vector is not None]
    codec = bench.pairs.stepper.codec
    if bench.pairs.placement.kind == "map" and len(readable) == len(vectors):
        return np.stack(readable), [f"state[{i}]" for i in range(readable[0].size)]
    flat = codec.flatten_batch([case.image.obs for case in measured.cases])
    return flat, list(codec.coordinates.names)


def _as_scalar(row: Floats) -> Any:
    return float(row[0]) if row.size == 1 else row


register_method("distribution")
