"""An emulator of one game: frames, memory, and its complete state as numbers that can be written back.

The emulator's saved state contains the position of the paddle's knob; the memory does not. Memory and knob together are
the state of the game: written into any saved state, they reproduce every later frame (tested). So a reflected state,
including the knob, can be set.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bytes
from symcheck.envs.atari.games import MOST_NOOPS, Game, rom_path

RAM = 128
KNOB_RANGE = (27_450, 790_196)
"""The range of a knob in the emulator, in ohms."""
_SCORE = 20
"""The position, in bytes before the end of a saved state of Pong, of the score from which the next reward is computed.
It was found by comparing states with the score, and confirmed by the reward after setting a state (tests)."""


class Machine:
    """An emulator.

    Args:
        game: which game.

    Raises:
        TargetError: ale-py cannot be imported, or lacks the ROM.
    """

    def __init__(self, game: Game) -> None:
        rom = rom_path(game)
        import ale_py

        self._clone = ale_py.ALEState
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        # No sticky actions: with them, two states could not be compared step by step.
        self._ale.setFloat("repeat_action_probability", 0.0)
        # The setting is read when the ROM is loaded, so it comes first.
        self._ale.loadROM(str(rom))
        self._actions = self._ale.getMinimalActionSet()
        self._fire = game.fire
        self._screen = np.zeros(self._ale.getScreenDims(), dtype=np.uint8)
        self._base: bytes | None = None
        self._fresh: bytes | None = None

    def start(self, noops: int) -> None:
        """Begin a game as the vectoriser does: one frame of fire, which serves, then the given number of no-ops."""
        if self._fresh is None:
            self._ale.reset_game()
            self._fresh = self.save()
        else:  # equivalent and a hundred times faster: only the number of no-ops is random
            self.load(self._fresh)
        self.act(self._fire)
        for _ in range(noops):
            self.act(0)

    @staticmethod
    def draw_noops(rng: np.random.Generator) -> int:
        """Draw the number of no-ops before a game as the vectoriser does: 0 to 29, including the press of fire.

        So 0 to 28 no-ops follow the press of fire; 0 is twice as likely as any other number.
        """
        return max(0, int(rng.integers(MOST_NOOPS)) - 1)

    def act(self, action: int) -> float:
        """Step one frame and return the reward."""
        return float(self._ale.act(self._actions[action], 1.0))

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return bool(self._ale.game_over())

    @property
    def lives(self) -> int:
        """Lives left; 0 in Pong, which has none."""
        return int(self._ale.lives())

    def screen(self) -> Bytes:
        """The grey values, (210, 160), a copy."""
        self._ale.getScreenGrayscale(self._screen)
        return self._screen.copy()

    def colours(self) -> Bytes:
        """The screen in red, green and blue, (210, 160, 3)."""
        return np.array(self._ale.getScreenRGB(), dtype=np.uint8)

    def ram(self) -> Bytes:
        """The memory, 128 bytes, a copy."""
        return np.array(self._ale.getRAM(), dtype=np.uint8)

    def write(self, at: int, value: int) -> None:
        """Change one byte of the memory."""
        self._ale.setRAM(at, value)

    def save(self) -> bytes:
        """The whole state of the emulator."""
        saved: bytes = self._ale.cloneState().serialize()
        return saved

    def load(self, saved: bytes) -> None:
        """Restore a saved state of the emulator."""
        # ALEState has no constructor from bytes, so call `__setstate__`, as unpickling does.
        state: Any = self._clone.__new__(self._clone)
        state.__setstate__(saved)
        self._ale.restoreState(state)

    @property
    def knob(self) -> int:
        """The resistance of the player's knob, in ohms: the first number of a saved state."""
        # Little-endian, 32 bits, at offset 0.
        return int(struct.unpack_from("<i", self.save())[0])

    def place(self, ram: npt.NDArray[np.uint8], knob: float, *, score: int | None = None) -> None:
        """Put the game into the state with this memory and knob; the knob is clipped to its range.

        The rest comes from one saved moment of the first game, the same for every state.

        Args:
            ram: shape (128,).
            knob: the resistance of the knob in ohms.
            score: the score before the step (in Pong, the player's points minus the opponent's); the reward is the gain
                over it. None uses the score of the saved state.
        """
        # A saved state holds more than memory and knob (timers, the screen's position): those come from one template.
        if self._base is None:
            self._base = self.save()
        low, high = KNOB_RANGE
        # Bytes are immutable: patch a copy, and keep the template.
        saved = bytearray(self._base)
        struct.pack_into("<i", saved, 0, int(min(max(knob, low), high)))
        if score is not None:
            struct.pack_into("<i", saved, len(saved) - _SCORE, score)
        # Loading restores the memory too, so write the differing bytes afterwards.
        self.load(bytes(saved))
        for at, value in enumerate(ram.tolist()):
            self._ale.setRAM(at, value)
