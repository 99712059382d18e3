"""The group that accepted maps generate: listed where it is small, by a stabilizer chain where it is not.

Identical parts can be exchanged at will, and n of them make n! maps: membership and order need no list of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from symcheck.discovery.elements import (
    Key,
    Recognised,
    as_permutations,
    closure,
    obeys_symmetric,
    permutation_of,
    recognise,
    symmetric_degree,
)
from symcheck.discovery.maps import Candidate
from symcheck.errors import SymcheckError
from symcheck.groups import large
from symcheck.groups.element import Element

_DRAWN = 12  # sets of products that may generate the group with fewer maps
_SMALL_SETS = (2, 3)


def as_point(candidate: Candidate) -> Element:
    """A map without offset as a permutation of signed coordinates."""
    return Element(tuple(permutation_of(candidate)))


class Products:
    """All products of some maps.

    Args:
        generators: any number.
        identity: the identity on the same spaces.

    Attributes:
        generators: as given.
        identity: as given.
        listed: the elements by their keys, the identity first; None if there are too many to list.

    Raises:
        SymcheckError: there are too many to list, and some map is not a signed permutation: it has an offset.

    Example:
        >>> from symcheck.discovery.maps import SignedMap
        >>> one = SignedMap.identity(1)
        >>> flip = Candidate(SignedMap.of([0], [-1]), one, one)
        >>> known = Products([flip], Candidate(one, one, one))
        >>> known.order, flip in known
        (2, True)
    """

    def __init__(self, generators: Sequence[Candidate], identity: Candidate) -> None:
        self.generators = tuple(generators)
        self.identity = identity
        self.listed: dict[Key, Candidate] | None = None
        try:
            self.listed = closure(self.generators, identity)
        except SymcheckError:
            # Points of a stabilizer chain are signed coordinates, which an offset does not permute.
            if any(any(part.offset) for each in self.generators for part in each.key):
                raise

    @cached_property
    def _points(self) -> tuple[Element, ...]:
        return tuple(as_point(each) for each in self.generators)

    @cached_property
    def order(self) -> int:
        """The number of elements."""
        return len(self.listed) if self.listed is not None else large.order(self._points)

    def __contains__(self, candidate: Candidate) -> bool:
        if self.listed is not None:
            return candidate.key in self.listed
        if any(any(part.offset) for part in candidate.key):
            return False
        return large.word(self._points, as_point(candidate)) is not None

    def leads_to(self, candidate: Candidate, other: Candidate) -> bool:
        """Whether products with one map, on one side, give another."""
        back = candidate.inverse()
        return (other * back) in self or (back * other) in self

    @cached_property
    def moves_actions_alone(self) -> bool:
        """Whether some element leaves every state where it is and moves actions."""
        if self.listed is not None:
            return any(each.state.is_identity and not each.action.is_identity for each in self.listed.values())
        states = 2 * self.identity.state.dim
        by_state = [Element(points.images[:states]) for points in self._points]
        return large.order(by_state) < self.order


def name_group(known: Products) -> Recognised:
    """Name a group and choose generators that are easy to say, or few.

    Args:
        known: all products of some maps.

    Returns:
        The group with its generators.

    Example:
        >>> from symcheck.discovery.maps import SignedMap
        >>> one = SignedMap.identity(1)
        >>> parts = SignedMap.identity(8)
        >>> swaps = [SignedMap.of([*range(i), i + 1, i, *range(i + 2, 8)]) for i in range(7)]
        >>> known = Products([Candidate(swap, one, swap) for swap in swaps], Candidate(parts, one, parts))
        >>> found = name_group(known)
        >>> found.name, found.order, len(found.generators)
        ('S8', 40320, 2)
    """
    if known.listed is not None:
        return recognise(known.listed, known.identity)
    generators = _independent(known)
    symmetric = _as_symmetric(generators, known)
    if symmetric is not None:
        return symmetric
    return as_permutations(_fewer(generators, known), known.order)


def _independent(known: Products) -> list[Candidate]:
    """Generators none of which is a product of those before it, simple ones first."""
    chosen: list[Candidate] = []
    points: tuple[Element, ...] = ()
    for each in sorted(known.generators, key=lambda one: one.cost):
        point = as_point(each)
        if not points or large.word(points, point) is None:
            chosen.append(each)
            points = (*points, point)
            if large.order(points) == known.order:
                break
    return chosen


def _as_symmetric(generators: Sequence[Candidate], known: Products) -> Recognised | None:
    """S_n from swaps: their product in any order that follows a tree of them is a cycle of all parts."""
    n = symmetric_degree(known.order)
    if n is None or any(each.order != 2 for each in generators):
        return None
    cycle = known.identity
    for each in generators:
        cycle = cycle * each
    for swap in generators:
        if cycle.order == n and obeys_symmetric(swap, cycle, n, known.identity):
            return Recognised(f"S{n}", f"symmetric({n})", known.order, (swap, cycle))
    return None


def _fewer(generators: list[Candidate], known: Products) -> list[Candidate]:
    """Two or three products that generate the same group, where some are found quickly."""
    rng = np.random.default_rng(len(generators))
    for size in _SMALL_SETS:
        for _ in range(_DRAWN if size < len(generators) else 0):
            drawn = [_multiply(generators, rng, known.identity) for _ in range(size)]
            if large.order([as_point(each) for each in drawn]) == known.order:
                return drawn
    return generators


def _multiply(generators: Sequence[Candidate], rng: np.random.Generator, identity: Candidate) -> Candidate:
    """The product of a few generators in random order."""
    product = identity
    for i in rng.permutation(len(generators))[: int(rng.integers(1, len(generators) + 1))]:
        product = product * generators[i]
    return product
