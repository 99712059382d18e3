"""The pairs of a paired run: drawn from the pool, screened in batches, and searched for near thresholds.

Cases are drawn with replacement, so that "no violation in n" bounds the violating fraction of the pool's distribution.
If the environment has a validated batched form, many more pairs are screened. Cases near thresholds are searched for
rather than drawn: they may refute a claim but do not count for any bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from symcheck.engine.environments.cases.between import Between, between
from symcheck.engine.environments.cases.edges import threshold_cases, thresholds_may_hide
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement, join_measurements
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.environments.methods.screen import Screen, Screened, Tally, agrees
from symcheck.engine.equations import Part
from symcheck.engine.options import DEFAULT_SAMPLES
from symcheck.engine.outcomes import Outcomes, outcomes_of
from symcheck.envs.models.model import BatchModel
from symcheck.errors import TargetError
from symcheck.spaces.actions import draw_actions
from symcheck.statements.statement import Statement, state

BY_HAND = 2_000  # pairs stepped by the environment itself if it has a batched form
Enough = Callable[[Sequence[Measurement], int], bool]
_MANY = 100_000  # total pairs with a batched form, unless fewer than the default are requested
_BATCH = 500
_SMALL_BATCH = 10  # batch size if there is a time budget
# fraction of the time budget; the rest is for second looks, starts and counterexamples
_STEPPING, _SEARCHING = 0.7, 0.8


class PairSample:
    """Both sides of the pairs of one run, stepped on first access.

    Args:
        bench: the environment, the pool and the options.
        model: the environment's batched form, used only if it agrees bit for bit with the steps of this run.
        enough: called after each batch with (pairs stepped so far, planned number); True stops there.
        given: pairs already stepped, to be judged as they are; None to draw pairs.

    Attributes:
        stopped: whether `enough` ended the drawing early.
        planned: the number of pairs drawn.
        left_out: the number of these whose image lies outside a bounded space.
    """

    def __init__(
        self,
        bench: Workbench,
        *,
        model: BatchModel | None = None,
        enough: Enough | None = None,
        given: Measurement | None = None,
    ) -> None:
        self._bench, self._pairs = bench, bench.pairs
        self._model, self._enough, self._given = model, enough, given
        self.stopped = False
        self.planned = self.left_out = 0

    @functools.cached_property
    def drawn(self) -> Measurement:
        """Pairs drawn from the pool and stepped by the environment itself, one state at a time."""
        if self._given is not None:
            return self._given
        count, rng = self._bench.options.samples, self._bench.rng("cases")
        if self._model is None:
            return self._step(self._draw(count, rng))
        some = self._step(self._draw(min(count, BY_HAND), rng))
        if self.stopped or agrees(self._model, some):
            return some
        self._model = None  # it does not match this environment
        rest = count - len(some.cases)
        return join_measurements([some, self._step(self._draw(rest, rng))]) or some if rest > 0 else some

    @functools.cached_property
    def screened(self) -> Screened | None:
        """The result of a batched form of the environment on many more pairs; None if there is no valid one."""
        few = len(self.drawn.cases)  # the validation of the batched form uses these
        asked = self._bench.options.samples
        # The bound uses these pairs: with fewer than the environment stepped, it would be weaker.
        count = max(asked, _MANY) - few if asked >= DEFAULT_SAMPLES else max(asked - few, few)
        if self._model is None or asked <= few or self._bench.interrupted or self.stopped:
            return None
        screen = Screen(self._bench, self._model, self.tolerance, self.drawn)
        screened = screen.run(count, lambda: self._bench.in_time(_STEPPING))
        if screened.suspects is not None and not agrees(self._model, screened.suspects):
            return None  # the batched form differs from the environment in a relevant way
        return screened if screened.checked else None

    @functools.cached_property
    def measured(self) -> Measurement:
        """Both sides of every case that the environment stepped: drawn, flagged by the screen, and at thresholds."""
        parts = [self.drawn]
        if self.screened is not None and self.screened.suspects is not None:
            parts.append(self.screened.suspects)
        if not self._not_sought:
            rng = self._bench.rng("edges")
            # Screening has validated the batched form on all of its own suspects.
            model = None if self.screened is None else self._model
            searching = functools.partial(self._bench.in_time, _SEARCHING)
            edges = threshold_cases(self._pairs, self.drawn, rng, searching, model=model)
            parts += [self._pairs.measure(edges)] if edges else []
        return join_measurements(parts) or self.drawn

    @functools.cached_property
    def tolerance(self) -> Tolerance:
        """The tolerances, with the run's typical conditioning measured."""
        tolerance = Tolerance(self._pairs, self._bench.noise)
        tolerance.learn(("reward", "transition"), self.drawn, self._bench.rng("nudge"))
        return tolerance

    @functools.cached_property
    def between(self) -> Between:
        """The findings at thresholds between visited states, if no box of states is known."""
        if not self._not_sought or self._bench.interrupted or self._pairs.stepper.batched:
            return Between()
        searching = functools.partial(self._bench.in_time, _SEARCHING)
        if not searching():
            return Between()
        return between(self._pairs, self.drawn, self._bench.words, self._bench.rng("between"), searching)

    @functools.cached_property
    def _not_sought(self) -> str:
        """Why thresholds were not searched for, a value of `thresholds_not_sought.why`; "" if they were."""
        if self._given is not None or self.stopped:
            return "violated"
        if self._bench.interrupted or not self._bench.in_time(_STEPPING):
            return "time_up"
        return "points" if thresholds_may_hide(self._pairs, self.drawn.cases[0].situation.state) else ""

    @property
    def thresholds(self) -> Statement | None:
        """The note on thresholds that were not searched for; None if they were, or if nothing terminated."""
        if not self.ends or not self._not_sought:
            return None
        if self.between.count:
            return state("thresholds_sought_between", states=self.between.count)
        return state("thresholds_not_sought", why=self._not_sought)

    @functools.cached_property
    def region(self) -> Statement:
        """The region from which the pairs were drawn."""
        return self._bench.pool.region() if self.screened is None else self.screened.region

    @property
    def independent(self) -> int:
        """The number of pairs drawn at random, which count for a bound on the violating fraction."""
        return len(self.drawn.cases) if self.screened is None else self.screened.checked

    @property
    def checked(self) -> int:
        """The number of distinct pairs stepped."""
        return int((~self._from_screen).sum()) + (0 if self.screened is None else self.screened.checked)

    @functools.cached_property
    def ends(self) -> int:
        """The number of pairs whose left side ends the episode."""
        stepped = int(self.measured.left.terminated[~self._from_screen].sum())
        return stepped + (0 if self.screened is None else self.screened.ends)

    @property
    def moved(self) -> bool:
        """Whether the claim changes any tested state, observation or action."""
        return (self.screened is not None and self.screened.moved) or self._bench.moved

    def tally(self, part: Part) -> Tally:
        """The screen's counts for one property; zeros if there was no screen."""
        return Tally() if self.screened is None else self.screened.tallies.get(part, Tally())

    def outcomes(self, comparison: Comparison) -> Outcomes:
        """Whether one property's values are numbers, and vary, over all pairs."""
        tally = self.tally(comparison.part)
        screened = [tally.low[None], tally.high[None]] if tally.low.shape == comparison.expected.shape[1:] else []
        return outcomes_of(comparison.expected, comparison.actual, *screened)

    def share(self, comparison: Comparison) -> float:
        """The fraction of all pairs that exceed their tolerance."""
        over = np.asarray((~(comparison.residual() <= self.tolerance.of(comparison))).any(axis=1))
        return (int(over[~self._from_screen].sum()) + self.tally(comparison.part).suspicious) / self.checked

    @functools.cached_property
    def _from_screen(self) -> npt.NDArray[np.bool_]:
        """Which rows of `measured` were flagged by the screen, rather than drawn or at thresholds."""
        rows = np.zeros(len(self.measured.cases), dtype=np.bool_)
        if self.screened is not None and self.screened.suspects is not None:
            rows[len(self.drawn.cases) : len(self.drawn.cases) + len(self.screened.suspects.cases)] = True
        return rows

    def _draw(self, count: int, rng: np.random.Generator) -> list[Case]:
        situations = self._bench.pool.situations
        picked = rng.integers(0, len(situations), size=count)
        letters = rng.integers(0, len(self._bench.words), size=count)
        actions = draw_actions(self._pairs.stepper.env.action_space, count, rng)
        words = [self._pairs.bound.drawn(self._bench.words[letter]) for letter in letters]
        cases = self._pairs.cases(words, [situations[i] for i in picked], actions)
        self.planned, self.left_out = self.planned + count, self.left_out + count - len(cases)
        # If none remains, use one pair under the identity as a placeholder; it compares nothing, as `prevented` states.
        return cases or [self._pairs.case((), situations[picked[0]], actions[0])]

    @property
    def exits(self) -> tuple[Statement, ...]:
        """The note that pairs were left out because their images lie outside a bounded space, if any were."""
        return (state("box_exits", left_out=self.left_out, drawn=self.planned),) if self.left_out else ()

    @property
    def prevented(self) -> Statement | None:
        """That note if fewer than half of the pairs remain, so that only a violation can be decided; None otherwise."""
        return self.exits[0] if 2 * self.left_out > self.planned else None

    def _step(self, cases: list[Case]) -> Measurement:
        report = self._bench.progress("stepping both sides")
        parts: list[Measurement] = []
        try:
            size = _SMALL_BATCH if self._bench.clock.is_limited else _BATCH
            for start in range(0, len(cases), size):
                if not self._bench.in_time(_STEPPING):
                    break
                parts.append(self._pairs.measure(cases[start : start + size]))
                report(min(start + size, len(cases)), len(cases))
                if self._enough is not None and self._enough(parts, len(cases)):
                    self.stopped = True
                    break
        except (KeyboardInterrupt, TargetError) as error:
            if not parts:
                raise
            self._bench.clock.stop(error)  # decide quickly from the evidence so far, without searching for causes
        return join_measurements(parts) or self._pairs.measure(cases[:1])
