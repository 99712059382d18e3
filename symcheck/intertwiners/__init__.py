"""Bases of the linear maps that commute with a group: exact for signed permutations, certified otherwise."""

from symcheck.intertwiners.basis import Certificate, IntertwinerBasis
from symcheck.intertwiners.build import conv_intertwiner_basis, intertwiner_basis

__all__ = ["Certificate", "IntertwinerBasis", "conv_intertwiner_basis", "intertwiner_basis"]
