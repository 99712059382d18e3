"""The finite group that some maps generate, and its name.

Elements are distinguished by what they do to states and actions. Groups are recognised where the catalogue has them
(cyclic, dihedral, products of these with cyclic groups, symmetric); any other is written as a permutation group.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.errors import SymcheckError
from symcheck.groups import catalog

MOST_ELEMENTS = 2000
Key = tuple[SignedMap, SignedMap]


@dataclass(frozen=True)
class Recognised:
    """A group with generators that fit the catalogue's presentation.

    Attributes:
        name: for people, "C2", "D4", "C2 x C2".
        written: for SPEC files, "cyclic(2)".
        order: number of elements.
        generators: in the order that the catalogue expects.
    """

    name: str
    written: str
    order: int
    generators: tuple[Candidate, ...]


def closure(generators: Sequence[Candidate], identity: Candidate) -> dict[Key, Candidate]:
    """All products of the generators.

    Args:
        generators: any number.
        identity: the identity on the same spaces.

    Returns:
        Element keys to elements, the identity first.

    Raises:
        SymcheckError: more than 2000 elements.

    Example:
        >>> one = SignedMap.identity(1)
        >>> flip = Candidate(SignedMap.of([0, 1], [-1, 1]), one, SignedMap.of([0], [-1]))
        >>> len(closure([flip], Candidate(SignedMap.identity(2), one, one)))
        2
    """
    elements = {identity.key: identity}
    waiting = [identity]
    while waiting:
        element = waiting.pop()
        for generator in generators:
            product = generator * element
            if product.key not in elements:
                elements[product.key] = product
                waiting.append(product)
        if len(elements) > MOST_ELEMENTS:
            raise SymcheckError(
                f"the maps generate more than {MOST_ELEMENTS} elements.",
                where="discovery",
                remedy="Verify them singly.",
            )
    return elements


def recognise(elements: dict[Key, Candidate], identity: Candidate) -> Recognised:
    """Name a group and choose generators that are easy to say.

    Args:
        elements: closed under products.
        identity: its identity.

    Returns:
        The group with its generators.
    """
    order = len(elements)
    # Cheap ones first, so that generators are easy to say; the identity precedes what costs as little.
    ranked = sorted(elements.values(), key=lambda each: (each.cost, each.key != identity.key))
    if order == 1:
        return Recognised("C1", "trivial()", 1, (identity,))
    for attempt in (_cyclic, _abelian, _dihedral, _twice_dihedral, _symmetric):
        group = attempt(ranked, order, identity)
        if group is not None:
            return group
    return _permutations(ranked, order, identity)


def _cyclic(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised | None:
    for element in ranked:
        if element.order == order:
            return Recognised(f"C{order}", f"cyclic({order})", order, (element,))
    return None


def _commute(a: Candidate, b: Candidate) -> bool:
    return (a * b).key == (b * a).key


def _abelian(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised | None:
    """A product of cyclic groups: elements of the largest order first are direct factors."""
    if order > 256 or not all(_commute(a, b) for a in ranked for b in ranked):
        return None
    chosen: list[Candidate] = []
    known = closure(chosen, identity)
    for element in sorted(ranked, key=lambda each: (-each.order, each.cost)):
        larger = closure([*chosen, element], identity)
        # The product is direct where the new cyclic group meets the others in the identity only.
        if element.order > 1 and len(larger) == len(known) * element.order:
            chosen, known = [*chosen, element], larger
    if len(known) != order:
        return None
    chosen.sort(key=lambda element: (element.order, element.cost))
    orders = [element.order for element in chosen]
    written = "klein_four()" if orders == [2, 2] else f"product({', '.join(f'cyclic({n})' for n in orders)})"
    return Recognised(" x ".join(f"C{n}" for n in orders), written, order, tuple(chosen))


def _rotation_and_reflection(
    ranked: Sequence[Candidate], half: int, identity: Candidate
) -> tuple[Candidate, Candidate] | None:
    for rotation in ranked:
        if rotation.order != half or half < 3:
            continue
        turns = closure([rotation], identity)
        for reflection in ranked:
            if reflection.order != 2 or reflection.key in turns:
                continue
            # The relation (s r)^2 = 1 makes the two generate a dihedral group.
            if (reflection * rotation * reflection * rotation).key == identity.key:
                return rotation, reflection
    return None


def _dihedral(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised | None:
    generators = _rotation_and_reflection(ranked, order // 2, identity) if order % 2 == 0 else None
    if generators is None or len(closure(generators, identity)) != order:
        return None
    return Recognised(f"D{order // 2}", f"dihedral({order // 2})", order, generators)


def _twice_dihedral(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised | None:
    """C2 x D_n: a central element of order 2 beside a dihedral subgroup of half the order."""
    pair = _rotation_and_reflection(ranked, order // 4, identity) if order % 4 == 0 else None
    if pair is None:
        return None
    polygon = closure(pair, identity)
    for element in ranked:
        central = element.order == 2 and element.key not in polygon and all(_commute(element, other) for other in pair)
        if central and len(closure([element, *pair], identity)) == order == 2 * len(polygon):
            n = order // 4
            return Recognised(f"C2 x D{n}", f"product(cyclic(2), dihedral({n}))", order, (element, *pair))
    return None


def _symmetric(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised | None:
    """S_n: a swap and a cycle that obey its relations, and generate all there is."""
    n = symmetric_degree(order)
    if n is None:
        return None
    swaps = [each for each in ranked if each.order == 2]
    cycles = [each for each in ranked if each.order == n]
    for swap, cycle in itertools.product(swaps, cycles):
        # That the product of both has order n - 1 refutes nearly all pairs, at the cost of one product.
        if (swap * cycle).order == n - 1 and obeys_symmetric(swap, cycle, n, identity):
            return Recognised(f"S{n}", f"symmetric({n})", order, (swap, cycle))
    return None


def symmetric_degree(order: int) -> int | None:
    """The n of at least 4 with n! = order; None if there is none.

    Example:
        >>> symmetric_degree(120), symmetric_degree(6), symmetric_degree(48)
        (5, None, None)
    """
    n, factorial = 3, 6
    while factorial < order:
        n, factorial = n + 1, factorial * (n + 1)
    return n if factorial == order and n >= 4 else None


def obeys_symmetric(swap: Candidate, cycle: Candidate, n: int, identity: Candidate) -> bool:
    """Whether two maps obey the relations of S_n and do not collapse: then they generate a copy of it."""
    both = (swap, cycle)
    for word in catalog.symmetric(n).relators:
        product = identity
        for letter in word:
            product = product * both[letter]
        if product.key != identity.key:
            return False
    # The proper quotients of S_n (and of S_4, S_3) keep no commutator of the swap with its neighbour of order 3.
    return (swap * cycle * swap * cycle.inverse()).order == 3 and (n != 4 or _keeps_double_swaps(swap, cycle, identity))


def _keeps_double_swaps(swap: Candidate, cycle: Candidate, identity: Candidate) -> bool:
    """Whether (0 1)(2 3) is not the identity: it is in the quotient S_3 of S_4."""
    opposite = cycle * cycle * swap * cycle * cycle
    return (swap * opposite).key != identity.key


def _permutations(ranked: Sequence[Candidate], order: int, identity: Candidate) -> Recognised:
    """Any other group, as permutations of the signed coordinates and actions."""
    chosen: list[Candidate] = []
    known = closure(chosen, identity)
    for element in ranked:
        if element.key not in known:
            chosen.append(element)
            known = closure(chosen, identity)
        if len(known) == order:
            break
    return as_permutations(chosen, order)


def as_permutations(chosen: Sequence[Candidate], order: int) -> Recognised:
    """The group that some maps generate, written as permutations of signed coordinates and actions."""
    images = [permutation_of(element) for element in chosen]
    return Recognised(f"group of order {order:,}", f"from_permutations({images})", order, tuple(chosen))


def permutation_of(element: Candidate) -> list[int]:
    """What an element does to the signed coordinates of states and actions, as a rearrangement of 0..n-1.

    Example:
        >>> one = SignedMap.identity(1)
        >>> permutation_of(Candidate(SignedMap.of([0], [-1]), one, one))
        [1, 0, 2, 3]
    """
    images: list[int] = []
    for part in element.key:
        first = len(images)
        for i, s in zip(part.index, part.sign, strict=True):
            # Points 2i and 2i + 1 are +e_i and -e_i; a sign exchanges them.
            both = [first + 2 * i, first + 2 * i + 1]
            images += both if s > 0 else both[::-1]
    return [int(i) for i in np.array(images)]
