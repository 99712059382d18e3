"""Actions on images: a symmetry of the square with the channels permuted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Ints
from symcheck.engine.networks.tracing import NotUnderstoodError
from symcheck.engine.networks.values import SignedPermutation, Tracked, distinct_rows, first_places
from symcheck.statements.statement import state


@dataclass(frozen=True)
class Square:
    """One of the eight symmetries of a square: transpose first (if asked), then flip rows, then flip columns."""

    transpose: bool
    flip_rows: bool
    flip_columns: bool

    def apply(self, images: Any) -> Any:
        """The moved images, shape (..., H, W)."""
        moved = np.swapaxes(images, -2, -1) if self.transpose else images
        moved = moved[..., ::-1, :] if self.flip_rows else moved
        return moved[..., ::-1] if self.flip_columns else moved

    @property
    def name(self) -> str:
        """What people call it."""
        return _NAMES[(self.transpose, self.flip_rows, self.flip_columns)]


_NAMES = {
    (False, False, False): "the identity",
    (False, True, False): "flip_ud",
    (False, False, True): "flip_lr",
    (False, True, True): "rot180",
    (True, False, False): "transpose",
    (True, True, False): "rot90",
    (True, False, True): "rot270",
    (True, True, True): "the antidiagonal transpose",
}
SQUARES = tuple(Square(*flags) for flags in sorted(_NAMES))


@dataclass(frozen=True, eq=False)
class Split:
    """An action on (channels, H, W): channel c at q goes to channel image.index[c] at square(q), with its sign."""

    square: Square
    channels: SignedPermutation


def channel_classes(value: Tracked) -> tuple[Ints, Ints, Ints]:
    """(class of each channel, first channel of each class, cls as (channels, H, W)); equal channels are one class."""
    if len(value.shape) not in (3, 4):
        raise NotUnderstoodError(state("SYM107"))
    # A line is an image of height 1.
    height = value.shape[2] if len(value.shape) == 4 else 1
    grid = value.cls.reshape(value.shape[1], height, value.shape[-1])
    rows, channel = distinct_rows(grid.reshape(len(grid), -1).astype(np.float64))
    return channel, first_places(channel, len(rows)), grid


def splits(value: Tracked, generator: int) -> list[Split]:
    """All ways in which a generator acts as a symmetry of the square and a signed permutation of channel classes."""
    _, first, grid = channel_classes(value)
    image = value.images[generator]
    moved = image.index[grid[first]]
    signs = image.sign[grid[first]].reshape(len(first), -1)
    # A channel has one sign at all of its positions.
    if not (signs == signs[:, :1]).all():
        return []
    place = {grid[c].tobytes(): k for k, c in enumerate(first)}
    options = []
    for square in SQUARES:
        # A transpose needs square images, and a line only flips along itself.
        if square.transpose and grid.shape[1] != grid.shape[2]:
            continue
        if grid.shape[1] == 1 and (square.flip_rows or square.transpose):
            continue
        # v(Lx)[c', square(q)] = sign v(x)[c, q]: the moved classes of c, carried by the square, are the classes of c'
        index = [place.get(_carry(square, moved[k]).tobytes(), -1) for k in range(len(first))]
        if min(index) >= 0 and len(set(index)) == len(index):
            options.append(Split(square, SignedPermutation(np.array(index, dtype=np.int64), signs[:, 0].copy())))
    return options


def _carry(square: Square, images: Any) -> Any:
    """Entry square(q) of the result is entry q of `images`."""
    return np.ascontiguousarray(square.apply(images))
