"""How coefficients become a weight: a gather for orbit bases, a product with the basis rows for others.

The free numbers of a layer are one coefficient per pair of channels and basis matrix. Three layouts of the resulting
weight are in use, each chosen so that a training step needs few and fast operations.
"""

from __future__ import annotations

import abc
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symcheck.errors import SymcheckError
from symcheck.intertwiners.basis import IntertwinerBasis
from symcheck.intertwiners.orbit_basis import OrbitBasis

DENSE_LIMIT = 50_000_000
"""Largest rank * size of a basis that is kept as dense rows."""
Constants = tuple[Tensor | None, Tensor | None]


class Expansion(abc.ABC):
    """Coefficients to weight, for one basis and numbers of channels.

    Attributes:
        stored_shape: of the parameter that holds the coefficients.
        used_shape: of the weight as the layer's forward pass uses it.
        plain_shape: of the plain channel-major layer's weight.

    Args:
        basis: the basis of matrices of shape (out, *rest).
        channels_out: copies of the output representation.
        channels_in: copies of the input representation; 1 for biases.
    """

    stored_shape: tuple[int, ...]
    used_shape: tuple[int, ...]
    plain_shape: tuple[int, ...]

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int = 1) -> None:
        self.basis, self.rank = basis, basis.rank
        self.channels_out, self.channels_in = channels_out, channels_in
        if not isinstance(basis, OrbitBasis) and basis.rank * basis.size > DENSE_LIMIT:
            raise SymcheckError(
                f"the {basis.kind} basis has {basis.rank:,} matrices of {basis.size:,} entries, too many to keep.",
                where="basis",
                remedy="Use fewer components, or the equivariant basis of signed permutations.",
            )

    def constants(self) -> Constants:
        """What `expand` needs besides the coefficients: an integer gather index, and signs or basis rows in float64.

        Returns:
            (index, None) for orbits without signs, (index, signs) with them, (None, rows) for dense bases and
            (None, None) for rank 0.
        """
        if not self.rank:
            return None, None
        if not isinstance(self.basis, OrbitBasis):
            return None, torch.from_numpy(self._rows(self.basis.matrices().astype(np.float64)))
        orbits = self.basis.orbits
        index = self._index(orbits.index.reshape(self.basis.shape)).astype(np.int64)
        if (orbits.sign == 1).all():
            return torch.from_numpy(index), None
        signs = self._signs(orbits.sign.astype(np.float64).reshape(self.basis.shape))
        return torch.from_numpy(index), torch.from_numpy(np.array(signs))

    @abc.abstractmethod
    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight of shape `used_shape` in the coefficients' dtype, from what `constants` returned."""

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
        """The plain layer's weight, worked out in float64 on the CPU and cast once."""
        given = self.by_channel(coefficients.detach()).double().cpu().numpy()
        block = np.moveaxis(self.basis.combine(given), 2, 1)
        return torch.from_numpy(np.ascontiguousarray(block).reshape(self.plain_shape)).to(coefficients)

    def standard_deviations(self, variance: float) -> Tensor:
        """(rank,): of independent coefficients that give the weight's entries the mean variance asked for.

        Every entry that an orbit basis does not force to vanish gets the same variance; other bases get the same
        variance in every direction of their span.
        """
        norms = self.basis.squared_norms
        if isinstance(self.basis, OrbitBasis):
            variances = np.full(self.rank, variance * self.basis.size / max(norms.sum(), 1.0))
        else:
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
        if gather is None:
            return (coefficients @ cast(Tensor, factors)).reshape(self.used_shape)
        taken = coefficients.view(-1).index_select(0, gather)
        return taken if factors is None else taken * factors

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """(channels_out, 1, rank): as stored."""
        return coefficients

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (np.arange(self.channels_out)[:, None] * self.rank + orbits.ravel()).ravel()

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.tile(signs.ravel(), self.channels_out)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))


class LinearExpansion(Expansion):
    """Linear weights with component-major columns, (channels_out * out, in * channels_in).

    Coefficients are stored as (channels_out, rank, channels_in): the gather then moves whole rows of channels, both
    ways, which takes a third of the time of single entries.
    """

    def __init__(self, basis: IntertwinerBasis, channels_out: int, channels_in: int) -> None:
        super().__init__(basis, channels_out, channels_in)
        out, inputs = basis.shape
        self.stored_shape = (channels_out, basis.rank, channels_in)
        self.used_shape = self.plain_shape = (channels_out * out, inputs * channels_in)

    def expand(self, coefficients: Tensor, gather: Tensor | None, factors: Tensor | None) -> Tensor:
        """The weight on component-major inputs."""
        if gather is not None:
            weight = coefficients.view(-1, self.channels_in).index_select(0, gather).view(self.used_shape)
            return weight if factors is None else weight * factors
        if factors is None:
            return coefficients.new_zeros(self.used_shape)
        return (factors @ coefficients).reshape(self.used_shape)

    def to_plain(self, weight: Tensor) -> Tensor:
        """The columns reordered to channel-major, contiguous."""
        return weight.view(-1, self.basis.shape[1], self.channels_in).transpose(1, 2).reshape(self.plain_shape)

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """(channels_out, channels_in, rank)."""
        return coefficients.transpose(1, 2)

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (np.arange(self.channels_out)[:, None] * self.rank + orbits.ravel()).ravel()

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        block = np.broadcast_to(signs[None, ..., None], (self.channels_out, *self.basis.shape, self.channels_in))
        return block.reshape(self.used_shape)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1).T)


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
            weight = coefficients.view(-1).index_select(0, gather).view(self.used_shape)
            return weight if factors is None else weight * factors
        if factors is None:
            return coefficients.new_zeros(self.used_shape)
        out, *rest = self.basis.shape
        dense = coefficients.view(-1, self.rank) @ factors
        return dense.view(self.channels_out, self.channels_in, out, *rest).transpose(1, 2).reshape(self.used_shape)

    def by_channel(self, coefficients: Tensor) -> Tensor:
        """(channels_out, channels_in, rank): as stored."""
        return coefficients

    def _index(self, orbits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        channel = np.arange(self.channels_out)[:, None] * self.channels_in + np.arange(self.channels_in)
        block = orbits.reshape(self.basis.shape[0], 1, -1)
        return (channel[:, None, :, None] * self.rank + block).ravel()

    def _signs(self, signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        shape = (self.channels_out, self.basis.shape[0], self.channels_in, *self.basis.shape[1:])
        return np.broadcast_to(signs[None, :, None], shape).reshape(self.used_shape)

    def _rows(self, matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(matrices.reshape(self.rank, -1))
