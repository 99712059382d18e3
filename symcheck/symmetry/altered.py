"""A bound symmetry with a different action of one generator: a corrected claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symcheck.groups.element import Word
from symcheck.symmetry.bound import BoundSymmetry


class AlteredSymmetry:
    """A bound symmetry with different maps for one generator; all other maps are those of the original.

    Args:
        bound: the original.
        letter: the generator whose maps are replaced.
        maps: the new maps, by kind: "observation" and "state" take a value, "action" takes (action, obs).
    """

    def __init__(self, bound: BoundSymmetry, letter: int, maps: Mapping[str, Callable[..., Any]]) -> None:
        self._bound, self._word, self._maps = bound, (letter,), maps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, name)

    def _map(self, kind: str, word: Word, *values: Any) -> Any:
        if word == self._word and kind in self._maps:
            return self._maps[kind](*values)
        return getattr(self._bound, kind)(word, *values)

    def observation(self, word: Word, obs: Any) -> Any:
        """L of one observation."""
        return self._map("observation", word, obs)

    def observation_batch(self, word: Word, observations: Any) -> Any:
        """L of stacked observations."""
        return np.stack([np.asarray(self.observation(word, obs)) for obs in observations])

    def action(self, word: Word, action: Any, obs: Any) -> Any:
        """K of one action."""
        return self._map("action", word, action, obs)

    def state(self, word: Word, held: Any) -> Any:
        """The map of one internal state."""
        return self._map("state", word, held)

    def state_batch(self, word: Word, states: Any) -> Any:
        """The map of stacked internal states."""
        return np.stack([np.asarray(self.state(word, held)) for held in states])
