"""Watch a command while third-party code runs: collect events, enforce the time limit, and keep finished results.

If a run ends early (an environment raises, the time limit, Ctrl-C, an internal error), this module reports the finished
results, prints one message and sets the exit code.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from symcheck.cli import channel
from symcheck.cli.channel import Tag
from symcheck.cli.exit_codes import ExitCode, echo_problem
from symcheck.cli.outputs import Outputs
from symcheck.errors import SymcheckError, TargetError

if TYPE_CHECKING:
    from symcheck.engine.events import Emit, Event
    from symcheck.engine.unfinished import Ledger

_TELL_EVERY_S = 0.2
_AGAIN_S = 0.1
_MOST_RESERVED_S = 3.0  # fraction of the time limit reserved for the reports


@contextmanager
def watched(
    outputs: Outputs, *, max_time: float | None = None, reports: bool = True, baseline: Path | None = None
) -> Iterator[Emit]:
    """Run a command's work.

    Args:
        outputs: where its reports go.
        max_time: its time limit in seconds; None for no limit, or if `time_limit` is entered for each part.
        reports: whether finished results can be reported, because the events are those of a verification.
        baseline: the accepted violations; they also apply to the results finished before an early end.

    Yields:
        The listener to hand to the run.

    Raises:
        typer.Exit: the run ended early; its finished results are reported.
        SymcheckError: the input cannot be used, and nothing was tested.
    """
    from symcheck.cli.progress import progress
    from symcheck.engine.clock import TimeUp
    from symcheck.engine.unfinished import Ledger

    ledger, home = Ledger(), _Home()
    baseline = None if baseline is None else Path(baseline).absolute()
    channel.send(Tag.OUTPUTS, pickle.dumps((outputs, reports, baseline)))
    if outputs.quiet:
        channel.send(Tag.QUIET)
    try:
        with progress(quiet=outputs.quiet) as shown, time_limit(max_time):
            yield _listener(ledger, shown, reports)
    except TargetError as error:
        home.restore()
        if not (reports and ledger.is_within_run):
            raise
        failed = publish(outputs, ledger, baseline)
        echo_problem(f"symcheck: {error}")
        raise typer.Exit(ExitCode.FAILED if failed else ExitCode.UNUSABLE) from error
    except TimeUp as error:
        home.restore()
        publish(outputs, ledger, baseline, time_up=True)
        echo_problem(f"symcheck: {max_time:g} s passed before the run could decide anything; raise --max-time.")
        raise typer.Exit(ExitCode.UNDECIDED) from error
    except KeyboardInterrupt as error:
        home.restore()
        if not (reports and ledger.is_within_run):
            raise
        publish(outputs, ledger, baseline, interrupted=True)
        if not ledger.has_checked:
            typer.echo("interrupted before anything was checked", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    except (SymcheckError, typer.Exit):
        raise
    except Exception as error:
        from symcheck.crashes import explain_crash

        home.restore()
        failed = reports and ledger.is_within_run and publish(outputs, ledger, baseline)
        message, code = explain_crash("symcheck", error)
        echo_problem(message)
        raise typer.Exit(ExitCode.FAILED if failed and code == ExitCode.UNUSABLE else code) from error
    finally:
        home.restore()


def publish(
    outputs: Outputs, ledger: Ledger, baseline: Path | None, *, time_up: bool = False, interrupted: bool = False
) -> bool:
    """Report finished results if a run had begun; returns whether a property failed outside the baseline.

    If nothing was checked, nothing is printed; files are written, and the caller's message gives the reason.
    """
    from symcheck.api.baseline import as_baseline, with_baseline
    from symcheck.api.report import Report

    results = ledger.results(time_up=time_up, interrupted=interrupted)
    if not results:
        return False
    accepted = as_baseline(baseline)
    report = Report([with_baseline(result, accepted) for result in results])
    outputs.publish(report, is_shown=ledger.has_checked or outputs.quiet)
    return report.verdict == "failed"


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """End a running step at the time limit, if the command is supervised.

    Args:
        seconds: counted from the start of the program, or from now for one part of several; None for no limit.
    """
    from symcheck.engine import clock

    if seconds is None or not channel.is_open() or threading.current_thread() is not threading.main_thread():
        yield
        return
    deadline = channel.begin_part() + seconds
    # The run ends slightly earlier, so that the whole command with its reports stays within the limit.
    stops = deadline - min(0.1 * seconds, _MOST_RESERVED_S)
    before = signal.signal(signal.SIGALRM, _raise_time_up)
    channel.send(Tag.DEADLINE, str(deadline).encode())
    signal.setitimer(signal.ITIMER_REAL, max(stops - time.monotonic(), 1e-3))
    try:
        with clock.not_after(stops), clock.computing_until((stops + 2 * deadline) / 3):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        channel.send(Tag.DEADLINE)


def _raise_time_up(*_: object) -> None:
    from symcheck.engine import clock

    if clock.is_computing():  # statistics look at the clock; what follows them may not
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        return
    raise clock.TimeUp


def _listener(ledger: Ledger, shown: Emit | None, reports: bool) -> Emit:
    """Stores every event, informs the parent, and shows progress."""
    from symcheck.engine import events

    told_at, told = 0.0, ""

    def listen(event: Event) -> None:
        nonlocal told_at, told
        ledger.take(event)
        match event:
            case events.Progress(done, total, what):
                # What begins is told at once: it may not end.
                if channel.is_open() and (what != told or time.monotonic() - told_at > _TELL_EVERY_S):
                    told_at, told = time.monotonic(), what
                    counted = f"{done:,} of {total:,}" if total > 1 else ""
                    channel.send(Tag.PROGRESS, ", ".join(filter(None, (ledger.at, what, counted))).encode())
            case events.PropertyStarted(name):
                channel.send(Tag.PROGRESS, name.encode())
            case _:
                if channel.is_open() and reports:
                    with suppress(Exception):  # the child reports results with a user's object that cannot be pickled
                        channel.send(Tag.EVENT, pickle.dumps(event))
        if shown is not None:
            shown(event)

    return listen


class _Home:
    """The folder and the streams with which the command was started; the target may change both."""

    def __init__(self) -> None:
        self._streams = (sys.stdout, sys.stderr)
        self._folder: Path | None = None
        with suppress(OSError):
            self._folder = Path.cwd()

    def restore(self) -> None:
        """Restore them."""
        sys.stdout, sys.stderr = self._streams
        if self._folder is not None:
            with suppress(OSError):
                os.chdir(self._folder)
