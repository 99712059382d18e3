"""The summary of a finished training run in the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from reference_agents.cli.tables import print_table
from reference_agents.record import Record, RunRecord, Verification
from symcheck_reports.formatting import plural

# If there are more rows than fit on a screen, summarise by learning rate.
MOST_ROWS = 40
_SKIPPED = {"not_claimed": "no claim", "diverged": "diverged"}
_STYLES = {"failed": "bold red", "undecided": "yellow"}


def summarise(record: Record, folder: Path, console: Console) -> None:
    """Print a table of the results by run, or by learning rate if there are many runs."""
    print_table(console, _by_rate(record) if len(record.runs) > MOST_ROWS else _by_run(record))
    if record.threshold is not None:
        for rate in dict.fromkeys(run.learning_rate for run in record.runs):
            console.print(_median_sentence(record, rate, record.threshold), highlight=False)
    seconds = record.training_seconds
    steps = sum(curve.env_steps[-1] for curve in record.curves if curve.env_steps)
    speed = f", {steps / seconds:,.0f} environment steps per second" if seconds else ""
    runs = plural(len(record.runs), "run")
    console.print(
        f"{runs}, {seconds:.1f} s training{speed}, {record.evaluation_seconds:.1f} s evaluating",
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"saved in {folder}; draw the curves with: reference-agents report {folder.parent}",
        highlight=False,
        soft_wrap=True,
    )


def _by_run(record: Record) -> Table:
    # Tasks without a threshold do not have this column.
    goal = () if record.threshold is None else (f"steps to {record.threshold:g}",)
    headers = ("learning rate", "seed", "final return", *goal, "network before", "after")
    table = Table(*headers, box=None, padding=(0, 2, 0, 0), title_justify="left")
    for run in record.runs:
        final = f"diverged at {run.stopped_at:,}" if run.stopped_at is not None else _number(run.final_return)
        reached = "not reached" if run.steps_to_threshold is None else f"{run.steps_to_threshold:,}"
        shown = () if record.threshold is None else (reached,)
        table.add_row(
            f"{run.learning_rate:g}", str(run.seed), final, *shown, _verdicts([run.before]), _verdicts([run.after])
        )
    return table


def _by_rate(record: Record) -> Table:
    goal = () if record.threshold is None else (f"reach {record.threshold:g}",)
    headers = ("learning rate", "runs", "diverged", "median final return", *goal, "networks before", "after")
    table = Table(*headers, box=None, padding=(0, 2, 0, 0), title_justify="left")
    for rate in dict.fromkeys(run.learning_rate for run in record.runs):
        runs = [run for run in record.runs if run.learning_rate == rate]
        reached = sum(run.steps_to_threshold is not None for run in runs)
        table.add_row(
            f"{rate:g}",
            str(len(runs)),
            str(sum(run.stopped_at is not None for run in runs)),
            _number(_median_final(runs)),
            *(() if record.threshold is None else (f"{reached} of {len(runs)}",)),
            _verdicts([run.before for run in runs]),
            _verdicts([run.after for run in runs]),
        )
    return table


def _median_final(runs: Sequence[RunRecord]) -> float | None:
    finals = [run.final_return for run in runs if run.final_return is not None]
    return float(np.median(finals)) if finals else None


def _verdicts(verifications: Sequence[Verification]) -> str:
    """Verdicts with their counts; a single network has no count."""
    words = Counter(verification.verdict or _missing_verdict_text(verification) for verification in verifications)
    return ", ".join(
        _style_word(word, f"{count} {word}" if len(verifications) > 1 else word) for word, count in words.items()
    )


def _style_word(word: str, text: str) -> str:
    return f"[{_STYLES[word]}]{text}[/]" if word in _STYLES else text


def _median_sentence(record: Record, rate: float, threshold: float) -> str:
    """When the median over the seeds first reaches the threshold. Runs that diverged count as worse than all others."""
    curves = [curve for curve in record.curves if curve.learning_rate == rate]
    # The median of a set with -inf stays comparable; with NaN it would be NaN.
    returns = np.nan_to_num(np.array([curve.returns for curve in curves]), nan=-math.inf)
    above = np.median(returns, axis=0) >= threshold
    at = f"learning rate {rate:g}: the median of {plural(len(curves), 'seed')}"
    if not above.any():
        return f"{at} does not reach {threshold:g}"
    return f"{at} reaches {threshold:g} after {curves[0].env_steps[int(np.argmax(above))]:,} steps"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _missing_verdict_text(verification: Verification) -> str:
    """A word or two for a network without a verdict of its own."""
    if verification.features is not None:
        return f"features {verification.features}"
    return _SKIPPED.get(verification.skipped, "not verified")
