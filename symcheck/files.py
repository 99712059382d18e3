"""Writes files atomically, and rejects paths that cannot be written before any work is done."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from symcheck.errors import SymcheckError

_NAMES = {
    "--certificate": "certificate.json",
    "--json": "report.json",
    "--junit": "junit.xml",
    "--markdown": "summary.md",
    "--out": "symmetry.toml",
    "--pytest": "test_symmetry.py",
}


def write_file(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old content or the new.

    A link stays a link; a device or pipe (`/dev/stdout`) is written to directly.

    Args:
        path: the file to write; its folder must exist.
        content: the new content of the file.

    Raises:
        OSError: the file cannot be written; the old file is unchanged, and no temporary file is left.
    """
    if _is_device(path):
        with _open_device(path) as device:
            device.write(content)
        return
    path = path.resolve()
    # In the same folder: a rename across file systems would be a copy.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            # On disk before the rename: a crash leaves the old content or the new.
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        # After the rename it no longer exists; it remains only if writing failed.
        beside.unlink(missing_ok=True)


def write_text(path: str | Path, text: str, *, append: bool = False) -> Path:
    """Write a report atomically; step summaries are appended to.

    Args:
        path: the file to write; its folder must exist.
        text: the text, which is encoded as UTF-8.
        append: whether to append to the existing content.

    Returns:
        The path written.

    Raises:
        SymcheckError: the folder does not exist or cannot be written.
    """
    target = Path(path)
    check_writable(target, "path")
    content = text.encode("utf-8", "backslashreplace")  # file names may contain bytes that are not valid text
    try:
        if append:
            with _open_device(target) if _is_device(target) else target.open("ab") as stream:
                stream.write(content)
        else:
            write_file(target, content)
    except OSError as error:
        raise SymcheckError(f"cannot write {target}: {error.strerror or error}.") from error
    return target


def _open_device(path: Path) -> BinaryIO:
    """Open a device or pipe for writing; a pipe without a reader is rejected, because opening it would block."""
    if not path.is_fifo():
        return path.open("ab")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "no process reads this pipe") from error
        raise
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


def _is_device(path: Path) -> bool:
    """Whether to write directly to a path: it is not a regular file, or it names an open file."""
    return (path.exists() and not path.is_file()) or path.absolute().is_relative_to("/dev")


def check_outputs(paths: Mapping[str, Path | None]) -> None:
    """Reject outputs that cannot be written, and two outputs to the same file, before any work is done.

    Args:
        paths: option to file; None for an output that was not requested.

    Raises:
        SymcheckError: an output is rejected; the message names the option.

    Example:
        >>> check_outputs({"--html": Path("a.html"), "--json": Path("a.html")})
        Traceback (most recent call last):
        ...
        symcheck.errors.SymcheckError: --json: --html is already written to a.html; name a different file.
    """
    taken: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        check_writable(path, option)
        # Devices such as /dev/stdout may be named twice.
        if _is_device(path):
            continue
        first = taken.setdefault(path.resolve(), option)
        if first != option:
            raise SymcheckError(f"{first} is already written to {path}; name a different file.", where=option)


def check_writable(path: Path, where: str) -> None:
    """Reject a report path whose folder does not exist or is read-only, before any work is done.

    Args:
        path: the path of a report.
        where: the name of the option, for the message.

    Raises:
        SymcheckError: there is no such folder, it is not writable, or the path is a folder itself.
    """
    if not path.parent.is_dir():
        raise SymcheckError(
            f"{path} cannot be written, because the folder {path.parent} does not exist.",
            where=where,
            remedy=f"Create the folder first: mkdir -p {path.parent}",
        )
    if path.is_dir():
        name = _NAMES.get(where, "report.html")
        raise SymcheckError(f"{path} is a folder, not a file.", where=where, remedy=f"Try {path / name}")
    # A new file needs a writable folder; a device only needs to be writable itself.
    folder = path if _is_device(path) else path.resolve().parent
    read_only = [place for place in (folder, path) if place.exists() and not os.access(place, os.W_OK)]
    if read_only:
        held = read_only[0]
        raise SymcheckError(
            f"{path} cannot be written, because {held} is read-only.",
            where=where,
            remedy="Name a file elsewhere.",
        )
