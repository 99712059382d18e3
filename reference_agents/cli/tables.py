"""Tables of numbers for terminals of any width: lines may wrap, but numbers are never truncated."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_WIDEST = 200  # characters


def print_table(console: Console, table: Table) -> None:
    """Print a table at its full width; a narrower terminal wraps its lines."""
    needed = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    # The console has no option to exceed its own width for one print.
    width = console.width
    console.width = max(width, needed)
    try:
        console.print(table)
    finally:
        console.width = width
