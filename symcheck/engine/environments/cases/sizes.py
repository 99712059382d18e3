"""The size of residuals, per coordinate and relative to the compared values."""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pairs import Comparison
from symcheck.engine.scales import bulk
from symcheck.spaces.coordinates import finite
from symcheck.statements.statement import Statement, state

_SMALL = 0.05  # relative to the typical size of a value: a smaller violation is called approximate


def per_coordinate(comparison: Comparison, residual: Floats, limits: Floats) -> tuple[dict[str, object], ...]:
    """Largest residual and tolerance of every coordinate; empty if there are too many to show."""
    names = comparison.coordinates.names
    if len(names) > 64 or not residual.size:
        return ()
    # If internal float64 values are compared, they replace the rounded observation of the same name.
    largest = dict(zip(names, zip(residual.max(axis=0), limits.max(axis=0), strict=True), strict=True))
    return tuple(
        {"name": name, "max_residual": float(most), "tolerance": float(allowed)}
        for name, (most, allowed) in largest.items()
    )


def approximate_size(comparison: Comparison, size: float) -> Statement | None:
    """The note that a violation is small relative to the compared values; None if it is not.

    Args:
        comparison: both sides of all cases.
        size: the largest residual.

    Returns:
        The note `approximate_size`, with the coordinate and its typical size.
    """
    if comparison.part == "termination" or not 0 < size < np.inf:
        return None
    residual = comparison.residual()
    column = int(np.argmin(np.abs(residual.max(axis=0) - size)))
    values = comparison.expected[:, [column]]
    near = ~bulk(values, comparison.coordinates.epsilon[[column]]).far
    typical = float(np.sqrt(np.mean(finite(values[near]) ** 2)))
    if not size < _SMALL * typical:
        return None
    name = comparison.coordinates.names[column]
    return state("approximate_size", size=size, coordinate=name, typical=typical)
