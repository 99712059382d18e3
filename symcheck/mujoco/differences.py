"""One parameter of a model that differs from its image, and the criterion for a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.mujoco.isometry import ROUNDING


@dataclass(frozen=True)
class Difference:
    """One parameter of a model that differs from its image.

    Attributes:
        element: the element, for instance "geom 'right_foot'".
        counterpart: its image; equal to `element` for elements on the mirror plane. If `actual` is empty, the element
            that has no image.
        quantity: the parameter that differs: "friction", "range", "inertia", ...
        expected: the image of the element's value, which the counterpart should have.
        actual: the value of the counterpart; empty if the element has no image.
        scale: the reference for the relative size if it is larger than the values themselves: the robot's extent for
            positions.
    """

    element: str
    counterpart: str
    quantity: str
    expected: tuple[float, ...]
    actual: tuple[float, ...]
    scale: float = 0.0

    @property
    def size(self) -> float:
        """The largest difference of any component; infinite if the element has no image."""
        return float(np.abs(np.subtract(self.expected, self.actual)).max()) if self.actual else float("inf")

    @property
    def relative(self) -> float:
        """`size` divided by the largest component (or by `scale`); 0 if all are 0, infinite if there is no image."""
        if not self.actual:
            return self.size
        # The difference for a centre that should lie on the plane is twice its coordinate, so positions are compared
        # with the robot's extent.
        scale = max(self.scale, *map(abs, (*self.expected, *self.actual)))
        return self.size / scale if scale else 0.0

    def __str__(self) -> str:
        if not self.expected:
            return f"{self.element} has no image: {self.counterpart} is missing"
        actual, expected = _format_values(self.actual), _format_values(self.expected)
        if not self.actual:
            return f"{self.element} has no image on {self.counterpart}: its {self.quantity} would be {expected}"
        if self.element == self.counterpart:
            return f"{self.quantity} of {self.element}: {actual}, but its image is {expected}"
        return f"{self.quantity} of {self.counterpart}: {actual}, but the image of {self.element} has {expected}"


def difference(element: str, counterpart: str, quantity: str, expected: Any, actual: Any) -> Iterator[Difference]:
    """The difference of two values, if rounding does not explain it.

    Args:
        element: the element whose mirrored value is expected.
        counterpart: the element whose value is compared.
        quantity: the name of the parameter.
        expected: a number or an array.
        actual: the same.

    Yields:
        Nothing, or one difference.

    Example:
        >>> [str(one) for one in difference("geom 'a'", "geom 'b'", "margin", 0.0, 0.1)]
        ["margin of geom 'b': 0.1, but the image of geom 'a' has 0"]
    """
    first, second = np.atleast_1d(expected).astype(float).ravel(), np.atleast_1d(actual).astype(float).ravel()
    scale = max(1.0, float(np.abs(first).max(initial=0)), float(np.abs(second).max(initial=0)))
    # Relative differences only: masses may be small numbers.
    if quantity in ("inertia", "mass") or quantity.startswith("armature"):
        scale = max(float(np.abs(first).max(initial=0)), float(np.abs(second).max(initial=0)))
    if first.size and not np.abs(first - second).max() <= ROUNDING * scale:
        yield Difference(element, counterpart, quantity, tuple(first.tolist()), tuple(second.tolist()))


def _format_values(values: tuple[float, ...]) -> str:
    shown = [f"{value + 0.0:.9g}" for value in values]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
