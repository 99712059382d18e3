"""Intertwiners between two representations of a continuous group that are not direct sums.

W intertwines if and only if d rho_out(A) W = W d rho_in(A) for every Lie generator A and rho_out(h) W = W rho_in(h) for
every discrete h. The equations of rotations are solved by highest weights; those of translations and discrete
generators then constrain the few remaining coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.intertwiners.dense_basis import gaussian, orthonormal_rows
from symcheck.intertwiners.highest_weights import connected_intertwiners
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_characters import lie_dimension

SOLVED = 1e-9
"""Singular values below this, relative to the largest, belong to solutions. Small integer matrices have none near this
value."""
_CYCLES = 400


@dataclass(frozen=True, eq=False)
class PairSolutions:
    """The intertwiners from one representation to another.

    Attributes:
        rows: orthonormal, (rank, dim_out * dim_in).
        root_in: C with C rho_in C^-1 orthogonal on the compact part; None if rho_in already is.
        root_out: the same for the output.
        straight: orthonormal rows of intertwiners between the orthogonal forms.
        compact: whether the group is compact, so that averaging over it projects onto the rows.
    """

    rows: Floats
    straight: Floats
    root_in: Floats | None
    root_out: Floats | None
    shape: tuple[int, int]
    compact: bool

    def project(self, weights: Floats) -> Floats:
        """The mean over a compact group, otherwise the orthogonal projection; (..., out, in) to the same."""
        flat = weights.reshape(-1, *self.shape)
        if not self.compact or (self.root_in is None and self.root_out is None):
            projected = (flat.reshape(len(flat), -1) @ self.rows.T) @ self.rows
            return projected.reshape(weights.shape)
        moved = flat if self.root_out is None else self.root_out @ flat
        moved = moved if self.root_in is None else moved @ np.linalg.inv(self.root_in)
        kept = (moved.reshape(len(flat), -1) @ self.straight.T) @ self.straight
        return _back(kept, self.root_in, self.root_out, self.shape).reshape(weights.shape)

    @property
    def norm_bound(self) -> float:
        """An upper bound on the norm of `project`."""
        roots = [root for root in (self.root_in, self.root_out) if root is not None]
        return math.prod(float(np.linalg.cond(root)) for root in roots) if self.compact else 1.0


def solve_pair(a: LieRepresentation, b: LieRepresentation) -> PairSolutions:
    """All intertwiners from a to b.

    Args:
        a: the representation on the input.
        b: the representation on the output, of the same group.

    Returns:
        The solutions; for a compact group their number agrees with the characters.

    Raises:
        RepresentationError: their number differs from the characters, because the matrices are too ill-conditioned.
    """
    compact, shape = a.group.compact, (b.dim, a.dim)
    predicted = lie_dimension(a, b) if compact else None
    if predicted == 0:
        none = np.zeros((0, a.dim * b.dim))
        return PairSolutions(none, none, None, None, shape, compact)
    (form_a, root_in), (form_b, root_out) = orthogonal_form(a), orthogonal_form(b)
    if any(a.group.turns(i) for i in range(len(a.group.algebra))):
        rows = connected_intertwiners(form_a, form_b)
    else:
        rows = np.eye(a.dim * b.dim)
    rows = _keep_solutions(rows, form_a, form_b, predicted)
    if predicted is not None and len(rows) != predicted:
        raise RepresentationError(
            f"the basis has rank {len(rows)}, but characters predict {predicted}: the matrices are ill-conditioned.",
            where="intertwiner_basis",
            remedy="Change to a basis in which the matrices are orthogonal.",
        )
    given = rows
    if len(rows) and not (root_in is None and root_out is None):
        given = orthonormal_rows(_back(rows, root_in, root_out, shape).reshape(len(rows), -1))
    return PairSolutions(given, rows, root_in, root_out, shape, compact)


def _back(rows: Floats, root_in: Floats | None, root_out: Floats | None, shape: tuple[int, int]) -> Floats:
    """Intertwiners of the orthogonal forms as those of the given representations, C_out^-1 W C_in."""
    weights: Floats = rows.reshape(-1, *shape)
    weights = weights if root_out is None else np.asarray(np.linalg.solve(root_out, weights), dtype=np.float64)
    return weights if root_in is None else weights @ root_in


def _keep_solutions(rows: Floats, a: LieRepresentation, b: LieRepresentation, predicted: int | None) -> Floats:
    """The elements of the span of rows that also satisfy the equations of translations and discrete generators."""
    size, group = a.dim * b.dim, a.group
    W = rows.reshape(len(rows), b.dim, a.dim)
    equations = [
        (b.algebra[i] @ W - W @ a.algebra[i]).reshape(len(rows), size)
        for i in range(len(group.algebra))
        if not group.turns(i)
    ]
    equations += [(K @ W - W @ L).reshape(len(rows), size) for K, L in zip(b.matrices, a.matrices, strict=True)]
    if not equations or not len(rows):
        return rows
    # Coefficients c with c . E = 0 for every equation E, from the eigenvectors of the sum of E E^T if that is small,
    # which is the case if the rotations left few rows.
    stacked = np.concatenate(equations, axis=1)
    left, sizes, _ = np.linalg.svd(stacked, full_matrices=False)
    largest = max(1.0, float(sizes[0]))
    solved = sizes <= SOLVED * largest
    # With fewer equations than rows, some directions are unconstrained; `full_matrices=False` would omit them.
    if stacked.shape[1] < len(rows):
        left, sizes, _ = np.linalg.svd(stacked, full_matrices=True)
        solved = np.concatenate([sizes <= SOLVED * largest, np.ones(len(rows) - len(sizes), dtype=bool)])
    kept = left[:, solved].T
    if not len(kept) or (predicted is not None and len(kept) != predicted):
        return kept @ rows
    # The same basis on every machine: fixed samples, projected.
    span = kept @ rows
    once = orthonormal_rows((gaussian(len(span), size, 1) @ span.T) @ span)
    return orthonormal_rows((once @ span.T) @ span)


def orthogonal_form(rho: LieRepresentation) -> tuple[LieRepresentation, Floats | None]:
    """The representation in a basis in which it is orthogonal on the compact part, and the change of basis.

    Args:
        rho: a representation of any continuous group; translations are transformed along with the rest.

    Returns:
        C rho C^-1 and C; None for C if the representation already has this form.

    Raises:
        RepresentationError: no such basis was found.
    """
    turns = [i for i in range(len(rho.group.algebra)) if rho.group.turns(i)]
    if _is_straight([rho.algebra[i] for i in turns], rho.matrices):
        return rho, None
    # C^T C is preserved by the compact part: the fixed point of averaging over one circle, or one finite cycle, after
    # the other (alternating projections).
    inner, steps = np.eye(rho.dim), _cycles(rho, turns)
    for _ in range(_CYCLES):
        before = inner
        for stack in steps:
            inner = np.mean(stack.transpose(0, 2, 1) @ inner @ stack, axis=0)
        if np.abs(inner - before).max() <= 1e-15 * np.abs(inner).max():
            break
    root = np.asarray(np.linalg.cholesky(inner).T, dtype=np.float64)
    inverse = np.linalg.inv(root)
    algebra = [root @ a @ inverse for a in rho.algebra]
    for i in turns:
        algebra[i] = (algebra[i] - algebra[i].T) / 2
    matrices = [root @ m @ inverse for m in rho.matrices]
    return LieRepresentation(rho.group, algebra, matrices, name=rho.name, check=False), root


def _is_straight(turns: Sequence[Floats], matrices: Sequence[Floats]) -> bool:
    skew = all(bool(np.abs(a + a.T).max(initial=0) <= 1e-10) for a in turns)
    return skew and all(bool(np.abs(m.T @ m - np.eye(len(m))).max() <= 1e-10) for m in matrices)


def _cycles(rho: LieRepresentation, turns: Sequence[int]) -> list[Floats]:
    """For each rotation, equally spaced elements of its circle, enough for the mean of quadratic terms.

    For each h, its powers.
    """
    from scipy.linalg import expm

    steps = []
    for i in turns:
        frequency = float(np.abs(np.linalg.eigvals(rho.algebra[i]).imag).max())
        count = 2 * round(frequency) + 1
        steps.append(np.array([expm(2 * np.pi * k / count * rho.algebra[i]) for k in range(count)]))
    for h, matrix in enumerate(rho.matrices):
        powers, order = [np.eye(rho.dim)], rho.group.order_of(h)
        for _ in range(order - 1):
            powers.append(powers[-1] @ matrix)
        steps.append(np.array(powers))
    return steps
