"""The interface that all bases of intertwiners share.

An intertwiner W from rho_in to rho_out satisfies rho_out(g) W = W rho_in(g) for every g. Intertwiners are exactly the
linear maps that an equivariant layer may use. The `nullspace` basis spans their orthogonal complement, and the `random`
basis spans all matrices. These two are the control conditions in the paper's experiments.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.array_types import Floats
from symcheck.errors import SymcheckError
from symcheck.representations.representation import Representation

Kind = Literal["equivariant", "nullspace", "random"]
KINDS: tuple[Kind, ...] = ("equivariant", "nullspace", "random")


@dataclass(frozen=True)
class Certificate:
    """The evidence that a basis is correct and complete.

    Attributes:
        kind: "exact" if every equation was checked in integers, "numeric" if in float64.
        residual: the largest entry of |rho_out(g) W - W rho_in(g)| over generators g and basis matrices W, relative to
            the largest entry of the representing matrices; 0 for exact ones.
        tolerance: the largest `residual` that rounding explains; 0 for exact bases.
        rank: the rank of the equivariant basis.
        predicted_rank: the rank that character theory predicts; always equal to `rank`, because otherwise the basis is
            rejected. None for non-compact groups, for which there is no prediction.
        predicted_by: "characters" (1/|G| sum chi_out chi_in, or Weyl's integral); "orbits" (Burnside's count of the
            same number, if the group is too large to sum over); "trace" (of the averaging projector, if the group is
            too large and the matrices are not signed permutations); or "null space" if nothing predicts it.
        span_error: the angle in radians by which a change of the matrices in the last place may rotate the span, to
            first order and up to a factor of the dimension. No method can be more accurate. 0 for exact bases.
        projection_norm: the norm of the Reynolds operator, the factor by which a projection may amplify rounding: 1
            between orthogonal representations, otherwise at most the product of their condition numbers (which is
            given instead if a matrix has more than 600 entries).
        projection_residual: the largest entry of |project(W) - W| over basis matrices W; 0 for exact ones.
    """

    kind: Literal["exact", "numeric"]
    residual: float
    tolerance: float
    rank: int
    predicted_rank: int | None
    predicted_by: Literal["characters", "orbits", "trace", "null space"]
    span_error: float = 0.0
    projection_norm: float = 1.0
    projection_residual: float = 0.0

    def __str__(self) -> str:
        agreement = f"rank {self.rank} = {self.predicted_rank} by {self.predicted_by}"
        if self.predicted_rank is None:
            agreement = f"rank {self.rank} of the null space"
        amplified = f", project amplifies rounding by {self.projection_norm:.1e}" if self.projection_norm >= 10 else ""
        return f"{self.kind}: residual {self.residual:.1e}, {agreement}{amplified}"


class IntertwinerBasis(abc.ABC):
    """A basis of a space of matrices between two representations.

    Attributes:
        rho_in: the representation on the input (without the filter's pixels for convolutions).
        rho_out: the representation on the output.
        kind: equivariant, nullspace or random.
        shape: the shape of one matrix: (dim_out, dim_in), or (dim_out, dim_in, height, width) for filters.
        rank: the number of basis matrices; 0 is a valid result.
        certificate: the evidence for the underlying equivariant basis.
    """

    rho_in: Representation
    rho_out: Representation
    kind: Kind
    shape: tuple[int, ...]
    rank: int
    certificate: Certificate

    @property
    def size(self) -> int:
        """The number of entries of one matrix."""
        return math.prod(self.shape)

    @abc.abstractmethod
    def matrices(self) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
        """The basis, dense, (rank, *shape): integers for signed permutations, orthonormal otherwise.

        Built on each call; cost rank * size.
        """

    @property
    @abc.abstractmethod
    def squared_norms(self) -> Floats:
        """(rank,): the sum of squares of each basis matrix."""

    @abc.abstractmethod
    def combine(self, coefficients: npt.ArrayLike) -> Floats:
        """The linear combinations with the given coefficients: (..., rank) -> (..., *shape)."""

    @abc.abstractmethod
    def coefficients(self, weight: npt.ArrayLike) -> Floats:
        """The coefficients of the orthogonal projection of a weight: (..., *shape) -> (..., rank)."""

    def project(self, weight: Any) -> Any:
        """The projection of a weight onto the span; the shape (..., *shape) stays the same.

        For `equivariant` the Reynolds operator 1/|G| sum over g of rho_out(g)^-1 W rho_in(g); for `nullspace` the
        orthogonal projection onto the complement; for `random` the identity.

        Args:
            weight: an array or tensor (..., *shape), in the order (out, in).

        Returns:
            Float64 for arrays; a tensor of the same dtype and device for tensors.

        Raises:
            SymcheckError: another shape.
        """
        # For a tensor, return a tensor of the same dtype and device.
        projected = self._project(weight)
        return weight.new_tensor(projected) if hasattr(weight, "new_tensor") else projected

    @abc.abstractmethod
    def _project(self, weight: npt.ArrayLike) -> Floats:
        """The projection in float64."""

    @cached_property
    def fingerprint(self) -> bytes:
        """Sixteen bytes that identify the content: with equal fingerprints, equal coefficients mean equal weights."""
        return arrays.content_hash(
            # The version is part of the key and must change if the order of bases changes.
            f"symcheck basis 1 {self.kind} {self.shape} {self.rank}",
            np.frombuffer(self.rho_in.portable_content, dtype=np.uint8),
            np.frombuffer(self.rho_out.portable_content, dtype=np.uint8),
            np.frombuffer(self._arrangement(), dtype=np.uint8),
        )

    def _arrangement(self) -> bytes:
        """Data that the representations and the shape do not determine, for instance the spatial operators."""
        return b""

    def _flat(self, weight: npt.ArrayLike) -> tuple[Floats, tuple[int, ...]]:
        """A weight as (..., size) in float64, with its leading axes."""
        array = arrays.to_numpy(weight, where="weight").astype(np.float64)
        # Leading axes are arbitrary: a batch of weights is projected at once.
        if array.ndim < len(self.shape) or array.shape[array.ndim - len(self.shape) :] != self.shape:
            raise SymcheckError(
                f"expected a weight of shape (..., {', '.join(map(str, self.shape))}), got {array.shape}.",
                where="weight",
                remedy="The order is (out, in).",
            )
        lead = array.shape[: array.ndim - len(self.shape)]
        return array.reshape(*lead, self.size), lead

    def _rows(self, coefficients: npt.ArrayLike) -> tuple[Floats, tuple[int, ...]]:
        """Coefficients as (n, rank) in float64, with their leading axes."""
        array = arrays.to_numpy(coefficients, where="coefficients").astype(np.float64)
        if array.ndim < 1 or array.shape[-1] != self.rank:
            raise SymcheckError(f"expected coefficients (..., {self.rank}), got {array.shape}.", where="coefficients")
        lead = array.shape[:-1]
        return array.reshape(int(np.prod(lead)), self.rank), lead

    def __copy__(self) -> IntertwinerBasis:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> IntertwinerBasis:
        return self  # immutable: copies of a layer share it

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"<{self.kind} basis of rank {self.rank}, {shape}, {self.certificate}>"
