"""Reads arrays given by users, and hashes arrays by content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.errors import SymcheckError


def to_numpy(value: Any, *, where: str, error: type[SymcheckError] = SymcheckError) -> npt.NDArray[np.generic]:
    """A numeric array from nested lists, numpy, `scipy.sparse` or torch, in its own dtype.

    Args:
        value: the array-like.
        where: the argument's name, for the error message.
        error: the class to raise.

    Returns:
        A numpy array of booleans, integers or floats.

    Raises:
        SymcheckError: ragged, or not numbers.

    Example:
        >>> to_numpy([[1, 2]], where="matrix").shape
        (1, 2)
    """
    if hasattr(value, "toarray"):
        value = value.toarray()
    if hasattr(value, "detach"):
        # Tensors that record gradients cannot be converted directly.
        tensor = value.detach().cpu()
        value = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as cause:
        raise error(f"expected a rectangular array of numbers: {cause}.", where=where) from cause
    if array.dtype.kind not in "biuf":
        raise error(f"expected real numbers, got an array of dtype {array.dtype}.", where=where)
    return array


def entries(value: Any, *, where: str, error: type[SymcheckError] = SymcheckError) -> list[Any]:
    """The items of a list with one entry per generator.

    Args:
        value: a list, a tuple or a stacked array.
        where: the argument's name, for the error message.
        error: the class to raise.

    Returns:
        A list.

    Raises:
        SymcheckError: not a list, or a list of numbers.

    Example:
        >>> entries([[1, 0]], where="images")
        [[1, 0]]
    """
    items = list(value) if hasattr(value, "__iter__") and not isinstance(value, str | bytes | dict) else None
    # A flat list of numbers is one entry, not a list of entries.
    if items is None or any(isinstance(item, int | float) for item in items):
        raise error(
            f"expected a list with one entry per generator, got {value!r}.",
            where=where,
            remedy="Write [entry], even for a single generator.",
        )
    return items


def square_matrix(value: Any, *, where: str, error: type[SymcheckError] = SymcheckError) -> npt.NDArray[np.float64]:
    """A square matrix of finite numbers, in float64.

    Args:
        value: the array-like, (n, n).
        where: the argument's name, for the error message.
        error: the class to raise.

    Returns:
        The matrix (n, n) in float64.

    Raises:
        SymcheckError: not square, empty, or with NaN or infinite entries.

    Example:
        >>> square_matrix([[1]], where="matrix")
        array([[1.]])
    """
    array = to_numpy(value, where=where, error=error).astype(np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise error(f"expected a square matrix, got an array of shape {array.shape}.", where=where)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise error(f"expected finite numbers, got {array[row, column]} at [{row}, {column}].", where=where)
    return array


def content_hash(*parts: str | npt.NDArray[np.generic]) -> bytes:
    """Sixteen bytes that depend only on values, shapes and dtypes; the same on every machine.

    Args:
        *parts: strings and arrays; arrays are hashed little-endian and in C order.

    Returns:
        16 bytes.

    Example:
        >>> content_hash("a", np.arange(3)) == content_hash("a", np.arange(3))
        True
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(b"s" + part.encode() + b"\0")
        else:
            # Little-endian bytes, so that the hash is the same on every machine.
            little = np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<"))
            digest.update(f"a{little.dtype.str}{little.shape}".encode())
            digest.update(little.tobytes())
    return digest.digest()[:16]
