"""The report of the parent process if the child ended without a verdict; loaded only then."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Sequence

from symcheck.cli.channel import Tag
from symcheck.cli.exit_codes import ExitCode
from symcheck.cli.watching import publish
from symcheck.engine.unfinished import Ledger
from symcheck.errors import SymcheckError


def report_end(messages: Sequence[bytes], status: int, *, progress: str, was_late: bool, interrupted: bool) -> int:
    """Report the finished part, and how the child ended.

    Args:
        messages: outputs and events, each a tag and an object pickled by the child, which runs this same program.
        status: the exit status of the child, as returned by `os.waitpid`.
        progress: its last progress, in words.
        was_late: whether it was ended at the time limit.
        interrupted: whether the user interrupted it.

    Returns:
        INTERRUPTED or BROKEN, never the code of a verdict.
    """
    outputs, reports, baseline, ledger = None, False, None, Ledger()
    for message in messages:
        tag, content = message[:1], message[1:]
        if tag == Tag.OUTPUTS:
            outputs, reports, baseline = pickle.loads(content)
        elif tag == Tag.EVENT:
            ledger.take(pickle.loads(content))
    problem = ""
    if outputs is not None and reports:
        try:
            publish(outputs, ledger, baseline, time_up=was_late, interrupted=interrupted)
        except SymcheckError as error:
            problem = f" {error}"
    where = f", in {progress}" if progress else ""
    if interrupted:
        said = f"interrupted{where}; the run did not end by itself and was terminated."
    elif was_late:
        said = f"the time budget ran out{where}, and this did not end; the run was stopped."
    else:
        said = f"the target ended the process ({_end_of(status)}){where}; everything finished before that is reported."
    sys.stdout.flush()
    sys.stderr.write(f"symcheck: {said}{problem}\n")
    sys.stderr.flush()
    return ExitCode.INTERRUPTED if interrupted else ExitCode.BROKEN


def _end_of(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"exit status {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"{name}, possibly out of memory" if number == signal.SIGKILL else name
