"""The checks of a representation of a continuous group when it is built.

Matrices A_i for the Lie generators and H for the discrete ones represent the group if and only if

    [A_i, A_j] = sum of c_ij^k A_k      (the brackets of the group)
    exp(2 pi A_i) = 1 for every rotation,
    H A_i H^-1 = sum of Ad_i^k A_k      and the relations among the H.

The second line distinguishes SO(n) from its double cover, and a rotation from a spiral: if the exponential is 1, the
matrix is similar to a skew-symmetric matrix with integer frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.representations import validation

_REAL_PART = 1e-6
"""Tolerance of an eigenvalue: a defective pair of eigenvalues has an error of the square root of rounding, 1e-8; the
error of a spiral is its pitch."""


def check_lie_relations(
    group: ContinuousGroup, algebra: Sequence[Floats], matrices: Sequence[Floats], *, accuracy: float, name: str
) -> None:
    """Reject matrices that are not a representation of the continuous group.

    Args:
        group: the group.
        algebra: the matrix of each Lie generator.
        matrices: the matrix of each discrete generator.
        accuracy: the allowed error of entries, relative to the largest.
        name: the name of the representation in messages.

    Raises:
        RepresentationError: the message names the bracket, frequency or relation that fails.
    """
    for i, matrix in enumerate(algebra):
        if group.turns(i):
            _check_turn(matrix, accuracy, f"{name}, {group.algebra[i]}")
    largest = max([1.0, *(float(np.abs(matrix).max()) for matrix in algebra)])
    dim = len((*algebra, *matrices)[0])
    # Each entry of a bracket is a sum of 2 dim products of entries with error `accuracy`.
    tolerance = accuracy * 2 * dim * largest**2
    for i, j, coefficients in group.brackets:
        expected = _combine(coefficients, algebra)
        gap = float(np.abs(algebra[i] @ algebra[j] - algebra[j] @ algebra[i] - expected).max())
        if not gap <= tolerance:
            raise RepresentationError(
                f"not a representation of {group.name}: the bracket [{group.algebra[i]}, {group.algebra[j]}] = "
                f"{_in_words(coefficients, group.algebra)} fails by {gap:.3g} (largest entry).",
                where=name,
                remedy="Check the matrices of these Lie generators against the group's own.",
            )
    if matrices:
        validation.check_matrix_relations(
            group, matrices, precision=float(np.finfo(np.float64).eps), accuracy=accuracy, name=name
        )
    for h, matrix in enumerate(matrices):
        _check_adjoint(group, algebra, matrix, h, tolerance, name)


def _check_turn(matrix: Floats, accuracy: float, where: str) -> None:
    from scipy.linalg import expm

    values = np.linalg.eigvals(matrix)
    spiral = values[np.abs(values.real) > _REAL_PART * max(1.0, float(np.abs(values).max()))]
    if len(spiral):
        raise RepresentationError(
            "a rotation generator must be similar to a skew-symmetric matrix, but it has the eigenvalue "
            f"{spiral[0]:.4g}.",
            where=where,
            remedy="The generator's matrix A must have purely imaginary eigenvalues, like [[0, -1], [1, 0]].",
        )
    frequencies = np.abs(values.imag)
    broken = frequencies[np.abs(frequencies - np.rint(frequencies)) > max(1e-6, 1e3 * accuracy)]
    if len(broken):
        raise RepresentationError(
            f"a rotation by 2 pi must be the identity, but the frequency {broken[0]:.6g} is not an integer.",
            where=where,
            remedy="Frequencies of rotations are integers; half-integers belong to the double cover (spin).",
        )
    size = max(1.0, float(np.abs(matrix).max()))
    gap = float(np.abs(expm(2 * np.pi * matrix) - np.eye(len(matrix))).max())
    # The error of exp(2 pi A) is 2 pi times the error of A's entries, summed along rows, plus rounding.
    if not gap <= (accuracy + 1e-12) * 2 * np.pi * len(matrix) * size**2:
        raise RepresentationError(
            "a rotation generator must be similar to a skew-symmetric matrix: exp(2 pi A) differs from the identity "
            f"by {gap:.3g}.",
            where=where,
            remedy="The generator's matrix has integer frequencies but is not diagonalisable.",
        )


def _check_adjoint(
    group: ContinuousGroup, algebra: Sequence[Floats], matrix: Floats, h: int, tolerance: float, name: str
) -> None:
    size = max(1.0, float(np.abs(matrix).max()))
    for i, coefficients in enumerate(group.adjoint(h)):
        # h A = Ad(A) h needs no inverse.
        gap = float(np.abs(matrix @ algebra[i] - _combine(coefficients, algebra) @ matrix).max())
        if not gap <= tolerance * size:
            label = group.generator_names[h]
            raise RepresentationError(
                f"not a representation of {group.name}: the relation {label} {group.algebra[i]} {label}^-1 = "
                f"{_in_words(coefficients, group.algebra)} fails by {gap:.3g} (largest entry).",
                where=name,
                remedy=f"Check how {label} acts relative to {group.algebra[i]}.",
            )


def _combine(coefficients: Floats, algebra: Sequence[Floats]) -> Floats:
    total = np.zeros_like(algebra[0])
    for k in np.flatnonzero(coefficients).tolist():
        total = total + coefficients[k] * algebra[k]
    return total


def _in_words(coefficients: Floats, names: Sequence[str]) -> str:
    """A combination of Lie generators, for instance "-turn_z"."""
    terms = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g} '}{names[k]}"
        for k, c in enumerate(coefficients)
        if c
    ]
    text = " ".join(terms).removeprefix("+ ")
    return text.replace("- ", "-", 1) if text.startswith("- ") else text or "0"
