"""Bases of the linear maps that commute with a group: exact for signed permutations, certified otherwise."""

from symcheck.intertwiners.basis import Certificate, IntertwinerBasis
from symcheck.intertwiners.build import conv_intertwiner_basis, intertwiner_basis
from symcheck.intertwiners.summary import LayerRow, filter_table, layer_table

__all__ = [
    "Certificate",
    "IntertwinerBasis",
    "LayerRow",
    "conv_intertwiner_basis",
    "filter_table",
    "intertwiner_basis",
    "layer_table",
]
