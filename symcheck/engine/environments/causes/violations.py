"""The violations of one property, with what is needed to ask why: plain data, for the modules that look for causes."""

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
    """What was measured of one property that some pairs violate.

    Attributes:
        part: the property.
        pairs: makes and steps more cases.
        measured: all cases that the environment stepped.
        comparison: both sides of the property on them.
        tolerance: of the run.
        confirmed: rows of confirmed violations.
        share: the fraction of all pairs that exceed their tolerance, by more than rounding or chance.
        rounded: whether most of those that were examined differ by rounding or chance.
        repeats: how often a violation must repeat.
        rng: a generator for each purpose, by name.
        in_time: whether this share of the time budget is not spent.
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
        """Whether each case of a comparison exceeds its tolerance somewhere, shape (n,)."""
        return np.asarray((~(comparison.residual() <= self.tolerance.of(comparison))).any(axis=1))
