"""JSON reports, schema `symcheck/2`: the run as data, for programs, and for `symcheck replay`.

One run is one object; several runs are listed under `reports`, with their overall verdict. The published JSON Schema is
in the folder of this module, and `schema()` returns it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from symcheck.engine.results import SCHEMA, RunResult, overall_verdict


def render(results: Sequence[RunResult] | RunResult) -> str:
    """The report as JSON text that ends with a newline.

    NaN and infinities are strings, and non-ASCII characters are escaped, so any tool can read the file.

    Args:
        results: one or more runs, in the order they were made.

    Returns:
        One object for one run; `{"schema", "verdict", "reports"}` for several.

    Raises:
        ValueError: `results` is empty; without a test there is no report.

    Example:
        >>> run = RunResult("env", "CartPole-v1", "mirror", {"name": "C2", "order": 2}, (), 0.01, 0)
        >>> json.loads(render(run))["schema"]
        'symcheck/2'
    """
    return json.dumps(to_object(results), indent=2, allow_nan=False) + "\n"


def to_object(results: Sequence[RunResult] | RunResult) -> dict[str, Any]:
    """The results as nested dictionaries of JSON types.

    Raises:
        ValueError: `results` is empty.
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    if not runs:
        raise ValueError("expected at least one run to report, got none")
    if len(runs) == 1:
        return runs[0].to_dict()
    verdict = overall_verdict(run.verdict for run in runs)
    return {"schema": SCHEMA, "verdict": verdict, "reports": [run.to_dict() for run in runs]}


def schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of the output of `render`.

    Example:
        >>> schema()["title"]
        'symcheck report, schema symcheck/2'
    """
    text = resources.files("symcheck_reports").joinpath("schema/symcheck-2.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
