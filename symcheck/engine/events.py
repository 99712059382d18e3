"""The events of a run: small frozen values, in order.

Runners emit events and never print; a terminal, a progress bar or a test consumes them. A run starts once, then
every property starts, progresses and finishes, then the run finishes. Property events of one run never interleave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from symcheck.engine.results import Kind, PropertyResult, RunResult


@dataclass(frozen=True)
class RunStarted:
    """A run begins: its subject, the properties in order, and the result if it ended at once."""

    kind: Kind
    target: str
    symmetry: str
    properties: tuple[str, ...]
    unfinished: RunResult = field(repr=False)


@dataclass(frozen=True)
class PropertyStarted:
    """One property is about to be checked."""

    name: str


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of `what` are done; `total` may grow when thresholds are found."""

    done: int
    total: int
    what: str = ""


@dataclass(frozen=True)
class PropertyFinished:
    """One property has its verdict."""

    result: PropertyResult


@dataclass(frozen=True)
class RunFinished:
    """The run is over, complete or interrupted."""

    result: RunResult


Event = RunStarted | PropertyStarted | Progress | PropertyFinished | RunFinished
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The listener that discards every event; the default of every runner.

    Example:
        >>> ignore(PropertyStarted("reward_invariance"))
    """
