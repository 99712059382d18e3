"""Finite groups: the catalogue, groups from permutations or matrices, and their elements."""

from symcheck.groups.catalog import (
    alternating,
    cyclic,
    dihedral,
    from_matrices,
    from_permutations,
    hyperoctahedral,
    klein_four,
    named,
    product,
    quaternion,
    symmetric,
    trivial,
)
from symcheck.groups.constructions import semidirect, subgroup
from symcheck.groups.element import Element
from symcheck.groups.group import Group

__all__ = [
    "Element",
    "Group",
    "alternating",
    "cyclic",
    "dihedral",
    "from_matrices",
    "from_permutations",
    "hyperoctahedral",
    "klein_four",
    "named",
    "product",
    "quaternion",
    "semidirect",
    "subgroup",
    "symmetric",
    "trivial",
]
