"""The paired method: set s and g s, step a and g a, compare. For environments that repeat themselves.

Cases are drawn with replacement from the pool, so that "no violation in n" bounds the violating fraction of the pool's
distribution. Every violation is looked at again before anybody is accused: it must repeat, and it must exceed what a
nudge of the state by one unit in the last place can do there.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.engine.environments import diagnosis
from symcheck.engine.environments.between import Between, between
from symcheck.engine.environments.coordinates import Vector
from symcheck.engine.environments.edges import Tie, hidden, one_sided_tie, threshold_cases
from symcheck.engine.environments.evidence import STOPPED, UNITS, Workbench
from symcheck.engine.environments.minimise import minimise, simplest
from symcheck.engine.environments.pairs import Case, Comparison, Measurement, Part, joined
from symcheck.engine.environments.placement import Situation
from symcheck.engine.environments.pool import draw_actions
from symcheck.engine.environments.screen import Screen, Screened, Tally, agrees
from symcheck.engine.environments.sizes import approximate_size, per_coordinate
from symcheck.engine.environments.start import StartEvidence
from symcheck.engine.environments.tolerance import Tolerance
from symcheck.engine.environments.trajectory import TrajectoryEvidence
from symcheck.engine.environments.value_gap import ValueGap, paired_gap
from symcheck.engine.options import DEFAULT_SAMPLES
from symcheck.engine.results import Counterexample, PropertyResult, Verdict
from symcheck.engine.statistics import largest_fraction
from symcheck.envs.models.model import BatchModel

BY_HAND = 2_000  # pairs that the environment steps itself where it has a batched form
_MANY = 100_000  # pairs in all where it has one, unless fewer than the default are asked for
Enough = Callable[[Sequence[Measurement], int], bool]
_BATCH = 500
_SMALL_BATCH = 50  # where there is a time budget to keep
_STEPPING, _SEARCHING = 0.7, 0.8  # of the time budget; the rest is for second looks, starts and counterexamples
_LOOKED_AT = 24  # confirmed violations are enough of a verdict
_MOST_LOOKED_AT = 600  # suspicious cases that are nudged before the method says it cannot tell
_FEWEST = 100  # checks below which running out of time is no evidence (or a tenth of those asked for)


@dataclass(frozen=True)
class _Looked:
    """Suspicious cases after a second look: rows of the comparison."""

    confirmed: list[int]
    rounding: list[int]
    unrepeatable: list[int]
    unseen: list[int]

    @property
    def representative(self) -> bool:
        """Whether those looked at speak for the unseen: many, and rounding in every one of them."""
        return len(self.rounding) >= _MOST_LOOKED_AT and not self.confirmed and not self.unrepeatable

    def largest_violating_fraction(self, drawn: int, alpha: float) -> float:
        """The largest fraction of pairs that may violate the claim at level alpha, where some suspects are unseen.

        Violations are among the suspects. Their share of all pairs is at most p, and of them at most a fraction q
        violates, as none of those picked at random did (half of those looked at were): each at level alpha / 2.
        """
        suspects = len(self.rounding) + len(self.unseen)
        picked = len(self.rounding) // 2
        share = largest_fraction(min(suspects, drawn), drawn, alpha / 2)
        return share * largest_fraction(0, picked, alpha / 2)


@dataclass(frozen=True)
class _Examined:
    """One property's pairs: both sides, how far apart and how far allowed, and what a second look found."""

    comparison: Comparison
    residual: Vector
    limits: Vector
    looked: _Looked
    tie: Tie | None

    @property
    def refuted(self) -> bool:
        """Whether some pair violates the property."""
        return bool(self.looked.confirmed) or self.tie is not None


