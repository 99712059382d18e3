"""The Reynolds operator for general representations: W -> 1/|G| sum over g of rho_out(g)^-1 W rho_in(g).

For a small group, the sum is computed directly. In a large group, every element can be written in exactly one way as a
product u_0 u_1 ... of coset representatives along a stabilizer chain. The average over G is therefore the average over
U_0, then over U_1, and so on: about n^2/2 elements for S_n instead of n!.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.representations.representation import MatrixRepresentation, Representation

SUMMED_LIMIT = 2_000
"""Largest order that is summed over directly."""


@dataclass(frozen=True, eq=False)
class Reynolds:
    """The averaging projector between two representations, computed in coordinates in which both are orthogonal.

    Attributes:
        rho_in: an orthogonal form C_in rho_in(g) C_in^-1 of the representation on the input.
        rho_out: the same for the output.
        root_in: C_in, or None for the identity.
        root_out: C_out, or None for the identity.
        steps: per transversal rho_out(u)^-1, stacked (n, dim_out, dim_out), and rho_in(u), (n, dim_in, dim_in).
    """

    rho_in: Representation
    rho_out: Representation
    root_in: Floats | None
    root_out: Floats | None
    steps: tuple[tuple[Floats, Floats], ...]

    @staticmethod
    def between(rho_in: Representation, rho_out: Representation) -> Reynolds:
        """The operator for two representations of the same group.

        Args:
            rho_in: the representation on the input.
            rho_out: the representation on the output.

        Returns:
            The operator on (dim_out, dim_in) matrices.
        """
        straight_in, root_in = orthogonal_form(rho_in)
        straight_out, root_out = orthogonal_form(rho_out)
        steps = []
        # Average over one transversal after the other.
        for elements in transversals(rho_in.group):
            # rho_out(g)^-1 on the left, rho_in(g) on the right, both (elements, dim, dim).
            left = np.array([straight_out.matrix(~g) for g in elements], dtype=np.float64)
            right = np.array([straight_in.matrix(g) for g in elements], dtype=np.float64)
            steps.append((left, right))
        return Reynolds(straight_in, straight_out, root_in, root_out, tuple(steps))

    @property
    def shape(self) -> tuple[int, int]:
        """(dim_out, dim_in)."""
        return self.rho_out.dim, self.rho_in.dim

    @property
    def norm_bound(self) -> float:
        """An upper bound on the norm of the operator: the product of the condition numbers of C_in and C_out."""
        roots = [root for root in (self.root_in, self.root_out) if root is not None]
        return math.prod(float(np.linalg.cond(root)) for root in roots)

    def straight(self, flat: Floats) -> Floats:
        """The average of flattened matrices between the orthogonal forms, (n, size) to the same."""
        weights = flat.reshape(-1, *self.shape)
        # 1/|G| sum over g factors into the averages over the transversals.
        for left, right in self.steps:
            total = np.zeros_like(weights)
            for K_inverse, L in zip(left, right, strict=True):
                total += K_inverse @ weights @ L
            weights = total / len(left)
        return weights.reshape(flat.shape)

    def back(self, flat: Floats) -> Floats:
        """Convert intertwiners of the orthogonal forms to those of the given representations: C_out^-1 W C_in."""
        weights: Floats = flat.reshape(-1, *self.shape)
        if self.root_out is not None:
            weights = np.asarray(np.linalg.solve(self.root_out, weights), dtype=np.float64)
        if self.root_in is not None:
            weights = weights @ self.root_in
        return weights.reshape(flat.shape)

    def __call__(self, flat: Floats) -> Floats:
        """The average of flattened matrices, (n, size) to the same."""
        weights: Floats = flat.reshape(-1, *self.shape)
        if self.root_out is not None:
            # Change to orthogonal coordinates, average, and change back.
            weights = self.root_out @ weights
        if self.root_in is not None:
            weights = weights @ np.linalg.inv(self.root_in)
        return self.back(self.straight(weights.reshape(flat.shape)))


def transversals(group: Group) -> Sequence[Sequence[Element]]:
    """Sets U_0, U_1, ... such that every element of the group is a product u_0 u_1 ... in exactly one way.

    Args:
        group: any finite group.

    Returns:
        One set with all elements for small groups, a stabilizer chain's coset representatives for large ones.
    """
    # A small group is its own transversal.
    if group.order <= SUMMED_LIMIT:
        return [group.elements()]
    from symcheck.groups import large

    return large.transversals(group.generators)


def invariant_root(rho: Representation) -> Floats:
    """A matrix C for which every C rho(g) C^-1 is orthogonal.

    From C^T C = 1/|G| sum over g of rho(g)^T rho(g), by Cholesky.

    Args:
        rho: a representation.

    Returns:
        (dim, dim), upper triangular.

    Source: J.-P. Serre, "Linear Representations of Finite Groups", section 1.3 (Weyl's unitary trick).
    """
    inner = np.eye(rho.dim)
    for elements in transversals(rho.group):
        # inner = average of rho(g)^T rho(g), factor by factor: an inner product that all of G preserves.
        matrices = [np.asarray(rho.matrix(g), dtype=np.float64) for g in elements]
        inner = np.mean([m.T @ inner @ m for m in matrices], axis=0)
    # inner = C^T C; the Cholesky factor C makes every C rho(g) C^-1 orthogonal.
    return np.asarray(np.linalg.cholesky(inner).T, dtype=np.float64)


def orthogonal_form(rho: Representation) -> tuple[Representation, Floats | None]:
    """The representation in a basis in which it is orthogonal, and the change of basis (None if not needed).

    Args:
        rho: a representation.

    Returns:
        C rho(g) C^-1 and C.
    """
    if rho.is_orthogonal:
        return rho, None
    root = invariant_root(rho)
    # Not checked again: a change of basis preserves every relation.
    inverse = np.linalg.inv(root)
    matrices = [root @ np.asarray(m, dtype=np.float64) @ inverse for m in rho.generator_matrices]
    return MatrixRepresentation(rho.group, matrices, name=rho.name, check=False), root
