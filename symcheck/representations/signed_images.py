"""A signed permutation as two integer arrays: e_j maps to sign[j] * e_{index[j]}."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Ints


@dataclass(frozen=True, eq=False)
class SignedImages:
    """The image of each basis vector, and its sign.

    Attributes:
        index: (n,), a permutation of 0..n-1.
        sign: (n,), entries 1 and -1.

    Example:
        >>> turn = SignedImages(np.array([1, 0]), np.array([1, -1]))
        >>> (turn @ turn).matrix()
        array([[-1,  0],
               [ 0, -1]])
    """

    index: Ints
    sign: Ints

    @staticmethod
    def identity(dim: int) -> SignedImages:
        """The identity on `dim` components."""
        return SignedImages(np.arange(dim), np.ones(dim, dtype=np.int64))

    @property
    def dim(self) -> int:
        """The number of components."""
        return len(self.index)

    def __matmul__(self, other: SignedImages) -> SignedImages:
        """The product of the matrices: `other` acts first."""
        # sign[j] of the product: the sign of `other`, times the sign at the image of j.
        return SignedImages(self.index[other.index], other.sign * self.sign[other.index])

    def inverse(self) -> SignedImages:
        """The inverse, which is the transpose."""
        index, sign = np.empty_like(self.index), np.empty_like(self.sign)
        # Assignment through the permutation `index` inverts it.
        index[self.index] = np.arange(self.dim)
        sign[self.index] = self.sign
        return SignedImages(index, sign)

    def matrix(self) -> Ints:
        """The dense (n, n) integer matrix."""
        dense = np.zeros((self.dim, self.dim), dtype=np.int64)
        # Column j holds one entry, in row index[j].
        dense[self.index, np.arange(self.dim)] = self.sign
        return dense

    def trace(self) -> int:
        """The sum of the signs of the components that are fixed up to sign."""
        return int((self.sign * (self.index == np.arange(self.dim))).sum())

    def residual(self) -> int:
        """The largest entry of |matrix - identity|: 0, 1 or 2."""
        in_place = self.index == np.arange(self.dim)
        # A moved component gives an entry of size 1, a component with only its sign changed gives 2.
        if not in_place.all():
            return 1 if (self.sign[in_place] > 0).all() else 2
        return 0 if (self.sign > 0).all() else 2

    def as_points(self) -> tuple[int, ...]:
        """The permutation of 2n points: component j with sign + is point j, with sign - point n + j."""
        # Point j is +e_j, point n + j is -e_j; a negative sign swaps the two halves.
        up = self.index + self.dim * (self.sign < 0)
        down = self.index + self.dim * (self.sign > 0)
        return tuple(np.concatenate([up, down]).tolist())
