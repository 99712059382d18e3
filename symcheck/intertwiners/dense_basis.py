"""Orthonormal bases stored as dense matrices: for general representations, and for the `random` control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.intertwiners.basis import Certificate, IntertwinerBasis, Kind
from symcheck.representations.representation import Representation

Projector = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Given:
    """Rows that are already computed."""

    rows: Floats

    def __call__(self) -> Floats:
        """The rows, (rank, size)."""
        return self.rows


@dataclass(frozen=True, eq=False)
class RandomRows:
    """An orthonormal basis of all matrices, uniformly distributed (Haar)."""

    size: int
    seed: int

    def __call__(self) -> Floats:
        """The rows, (size, size)."""
        # The distribution of Gaussian rows is rotation-invariant, so their orthonormal rows are Haar distributed.
        return orthonormal_rows(gaussian(self.size, self.size, 3_000 + self.seed))


@dataclass(frozen=True, eq=False)
class Complement:
    """The orthogonal complement of orthonormal rows, and the projection onto it."""

    rows: Floats

    def project(self, flat: Floats) -> Floats:
        """Remove from (n, size) vectors their component in the span of the rows."""
        return flat - (flat @ self.rows.T) @ self.rows

    def __call__(self) -> Floats:
        """Orthonormal rows (size - rank, size) of the complement."""
        rank, size = self.rows.shape
        # Project twice: Gaussian samples lose digits in the first projection if the rank is high.
        once = orthonormal_rows(self.project(gaussian(size - rank, size, 2_000))) if rank < size else self.rows[:0]
        return orthonormal_rows(self.project(once)) if len(once) else once


def identity(flat: Floats) -> Floats:
    """The identity, as the projection onto the whole space."""
    return flat


@dataclass(repr=False, eq=False)
class DenseBasis(IntertwinerBasis):
    """Orthonormal rows, computed when first needed.

    Attributes:
        build: makes the rows (rank, size).
        projector: the projection of `project`, (n, size) -> (n, size).
        arrangement: bytes that distinguish bases with the same representations and shape.
    """

    rho_in: Representation
    rho_out: Representation
    kind: Kind
    shape: tuple[int, ...]
    rank: int
    certificate: Certificate
    build: Callable[[], Floats]
    projector: Projector
    arrangement: bytes = b""

    @cached_property
    def rows(self) -> Floats:
        """The basis as orthonormal rows, (rank, size)."""
        return self.build()

    def matrices(self) -> npt.NDArray[np.float64]:
        """The basis, (rank, *shape), orthonormal, float64."""
        return self.rows.reshape(self.rank, *self.shape).copy()

    @property
    def squared_norms(self) -> Floats:
        """(rank,): ones."""
        return np.ones(self.rank)

    def combine(self, coefficients: npt.ArrayLike) -> Floats:
        """The linear combinations with the given coefficients: (..., rank) -> (..., *shape)."""
        rows, lead = self._rows(coefficients)
        return (rows @ self.rows).reshape(*lead, *self.shape)

    def coefficients(self, weight: npt.ArrayLike) -> Floats:
        """The coefficients of the orthogonal projection: (..., *shape) -> (..., rank)."""
        return self._flat(weight)[0] @ self.rows.T

    def _project(self, weight: npt.ArrayLike) -> Floats:
        """The projection onto the span: the Reynolds operator for `equivariant` bases."""
        flat, lead = self._flat(weight)
        # Projectors take rows, so flatten the leading axes.
        return self.projector(flat.reshape(-1, self.size)).reshape(*lead, *self.shape)

    def _arrangement(self) -> bytes:
        return self.arrangement


def orthonormal_rows(samples: Floats) -> Floats:
    """Orthonormal rows from independent samples by Gram-Schmidt; shape (n, size) to the same.

    The result is unique, because the diagonal of the triangular factor is made positive; every machine finds the same
        rows up to rounding.

    Args:
        samples: linearly independent rows (n, size), n <= size.

    Returns:
        (n, size) orthonormal rows with the same span.
    """
    # The sign of R's diagonal is free in LAPACK; fixed to positive, the basis is the same everywhere.
    q, r = np.linalg.qr(samples.T)
    return np.ascontiguousarray((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)


def gaussian(count: int, size: int, seed: int) -> Floats:
    """(count, size) standard normal numbers, the same on every machine."""
    # PCG64 by name: NumPy may change its default generator.
    return np.random.Generator(np.random.PCG64(seed)).standard_normal((count, size))
