"""Elements of continuous groups for the wrappers: drawn uniformly, or chosen to align an observation.

The representative of an orbit is the observation in a fixed position. Rotations of the plane map the first listed pair
of frequency 1 onto its positive first axis. Rotations of space map the first vector onto the x axis and the second into
the half plane of x and positive y. Translations map the first shifted component to 0. A pair shorter than 1e-12 is left
unchanged. The element cannot depend continuously on the observation: it jumps near such a pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.entries.forms import AffineEntry
from symcheck.entries.lie_forms import LieEntry
from symcheck.errors import SpecError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.symmetry.elements import Factors, plane_rotations, uniform_element
from symcheck.symmetry.exits import connected
from symcheck.symmetry.tested import BoundTested

NONE = 1e-12
"""The length below which a pair has no direction."""


def random_factors(
    bound: BoundTested, rng: np.random.Generator, amounts: Sequence[tuple[float, float]] | None
) -> Factors:
    """A Haar element of the rotations and discrete generators, with translations drawn from a range.

    Args:
        bound: the claim.
        rng: the generator that draws the element.
        amounts: the range of the amount of each Lie generator that translates.

    Returns:
        The element as factors.
    """
    group = bound.continuous
    shifts = [i for i in range(len(group.algebra)) if not group.turns(i)]
    ranges = list(amounts or ())
    factors: list[tuple[int, float | None]] = [
        (i, float(rng.uniform(low, high))) for i, (low, high) in zip(shifts, ranges, strict=True)
    ]
    factors += uniform_element(group, rng).factors
    for k, factor in enumerate(group.factors):
        own = [h for h, (owner, _) in enumerate(group.discrete_places) if owner == k]
        if factor.finite is not None:
            elements = factor.finite.elements()
            word = factor.finite.word(elements[int(rng.integers(len(elements)))])
            factors += [(own[letter], None) for letter in word]
        elif own and rng.random() < 0.5:
            factors.append((own[0], None))
    return factors


def check_ranges(bound: BoundTested, amounts: Any) -> list[tuple[float, float]]:
    """One range per translation.

    Raises:
        SpecError: a range is missing or is not a pair of finite numbers.
    """
    group = bound.continuous
    shifts = [name for i, name in enumerate(group.algebra) if not group.turns(i)]
    if not shifts:
        return []
    try:
        ranges = np.asarray(amounts, dtype=np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        ranges = np.zeros((0, 2))
    if len(ranges) == 1:
        ranges = np.repeat(ranges, len(shifts), axis=0)
    if len(ranges) != len(shifts) or not np.isfinite(ranges).all() or (ranges[:, 0] > ranges[:, 1]).any():
        raise SpecError(
            "translations have no uniform distribution, so range = (low, high) is needed for "
            f"{', '.join(shifts)}; got {amounts!r}.",
            where="range",
            remedy="Give one pair for all shifts, or one pair for each shift.",
        )
    return [(float(low), float(high)) for low, high in ranges]


class Aligning:
    """Finds the element that aligns an observation.

    Args:
        bound: the claim; every factor must act by data on one vector.

    Raises:
        SpecError: a factor of another kind, or a factor without a listed pair, vector or shifted component.
    """

    def __init__(self, bound: BoundTested) -> None:
        self._bound = bound
        self._group = bound.continuous
        entries = bound.source.algebra["observation"]
        if not all(isinstance(entry, LieEntry) or not entry for entry in entries):
            raise SpecError(
                "observations can be aligned only if the symmetry is given as data on one vector, not as "
                "callables or on sub-spaces.",
                where="symmetry",
                remedy='Write { rotate = [[0, 1]] } or { representation = "vector + ..." } for a flat observation.',
            )
        if len(self._group.factors) > 1 or self._group.generators:
            raise SpecError(
                f"observations can be aligned under SO(2), SO(3), SE(2) and translations only, got {self._group.name}.",
                where="symmetry",
                remedy="Give the symmetry of such a subgroup.",
            )
        self._entries = [entry for entry in entries if isinstance(entry, LieEntry)]
        factor = self._group.factors[0]
        if (factor.turns and factor.n > 3) or (factor.translates and factor.turns and factor.n > 2):
            raise SpecError(f"observations cannot be aligned under {self._group.name}.", where="symmetry")
        size = int(np.prod(bound.observation_space.shape or (1,)))
        self._generators = [entry.homogeneous_generator(size) for entry in self._entries]

    def factors(self, observation: Any) -> Factors:
        """The element g for which g . observation is the representative."""
        flat = np.asarray(observation, dtype=np.float64).reshape(-1)
        shifts = self._group.factors[0].shifts
        first: list[tuple[int, float | None]] = []
        for i in range(shifts):
            moved = self._generators[i][:-1, -1]
            places = np.flatnonzero(moved)
            if len(places):
                first.append((i, -float(flat[places[0]]) / float(moved[places[0]])))
        if not self._group.factors[0].turns:
            return first
        if self._group.factors[0].n == 2:
            return [*self._turn(flat, first, shifts), *first]
        return self._frame(flat)

    def _turn(self, flat: Floats, first: Factors, at: int) -> list[tuple[int, float | None]]:
        # Pairs of the shifted observation.
        moved = np.append(flat, 1.0)
        for i, t in first:
            moved = moved + (t or 0.0) * (self._generators[i] @ moved)
        matrix = self._generators[at][:-1, :-1]
        listed = [(i, j) for i, j, f in self._entries[at].planes if f == 1.0]
        listed += [(int(i), int(j)) for j, i in np.argwhere(matrix == 1.0)] if not listed else []
        fixed = {int(k) for g in self._generators[:at] for k in np.flatnonzero(g[:-1, -1])[:1]}
        for i, j in listed:
            if {i, j} & fixed:  # the translation has moved this point to 0
                continue
            return [(at, -math.atan2(moved[j], moved[i]))] if math.hypot(moved[i], moved[j]) > NONE else []
        raise SpecError(
            "observations cannot be aligned, because the symmetry lists no pair of components of frequency 1.",
            where="symmetry",
        )

    def _frame(self, flat: Floats) -> Factors:
        """The rotation that takes the first vector to x and the second into the xy plane."""
        vectors = [flat[list(triple)] for triple in self._triples()]
        if not vectors:
            raise SpecError(
                "observations cannot be aligned, because none of their components form a vector.", where="symmetry"
            )
        first = vectors[0]
        if np.linalg.norm(first) <= NONE:
            return []
        x = first / np.linalg.norm(first)
        across = [v - (v @ x) * x for v in vectors[1:2]]
        y = across[0] if across and np.linalg.norm(across[0]) > NONE else _any_normal(x)
        y = y / np.linalg.norm(y)
        rotation = np.stack([x, y, np.cross(x, y)])
        planes = self._group.factors[0].planes
        factors: list[tuple[int, float | None]] = []
        for plane, angle in plane_rotations(rotation):
            forward = plane in planes
            factors.append((planes.index(plane if forward else plane[::-1]), angle if forward else -angle))
        return factors

    def _triples(self) -> list[tuple[int, int, int]]:
        """Components (x, y, z) of the vectors, in the order of the observation."""
        about_z, about_x = self._generators[2][:-1, :-1], self._generators[0][:-1, :-1]
        found = []
        for y, x in np.argwhere(about_z == 1.0):
            for z in np.flatnonzero(about_x[:, y] == 1.0):
                found.append((int(x), int(y), int(z)))
        return sorted(found)


def _any_normal(x: Floats) -> Floats:
    axis = np.eye(3)[int(np.argmin(np.abs(x)))]
    return np.asarray(np.cross(x, axis), dtype=np.float64)


def inverse(group: ContinuousGroup, factors: Factors) -> Factors:
    """The inverse element, as factors."""
    made: list[tuple[int, float | None]] = []
    for i, t in reversed(factors):
        made += [(i, -t)] if t is not None else [(i, None)] * (group.order_of(i) - 1)
    return made


class LieElements:
    """The current elements of a continuous group, one per slot, in the form of `symcheck.wrappers.orbit.Elements`.

    Args:
        bound: the claim.
        slots: the number of wrapped environments.
        amounts: ranges of translations, for random elements; None if elements align.
        aligning: whether elements align observations.

    Attributes:
        words: the word of the element of each slot.
        inverses: the word of the inverse of each slot's element.
        names: a readable name of each slot's element.
    """

    copies = False

    def __init__(self, bound: BoundTested, slots: int, *, amounts: Any = None, aligning: bool = False) -> None:
        self._bound, self._slots = bound, slots
        self._amounts = [] if aligning else check_ranges(bound, amounts)
        self._aligning = Aligning(bound) if aligning else None
        self._factors: list[Factors] = [()] * slots
        self.words: list[tuple[int, ...]] = [()] * slots
        self.inverses: list[tuple[int, ...]] = [()] * slots
        self.names: list[str] = ["e"] * slots

    def __len__(self) -> int:
        return self._slots

    def draw(self, rng: np.random.Generator, slots: Sequence[int]) -> None:
        """Give each of these slots a random element."""
        self._put({slot: random_factors(self._bound, rng, self._amounts) for slot in slots})

    def align(self, observations: Sequence[Any], slots: Sequence[int]) -> None:
        """Give each of these slots the element that aligns its observation."""
        if self._aligning is None:
            raise SpecError(
                "elements of this symmetry can be drawn at random, but observations cannot be aligned.",
                where="symmetry",
            )
        self._put({slot: self._aligning.factors(obs) for slot, obs in zip(slots, observations, strict=True)})

    def _put(self, factors: dict[int, Factors]) -> None:
        # Drop the letters of elements that are no longer in use, so that memory does not grow in long episodes.
        self._bound.forget()
        for slot in range(self._slots):
            self._factors[slot] = factors.get(slot, self._factors[slot])
            self.words[slot] = self._bound.spell(self._factors[slot])
            self.inverses[slot] = self._bound.spell(inverse(self._bound.continuous, self._factors[slot]))
            self.names[slot] = str(self._bound.label(self.words[slot])) if self.words[slot] else "e"

    def clip(self, action: Any) -> Any:
        """Clip an action to the bounds of its space; a rotated action may exceed them."""
        space = self._bound.action_space
        if not isinstance(space, spaces.Box):
            return action
        return np.clip(action, space.low, space.high).astype(space.dtype)


def turned_box(bound: BoundTested) -> spaces.Space[Any]:
    """The space of images: rotated components are bounded by their largest norm, shifted components are unbounded."""
    space = bound.observation_space
    if not isinstance(space, spaces.Box) or not bound.is_data("observation"):
        return space
    size = int(np.prod(space.shape))
    group, entries = bound.continuous, bound.source.algebra["observation"]
    mixed, shifted = np.zeros((size, size), dtype=bool), np.zeros(size, dtype=bool)
    for i, entry in enumerate(entries):
        if isinstance(entry, LieEntry):
            matrix, offset = entry.generator(size)
            straight = group.turns(i) and np.abs(matrix + matrix.T).max(initial=0) <= 1e-9
            shifted |= (offset != 0) | (np.zeros(size, dtype=bool) if straight else (matrix != 0).any(axis=1))
            mixed |= matrix != 0
    for rho in bound.source.observation:
        if isinstance(rho, AffineEntry):
            mixed |= rho.dense() != 0
    reach = np.maximum(np.abs(space.low), np.abs(space.high)).reshape(-1).astype(np.float64)
    low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
    for components in connected(mixed | np.diag(shifted)):
        limit = math.inf if shifted[components].any() else float(np.linalg.norm(reach[components]))
        low[components], high[components] = -limit, limit
    dtype: Any = space.dtype
    return spaces.Box(low.reshape(space.shape).astype(dtype), high.reshape(space.shape).astype(dtype), dtype=dtype)
