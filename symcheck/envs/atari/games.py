"""The properties of each game: its actions, its mirror axis, and the part of its screen that is kept.

A screen has 210 rows and 160 columns of grey values. Rows 34 to 193 show the playing field of both games; the rows
above (the score) and below are cropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from symcheck.errors import TargetError, suggestion

Reduction = Literal["every_second", "means"]

# First row of the field, below the score and the upper wall.
TOP = 34
# Rows and columns of the field: a square, so that 80 x 80 is one reduction of both.
FIELD = 160
SCREEN = (210, 160)
# Mnih et al. (2015): frames for which an action is repeated, frames in a stack, largest number of no-ops.
FRAME_SKIP = 4
STACK = 4
MOST_NOOPS = 30
HORIZON = 27_000
"""Steps of a game after which it is truncated: 108,000 frames, half an hour of play."""


@dataclass(frozen=True)
class Game:
    """One game.

    Attributes:
        name: the name of its ROM.
        actions: the meaning of each action, in the order of the game's minimal action set.
        swapped: the image of each action under the reflection.
        operator: the reflection of the image.
        reduction: how the field is reduced to 80 x 80; this reduction commutes with the game's reflection.
        painted: rectangles of the screen that are blackened, as (first row, end, first column, end).
        fire_starts_lives: whether fire serves the ball, so that each life must begin with it.
    """

    name: str
    actions: tuple[str, ...]
    swapped: tuple[int, ...]
    operator: Literal["flip_ud", "flip_lr"]
    # Set by the axis of the reflection; see the comment above GAMES.
    reduction: Reduction
    painted: tuple[tuple[int, int, int, int], ...] = ()
    fire_starts_lives: bool = False

    @property
    def fire(self) -> int:
        """The action that only presses fire."""
        return self.actions.index("fire")


# Pong's ball reflects about screen row 113 (r -> 226 - r), Breakout's about column 79.5 (c -> 159 - c): these values
# were measured, see `evidence` and docs/pong.md. For every second line, 34, 36, ..., the flip is r -> 226 - r; for
# means over 2 x 2 it is r -> 227 - r or c -> 159 - c. So each game has one reduction that commutes with it.
GAMES: dict[str, Game] = {
    "pong": Game(
        "pong", ("noop", "fire", "up", "down", "up and fire", "down and fire"), (0, 1, 3, 2, 5, 4), "flip_ud",
        "every_second",
    ),
    "breakout": Game(
        "breakout", ("noop", "fire", "right", "left"), (0, 1, 3, 2), "flip_lr", "means",
        ((189, 196, 0, 8), (189, 196, 152, 160)), fire_starts_lives=True,
    ),
}  # fmt: skip


def find_game(name: str) -> Game:
    """The game of that name.

    Args:
        name: "pong" or "breakout".

    Returns:
        The game.

    Raises:
        TargetError: an unknown name; the message suggests the nearest one.

    Example:
        >>> find_game("pong").swapped
        (0, 1, 3, 2, 5, 4)
    """
    if name not in GAMES:
        raise TargetError(f"unknown game {name!r}.", where="game", remedy=suggestion(str(name), GAMES))
    return GAMES[name]


def rom_path(game: Game) -> Path:
    """The file of a game's ROM, which ale-py ships.

    Args:
        game: the game.

    Returns:
        Its path.

    Raises:
        TargetError: ale-py is not installed, or has no such file; the message names the folder that was searched.
    """
    try:
        from ale_py import roms
    except ImportError as error:
        raise TargetError(
            f"{game.name} needs ale-py, which cannot be imported ({error}).",
            where="game",
            remedy="Install it with: pip install ale-py",
        ) from error
    folder = Path(roms.__file__).parent
    try:
        path = roms.get_rom_path(game.name)
    except OSError:
        path = None
    if path is None or not Path(path).is_file():
        raise TargetError(
            # A package built without its ROMs can still be imported.
            f"the ROM {game.name}.bin, which is part of ale-py, is missing from {folder}.",
            where="game",
            remedy="Install ale-py again: pip install --force-reinstall ale-py.",
        )
    return Path(path)
