"""A state vector with the rest of the state attached.

A symmetry maps a part of a state: positions, a grid, the bytes of a RAM. The rest (the machine's registers, the mission
of an episode, an invariant terrain) must be restored as well, but does not fit into a vector of numbers. `CarriedState`
is an ordinary array with this rest attached; arithmetic, slicing and copies keep the reference, and `carried_over`
attaches it again if a map returns a plain array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class CarriedState(npt.NDArray[Any]):
    """An array with an attribute `rest`, which setters restore before they write the numbers.

    All copies share the rest, which is never modified.

    Args:
        vector: the numbers, any shape.
        rest: everything else that the setter needs.

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
        """Keep the rest in views, copies and results of arithmetic."""
        self.rest = getattr(source, "rest", None)


def carried_over(image: Any, original: Any) -> Any:
    """The image of a state, with the rest of the original state attached.

    Args:
        image: the image of `original` under a map.
        original: the state.

    Returns:
        `image`; if it is an array without a rest and `original` has one, with that rest attached.

    Example:
        >>> carried_over(np.zeros(2), CarriedState(np.ones(2), rest=7)).rest
        7
    """
    if not isinstance(original, CarriedState) or not isinstance(image, np.ndarray):
        return image
    if isinstance(image, CarriedState) and image.rest is not None:
        return image
    return CarriedState(image, original.rest)
