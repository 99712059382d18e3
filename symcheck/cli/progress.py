"""A progress line on the terminal during a run; silent in pipes and CI logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symcheck.engine.events import Emit, Event


@contextmanager
def progress(*, quiet: bool) -> Iterator[Emit | None]:
    """Show the progress of a run on standard error, if that is a terminal.

    Args:
        quiet: show nothing.

    Yields:
        The listener to pass to the run, or None.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from symcheck.engine import events

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def listen(event: Event) -> None:
            match event:
                case events.PropertyStarted(name):
                    # An unknown total shows a moving bar until the first progress arrives.
                    bar.update(task, description=name, total=None, completed=0)
                case events.Progress(done, total, what):
                    bar.update(task, description=what or None, total=total, completed=done)
                case events.RunStarted() | events.PropertyFinished() | events.RunFinished():
                    pass

        yield listen
