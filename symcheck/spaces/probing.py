"""Determines the matrix and offset of a callable by evaluating it on vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.array_types import Floats

MOST_PROBED = 32  # maximum number of coordinates for which a callable is probed


def linear_map(function: Callable[[Any], Any], example: Any) -> tuple[Floats, Floats] | None:
    """Matrix and offset of a map of vectors, found by probing; None if it is not affine or cannot be probed.

    Args:
        function: a map of arrays like `example`.
        example: an array of floats.

    Returns:
        (matrix, offset), shapes (dim, dim) and (dim,), float64.

    Example:
        >>> matrix, offset = linear_map(lambda x: 1 - x, np.zeros(2))
        >>> matrix.tolist(), offset.tolist()
        ([[-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0])
    """
    if not isinstance(example, np.ndarray) or example.size > MOST_PROBED:
        return None
    size = example.size
    try:
        offset = _apply_to_vector(function, np.zeros(size), example)
        matrix = np.stack([_apply_to_vector(function, row, example) - offset for row in np.eye(size)], axis=1)
        # Distinct entries, so that a map that is not affine agrees with its matrix only by coincidence.
        probe = np.arange(1.0, size + 1)
        image = _apply_to_vector(function, probe, example)
    except Exception:  # a user's callable may reject numbers that are not a state
        return None
    # float32 callables round to 1e-7 of the probe's size (at most 32).
    if not np.allclose(matrix @ probe + offset, image, rtol=1e-5, atol=1e-5):
        return None
    return np.where(np.abs(matrix) < 1e-6, 0.0, matrix), np.where(np.abs(offset) < 1e-6, 0.0, offset)


def _apply_to_vector(function: Callable[[Any], Any], vector: Floats, example: Any) -> Floats:
    image = function(vector.astype(example.dtype).reshape(example.shape))
    return np.asarray(image, dtype=np.float64).reshape(-1)
