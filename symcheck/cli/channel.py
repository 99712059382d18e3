"""Messages from a supervised command to its parent through a pipe; each is a tag, a length and bytes.

The parent understands deadlines, progress and the exit code; events and outputs stay pickled there until the command
ends without a verdict. The module imports nothing heavy, because the parent loads only it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence


class Tag:
    """The first byte of a message."""

    OUTPUTS, EVENT = b"O", b"E"  # pickled
    PROGRESS = b"P"  # progress in words
    DEADLINE = b"L"  # in terms of `time.monotonic`; empty removes the deadline
    ENDED = b"D"  # the exit code
    QUIET = b"Q"  # suppresses the line that the run continues


_LENGTH = 8  # bytes
_writing: int | None = None
_lock = threading.Lock()
started = time.monotonic()
"""When the program began, before its imports."""


_begun = False


def begin_part() -> float:
    """The start time of the part about to run; the first part starts with the program, imports included."""
    global _begun
    before, _begun = _begun, True
    return time.monotonic() if before else started


def open_to(handle: int) -> None:
    """Send messages to a pipe from now on."""
    global _writing
    _writing = handle


def is_open() -> bool:
    """Whether a parent supervises this process."""
    return _writing is not None


def send(tag: bytes, content: bytes = b"") -> None:
    """Send a message to the parent, if there is one; do nothing if the parent or the pipe is gone."""
    if _writing is None:
        return
    rest = memoryview(tag + len(content).to_bytes(_LENGTH, "big") + content)
    with _lock:
        try:
            while rest:
                rest = rest[os.write(_writing, rest) :]
        except OSError:
            return


def split(held: bytes, take: Callable[[bytes, bytes], None]) -> bytes:
    """Split bytes into complete messages; the remainder is the beginning of the next message."""
    while len(held) > _LENGTH:
        end = 1 + _LENGTH + int.from_bytes(held[1 : 1 + _LENGTH], "big")
        if len(held) < end:
            break
        take(held[:1], held[1 + _LENGTH : end])
        held = held[end:]
    return held


def shows_progress(events: Sequence[bytes]) -> bool:
    """Whether the command has not requested quiet mode."""
    return not any(message.startswith(Tag.QUIET) for message in events)
