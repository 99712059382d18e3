"""Tables of numbers at any width of the terminal: a line may wrap, but no number loses its digits."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_WIDEST = 200  # characters


def print_table(console: Console, table: Table) -> None:
    """Print a table as wide as it needs to be; a narrower terminal wraps its lines."""
    needed = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    # The console has no option to exceed its own width for one print.
    width = console.width
    console.width = max(width, needed)
    try:
        console.print(table)
    finally:
        console.width = width
