"""From matrices to permutations: the orbit of the standard basis vectors.

Matrices g_1, ..., g_k generate a finite group if and only if the vectors e_1, ..., e_n have a finite orbit. These
vectors span the space, so an element is determined by the way it permutes that orbit. The orbit is usually far smaller
than the group: 2n vectors for the 2^n n! signed permutations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.array_types import Floats
from symcheck.errors import GroupError

DEFAULT_LIMIT = 5_000


def orbit_permutations(matrices: Sequence[npt.ArrayLike], *, limit: int = DEFAULT_LIMIT) -> list[list[int]]:
    """The permutation of the orbit of the standard basis vectors under each matrix.

    Args:
        matrices: a square matrix for each generator (n, n), at least one.
        limit: largest number of vectors in the orbit.

    Returns:
        For each generator, a permutation of the orbit's vectors.

    Raises:
        GroupError: the matrices cannot be used, or the orbit has more than `limit` vectors.

    Example:
        >>> orbit_permutations([[[-1.0]]])
        [[1, 0]]
    """
    matrices = arrays.entries(matrices, where="from_matrices", error=GroupError)
    # The given dtype determines the tolerance; the checks below convert to float64.
    read = [arrays.to_numpy(m, where=f"matrices[{k}]", error=GroupError) for k, m in enumerate(matrices)]
    checked = _check_matrices(read)
    tolerance = max(_merge_tolerance(m) for m in read)
    try:
        return _orbit(checked, tolerance, limit)
    except GroupError:
        balanced = _balance_matrices(checked)
        # Another basis did not help: raise the first error.
        if balanced is checked:
            raise
        return _orbit(balanced, tolerance, limit)


def _orbit(matrices: list[Floats], tolerance: float, limit: int) -> list[list[int]]:
    vectors = np.eye(matrices[0].shape[0])
    images: list[list[int]] = [[] for _ in matrices]
    done = 0
    while done < len(vectors):
        # Map only the vectors of the last round; all others already have their images.
        frontier, done = vectors[done:], len(vectors)
        for k, matrix in enumerate(matrices):
            places, vectors = _place(frontier @ matrix.T, vectors, tolerance)
            images[k].extend(places)
            if len(vectors) > limit:
                raise GroupError(
                    f"the {len(matrices)} matrices do not generate a finite group, or its order exceeds "
                    f"the limit: the basis vectors have more than {limit:,} images.",
                    where="from_matrices",
                    remedy="Check the entries (a rotation must be by 2 pi / n), or increase limit=.",
                )
    # Two vectors have the same image: the tolerance merged vectors that the matrix distinguishes.
    if any(len(set(row)) < len(row) for row in images):
        raise GroupError(
            "the matrices are too ill-conditioned to distinguish the vectors of an orbit.",
            where="from_matrices",
            remedy="Change to a basis in which they are orthogonal, or name the group and give from_permutations.",
        )
    return images


def _merge_tolerance(matrix: npt.NDArray[np.generic]) -> float:
    """Vectors closer than this, relative to the orbit's size, count as equal.

    Rounding grows with the word length and the square of the entries' size: 1e-6 allows for entries up to 1e4 in
    float64, 1e-5 for orthogonal matrices in float32. Orbits of up to 5,000 vectors in the plane lie 1e-3 apart, and
    multiples of one radian come no closer than 6e-5 within them.
    """
    return 1e-5 if matrix.dtype in (np.float32, np.float16) else 1e-6


def _check_matrices(matrices: Sequence[npt.ArrayLike]) -> list[Floats]:
    if not len(matrices):
        raise GroupError("expected at least one matrix, got none.", where="from_matrices")
    checked = [arrays.square_matrix(m, where=f"matrices[{k}]", error=GroupError) for k, m in enumerate(matrices)]
    sizes = sorted({m.shape[0] for m in checked})
    if len(sizes) > 1:
        raise GroupError(f"all matrices must have the same size, got sizes {sizes}.", where="from_matrices")
    for k, matrix in enumerate(checked):
        _check_unit_eigenvalues(matrix, k)
    return checked


def _balance_matrices(matrices: list[Floats]) -> list[Floats]:
    """The matrices in a basis in which they are nearly orthogonal, if the group is finite.

    Averaging g^T M g over many powers of each generator in turn, repeatedly, converges to an inner product M = C^T C
    that all generators preserve; C g C^-1 is then orthogonal. This is tried if the given basis fails: with strongly
    non-orthogonal matrices, rounding can hide the difference between vectors of the orbit. The orbit is larger in an
    arbitrary basis.
    """
    identity = np.eye(len(matrices[0]))
    # 1e-6: for matrices this close to orthogonal, another basis does not reduce rounding.
    if all(np.abs(m.T @ m - identity).max() < 1e-6 for m in matrices):
        return matrices
    inner = identity
    with np.errstate(all="ignore"):
        for _ in range(10):
            for matrix in matrices:
                power = matrix
                for _ in range(6):  # sixty-four consecutive powers
                    inner = (inner + power.T @ inner @ power) / 2
                    power = power @ power
            # Powers of a matrix of infinite order grow: rescaling keeps the sum finite until the check below.
            inner = inner / np.abs(inner).max()
    if not np.isfinite(inner).all() or np.linalg.eigvalsh(inner)[0] <= 0:
        return matrices
    # inner = C^T C with C = root.
    root = np.linalg.cholesky(inner).T
    inverse = np.linalg.inv(root)
    changed = [np.asarray(root @ m @ inverse, dtype=np.float64) for m in matrices]
    return changed if all(np.isfinite(m).all() for m in changed) else matrices


def _check_unit_eigenvalues(matrix: Floats, k: int) -> None:
    """Check that eigenvalues are roots of unity, as for every matrix of finite order."""
    eigenvalues = np.linalg.eigvals(matrix)
    modulus = np.abs(eigenvalues)
    worst = int(np.abs(modulus - 1).argmax())
    # Eigenvalues of a defective or ill-conditioned matrix have errors of the square root of rounding: 1e-3 covers
    # float32.
    if not abs(modulus[worst] - 1) <= 1e-3:
        kind = "singular" if modulus[worst] < 1e-9 else "of no finite order"
        raise GroupError(
            f"the matrix is {kind}: it has an eigenvalue of modulus {modulus[worst]:.6g} instead of 1.",
            where=f"matrices[{k}]",
        )


def _place(new: Floats, vectors: Floats, tolerance: float) -> tuple[list[int], Floats]:
    """The positions of `new` in `vectors`; missing vectors are appended."""
    places: list[int] = []
    for vector in new:
        # The maximum norm, because the tolerance is per entry.
        distance = np.abs(vectors - vector).max(axis=1)
        nearest = int(distance.argmin())
        scale = max(1.0, float(np.abs(vector).max()))
        # Relative for long vectors, absolute for those inside the unit cube.
        if distance[nearest] <= tolerance * scale:
            places.append(nearest)
        else:
            places.append(len(vectors))
            vectors = np.vstack([vectors, vector])
    return places, vectors
