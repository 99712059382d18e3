"""The time budget of a run: its deadline, and what ended the run early.

This is the only mutable object that the parts of a run share. Code that catches Ctrl-C while gathering evidence records
it here, and the verdict uses the evidence gathered so far. A deadline that passes between two environment steps (or
within a step, if a command supervises the run) ends the run in the same way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_latest: float | None = None  # common deadline of all runs of this process, in terms of `time.monotonic`
_computing = False  # whether statistics are being computed, which look at the clock themselves
_computed_by = math.inf  # the time by which statistics on gathered evidence must end
_GRACE, _LEAST_GRACE_S = 0.1, 2.0  # fraction of a time budget, and seconds, by which statistics may exceed it


class TimeUp(KeyboardInterrupt):
    """The time budget is spent; ends the current work like Ctrl-C."""


@contextmanager
def not_after(end: float) -> Iterator[None]:
    """Make every run that begins in this block end by a given time, even if its own limit is later.

    Inside it, `raise_if_late` raises after that time. Blocks may be nested; the innermost one decides.

    Args:
        end: the time, in terms of `time.monotonic`.
    """
    global _latest
    before, _latest = _latest, end
    try:
        yield
    finally:
        _latest = before


def seconds_from(started: float, budget_s: float | None) -> float | None:
    """The time budget of a run that began at `started`; None for no limit."""
    if budget_s is None or _latest is None:
        return budget_s
    return min(budget_s, max(_latest - started, 0.0))


def raise_if_late() -> None:
    """Raise `TimeUp` after the common deadline of `not_after`; called at every step of a long computation.

    Raises:
        TimeUp: the deadline has passed.
    """
    if _latest is not None and time.monotonic() > _latest:
        raise TimeUp


@contextmanager
def computing_until(end: float) -> Iterator[None]:
    """Make statistics in this block raise `TimeUp` after a given time; an earlier deadline of an outer block remains.

    Evidence is gathered until a deadline, and judged after it. Judging must end as well.

    Args:
        end: the time, in terms of `time.monotonic`.
    """
    global _computed_by
    before, _computed_by = _computed_by, min(_computed_by, end)
    try:
        yield
    finally:
        _computed_by = before


@contextmanager
def computing_for(share: float) -> Iterator[None]:
    """Leave a part of the time until the deadline of `computing_until` to what follows this block.

    Args:
        share: the fraction of the remaining time that statistics in this block may take.
    """
    now = time.monotonic()
    with computing_until(now + share * (_computed_by - now)):
        yield


@contextmanager
def computing() -> Iterator[None]:
    """Mark the statistics of evidence that is gathered: the end of the time budget does not interrupt this block.

    Statistics end by themselves, at the deadline of `computing_until`.
    """
    global _computing
    before, _computing = _computing, True
    try:
        yield
    finally:
        _computing = before


def is_computing() -> bool:
    """Whether statistics are being computed."""
    return _computing


def computing_ends(started: float, budget_s: float | None) -> float:
    """The time by which the statistics of a run must end; infinite without a time budget."""
    return math.inf if budget_s is None else started + budget_s + max(_GRACE * budget_s, _LEAST_GRACE_S)


def raise_if_overdue() -> None:
    """Raise `TimeUp` after the deadline of `computing_until`; called by statistics between operations on whole columns.

    Raises:
        TimeUp: the deadline has passed.
    """
    if time.monotonic() > _computed_by:
        raise TimeUp


class Clock:
    """The time of a run.

    Args:
        started: `time.monotonic()` when the run began.
        budget_s: seconds it may take; None for no limit.

    Attributes:
        interrupted: whether the user, or the code under test, ended the run.
        refusal: the error with which the code under test ended the run; None if it did not.

    Example:
        >>> clock = Clock(started=time.monotonic(), budget_s=None)
        >>> clock.in_time(), clock.interrupted
        (True, False)
    """

    def __init__(self, started: float | None = None, budget_s: float | None = None) -> None:
        self._started = time.monotonic() if started is None else started
        self._budget_s = seconds_from(self._started, budget_s)
        self._overtime = False
        self.interrupted = False
        self.refusal: Exception | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is a deadline."""
        return self._budget_s is not None

    def in_time(self, share: float = 1.0) -> bool:
        """Whether less than the given share of the time budget is spent."""
        return self._budget_s is None or time.monotonic() < self._started + share * self._budget_s

    def seconds_left(self) -> float:
        """The rest of the time budget; infinite if there is none."""
        return math.inf if self._budget_s is None else self._started + self._budget_s - time.monotonic()

    def check(self) -> None:
        """Raise `TimeUp` if the time budget is spent; called before every environment step.

        Raises:
            TimeUp: the time budget is spent.
        """
        if not self._overtime and not self.in_time():
            raise TimeUp

    @contextmanager
    def overtime(self) -> Iterator[None]:
        """Allow the few extra steps that are needed to show a violation already found."""
        global _computed_by
        before, self._overtime = (self._overtime, _computed_by), True
        _computed_by = math.inf
        try:
            yield
        finally:
            self._overtime, _computed_by = before

    def while_in_time(self, work: Callable[[], T], otherwise: T) -> T:
        """Run some work; return its result, or `otherwise` if the time runs out first."""
        try:
            return work()
        except TimeUp:
            return otherwise

    def stop(self, reason: BaseException) -> None:
        """Record what ended the gathering of evidence: the time limit, the user, or an error in the code under test."""
        # The end of the time budget is known without a record; the verdict uses the evidence so far.
        self.interrupted = self.interrupted or not isinstance(reason, TimeUp)
        self.refusal = reason if isinstance(reason, Exception) else self.refusal
