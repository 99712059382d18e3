"""Groups made from other groups by elements of theirs: semidirect products and subgroups.

Unlike the groups of the catalogue they cannot be written in a SPEC file, as text names no elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from symcheck.errors import GroupError
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group


def semidirect(normal: Group, acting: Group, images: Sequence[Sequence[Element]]) -> Group:
    """The semidirect product N : H, where each generator of H acts on N by an automorphism.

    Args:
        normal: the group N, small enough to list.
        acting: the group H, small enough to list.
        images: per generator of H, the images of N's generators: h n h^-1.

    Returns:
        The group of order |N| |H| with N's generators first, acting on the pairs (n, h) from the left.

    Raises:
        GroupError: an entry is not an automorphism of N, or H's relators do not hold for them.

    Example:
        >>> from symcheck.groups.catalog import cyclic
        >>> C3, C2 = cyclic(3), cyclic(2)
        >>> semidirect(C3, C2, [[~C3.generators[0]]]).order
        6
    """
    automorphisms = [_automorphism(normal, row) for row in images]
    if len(automorphisms) != len(acting.generators):
        raise GroupError(
            f"expected one automorphism per generator of {acting.name} ({len(acting.generators)}), got {len(images)}.",
            where="semidirect(images)",
        )
    size = normal.order
    left = normal.cayley_table
    table = acting.cayley_table
    # The pair (n, h) is point n * |H| + h.
    points = np.arange(size * acting.order).reshape(size, acting.order)
    # A generator of N multiplies the first component from the left.
    generators = [Element(tuple(points[left[:, i]].ravel().tolist())) for i in range(left.shape[1])]
    for i, automorphism in enumerate(automorphisms):
        # A generator k of H acts by (n, h) -> (k n k^-1, k h).
        generators.append(Element(tuple(points[automorphism][:, table[:, i]].ravel().tolist())))
    names = _distinct([*normal.generator_names, *acting.generator_names])
    group = Group(generators, name=f"{normal.name} : {acting.name}", generator_names=names)
    # Automorphisms that break a relation of H generate more than |N| |H| permutations.
    if group.order != size * acting.order:
        raise GroupError(
            f"the automorphisms do not satisfy the relations of {acting.name}: they generate {group.order} elements "
            f"instead of {size * acting.order}.",
            where="semidirect(images)",
        )
    return group


def _distinct(names: Sequence[str]) -> list[str]:
    return [name if names.count(name) == 1 else f"{name}{k}" for k, name in enumerate(names, 1)]


def _automorphism(group: Group, images: Sequence[Element]) -> npt.NDArray[np.int64]:
    """The automorphism as a rearrangement of `group.elements()`."""
    position = {g: k for k, g in enumerate(group.elements())}

    def image(word: Word) -> Element:
        result = group.identity
        for letter in word:
            result = result * images[letter]
        return result

    # Von Dyck: the images extend to a homomorphism exactly when every relator stays trivial.
    broken = [word for word in group.relators if not image(word).is_identity]
    # Entry k is the position of the image of element k; equal positions mean that the map is not injective.
    positions = [position[image(group.word(g))] for g in group.elements()]
    if broken or len(set(positions)) < group.order:
        reason = f"the relator {group.word_name(broken[0])} fails" if broken else "it is not one-to-one"
        raise GroupError(f"expected an automorphism of {group.name}: {reason}.", where="semidirect(images)")
    return np.array(positions, dtype=np.int64)


def subgroup(group: Group, generators: Sequence[Element], *, name: str | None = None) -> Group:
    """The subgroup that some elements generate.

    Args:
        group: the group G.
        generators: elements of G, at least one.
        name: what to call the subgroup.

    Returns:
        A group on the same points whose generators are those given.

    Raises:
        GroupError: a generator is not in G.

    Example:
        >>> from symcheck.groups.catalog import dihedral
        >>> D4 = dihedral(4)
        >>> subgroup(D4, [D4.generators[0]]).order
        4
    """
    names = [group.element_name(g).replace(" ", "") for g in generators]
    return Group(generators, name=name or f"<{', '.join(names)}>", generator_names=names)
