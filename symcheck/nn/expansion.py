"""Computes weights from coefficients: a gather for orbit bases, a product with the basis rows for others.

A layer has one coefficient per pair of channels and basis matrix. Three layouts of the resulting weight are in use,
each chosen so that a training step needs few and fast operations.
"""

from __future__ import annotations

import abc
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from symcheck.errors import SymcheckError
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.orbit_basis import OrbitBasis

DENSE_LIMIT = 50_000_000
"""Largest rank * size of a basis that is kept as dense rows."""
ENTRY_LIMIT = 4096
"""Largest number of entries of a linear weight that is gathered entry by entry."""
Constants = tuple[Tensor | None, Tensor | None]


class Expansion(abc.ABC):
    """Computes the weight from the coefficients, for one basis and given numbers of channels.

    Attributes:
        stored_shape: the shape of the parameter that holds the coefficients.
        used_shape: the shape of the weight as the layer's forward pass uses it.
        plain_shape: the shape of the plain channel-major layer's weight.

    Args:
        basis: the basis of matrices of shape (out, *rest).
        channels_out: number of copies of the output representation.
        channels_in: number of copies of the input representation; 1 for biases.
    """

    stored_shape: tuple[int, ...]
    used_shape: tuple[int, ...]
    plain_shape: tuple[int, ...]

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int = 1) -> None:
        self.basis, self.rank = basis, basis.rank
        self.channels_out, self.channels_in = channels_out, channels_in
        # Orbit bases are stored as an index with one number per entry, whatever their rank.
        if not isinstance(basis, OrbitBasis) and basis.rank * basis.size > DENSE_LIMIT:
            raise SymcheckError(
                f"the {basis.kind} basis has {basis.rank:,} matrices of {basis.size:,} entries, too many to keep.",
                where="basis",
                remedy="Use fewer components, or the equivariant basis of signed permutations.",
            )

    def constants(self) -> Constants:
        """The constants that `expand` needs: an integer gather index, and signs or basis rows in float64.

        Returns:
            (index, None) for orbits without signs, (index, signs) with them, (None, rows) for dense bases and
            (None, None) for rank 0.
        """
        # For a basis without matrices the weight is zero.
        if not self.rank:
            return None, None
        if not isinstance(self.basis, OrbitBasis):
            return None, torch.from_numpy(self._rows(self.basis.matrices().astype(np.float64)))
        orbits = self.basis.orbits
        index = self._index(orbits.index.reshape(self.basis.shape)).astype(np.int64)
        # Permutations have no signs, which saves a multiplication in every forward pass.
        if (orbits.sign == 1).all():
            return torch.from_numpy(index), None
        signs = self._signs(orbits.sign.astype(np.float64).reshape(self.basis.shape))
        return torch.from_numpy(index), torch.from_numpy(np.array(signs))

    @abc.abstractmethod
    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight of shape `used_shape` in the coefficients' dtype, from the result of `constants`."""

    def to_plain(self, weight: Tensor) -> Tensor:
        """A weight of shape `used_shape` as the plain layer's weight."""
        return weight

    @abc.abstractmethod
    def by_channel(self, coefficients: Tensor) -> Tensor:
        """The coefficients as (channels_out, channels_in, rank), a view."""

    @abc.abstractmethod
    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The gather index for orbit numbers of shape (out, *rest)."""

    @abc.abstractmethod
    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Signs (out, *rest) in the shape that `expand` multiplies with."""

    @abc.abstractmethod
    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Basis matrices (rank, out, *rest) in the shape that `expand` multiplies with."""

    def plain(self, coefficients: Tensor) -> Tensor:
        """The plain layer's weight, computed in float64 on the CPU and cast once."""
        given = self.by_channel(coefficients.detach()).double().cpu().numpy()
        # To (channels_out, out, channels_in, *rest), the order of the plain layer.
        block = np.moveaxis(self.basis.combine(given), 2, 1)
        return torch.from_numpy(np.ascontiguousarray(block).reshape(self.plain_shape)).to(coefficients)

    def standard_deviations(self, variance: float) -> Tensor:
        """Standard deviations (rank,) of independent coefficients, for a given mean variance of the weight's entries.

        Every entry that an orbit basis does not force to vanish gets the same variance; other bases get the same
        variance in every direction of their span.
        """
        norms = self.basis.squared_norms
        if isinstance(self.basis, OrbitBasis):
            # Each entry of a weight copies one coefficient: equal variance for all, larger if some entries vanish.
            variances = np.full(self.rank, variance * self.basis.size / max(norms.sum(), 1.0))
        else:
            # E |W|^2 = sum of var_k |B_k|^2, shared equally among the basis matrices.
            variances = variance * self.basis.size / (max(self.rank, 1) * norms)
        return torch.from_numpy(np.sqrt(variances))


