"""A lightweight parent process that supervises commands that run third-party code.

An environment can end the process, block it forever or leave threads that keep it alive. The parent has loaded only
this module. It forks before the command line is imported, forwards signals, keeps the child's messages, and ends a step
that exceeds `--max-time`. If the child ends without a verdict, the parent reports the finished results, with exit code
4. On systems without a safe fork (all but Linux) commands run unsupervised.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from symcheck.cli import channel
from symcheck.cli.channel import Tag

_SUPERVISED = frozenset(
    ("verify-env", "verify-net", "verify-mirror", "verify-game", "audit-policy", "run", "discover", "replay")
)
_INTERRUPTED = 130
_POLL_S = 0.05  # a child that exits is noticed immediately; this interval is for exits that leave no trace
_GRACE_S = 2.0  # after its final message; threads of the environment may keep it alive
_QUIET_S = 30.0  # seconds without a verdict after which a line states that the run continues
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass
class Heard:
    """The messages received from the child.

    Attributes:
        events: pickled events, in order; read only if the child ends without a verdict.
        progress: the progress of the child, in words.
        deadline: the deadline on the clock of `time.monotonic`; None for none.
        code: the exit code that it announced.
    """

    events: list[bytes] = field(default_factory=list)
    progress: str = ""
    deadline: float | None = None
    code: int | None = None

    def take(self, tag: bytes, content: bytes) -> None:
        """Store one message."""
        if tag == Tag.PROGRESS:
            self.progress = content.decode()
        elif tag == Tag.DEADLINE:
            self.deadline = float(content) if content else None
        elif tag == Tag.ENDED:
            self.code = int(content)
        else:
            self.events.append(tag + content)


def supervise(words: Sequence[str], program: Callable[[], None]) -> None:
    """Run a console script, in a child process if its command runs third-party code.

    Args:
        words: the arguments of the command line, without the program's name.
        program: the script; it ends by SystemExit.
    """
    asks_for_help = any(word in ("--help", "-h") for word in words)
    if not words or words[0] not in _SUPERVISED or asks_for_help or sys.platform != "linux":
        program()
        return
    reading, writing = _pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _end_with(parent)
        channel.open_to(writing)
        _run_child(program)
    os.close(writing)
    os._exit(_watch(child, reading))  # exit functions run in the child


def _pipe() -> tuple[int, int]:
    """A pipe with descriptors above the standard streams: if these are closed, their numbers must not be used."""
    ends = os.pipe()
    above = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return above[0], above[1]


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # the parent had already exited
        os._exit(_INTERRUPTED)


def _run_child(program: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, _Interrupts())
    try:
        program()
    except SystemExit as ended:
        channel.send(Tag.ENDED, str(_number_of(ended.code)).encode())
        raise
    channel.send(Tag.ENDED, b"0")
    sys.exit(0)


def _number_of(code: Any) -> int:
    return code if isinstance(code, int) else int(code is not None)


class _Interrupts:
    """Raises KeyboardInterrupt once for a Ctrl-C that arrives twice: from the terminal, and forwarded by the parent."""

    def __init__(self) -> None:
        self._last = -1.0

    def __call__(self, *_: object) -> None:
        before, self._last = self._last, time.monotonic()
        if self._last - before > 0.5:
            raise KeyboardInterrupt


def _watch(child: int, reading: int) -> int:
    """The exit code of the run, however the child ends."""
    heard, interrupts = Heard(), 0

    def pass_on(number: int, _: object) -> None:
        nonlocal interrupts
        interrupts += 1
        # A child that does not exit after the first signal is blocked.
        _signal(child, signal.SIGINT if interrupts == 1 else signal.SIGKILL)

    def end(number: int, _: object) -> None:
        _signal(child, number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, pass_on)
    for number in _PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end)
    status, was_late = _wait(child, reading, heard)
    if heard.code is not None:
        return heard.code
    from symcheck.cli.salvage import report_end

    return report_end(heard.events, status, progress=heard.progress, was_late=was_late, interrupted=interrupts > 0)


def _wait(child: int, reading: int, heard: Heard) -> tuple[int, bool]:
    """Listen until the child has ended; return its status, and whether it was killed at the time limit."""
    parts, is_open, was_late = b"", True, False
    ended_at: float | None = None
    line_at = time.monotonic() + _QUIET_S
    while True:
        if is_open and select.select([reading], [], [], _POLL_S)[0]:
            part = os.read(reading, 1 << 16)
            is_open = bool(part)
            parts = channel.split(parts + part, heard.take)
            if part and heard.code is None:
                continue
        elif not is_open:
            time.sleep(_POLL_S)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _drain(reading, parts, heard)
            return status, was_late
        now = time.monotonic()
        if heard.code is not None:
            ended_at = ended_at or now
            if now > ended_at + _GRACE_S:
                _signal(child, signal.SIGKILL)
        elif heard.deadline is not None and now > heard.deadline:
            was_late = True
            _signal(child, signal.SIGKILL)
        elif now > line_at and not sys.stderr.isatty() and channel.shows_progress(heard.events):
            line_at = now + _QUIET_S
            sys.stderr.write(f"symcheck: still running: {heard.progress or 'starting'}\n")


def _drain(reading: int, parts: bytes, heard: Heard) -> None:
    """Read the output that the child wrote before it ended."""
    while select.select([reading], [], [], 0)[0] and (part := os.read(reading, 1 << 16)):
        parts += part
    channel.split(parts, heard.take)


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
