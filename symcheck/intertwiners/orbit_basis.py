"""Bases for signed permutation representations: one integer matrix per orbit, and its integer complement."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.array_types import Floats
from symcheck.intertwiners.basis import Certificate, IntertwinerBasis, Kind
from symcheck.intertwiners.orbits import Orbits
from symcheck.representations.representation import Representation


@dataclass(repr=False, eq=False)
class OrbitBasis(IntertwinerBasis):
    """One matrix of entries 0, 1 and -1 per orbit: W = sum of c_k B_k is a gather, W[e] = sign[e] * c[index[e]]."""

    rho_in: Representation
    rho_out: Representation
    shape: tuple[int, ...]
    certificate: Certificate
    orbits: Orbits
    kind: Kind = field(default="equivariant", init=False)

    def __post_init__(self) -> None:
        self.rank = self.orbits.count

    def matrices(self) -> npt.NDArray[np.int64]:
        """The basis, dense integers (rank, *shape)."""
        dense = np.zeros((self.rank, self.size), dtype=np.int64)
        # Entries with sign 0 vanish in every intertwiner and belong to no basis matrix.
        kept = np.flatnonzero(self.orbits.sign)
        dense[self.orbits.index[kept], kept] = self.orbits.sign[kept]
        return dense.reshape(self.rank, *self.shape)

    @cached_property
    def squared_norms(self) -> Floats:
        """(rank,): the number of entries of each orbit."""
        kept = self.orbits.index[self.orbits.sign != 0]
        return np.bincount(kept, minlength=self.rank).astype(np.float64)

    def combine(self, coefficients: npt.ArrayLike) -> Floats:
        """The linear combinations with the given coefficients, by a gather: (..., rank) -> (..., *shape)."""
        rows, lead = self._rows(coefficients)
        # Gathering from an empty vector would fail.
        if not self.rank:
            return np.zeros((*lead, *self.shape))
        # Each entry reads the coefficient of its orbit, with its sign.
        return (rows[:, self.orbits.index] * self.orbits.sign).reshape(*lead, *self.shape)

    def coefficients(self, weight: npt.ArrayLike) -> Floats:
        """The signed mean of a weight over each orbit: (..., *shape) -> (..., rank)."""
        flat, lead = self._flat(weight)
        rows = flat.reshape(-1, self.size) * self.orbits.sign
        # bincount adds the entries of each orbit; minlength keeps orbits that vanish.
        sums = [np.bincount(self.orbits.index, row, minlength=max(self.rank, 1)) for row in rows]
        # The squared norm of an orbit's matrix is its number of entries.
        means = np.array(sums).reshape(len(rows), -1)[:, : self.rank] / np.maximum(self.squared_norms, 1)
        return means.reshape(*lead, self.rank)

    def _project(self, weight: npt.ArrayLike) -> Floats:
        """The Reynolds operator: every entry becomes the signed mean over its orbit."""
        return self.combine(self.coefficients(weight))

    def _arrangement(self) -> bytes:
        return arrays.content_hash(self.orbits.index, self.orbits.sign)


@dataclass(repr=False, eq=False)
class OrbitComplementBasis(IntertwinerBasis):
    """The orthogonal complement of an orbit basis, in integers.

    In an orbit of m entries the m - 1 vectors (1, ..., 1, -k, 0, ..., 0) with k ones, k = 1..m-1 (Helmert), times the
    entries' signs, are orthogonal to each other and to the orbit's own vector; an entry that must vanish has its own
    unit vector.
    """

    equivariant: OrbitBasis
    kind: Kind = field(default="nullspace", init=False)

    def __post_init__(self) -> None:
        self.rho_in, self.rho_out = self.equivariant.rho_in, self.equivariant.rho_out
        self.shape, self.certificate = self.equivariant.shape, self.equivariant.certificate
        # The two bases together span all matrices.
        self.rank = self.size - self.equivariant.rank

    @cached_property
    def _places(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Entries sorted by orbit (vanishing first), the position k of each in its orbit, and its vector's number.

        Each entry at position k >= 1 has vector k of its orbit; each vanishing entry has one vector; first entries have
        none.
        """
        orbits = self.equivariant.orbits
        # Vanishing entries get -1, so that sorting puts them first.
        group = np.where(orbits.sign == 0, -1, orbits.index)
        order = np.argsort(group, kind="stable")
        ordered = group[order]
        # The position at which the orbit of each entry begins.
        start = np.searchsorted(ordered, ordered)
        # Position 0 of an orbit has no vector: an orbit of n entries has n - 1 vectors in the complement.
        place = np.where(ordered == -1, -1, np.arange(self.size) - start)
        number = np.cumsum(place != 0) - 1
        return order, place, number

    def matrices(self) -> npt.NDArray[np.int64]:
        """The basis, dense integers (rank, *shape)."""
        order, place, number = self._places
        sign = self.equivariant.orbits.sign[order]
        dense = np.zeros((self.rank, self.size), dtype=np.int64)
        for position in np.flatnonzero(place != 0):
            row, k = number[position], place[position]
            # A vanishing entry is a basis matrix by itself.
            if k < 0:
                dense[row, order[position]] = 1
            else:
                # Helmert's row: k ones, then -k, with the entries' signs; orthogonal to the orbit's matrix.
                before = slice(position - k, position)
                dense[row, order[before]] = sign[before]
                dense[row, order[position]] = -k * sign[position]
        return dense.reshape(self.rank, *self.shape)

    @cached_property
    def squared_norms(self) -> Floats:
        """(rank,): k + k^2 for position k, 1 for a vanishing entry."""
        place = self._places[1]
        # k ones and one -k: k + k^2.
        owned = place[place != 0].astype(np.float64)
        return np.where(owned < 0, 1.0, owned + owned**2)

    def combine(self, coefficients: npt.ArrayLike) -> Floats:
        """The linear combinations with the given coefficients: (..., rank) -> (..., *shape). Cost rank * size."""
        rows, lead = self._rows(coefficients)
        return (rows @ self.matrices().reshape(self.rank, self.size)).reshape(*lead, *self.shape)

    def coefficients(self, weight: npt.ArrayLike) -> Floats:
        """The coefficients of the orthogonal projection: (..., *shape) -> (..., rank). Cost rank * size."""
        flat, _ = self._flat(weight)
        return flat @ self.matrices().reshape(self.rank, self.size).T / self.squared_norms

    def _project(self, weight: npt.ArrayLike) -> Floats:
        """The component that the Reynolds operator removes: W - S(W)."""
        flat, lead = self._flat(weight)
        return flat.reshape(*lead, *self.shape) - self.equivariant._project(weight)

    def _arrangement(self) -> bytes:
        return self.equivariant.fingerprint