class BiasExpansion(Expansion):
    """Biases, (channels_out * out,), from matrices of shape (out, 1)."""

    def __init__(self, basis: IntertwinerBasis, channels_out: int) -> None:
        super().__init__(basis, channels_out)
        self.stored_shape = (channels_out, 1, basis.rank)
        self.used_shape = self.plain_shape = (channels_out * basis.shape[0],)

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The bias vector."""
        # General representations: a product with the basis rows, no gather.
        if gather is None:
            return (coefficients @ cast(Tensor, factors)).reshape(self.used_shape)
        bias = take_entries(coefficients, gather)
        return bias if factors is None else bias * factors

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """The coefficients as stored, (channels_out, 1, rank)."""
        return coefficients

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # Channel c reads its coefficients at c * rank + orbit.
        return (np.arange(self.channels_out)[:, None] * self.rank + orbits.ravel()).ravel()

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.tile(signs.ravel(), self.channels_out)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))


class LinearExpansion(Expansion):
    """Linear weights for multiplication from the right, (in * channels_in, channels_out * out).

    Coefficients are stored as (channels_out, rank, channels_in), independently of how they are gathered.

    Attributes:
        component_major: whether the weight's rows are ordered by component, then channel; otherwise by channel first.
    """

    component_major: bool

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int) -> None:
        super().__init__(basis, channels_out, channels_in)
        out, inputs = basis.shape
        self.stored_shape = (channels_out, basis.rank, channels_in)
        self.used_shape = (inputs * channels_in, channels_out * out)
        self.plain_shape = self.used_shape[::-1]

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """(channels_out, channels_in, rank)."""
        return coefficients.transpose(1, 2)


class RowExpansion(LinearExpansion):
    """A gather of whole rows of channels; with many channels it is three times as fast as one of single entries."""

    component_major = True

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight on component-major inputs."""
        if gather is not None:
            # Whole rows of channels_in numbers are gathered at once.
            weight = coefficients.view(-1, self.channels_in).index_select(0, gather).view(self.plain_shape)
            return (weight if factors is None else weight * factors).t()
        # Rank 0: the symmetry allows only zero.
        if factors is None:
            return coefficients.new_zeros(self.used_shape)
        return (factors @ coefficients).reshape(self.plain_shape).t()

    def to_plain(self, weight: Tensor) -> Tensor:
        """The columns reordered to channel-major, contiguous."""
        # From (out, in, channels_in) to (out, channels_in, in).
        columns = weight.t().view(-1, self.basis.shape[1], self.channels_in)
        return columns.transpose(1, 2).reshape(self.plain_shape)

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (np.arange(self.channels_out)[:, None] * self.rank + orbits.ravel()).ravel()

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        # (channels_out, out, in, channels_in): a sign belongs to its (out, in) entry.
        block = np.broadcast_to(signs[None, ..., None], (self.channels_out, *self.basis.shape, self.channels_in))
        return block.reshape(self.plain_shape)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1).T)


