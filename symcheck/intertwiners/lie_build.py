"""Builds bases between representations of continuous groups.

For compact groups, characters give the rank, and the basis must have it. For non-compact groups, the rank is that of
the null space, and the certificate says so. Direct sums are solved once for each pair of kinds of summands.
"""

from __future__ import annotations

import numpy as np

from symcheck.errors import RepresentationError
from symcheck.intertwiners.basis import Certificate
from symcheck.intertwiners.block_basis import Block, BlockBasis
from symcheck.intertwiners.lie_pairs import PairSolutions, solve_pair
from symcheck.representations.lie import LieRepresentation
from symcheck.representations.lie_characters import lie_dimension

RESIDUAL = 1e-12
"""Largest residual of the equations of a basis, relative to the largest entry of the matrices: 1e4 ulps, the rounding
of sums of up to 1e4 terms, as for finite groups."""
MISSING = 1e-9
"""Largest relative change of a basis matrix by the projection, which must fix it."""


def lie_basis(rho_in: LieRepresentation, rho_out: LieRepresentation) -> BlockBasis:
    """The basis of the intertwiners, with its certificate.

    Args:
        rho_in: the representation on the input.
        rho_out: the representation on the output, of the same group.

    Returns:
        The basis, as blocks.

    Raises:
        RepresentationError: matrices too ill-conditioned to certify the rank.

    Example:
        >>> from symcheck.groups import so
        >>> from symcheck.representations.lie_constructors import vector
        >>> lie_basis(vector(so(3)), vector(so(3))).rank
        1
    """
    kinds_in, kinds_out = _kinds(rho_in), _kinds(rho_out)
    blocks, residual, wandering, norm = [], 0.0, 0.0, 1.0
    for b, rows in kinds_out:
        for a, columns in kinds_in:
            solutions = solve_pair(a, b)
            norm = max(norm, solutions.norm_bound)
            if len(solutions.rows):
                residual = max(residual, _equation_residual(solutions, a, b))
                kept = solutions.project(solutions.rows.reshape(-1, *solutions.shape))
                wandering = max(wandering, float(np.abs(kept.reshape(solutions.rows.shape) - solutions.rows).max()))
                blocks.append(Block(solutions, rows, columns))
    rank = sum(block.rank for block in blocks)
    predicted = lie_dimension(rho_in, rho_out) if rho_in.group.compact else None
    tolerance = RESIDUAL * norm
    if not residual <= tolerance or (predicted is not None and predicted != rank) or wandering > MISSING * norm:
        raise RepresentationError(
            f"the basis of rank {rank} is not accurate enough: its residual is {residual:.1e} (at most "
            f"{tolerance:.1e} is allowed).",
            where="intertwiner_basis",
            remedy="Change to a basis in which the matrices are orthogonal.",
        )
    certificate = Certificate(
        "numeric",
        residual,
        tolerance,
        rank,
        predicted,
        "null space" if predicted is None else "characters",
        span_error=norm * float(np.finfo(np.float64).eps),
        projection_norm=norm,
        projection_residual=wandering,
    )
    return BlockBasis(rho_in, rho_out, certificate, tuple(blocks))


def _kinds(rho: LieRepresentation) -> list[tuple[LieRepresentation, np.ndarray]]:
    """The distinct summands in the order of their first copy, with the components of every copy, (copies, dim)."""
    found: dict[bytes, tuple[LieRepresentation, list[int]]] = {}
    start = 0
    for part in rho.parts:
        found.setdefault(part.content, (part, []))[1].append(start)
        start += part.dim
    return [(part, np.array(starts)[:, None] + np.arange(part.dim)) for part, starts in found.values()]


def _equation_residual(solutions: PairSolutions, a: LieRepresentation, b: LieRepresentation) -> float:
    """The largest entry of |K W - W L| over all generators, relative to the largest entry of K and L."""
    W = solutions.rows.reshape(-1, *solutions.shape)
    worst = 0.0
    for K, L in (*zip(b.algebra, a.algebra, strict=True), *zip(b.matrices, a.matrices, strict=True)):
        scale = max(1.0, float(np.abs(K).max(initial=0)), float(np.abs(L).max(initial=0)))
        worst = max(worst, float(np.abs(K @ W - W @ L).max()) / scale)
    return worst
