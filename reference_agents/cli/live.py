"""The display of training in progress: a bar with the remaining time and, in a terminal, the learning curve so far.

The curve shows the median over runs (a dotted line, eight dots per character) and its quartiles (shaded). Without a
terminal, for instance in a log file, one line is written every minute.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from reference_agents.trainer import Progress as TrainingProgress

# Lines of the curve, points before it is drawn, and seconds between two lines of a log.
PLOT_HEIGHT, LEAST_POINTS, LOG_SECONDS = 8, 3, 60.0
_DOTS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))  # bits of a braille cell, from the bottom row up
_BRAILLE = 0x2800
Quartiles = tuple[float, float, float]


class Display:
    """The bar and the curve of one training run.

    Args:
        title: the name of the training run.
        total: the number of environment steps of each run.
        console: where to draw.
    """

    def __init__(self, title: str, total: int, console: Console) -> None:
        self._console, self._title, self._total = console, title, total
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left  {task.fields[returns]}"),
            console=console,
        )
        self._task = self._bar.add_task(title, total=total, returns="")
        self._points: dict[int, Quartiles] = {}
        self._started = self._logged = time.monotonic()
        self._first = 0

    def __call__(self, progress: TrainingProgress) -> None:
        """Update the progress of the training."""
        # The start of a resumed training: the speed is measured from there.
        self._first = self._first or progress.env_steps
        known = progress.returns[~np.isnan(progress.returns)] if progress.returns.size else progress.returns
        if known.size:
            # Quartiles over runs that have not stopped.
            low, median, high = np.quantile(known, (0.25, 0.5, 0.75))
            self._points[progress.evaluated_at] = (float(low), float(median), float(high))
        self._bar.update(self._task, completed=progress.env_steps, returns=median_text(progress.returns))
        # A file or pipe gets an occasional line instead of a bar.
        if not self._console.is_terminal:
            self._log(progress)

    def __rich__(self) -> Group:
        """The bar, and the curve below it once there are a few points."""
        # A terminal with few lines keeps them for earlier output.
        if len(self._points) < LEAST_POINTS or self._console.height < 2 * PLOT_HEIGHT:
            return Group(self._bar)
        width = min(72, self._console.width - 12)
        steps, quartiles = list(self._points), list(self._points.values())
        return Group(self._bar, Text("\n".join(plot(steps, quartiles, self._total, width, PLOT_HEIGHT)), style="dim"))

    def _log(self, progress: TrainingProgress) -> None:
        now = time.monotonic()
        if now - self._logged < LOG_SECONDS:
            return
        self._logged = now
        speed = (progress.env_steps - self._first) / (now - self._started)
        left = f", about {(self._total - progress.env_steps) / speed / 60:.0f} min left" if speed > 0 else ""
        self._console.print(
            f"{self._title}: {progress.env_steps:,} of {self._total:,} steps{left}, {median_text(progress.returns)}",
            highlight=False,
            soft_wrap=True,
        )


@contextlib.contextmanager
def display(title: str, total: int, console: Console, *, hidden: bool) -> Iterator[Callable[[TrainingProgress], None]]:
    """Show the progress of a training run; yields the function that reports its progress."""
    if hidden:
        yield lambda progress: None
        return
    shown = Display(title, total, console)
    if not console.is_terminal:
        yield shown
        return
    with Live(shown, console=console, transient=True, refresh_per_second=4):
        yield shown


def median_text(returns: npt.NDArray[np.float64]) -> str:
    """The median of the latest evaluation as text."""
    if not returns.size:
        return ""
    running = returns[~np.isnan(returns)]
    if not running.size:
        return "no returns yet"
    median = float(np.median(running))
    return f"median return {median:.0f}" if abs(median) >= 10 else f"median return {median:.2f}"


def plot(steps: Sequence[int], quartiles: Sequence[Quartiles], total: int, width: int, height: int) -> list[str]:
    r"""Draw a curve in characters.

    Args:
        steps: the position of each point, increasing.
        quartiles: 25%, 50% and 75% of each point.
        total: the last step of the axis.
        width: the width of the plot in characters, without its labels.
        height: the number of lines of the plot.

    Returns:
        The lines; the axis of steps is last.

    Example:
        >>> print("\n".join(plot([0, 50, 100], [(0, 0, 0), (1, 1, 1), (2, 2, 2)], 100, 6, 2)))
                2 ┤   ⣀⠔⠊
                0 ┤⡠⠔⠉
                  └──────
                   0  100
    """
    values = np.array(quartiles, dtype=float)
    low, high = float(values.min()), float(values.max())
    # A flat curve has no range: 1 avoids division by zero.
    span = (high - low) or 1.0
    # A braille cell is 2 dots wide and 4 high. For each column of dots: the position among the points, then the three
    # quartiles.
    columns = np.interp(np.linspace(0, total, 2 * width), steps, np.arange(len(steps)))
    reached = np.linspace(0, total, 2 * width) <= steps[-1]
    drawn = np.array([np.interp(columns, np.arange(len(steps)), values[:, k]) for k in range(3)])
    # Row of dots from the bottom, 0 to 4 * height - 1.
    rows = np.clip(np.rint((drawn - low) / span * (4 * height - 1)), 0, 4 * height - 1).astype(int)
    cells = [[" "] * width for _ in range(height)]
    dots: dict[tuple[int, int], int] = {}
    previous: int | None = None
    # Draw up to the last evaluation; the rest of the axis stays empty.
    for column in range(2 * width):
        if not reached[column]:
            break
        bottom, middle, top = (int(row) for row in rows[:, column])
        for line in range(bottom // 4, top // 4 + 1):
            cells[line][column // 2] = "░"
        # Fill the dots between neighbouring columns, so that a steep curve stays connected.
        for row in _between(middle if previous is None else previous, middle):
            key = (row // 4, column // 2)
            # Each dot is one bit of the cell's character.
            dots[key] = dots.get(key, 0) | _DOTS[row % 4][column % 2]
        previous = middle
    for (line, column), bits in dots.items():
        cells[line][column] = chr(_BRAILLE + bits)
    # Row 0 is the bottom line.
    labels = {0: _label(low), height - 1: _label(high)}
    lines = [f"{labels.get(line, ''):>9} ┤{''.join(cells[line])}".rstrip() for line in reversed(range(height))]
    end = f"{total:,}"
    return [*lines, f"{'':>9} └{'─' * width}", f"{'':>9}  0{end:>{max(width - 1, len(end) + 1)}}"]


def _between(start: int, stop: int) -> range:
    """The rows that connect one dot to the next, without the first unless it is the only one."""
    if start == stop:
        return range(stop, stop + 1)
    return range(start + 1, stop + 1) if start < stop else range(stop, start)


def _label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == round(value) else f"{value:.2f}"


def announce(console: Console) -> Callable[[str], None]:
    """A function that prints a message above the bar."""

    def say(text: str) -> None:
        console.print(f"[yellow]{text}[/]", highlight=False, soft_wrap=True)

    return say


Listener = Callable[[TrainingProgress], Any]


def tell_all(listeners: Sequence[Listener]) -> Callable[[TrainingProgress], None]:
    """One function that forwards its argument to several functions."""

    def tell(progress: TrainingProgress) -> None:
        for listener in listeners:
            listener(progress)

    return tell
