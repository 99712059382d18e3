"""Reads TOML and JSON files written by users.

SPEC files, settings, baselines, layouts and reports are all read here. They may begin with a byte-order mark or be
UTF-16 (as some Windows editors save them). Bad content cannot stop the program: a pipe without a writer, nesting that
exhausts the stack, or a number with thousands of digits.
"""

from __future__ import annotations

import codecs
import json
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MOST_BYTES = 256 * 2**20  # maximum size; a report with every state of a large run is a thousand times smaller
_DEEPEST = 100  # maximum nesting; a SPEC has 6 levels, a report 8, and Python's stack allows a few hundred
_MOST_DIGITS = 300  # larger numbers exceed the range of floats
# UTF-32 first, because the little-endian mark of UTF-16 is a prefix of that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class UnreadableError(ValueError):
    """The content of a file cannot be used; the message gives the reason as a clause for the caller's sentence."""


def read_text(path: Path) -> str:
    """The text of a file: UTF-8 with or without a byte-order mark, or UTF-16 or UTF-32 with one.

    Args:
        path: a regular file, or a device such as /dev/stdin.

    Raises:
        OSError: the file cannot be opened.
        UnreadableError: the file is a named pipe, too large, or in another encoding.
    """
    mode = path.stat().st_mode
    # A pipe created by a shell for this process has a writer, or ends.
    if stat.S_ISFIFO(mode) and not path.absolute().is_relative_to("/dev"):
        raise UnreadableError("a named pipe, which may block forever; give a regular file")
    with path.open("rb") as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UnreadableError(f"more than {_MOST_BYTES // 2**20} MiB")
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8-sig")
    # TOML and JSON contain no NUL, but every second byte of ASCII text in UTF-16 is NUL.
    if encoding == "utf-8-sig" and b"\0" in content:
        raise UnreadableError("NUL bytes, as in UTF-16 text without a byte-order mark; save it as UTF-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        expected = encoding.removesuffix("-sig").upper()
        raise UnreadableError(f"bytes that are not {expected} text ({error.reason}); save it as UTF-8") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file.

    Raises:
        OSError: the file cannot be opened.
        UnreadableError: the text is not TOML, or its nesting or numbers exceed the limits.
    """
    table: dict[str, Any] = _parse(tomllib.loads, read_text(path))
    return table


def read_json(path: Path) -> Any:
    """The value of a JSON file; raises the same errors as `read_toml`."""
    return parse_json(read_text(path))


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        UnreadableError: the text is not JSON, or its nesting or numbers exceed the limits.

    Example:
        >>> parse_json("[" * 5000 + "]" * 5000)
        Traceback (most recent call last):
        ...
        symcheck.documents.UnreadableError: nesting deeper than 100 levels
    """
    return _parse(json.loads, text)


def _parse(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text)
        _refuse_monsters(value)
    except RecursionError as error:
        raise UnreadableError(f"nesting deeper than {_DEEPEST} levels") from error
    except UnreadableError:
        raise
    except ValueError as error:
        # Python's own message for long integers suggests raising an interpreter limit.
        text = f"an integer of more than {_MOST_DIGITS} digits" if "int_max_str_digits" in str(error) else str(error)
        raise UnreadableError(text) from error
    return value


def _refuse_monsters(value: Any, depth: int = 0) -> None:
    """Reject values that the parser accepts but the rest of the program cannot handle."""
    if depth > _DEEPEST:
        raise UnreadableError(f"nesting deeper than {_DEEPEST} levels")
    if isinstance(value, int) and abs(value) > sys.maxsize and abs(value) >= 10**_MOST_DIGITS:
        raise UnreadableError(f"an integer of more than {_MOST_DIGITS} digits")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            if isinstance(item, int | dict | list):
                _refuse_monsters(item, depth + 1)
