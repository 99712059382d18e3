"""The symmetries of a square, with their usual names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Square:
    """One of the eight symmetries of a square: transpose first (if set), then flip rows, then flip columns."""

    transpose: bool
    flip_rows: bool
    flip_columns: bool

    def apply(self, images: Any) -> Any:
        """The transformed images, shape (..., H, W)."""
        moved = np.swapaxes(images, -2, -1) if self.transpose else images
        moved = moved[..., ::-1, :] if self.flip_rows else moved
        return moved[..., ::-1] if self.flip_columns else moved

    @property
    def name(self) -> str:
        """The usual name of the symmetry."""
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
