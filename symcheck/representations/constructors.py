"""Ready-made representations, and those given by permutations, signs or matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.group import Group
from symcheck.representations import validation
from symcheck.representations.lie_constructors import lie_trivial
from symcheck.representations.representation import (
    MatrixRepresentation,
    Representation,
    SignedPermutationRepresentation,
)
from symcheck.representations.signed_images import SignedImages


def trivial(G: Group, dim: int = 1) -> Representation:
    """Every element acts as the identity: the representation of invariant quantities (values, biases).

    Args:
        G: the group.
        dim: the dimension, at least 1.

    Returns:
        The representation of dimension `dim`.

    Raises:
        RepresentationError: dim is not a positive integer.

    Example:
        >>> from symcheck.groups import cyclic
        >>> trivial(cyclic(3), 2).dim
        2
    """
    validation.require_group(G, "trivial")
    # In Python True is an int, but not a valid dimension.
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise RepresentationError(f"expected a positive dimension, got dim = {dim!r}.", where="trivial")
    if isinstance(G, ContinuousGroup):
        return lie_trivial(G, int(dim))
    # Nothing to check: identities satisfy every relation.
    images = [SignedImages.identity(int(dim))] * len(G.generators)
    return SignedPermutationRepresentation(G, images, name=f"trivial({G.name})", check=False)


def sign(G: Group, signs: Sequence[int] | None = None) -> SignedPermutationRepresentation:
    """The one-dimensional representation with the given signs.

    Args:
        G: the group.
        signs: 1 or -1 for each generator. By default the determinant of `standard(G)` for dihedral and hyperoctahedral
            groups, and the parity of the permutation of the points for all others.

    Returns:
        The representation of dimension 1.

    Raises:
        RepresentationError: the signs violate a relation of the group.

    Example:
        >>> from symcheck.groups import symmetric
        >>> S3 = symmetric(3)
        >>> [sign(S3).character(g) for g in S3.generators]
        [-1.0, 1.0]
    """
    validation.require_group(G, "sign")
    validation.require_finite(G, "sign")
    if signs is None:
        signs = _default_signs(G)
    entries = arrays.to_numpy(signs, where="sign(signs)", error=RepresentationError).ravel()
    if not np.isin(entries, (1, -1)).all():
        raise RepresentationError(f"expected 1 or -1 per generator, got {list(signs)}.", where="sign(signs)")
    # One component, which is mapped to itself.
    index = np.zeros(1, dtype=np.int64)
    images = [SignedImages(index, np.array([int(s)])) for s in entries]
    return SignedPermutationRepresentation(G, images, name=f"sign({G.name})")


def _default_signs(G: Group) -> list[int]:
    # For these families the determinant of the standard matrices: -1 exactly for reflections.
    if G.family is not None and G.family[0] in ("dihedral", "hyperoctahedral"):
        return [round(float(np.linalg.det(np.asarray(m, dtype=float)))) for m in standard(G).generator_matrices]
    # The parity of the permutation: a cycle of length k is a product of k - 1 transpositions.
    return [(-1) ** sum(len(cycle) - 1 for cycle in g.cycles) for g in G.generators]


def regular(G: Group) -> SignedPermutationRepresentation:
    """The regular representation rho(g) e_h = e_{g h}, with basis vectors in the order of `G.elements()`.

    Args:
        G: a group small enough to list.

    Returns:
        The permutation representation of dimension |G|.

    Raises:
        GroupError: the group is too large to list.

    Example:
        >>> from symcheck.groups import cyclic
        >>> regular(cyclic(2)).matrix(cyclic(2).generators[0])
        array([[0, 1],
               [1, 0]])
    """
    validation.require_group(G, "regular")
    validation.require_finite(G, "regular")
    # Column i is the permutation of the elements by left multiplication by generator i.
    table = G.cayley_table
    ones = np.ones(len(table), dtype=np.int64)
    images = [SignedImages(np.ascontiguousarray(table[:, i]), ones) for i in range(table.shape[1])]
    return SignedPermutationRepresentation(G, images, name=f"regular({G.name})", check=False)


def permutation(G: Group, images: Sequence[Sequence[int]]) -> SignedPermutationRepresentation:
    """The representation that permutes basis vectors: rho(g_i) e_j = e_{images[i][j]}.

    Args:
        G: the group.
        images: for each generator, a permutation of 0..n-1, zero-based.

    Returns:
        The representation of dimension n.

    Raises:
        RepresentationError: an entry is not a permutation, or a relation fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> permutation(cyclic(4), [[0, 2, 3, 4, 1]]).dim
        5
    """
    validation.require_group(G, "permutation")
    listed = arrays.entries(images, where="permutation(images)", error=RepresentationError)
    read = [_read_permutation(p, f"permutation(images[{i}])") for i, p in enumerate(listed)]
    return SignedPermutationRepresentation(G, read, name=f"permutation({G.name})")


def _read_permutation(entry: Sequence[int], where: str) -> SignedImages:
    index = arrays.to_numpy(entry, where=where, error=RepresentationError).ravel()
    # Reject floats, including integral ones: they indicate that matrices were given by mistake.
    if index.dtype.kind not in "iu" or not np.array_equal(np.sort(index), np.arange(len(index))) or not len(index):
        shown = list(entry) if len(index) <= 12 else f"{len(index)} numbers"
        raise RepresentationError(f"expected a permutation of 0..{max(len(index) - 1, 0)}, got {shown}.", where=where)
    return SignedImages(index.astype(np.int64), np.ones(len(index), dtype=np.int64))


def signed_permutation(G: Group, images: Sequence[Sequence[int | str]]) -> SignedPermutationRepresentation:
    """The representation that permutes and negates basis vectors.

    Args:
        G: the group.
        images: for each generator, either n signs 1 and -1 as numbers (a diagonal matrix), or n signed one-based
            images, as strings or numbers: entry j sends e_j to plus or minus e_|image|, so ["-1", "+3", "+2"] negates
            component 1 and swaps 2 and 3.

    Returns:
        The representation of dimension n.

    Raises:
        RepresentationError: an entry is not a signed permutation, or a relation fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> signed_permutation(cyclic(2), [["-1", "+3", "+2"]]).character(cyclic(2).generators[0])
        -1.0
    """
    validation.require_group(G, "signed_permutation")
    listed = arrays.entries(images, where="signed_permutation(images)", error=RepresentationError)
    read = [_read_signed(entry, f"signed_permutation(images[{i}])") for i, entry in enumerate(listed)]
    return SignedPermutationRepresentation(G, read, name=f"signed permutation({G.name})")


def _read_signed(entry: Sequence[int | str], where: str) -> SignedImages:
    try:
        numbers = [int(part) for part in entry]
    except (ValueError, TypeError) as cause:
        raise RepresentationError(f"expected signed one-based images, got {entry!r}.", where=where) from cause
    values = np.array(numbers, dtype=np.int64)
    # A zero has sign +1 here and is rejected by the next line.
    signs = np.where(values < 0, -1, 1)
    # Signed images use each of 1..n once, whatever the sign.
    if values.size and np.array_equal(np.sort(np.abs(values)), np.arange(1, len(values) + 1)):
        return SignedImages(np.abs(values) - 1, signs)
    written_as_images = any(isinstance(part, str) for part in entry)
    # Numbers that are all 1 or -1 are signs; strings never are: ["1", "-1"] repeats an image.
    if values.size and not written_as_images and (np.abs(values) == 1).all():
        return SignedImages(np.arange(len(values)), signs)
    wanted = "images" if written_as_images else "n signs, or images"
    raise RepresentationError(
        f"expected {wanted} that use each of 1..{len(values)} once, got {list(entry)[:12]}.",
        where=where,
        remedy="Images are one-based, so that each can have a sign; write signs alone as numbers, [-1, 1].",
    )


def from_matrices(G: Group, matrices: Sequence[Any], *, name: str | None = None) -> Representation:
    """The representation with the given matrix for each generator.

    Matrices whose entries are 0, 1 and -1 up to rounding, one per row and column, become exact signed permutations.

    Args:
        G: the group.
        matrices: for each generator, a square invertible matrix (n, n): nested lists, numpy, `scipy.sparse` or torch.
        name: the name in reports.

    Returns:
        A `SignedPermutationRepresentation` or a `MatrixRepresentation` of dimension n.

    Raises:
        RepresentationError: not square, not finite, singular, of different sizes, or a relation fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> type(from_matrices(cyclic(4), [[[0, -1], [1, 0]]])).__name__
        'SignedPermutationRepresentation'
    """
    validation.require_group(G, "from_matrices")
    name = name or f"matrices({G.name})"
    matrices = arrays.entries(matrices, where=name, error=RepresentationError)
    signed = [_as_signed(matrix, f"{name}, entry {i}") for i, matrix in enumerate(matrices)]
    # Use exact integers if all matrices allow it; one dense matrix makes the whole representation dense.
    if signed and all(image is not None for image in signed):
        return SignedPermutationRepresentation(G, [image for image in signed if image is not None], name=name)
    dense = [arrays.to_numpy(m, where=f"{name}, entry {i}", error=RepresentationError) for i, m in enumerate(matrices)]
    return MatrixRepresentation(G, dense, name=name)


def _as_signed(matrix: Any, where: str) -> SignedImages | None:
    """The signed images of a matrix, or None if it is not a signed permutation up to the rounding of its entries."""
    given = arrays.to_numpy(matrix, where=where, error=RepresentationError)
    dense = arrays.square_matrix(given, where=where, error=RepresentationError)
    rounded = np.rint(dense)
    # A signed permutation has entries of size 1, up to rounding.
    if np.abs(dense - rounded).max() > validation.accuracy_of(given) or np.abs(rounded).max() != 1:
        return None
    # One entry of size 1 in every row and column.
    if (np.abs(rounded).sum(axis=0) != 1).any() or (np.abs(rounded).sum(axis=1) != 1).any():
        return None
    # Column j has its entry in the row of the image of e_j.
    index = np.abs(rounded).argmax(axis=0)
    return SignedImages(index.astype(np.int64), rounded[index, np.arange(len(rounded))].astype(np.int64))


def natural(G: Group) -> SignedPermutationRepresentation:
    """The defining representation: on the group's points, or for `hyperoctahedral(n)` on n components with signs.

    Args:
        G: the group.

    Returns:
        A permutation representation of dimension `G.degree`, or a signed one of dimension n.

    Example:
        >>> from symcheck.groups import hyperoctahedral, symmetric
        >>> natural(symmetric(4)).dim, natural(hyperoctahedral(4)).dim
        (4, 4)
    """
    validation.require_group(G, "natural")
    validation.require_finite(G, "natural")
    if G.family is not None and G.family[0] == "hyperoctahedral":
        n = G.family[1]
        # The image of point i (+) is a component with sign + if it is below n, otherwise component (image - n) with
        # sign -.
        halves = [np.array(g.images[:n], dtype=np.int64) for g in G.generators]
        signed = [SignedImages(half % n, np.where(half < n, 1, -1)) for half in halves]
        return SignedPermutationRepresentation(G, signed, name=f"natural({G.name})", check=False)
    images = [SignedImages(np.array(g.images, dtype=np.int64), np.ones(G.degree, dtype=np.int64)) for g in G.generators]
    return SignedPermutationRepresentation(G, images, name=f"natural({G.name})", check=False)


def standard(G: Group) -> Representation:
    """The representation that textbooks call standard.

    Cyclic and dihedral groups: rotations and reflections of the plane. Hyperoctahedral groups: signed permutations of n
    components. All others: the permutation representation on the points without its invariant vector, in an orthonormal
    basis, of dimension `G.degree` - 1 (irreducible for symmetric groups).

    Args:
        G: the group.

    Returns:
        The representation.

    Raises:
        RepresentationError: the group acts on one point, so the representation would have dimension 0.

    Example:
        >>> from symcheck.groups import dihedral, symmetric
        >>> standard(symmetric(4)).dim, standard(dihedral(3)).dim
        (3, 2)

    Source: W. Fulton and J. Harris, "Representation Theory", section 1.3 (symmetric groups).
    """
    validation.require_group(G, "standard")
    validation.require_finite(G, "standard")
    family = G.family[0] if G.family is not None else ""
    # The textbook matrices in the plane, not the deleted permutation representation.
    if family in ("cyclic", "dihedral"):
        return rotation(G)
    if family == "hyperoctahedral":
        return natural(G)
    if G.degree < 2:
        raise RepresentationError(f"{G.name} acts on one point and has no standard representation.", where="standard")
    basis = _orthonormal_sum_zero(G.degree)
    # The permutation matrices on the sum-zero subspace: basis is (n - 1, n) with orthonormal rows.
    matrices = [basis @ np.asarray(m, dtype=np.float64) @ basis.T for m in natural(G).generator_matrices]
    return from_matrices(G, matrices, name=f"standard({G.name})")


def _orthonormal_sum_zero(n: int) -> npt.NDArray[np.float64]:
    """(n - 1, n): Helmert's rows, an orthonormal basis of the vectors whose entries add up to 0."""
    # Row k has k + 1 ones, then its last entry becomes -(k + 1); scaled to length 1.
    rows = np.tril(np.ones((n - 1, n)), 0)
    k = np.arange(1, n)
    rows[k - 1, k] = -k
    return np.asarray(rows / np.sqrt(k * (k + 1))[:, None], dtype=np.float64)


def rotation(G: Group, frequency: int = 1) -> Representation:
    """Rotations of the plane by 2 pi frequency / n, and the reflection (x, y) -> (x, -y) for dihedral groups.

    Args:
        G: `cyclic(n)` or `dihedral(n)`.
        frequency: the number of full turns of the plane that r^n makes.

    Returns:
        The representation of dimension 2.

    Raises:
        RepresentationError: the group is neither cyclic nor dihedral.

    Example:
        >>> from symcheck.groups import cyclic
        >>> round(rotation(cyclic(3)).character(cyclic(3).generators[0]), 12)
        -1.0
    """
    validation.require_group(G, "rotation")
    validation.require_finite(G, "rotation")
    if G.family is None or G.family[0] not in ("cyclic", "dihedral"):
        raise RepresentationError(f"expected a cyclic or dihedral group, got {G.name}.", where="rotation")
    # Only the frequency modulo n matters, because rotations by 2 pi are the identity.
    angle = 2 * np.pi * (frequency % G.family[1]) / G.family[1]
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    # Cyclic groups have only the rotation.
    matrices = [turn, np.diag([1.0, -1.0])][: len(G.generators)]
    return from_matrices(G, matrices, name=f"rotation({G.name}, {frequency})")
