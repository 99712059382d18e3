"""Standard streams that survive a closed reader: `symcheck ... --json report.json | head -1` still writes the report.

If the output of a program is a closed pipe, its next print raises an error. The error would end the program in the
middle of its work, with an exit code that looks like a verdict. These streams discard output after the reader has
closed. An output error for another reason (a full disk) is recorded; the program then ends with one message and code 2
after its work is done.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

UNUSABLE, INTERRUPTED = 2, 130
_NO_READER = (errno.EPIPE, errno.EINVAL)  # Windows reports EINVAL


class _Lasting(io.FileIO):
    """A file descriptor whose writes never raise."""

    problem: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _NO_READER:
                self.problem = self.problem or error
            # Report everything as written, so that the caller does not retry.
            return memoryview(data).nbytes


def run_program(name: str, main: Callable[[], None]) -> None:
    """Run a console script to its end, even if its output cannot be written.

    Args:
        name: the prefix of its messages.
        main: the program; it may end by `SystemExit`.

    Raises:
        SystemExit: always, with the program's own code; 130 if it was interrupted; 2 if its output could not be written
            although the reader is open, or if the user's own code raised; 4 if it crashed.
    """
    out = _last("stdout")
    _last("stderr")
    code: Any = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except Exception as error:
        # Imported only here, because a normal start does not need it.
        from symcheck.crashes import explain_crash

        message, code = explain_crash(name, error)
        sys.stderr.write(f"{message}\n")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = INTERRUPTED
    sys.stdout.flush()
    if out is not None and out.problem is not None:
        reason = out.problem.strerror or out.problem
        sys.stderr.write(f"{name}: the output could not be written: {reason}; the run itself ended with {code}.\n")
        code = UNUSABLE
    sys.exit(code)


def _last(name: str) -> _Lasting | None:
    """Replace `sys.stdout` or `sys.stderr` by such a stream, or by one that discards output if there is none."""
    stream = getattr(sys, name)
    if stream is None:  # closed by the parent process
        setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 open until the program ends
        return None
    if not isinstance(stream, io.TextIOWrapper):
        return None
    # Characters that the terminal cannot encode are written as escapes; on UTF-8, only invalid text is.
    stream.reconfigure(errors="backslashreplace")
    if stream.isatty():
        return None
    with contextlib.suppress(OSError, ValueError):  # a stream without a file descriptor is not replaced
        stream.flush()
        raw = _Lasting(stream.fileno(), "w", closefd=False)
        layers: Any = raw if stream.write_through else io.BufferedWriter(raw)
        lasting = io.TextIOWrapper(
            layers, stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through
        )
        setattr(sys, name, lasting)
        return raw
    return None
