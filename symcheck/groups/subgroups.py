"""The subgroup of elements that satisfy a condition, and a few elements that generate it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from symcheck.groups.element import Element
from symcheck.groups.group import Group

_LARGEST = 48  # maximum number of elements that are tested one by one


def may_be_partial(group: Group) -> bool:
    """Whether the group has a proper non-trivial subgroup, and few enough elements to test each.

    Example:
        >>> from symcheck.groups import catalog
        >>> may_be_partial(catalog.cyclic(3)), may_be_partial(catalog.cyclic(4))
        (False, True)
    """
    return group.order <= _LARGEST and any(group.order % k == 0 for k in range(2, int(group.order**0.5) + 1))


def holding(group: Group, holds: Callable[[Element], bool]) -> tuple[Element, ...] | None:
    """The subgroup of elements that satisfy a condition.

    Args:
        group: a group of at most a few dozen elements.
        holds: whether one element satisfies the condition; called once per cyclic subgroup.

    Returns:
        The elements, identity first; None if they do not form a subgroup, so that `holds` was wrong for some element.

    Example:
        >>> from symcheck.groups import catalog
        >>> four = catalog.cyclic(4)
        >>> len(holding(four, lambda g: g * g == four.identity))
        2
    """
    answers: dict[Element, bool] = {group.identity: True}
    for element in group.elements():
        if element not in answers:
            answer = holds(element)
            answers.update(dict.fromkeys(_equivalent(group, element), answer))
    members = tuple(element for element in group.elements() if answers[element])
    known = set(members)
    closed = all(one * other in known for one in members for other in members)
    return members if closed else None


def _equivalent(group: Group, element: Element) -> list[Element]:
    """The elements that generate the same cyclic subgroup: a condition holds for all of them or for none."""
    powers = [element]
    while powers[-1] != group.identity:
        powers.append(powers[-1] * element)
    order = len(powers)
    return [powers[k - 1] for k in range(1, order) if math.gcd(k, order) == 1]


def generators_of(group: Group, members: Sequence[Element]) -> list[Element]:
    """A small set of elements that generates a subgroup, the shortest words first.

    Args:
        group: the whole group.
        members: the subgroup's elements.

    Returns:
        Elements; empty for the trivial subgroup.

    Example:
        >>> from symcheck.groups import catalog
        >>> square = catalog.dihedral(4)
        >>> len(generators_of(square, square.elements()))
        2
    """
    chosen: list[Element] = []
    reached = {group.identity}
    for element in sorted(members, key=lambda one: len(group.word(one))):
        if element in reached:
            continue
        chosen.append(element)
        reached = _closure([*chosen], group.identity)
        if len(reached) == len(members):
            break
    return chosen


def _closure(generators: Sequence[Element], identity: Element) -> set[Element]:
    reached, waiting = {identity}, [identity]
    while waiting:
        one = waiting.pop()
        for generator in generators:
            if (image := one * generator) not in reached:
                reached.add(image)
                waiting.append(image)
    return reached
