"""Preprocesses screens for a network: crops the field, reduces it to 80 x 80 and stacks four frames.

Two reductions, for whole batches at once. A flip of the 80 x 80 image corresponds to a reflection of the screen:

    every_second   (rows and columns 34, 36, ... and 0, 2, ...)    r -> 226 - r and c -> 158 - c,
    means          (of 2 x 2 pixels)                               r -> 227 - r and c -> 159 - c.

Which of these is the game's own reflection depends on the game (`games`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bytes
from symcheck.envs.atari.games import FIELD, SCREEN, STACK, TOP, Game, Reduction
from symcheck.errors import TargetError


def field(screens: Bytes) -> Bytes:
    """Rows 34 to 193 of grey screens: (..., 210, 160) to (..., 160, 160), a view.

    Raises:
        TargetError: screens of the wrong shape or dtype.
    """
    if screens.shape[-2:] != SCREEN or screens.dtype != np.uint8:
        raise TargetError(
            f"expected grey screens (..., 210, 160) of uint8, got shape {screens.shape} of {screens.dtype}.",
            where="screens",
            remedy="Ask the emulator for grey values at full resolution.",
        )
    return screens[..., TOP : TOP + FIELD, :]


def reduce_field(fields: Bytes, reduction: Reduction) -> Bytes:
    """Reduce fields to 80 x 80; commutes with the reflection of the screen that belongs to the reduction.

    Args:
        fields: shape (..., 160, 160), uint8.
        reduction: "every_second" keeps rows and columns 0, 2, 4, ...; "means" averages 2 x 2, halves rounded up.

    Returns:
        Shape (..., 80, 80), uint8.

    Example:
        >>> reduce_field(np.arange(160 * 160, dtype=np.uint8).reshape(160, 160), "means")[0, :3].tolist()
        [81, 83, 85]
    """
    if reduction == "every_second":
        # A view; every second line is its own image under the flip r -> 226 - r.
        return fields[..., ::2, ::2]
    # Pairs of rows as 16-bit sums; four grey values plus the rounding term 2 stay below 2^10.
    rows = fields[..., ::2, :].astype(np.uint16)
    rows += fields[..., 1::2, :]
    # (a + b + c + d + 2) // 4 rounds the mean half up, symmetrically in the four.
    sums = rows[..., ::2] + rows[..., 1::2]
    sums += 2
    sums >>= 2
    return sums.astype(np.uint8)


def paint_over(screens: Bytes, game: Game) -> None:
    """Blacken the game's decoration in place; shape (..., 210, 160)."""
    for first_row, end_row, first_column, end_column in game.painted:
        screens[..., first_row:end_row, first_column:end_column] = 0


def observe(screens: Bytes, game: Game, reduction: Reduction) -> Bytes:
    """The reduced field of each screen, (..., 210, 160) to (..., 80, 80); blackens decoration in place."""
    paint_over(screens, game)
    return reduce_field(field(screens), reduction)


class FrameStacks:
    """The last four reduced frames of every environment, oldest first; black before a life's first frame.

    Args:
        environments: the number of environments.

    Attributes:
        frames: shape (environments, 4, 80, 80), uint8.
    """

    def __init__(self, environments: int) -> None:
        self.frames: Bytes = np.zeros((environments, STACK, FIELD // 2, FIELD // 2), dtype=np.uint8)

    def push(self, newest: Bytes) -> None:
        """Add a frame to every stack; shape (environments, 80, 80)."""
        # Oldest first: shift all frames by one. NumPy buffers overlapping assignments.
        self.frames[:, :-1] = self.frames[:, 1:]
        self.frames[:, -1] = newest

    def restart(self, where: npt.NDArray[np.bool_], newest: Bytes) -> None:
        """Restart some stacks with these frames; shapes (environments,) and (environments, 80, 80)."""
        self.frames[where, :-1] = 0
        self.frames[where, -1] = newest[where]
