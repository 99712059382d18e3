"""Representations: ready-made, given by permutations, signs or matrices, and built from each other."""

from symcheck.representations.characters import inner_product, intertwiner_dimension, multiplicity
from symcheck.representations.constructors import (
    from_matrices,
    natural,
    permutation,
    regular,
    rotation,
    sign,
    signed_permutation,
    standard,
    trivial,
)
from symcheck.representations.grids import image_grid, with_grid
from symcheck.representations.operations import direct_sum, dual, induce, restrict, tensor
from symcheck.representations.representation import (
    MatrixRepresentation,
    Representation,
    SignedPermutationRepresentation,
)

__all__ = [
    "MatrixRepresentation",
    "Representation",
    "SignedPermutationRepresentation",
    "direct_sum",
    "dual",
    "from_matrices",
    "image_grid",
    "induce",
    "inner_product",
    "intertwiner_dimension",
    "multiplicity",
    "natural",
    "permutation",
    "regular",
    "restrict",
    "rotation",
    "sign",
    "signed_permutation",
    "standard",
    "tensor",
    "trivial",
    "with_grid",
]
