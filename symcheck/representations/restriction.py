"""Restriction of a representation of a continuous group to a finite subgroup."""

from __future__ import annotations

import math
from collections.abc import Sequence

from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.groups.lie_element import LieElement
from symcheck.representations.constructors import from_matrices
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.representation import Representation


def restrict_to_finite(rho: LieRepresentation, to: Group, images: Sequence[Element] | None) -> Representation:
    """The representation of a finite subgroup.

    Args:
        rho: a representation of a continuous group G.
        to: the finite group.
        images: for each generator, the corresponding element of G; None for C_n and D_n in SO(2) and O(2).

    Returns:
        The representation of `to`.

    Raises:
        RepresentationError: the images do not satisfy the relations of `to`, or `images` is None and there is no
            standard choice.

    Example:
        >>> from symcheck.groups import cyclic, so
        >>> from symcheck.representations.lie_constructors import vector
        >>> restrict_to_finite(vector(so(2)), cyclic(4), None).matrix(cyclic(4).generators[0]).tolist()
        [[0, -1], [1, 0]]
    """
    if isinstance(to, ContinuousGroup):
        raise RepresentationError(f"expected a finite subgroup, got {to.name}.", where="restrict(to)")
    chosen = usual_images(rho.group, to) if images is None else list(images)
    strangers = [g for g in chosen if not isinstance(g, LieElement) or g not in rho.group]
    if strangers or len(chosen) != len(to.generators):
        raise RepresentationError(
            f"expected one element of {rho.group.name} per generator of {to.name} ({len(to.generators)}).",
            where="restrict(images)",
        )
    # The relations of the finite group are checked by the constructor.
    return from_matrices(to, [rho.matrix(g) for g in chosen], name=f"{rho.name} restricted to {to.name}")


def usual_images(group: ContinuousGroup, to: Group) -> list[Element]:
    """The standard C_n and D_n in SO(2) and O(2): r rotates by 2 pi / n, s reflects.

    Raises:
        RepresentationError: any other group; `images` must then define the subgroup.
    """
    kind = "" if to.family is None else to.family[0]
    planar = len(group.factors) == 1 and group.algebra == ("turn",)
    if planar and to.family is not None and (kind == "cyclic" or (kind == "dihedral" and group.generators)):
        turn = group.exp(0, 2 * math.pi / to.family[1])
        return [turn, *group.generators][: len(to.generators)]
    raise RepresentationError(
        f"the elements of {group.name} that generate {to.name} cannot be determined.",
        where="restrict(images)",
        remedy="Give images=[...], the group element for each generator.",
    )
