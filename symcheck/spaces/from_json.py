"""Restores values from JSON, in the form of a given value or in the types of a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def like(form: Any, value: Any) -> Any:
    """Restore a value from JSON in the form of another value; parts that JSON cannot represent are taken from `form`.

    Args:
        form: mappings, sequences, arrays, numbers and strings, with any nesting; anything else is kept unchanged.
        value: the JSON form of such a value in a report.

    Raises:
        ValueError: a number or an array does not match the form.
        TypeError: as ValueError.

    Example:
        >>> like({"x": np.zeros(2), "n": 3, "owner": print}, {"x": [1.0, "NaN"], "n": 4, "owner": "<built-in>"})
        {'x': array([ 1., nan]), 'n': 4, 'owner': <built-in function print>}
    """
    if isinstance(form, Mapping) and isinstance(value, Mapping):
        return {key: like(item, value[str(key)]) if str(key) in value else item for key, item in form.items()}
    if isinstance(form, np.ndarray):
        return np.array(floats(value), dtype=form.dtype).reshape(form.shape)
    if isinstance(form, list | tuple) and isinstance(value, list) and len(value) == len(form):
        items = [like(*both) for both in zip(form, value, strict=True)]
        return type(form)(*items) if hasattr(form, "_fields") else type(form)(items)
    if form is None or isinstance(form, str | bool):
        return value
    return type(form)(value) if isinstance(form, int | float | np.number) else form


def from_json(space: spaces.Space[Any], value: Any) -> Any:
    """Restore a value of a space from JSON; "NaN" and "Infinity" become numbers.

    Args:
        space: any of Gymnasium's spaces.
        value: lists, mappings, strings and numbers; a graph is [nodes, edges, links].

    Returns:
        A value in the space's own types.

    Raises:
        ValueError: the value does not have the space's shape.

    Example:
        >>> from_json(spaces.Box(-1, 1, (2,)), [0.5, "NaN"])
        array([0.5, nan], dtype=float32)
        >>> from_json(spaces.OneOf([spaces.Discrete(2), spaces.Text(3)]), [1, "ab"])
        (np.int64(1), 'ab')
    """
    if isinstance(space, spaces.Dict):
        return {key: from_json(child, value[str(key)]) for key, child in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(from_json(child, item) for child, item in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Sequence):
        return _sequence(space, value)
    if isinstance(space, spaces.Graph):
        nodes, edges, links = value
        pairs = None if links is None else np.array(links, dtype=np.int32).reshape(-1, 2)
        return spaces.GraphInstance(_features(space.node_space, nodes), _features(space.edge_space, edges), pairs)
    if isinstance(space, spaces.OneOf):
        return np.int64(value[0]), from_json(space.spaces[int(value[0])], value[1])
    if isinstance(space, spaces.Discrete):
        return np.int64(value)
    if isinstance(value, str):
        return value
    return np.array(floats(value), dtype=space.dtype).reshape(space.shape or ())


def _sequence(space: spaces.Sequence, value: Any) -> Any:
    """A sequence, stacked where the space stacks; structured elements arrive stacked as well, part by part."""
    if not space.stack:
        return tuple(from_json(space.feature_space, item) for item in value)
    if isinstance(space.feature_space, spaces.Dict):
        parts = space.feature_space.spaces.items()
        return {key: _sequence(spaces.Sequence(child, stack=True), value[str(key)]) for key, child in parts}
    return _features(space.feature_space, value)


def _features(space: spaces.Space[Any] | None, values: Any) -> Any:
    if space is None or values is None:
        return None
    return np.array(floats(values), dtype=space.dtype).reshape(-1, *(space.shape or ()))


def floats(value: Any) -> Any:
    """Convert numbers of a report, nested in lists, to floats; "NaN" and "Infinity" become numbers.

    Example:
        >>> floats([1, ["-Infinity"]])
        [1.0, [-inf]]
    """
    return [floats(item) for item in value] if isinstance(value, list) else float(value)
