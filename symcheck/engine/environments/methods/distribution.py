"""The distribution method: set s and g s, step a and g a, and compare the two laws. For random dynamics.

Each pair has its own (s_i, a_i): one member is the mapped outcome g T(s_i, a_i), the other an outcome of
(g s_i, g a_i), drawn independently. Under the claim the two have one law, so they may be swapped, whatever the pair;
what they share is taken out first by one regression on (g s_i, g a_i), fitted to both members at once, which swaps do
not change. Equal seeds are never used: equal noise hides a biased one, and a list of outcomes in another order gives
other draws with equal laws.

What repeats although the dynamics are random (a constant reward) is judged by the paired method, which is stronger.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcheck.engine.budget import Handed
from symcheck.engine.environments.cases.pairs import Comparison, Measurement, Part, joined
from symcheck.engine.environments.cases.regression import action_columns, fitted, polynomial, standardised, told_apart
from symcheck.engine.environments.cases.workbench import EQUATIONS, STOPPED, UNITS, Workbench, shift_bound
from symcheck.engine.environments.methods.first_violation import FirstViolation
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.value_gap import ValueGap
from symcheck.engine.environments.subject.coordinates import Vector, finite, scalar_coordinate
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.environments.subject.stepper import numeric, shown
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import SwapTest, swap_test

_TIE = 64  # rounding units: outcomes that rounding moved by a few units are the same outcome
_WIDEST = 32  # coordinates that are tested; of more (images) some that vary are taken
_MOST_CELLS = 256  # distinct (s, a) that are fitted one by one
_MOST_NAMED = 64  # and tested one by one
_FEWEST_ON_A_SIDE = 20
_REPEATS = 16  # of a violation where dynamics are random: 4^-16 times 10,000 pairs is 2e-6


class DistributionEvidence:
    """Evidence by comparing laws of outcomes.

    Args:
        bench: the environment, the pool and the options.
        repeating: the parts that repeated in the identity control; they are judged pair by pair.
    """

    method = "distribution"

    def __init__(self, bench: Workbench, repeating: frozenset[Part]) -> None:
        self.bench = bench
        self.paired = PairedEvidence(bench, repeats=_REPEATS, enough=self._clear)
        self._repeating = repeating
        self._facts: dict[Part, PropertyResult] = {}
        self._laws: dict[Part, tuple[Comparison, dict[Word, SwapTest]]] = {}
        # What repeats is decided by all pairs; early looks at the rest would save nothing, except to fail fast.
        fast = bench.options.fail_fast
        self._looks = looks(bench.options.samples // len(bench.words) if fast or not repeating else 0)
        self._waiting = list(self._looks[:-1])
        self._violation = FirstViolation(bench, sorted(repeating), repeats=_REPEATS) if fast else None
        for part in EQUATIONS:
            bench.budget.add(part, functools.partial(self._handed, part), planned=len(bench.words))

    def _handed(self, part: Part) -> dict[Word, Handed]:
        if self._fact(part) is not None:
            return {}  # what was decided pair by pair spends nothing
        return {word: Handed(test.p_value, test.live) for word, test in self._tested(part)[1].items()}

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        fact = self._fact(part)
        return self._compare(name, part) if fact is None else dataclasses.replace(fact, name=name)

    @property
    def repeating(self) -> frozenset[Part]:
        """The parts that are judged pair by pair."""
        return self._repeating

    def value_gap(self, failed: set[str], discount: float) -> ValueGap | None:
        """What the violations cost in value; see `symcheck.engine.environments.methods.distribution_gap`."""
        from symcheck.engine.environments.methods.distribution_gap import (
            law_gap,  # which compares what this module observes
        )

        return law_gap(self, failed, discount)

    def _fact(self, part: Part) -> PropertyResult | None:
        """The verdict pair by pair, where the part repeats; swaps do not change whether it is decided."""
        if part not in self._repeating and part != "observation":
            return None
        if part not in self._facts:
            self._facts[part] = self.paired.judge(part, part)
        return None if self._facts[part].verdict == "undecided" else self._facts[part]

    @functools.cached_property
    def _looked(self) -> Looked:
        return Looked(self.bench.level)  # known once all tests of the run are announced

    def _clear(self, stepped: Sequence[Measurement], planned: int) -> bool:
        """Whether the pairs so far refute every equation, or (to fail fast) some; asked after each batch."""
        if self._violation is not None and self._violation(stepped, planned):
            return True
        count = sum(len(part.cases) for part in stepped)
        if not self._waiting or count < self._waiting[0].share * planned or not self.bench.in_time():
            return False
        look, measured = self._waiting.pop(0), joined(list(stepped))
        fast = self.bench.options.fail_fast
        early: dict[Part, tuple[Comparison, dict[Word, SwapTest]]] = {}
        some = False
        for part in EQUATIONS:
            if part in self._repeating or measured is None:
                continue  # to fail fast: what repeats was asked about above
            early[part] = self._test_laws(part, measured, look)
            refuted = any(self._looked.refuted((part, word)) for word in early[part][1])
            if not (refuted or fast):
                return False
            some = some or refuted
        if some:
            self._laws.update(early)
        return some

    def _tested(self, part: Part) -> tuple[Comparison, dict[Word, SwapTest]]:
        measured = self.paired.measured  # which may stop early, with the tests of its last look
        if part not in self._laws:
            self._laws[part] = self._test_laws(part, measured, self._looks[-1])
        return self._laws[part]

    def _test_laws(self, part: Part, measured: Measurement, look: Look) -> tuple[Comparison, dict[Word, SwapTest]]:
        """One look at one part, under every element; p-values are those of all looks so far."""
        comparison = indicators(observed_part(self.bench, self.paired.pairs.comparison(part, measured)))
        words = [case.word for case in measured.cases]
        rng = self.bench.rng(f"swaps of {part}")
        covariates = image_covariates(self.bench, measured)
        tests = {}
        for word in dict.fromkeys(words):
            rows = np.array([i for i, other in enumerate(words) if other == word])
            level = self.bench.level * look.weight
            test = _test(comparison, covariates.rows(rows), rows, level, rng, sampled=look.last)
            tests[word] = dataclasses.replace(test, p_value=self._looked.add((part, word), test.p_value, look))
        return comparison, tests

    def _compare(self, name: str, part: Part) -> PropertyResult:
        comparison, tests = self._tested(part)
        words = [case.word for case in self.paired.measured.cases]
        word = min(tests, key=lambda one: tests[one].p_value)
        test = tests[word]
        level = self.bench.judged_at(part, word, test.p_value)
        result = PropertyResult(
            name,
            "passed",
            self.method,
            checked=len(words),
            unit=UNITS[part],
            p_value=test.p_value,
            notes=(
                f"{len(words):,} pairs of independent outcomes, from {self.bench.pool.region()}; swap test at level "
                f"{level:.2g}, features of each coordinate and where it depends on s and a.",
            ),
        )
        if self.paired.stopped:
            said = (
                f"Sampling stopped at {len(words):,} of {self.bench.options.samples:,} pairs, as the answer was clear."
            )
            result = dataclasses.replace(
                result,
                notes=(
                    *result.notes,
                    f"{said}",
                ),
            )
        if test.p_value <= level:
            rows = np.array([i for i, other in enumerate(words) if other == word])
            return self._failed(result, part, comparison, rows, test, self.bench.pairs.bound.label(word))
        if self.paired.stopped:
            return dataclasses.replace(
                result,
                verdict="undecided",
                notes=(
                    f"Undecided: {STOPPED}.",
                    *result.notes,
                ),
            )
        if self.bench.interrupted or len(words) < self.bench.options.samples // 2:
            ran_out = "the time budget ran out; allow more with --max-time"
            why = f"Undecided: {'interrupted' if self.bench.interrupted else ran_out}."
            return dataclasses.replace(
                result,
                verdict="undecided",
                notes=(
                    f"{why}",
                    *result.notes,
                ),
            )
        if self.bench.caution:
            return dataclasses.replace(
                result,
                verdict="undecided",
                notes=(
                    f"Undecided: {self.bench.caution}.",
                    *result.notes,
                ),
            )
        bound = shift_bound(
            max(one.detectable for one in tests.values()),
            len(words),
            self.bench.options.alpha,
            unit="standard deviations of the outcome given (s, a)",
            region=self.bench.pool.region(),
        )
        return dataclasses.replace(result, bound=bound)

    def _failed(
        self, result: PropertyResult, part: Part, comparison: Comparison, rows: Vector, test: SwapTest, label: str
    ) -> PropertyResult:
        names = comparison.coordinates.names
        j = test.coordinate
        expected = float(np.mean(finite(comparison.expected[rows, j])))
        actual = float(np.mean(finite(comparison.actual[rows, j])))
        text = f"{test.feature} differs between T(g s, g a) and g T(s, a), g = {label}"
        if test.moment == "mean":
            text = (
                f"the mean of {names[j]} is shifted by {abs(test.shift) / 2:.2g} "
                f"({abs(test.shift):.2g} between the two sides)"
            )
        causes = [
            f"{part}: {text}; about {test.needed:,} pairs find this with 90% power",
            *([f"differs in {', '.join(names[i] for i in test.coordinates)}"] if len(test.coordinates) > 1 else []),
            "the noise is not symmetric, or the mean dynamics are not",
        ]
        example = Counterexample(label, None, None, None, expected, actual, abs(test.shift), names[j])
        return dataclasses.replace(
            result,
            verdict="failed",
            violations=1,
            counterexample=example,
            max_residual=abs(test.shift),
            causes=tuple(causes),
            notes=(
                f"{text} (p = {test.p_value:.2g}).",
                *result.notes,
                "Expected and actual are means over the pairs.",
            ),
        )


def observed_part(bench: Workbench, comparison: Comparison) -> Comparison:
    """What laws are compared on: internal states where known, some observed coordinates, angles as cosine and sine."""
    return on_columns(comparison, compared_columns(bench, comparison))


def compared_columns(bench: Workbench, comparison: Comparison) -> list[int]:
    """The coordinates on which laws are compared; of wide observations some that vary in this comparison."""
    total = comparison.coordinates.dim
    shown_dim = bench.pairs.stepper.codec.coordinates.dim if comparison.part == "transition" else total
    columns, inner = list(range(min(shown_dim, total))), list(range(min(shown_dim, total), total))
    if len(columns) > _WIDEST:
        pooled = np.concatenate([comparison.expected, comparison.actual])
        varying = [j for j in columns if np.ptp(finite(pooled[:, j])) > 0]
        columns = varying[:: max(1, -(-len(varying) // _WIDEST))] or [0]
    elif (within := bench.pairs.placement.inner) is not None and (
        bench.pairs.placement.kind == "observation" or within.shown is not None
    ):
        inner = []  # the same numbers again, with more digits
    return [*inner, *columns]


def on_columns(comparison: Comparison, columns: Sequence[int]) -> Comparison:
    """Some coordinates of a comparison, angles as cosine and sine."""
    picked = restricted(comparison, columns)
    coordinates, (expected, actual) = picked.coordinates.unrolled([picked.expected, picked.actual])
    return Comparison(picked.part, coordinates, expected, actual)


def restricted(comparison: Comparison, columns: Sequence[int]) -> Comparison:
    """Some coordinates of a comparison."""
    old = comparison.coordinates
    picked = list(columns)
    coordinates = dataclasses.replace(
        old,
        names=tuple(old.names[j] for j in picked),
        epsilon=old.epsilon[picked],
        period=old.period[picked],
        low=old.low[picked],
        high=old.high[picked],
    )
    return Comparison(comparison.part, coordinates, comparison.expected[:, picked], comparison.actual[:, picked])


@dataclasses.dataclass(frozen=True)
class Covariates:
    """What the members of a pair share: (g s, g a), as columns.

    Attributes:
        design: for the regression, shape (n, columns).
        sides: for regions, shape (n, more): coordinates, actions and, where there are few, single (s, a).
        names: of the sides.
    """

    design: Vector
    sides: Vector
    names: list[str]

    def rows(self, rows: Vector) -> Covariates:
        """Some of the pairs."""
        return Covariates(self.design[rows], self.sides[rows], self.names)


def image_covariates(bench: Workbench, measured: Measurement) -> Covariates:
    """(g s, g a) of every case; a handful of distinct ones are told apart one by one."""
    states, state_names = _image_states(bench, measured)
    image_actions = [case.image_action for case in measured.cases]
    flat_actions = bench.pairs.stepper.action_codec.flatten_batch(image_actions)
    actions, action_names = action_columns(bench, image_actions)
    sides = standardised(np.concatenate([states, actions], axis=1))
    names = [f"image {name}" for name in state_names] + action_names
    cells, owner, count = np.unique(
        np.concatenate([states, flat_actions], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    if len(cells) > _MOST_CELLS or count.min() < 2:
        return Covariates(sides, sides, names)
    split = states.shape[1]
    one_each = (owner.reshape(-1, 1) == np.arange(len(cells))).astype(np.float64)
    if len(cells) > _MOST_NAMED:
        return Covariates(one_each, sides, names)
    cell_names = [f"s = {shown(_plain(row[:split]))}, a = {shown(_plain(row[split:]))}" for row in cells]
    return Covariates(one_each, np.concatenate([sides, one_each], axis=1), [*names, *cell_names])


def _image_states(bench: Workbench, measured: Measurement) -> tuple[Vector, list[str]]:
    """Internal states of the images where they are numbers, else their observations."""
    vectors = [numeric(case.image.state) for case in measured.cases]
    readable = [vector for vector in vectors if vector is not None]
    codec = bench.pairs.stepper.codec
    if bench.pairs.placement.kind == "map" and len(readable) == len(vectors):
        return np.stack(readable), [f"state[{i}]" for i in range(readable[0].size)]
    flat = codec.flatten_batch([case.image.obs for case in measured.cases])
    return flat, list(codec.coordinates.names)


def _plain(row: Vector) -> Any:
    return float(row[0]) if row.size == 1 else row


def _test(
    comparison: Comparison,
    covariates: Covariates,
    rows: Vector,
    level: float,
    rng: np.random.Generator,
    *,
    sampled: bool,
) -> SwapTest:
    expected, actual = comparison.expected[rows], comparison.actual[rows]
    # Both members share the covariates, so the pooled fit is the fit of their mean: swaps do not change it.
    design = polynomial(covariates.design)
    common = fitted(design, (finite(expected) + finite(actual)) / 2)
    scale = np.abs(finite(expected)).max(axis=0, initial=0.0)
    epsilon = np.maximum(comparison.coordinates.epsilon, np.finfo(np.float64).eps)
    shift_free = [np.where(np.isfinite(side), side - common, side) for side in (expected, actual)]
    test = swap_test(
        shift_free[0],
        shift_free[1],
        comparison.coordinates.names,
        level=level,
        rng=rng,
        tie=_TIE * epsilon * np.maximum(scale, 1.0),
        weights=_weights(covariates.sides, covariates.names),
        design=design,
        sampled=sampled,
    )
    shift = float(np.mean((finite(actual) - finite(expected))[:, test.coordinate]))
    return dataclasses.replace(test, shift=shift)


def _weights(sides: Vector, names: list[str]) -> list[tuple[str, Vector]]:
    """High against low values of each covariate, centred: where the two sides may differ with opposite signs."""
    found = []
    for j, name in enumerate(names[: 2 * _MOST_NAMED]):
        column = sides[:, j]
        middle = float(np.median(column))
        # Indicators have their median at one of two values: split them in the middle.
        cut = middle if 0.2 < float((column > middle).mean()) < 0.8 else float(column.min() + column.max()) / 2
        high = (column > cut).astype(np.float64)
        if _FEWEST_ON_A_SIDE <= high.sum() <= len(high) - _FEWEST_ON_A_SIDE:
            found.append((f"where {name}" if "=" in name else f"where {name} is high, against low", high - high.mean()))
    return found


def indicators(comparison: Comparison) -> Comparison:
    """A comparison with an indicator for each value of whole-number coordinates that take a few."""
    half = len(comparison.expected)
    both = np.concatenate([comparison.expected, comparison.actual])
    old = comparison.coordinates
    columns, names = told_apart(both, list(old.names), old.epsilon == 0)
    if len(names) == old.dim:
        return comparison
    more = scalar_coordinate("", epsilon=0.0)
    for name in names[old.dim :]:
        old = old.joined(dataclasses.replace(more, names=(name,)))
    return Comparison(comparison.part, old, columns[:half], columns[half:])
