"""Orders, membership and words of groups too large to list, through sympy's Schreier-Sims.

A base and strong generating set describes S_30 in a few hundred permutations. sympy multiplies left to right, so its
words are reversed before they are returned. sympy is loaded only when a group needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from symcheck.groups.element import Element, Word


@lru_cache(maxsize=32)
def _sympy_group(generators: tuple[Element, ...]) -> Any:
    from sympy.combinatorics import Permutation, PermutationGroup

    return PermutationGroup([Permutation(list(g.images)) for g in generators])


def order(generators: Sequence[Element]) -> int:
    """|<generators>| by Schreier-Sims.

    Args:
        generators: elements on the same points.

    Returns:
        The exact order, a Python integer of any size.

    Example:
        >>> order([Element((1, 0, 2)), Element((1, 2, 0))])
        6
    """
    return int(_sympy_group(tuple(generators)).order())


def joint_order(first: Sequence[Element], second: Sequence[Element]) -> int:
    """The order of <(g_i, h_i)> acting on both point sets at once.

    It equals |<g_i>| if and only if g_i -> h_i extends to a homomorphism: the kernel of the projection onto the first
    factor is then trivial.

    Args:
        first: elements g_i.
        second: the claimed images h_i of these elements.

    Returns:
        The exact order.

    Example:
        >>> quarter, third = Element((1, 2, 3, 0)), Element((1, 2, 0))
        >>> joint_order([quarter], [third])
        12
    """
    # h_i acts on separate points, after those of g_i.
    joined = [Element(g.images + tuple(g.degree + i for i in h.images)) for g, h in zip(first, second, strict=True)]
    return order(joined)


def word(generators: Sequence[Element], g: Element) -> Word | None:
    """A word of g in the generators, with positive powers only; None if g is not in the group.

    Args:
        generators: elements on the same points as g.
        g: the element to factor.

    Returns:
        Indices w with g = gens[w[0]] * gens[w[1]] * ..., not necessarily shortest.
    """
    from sympy.combinatorics import Permutation

    group = _sympy_group(tuple(generators))
    target = Permutation(list(g.images))
    if g.degree != generators[0].degree or not group.contains(target):
        return None
    # Reversed, so that among equal generators the first one is used.
    index = {s: i for i, s in reversed(list(enumerate(generators)))}
    letters: list[int] = []
    for factor in group.generator_product(target, original=True):
        # sympy's factors are in left-to-right order: its first factor becomes the first letter.
        element = Element(tuple(factor.array_form))
        if element in index:
            letters.append(index[element])
        else:
            # Positive powers only: g^-1 is written as g^(order - 1).
            inverse = ~element
            letters.extend([index[inverse]] * (inverse.order - 1))
    return tuple(letters)


def transversals(generators: Sequence[Element]) -> list[list[Element]]:
    """Coset representatives along a stabilizer chain.

    Args:
        generators: elements on the same points.

    Returns:
        Sets U_0, U_1, ... such that every element of the group is u_0 * u_1 * ... in exactly one way.

    Example:
        >>> [len(step) for step in transversals([Element((1, 0, 2, 3)), Element((1, 2, 3, 0))])]
        [4, 3, 2]
    """
    chain = _sympy_group(tuple(generators)).basic_transversals
    return [[Element(tuple(u.array_form)) for u in step.values()] for step in chain]


def chain(generators: Sequence[Element]) -> tuple[list[int], list[int]]:
    """A base, and the sizes of the orbits along its stabilizer chain.

    Args:
        generators: elements on the same points.

    Returns:
        Points whose pointwise stabilizer is trivial, and for each point the size of its orbit under the elements that
        fix the points before it.

    Example:
        >>> chain([Element((1, 0, 2, 3)), Element((1, 2, 3, 0))])
        ([0, 1, 2], [4, 3, 2])
    """
    group = _sympy_group(tuple(generators))
    return [int(b) for b in group.base], [len(orbit) for orbit in group.basic_orbits]
