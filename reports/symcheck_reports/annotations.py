"""Annotations of a GitHub Actions run: one line per failed or undecided property, shown on the job.

GitHub keeps ten annotations of each level per step and silently drops the others, so at most ten lines are written, and
the last one counts those left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from symcheck.engine.results import PropertyResult, RunResult
from symcheck_reports import words
from symcheck_reports.formatting import one_line, plural

LIMIT = 10  # number of annotations per level that GitHub keeps for a step
_LEVELS = {"failed": "error", "undecided": "warning"}


def render(results: Sequence[RunResult] | RunResult) -> str:
    r"""The annotations as workflow commands, failures first.

    Args:
        results: one or more runs.

    Returns:
        At most `LIMIT` lines, each ending with a newline; "" if nothing failed or is undecided.

    Example:
        >>> lost = PropertyResult("reward_invariance", "failed", "paired", 500, violations=3, max_residual=0.25)
        >>> run = RunResult("env", "Mine-v0", "mirror", {"name": "C2", "order": 2}, (lost,), 0.01, 0)
        >>> render(run)
        '::error title=reward_invariance failed::Mine-v0 under mirror: 2.5e-01\n'

    Source: GitHub Actions, workflow commands.
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    listed = [(p, run) for verdict in _LEVELS for run in runs for p in run.properties if p.verdict == verdict]
    kept = listed if len(listed) <= LIMIT else listed[: LIMIT - 1]
    lines = [_line(result, run) for result, run in kept]
    if len(kept) < len(listed):
        worst = _LEVELS[listed[len(kept)][0].verdict]
        more = plural(len(listed) - len(kept), "further property", "further properties")
        lines.append(f"::{worst} title=symcheck::{more} failed or undecided; the summary lists them.\n")
    return "".join(lines)


def _line(result: PropertyResult, run: RunResult) -> str:
    why = words.residual_sentence(result) if result.verdict == "failed" else words.reason_text(result)
    parts = [f"{words.target_name(run)} under {one_line(run.symmetry, 120)}: {why or words.evidence(result)}"]
    parts += [f"layer {result.location}"] if result.location else []
    parts += words.causes_lettered(result.causes[:1])
    title = f"{one_line(result.name, 60)} {result.verdict}"
    return f"::{_LEVELS[result.verdict]} title={_property(title)}::{_data('; '.join(parts))}\n"


def _data(text: str) -> str:
    return one_line(text, 1000).replace("%", "%25")


def _property(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
