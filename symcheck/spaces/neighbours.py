"""Nearby values, a few units in the last place away, for measuring the conditioning of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_HOLE = object()


def neighbour(value: Any, pattern: int, up: bool, units: int) -> Any:
    """A value with its floats changed by a few units in the last place; None if it contains no floats.

    Integral values are not changed: a clock, a flag or a cell index stored as a float has no rounding error, and
    neither has zero. A difference between the outcomes of an integral value and of its exact image comes from the
    environment itself.

    Args:
        value: an array, a number, or a structure of these.
        pattern: seeds the choice of numbers that increase and numbers that decrease.
        up: whether to use the pattern as drawn; False reverses it.
        units: the number of units in the last place.

    Example:
        >>> float(neighbour(np.array([0.5]), 0, True, 1)[0]) != 0.5
        True
    """
    leaves: list[npt.NDArray[Any]] = []
    shape = _take_floats_out(value, leaves)
    if not leaves:
        return None
    rng = np.random.default_rng(pattern)
    for k, leaf in enumerate(leaves):
        rising = rng.integers(0, 2, size=leaf.shape).astype(bool) ^ (not up)
        toward = np.where(rising, np.inf, -np.inf).astype(leaf.dtype)
        for _ in range(units):
            leaf = np.nextafter(leaf, toward)
        leaves[k] = np.where(leaves[k] == np.round(leaves[k]), leaves[k], leaf)
    return _put_floats_back(shape, iter(leaves))


def rounded_image(action: Any, image: Any, *, pattern: int, up: bool, units: int) -> Any:
    """The action's image, with the components that a mixing map has rounded changed by a few units in the last place.

    Args:
        action: the original.
        image: its image.
        pattern: as in `neighbour`.
        up: as in `neighbour`.
        units: as in `neighbour`.

    Example:
        >>> rounded_image(np.array([0.5, 0.25]), np.array([-0.25, 0.5]), pattern=0, up=True, units=1).tolist()
        [-0.25, 0.5]
    """
    if not isinstance(action, np.ndarray) or action.dtype.kind != "f":
        return image
    # A signed permutation rearranges entries without rounding.
    before, after = (np.sort(np.abs(side), axis=None) for side in (action, image))
    return image if np.array_equal(before, after) else neighbour(image, pattern, up, units)


def _take_floats_out(value: Any, leaves: list[npt.NDArray[Any]]) -> Any:
    """The structure of a value; its float arrays are moved to `leaves` and replaced by a placeholder."""
    if isinstance(value, Mapping):
        return {key: _take_floats_out(item, leaves) for key, item in value.items()}
    if isinstance(value, tuple) and not all(isinstance(item, float) for item in value):
        items = [_take_floats_out(item, leaves) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    array = np.asarray(value) if isinstance(value, np.ndarray | Sequence | float) else np.zeros(0, dtype=np.int64)
    if array.dtype.kind != "f":
        return value
    leaves.append(array)
    return _HOLE


def _put_floats_back(shape: Any, leaves: Iterator[npt.NDArray[Any]]) -> Any:
    if shape is _HOLE:
        return next(leaves)
    if isinstance(shape, Mapping):
        return {key: _put_floats_back(item, leaves) for key, item in shape.items()}
    if isinstance(shape, tuple):
        items = [_put_floats_back(item, leaves) for item in shape]
        return type(shape)(*items) if hasattr(shape, "_fields") else tuple(items)
    return shape
