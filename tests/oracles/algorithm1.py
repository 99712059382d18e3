"""Algorithm 1 of "MDP Homomorphic Networks": the definition that fast bases are checked against.

Samples Gaussian matrices, symmetrizes each over the whole group, stacks them and keeps the right-singular vectors of
the non-zero singular values. Cubic in the number of entries, and the rank is decided by a threshold: an oracle for
small cases only. The symmetrizer has the inverse on the output side, S(W) = 1/|G| sum over g of K_g^-1 W L_g.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symcheck.representations.representation import Representation

Array = npt.NDArray[np.float64]


def symmetrize(weights: Array, rho_in: Representation, rho_out: Representation) -> Array:
    """S(W) for stacked weights (n, dim_out, dim_in), one group element after the other."""
    total = np.zeros_like(weights)
    for g in rho_in.group.elements():
        total += np.linalg.inv(np.asarray(rho_out.matrix(g), dtype=float)) @ weights @ rho_in.matrix(g)
    return total / rho_in.group.order


def algorithm1(
    rho_in: Representation, rho_out: Representation, *, samples: int | None = None, seed: int = 0, full: bool = False
) -> tuple[Array, Array]:
    """Orthonormal bases of the intertwiners and of their complement, (rank, dim_out * dim_in) and the rest.

    `full` also computes the left-singular vectors, which nobody needs: NumPy's default, and the published code's.
    """
    size = rho_in.dim * rho_out.dim
    count = samples or 2 * size + 5
    drawn = np.random.default_rng(seed).normal(size=(count, rho_out.dim, rho_in.dim))
    stacked = symmetrize(drawn, rho_in, rho_out).reshape(count, size)
    _, singular, right = np.linalg.svd(stacked, full_matrices=full or count < size)
    # Averages of unit normals are of size 1; what should vanish is rounding, 100 ulp of the largest (1e8 for shears).
    rank = int((singular > max(1e-9, 2e-14 * float(singular[0]))).sum())
    return right[:rank], right[rank:]


def largest_angle(first: Array, second: Array) -> float:
    """The sine of the largest principal angle between two row spaces of the same dimension."""
    assert first.shape == second.shape
    if not len(first):
        return 0.0
    a, b = (np.linalg.qr(rows.T)[0] for rows in (first.astype(float), second.astype(float)))
    return float(np.linalg.norm(b - a @ (a.T @ b), 2))
