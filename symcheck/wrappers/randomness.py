"""The wrappers' random numbers: from a given generator or the environment's seed, independent of its own numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_STREAM = 0x51A7
"""Separates a wrapper's stream from that of an environment with the same seed."""


class Dice:
    """Draws of group elements.

    Args:
        rng: the generator; None for an unseeded generator.
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._rng = np.random.default_rng() if rng is None else rng

    def seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Start a new stream for `reset(seed=...)`; None continues the current one."""
        if seed is None:
            return
        # Vector environments seed each environment; None leaves one unseeded.
        numbers = [seed] if isinstance(seed, int | np.integer) else [number for number in seed if number is not None]
        if numbers:
            self._rng = np.random.default_rng([_STREAM, *(int(number) for number in numbers)])

    @property
    def rng(self) -> np.random.Generator:
        """The current stream."""
        return self._rng

    def among(self, alive: npt.NDArray[np.bool_]) -> int:
        """One of the marked positions, drawn uniformly."""
        places = np.flatnonzero(alive)
        # Draw only if there is a choice, so that streams remain comparable between runs.
        return int(places[0]) if len(places) == 1 else int(self._rng.choice(places))

    def among_each(self, alive: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """One marked position of each column, (columns,); draws only for columns with a choice."""
        chosen: npt.NDArray[np.int64] = alive.argmax(axis=0).astype(np.int64)
        for column in np.flatnonzero(alive.sum(axis=0) > 1):
            chosen[column] = self._rng.choice(np.flatnonzero(alive[:, column]))
        return chosen

    def below(self, count: int, size: int) -> npt.NDArray[np.int64]:
        """`size` integers in 0..count-1."""
        return self._rng.integers(0, count, size)
