"""`reference-agents list`: the tasks, the settings, and the trained runs."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reference_agents.catalog import TASKS
from reference_agents.record import RECORD_FILE, find_runs, find_unfinished, load
from reference_agents.settings import Settings

WIDTH = 120  # characters, if the width of the terminal is unknown


def print_listing() -> None:
    """Print a table of networks for each task."""
    # Piped output keeps its width, whatever the terminal.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for task in TASKS.values():
        solved = "" if task.threshold is None else f", solved at a mean return of {task.threshold:g}"
        console.print(
            f"\n[bold]{task.name}[/bold]  {task.environment}, {task.algorithm.upper()}{solved}: {task.summary}"
        )
        table = Table("network", "hidden channels", "learning rate", box=None, padding=(0, 2, 0, 0))
        table.add_column("what it is", overflow="fold")
        for plan in task.networks.values():
            widths = ", ".join(map(str, plan.channels))
            table.add_row(plan.name, widths, f"{plan.learning_rate:g}", plan.summary)
        console.print(table)


def print_settings() -> None:
    """Print every setting with its default and its meaning."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    table = Table("setting", "default", box=None, padding=(0, 2, 0, 0))
    table.add_column("meaning", overflow="fold")
    meanings = setting_meanings()
    for field in dataclasses.fields(Settings):
        default = str(field.default).lower() if field.type == "bool" else str(field.default)
        table.add_row(field.name, default, meanings[field.name])
    console.print(table)


def setting_meanings() -> dict[str, str]:
    """The meaning of each setting, from the attributes documented in `Settings`.

    Example:
        >>> setting_meanings()["discount"]
        'the discount factor, in (0, 1].'
    """
    listed = inspect.cleandoc(Settings.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    meanings: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        # A new attribute is indented by four spaces, its continuation lines by more.
        if not line.startswith("        "):
            name, _, line = line.strip().partition(": ")
            meanings[name] = ""
        meanings[name] = f"{meanings[name]} {line.strip()}".strip()
    return meanings


def print_runs(folder: Path) -> None:
    """Print every run below a folder with its progress.

    Raises:
        TargetError: there is no run.
    """
    # it loads Gymnasium, which the other lists do not need
    from reference_agents.encoding.environment import short_label

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    table = Table("run", "task", "network", "runs", "state", box=None, padding=(0, 2, 0, 0))
    unfinished = find_unfinished(folder)
    for path in find_runs(folder) if not unfinished or any(folder.rglob(RECORD_FILE)) else ():
        record = load(path)
        state = "interrupted" if record.interrupted else "finished"
        table.add_row(str(path), short_label(record.task), short_label(record.network), str(len(record.runs)), state)
    for run in unfinished:
        table.add_row(str(run.folder), short_label(run.task), short_label(run.network), str(run.runs), "unfinished")
    console.print(table)
