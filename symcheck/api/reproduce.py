"""Every counterexample says how to see it again."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

from symcheck.engine.results import PropertyResult, RunResult


def with_reproduction(result: RunResult, json_path: Path | None = None) -> RunResult:
    """Write into every counterexample the command that reproduces it.

    Args:
        result: what a run found.
        json_path: the JSON report that will hold it, if there will be one.

    Returns:
        The same result; `symcheck replay FILE` where there is a report and the run can be repeated from the command
        line, else the command of the whole run (its seed finds the same counterexample), else a line of Python.
    """
    if json_path is not None and result.command:
        line = shlex.join(["symcheck", "replay", str(json_path)])
    elif result.command:
        line = result.command
    else:
        line = f"symcheck.verify_{result.kind}(..., seed={result.seed})  # with the same objects"
    return dataclasses.replace(result, properties=tuple(_add_command(item, line) for item in result.properties))


def _add_command(item: PropertyResult, line: str) -> PropertyResult:
    if item.counterexample is None:
        return item
    return dataclasses.replace(item, counterexample=dataclasses.replace(item.counterexample, reproduce=line))
