"""Intertwiners of the connected compact part, from highest weights.

Under SO(n_1) x SO(n_2) x ... a representation splits into irreducible ones, each of which contains exactly one vector,
up to scale, that all raising operators annihilate. The highest-weight vectors of one weight are found within the space
of that weight. The same lowering operators then generate an irreducible subspace of a and its counterpart in b, step by
step, and sum over p of |b, p><a, p| is an intertwiner. No equation is solved on all of Hom(a, b).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Complexes, Floats
from symcheck.groups.continuous import ContinuousGroup
from symcheck.intertwiners.dense_basis import gaussian, orthonormal_rows
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_characters import Weight, torus, weight_vectors

_ANNIHILATED = 1e-8
"""Singular values of raising operators are 0, or of the size of square roots of integers: 1e-8 is rounding."""
_DEPENDENT = 1e-6
"""Threshold for new lowered vectors: a vector in the span of others leaves only rounding, any other a remainder of
order one."""


@dataclass(frozen=True)
class _Ladder:
    """One orthogonal representation with its weight spaces and lowering operators.

    Attributes:
        spaces: per weight an orthonormal basis as columns, (dim, multiplicity).
        lowering: per simple root the operator, and the weight that it subtracts.
        highest: per weight the vectors that all raising operators annihilate, (dim, multiplicity).
    """

    lowering: tuple[tuple[Complexes, Weight], ...]
    highest: dict[Weight, Complexes]


def connected_intertwiners(a: LieRepresentation, b: LieRepresentation) -> Floats:
    """Orthonormal rows that span all W with d b(A) W = W d a(A) for every rotation generator A.

    Args:
        a: the representation on the input; its rotation generators are skew-symmetric.
        b: the representation on the output; its rotation generators are skew-symmetric too.

    Returns:
        Shape (rank, b.dim * a.dim).
    """
    size = a.dim * b.dim
    rows: list[Complexes] = []
    first, second = _ladder(a), _ladder(b)
    for weight, tops in first.highest.items():
        if weight in second.highest:
            rows += _of_one_weight(weight, tops, second.highest[weight], first, second)
    if not rows:
        return np.zeros((0, size))
    complex_rows = np.array(rows)
    real, imaginary = np.ascontiguousarray(complex_rows.real), np.ascontiguousarray(complex_rows.imag)
    # The span is its own conjugate, so that the projection of real samples onto it is real: fixed Gaussian samples make
    # the same basis on every machine. They are orthonormalised as coefficients c of sum c_k C_k, which keeps lengths.
    sample = gaussian(len(rows), size, 0)
    coefficients = orthonormal_rows(np.concatenate([sample @ real.T, -(sample @ imaginary.T)], axis=1))
    return coefficients[:, : len(rows)] @ real - coefficients[:, len(rows) :] @ imaginary


def _of_one_weight(
    weight: Weight, tops_a: Complexes, tops_b: Complexes, first: _Ladder, second: _Ladder
) -> list[Complexes]:
    """Orthonormal complex intertwiners between the irreducible subspaces of one highest weight, flattened."""
    # For each weight, the orthonormal vectors found so far: of all copies in a, and of all copies in b.
    known: dict[Weight, list[tuple[Complexes, Complexes]]] = {weight: [(tops_a, tops_b)]}
    frontier = [(weight, tops_a, tops_b)]
    while frontier:
        following = []
        for at, in_a, in_b in frontier:
            for (lower_a, root), (lower_b, _) in zip(first.lowering, second.lowering, strict=True):
                target = tuple(w - r for w, r in zip(at, root, strict=True))
                new_a, new_b = lower_a @ in_a, lower_b @ in_b
                size = float(np.linalg.norm(new_a[:, 0]))
                if size <= _DEPENDENT:
                    continue
                # Gram and Schmidt twice, by coefficients of the first copy of a: all copies share them (Schur).
                for _ in range(2):
                    for other_a, other_b in known.get(target, []):
                        part = np.vdot(other_a[:, 0], new_a[:, 0])
                        new_a, new_b = new_a - part * other_a, new_b - part * other_b
                left = float(np.linalg.norm(new_a[:, 0]))
                if left <= _DEPENDENT * size:
                    continue
                new_a, new_b = new_a / left, new_b / left
                known.setdefault(target, []).append((new_a, new_b))
                following.append((target, new_a, new_b))
        frontier = following
    pairs = [pair for some in known.values() for pair in some]
    stacked_a, stacked_b = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    # W_ij = 1/sqrt(d) sum over p of |b_j, p><a_i, p|, shape (copies of b, copies of a, dim b, dim a).
    whole = np.einsum("pxj,pyi->jixy", stacked_b, stacked_a.conj(), optimize=True) / np.sqrt(len(pairs))
    return list(whole.reshape(-1, stacked_b.shape[1] * stacked_a.shape[1]))


def _ladder(rho: LieRepresentation) -> _Ladder:
    ladder: _Ladder | None = rho.__dict__.get("_ladder")
    if ladder is None:
        ladder = rho.__dict__["_ladder"] = _climb(rho)
    return ladder


def _climb(rho: LieRepresentation) -> _Ladder:
    group = rho.group
    weights, vectors, _ = weight_vectors(rho, [sign * rho.algebra[i] for i, sign in torus(group)])
    columns: dict[Weight, list[int]] = {}
    for column, weight in enumerate(weights):
        columns.setdefault(weight, []).append(column)
    raising = [_combination(rho, coefficients) for coefficients, _ in simple_roots(group)]
    roots = [root for _, root in simple_roots(group)]
    highest = {}
    for weight, places in columns.items():
        space = vectors[:, places].astype(np.complex128)
        if raising:
            images = np.concatenate([operator @ space for operator in raising])
            _, sizes, right = np.linalg.svd(images, full_matrices=True)
            kept = np.concatenate([sizes, np.zeros(len(right) - len(sizes))]) <= _ANNIHILATED
            space = space @ right[kept].conj().T
        if space.shape[1]:
            highest[weight] = space
    # A skew representation: the adjoint of a raising operator lowers.
    lowering = tuple((operator.conj().T, root) for operator, root in zip(raising, roots, strict=True))
    return _Ladder(lowering, highest)


def _combination(rho: LieRepresentation, coefficients: Complexes) -> Complexes:
    total = np.zeros((rho.dim, rho.dim), dtype=np.complex128)
    for k in np.flatnonzero(coefficients):
        total += coefficients[k] * rho.algebra[k]
    return total


def simple_roots(group: ContinuousGroup) -> list[tuple[Complexes, Weight]]:
    """Raising operators of the simple roots, as coefficients over the Lie generators, with the weight that each adds.

    With u_k = e_2k - i e_2k+1, of weight e_k, the matrix x y^T - y x^T has the weight of x plus that of y: those of
    (u_k, conj u_k+1) add e_k - e_k+1; the last is (u_m-1, e_n) for odd n, (u_m-2, u_m-1) for even n.

    Args:
        group: any continuous group; factors without rotations have no roots.

    Returns:
        One pair (operator, weight) per simple root; weights refer to the torus of the whole group.
    """
    found = []
    ranks = [factor.n // 2 if factor.turns else 0 for factor in group.factors]
    for k, factor in enumerate(group.factors):
        if not factor.turns:
            continue
        n, m = factor.n, factor.n // 2
        unit = np.eye(n, dtype=np.complex128)
        u = [unit[2 * i] - 1j * unit[2 * i + 1] for i in range(m)]
        weight = np.eye(m, dtype=int)
        roots = [(u[i], u[i + 1].conj(), weight[i] - weight[i + 1]) for i in range(m - 1)]
        if n % 2:
            roots.append((u[m - 1], unit[n - 1], weight[m - 1]))
        elif m > 1:
            roots.append((u[m - 2], u[m - 1], weight[m - 2] + weight[m - 1]))
        own = [i for i, (owner, _) in enumerate(group.lie_places) if owner == k]
        for x, y, added in roots:
            matrix = np.outer(x, y) - np.outer(y, x)
            coefficients = np.zeros(len(group.algebra), dtype=np.complex128)
            for place, (i, j) in zip(own[factor.shifts :], factor.planes, strict=True):
                coefficients[place] = matrix[j, i]
            whole = (0,) * sum(ranks[:k]) + tuple(int(w) for w in added) + (0,) * sum(ranks[k + 1 :])
            found.append((coefficients, whole))
    return found
