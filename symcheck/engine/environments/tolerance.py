"""When is a residual rounding, and when is it a violation? The tolerance, derived and measured.

No fixed tolerance decides: true symmetries leave 0 in one environment and 1e-5 in another. The tolerance of one
coordinate in one case is

    SAFETY * (epsilon * scale + nudge) + noise

`epsilon` is the rounding unit of the coordinate's dtype, `scale` the larger of both values and of what is typical for
the coordinate, `nudge` how far the outcome moves when the state moves by one unit in the last place (the conditioning
of the step, measured), and `noise` what the same (s, a) differed by when it was stepped twice.

A case within a unit in the last place of a jump (a wall, a threshold) is moved far by the nudge: it cannot be judged
by rounding, and is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.engine.environments.coordinates import Vector
from symcheck.engine.environments.pairs import Case, Comparison, Measurement, Pairs, Part
from symcheck.engine.environments.stepper import stacked

# A step rounds a handful of times and each rounding moves the result by at most one unit. On correct environments
# (Acrobot's RK4 in float64, MountainCar and Pendulum in float32) the largest residual stays below 4 units plus nudges;
# see benchmarks/README.md. 16 leaves a factor of four, and stays far below the smallest faults worth reporting.
SAFETY = 16.0
_NUDGED_CASES = 48  # for the typical nudge of the whole run
_NUDGES = 6  # per suspicious case: the chance that all six miss a jump on one side is 1/64
_TYPICAL_QUANTILE = 0.9  # a tenth of the cases may sit at jumps without loosening everybody's tolerance


class Tolerance:
    """Tolerances of one run.

    Args:
        pairs: measures cases.
        noise: largest difference between repeated steps from the same (s, a), per part; 0 where they agreed.
    """

    def __init__(self, pairs: Pairs, noise: dict[Part, float]) -> None:
        self._pairs = pairs
        self._noise = noise
        self._typical: dict[Part, Vector] = {}

    def of(self, comparison: Comparison, nudge: Vector | float = 0.0) -> Vector:
        """Tolerance of every coordinate of every case, shape (n, dim), in the coordinates' units.

        Args:
            comparison: the two sides.
            nudge: measured movement of these cases, shape (n, dim); the run's typical nudge is used where larger.

        Returns:
            Shape (n, dim); 0 for whole numbers, which are compared exactly.
        """
        epsilon = comparison.coordinates.epsilon
        scale = np.maximum(np.abs(comparison.expected), np.abs(comparison.actual))
        scale = np.maximum(np.where(np.isfinite(scale), scale, 0.0), _typical_scale(scale))
        moved = np.maximum(nudge, self._typical.get(comparison.part, np.zeros(comparison.coordinates.dim)))
        noise = self._noise.get(comparison.part, 0.0)
        return np.where(epsilon > 0, SAFETY * (epsilon * scale + moved) + noise, np.asarray(nudge, dtype=float))

    def learn(self, part: Part, measured: Measurement, rng: np.random.Generator) -> None:
        """Measure how far a nudge typically moves the outcome of these cases."""
        rows = rng.permutation(len(measured.cases))[:_NUDGED_CASES]
        cases = [measured.cases[i] for i in rows]
        moved = self.nudges(part, cases, rng, times=1)
        if moved is not None and len(moved):
            # Jumps are infinite where only one side is NaN; they say nothing about rounding.
            finite = np.where(np.isfinite(moved), moved, np.nan)
            with np.errstate(all="ignore"):
                typical = np.nanquantile(np.nan_to_num(finite, nan=0.0), _TYPICAL_QUANTILE, axis=0)
            self._typical[part] = typical

    def nudges(
        self, part: Part, cases: Sequence[Case], rng: np.random.Generator, *, times: int = _NUDGES
    ) -> Vector | None:
        """Largest movement of either side's outcome under nudges of the state.

        Args:
            part: the property.
            cases: what to nudge.
            rng: draws the directions.
            times: nudges per case.

        Returns:
            Shape (len(cases), dim), or None where states are not made of floats.
        """
        plain = self._pairs.comparison(part, self._pairs.measure(cases))
        largest = np.zeros_like(plain.expected)
        for _ in range(times):
            moved = self._nudged(cases, rng)
            if moved is None:
                return None
            other = self._pairs.comparison(part, moved)
            sides = (
                plain.coordinates.residual(plain.expected, other.expected),
                plain.coordinates.residual(plain.actual, other.actual),
            )
            largest = np.maximum(largest, np.maximum(*sides))
        return largest

    def _nudged(self, cases: Sequence[Case], rng: np.random.Generator) -> Measurement | None:
        stepper, placement = self._pairs.stepper, self._pairs.placement
        left, right, nudged_cases = [], [], []
        for case in cases:
            situation, image = placement.nudged(case.situation, rng), placement.nudged(case.image, rng)
            if situation is None or image is None:
                return None
            left.append(stepper.outcome(situation.state, case.action))
            right.append(stepper.outcome(image.state, case.image_action))
            nudged_cases.append(Case(case.word, situation, case.action, image, case.image_action))
        return Measurement(nudged_cases, stacked(left), stacked(right))


def _typical_scale(scale: Vector) -> Vector:
    finite = np.where(np.isfinite(scale), scale, 0.0)
    return np.sqrt(np.mean(finite**2, axis=0)) if len(finite) else np.zeros(scale.shape[1:])
