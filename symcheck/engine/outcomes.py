"""Determines whether a comparison could have found a difference: it needs numbers to compare, and values that vary.

Every method tests this before it reports a pass; `symcheck.verdict.decide` draws the conclusions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symcheck.array_types import Floats
from symcheck.spaces.values import short_text


class Outcomes(NamedTuple):
    """Facts about the values on both sides of one quantity.

    Attributes:
        finite: whether anything was compared: not every coordinate was always NaN, or always the same infinity.
        stuck: if nothing was compared, its value: "NaN" or "infinite".
        constant: the value that never varied, as text; None if it varied, or if nothing was compared.
    """

    finite: bool
    stuck: str
    constant: str | None


def outcomes_of(*sides: Floats) -> Outcomes:
    """Facts about the values of one quantity.

    Args:
        sides: arrays of shape (n, dim); the sides need not have the same n.

    Returns:
        The facts for all rows of all sides together.

    Example:
        >>> outcomes_of(np.ones((3, 1)), np.ones((3, 1))).constant
        '1'
        >>> outcomes_of(np.full((3, 1), np.nan), np.full((3, 1), np.nan)).finite
        False
    """
    values = np.concatenate(sides)
    if not values.size:
        return Outcomes(True, "", None)
    first = values[0]
    # A coordinate that is always NaN, or always the same infinity, compares nothing.
    fixed = ((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=0)
    if (fixed & ~np.isfinite(first)).all():
        return Outcomes(False, "NaN" if np.isnan(first).any() else "infinite", None)
    if not fixed.all():
        return Outcomes(True, "", None)
    return Outcomes(True, "", f"{first[0] + 0.0:g}" if first.size == 1 else short_text(first + 0.0))
