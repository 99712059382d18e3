"""Copies states, actions and observations, and converts them to vectors and text."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats

IMMUTABLE = frozenset((int, float, bool, np.int64, np.float64, np.float32))


def copy_rows(states: Sequence[Any]) -> Sequence[Any]:
    """Copies of states, because the environment may modify them; plain arrays are copied together."""
    together = stack_alike(list(states))
    rows = isinstance(together, np.ndarray) and together.ndim > 1
    return list(together) if rows else [copy_value(state) for state in states]


def stack_alike(values: list[Any]) -> Any:
    """Values as one array (a copy) if they are plain arrays of one shape and dtype; otherwise the list."""
    if set(map(type, values)) != {np.ndarray} or len({value.dtype for value in values}) > 1:
        return values
    return np.array(values) if len({value.shape for value in values}) == 1 else values


def numeric_batch(states: list[Any]) -> Floats | None:
    """`numeric` of every state, stacked; None if some state contains values that are not numbers."""
    together = stack_alike(states)
    if isinstance(together, np.ndarray) and together.dtype.kind in "iufb":
        return together.astype(np.float64).reshape(len(states), -1)
    vectors = [vector for vector in map(numeric, states) if vector is not None]
    return np.array(vectors) if vectors and len(vectors) == len(states) else None


def numeric(state: Any) -> Floats | None:
    """A state as a float64 vector, or None if it contains values that are not numbers.

    Example:
        >>> numeric((1, 2.5)), numeric({"x": 1})
        (array([1. , 2.5]), None)
    """
    if type(state) is np.ndarray and state.dtype == np.float64 and state.ndim == 1:
        return state.copy()
    try:
        array = np.asarray(state)
    except ValueError:
        return None
    if array.dtype.kind not in "iufb":
        return None
    return array.astype(np.float64).reshape(-1)


def copy_value(value: Any) -> Any:
    """A copy of a value that an environment may modify."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or type(value) in IMMUTABLE:
        return value
    if isinstance(value, int | float | bool | str | bytes | np.generic):
        return value
    if hasattr(value, "__array__"):  # arrays of other libraries, as returned by functional environments
        return np.array(value)
    return copy.deepcopy(value)


def short_text(value: Any) -> str:
    """Format a value as a short text for messages.

    Example:
        >>> short_text(list(range(100)))[-3:]
        '...'
    """
    try:
        text = str(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
    except Exception:  # an integer with thousands of digits, or a user's class whose `repr` raises
        text = f"<{type(value).__name__} that cannot be printed>"
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:157]}..."


def same_value(value: Any, image: Any) -> bool:
    """Whether two observations, actions or states are the same; NaN is NaN, and 1 is 1.0.

    Args:
        value: numbers, strings and arrays, in arbitrarily nested mappings and sequences.
        image: the same.

    Returns:
        False if any part differs. Values that cannot be compared count as equal, because they show no change.

    Example:
        >>> same_value({"x": np.zeros(2)}, {"x": [0.0, -0.0]}), same_value((1, "a"), (1, "b"))
        (True, False)
    """
    if isinstance(value, Mapping) and isinstance(image, Mapping):
        return value.keys() == image.keys() and all(same_value(value[key], image[key]) for key in value)
    if isinstance(value, str) or isinstance(image, str):
        return bool(value == image)
    if hasattr(value, "tolist") and not isinstance(value, np.ndarray | np.generic):
        return same_value(value.tolist(), image.tolist() if hasattr(image, "tolist") else image)
    # Numbers by value, not by type: maps may return another dtype.
    number, other = _as_numbers(value), _as_numbers(image)
    if number is not None and other is not None:
        return number.size == other.size and bool(np.array_equal(number.reshape(-1), other.reshape(-1), equal_nan=True))
    if isinstance(value, Sequence) and isinstance(image, Sequence):
        return len(value) == len(image) and all(map(same_value, value, image))
    return True


def _as_numbers(value: Any) -> Floats | None:
    try:
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind in "iufb" else None
    except (ValueError, TypeError):  # ragged, or not made of numbers
        return None
