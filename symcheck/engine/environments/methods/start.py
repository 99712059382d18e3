"""The start distribution: tests whether reset observations and their images have the same distribution.

Independent resets are paired, one of each pair is mapped, and the swap test compares the two. The result names the
coordinate and the moment: "mean of observation[0]: -0.5 against -0.547".
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.budget import Handed
from symcheck.engine.clock import TimeUp
from symcheck.engine.effects import measure_effect
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.causes.diagnosis import flattened_order
from symcheck.engine.environments.controls.start_memory import survives_reset
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.equations import START
from symcheck.engine.features import distinct_columns
from symcheck.engine.outcomes import outcomes_of
from symcheck.engine.registry import register_method
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.scales import bulk, shown_precision, sizes_beside_others
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import SwapTest, swap_test
from symcheck.spaces.coordinates import Coordinates, finite
from symcheck.spaces.probing import linear_map
from symcheck.spaces.reduction import reduction
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Facts, ReasonCode, decide

_FEWEST, _MOST = 500, 4000  # pairs of resets
# Maximum number of coordinates whose pairwise products are compared. The three axes of a body with its position and
# motion are 18 coordinates: a reflection that turns right-handed axes into left-handed ones shows only in products.
_WIDEST_PRODUCTS = 24
_FEWEST_JUDGED = 100  # minimum number of pairs for a verdict when time runs out
_FEWEST_DRAWN = 20  # minimum number of pairs, even without time
_CHUNK = 250  # number of resets stored unreduced: observations may be images
TESTS = "initial"  # name of the tests in the run's budget


@dataclasses.dataclass(frozen=True)
class StartSample:
    """Resets under one element.

    Attributes:
        word: the element g.
        expected: images of reset observations, shape (n, dim).
        actual: other reset observations, shape (n, dim).
        shows_numbers: whether any reset observation contains a number; NaN is dropped from reduced ones.
    """

    word: Word
    expected: Floats
    actual: Floats
    shows_numbers: bool


class Resets:
    """Pairs of resets under one element, drawn for one analysis at a time.

    Each reset is used once, so pairs are independent.

    Args:
        bench: the environment.
        word: the element that maps one reset of each pair.
    """

    def __init__(self, bench: Workbench, word: Word) -> None:
        self._bench, self._word = bench, word
        self._view = reduction(bench.pairs.stepper.codec)
        self._images: list[Floats] = []
        self._starts: list[Floats] = []
        self._shows_numbers = False
        self.drawn = 0

    def draw(self, until: int) -> None:
        """Reset until the given number of pairs is reached or the time is up; at least 20 pairs."""
        while self.drawn < until:
            observations = self._reset(min(_CHUNK, 2 * (until - self.drawn)))
            if not observations:
                return
            moved = self._bench.pairs.observation_images(self._word, observations[::2])
            codec = self._bench.pairs.stepper.codec
            for side, some in ((self._images, moved), (self._starts, observations[1::2])):
                flat = codec.flatten_batch(some)
                self._shows_numbers = self._shows_numbers or bool(np.isfinite(flat).any())
                side.append(self._view.apply(flat))
            self.drawn += len(observations) // 2

    def _reset(self, count: int) -> list[Any]:
        """Reset observations, an even number; fewer if the time runs out."""
        observations: list[Any] = []
        while len(observations) < count and (
            self._bench.in_time() or self.drawn + len(observations) // 2 < _FEWEST_DRAWN
        ):
            try:
                observations += [self._bench.pairs.stepper.reset(), self._bench.pairs.stepper.reset()]
            except TimeUp:
                if not self.drawn and not observations:
                    raise  # no pairs to test
                break
        return observations

    def sample(self) -> StartSample:
        """The pairs drawn so far."""
        sides = [np.concatenate(side) for side in (self._images, self._starts)]
        images, starts = (self._view.coordinates.on_one_branch(side) for side in sides)
        return StartSample(self._word, images, starts, self._shows_numbers)


class StartEvidence:
    """Evidence about the start distribution, gathered once, on first use.

    Resets stop at the first interim analysis that clearly refutes an element, because one refuted element refutes the
    claim.

    Args:
        bench: the environment, with the budget of the run, to which the tests are announced.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        if bench.pairs.bound.symmetry.initial:
            bench.budget.add(TESTS, self._hand_in, planned=len(bench.words))

    @functools.cached_property
    def planned(self) -> int:
        """The number of pairs of resets per element, unless they stop early."""
        count = int(np.clip(self._bench.options.samples // 4, _FEWEST, _MOST))
        return max(200, count // max(1, len(self._bench.words)) + 1)

    @functools.cached_property
    def _tests(self) -> list[tuple[StartSample, SwapTest]]:
        """The resets and the test of every element so far."""
        bench, words, rng = self._bench, self._bench.words, self._bench.rng("swaps of starts")
        report = bench.progress("resetting")
        resets = {word: Resets(bench, word) for word in words}
        looked = Looked(bench.level)
        tested: list[tuple[StartSample, SwapTest]] = []
        for look in looks(self.planned):
            until = math.ceil(look.share * self.planned)
            for at, word in enumerate(words):
                resets[word].draw(until)
                report(at * self.planned + until, len(words) * self.planned)
            # An interim analysis that was cut short by time is not a planned one, and is skipped.
            if not look.last and not bench.in_time():
                continue  # the last analysis uses all available data
            tested = [self._look(resets[word].sample(), look, looked, rng) for word in words]
            # One refuted generator refutes the claim, whatever the others show.
            if any(looked.rejects(word) for word in words):
                break
        report(1, 1)
        return tested

    def _look(
        self, sample: StartSample, look: Look, looked: Looked, rng: np.random.Generator
    ) -> tuple[StartSample, SwapTest]:
        """One interim analysis of one element's resets; the p-value combines all its analyses so far."""
        level = self._bench.level * look.weight
        with self._bench.computing("starts"):
            test = _test(sample, self._coordinates, self._sizes, level, rng, sampled=look.last)
        return sample, dataclasses.replace(test, p_value=looked.add(sample.word, test.p_value, look))

    @property
    def _coordinates(self) -> Coordinates:
        return reduction(self._bench.pairs.stepper.codec).coordinates

    @functools.cached_property
    def _sizes(self) -> Floats:
        """The typical size of each coordinate over whole episodes, which determines the rounding of starts."""
        codec, situations = self._bench.pairs.stepper.codec, self._bench.pool.situations
        if not situations:
            return np.zeros(self._coordinates.dim)
        shown = codec.flatten_batch([situation.obs for situation in situations[:: max(1, len(situations) // _MOST)]])
        return sizes_beside_others(reduction(codec).apply(shown), self._coordinates.epsilon)

    def _hand_in(self) -> dict[Word, Handed]:
        if self._bench.interrupted:
            return {}
        return {sample.word: Handed(test.p_value, test.live) for sample, test in self._tests}

    def judge(self, name: str) -> PropertyResult:
        """The verdict on the start distribution.

        Args:
            name: the property's name.

        Returns:
            The verdict; if no element's test rejects, with the shift that would have been detected.
        """
        bench, tests = self._bench, self._tests
        sample, test = min(tests, key=lambda pair: pair[1].p_value)
        level = bench.judged_at(TESTS, sample.word, test.p_value)
        checked = sum(len(each.actual) for each, _ in tests)
        rejected = test.p_value <= level
        # Only the rejecting coordinate matters: another coordinate that survives resets does not explain the rejection.
        follows_past = rejected and bool(self.surviving[test.coordinate])
        facts = _compared_facts(bench, [each for each, _ in tests], len(sample.actual))
        if rejected:
            why = state(ReasonCode.START_FOLLOWS_PAST.value) if follows_past else None
            facts = dataclasses.replace(facts, violations=1, unattributed=why)
        verdict, reason = decide(facts)
        result = PropertyResult(
            name,
            verdict,
            "distribution",
            checked=checked,
            violations=facts.violations,
            p_value=test.p_value,
            unit=START.unit,
            max_residual=test.statistic,
            notes=(state("resets_compared", pairs=checked), state("tested_at_level", level=level)),
            reason=reason,
            facts=facts,
        )
        if verdict == "failed":
            stopped = self._say_stopped(len(sample.actual))
            return _describe_rejection(result, bench.pairs, sample, test, self._coordinates, stopped)
        if verdict == "undecided":
            return result
        region = state("region_resets", pairs=checked)
        # The least sensitive element determines the excluded violations.
        detectable = max(each.detectable(bench.rng("promises of starts")) for _, each in tests)
        bound = shift_bound(detectable, checked, bench.options.alpha, unit="standard deviations", region=region)
        return dataclasses.replace(result, bound=bound)

    def _say_stopped(self, drawn: int) -> tuple[Statement, ...]:
        """The note that resets stopped early, if they did although time was left."""
        if drawn >= self.planned or not self._bench.in_time():
            return ()
        return (state("resets_stopped", drawn=drawn, planned=self.planned),)

    @functools.cached_property
    def surviving(self) -> npt.NDArray[np.bool_]:
        """The start coordinates that depend on earlier episodes."""
        with self._bench.clock.overtime():  # a few resets decide what a rejection means
            return survives_reset(self._bench)


def _compared_facts(bench: Workbench, samples: list[StartSample], drawn: int) -> Facts:
    """The facts about the comparison, without the outcome of the test; `drawn` pairs under the tested element."""
    values = np.concatenate([side for sample in samples for side in (sample.expected, sample.actual)])
    outcomes = outcomes_of(values)
    # Reduced observations contain numbers only, so unreduced ones show whether there were any.
    hidden = not any(sample.shows_numbers for sample in samples)
    return Facts(
        checked=drawn,
        least=_FEWEST_JUDGED,
        quantity=START.noun,
        finite=outcomes.finite and not hidden,
        stuck=outcomes.stuck or "NaN",
        moved=bench.moved,
        constant=outcomes.constant,
        silent=bench.silent("start"),
        interrupted=bench.interrupted,
        time_up=not bench.in_time(),
    )


def _test(
    sample: StartSample,
    coordinates: Coordinates,
    sizes: Floats,
    level: float,
    rng: np.random.Generator,
    *,
    sampled: bool,
) -> SwapTest:
    epsilon = shown_precision(coordinates, sample.actual).epsilon
    pooled = np.concatenate([sample.expected, sample.actual])
    # 32 rounding units: images that differ by a few units due to rounding are the same value.
    tie = bulk(pooled, epsilon).tie(epsilon, 32)
    # Starts that differ only by rounding, relative to the coordinate's usual size, are one start: sin(pi) equals 0.
    elsewhere = 32 * epsilon * sizes
    tie = np.where(np.ptp(finite(pooled), axis=0) <= elsewhere, np.maximum(tie, elsewhere), tie)
    chosen = [int(j) for j in np.flatnonzero(pooled.max(axis=0) != pooled.min(axis=0))] or [0]
    chosen = distinct_columns(pooled, chosen) if len(chosen) > _WIDEST_PRODUCTS else chosen
    sides, names = (sample.expected[:, chosen], sample.actual[:, chosen]), [coordinates.names[j] for j in chosen]
    test = swap_test(
        *sides,
        names,
        level=level,
        rng=rng,
        tie=tie[:, chosen],
        sampled=sampled,
        widest=_WIDEST_PRODUCTS,
    )
    places = tuple(chosen[j] for j in test.coordinates)
    effect = None if test.named is None else measure_effect(test.named, names, sides, sides, ())
    return dataclasses.replace(test, coordinate=chosen[test.coordinate], coordinates=places, effect=effect)


def _describe_rejection(
    result: PropertyResult,
    pairs: Pairs,
    sample: StartSample,
    test: SwapTest,
    coordinates: Coordinates,
    stopped: tuple[Statement, ...],
) -> PropertyResult:
    effect, label = test.effect, pairs.bound.label(sample.word)
    if effect is None:
        raise ValueError("a test that rejects has a feature")
    causes = [
        *_explain_centre(pairs, sample, test.coordinate, coordinates),
        *_explain_exchanges(pairs, sample, coordinates),
    ]
    if order := flattened_order(pairs):
        causes.append(order)
    differing = [coordinates.names[i] for i in test.coordinates[:8]] or [test.feature]
    causes.append(state("SYM040", coordinates=differing))
    example = Counterexample(
        group_element=label,
        observation=None,
        state=None,
        action=None,
        expected=effect.expected,
        actual=effect.actual,
        residual=abs(effect.actual - effect.expected),
        where=effect.place,
    )
    difference = state(
        "start_differs",
        feature=test.feature,
        element=label,
        p_value=test.p_value,
        actual=effect.actual,
        expected=effect.expected,
    )
    return dataclasses.replace(
        result,
        violations=1,
        max_residual=example.residual,
        unit=effect.unit,
        counterexample=example,
        causes=tuple(causes),
        notes=(difference, *result.notes, *stopped, state("compared_over_resets", statistic=effect.statistic)),
    )


def _explain_centre(pairs: Pairs, sample: StartSample, j: int, coordinates: Coordinates) -> list[Statement]:
    """The centre of the start distribution, compared with the fixed point of the map."""
    linear = linear_map(lambda obs: pairs.bound.observation(sample.word, obs), pairs.stepper.first_obs)
    if linear is None:
        return []
    matrix, offset = linear
    # Only x -> c - x has a single fixed point.
    if matrix[j, j] != -1 or np.count_nonzero(matrix[j]) != 1:
        return []
    fixed, mean = float(offset[j] / 2), float(np.mean(finite(sample.actual[:, j])))
    spread = float(np.std(finite(sample.actual[:, j]))) / np.sqrt(len(sample.actual))
    # Within three standard errors, the sample does not distinguish the two.
    if abs(mean - fixed) <= 3 * spread:
        return []
    return [state("SYM041", coordinate=coordinates.names[j], centre=_round_to_error(mean, spread), fixed=fixed)]


def _explain_exchanges(pairs: Pairs, sample: StartSample, coordinates: Coordinates) -> list[Statement]:
    """Two coordinates that the map exchanges although their start distributions differ."""
    linear = linear_map(lambda obs: pairs.bound.observation(sample.word, obs), pairs.stepper.first_obs)
    if linear is None:
        return []
    matrix, _ = linear
    means = np.mean(finite(sample.actual), axis=0)
    spreads = np.std(finite(sample.actual), axis=0)
    causes = []
    for i in range(len(matrix)):
        sources = np.flatnonzero(matrix[i])
        if len(sources) != 1 or sources[0] == i or (matrix[sources[0], i] and sources[0] < i):
            continue  # fixed, or an exchange that was already handled from the other side
        k = int(sources[0])
        named = {"source": coordinates.names[k], "image": coordinates.names[i], "exchanged": bool(matrix[k, i])}
        error = float(np.hypot(spreads[i], spreads[k]) / np.sqrt(len(sample.actual)))
        # Six standard errors: exceeded by chance in one of 500 million coordinates.
        if abs(matrix[i, k] * means[k] - means[i]) > 6 * error:
            pair = [_round_to_error(float(value), error) for value in (means[k], means[i])]
            causes.append(state("SYM042", **named, source_mean=pair[0], image_mean=pair[1]))
        elif abs(spreads[i] - spreads[k]) > 0.2 * max(spreads[i], spreads[k]):
            pair = [float(spreads[k]), float(spreads[i])]
            causes.append(state("SYM046", **named, source_deviation=pair[0], image_deviation=pair[1]))
    return causes[:2]


def _round_to_error(value: float, error: float) -> float:
    """A mean, rounded to the decimals that its standard error supports."""
    decimals = max(0, -math.floor(math.log10(max(error, 1e-12))) - 1)
    return round(value, decimals) + 0.0


register_method("start")
