"""The tolerance that separates rounding from violations, derived and measured.

No fixed tolerance works: the residual of a true symmetry is 0 in one environment and 1e-5 in another. The tolerance of
one coordinate in one case is

    SAFETY * (epsilon * scale + nudge) + noise

`epsilon` is the rounding unit of the coordinate's dtype, `scale` the larger of the two values compared, `nudge` the
change of the outcome when the state changes by one unit in the last place (the measured conditioning of the step), and
`noise` the difference between two steps from the same (s, a). The nudge also includes the change of the outcome when an
action that wrappers compute in float32 changes by a rounding unit and, for rewards, when the same action is given in
float64. Scale and nudge are at least the typical values of the coordinate. Typical values are robust: an outlier, such
as a sensor's maximum or a diverged simulation, loosens only its own tolerance.

If a case lies within one unit in the last place of a discontinuity (a wall, a threshold), the nudge changes its outcome
completely. Rounding cannot explain such a case, so it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.pairs import Case, Comparison, Measurement, Pairs
from symcheck.engine.equations import Part
from symcheck.engine.scales import TypicalMovement, sizes_beside_others
from symcheck.envs.stepping.rounded_actions import computed_box, moved_actions
from symcheck.errors import SymcheckError
from symcheck.spaces.coordinates import finite
from symcheck.spaces.neighbours import rounded_image

# A step rounds a few times, and each rounding changes the result by about one unit. Measured over 12,000 pairs of
# symmetric environments, in units of (epsilon * scale + typical nudge): 1.5 in float32 about a point, 1.3 for the
# reward of Pendulum, below 1 for 99% of Acrobot's transitions (its most sensitive states, up to 20, have tolerances
# from their own nudges). 16 leaves a factor of ten, and stays far below the smallest faults worth reporting.
SAFETY = 16.0
_NUDGED_CASES = 48  # number of cases that determine the typical nudge of the run
# Sizes of the nudges of a suspicious case, in ulps: SAFETY is the assumed reach of rounding. Each nudge is applied in a
# random pattern of directions and in the opposite one, so that one of the two crosses a threshold.
_NUDGES = (1, 4, int(SAFETY))
_AWAY = 1024  # ulps: beyond the reach of rounding, but small compared with the distance of two thresholds


class Tolerance:
    """The tolerances of one run.

    Args:
        pairs: measures cases.
        noise: the difference that repeated steps from the same (s, a) may show, per part, per coordinate or common to
            all; parts that agreed are missing.
    """

    def __init__(self, pairs: Pairs, noise: dict[Part, Floats]) -> None:
        self._pairs = pairs
        self._noise = noise
        self._typical: dict[Part, TypicalMovement] = {}
        self._sizes: dict[Part, Floats] = {}

    def learn_sizes(self, comparison: Comparison) -> None:
        """Measure the typical size of every coordinate on these cases, for all later tolerances of this property."""
        self._sizes[comparison.part] = _typical_sizes(comparison)

    def of(self, comparison: Comparison, nudge: Floats | float = 0.0) -> Floats:
        """Tolerance of every coordinate of every case, shape (n, dim), in the coordinates' units.

        Args:
            comparison: the two sides.
            nudge: measured change of these cases, shape (n, dim); the run's typical nudge is used if it is larger.

        Returns:
            Shape (n, dim); 0 for integers, which are compared exactly.
        """
        epsilon, typical = comparison.coordinates.epsilon, self._sizes.get(comparison.part)
        typical = _typical_sizes(comparison) if typical is None else typical
        size = np.maximum(finite(np.maximum(np.abs(comparison.expected), np.abs(comparison.actual))), typical)
        known = self._typical.get(comparison.part)
        moved = nudge if known is None else np.maximum(nudge, known.of(size))
        noise = self._noise_of(comparison)
        return np.where(epsilon > 0, SAFETY * (epsilon * size + moved) + noise, np.asarray(nudge, dtype=float))

    def _noise_of(self, comparison: Comparison) -> Floats:
        """The noise of every coordinate, shape (dim,); for internal states, the largest known noise."""
        known, dim = self._noise.get(comparison.part, np.zeros(1)), len(comparison.coordinates.epsilon)
        return np.append(known, np.full(dim, known.max()))[:dim]

    def local_tolerance(self, comparison: Comparison, cases: Sequence[Case], rng: np.random.Generator) -> Floats:
        """Tolerance of suspicious cases, from nudges of their own states; see `of` and `nudges`."""
        moved = self.nudges(comparison.part, cases, rng)
        return self.of(comparison, 0.0 if moved is None else moved)

    def tolerance_up_to(
        self, residual: Floats, comparison: Comparison, plain: Measurement, rng: np.random.Generator
    ) -> Floats:
        """Tolerance of suspicious cases, which are nudged further only while it is below their residual.

        Larger nudges only raise a tolerance, so the answer to whether rounding explains a residual is that of
        `local_tolerance`.

        Args:
            residual: shape (n, dim).
            comparison: both sides of the cases, as judged.
            plain: the same cases, measured again.
            rng: draws the directions.
        """
        largest, rest = np.zeros_like(comparison.expected), np.arange(len(plain.cases))
        for units in _NUDGES:
            some = plain.rows(rest)
            neighbours = self._neighbours(some.cases, rng, (units,))
            if neighbours is None:
                break
            largest[rest] = np.maximum(largest[rest], self._movement(comparison.part, some, neighbours))
            within = (residual <= self.of(comparison, largest)).all(axis=1)  # NaN counts as outside
            rest = np.flatnonzero(~within)
            if not len(rest):
                break
        return self.of(comparison, largest)

    def learn(self, parts: Sequence[Part], measured: Measurement, rng: np.random.Generator) -> None:
        """Measure the typical effect of a nudge on the outcomes of these cases, for several properties at once.

        Cases that do not repeat are ignored, because their outcomes change without a nudge too.
        """
        for part in parts:
            self.learn_sizes(self._pairs.comparison(part, measured))
        rows = rng.permutation(len(measured.cases))[:_NUDGED_CASES]
        cases = [measured.cases[i] for i in rows]
        plain = self._pairs.measure(cases)
        neighbours = self._neighbours(cases, rng, (1,))
        if neighbours is None or not cases:
            return
        before = measured.rows(rows)
        for part in parts:
            if not self._repeats(part, before, plain):
                continue
            # A change is infinite if only one side is NaN; this is unrelated to rounding.
            moved = finite(self._movement(part, plain, neighbours))
            unmoved = self._pairs.comparison(part, plain)
            self._typical[part] = TypicalMovement(np.fmax(np.abs(unmoved.expected), np.abs(unmoved.actual)), moved)

    def _repeats(self, part: Part, before: Measurement, again: Measurement) -> bool:
        """Whether both sides of the same cases, stepped twice, agree up to rounding and the known noise."""
        one, two = self._pairs.comparison(part, before), self._pairs.comparison(part, again)
        # The known noise is the maximum of a few repetitions; others may be larger, but not by an order of magnitude.
        limits = SAFETY * self.of(one)
        sides = ((one.expected, two.expected), (one.actual, two.actual))
        return all(bool((one.coordinates.residual(*side) <= limits).all()) for side in sides)

    def nudges(
        self, part: Part, cases: Sequence[Case], rng: np.random.Generator, *, sizes: Sequence[int] = _NUDGES
    ) -> Floats | None:
        """Largest change of either side's outcome under nudges of the state, per unit in the last place.

        Changes of whole-number outcomes are not divided by the size of the nudge.

        Args:
            part: the property.
            cases: the cases to nudge.
            rng: draws the directions.
            sizes: the sizes of the nudges, in units in the last place.

        Returns:
            Shape (len(cases), dim), or None if states are not made of floats.
        """
        neighbours = self._neighbours(cases, rng, sizes)
        return None if neighbours is None else self._movement(part, self._pairs.measure(cases), neighbours)

    def nudges_nearby(self, part: Part, cases: Sequence[Case], rng: np.random.Generator) -> Floats:
        """Largest change under nudges of states nearby, so that an isolated discontinuity is avoided.

        Returns:
            Shape (len(cases), dim); 0 where states are not made of floats.
        """
        beside = self._measure_nudged(cases, int(rng.integers(2**31)), True, _AWAY)
        moved = None if beside is None else self.nudges(part, beside.cases, rng)
        return np.zeros((len(cases), 1)) if moved is None else moved

    def _neighbours(
        self, cases: Sequence[Case], rng: np.random.Generator, sizes: Sequence[int]
    ) -> list[tuple[int, Measurement]] | None:
        """The cases stepped from nearby states, with their distance in units in the last place."""
        neighbours = []
        for units in sizes:
            pattern = int(rng.integers(2**31))
            for up in (True, False):
                moved = self._measure_nudged(cases, pattern, up, units)
                if moved is None:
                    return None
                neighbours.append((units, moved))
        return neighbours

    def _movement(self, part: Part, plain: Measurement, neighbours: Sequence[tuple[int, Measurement]]) -> Floats:
        """Largest change of either side, per unit in the last place, shape (n, dim)."""
        unmoved = self._pairs.comparison(part, plain)
        largest = np.zeros_like(unmoved.expected)
        for units, moved in neighbours:
            nudged = self._pairs.comparison(part, moved)
            sides = (
                unmoved.coordinates.residual(unmoved.expected, nudged.expected),
                unmoved.coordinates.residual(unmoved.actual, nudged.actual),
            )
            largest = np.maximum(largest, np.maximum(*sides) / np.where(unmoved.coordinates.epsilon > 0, units, 1))
        largest = np.maximum(largest, self._of_computed_actions(unmoved, plain.cases))
        return np.maximum(largest, self._of_narrow_actions(unmoved, plain.cases)) if part == "reward" else largest

    def _of_computed_actions(self, plain: Comparison, cases: Sequence[Case]) -> Floats | float:
        """The effect of one rounding unit of the float32 actions that wrappers compute; see `rounded_actions`."""
        env = self._pairs.stepper.env
        box = computed_box(env)
        if box is None:
            return 0.0
        largest = np.zeros_like(plain.expected)
        for units in (-1, 1):
            with moved_actions(env, box, units):
                other = self._pairs.comparison(plain.part, self._pairs.measure(list(cases)))
            for still, moved in ((plain.expected, other.expected), (plain.actual, other.actual)):
                largest = np.maximum(largest, plain.coordinates.residual(still, moved))
        return largest

    def _of_narrow_actions(self, plain: Comparison, cases: Sequence[Case]) -> Floats | float:
        """The effect of rounding in the actions' own dtype: sum(a^2) in float32 depends on the order of summation."""
        if not all(isinstance(case.action, np.ndarray) and case.action.dtype == np.float32 for case in cases):
            return 0.0
        wide = [
            c._replace(action=c.action.astype(float), image_action=np.asarray(c.image_action, float)) for c in cases
        ]
        try:
            other = self._pairs.comparison("reward", self._pairs.measure(wide))
        except SymcheckError:  # an environment may require its actions' dtype
            return 0.0
        sides = ((plain.expected, other.expected), (plain.actual, other.actual))
        return np.maximum(*(plain.coordinates.residual(narrow_side, wide_side) for narrow_side, wide_side in sides))

    def _measure_nudged(self, cases: Sequence[Case], pattern: int, up: bool, units: int) -> Measurement | None:
        stepper, placement = self._pairs.stepper, self._pairs.placement
        nudged_cases = []
        for i, case in enumerate(cases):
            situation = placement.nudge_situation(case.situation, pattern=pattern + i, up=up, units=units)
            image = placement.nudge_situation(case.image, pattern=pattern + i, up=up, units=units)
            if situation is None or image is None:
                return None
            image_action = rounded_image(case.action, case.image_action, pattern=pattern + i, up=up, units=units)
            nudged_cases.append(Case(case.word, situation, case.action, image, image_action))
        left = stepper.outcomes([c.situation.state for c in nudged_cases], [c.action for c in nudged_cases])
        right = stepper.outcomes([c.image.state for c in nudged_cases], [c.image_action for c in nudged_cases])
        return Measurement(nudged_cases, left, right)


def _typical_sizes(comparison: Comparison) -> Floats:
    """The typical size of every coordinate that is subject to rounding, shape (dim,); 0 for integers."""
    epsilon = comparison.coordinates.epsilon
    rounded, sizes = epsilon > 0, np.zeros(len(epsilon))
    both = np.concatenate([comparison.expected[:, rounded], comparison.actual[:, rounded]])
    sizes[rounded] = sizes_beside_others(both, epsilon[rounded])
    return sizes
