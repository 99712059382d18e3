"""Writing files whole or not at all, and refusing places that cannot be written before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from symcheck.errors import SymcheckError


def write_file(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old content or the new.

    Args:
        path: where to; its folder must exist.
        content: what the file holds afterwards.

    Raises:
        OSError: it cannot be written; the old file is as it was, and nothing is left beside it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: str | Path, text: str, *, append: bool = False) -> Path:
    """Write a report, whole or not at all; step summaries are appended to.

    Args:
        path: where to; the folder must exist.
        text: what to write, encoded as UTF-8.
        append: add to the end of what is there.

    Returns:
        The path written.

    Raises:
        SymcheckError: the folder does not exist or cannot be written.
    """
    target = Path(path)
    check_writable(target, "path")
    try:
        if append:
            with target.open("a", encoding="utf-8") as stream:
                stream.write(text)
        else:
            write_file(target, text.encode())
    except OSError as error:
        raise SymcheckError(f"cannot write {target}: {error.strerror or error}.") from error
    return target


def check_writable(path: Path, where: str) -> None:
    """Refuse a report path whose folder does not exist, before any work is done.

    Args:
        path: where a report will go.
        where: names the option in the message.

    Raises:
        SymcheckError: there is no such folder, or the path is a folder itself.
    """
    if not path.parent.is_dir():
        raise SymcheckError(
            f"expected a file in a folder that exists, got {path}: there is no folder {path.parent}.",
            where=where,
            remedy=f"Create it first: mkdir -p {path.parent}",
        )
    if path.is_dir():
        raise SymcheckError(f"expected a file, got the folder {path}.", where=where, remedy=f"Try {path}/report.html")
