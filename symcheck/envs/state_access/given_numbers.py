"""A random generator with predetermined numbers, with which an environment's own reset builds a given world.

Box2D worlds have no setter: terrain, bodies and joints are built by `reset`, partly from random numbers. With
predetermined numbers, and without the final step of `reset`, the environment's own code builds the world that a state
describes, so changed parameters and subclasses are respected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt


class GivenNumbers(np.random.Generator):
    """Returns the given array for the first request of an array, and the midpoint for every other request.

    Args:
        first: the result of the first `uniform(..., size=...)` of that size; None to return only midpoints.

    Example:
        >>> numbers = GivenNumbers(np.array([3.0, 4.0]))
        >>> numbers.uniform(0, 1, size=(2,)).tolist(), float(numbers.uniform(-5, 5))
        ([3.0, 4.0], 0.0)
    """

    def __init__(self, first: npt.NDArray[np.float64] | None = None) -> None:
        super().__init__(np.random.PCG64(0))
        self._first = first

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """The given array, once; otherwise the midpoint of the interval."""
        if size is not None and self._first is not None and np.prod(size) == self._first.size:
            first, self._first = self._first, None
            return first.reshape(size).copy()
        middle = (np.asarray(low) + np.asarray(high)) / 2
        return float(middle) if size is None else np.full(size, middle)

    def integers(self, low: Any, high: Any = None, size: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        return np.int64(low) if size is None else np.full(size, low)

    def random(self, size: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        return 0.5 if size is None else np.full(size, 0.5)


@contextmanager
def replace_attributes(env: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
    """Temporarily replace attributes of an object; attributes that shadowed its class are removed again.

    Args:
        env: any object with a `__dict__`.
        attributes: name to value; methods are shadowed by instance attributes.
    """
    before = {name: vars(env)[name] for name in attributes if name in vars(env)}
    vars(env).update(attributes)
    try:
        yield
    finally:
        for name in attributes:
            if name in before:
                vars(env)[name] = before[name]
            else:
                del vars(env)[name]