class PairedEvidence:
    """Evidence by stepping both sides of every pair.

    Args:
        bench: the environment, the pool and the options.
        repeats: how often a violation must repeat on both sides. Where outcomes are random after all, with probability
            p on both sides alike, a false violation repeats with probability at most 4^-repeats.
        model: the environment's batched form, believed only where it agrees bit for bit with what is stepped here.
        start: evidence about the start distribution, for a second opinion by whole episodes where states that are set
            may not be whole; None for no second opinion.
        enough: asked after each batch with (the pairs stepped so far, how many there will be) whether to stop there.
        drawn: pairs that were stepped already, to be judged as they are; None to draw them.
    """

    method = "paired"

    def __init__(
        self,
        bench: Workbench,
        *,
        repeats: int = 3,
        model: BatchModel | None = None,
        start: StartEvidence | None = None,
        enough: Enough | None = None,
        drawn: Measurement | None = None,
    ) -> None:
        self.bench = bench
        self._enough = enough
        self._given = drawn
        self.stopped = False
        self._model = model
        self.repeats = repeats
        self.pairs = bench.pairs
        self._looked: dict[Part, _Examined] = {}
        # Where setting a state may lose some of it, whole episodes are asked as well.
        second = start is not None and bool(bench.caution)
        self._episodes = TrajectoryEvidence(bench, start, needed=self._unrefuted) if second and start else None

    @functools.cached_property
    def measured(self) -> Measurement:
        """Both sides of every case that the environment stepped: drawn, suspicious to the screen, and at edges."""
        parts = [self.drawn]
        if self.screened is not None and self.screened.suspects is not None:
            parts.append(self.screened.suspects)
        if not self._unsought:
            rng = self.bench.rng("edges")
            edges = threshold_cases(self.pairs, self.drawn, rng, lambda: self.bench.in_time(_SEARCHING))
            parts += [self.pairs.measure(edges)] if edges else []
        return joined(parts) or self.drawn

    @functools.cached_property
    def _unsought(self) -> str:
        """Why thresholds were not sought on purpose, a clause for the evidence; "" where they were."""
        if self._given is not None or self.stopped:
            return "a violation was found before"
        if self.bench.interrupted or not self.bench.in_time(_STEPPING):
            return "the time was up"
        return hidden(self.pairs, self.drawn.cases[0].situation.state)

    @functools.cached_property
    def _between(self) -> Between:
        """What was found at thresholds between visited states, where no box of states is known."""
        if not self._unsought or self.bench.interrupted or self.pairs.stepper.batched:
            return Between()
        searching = functools.partial(self.bench.in_time, _SEARCHING)
        if not searching():
            return Between()
        return between(self.pairs, self.drawn, self.bench.words, self.bench.rng("between"), searching)

    @functools.cached_property
    def drawn(self) -> Measurement:
        """Pairs drawn from the pool and stepped by the environment itself, one state at a time."""
        if self._given is not None:
            return self._given
        count, rng = self.bench.options.samples, self.bench.rng("cases")
        if self._model is None:
            return self._stepped(self._cases(count, rng))
        some = self._stepped(self._cases(min(count, BY_HAND), rng))
        if self.stopped or agrees(self._model, some):
            return some
        self._model = None  # it is none of this environment
        rest = count - len(some.cases)
        return joined([some, self._stepped(self._cases(rest, rng))]) or some if rest > 0 else some

    @functools.cached_property
    def screened(self) -> Screened | None:
        """What a batched form of the environment showed on many more pairs; None where there is none to be believed."""
        few = len(self.drawn.cases)  # decides whether the batched form is believed
        asked = self.bench.options.samples
        # The bound counts what is drawn here: fewer than were stepped by hand would exclude less than those did.
        count = max(asked, _MANY) - few if asked >= DEFAULT_SAMPLES else max(asked - few, few)
        if self._model is None or asked <= few or self.bench.interrupted or self.stopped:
            return None
        screen = Screen(self.bench, self._model, self.tolerance, self.drawn)
        found = screen.run(count, lambda: self.bench.in_time(_STEPPING))
        if found.suspects is not None and not agrees(self._model, found.suspects):
            return None  # where it matters the batched form is another environment
        return found if found.checked else None

    def _stepped(self, cases: list[Case]) -> Measurement:
        report = self.bench.progress("stepping both sides")
        parts: list[Measurement] = []
        try:
            size = _BATCH if self.bench.deadline is None else _SMALL_BATCH
            for start in range(0, len(cases), size):
                if not self.bench.in_time(_STEPPING):
                    break
                parts.append(self.pairs.measure(cases[start : start + size]))
                report(min(start + size, len(cases)), len(cases))
                if self._enough is not None and self._enough(parts, len(cases)):
                    self.stopped = True
                    break
        except KeyboardInterrupt:
            if not parts:
                raise
            self.bench.interrupted, self.bench.diagnose = True, False  # judge what there is, and be quick
        return joined(parts) or self.pairs.measure(cases[:1])

    def _cases(self, count: int, rng: np.random.Generator) -> list[Case]:
        situations = self.bench.pool.situations
        picked = rng.integers(0, len(situations), size=count)
        letters = rng.integers(0, len(self.bench.words), size=count)
        actions = draw_actions(self.pairs.stepper.env.action_space, count, rng)
        words = [self.bench.words[letter] for letter in letters]
        return self.pairs.cases(words, [situations[i] for i in picked], actions)

    @functools.cached_property
    def _from_screen(self) -> npt.NDArray[np.bool_]:
        """Which rows of `measured` are cases that the screen found suspicious, rather than drawn ones or edges."""
        rows = np.zeros(len(self.measured.cases), dtype=np.bool_)
        if self.screened is not None and self.screened.suspects is not None:
            rows[len(self.drawn.cases) : len(self.drawn.cases) + len(self.screened.suspects.cases)] = True
        return rows

    @property
    def checked(self) -> int:
        """Pairs that were stepped, each counted once."""
        return int((~self._from_screen).sum()) + (0 if self.screened is None else self.screened.checked)

    @functools.cached_property
    def region(self) -> str:
        """Where the pairs were drawn, in words."""
        return self.bench.pool.region() if self.screened is None else self.screened.region

    @functools.cached_property
    def _ends(self) -> int:
        """Pairs whose left side ends the episode."""
        stepped = int(self.measured.left.terminated[~self._from_screen].sum())
        return stepped + (0 if self.screened is None else self.screened.ends)

    def _region_of(self, part: Part) -> str:
        """Where the pairs of one property were drawn, and where they were not."""
        if part != "termination" or not self._ends or not self._unsought:
            return self.region
        if self._between.count:
            return f"{self.region}; thresholds were sought at {self._between.count:,} states set between visited ones"
        return f"{self.region}; thresholds between ending and going on were not sought on purpose: {self._unsought}"

    def share(self, part: Part) -> float:
        """The fraction of all pairs that exceed their tolerance."""
        comparison = self.pairs.comparison(part, self.measured)
        over = np.asarray((~(comparison.residual() <= self.tolerance.of(comparison))).any(axis=1))
        return (int(over[~self._from_screen].sum()) + self._tally(part).suspicious) / self.checked

    def value_gap(self, failed: set[str], discount: float) -> ValueGap:
        """What the violations cost in value; see `symcheck.engine.environments.value_gap`."""
        return paired_gap(self, failed, discount)

    def largest(self, part: Part, unit: Vector | float = 1.0) -> float:
        """The largest residual of any coordinate seen, in units given by coordinate."""
        examined = self._examined(part)
        spread = np.where(np.asarray(unit) > 0, unit, 1.0)
        worst = self._tally(part).worst
        screened = float((worst / spread).max()) if worst.size else 0.0
        return max(float((examined.residual / spread).max()), screened)

    def _tally(self, part: Part) -> Tally:
        return Tally() if self.screened is None else self.screened.tallies.get(part, Tally())

    def _with_screened(self, part: Part, residual: Vector, limits: Vector) -> tuple[Vector, Vector]:
        """The residuals with one row more: the largest that the screen saw and found within tolerance."""
        tally = self._tally(part)
        if tally.largest.shape != residual.shape[1:]:
            return residual, limits
        return np.concatenate([residual, tally.largest[None]]), np.concatenate([limits, tally.limits[None]])

    @functools.cached_property
    def tolerance(self) -> Tolerance:
        """Tolerances, with the run's typical conditioning measured."""
        tolerance = Tolerance(self.pairs, self.bench.noise)
        tolerance.learn(("reward", "transition"), self.drawn, self.bench.rng("nudge"))
        return tolerance

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property; see `Evidence`."""
        seen = self._examined(part)
        result = self._summary(name, part, seen)
        if seen.refuted:
            return self._failed(result, part, seen.comparison, seen.looked, seen.tie)
        return self._not_failed(result, part, seen.looked)

    def _examined(self, part: Part) -> _Examined:
        if part not in self._looked:
            comparison = self.pairs.comparison(part, self.measured)
            residual, limits = comparison.residual(), self.tolerance.of(comparison)
            looked = self._look_again(part, comparison, residual, limits)
            tie = self._tie(part, comparison, looked)
            self._looked[part] = _Examined(comparison, residual, limits, looked, tie)
        return self._looked[part]

    def refutes(self, parts: Sequence[Part]) -> bool:
        """Whether some pair violates one of these properties."""
        return any(self._examined(part).refuted for part in parts)

    def _unrefuted(self, part: Part) -> bool:
        return not self._examined(part).refuted

    def _look_again(self, part: Part, comparison: Comparison, residual: Vector, limits: Vector) -> _Looked:
        over = ~(residual <= limits)
        suspects = [int(row) for row in np.flatnonzero(over.any(axis=1))]
        rng = self.bench.rng(f"confirm {part}")
        suspects = _worst_and_random(suspects, residual, limits, rng)
        confirmed: list[int] = []
        rounding: list[int] = []
        unrepeatable: list[int] = []
        seen = 0
        for start in range(0, min(len(suspects), _MOST_LOOKED_AT), _LOOKED_AT):
            if len(confirmed) >= _LOOKED_AT:
                break
            rows = suspects[start : start + _LOOKED_AT]
            seen += len(rows)
            stable, real = self._verify(part, comparison, rows, residual, rng)
            for row, repeats, exceeds in zip(rows, stable, real, strict=True):
                (unrepeatable if not repeats else confirmed if exceeds else rounding).append(row)
        return _Looked(confirmed, rounding, unrepeatable, suspects[seen:])

    def _verify(
        self, part: Part, comparison: Comparison, rows: list[int], residual: Vector, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Whether cases repeat, and whether their residual exceeds what a nudge does there."""
        cases = [self.measured.cases[row] for row in rows]
        part_of = Comparison(part, comparison.coordinates, comparison.expected[rows], comparison.actual[rows])
        moved = self.tolerance.nudges(part, cases, rng)
        local = self.tolerance.of(part_of, 0.0 if moved is None else moved)
        drift = np.zeros_like(local)
        for _ in range(self.repeats):
            again = self.pairs.comparison(part, self.pairs.measure(cases))
            for one, two in ((part_of.expected, again.expected), (part_of.actual, again.actual)):
                drift = np.maximum(drift, comparison.coordinates.residual(one, two))
        stable = (drift <= np.maximum(local, self.tolerance.of(part_of))).all(axis=1)
        return np.asarray(stable), np.asarray((~(residual[rows] <= local)).any(axis=1))

    def _tie(self, part: Part, comparison: Comparison, looked: _Looked) -> Tie | None:
        if part != "termination" or looked.confirmed:
            return None
        transition = self.pairs.comparison("transition", self.measured)
        for word in self.bench.words:
            rows = [row for row in looked.rounding if self.measured.cases[row].word == word]
            tie = one_sided_tie(self.pairs, word, transition, comparison, rows)
            if tie is not None:
                return tie
        return None

    def _summary(self, name: str, part: Part, seen: _Examined) -> PropertyResult:
        comparison, residual, limits, looked = seen.comparison, seen.residual, seen.limits, seen.looked
        violations = len(looked.confirmed) + len(looked.unseen) + self._tally(part).not_asked
        judged = np.ones(len(residual), dtype=bool)
        judged[looked.rounding] = False
        if not judged.any():
            judged[:] = True
        counted, compared = self._with_screened(part, residual[judged], limits[judged])
        over = ~(counted <= compared)
        if over[:, self._visible(part)].any():  # what the agent sees is shown before what it does not
            over[:, self._visible(part).stop or over.shape[1] :] = False
        ranked = np.where(over, counted, 0.0) if over.any() else counted
        row, column = np.unravel_index(int(np.argmax(ranked)), counted.shape)
        return PropertyResult(
            name,
            "passed",
            self.method,
            checked=self.checked,
            violations=violations,
            max_residual=float(counted[row, column]),
            tolerance=float(compared[row, column]),
            unit=UNITS[part],
            detail=self._detail(part, looked),
            per_coordinate=per_coordinate(comparison, counted, compared),
        )

    def _detail(self, part: Part, looked: _Looked) -> str:
        screened = self.screened
        text = f"{self.checked:,} pairs drawn from {self._region_of(part)}"
        if part == "termination":
            text += f"; {self._ends:,} of the pairs end the episode"
        if screened is not None:
            text += (
                f"; {screened.checked:,} of them stepped by {screened.source}, whose numbers were, bit for bit, those "
                f"of the environment on {2 * len(self.drawn.cases):,} steps of this run"
            )
        if looked.rounding:
            text += (
                f"; {len(looked.rounding)} differ by no more than one unit in the last place of the state can do there"
            )
        if looked.unseen and looked.representative:
            text += (
                f", the worst and as many picked at random; {len(looked.unseen):,} more like them were not looked at"
            )
        return f"{text}. Tolerance: {_ORIGIN[part]}."

    def _failed(
        self, result: PropertyResult, part: Part, comparison: Comparison, looked: _Looked, tie: Tie | None
    ) -> PropertyResult:
        rows = [tie.row] if tie is not None else looked.confirmed
        case = self._shrunk(part, rows, tie)
        example, seen = self.counterexample(part, case)
        causes = diagnosis.causes(self, part, looked.confirmed, case, seen, tie) if self.bench.diagnose else []
        if approximate := approximate_size(part, comparison, result):
            result = _with(result, detail=f"{approximate} {result.detail}")
        if tie is not None:
            result = _with(result, violations=len(looked.rounding), max_residual=example.residual)
        return _with(
            result,
            verdict="failed",
            counterexample=example,
            causes=tuple(causes),
            detail=f"{result.detail} Shrunk from {result.violations:,} violating pairs.",
        )

    def _shrunk(self, part: Part, rows: list[int], tie: Tie | None) -> Case:
        cases = [self.measured.cases[row] for row in rows]
        if tie is not None:
            return cases[0]
        visible = [case for case in cases if self.violates(part, case, visibly=True)]
        seen = bool(visible)  # what the agent sees is shown before what it does not
        start = simplest(self.pairs, visible or cases)
        small = minimise(self.pairs, start, lambda case: self.violates(part, case, visibly=seen))
        return small if self.violates(part, small, carefully=True) else start

    def _visible(self, part: Part) -> slice:
        """The columns that the agent sees: all but those of next internal states."""
        return slice(self.pairs.stepper.codec.coordinates.dim if part == "transition" else None)

    def _second_opinion(self, result: PropertyResult, part: Part) -> PropertyResult:
        """Where setting a state loses some of it, whole episodes may still refute the claim; they cannot save it."""
        other = None if self._episodes is None else self._episodes.judge(result.name, part)
        if other is not None and other.verdict == "failed":
            causes = (*other.causes, f"pairs of set states show no violation, but {self.bench.caution}")
            return _with(other, causes=causes)
        return _undecided(result, self.bench.caution)

    def violates(self, part: Part, case: Case, *, carefully: bool = False, visibly: bool = False) -> bool:
        """Whether one case violates a property beyond its tolerance.

        Args:
            part: the property.
            case: the case; both sides are stepped.
            carefully: also compare with what a nudge does there.
            visibly: count only what the agent sees.

        Returns:
            Whether some residual exceeds its tolerance.
        """
        comparison = self.pairs.comparison(part, self.pairs.measure([case]))
        moved = self.tolerance.nudges(part, [case], self.bench.rng("careful")) if carefully else None
        limits = self.tolerance.of(comparison, 0.0 if moved is None else moved)
        over = ~(comparison.residual() <= limits)
        return bool((over[:, self._visible(part)] if visibly else over).any())

    def counterexample(self, part: Part, case: Case) -> tuple[Counterexample, Measurement]:
        """One case as the report shows it, and its measurement."""
        seen = self.pairs.measure([case])
        comparison = self.pairs.comparison(part, seen)
        residual, limits = comparison.residual(), self.tolerance.of(comparison)
        visible = self._visible(part)
        if (~(residual <= limits))[:, visible].any():
            _, column = _worst(residual[:, visible], limits[:, visible])
        else:
            _, column = _worst(residual, limits)
        dim = self.pairs.stepper.codec.coordinates.dim
        half = slice(None) if part != "transition" else slice(0, dim) if column < dim else slice(dim, None)
        expected, actual = comparison.expected[0, half], comparison.actual[0, half]
        internal = self.pairs.placement.kind in ("map", "inverse") or _differ(case.situation)
        scalar = part in ("reward", "termination")
        example = Counterexample(
            group_element=self.pairs.bound.label(case.word),
            observation=case.situation.obs,
            state=case.situation.state if internal else None,
            action=case.action,
            expected=_plain(part, expected) if scalar else expected,
            actual=_plain(part, actual) if scalar else actual,
            residual=float(residual[0, column]),
            where=comparison.coordinates.names[column],
            image_observation=case.image.obs,
            image_action=case.image_action,
        )
        return example, seen

    def _never_a_number(self, part: Part) -> bool:
        """Whether everything compared was NaN; NaN matches NaN, but a run of nothing else is no evidence."""
        comparison = self._examined(part).comparison
        return bool(comparison.expected.size) and bool(np.isnan(comparison.expected).all())

    def _not_failed(self, result: PropertyResult, part: Part, looked: _Looked) -> PropertyResult:
        if looked.unrepeatable:
            return _undecided(
                result,
                "some pairs gave another outcome when they were stepped again: the environment is random now and then. "
                "Decide with --method distribution",
            )
        if self._tally(part).not_asked or (looked.unseen and not looked.representative):
            return _undecided(
                result, "too many pairs sit within one unit in the last place of a jump to be judged; sample elsewhere"
            )
        if self.bench.interrupted:
            return _undecided(result, f"interrupted after {result.checked:,} pairs")
        if self._never_a_number(part):
            return _undecided(result, f"every {_NAMED[part]} was NaN on both sides: nothing could be compared")
        if self.stopped and self.bench.options.fail_fast:  # else every equation is refuted, and this is what was asked
            return _undecided(result, STOPPED)
        asked = self.bench.options.samples
        if result.checked < max(min(_FEWEST, asked), asked // 10):
            return _undecided(result, "the time budget ran out; allow more with --max-time")
        if self.bench.caution:
            return self._second_opinion(result, part)
        if part == "termination" and self._between.doubt:
            return _undecided(result, self._between.doubt)
        alpha = self.bench.options.alpha
        # Edges are sought and not drawn: they do not count here.
        drawn = len(self.drawn.cases) if self.screened is None else self.screened.checked
        value = largest_fraction(0, drawn, alpha)
        if looked.unseen:
            value = looked.largest_violating_fraction(drawn, alpha)
            result = _with(result, violations=0)
        bound = {
            "kind": "violation_fraction",
            "value": value,
            "confidence": 1 - alpha,
            "region": self._region_of(part),
        }
        return _with(result, bound=bound)


_NAMED: dict[Part, str] = {
    "observation": "observation",
    "reward": "reward",
    "transition": "next observation",
    "termination": "end",
}
_ORIGIN: dict[Part, str] = {
    "observation": "rounding unit of the dtype times the value scale",
    "reward": "16 rounding units of the value scale, plus 16 times what a 1-ulp nudge of the state does",
    "transition": "16 rounding units of the value scale, plus 16 times what a 1-ulp nudge of the state does",
    "termination": "none, both sides must agree",
}


def _worst_and_random(suspects: list[int], residual: Vector, limits: Vector, rng: np.random.Generator) -> list[int]:
    """Suspects, the worst and random ones alternating: the worst may all sit at jumps."""
    if not suspects:
        return []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.nan_to_num(residual[suspects] / limits[suspects], nan=0.0, posinf=np.inf).max(axis=1)
    worst = [suspects[i] for i in np.argsort(-ratio, kind="stable")]
    mixed = [suspects[i] for i in rng.permutation(len(suspects))]
    order = [row for pair in zip(worst, mixed, strict=True) for row in pair]
    return list(dict.fromkeys(order))


def _worst(residual: Vector, limits: Vector) -> tuple[int, int]:
    """Row and column of the residual that exceeds its tolerance most."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(residual > 0, residual / np.where(limits > 0, limits, np.finfo(float).tiny), 0.0)
    row, column = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return int(row), int(column)


def _differ(situation: Situation) -> bool:
    """Whether the state has digits that the observation does not show."""
    state, obs = situation.state, situation.obs
    if not (isinstance(state, np.ndarray) and isinstance(obs, np.ndarray)):
        return False
    return not np.array_equal(state.astype(np.float64), obs.astype(np.float64), equal_nan=True)


def _plain(part: Part, value: Vector) -> float | bool:
    return bool(value[0]) if part == "termination" else float(value[0])


def _with(result: PropertyResult, **changes: object) -> PropertyResult:
    return dataclasses.replace(result, **changes)  # type: ignore[arg-type]


def _undecided(result: PropertyResult, why: str) -> PropertyResult:
    verdict: Verdict = "undecided"
    return _with(result, verdict=verdict, detail=f"Undecided: {why}. {result.detail}")
