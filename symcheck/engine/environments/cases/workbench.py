"""The interface of all methods that test an environment: one verdict per property, from evidence gathered once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.budget import Budget
from symcheck.engine.clock import Clock, computing
from symcheck.engine.detectable import Detectable
from symcheck.engine.environments.cases.pairs import Pairs
from symcheck.engine.environments.cases.pool import Pool
from symcheck.engine.environments.subject.placement import Situation, Word
from symcheck.engine.equations import STEP_PARTS, Part
from symcheck.engine.events import Emit, Progress
from symcheck.engine.options import EnvOptions
from symcheck.engine.results import PropertyResult
from symcheck.engine.statistics import largest_fraction
from symcheck.envs.models.model import BatchModel
from symcheck.envs.stepping.step_differences import Loss
from symcheck.spaces.values import same_value
from symcheck.statements.statement import Statement


class Evidence(Protocol):
    """Evidence about one symmetry of one environment, gathered by one method."""

    @property
    def method(self) -> str:
        """The method's name, as accepted by `--method`."""

    def judge(self, name: str, part: Part) -> PropertyResult:
        """The verdict on one property."""


@dataclass(frozen=True)
class Workbench:
    """Data shared by the methods; built by method selection and never changed.

    Attributes:
        pairs: builds and measures cases (with the stepper, the placement and the bound symmetry).
        pool: the situations to test.
        options: the run's options.
        emit: receives progress events.
        clock: the time budget of the run, and whether the user ended it.
        words: the tested elements: the generators.
        budget: the level alpha of the run, and the statistical tests that share it.
        caution: why a pass would not be trusted, for instance hidden state; None if there is no reason.
        noise: the difference that repeated steps may show, per part; per coordinate or common to all.
        loss: the difference between steps from states reached and states set, if that is the caution.
        touched: the properties that the caution affects.
        model: the environment's batched form, not yet validated; None if it has none.
    """

    pairs: Pairs
    pool: Pool
    options: EnvOptions
    emit: Emit
    clock: Clock
    words: tuple[tuple[int, ...], ...]
    budget: Budget
    caution: Statement | None = None
    noise: dict[Part, Floats] = field(default_factory=dict)
    loss: Loss | None = None
    touched: frozenset[Part] = frozenset(STEP_PARTS)
    model: BatchModel | None = None

    @functools.cached_property
    def moved(self) -> bool:
        """Whether the claim changes a gathered state or an action in it; if not, both sides are the same step.

        In that case a pass would carry no information, so `decide` leaves every equation undecided. The whole pool is
        examined only for a claim that changes nothing; nothing is stepped and no random number is drawn.
        """
        bound, pool = self.pairs.bound, self.pool
        # Visits are cheap, and actions may change even if states do not (identity on observations).
        return any(
            any(not same_value(v.action, bound.action(word, v.action, v.situation.obs)) for v in pool.visits)
            or any(self._moves(word, situation) for situation in pool.situations)
            for word in self.words
        )

    def _moves(self, word: Word, situation: Situation) -> bool:
        placement = self.pairs.placement
        if not same_value(situation.obs, self.pairs.bound.observation(word, situation.obs)):
            return True
        # A black box has no state apart from its observation.
        return placement.kind is not None and not same_value(situation.state, placement.image(word, situation).state)

    def silent(self, part: str) -> tuple[str, ...]:
        """Names of the coordinates compared by a property that were never finite in rollouts."""
        if part in ("reward", "termination"):
            return ()
        return self.pool.silent_coordinates(self.pairs.stepper.codec, starts=part == "start")

    @property
    def touches_ends_only(self) -> bool:
        """Whether setting a state changes when episodes end, and nothing else: a counter is not restored."""
        return self.caution is not None and self.touched == {"termination"}

    def comparing(self) -> Workbench:
        """The workbench with the elements that distribution tests use; see `BoundSymmetry`."""
        return replace(self, words=self.pairs.bound.compared_words)

    def rng(self, stream: str) -> np.random.Generator:
        """An independent generator for each purpose, so that one purpose cannot shift another's draws."""
        return np.random.default_rng([self.options.seed, *stream.encode()])

    @property
    def level(self) -> float:
        """The strictest level of any statistical test of this run; the number of swaps must suffice for it."""
        return self.budget.smallest

    def judged_at(self, name: str, word: Word, p_value: float) -> float:
        """The level of one test, once all tests have run; with fail-fast, a clear rejection does not wait for them.

        Args:
            name: the name of the property.
            word: the element.
            p_value: the p-value of the test.
        """
        if self.options.fail_fast and p_value <= self.level:
            return self.level  # rejected, whatever the other tests show
        return self.budget.level(name, word)

    def in_time(self, share: float = 1.0) -> bool:
        """Whether this share of the time budget allows another batch."""
        return self.clock.in_time(share)

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the run while evidence was gathered; the verdict uses the evidence so far."""
        return self.clock.interrupted

    def progress(self, what: str) -> Callable[[int, int], None]:
        """A function of (done, total) that reports progress of `what`."""
        return lambda done, total: self.emit(Progress(done, total, what))

    @contextmanager
    def computing(self, part: str) -> Iterator[None]:
        """Report that the statistics of a part are computed; nothing is stepped meanwhile."""
        report = self.progress(f"computing the statistics of {part}")
        report(0, 1)
        with computing():
            yield
        report(1, 1)


def shift_bound(
    detectable: Detectable, checked: int, alpha: float, *, unit: str, region: Statement
) -> dict[str, object]:
    """The effect size that a statistical pass excludes.

    Args:
        detectable: the changes of a mean detected with 90% power; 0 if the two sides never differed.
        checked: independent pairs compared.
        alpha: the alpha of the run.
        unit: the unit of the change.
        region: the sampled region.

    Returns:
        A bound on the change, or only on shifts of all outcomes if some other changes are never detected; if nothing
        ever differed, a bound on the fraction of pairs that differ.
    """
    if detectable.change > 0:
        sizes = {"value": detectable.change, "shift": detectable.shift}
        if not math.isfinite(detectable.change):
            sizes = {"value": detectable.shift}
        return {"kind": "mean_shift", **sizes, "unit": unit, "confidence": 0.9, "region": region}
    value = largest_fraction(0, checked, alpha)
    return {"kind": "violation_fraction", "value": value, "confidence": 1 - alpha, "region": region}
