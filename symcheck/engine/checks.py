"""Checks properties in order; evidence is gathered when a property first needs it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from symcheck.engine.clock import TimeUp, seconds_from
from symcheck.engine.events import Emit, PropertyFinished, PropertyStarted
from symcheck.engine.registry import Property, describe, undecided_result
from symcheck.engine.results import PropertyResult
from symcheck.verdict import Facts


def check_in_order(
    properties: Sequence[Property], context: Any, emit: Emit, *, deadline: float | None
) -> tuple[list[PropertyResult], bool]:
    """Check properties in order; after an interrupt or the deadline, the remaining ones are undecided.

    Args:
        properties: the properties in the order of the report.
        context: the argument of every check.
        emit: receives the events.
        deadline: the deadline in terms of `time.monotonic`, in seconds; None for none.

    Returns:
        One result per property, and whether the run was interrupted.
    """
    results: list[PropertyResult] = []
    interrupted = False
    for item in properties:
        late = deadline is not None and time.monotonic() > deadline
        emit(PropertyStarted(item.name))
        try:
            facts = Facts(checked=0, interrupted=interrupted, time_up=late)
            asked = not (interrupted or late)
            results.append(describe(item.check(context), item) if asked else undecided_result(item, facts))
        except TimeUp:
            results.append(undecided_result(item, Facts(checked=0, time_up=True)))
        except KeyboardInterrupt:
            interrupted = True
            results.append(undecided_result(item, Facts(checked=0, interrupted=True)))
        emit(PropertyFinished(results[-1]))
    return results, interrupted


def deadline_of(started: float, max_time: float | None) -> float | None:
    """The deadline of a run, in terms of `time.monotonic`."""
    seconds = seconds_from(started, max_time)
    return None if seconds is None else started + seconds
