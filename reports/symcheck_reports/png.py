"""A minimal PNG writer for image observations: a grid of numbers becomes a small data URI."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_grey(rows: Sequence[Sequence[int]]) -> bytes:
    r"""An 8-bit greyscale PNG.

    Args:
        rows: brightness 0 to 255, shape (height, width).

    Returns:
        The file's bytes.

    Example:
        >>> encode_grey([[0, 255]])[:4]
        b'\x89PNG'
    """
    return _encode([bytes(row) for row in rows], len(rows[0]), colour_type=0)


def encode_rgb(rows: Sequence[Sequence[Sequence[int]]]) -> bytes:
    """An 8-bit colour PNG of shape (height, width, 3)."""
    return _encode([bytes(part for pixel in row for part in pixel) for row in rows], len(rows[0]), colour_type=2)


def _encode(lines: Sequence[bytes], width: int, colour_type: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, len(lines), 8, colour_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_uri(png: bytes) -> str:
    """The file as a `data:` address that needs no request."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def brightness(value: Any, low: float, high: float) -> int:
    """Scale a value between `low` and `high` to 0..255; values that are not finite become 0 (black).

    Example:
        >>> brightness(0.5, 0.0, 1.0), brightness("NaN", 0.0, 1.0)
        (128, 0)
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    if not high > low:
        return 128
    return round(255 * min(max((value - low) / (high - low), 0.0), 1.0))
