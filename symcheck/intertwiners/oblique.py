"""Intertwiners between non-orthogonal representations, as accurate as the entries of their matrices allow.

Averaging in orthogonal coordinates and changing back amplifies rounding by the square of the condition number. The
equations K W = W L of the generators can be solved in the original coordinates: their null space, computed by singular
values, leaves a residual of a few ulp for any condition number. The Reynolds operator P is then the projection along
the annihilator of the dual intertwiners V (K^T V = V L^T, the same equations transposed):

    P(W) = sum over i, j of <V_i, W> (M^-1)_ij B_j,    M_ji = <B_j, V_i>.

This projection is oblique: its norm, 1 / (smallest singular value of M), grows with the condition number of the
representations and amplifies the rounding of W. This loss is inherent in the problem; no method avoids it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.intertwiners.dense_basis import Projector
from symcheck.representations.representation import Representation

SOLVED_LIMIT = 600
"""Maximum number of entries; larger matrices are only averaged. The two decompositions take some n^3 operations, half a
second."""


def largest_entry(rho: Representation) -> float:
    """The largest entry of the generators' matrices, at least 1."""
    return max(1.0, *(float(np.abs(m).max()) for m in rho.generator_matrices))


def null_rows(
    rho_in: Representation, rho_out: Representation, rank: int, *, dual: bool = False
) -> tuple[Floats, float]:
    """An orthonormal basis of the solutions of K W = W L for all generators; of K^T V = V L^T if `dual`.

    A change of one ulp in the entries of K and L rotates the solutions by an ulp times the condition number of the
    equations (Wedin).

    Args:
        rho_in: the representation on the input, with matrices L.
        rho_out: the representation on the output, with matrices K.
        rank: the number of independent solutions.
        dual: whether to transpose the matrices.

    Returns:
        Rows (rank, dim_out * dim_in), orthonormal, in no particular order; and the condition number of the equations:
        their largest singular value over the smallest nonzero one.

    Cost: (dim_out * dim_in)^3 per generator.

    Source: P.-A. Wedin, "Perturbation bounds in connection with singular value decomposition", BIT 12 (1972).
    """
    identity_out, identity_in = np.eye(rho_out.dim), np.eye(rho_in.dim)
    equations = []
    for K, L in zip(rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
        left, right = (K.T, L.T) if dual else (K, L)
        # Scale each generator by its size, otherwise the rounding of the largest would dominate the others.
        scale = max(float(np.abs(K).max()), float(np.abs(L).max()))
        equations.append((np.kron(left, identity_in) - np.kron(identity_out, right.T)) / scale)
    _, sizes, directions = np.linalg.svd(np.concatenate(equations), full_matrices=False)
    first_zero = len(directions) - rank
    condition = float(sizes[0] / sizes[first_zero - 1]) if first_zero else 1.0
    return np.asarray(directions[first_zero:], dtype=np.float64), condition


@dataclass(frozen=True, eq=False)
class ObliqueProjection:
    """The Reynolds operator from bases of the intertwiners and of the dual ones.

    Attributes:
        rows: orthonormal intertwiners B, (rank, size).
        dual: orthonormal dual intertwiners V, (rank, size).
    """

    rows: Floats
    dual: Floats

    @property
    def norm(self) -> float:
        """The operator norm with respect to the Frobenius norm; 0 if the rank is 0."""
        if not len(self.rows):
            return 0.0
        return 1.0 / float(np.linalg.svd(self.rows @ self.dual.T, compute_uv=False)[-1])

    def __call__(self, flat: Floats) -> Floats:
        """The projection of flattened matrices, (n, size) to the same."""
        return np.asarray(np.linalg.solve((self.rows @ self.dual.T).T, self.dual @ flat.T).T @ self.rows)


@dataclass(frozen=True, eq=False)
class SplitProjection:
    """A projection onto the span of orthonormal rows that fixes vectors of the span to a few ulp.

    The component in the span is kept and only the remainder is projected, so the projection amplifies only the rounding
    of the remainder. For a vector of the span, the remainder is 0 up to rounding.

    Attributes:
        rows: orthonormal rows (rank, size) of the span.
        projector: any projection onto the span.
    """

    rows: Floats
    projector: Projector

    def __call__(self, flat: Floats) -> Floats:
        """The projection of vectors, (n, size) to the same."""
        inside = (flat @ self.rows.T) @ self.rows
        return inside + self.projector(flat - inside)


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """A basis with the projection onto its span.

    Attributes:
        rows: orthonormal rows (rank, size).
        projector: the Reynolds operator on flattened matrices.
        norm: an upper bound on the norm of the projector.
        condition: the rotation of the span caused by a change of one ulp in the matrices, in ulp.
        tolerance: the residual of the equations that rounding explains, relative to the largest entry of the matrices.
    """

    rows: Floats
    projector: Projector
    norm: float
    condition: float
    tolerance: float
