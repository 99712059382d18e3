"""Coordinates in which every intertwiner of two orthogonal representations is block diagonal.

By Schur's lemma an intertwiner maps copies of an irreducible representation to copies of the same one, and between two
copies it is a real number, or a complex one if the irreducible representation is of complex type. In orthonormal
coordinates of the copies, a weight therefore has one block for each kind of irreducible representation: two blocks of
half the width for C2; five blocks for S4, with 64 instead of 576 products.

No characters and no tables are needed: a generic symmetric element of the commutant has the irreducible subspaces as
its eigenspaces, and a generic intertwiner, restricted to two of them, is zero or a multiple of an isometry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.representations.representation import Representation

LARGEST = 64
"""Largest dimension of a representation that is decomposed; for larger ones, a basis of the commutant takes seconds."""
SAME = 1e-8
"""Relative difference up to which eigenvalues count as equal: rounding is far smaller, generic differences far
larger."""
EXACT = 1e-10
"""Largest residual outside the blocks, relative to a basis matrix: far above rounding, and far below any block."""


@dataclass(frozen=True, eq=False)
class IsotypicBlock:
    """One kind of irreducible representation, of dimension columns * width, in both representations.

    Attributes:
        columns: the number of times that the block of a weight is applied: once per coordinate of a copy.
        width: 1 for irreducible representations of real type, 2 for complex type.
        coordinates_in: orthonormal columns, shape (dim_in, columns * copies_in * width), in this order.
        coordinates_out: shape (dim_out, columns * copies_out * width).
        weights: shape (copies_in * width, copies_out * width, rank): the block of each basis matrix, transposed for
            products from the right.
    """

    columns: int
    width: int
    coordinates_in: Floats
    coordinates_out: Floats
    weights: Floats

    @property
    def products(self) -> int:
        """Multiplications for one pair of channels and one input."""
        copies_in, copies_out, _ = self.weights.shape
        return int(self.columns * copies_in * copies_out)


def isotypic_blocks(basis: IntertwinerBasis) -> tuple[IsotypicBlock, ...] | None:
    """The blocks of an equivariant basis between orthogonal representations.

    Args:
        basis: the basis of matrices of shape (dim_out, dim_in).

    Returns:
        The blocks, from which every basis matrix is recovered up to rounding. None for representations that are not
        orthogonal, are too large or are of quaternionic type, and for any basis but the equivariant one.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> two = regular(cyclic(2))
        >>> [block.weights.shape for block in isotypic_blocks(intertwiner_basis(two, two))]
        [(1, 1, 2), (1, 1, 2)]

    Source: J.-P. Serre, "Linear Representations of Finite Groups" (1977), sections 2.2 and 2.6.
    """
    sides = basis.rho_in, basis.rho_out
    if basis.kind != "equivariant" or not basis.rank or len(basis.shape) != 2 or max(basis.shape) > LARGEST:
        return None
    if not all(isinstance(rho, Representation) and rho.is_orthogonal for rho in sides):
        return None
    rng = np.random.default_rng(0)  # generic elements: any seed works, and the result is checked
    parts_in, parts_out = (_irreducible_subspaces(rho, rng) for rho in sides)
    across = _generic_intertwiner(basis, rng)  # (dim_out, dim_in)
    blocks = []
    while parts_in:
        reference = parts_in[0]
        ends = _generic_intertwiner(intertwiner_basis(basis.rho_in, basis.rho_in), rng)
        adapted = _adapted_coordinates(reference, ends)
        if adapted is None:
            return None
        same_in, parts_in = _split_off_copies(parts_in, adapted, ends)
        same_out, parts_out = _split_off_copies(parts_out, adapted, across)
        if same_out:
            blocks.append(_isotypic_block(basis, same_in, same_out, adapted.shape[2]))
    return tuple(blocks) if _sum_is_whole(basis, blocks) else None


def _generic_intertwiner(basis: IntertwinerBasis, rng: np.random.Generator) -> Floats:
    return np.asarray(np.tensordot(rng.normal(size=basis.rank), basis.matrices().astype(np.float64), 1))


def _irreducible_subspaces(rho: Representation, rng: np.random.Generator) -> list[Floats]:
    """Orthonormal bases, each of shape (dim, d): the eigenspaces of a generic symmetric element of the commutant."""
    generic = _generic_intertwiner(intertwiner_basis(rho, rho), rng)
    values, vectors = np.linalg.eigh(generic + generic.T)
    cuts = np.flatnonzero(np.diff(values) > SAME * np.abs(values).max()) + 1
    return np.split(vectors, cuts, axis=1)


def _adapted_coordinates(part: Floats, ends: Floats) -> Floats | None:
    """An orthonormal basis of an irreducible subspace, shape (dim, columns, width).

    For the complex type, there is a J with J^2 = -1 that commutes with the group; every intertwiner acts in the same
    way on all pairs (v, J v). None if the restriction of a generic element is not of either type.
    """
    size = part.shape[1]
    inside = part.T @ ends @ part
    turn = inside - inside.T
    strength = np.linalg.norm(turn) / np.sqrt(size)
    if strength <= SAME * np.linalg.norm(inside):
        return part[:, :, None]
    turn /= strength
    # quaternionic type has three such directions; a second generic element with a different direction detects it
    if size % 4 == 0 or np.abs(turn @ turn + np.eye(size)).max() > SAME:
        return None
    columns: list[Floats] = []
    left = np.eye(size)
    for _ in range(size // 2):
        first = left[:, np.argmax((left**2).sum(axis=0))]
        first = first / np.linalg.norm(first)
        pair = np.stack([first, turn @ first], axis=1)
        columns.append(pair)
        left = left - pair @ (pair.T @ left)
    return np.stack([part @ pair for pair in columns], axis=1)


def _split_off_copies(parts: list[Floats], adapted: Floats, generic: Floats) -> tuple[list[Floats], list[Floats]]:
    """Split subspaces into copies of a reference, in its coordinates (dim, columns, width), and the others."""
    same: list[Floats] = []
    others: list[Floats] = []
    dim, columns, width = adapted.shape
    for part in parts:
        image = part @ (part.T @ (generic @ adapted.reshape(dim, -1)))
        strength = np.linalg.norm(image) / np.sqrt(columns * width)
        alike = part.shape[1] == columns * width and strength > SAME * np.linalg.norm(generic)
        if alike:
            same.append((image / strength).reshape(len(part), columns, width))
        else:
            others.append(part)
    return same, others


def _isotypic_block(
    basis: IntertwinerBasis, same_in: list[Floats], same_out: list[Floats], width: int
) -> IsotypicBlock:
    # (dim, columns, copies, width)
    into, out = (np.stack(same, axis=2) for same in (same_in, same_out))
    columns = into.shape[1]
    flat_in, flat_out = (side.reshape(len(side), columns, -1) for side in (into, out))
    # every column gives the same matrix; their mean has the smallest rounding error
    weights = np.einsum("oap,koi,iaq->qpk", flat_out, basis.matrices().astype(np.float64), flat_in, optimize=True)
    return IsotypicBlock(
        columns, width, flat_in.reshape(len(into), -1), flat_out.reshape(len(out), -1), weights / columns
    )


def _sum_is_whole(basis: IntertwinerBasis, blocks: list[IsotypicBlock]) -> bool:
    """Whether the blocks reproduce every basis matrix."""
    wanted = basis.matrices().astype(np.float64)
    made = np.zeros_like(wanted)
    for block in blocks:
        into, out = (
            side.reshape(len(side), block.columns, -1) for side in (block.coordinates_in, block.coordinates_out)
        )
        made += np.einsum("oap,qpk,iaq->koi", out, block.weights, into, optimize=True)
    return bool(np.abs(made - wanted).max(initial=0.0) <= EXACT * np.abs(wanted).max(initial=1.0))
