"""The violations of one property, as plain data for the modules that search for causes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.engine.environments.cases.pairs import Comparison, Measurement, Pairs
from symcheck.engine.environments.cases.tolerance import Tolerance
from symcheck.engine.equations import Part


@dataclass(frozen=True)
class Violations:
    """The measurements of one property that some pairs violate.

    Attributes:
        part: the property.
        pairs: builds and steps more cases.
        measured: all cases that the environment stepped.
        comparison: both sides of the property on them.
        tolerance: the tolerance of the run.
        confirmed: rows of confirmed violations.
        share: the fraction of all pairs that exceed their tolerance, not explained by rounding or chance.
        rounded: whether rounding or chance explains most of those examined.
        repeats: the number of times a violation must repeat.
        rng: a generator for each purpose, by name.
        in_time: whether the given share of the time budget is still available.
    """

    part: Part
    pairs: Pairs
    measured: Measurement
    comparison: Comparison
    tolerance: Tolerance
    confirmed: list[int]
    share: float
    rounded: bool
    repeats: int
    rng: Callable[[str], np.random.Generator]
    in_time: Callable[[float], bool]

    def exceeding(self, comparison: Comparison) -> npt.NDArray[np.bool_]:
        """Whether each case of a comparison exceeds its tolerance in some coordinate, shape (n,)."""
        return np.asarray((~(comparison.residual() <= self.tolerance.of(comparison))).any(axis=1))