class EntryExpansion(LinearExpansion):
    """A gather of single entries, for small weights, for which the number of operations determines the time.

    The gathered array has its shorter axis first. The gradient of a weight of 4 inputs and 128 outputs at batch 512
    then takes 11 us instead of 53 us; this saves more time than the gather costs.
    """

    component_major = False

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int) -> None:
        super().__init__(basis, channels_out, channels_in)
        # Gather in the orientation with the longer rows.
        self._inputs_first = self.used_shape[0] < self.used_shape[1]

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight on channel-major inputs."""
        if gather is None:
            return coefficients.new_zeros(self.used_shape)
        weight = take_entries(coefficients, gather)
        weight = weight if factors is None else weight * factors
        return weight if self._inputs_first else weight.t()

    def to_plain(self, weight: Tensor) -> Tensor:
        """The plain layer's weight, contiguous."""
        return weight.t().contiguous()

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        rows, channels = np.ogrid[: self.channels_out, : self.channels_in]
        # The position of (channel_out, orbit, channel_in) in the stored (channels_out, rank, channels_in).
        place = (rows[:, None, :, None] * self.rank + orbits[None, :, None, :]) * self.channels_in
        return self._lay_out(place + channels[:, None, :, None])

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        shape = (self.channels_out, self.basis.shape[0], self.channels_in, self.basis.shape[1])
        return self._lay_out(np.broadcast_to(signs[None, :, None], shape))

    def _lay_out(self, entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Entries (channels_out, out, channels_in, in) in the shape that is gathered."""
        # The transposition is done once here, on the index, instead of in every forward pass.
        plain = entries.reshape(self.plain_shape)
        return np.ascontiguousarray(plain.T if self._inputs_first else plain)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))


class SingleExpansion(RowExpansion):
    """One product of coefficients and basis rows, for a single input channel, which needs no reordering."""

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight; component-major and channel-major inputs are the same."""
        if factors is None:
            return super().expand(coefficients, gather, factors)
        return coefficients.view(self.channels_out, self.rank).mm(factors).view(self.plain_shape).t()

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))


def linear_expansion(basis: IntertwinerBasis, channels_out: int, channels_in: int) -> LinearExpansion:
    """The faster expansion for a linear weight of this size."""
    if isinstance(basis, OrbitBasis):
        # For few entries the number of operations dominates, and gathering single entries needs fewer.
        small = basis.size * channels_out * channels_in <= ENTRY_LIMIT
        return (EntryExpansion if small else RowExpansion)(basis, channels_out, channels_in)
    return (SingleExpansion if channels_in == 1 else RowExpansion)(basis, channels_out, channels_in)


def take_entries(coefficients: Tensor, index: Tensor) -> Tensor:
    """The entries of the flattened coefficients at `index`, in its shape.

    On the CPU, a small number of entries is taken in one operation. Its gradient is slow for many entries, `torch.func`
    has no rule for it, and on other devices its gradient is not deterministic.
    """
    few = index.numel() <= ENTRY_LIMIT
    # A plain parameter on the CPU, outside of compilers: `take` is one operation instead of three.
    if few and type(coefficients) is nn.Parameter and coefficients.is_cpu and not torch.compiler.is_compiling():
        return torch.take(coefficients, index)
    return coefficients.view(-1).index_select(0, index.view(-1)).view(index.shape)


class FilterExpansion(Expansion):
    """Filters (channels_out * out, channels_in * in, height, width) from (channels_out, channels_in, rank) numbers."""

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int) -> None:
        super().__init__(basis, channels_out, channels_in)
        out, inputs, *pixels = basis.shape
        self.stored_shape = (channels_out, channels_in, basis.rank)
        self.used_shape = self.plain_shape = (channels_out * out, channels_in * inputs, *pixels)

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The filters on channel-major planes."""
        if gather is not None:
            # The gather yields (channels_out * out, channels_in * in, height, width).
            weight = take_entries(coefficients, gather)
            return weight if factors is None else weight * factors
        if factors is None:
            return coefficients.new_zeros(self.used_shape)
        out, *rest = self.basis.shape
        # (channels_out * channels_in, out * in * height * width).
        dense = coefficients.view(-1, self.rank) @ factors
        return dense.view(self.channels_out, self.channels_in, out, *rest).transpose(1, 2).reshape(self.used_shape)

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """The coefficients as stored, (channels_out, channels_in, rank)."""
        return coefficients

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # The number of each channel pair; it has `rank` coefficients in a row.
        channel = np.arange(self.channels_out)[:, None] * self.channels_in + np.arange(self.channels_in)
        # Orbit numbers (out, 1, rest) broadcast over the channels.
        block = orbits.reshape(self.basis.shape[0], 1, -1)
        return np.asarray((channel[:, None, :, None] * self.rank + block).reshape(self.used_shape))

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        shape = (self.channels_out, self.basis.shape[0], self.channels_in, *self.basis.shape[1:])
        return np.broadcast_to(signs[None, :, None], shape).reshape(self.used_shape)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))
