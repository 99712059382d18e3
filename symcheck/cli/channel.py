"""Messages from a supervised command to its parent through a pipe, each a tag, a length and bytes.

The parent understands deadlines, progress and the exit code; events and outputs stay pickled there until the command
ends without a verdict. Imports nothing: the parent holds this module alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence


class Tag:
    """The first byte of a message."""

    OUTPUTS, EVENT = b"O", b"E"  # pickled
    PROGRESS = b"P"  # what is done, in words
    DEADLINE = b"L"  # on the clock of `time.monotonic`; empty takes it back
    ENDED = b"D"  # the exit code
    QUIET = b"Q"  # no line says that the run goes on


_LENGTH = 8  # bytes
_writing: int | None = None
_lock = threading.Lock()
started = time.monotonic()
"""When the program began, before its imports."""


_begun = False


def begin_part() -> float:
    """When the part of the program that is about to run began: the first with the program, imports included."""
    global _begun
    before, _begun = _begun, True
    return time.monotonic() if before else started


def open_to(handle: int) -> None:
    """Let messages go to a pipe from now on."""
    global _writing
    _writing = handle


def is_open() -> bool:
    """Whether a parent supervises this process."""
    return _writing is not None


def send(tag: bytes, content: bytes = b"") -> None:
    """Tell the parent, if there is one; nothing happens where it is gone or the pipe was closed."""
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
    """Hand on every whole message; what remains is the beginning of the next."""
    while len(held) > _LENGTH:
        end = 1 + _LENGTH + int.from_bytes(held[1 : 1 + _LENGTH], "big")
        if len(held) < end:
            break
        take(held[:1], held[1 + _LENGTH : end])
        held = held[end:]
    return held


def shows_progress(events: Sequence[bytes]) -> bool:
    """Whether the command has not asked to be quiet."""
    return not any(message.startswith(Tag.QUIET) for message in events)
