"""`reference-agents list`: what there is to train."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from reference_agents.catalog import TASKS

WIDTH = 120  # characters where nobody says how wide the terminal is


def print_listing() -> None:
    """Print a table of networks for each task."""
    # Piped output keeps its width, whatever terminal is behind it.
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
