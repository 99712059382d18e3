"""Groups: the catalogue, groups from permutations or matrices, continuous groups, and their elements."""

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
from symcheck.groups.continuous import ContinuousGroup, e, o, se, so, translations
from symcheck.groups.element import Element
from symcheck.groups.group import Group

__all__ = [
    "ContinuousGroup",
    "Element",
    "Group",
    "alternating",
    "cyclic",
    "dihedral",
    "e",
    "from_matrices",
    "from_permutations",
    "hyperoctahedral",
    "klein_four",
    "named",
    "o",
    "product",
    "quaternion",
    "se",
    "semidirect",
    "so",
    "subgroup",
    "symmetric",
    "translations",
    "trivial",
]
