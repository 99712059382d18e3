"""A random generator that gives numbers which were decided before, so that an environment's own reset builds a wish.

Box2D worlds have no setter: terrain, bodies and joints are built by `reset`, partly from random numbers. With these
numbers given, and the step that reset ends with left out, the environment builds the world that a state describes, by
its own code: changed parameters and subclasses are respected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt


class GivenNumbers(np.random.Generator):
    """Answers the first request for an array with the one given, and every other request with the middle.

    Args:
        first: what the first `uniform(..., size=...)` of that size returns; None to give only middles.

    Example:
        >>> numbers = GivenNumbers(np.array([3.0, 4.0]))
        >>> numbers.uniform(0, 1, size=(2,)).tolist(), float(numbers.uniform(-5, 5))
        ([3.0, 4.0], 0.0)
    """

    def __init__(self, first: npt.NDArray[np.float64] | None = None) -> None:
        super().__init__(np.random.PCG64(0))
        self._first = first

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """The array given, once; otherwise the middle of the interval."""
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
    """Give an object other attributes for a while; what shadows its class is taken away again.

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
