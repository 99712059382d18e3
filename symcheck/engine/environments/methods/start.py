"""The start distribution: do reset observations and images of reset observations have the same law?

Independent resets are paired, one of each pair is mapped, and the swap test compares the two. The answer names the
coordinate and the moment: "mean of observation[0]: -0.5 against -0.547".
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.engine.budget import Handed
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.workbench import Workbench, shift_bound
from symcheck.engine.environments.causes.diagnosis import flattened_order
from symcheck.engine.environments.controls.start_memory import survives_reset
from symcheck.engine.environments.subject.coordinates import Coordinates, Vector, finite
from symcheck.engine.environments.subject.placement import Word
from symcheck.engine.environments.subject.probing import linear_map
from symcheck.engine.environments.subject.reduction import reduction
from symcheck.engine.results import Counterexample, PropertyResult
from symcheck.engine.sequential import Look, Looked, looks
from symcheck.engine.statistics import SwapTest, swap_test

_FEWEST, _MOST = 500, 4000  # pairs of resets
_FEWEST_JUDGED = 100  # below, running out of time is no evidence
_FEWEST_DRAWN = 20  # whatever the time
_CHUNK = 250  # resets that are held as they came: observations may be images
_WIDEST = 64  # coordinates beyond which random sums of coordinates are tested as well as a selection
START = "initial"  # the name of its tests in the run's budget
SURVIVES = (
    "the same seed starts elsewhere after other episodes, so that starts follow what was played before: something "
    "survives reset() (running statistics, a curriculum). Decide with it frozen or left out"
)
_UNIT = "standardised difference of the two samples"


@dataclasses.dataclass(frozen=True)
class StartSample:
    """Resets under one element.

    Attributes:
        word: the element g.
        expected: images of reset observations, shape (n, dim).
        actual: other reset observations, shape (n, dim).
    """

    word: Word
    expected: Vector
    actual: Vector


class Resets:
    """Pairs of resets under one element, drawn a look at a time; each reset is used once: pairs are independent.

    Args:
        bench: the environment.
        word: the element, under which one reset of each pair is mapped.
    """

    def __init__(self, bench: Workbench, word: Word) -> None:
        self._bench, self._word = bench, word
        self._view = reduction(bench.pairs.stepper.codec)
        self._images: list[Vector] = []
        self._starts: list[Vector] = []
        self.drawn = 0

    def draw(self, until: int) -> None:
        """Reset until there are so many pairs, or until the time is up; 20 pairs in any case."""
        while self.drawn < until:
            observations = self._reset(min(_CHUNK, 2 * (until - self.drawn)))
            if not observations:
                return
            moved = self._bench.pairs.observation_images(self._word, observations[::2])
            codec = self._bench.pairs.stepper.codec
            for side, some in ((self._images, moved), (self._starts, observations[1::2])):
                side.append(self._view.apply(codec.flatten_batch(some)))
            self.drawn += len(observations) // 2

    def _reset(self, count: int) -> list[Any]:
        """Reset observations, an even number of them; fewer where the time runs out."""
        found: list[Any] = []
        while len(found) < count and (self._bench.in_time() or self.drawn + len(found) // 2 < _FEWEST_DRAWN):
            found += [self._bench.pairs.stepper.reset(), self._bench.pairs.stepper.reset()]
        return found

    def sample(self) -> StartSample:
        """What was drawn so far."""
        sides = [np.concatenate(side) for side in (self._images, self._starts)]
        return StartSample(self._word, *(self._view.coordinates.on_one_branch(side) for side in sides))


class StartEvidence:
    """Evidence about the start distribution, gathered once and only when it is asked for.

    Resets stop at the look at which some element is clearly refuted: no other can save the claim.

    Args:
        bench: the environment, with the budget of the run; its tests are announced there.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        if bench.pairs.bound.symmetry.initial:
            bench.budget.add(START, self._handed, planned=len(bench.words))

    @functools.cached_property
    def planned(self) -> int:
        """Pairs of resets under each element, where nothing stops them early."""
        count = int(np.clip(self._bench.options.samples // 4, _FEWEST, _MOST))
        return max(200, count // max(1, len(self._bench.words)) + 1)

    @functools.cached_property
    def _tested(self) -> list[tuple[StartSample, SwapTest]]:
        """Every element's resets and test, as far as they went."""
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
            if not look.last and not bench.in_time():
                continue  # the last look is at what there is
            tested = [self._look(resets[word].sample(), look, looked, rng) for word in words]
            if any(looked.refuted(word) for word in words):
                break
        report(1, 1)
        return tested

    def _look(
        self, sample: StartSample, look: Look, looked: Looked, rng: np.random.Generator
    ) -> tuple[StartSample, SwapTest]:
        """One look at one element's resets; the p-value is that of all its looks so far."""
        coordinates = reduction(self._bench.pairs.stepper.codec).coordinates
        test = _test(sample, coordinates, self._bench.level * look.weight, rng, sampled=look.last)
        return sample, dataclasses.replace(test, p_value=looked.add(sample.word, test.p_value, look))

    def _handed(self) -> dict[Word, Handed]:
        if self._bench.interrupted:
            return {}
        return {sample.word: Handed(test.p_value, test.live) for sample, test in self._tested}

    def judge(self, name: str) -> PropertyResult:
        """The verdict on the start distribution.

        Args:
            name: the property's name.

        Returns:
            failed where some element's test rejects, else passed with the shift that would have been found.
        """
        judged = _judged(name, self._bench, self._tested, self.planned)
        if judged.verdict == "failed" and self.surviving[self._coordinate]:
            detail = f"Undecided: {SURVIVES}. {judged.detail}"
            return dataclasses.replace(
                judged, verdict="undecided", violations=0, counterexample=None, causes=(), notes=(detail,)
            )
        return judged

    @functools.cached_property
    def surviving(self) -> npt.NDArray[np.bool_]:
        """Which coordinates of the start follow what was played before."""
        return survives_reset(self._bench)

    @property
    def _coordinate(self) -> int:
        """The coordinate in which starts differ most clearly."""
        return min((test for _, test in self._tested), key=lambda test: test.p_value).coordinate


def _judged(name: str, bench: Workbench, tested: list[tuple[StartSample, SwapTest]], planned: int) -> PropertyResult:
    coordinates = reduction(bench.pairs.stepper.codec).coordinates
    sample, test = min(tested, key=lambda one: one[1].p_value)
    level = bench.judged_at(START, sample.word, test.p_value)
    checked = sum(len(one.actual) for one, _ in tested)
    region = f"{checked:,} independent pairs of resets"
    result = PropertyResult(
        name,
        "passed",
        "distribution",
        checked=checked,
        p_value=test.p_value,
        unit=_UNIT,
        max_residual=test.statistic,
        notes=(f"{region}, each with one member mapped; swap test at level {level:.2g}.",),
    )
    if not test.p_value <= level and len(sample.actual) < _FEWEST_JUDGED:
        why = "Undecided: the time budget ran out; allow more with --max-time."
        return dataclasses.replace(
            result,
            verdict="undecided",
            notes=(
                f"{why}",
                *result.notes,
            ),
        )
    if not test.p_value <= level:
        detectable = max(one.detectable for _, one in tested)
        bound = shift_bound(detectable, checked, bench.options.alpha, unit="standard deviations", region=region)
        return dataclasses.replace(result, bound=bound)
    if (drawn := len(sample.actual)) < planned and bench.in_time():
        saved = f"Resets stopped at {drawn:,} of {planned:,} pairs under each generator, as the answer was clear."
        result = dataclasses.replace(
            result,
            notes=(
                *result.notes,
                f"{saved}",
            ),
        )
    return _failed(result, bench.pairs, sample, test, coordinates)


def _test(
    sample: StartSample, coordinates: Coordinates, level: float, rng: np.random.Generator, *, sampled: bool
) -> SwapTest:
    scale = np.abs(finite(np.concatenate([sample.expected, sample.actual]))).max(axis=0, initial=0.0)
    # 32 rounding units: images that rounding moved by a unit or two are the same value.
    tie = 32 * coordinates.epsilon * scale
    chosen = _chosen(sample, rng)
    return _renumbered(
        swap_test(
            sample.expected[:, chosen],
            sample.actual[:, chosen],
            [coordinates.names[j] for j in chosen],
            level=level,
            rng=rng,
            tie=tie[chosen],
            sampled=sampled,
        ),
        chosen,
    )


def _chosen(sample: StartSample, rng: np.random.Generator) -> list[int]:
    """All coordinates, or a random selection of those that vary where there are many (images)."""
    dim = sample.actual.shape[1]
    if dim <= _WIDEST:
        return list(range(dim))
    pooled = np.concatenate([sample.expected, sample.actual])
    varying = np.flatnonzero(pooled.max(axis=0) != pooled.min(axis=0))
    return sorted(int(j) for j in rng.permutation(varying)[:_WIDEST]) or [0]


def _renumbered(test: SwapTest, chosen: list[int]) -> SwapTest:
    places = tuple(chosen[j] for j in test.coordinates)
    return dataclasses.replace(test, coordinate=chosen[test.coordinate], coordinates=places)


def _failed(
    result: PropertyResult, pairs: Pairs, sample: StartSample, test: SwapTest, coordinates: Coordinates
) -> PropertyResult:
    j = test.coordinate
    expected, actual = float(np.mean(finite(sample.expected[:, j]))), float(np.mean(finite(sample.actual[:, j])))
    label = pairs.bound.label(sample.word)
    causes = [*_centre(pairs, sample, j, coordinates), *_exchanged(pairs, sample, coordinates)]
    if order := flattened_order(pairs):
        causes.append(order)
    others = ", ".join(coordinates.names[i] for i in test.coordinates[:8]) or test.feature
    causes.append(f"the start distribution is not symmetric in {others}; the dynamics are judged on their own")
    text = f"initial: {test.feature} differs under {label}"
    if test.moment == "mean":
        text += f": {actual:.4g} at reset, {expected:.4g} after the map"
    example = Counterexample(
        group_element=label,
        observation=None,
        state=None,
        action=None,
        expected=expected,
        actual=actual,
        residual=abs(actual - expected),
        where=coordinates.names[j],
    )
    return dataclasses.replace(
        result,
        verdict="failed",
        violations=1,
        counterexample=example,
        causes=tuple(causes),
        notes=(
            f"{text} (p = {test.p_value:.2g}).",
            *result.notes,
            "Expected and actual are means over resets.",
        ),
    )


def _centre(pairs: Pairs, sample: StartSample, j: int, coordinates: Coordinates) -> list[str]:
    """Where the start is centred, against the point that the map keeps."""
    linear = linear_map(lambda obs: pairs.bound.observation(sample.word, obs), pairs.stepper.first_obs)
    if linear is None:
        return []
    matrix, offset = linear
    if matrix[j, j] != -1 or np.count_nonzero(matrix[j]) != 1:
        return []
    fixed, mean = offset[j] / 2, float(np.mean(finite(sample.actual[:, j])))
    spread = float(np.std(finite(sample.actual[:, j]))) / np.sqrt(len(sample.actual))
    if abs(mean - fixed) <= 3 * spread:
        return []
    return [f"centre {_rounded(mean, spread)} of {coordinates.names[j]} is not {fixed:.4g}, which the map keeps"]


def _exchanged(pairs: Pairs, sample: StartSample, coordinates: Coordinates) -> list[str]:
    """Two coordinates that the map exchanges although they start differently."""
    linear = linear_map(lambda obs: pairs.bound.observation(sample.word, obs), pairs.stepper.first_obs)
    if linear is None:
        return []
    matrix, _ = linear
    means = np.mean(finite(sample.actual), axis=0)
    spreads = np.std(finite(sample.actual), axis=0)
    found = []
    for i in range(len(matrix)):
        sources = np.flatnonzero(matrix[i])
        if len(sources) != 1 or sources[0] == i or (matrix[sources[0], i] and sources[0] < i):
            continue  # unmoved, or an exchange that was met from its other side
        k = int(sources[0])
        moved = matrix[i, k] * means[k]
        names = coordinates.names
        if abs(moved - means[i]) > 6 * np.hypot(spreads[i], spreads[k]) / np.sqrt(len(sample.actual)):
            error = float(np.hypot(spreads[i], spreads[k]) / np.sqrt(len(sample.actual)))
            said = [_rounded(float(value), error) for value in (means[k], means[i])]
            how = "yet they are exchanged" if matrix[k, i] else "yet the map sends one to the other"
            found.append(f"{names[k]} has mean {said[0]}, {names[i]} mean {said[1]}, {how}: check their order")
        elif abs(spreads[i] - spreads[k]) > 0.2 * max(spreads[i], spreads[k]):
            found.append(
                f"{names[k]} has standard deviation {spreads[k]:.3g}, {names[i]} {spreads[i]:.3g}, "
                "yet the map sends one to the other"
            )
    return found[:2]


def _rounded(value: float, error: float) -> str:
    """A mean with as many decimals as its standard error allows."""
    decimals = max(0, -math.floor(math.log10(max(error, 1e-12))) - 1)
    return f"{round(value, decimals) + 0.0:g}"
