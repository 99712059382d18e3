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
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_constructors import from_algebra, inflate, irrep, pseudoscalar, pseudovector, vector
from symcheck.representations.named_parts import named_representation
from symcheck.representations.operations import direct_sum, dual, induce, restrict, tensor
from symcheck.representations.representation import (
    MatrixRepresentation,
    Representation,
    SignedPermutationRepresentation,
)

__all__ = [
    "LieRepresentation",
    "MatrixRepresentation",
    "Representation",
    "SignedPermutationRepresentation",
    "direct_sum",
    "dual",
    "from_algebra",
    "from_matrices",
    "image_grid",
    "induce",
    "inflate",
    "inner_product",
    "intertwiner_dimension",
    "irrep",
    "multiplicity",
    "named_representation",
    "natural",
    "permutation",
    "pseudoscalar",
    "pseudovector",
    "regular",
    "restrict",
    "rotation",
    "sign",
    "signed_permutation",
    "standard",
    "tensor",
    "trivial",
    "vector",
    "with_grid",
]
