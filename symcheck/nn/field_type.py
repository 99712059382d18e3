"""The type of an activation: its representation, the number of copies, and the action on pixels.

Activations are `(batch, channels, dim)` for vectors and `(batch, channels, dim, height, width)` for images; the group
acts on the `dim` axis by the representation and on pixels by spatial operators. Flat activations, `(batch, channels *
dim)` or `(batch, channels * dim, height, width)`, contain the same numbers channel by channel.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from symcheck.errors import SymcheckError
from symcheck.representations import grids
from symcheck.representations.representation import Representation, same


@dataclass(frozen=True, eq=False)
class FieldType:
    """The type of an activation.

    Attributes:
        rho: the representation on the component axis.
        channels: the number of copies of rho.
        spatial: one spatial operator per generator for images; None for vectors.
        size: height and width, if known.
        flat: whether channels and components share one axis, channel by channel.
    """

    rho: Representation
    channels: int
    spatial: tuple[str, ...] | None = None
    size: tuple[int, int] | None = None
    flat: bool = False

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of one activation without the batch axis; None if the size of images is not known."""
        if self.spatial is not None and self.size is None:
            return None
        # Flat activations merge channels and components into one axis.
        both = (self.channels * self.rho.dim,) if self.flat else (self.channels, self.rho.dim)
        return (*both, *(self.size or ()))

    def __str__(self) -> str:
        pixels = "" if self.spatial is None else f" over pixels that move by {', '.join(self.spatial)}"
        return f"{self.channels} x {self.rho.name} of {self.rho.group.name}{pixels}{', flat' if self.flat else ''}"


def require_match(given: FieldType, wanted: FieldType, *, where: str) -> None:
    """Reject an activation whose type differs from the module's input type.

    Args:
        given: the type of the activation.
        wanted: the module's input type; its size is ignored.
        where: the module, for the message.

    Raises:
        SymcheckError: a different representation, number of channels, spatial action or layout.
    """
    fits = (
        same(given.rho, wanted.rho)
        and given.channels == wanted.channels
        and given.spatial == wanted.spatial
        and given.flat == wanted.flat
    )
    if not fits:
        raise SymcheckError(
            f"the types do not fit: expected {wanted}, got {given}.",
            where=where,
            remedy="Layers must agree in representation, channels and pixels; see FlattenPixels, MergeChannels.",
        )


def check_channels(value: Any, where: str) -> int:
    """A number of channels, at least 1.

    Raises:
        SymcheckError: not a positive integer.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SymcheckError(f"expected a positive number of channels, got {value!r}.", where=where)
    return int(value)


class EquivariantModule(nn.Module, abc.ABC):
    """A module that commutes with a group and declares its input and output types."""

    input_type: FieldType | None = None
    """The input type; None if the module accepts several types."""

    @property
    def example_input(self) -> Tensor:
        """One input of zeros, (1, ...), from which tools can read the shape.

        Raises:
            AttributeError: the module takes inputs of several shapes.
        """
        shape = None if self.input_type is None else self.input_type.shape
        if shape is None:
            raise AttributeError("the module accepts inputs of several shapes")
        parameter = next(self.parameters(), None)
        # In the parameters' dtype: a float64 network rejects float32 inputs.
        return torch.zeros(1, *shape, dtype=None if parameter is None else parameter.dtype)

    @abc.abstractmethod
    def propagate(self, given: FieldType) -> FieldType:
        """The type of the output for an input of type `given`.

        Raises:
            SymcheckError: the module does not accept this type.
        """

    @abc.abstractmethod
    def materialize(self) -> nn.Module:
        """The equivalent plain torch module on flat activations."""


def moving(spatial: Sequence[str]) -> tuple[bool, bool]:
    """Whether some operator moves rows, and whether some operator moves columns."""
    # flip_lr fixes every row; flip_ud fixes every column.
    rows = any(name not in ("identity", "flip_lr") for name in spatial)
    columns = any(name not in ("identity", "flip_ud") for name in spatial)
    return rows, columns


def exchanges_axes(spatial: Sequence[str]) -> bool:
    """Whether some operator exchanges height and width."""
    return any(name in grids.SQUARE_ONLY for name in spatial)
