"""A state vector that carries the rest of its world along.

A symmetry maps the part of a state that it speaks about: positions, a grid, the bytes of a RAM. What lies outside (the
machine's registers, the mission of an episode, a terrain that the map keeps) has to be restored as well, and no vector
of numbers holds it. `CarriedState` is an ordinary array with that remainder attached; arithmetic, slicing and copies
keep the reference, and `carried_over` puts it back where a map has made a plain array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class CarriedState(npt.NDArray[Any]):
    """An array with an attribute `rest`, which setters restore before they write the numbers.

    The remainder is shared by all copies: it is never changed after it was taken.

    Args:
        vector: the numbers, any shape.
        rest: whatever the setter needs besides.

    Example:
        >>> state = CarriedState(np.arange(3), rest="registers")
        >>> (state * 2).rest, state[::-1].rest
        ('registers', 'registers')
    """

    rest: Any

    def __new__(cls, vector: npt.ArrayLike, rest: Any) -> CarriedState:
        """See the class."""
        state = np.array(vector).view(cls)
        state.rest = rest
        return state

    def __array_finalize__(self, source: Any) -> None:
        """Keep the remainder in views, copies and results of arithmetic."""
        self.rest = getattr(source, "rest", None)


def carried_over(image: Any, original: Any) -> Any:
    """The image of a state, with the remainder of the state it is the image of.

    Args:
        image: what a map made of `original`.
        original: the state.

    Returns:
        `image`, carrying the rest of `original` where that carries one and `image` is an array that does not.

    Example:
        >>> carried_over(np.zeros(2), CarriedState(np.ones(2), rest=7)).rest
        7
    """
    if not isinstance(original, CarriedState) or not isinstance(image, np.ndarray):
        return image
    if isinstance(image, CarriedState) and image.rest is not None:
        return image
    return CarriedState(image, original.rest)
