"""A bound symmetry with a different action of one generator: a corrected claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
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


def permuting(table: npt.NDArray[np.int64], start: int) -> Callable[[Any, Any], Any]:
    """The action map that sends the discrete action `start + i` to `start + table[i]`."""
    return lambda a, obs: type(a)(table[int(a) - start] + start)


def signing(bound: BoundSymmetry, word: Word, sign: Floats) -> Callable[[Any, Any], Any]:
    """The action map of an element, with other signs of some coordinates."""

    def act(action: Any, obs: Any) -> Any:
        array = np.asarray(bound.action(word, action, obs))
        return (array.reshape(-1) * sign).reshape(array.shape).astype(array.dtype)

    return act


def affine(matrix: Floats, offset: Floats) -> Callable[[Any], Any]:
    """The map x -> matrix x + offset of flattened arrays; shape and dtype are kept."""

    def apply(value: Any) -> Any:
        array = np.asarray(value)
        with np.errstate(invalid="ignore"):  # values may be infinite
            image = (matrix @ array.reshape(-1).astype(np.float64) + offset).reshape(array.shape)
            return image.astype(array.dtype)

    return apply
