"""How long a run may still go on: its deadline, and whether the user ended it.

The one mutable thing that a run's parts share. Whoever catches Ctrl-C while evidence is gathered says so here; what was
gathered is judged then.
"""

from __future__ import annotations

import time


class Clock:
    """The time of a run.

    Args:
        started: `time.monotonic()` when the run began.
        budget_s: seconds it may take; None for no limit.

    Example:
        >>> clock = Clock(started=time.monotonic(), budget_s=None)
        >>> clock.in_time(), clock.interrupted
        (True, False)
    """

    def __init__(self, started: float | None = None, budget_s: float | None = None) -> None:
        self._started = time.monotonic() if started is None else started
        self._budget_s = budget_s
        self.interrupted = False

    @property
    def is_limited(self) -> bool:
        """Whether there is a deadline."""
        return self._budget_s is not None

    def in_time(self, share: float = 1.0) -> bool:
        """Whether less than this share of the time budget is spent."""
        return self._budget_s is None or time.monotonic() < self._started + share * self._budget_s

    def interrupt(self) -> None:
        """Note that the user ended the run."""
        self.interrupted = True
