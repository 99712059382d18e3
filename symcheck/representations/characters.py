"""Character theory: inner products, multiplicities and the dimension of the space of intertwiners."""

from __future__ import annotations

import numpy as np

from symcheck.errors import RepresentationError
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_characters import lie_dimension
from symcheck.representations.representation import Representation, require_same_group

ENUMERATION_LIMIT = 20_000_000
"""Largest |G| * (dim_in + dim_out) for which characters are summed over all elements."""


def can_enumerate(*representations: Representation) -> bool:
    """Whether summing characters over the group takes seconds at most."""
    group = representations[0].group
    return group.is_listable and group.order * sum(rho.dim for rho in representations) <= ENUMERATION_LIMIT


def inner_product(first: Representation, second: Representation) -> float:
    """<chi_1, chi_2> = 1/|G| sum over g of chi_1(g^-1) chi_2(g).

    Args:
        first: a representation.
        second: a representation of the same group.

    Returns:
        A non-negative integer up to rounding (real characters: chi(g^-1) = chi(g)).

    Raises:
        RepresentationError: different groups.
        GroupError: a group too large to list.

    Example:
        >>> from symcheck.groups import symmetric
        >>> from symcheck.representations.constructors import natural, trivial
        >>> inner_product(trivial(symmetric(4)), natural(symmetric(4)))
        1.0

    Source: J.-P. Serre, "Linear Representations of Finite Groups", section 2.3.
    """
    require_same_group(first, second, names=("first", "second"))
    return float(np.dot(first.characters(), second.characters())) / first.group.order


def intertwiner_dimension(rho_in: Representation, rho_out: Representation) -> int:
    """The number of independent matrices W with rho_out(g) W = W rho_in(g), from characters alone.

    Args:
        rho_in: the representation on the input.
        rho_out: the representation on the output.

    Returns:
        The dimension, 0 included.

    Raises:
        RepresentationError: different groups, or characters whose sum is not an integer.
        GroupError: a group too large to list.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations.constructors import regular
        >>> intertwiner_dimension(regular(cyclic(4)), regular(cyclic(4)))
        4
    """
    if isinstance(rho_in, LieRepresentation) and isinstance(rho_out, LieRepresentation):
        require_same_group(rho_in, rho_out, names=("rho_in", "rho_out"))
        if not rho_in.group.compact:
            raise RepresentationError(
                f"{rho_in.group.name} is not compact, so ranks cannot be predicted from characters.", where="rho_in"
            )
        return lie_dimension(rho_in, rho_out)
    value = inner_product(rho_in, rho_out)
    # Characters are sums of dim rounded entries; a correct sum lies within 1e-6 of an integer, a wrong one rarely.
    if abs(value - round(value)) > 1e-3:
        raise RepresentationError(
            f"the characters predict {value:.6f} intertwiners, which is not an integer: the matrices are "
            "too ill-conditioned.",
            where="intertwiner_dimension",
            remedy="Change to a basis in which the matrices are orthogonal.",
        )
    return round(value)


def multiplicity(irrep: Representation, rho: Representation) -> int:
    """How often an irreducible representation occurs in another one.

    Args:
        irrep: irreducible over the reals.
        rho: the representation to decompose.

    Returns:
        The multiplicity: the number of independent intertwiners irrep -> rho, divided by that of irrep -> irrep (which
            is 1, 2 or 4 by Schur's lemma).

    Raises:
        RepresentationError: different groups.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations.constructors import regular, rotation
        >>> multiplicity(rotation(cyclic(3)), regular(cyclic(3)))
        1
    """
    return round(intertwiner_dimension(irrep, rho) / intertwiner_dimension(irrep, irrep))
