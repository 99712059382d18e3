"""Pong with object observations: positions of ball and paddles read from memory, and settable states.

Positions are screen rows relative to the axis of reflection, so the reflection of an observation only changes signs. A
state contains the moving parts in the same form and all other bytes of the memory unchanged, so the reflection of a
state only changes signs, too:

    y, y', paddle, paddle's next, opponent, opponent's copy, knob | in play, 122 bytes

Memory: byte 54 is the row of the ball (0 while there is none), 56 its speed, 49 and 58 the same along the columns, 51
and 60 the player's paddle now and next, 50 and 21 the opponent's, 13 and 14 the points of opponent and player. These
addresses were found by comparing memory with the screen, and confirmed by setting them (tests).
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bytes, Floats
from symcheck.envs.atari.images import AtariEnv
from symcheck.envs.atari.machine import RAM
from symcheck.errors import OptionError

# Bytes whose values are a row, with the value on the axis r -> 226 - r. The ball spans rows y - 14 to y - 11, so its
# centre is on the axis at 125.5; a paddle of 16 rows is centred there at 119 (drawn at y - 13 or y - 14, in turn), the
# opponent's at 120.5 (drawn at y - 15).
BALL, SPEED, PADDLE, PADDLE_NEXT, OPPONENT, OPPONENT_COPY = 54, 56, 51, 60, 50, 21
COLUMN, COLUMN_SPEED = 49, 58
OPPONENT_POINTS, PLAYER_POINTS = 13, 14
_CENTRES = {BALL: 125.5, PADDLE: 119.0, PADDLE_NEXT: 119.0, OPPONENT: 120.5, OPPONENT_COPY: 120.5}
_ORDER = (BALL, SPEED, PADDLE, PADDLE_NEXT, OPPONENT, OPPONENT_COPY)
# The paddle's byte settles at (knob + 24,000) / 4,000 (measured between 140,000 and 780,000 ohms), so that a row is
# 4,000 ohms and the axis, 119, is at 452,000.
KNOB_ROW, KNOB_CENTRE = 4_000.0, 452_000.0
# All other bytes of the memory are fixed by the reflection.
_OTHERS = tuple(at for at in range(RAM) if at not in _ORDER)
# Six mirrored bytes, the knob, whether there is a ball, and the other bytes.
STATE_SIZE = len(_ORDER) + 2 + len(_OTHERS)


class PongObjectsEnv(AtariEnv):
    """Pong as a dictionary of numbers.

    Args:
        **arguments: as for `AtariEnv`, without the game.

    Attributes:
        observation_space: `ball` (row, column, speed along either; 0 while there is none), `paddle` and `opponent`
            (rows of their centres); float32, in pixels from the axis, columns from the screen's left.

    Example:
        >>> env = PongObjectsEnv()
        >>> sorted(env.reset(seed=0)[0])
        ['ball', 'opponent', 'paddle']
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("pong", **arguments)
        numbers = {"ball": 4, "paddle": 1, "opponent": 1}
        self.observation_space = gym.spaces.Dict(
            {name: gym.spaces.Box(-255.0, 255.0, (size,), np.float32) for name, size in numbers.items()}
        )

    def _observe(self, screen: Bytes, *, afresh: bool) -> dict[str, npt.NDArray[np.float32]]:
        ram = self.machine.ram()
        # The reflection negates every offset from the axis.
        side = -1.0 if self._reflected else 1.0
        offsets = {name: side * (float(ram[at]) - _CENTRES[at]) for name, at in (("p", PADDLE), ("o", OPPONENT))}
        ball = np.zeros(4)
        # Byte 0: there is no ball on the screen, so its position and speed are meaningless.
        if ram[BALL]:
            # Speeds are signed bytes. The one along the columns is not reflected.
            speed, along = float(ram[SPEED].astype(np.int8)), float(ram[COLUMN_SPEED].astype(np.int8))
            ball[:] = side * (float(ram[BALL]) - _CENTRES[BALL]), float(ram[COLUMN]), side * speed, along
        return {
            "ball": ball.astype(np.float32),
            "paddle": np.array([offsets["p"]], dtype=np.float32),
            "opponent": np.array([offsets["o"]], dtype=np.float32),
        }


class SettablePongEnv(PongObjectsEnv):
    """Pong with readable and settable state, so that a state and its reflection can be stepped side by side."""

    def __init__(self, **arguments: Any) -> None:
        if arguments.get("symmetrized"):
            raise OptionError(
                "the state of a symmetrised game does not contain its current orientation.", where="symmetrized"
            )
        super().__init__(**arguments)

    def get_state(self) -> Floats:
        """The state, shape (130,): seven numbers that the reflection negates, a flag for the ball, 122 bytes."""
        return state_of(self.machine.ram(), self.machine.knob)

    def set_state(self, state: npt.ArrayLike) -> None:
        """Put the game into a state; halves are rounded up, and the knob is clipped to its range.

        Raises:
            OptionError: the wrong shape, or numbers that are not finite.
        """
        given = np.asarray(state, dtype=np.float64)
        if given.shape != (STATE_SIZE,):
            raise OptionError(f"expected a state of shape ({STATE_SIZE},), got {given.shape}.", where="state")
        if not np.isfinite(given).all():
            at = int(np.flatnonzero(~np.isfinite(given))[0])
            raise OptionError(f"expected finite numbers, got {given[at]} at index {at}.", where="state")
        ram, knob = memory_of(given)
        # The next reward is the change of the score, so the score must agree with the memory's points.
        self.machine.place(ram, knob, score=int(ram[PLAYER_POINTS]) - int(ram[OPPONENT_POINTS]))
        self._elapsed = 0


def state_of(ram: Bytes, knob: float) -> Floats:
    """The state for a memory and a knob; see the module docstring."""
    moved = [float(ram[at]) - _CENTRES[at] for at in (BALL, PADDLE, PADDLE_NEXT, OPPONENT, OPPONENT_COPY)]
    # Without a ball the offset is 0, a fixed point of the reflection.
    ball = moved[0] if ram[BALL] else 0.0
    speed = float(ram[SPEED].astype(np.int8))
    numbers = [ball, speed, *moved[1:], (knob - KNOB_CENTRE) / KNOB_ROW, float(ram[BALL] != 0)]
    return np.concatenate([numbers, ram[list(_OTHERS)].astype(np.float64)])


def memory_of(state: Floats) -> tuple[Bytes, float]:
    """The memory and the knob of a state, the inverse of `state_of`.

    Example:
        >>> ram = np.arange(128, dtype=np.uint8)
        >>> bool((memory_of(state_of(ram, 400_000))[0] == ram).all())
        True
    """
    # The order of `state_of`: seven numbers that are negated, then whether there is a ball.
    ball, speed, paddle, following, opponent, copy, knob, in_play = state[:8]
    ram = np.zeros(RAM, dtype=np.uint8)
    ram[list(_OTHERS)] = np.rint(state[8:]).astype(np.int64) % 256
    for at, value in ((PADDLE, paddle), (PADDLE_NEXT, following), (OPPONENT, opponent), (OPPONENT_COPY, copy)):
        # floor(x + 0.5) rounds every half up, where rint would go to the even neighbour.
        ram[at] = int(np.floor(value + _CENTRES[at] + 0.5)) % 256
    ram[BALL] = int(np.floor(ball + _CENTRES[BALL] + 0.5)) % 256 if in_play else 0
    # Modulo 256 turns a negative speed into its two's complement.
    ram[SPEED] = int(np.rint(speed)) % 256
    return ram, knob * KNOB_ROW + KNOB_CENTRE
