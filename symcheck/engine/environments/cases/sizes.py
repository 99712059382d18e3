"""How large residuals are, coordinate by coordinate and beside the values that they are residuals of."""

from __future__ import annotations

import numpy as np

from symcheck.engine.environments.cases.pairs import Comparison, Part
from symcheck.engine.environments.subject.coordinates import Vector
from symcheck.engine.results import PropertyResult

_SMALL = 0.05  # of the typical size of a value: below, a violation is called approximate


def per_coordinate(comparison: Comparison, residual: Vector, limits: Vector) -> tuple[dict[str, object], ...]:
    """Largest residual and tolerance of every coordinate; nothing where there are too many to show."""
    names = comparison.coordinates.names
    if len(names) > 64 or not residual.size:
        return ()
    rows = {}
    for j, name in enumerate(names):  # internal float64 values, where compared, replace the rounded observation
        rows[name] = {
            "name": name,
            "max_residual": float(residual[:, j].max()),
            "tolerance": float(limits[:, j].max()),
        }
    return tuple(rows.values())


def approximate_size(part: Part, comparison: Comparison, result: PropertyResult) -> str:
    """The size of a violation that is small beside the values it is a violation of, in words; else ""."""
    if part == "termination" or not (0 < (size := result.max_residual or 0.0) < np.inf):
        return ""
    residual = comparison.residual()
    column = int(np.argmin(np.abs(residual.max(axis=0) - size)))
    values = comparison.expected[:, column]
    typical = float(np.sqrt(np.mean(np.where(np.isfinite(values), values, 0.0) ** 2)))
    if not size < _SMALL * typical:
        return ""
    name = comparison.coordinates.names[column]
    return f"Approximate: violated by at most {size:.2g} in {name}, {size / typical:.1g} of its typical {typical:.2g}."
