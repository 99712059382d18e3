"""The state of a run before anything is checked, and if it ends early.

Runners emit it at the start, so that listeners can report the finished part however the run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from symcheck.engine.events import Event, PropertyFinished, RunFinished, RunStarted
from symcheck.engine.registry import Property, undecided_result
from symcheck.engine.results import Kind, PropertyResult, RunResult
from symcheck.verdict import Facts, decide


def run_started(
    kind: Kind, target: str, symmetry: str, group: Any, properties: Sequence[Property], options: Any, command: str
) -> RunStarted:
    """The event with which a run begins.

    Args:
        kind: the kind of subject.
        target: the name in reports.
        symmetry: the claim's name.
        group: the group of the claim; a mapping of "name" and "order" if it is not known yet.
        properties: the properties, in the order of the report.
        options: the options of the run: `alpha` and `seed`.
        command: the command line that repeats it, or "".
    """
    facts = Facts(checked=0, interrupted=True)
    nothing = RunResult(
        kind=kind,
        target=target,
        symmetry=symmetry,
        group=group if isinstance(group, dict) else {"name": group.name, "order": group.order},
        properties=tuple(undecided_result(item, facts) for item in properties),
        alpha=options.alpha,
        seed=options.seed,
        command=command,
    )
    return RunStarted(kind, target, symmetry, tuple(item.name for item in properties), nothing)


class Ledger:
    """The finished results, from the events of one or more runs."""

    def __init__(self) -> None:
        self._complete: list[RunResult] = []
        self._begun: RunResult | None = None
        self.at = ""

    def take(self, event: Event) -> None:
        """Record an event."""
        match event:
            case RunStarted(unfinished=unfinished):
                self._begun = unfinished
            case PropertyFinished(result) if self._begun is not None:
                self._begun = _with_result(self._begun, result)
            case RunFinished(result):
                self._complete.append(result)
                self._begun = None
            case _:
                self.at = getattr(event, "name", self.at)

    @property
    def is_within_run(self) -> bool:
        """Whether a run has begun and not yet ended."""
        return self._begun is not None

    @property
    def has_checked(self) -> bool:
        """Whether a run was completed, or the subject of the current run was checked in any property.

        Relations of the maps are checked on the claim alone, before the subject is used.
        """
        begun = () if self._begun is None else self._begun.properties
        return bool(self._complete) or any(
            item.verdict == "failed" or (item.method != "relations" and (item.checked or item.verdict != "undecided"))
            for item in begun
        )

    def results(self, *, time_up: bool = False, interrupted: bool = False) -> list[RunResult]:
        """The runs so far; unfinished properties are undecided.

        Args:
            time_up: whether the time budget ended the last one.
            interrupted: whether the user did.
        """
        if self._begun is None:
            return list(self._complete)
        begun = replace(self._begun, interrupted=interrupted)
        if time_up:
            begun = replace(begun, properties=tuple(_out_of_time(item) for item in begun.properties))
        return [*self._complete, begun]


def _with_result(run: RunResult, result: PropertyResult) -> RunResult:
    return replace(run, properties=tuple(result if item.name == result.name else item for item in run.properties))


def _out_of_time(result: PropertyResult) -> PropertyResult:
    if result.reason is None or result.reason.code != "interrupted":
        return result
    verdict, reason = decide(Facts(checked=0, time_up=True))
    return replace(result, verdict=verdict, reason=reason)
