"""Report a crash of the program with one message and a traceback file that the message names.

An uncaught exception exits with code 1, which CI would interpret as a refuted symmetry. This module changes it to exit
code 4, or to 2 if the last frame is the user's own code.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path

from symcheck.errors import described, shortened
from symcheck.loading import is_users

BROKEN, UNUSABLE = 4, 2
_HERE = Path(__file__).parent
# Files of the program itself: this package and those installed with it.
_OURS = tuple(
    f"{_HERE.parent / name}{os.sep}"
    for name in (
        "symcheck", "symcheck_properties", "symcheck_reports", "reference_agents",
        "properties/symcheck_properties", "reports/symcheck_reports",
    )
)  # fmt: skip


def place_in_users_code(error: BaseException) -> str | None:
    """The place in the user's own code that raised an error; None if symcheck or one of its dependencies raised it.

    Args:
        error: the caught exception.

    Returns:
        "file.py:12", the last line of the user's code below the last one of symcheck.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = max((i for i, frame in enumerate(frames) if frame.filename.startswith(_OURS)), default=-1)
    theirs = [frame for frame in frames[ours + 1 :] if is_users(frame.filename)]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else None


def explain_crash(name: str, error: Exception) -> tuple[str, int]:
    """The message and exit code for an unexpected error; its traceback is written to a file.

    Args:
        name: the name of the program.
        error: the caught exception.

    Returns:
        One message, and UNUSABLE if the user's own code raised the error, otherwise BROKEN.
    """
    trace = write_traceback(name, "".join(traceback.format_exception(error)))
    kept = f"The traceback is in {trace}." if trace else "Its traceback could not be written anywhere."
    place, text = place_in_users_code(error), shortened(described(error))
    if place is not None:
        return f"{name}: your code raised {text} ({place}). {kept}", UNUSABLE
    if isinstance(error, MemoryError):
        return f"{name}: out of memory: {text}. Use fewer --samples, or a larger machine. {kept}", BROKEN
    return (
        f"{name}: internal error: {text}. {kept} Please report it together with the output of `symcheck doctor`.",
        BROKEN,
    )


def write_traceback(name: str, text: str) -> str | None:
    """Write a traceback to a new temporary file; returns its path, or None if it cannot be written."""
    try:
        handle, path = tempfile.mkstemp(prefix=f"{name}-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        return None
    return path
