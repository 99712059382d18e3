"""How long a run may still continue: its deadline, and who ended it.

The one mutable thing that a run's parts share. Whoever catches Ctrl-C while evidence is gathered says so here; what was
gathered is judged then. A deadline that passes between two steps of the environment, or within one where a command
supervises the run, ends it in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_latest: float | None = None  # end of every run of this process, on the clock of `time.monotonic`


class TimeUp(KeyboardInterrupt):
    """The time of a run is over; ends what is under way as Ctrl-C does."""


@contextmanager
def not_after(end: float) -> Iterator[None]:
    """Let every run that begins in this block end by a moment, whatever its own limit.

    Args:
        end: on the clock of `time.monotonic`.
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


class Clock:
    """The time of a run.

    Args:
        started: `time.monotonic()` when the run began.
        budget_s: seconds it may take; None for no limit.

    Attributes:
        interrupted: whether the user, or what is tested, ended the run.
        refusal: the error with which what is tested ended it; None where it did not.

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
        """Whether less than this share of the time budget is spent."""
        return self._budget_s is None or time.monotonic() < self._started + share * self._budget_s

    def check(self) -> None:
        """Raise where time is up; asked before every step of the environment.

        Raises:
            TimeUp: it is.
        """
        if not self._overtime and not self.in_time():
            raise TimeUp

    @contextmanager
    def overtime(self) -> Iterator[None]:
        """Let the few steps be taken that show what was found."""
        before, self._overtime = self._overtime, True
        try:
            yield
        finally:
            self._overtime = before

    def while_in_time(self, work: Callable[[], T], otherwise: T) -> T:
        """What some work returns; `otherwise` where time is up before it ends."""
        try:
            return work()
        except TimeUp:
            return otherwise

    def stop(self, reason: BaseException) -> None:
        """Note what ended the gathering of evidence: time, the user, or an error of what is tested."""
        # Time that is up is known by itself, and judges what there is like any end of a budget.
        self.interrupted = self.interrupted or not isinstance(reason, TimeUp)
        self.refusal = reason if isinstance(reason, Exception) else self.refusal
