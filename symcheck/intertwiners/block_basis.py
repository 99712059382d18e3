"""Bases between direct sums: one small basis for each pair of kinds of summands, with the positions of its copies.

From 64 vectors and 64 scalars of SO(3) to themselves there are 8,192 basis matrices; two small bases describe all of
them. Basis matrices are ordered by kind of output summand, kind of input summand, output copy, input copy, and index
within the small basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats, Ints
from symcheck.intertwiners.basis import Certificate, IntertwinerBasis, Kind
from symcheck.intertwiners.lie_pairs import PairSolutions
from symcheck.representations.representation import Representation


@dataclass(frozen=True, eq=False)
class Block:
    """All copies of one basis.

    Attributes:
        solutions: the intertwiners between one summand of the input and one of the output.
        rows: components of the output's copies, (copies, dim).
        columns: components of the input's copies, (copies, dim).
    """

    solutions: PairSolutions
    rows: Ints
    columns: Ints

    @property
    def shape(self) -> tuple[int, int, int]:
        """(output copies, input copies, rank for one pair of copies)."""
        return len(self.rows), len(self.columns), len(self.solutions.rows)

    @property
    def rank(self) -> int:
        """The number of basis matrices of all copies."""
        return int(np.prod(self.shape))

    @property
    def places(self) -> tuple[Ints, Ints]:
        """Indices of the block's entries in the whole matrix, in the form of `numpy.ix_`."""
        rows, columns = np.ix_(self.rows.reshape(-1), self.columns.reshape(-1))
        return rows, columns

    def small(self) -> Floats:
        """The basis of one copy, (rank, dim_out, dim_in)."""
        return self.solutions.rows.reshape(-1, *self.solutions.shape)


@dataclass(repr=False, eq=False)
class BlockBasis(IntertwinerBasis):
    """An orthonormal basis stored as small blocks.

    Attributes:
        blocks: the blocks of rank 1 or more.
    """

    rho_in: Representation
    rho_out: Representation
    certificate: Certificate
    blocks: tuple[Block, ...]
    kind: Kind = "equivariant"

    def __post_init__(self) -> None:
        self.shape = (self.rho_out.dim, self.rho_in.dim)
        self.rank = sum(block.rank for block in self.blocks)

    @cached_property
    def rows(self) -> Floats:
        """The basis as dense orthonormal rows, (rank, size)."""
        return self.matrices().reshape(self.rank, self.size)

    def matrices(self) -> npt.NDArray[np.float64]:
        """The basis, (rank, *shape), orthonormal, float64."""
        return self.combine(np.eye(self.rank))

    @property
    def squared_norms(self) -> Floats:
        """(rank,): ones."""
        return np.ones(self.rank)

    def combine(self, coefficients: npt.ArrayLike) -> Floats:
        """The linear combinations with the given coefficients: (..., rank) -> (..., *shape)."""
        given, lead = self._rows(coefficients)
        made = np.zeros((len(given), *self.shape))
        start = 0
        for block in self.blocks:
            some = given[:, start : start + block.rank].reshape(len(given), *block.shape)
            start += block.rank
            dense = np.einsum("noir,rxy->noxiy", some, block.small(), optimize=True)
            rows, columns = block.places
            made[:, rows, columns] = dense.reshape(len(given), rows.size, columns.size)
        return made.reshape(*lead, *self.shape)

    def coefficients(self, weight: npt.ArrayLike) -> Floats:
        """The coefficients of the orthogonal projection: (..., *shape) -> (..., rank)."""
        flat, lead = self._flat(weight)
        whole, parts = flat.reshape(-1, *self.shape), []
        for block in self.blocks:
            some = self._cut(whole, block)
            found = np.einsum("noxiy,rxy->noir", some, block.small(), optimize=True)
            parts.append(found.reshape(len(whole), block.rank))
        joined = np.concatenate(parts, axis=1) if parts else np.zeros((len(whole), 0))
        return joined.reshape(*lead, self.rank)

    def _project(self, weight: npt.ArrayLike) -> Floats:
        """The mean over the group if it exists, otherwise the orthogonal projection, block by block."""
        flat, lead = self._flat(weight)
        whole = flat.reshape(-1, *self.shape)
        made = np.zeros_like(whole)
        for block in self.blocks:
            some = self._cut(whole, block).transpose(0, 1, 3, 2, 4)
            kept = block.solutions.project(np.ascontiguousarray(some)).transpose(0, 1, 3, 2, 4)
            rows, columns = block.places
            made[:, rows, columns] = kept.reshape(len(whole), rows.size, columns.size)
        return made.reshape(*lead, *self.shape)

    def _cut(self, whole: Floats, block: Block) -> Floats:
        """A block's entries, (n, output copies, dim_out, input copies, dim_in)."""
        rows, columns = block.places
        return whole[:, rows, columns].reshape(len(whole), *block.rows.shape, *block.columns.shape)
