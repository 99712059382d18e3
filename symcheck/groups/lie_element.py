"""Elements of continuous groups: one component per factor, multiplied component by component.

The component of a continuous factor is a matrix in its defining representation (a rotation matrix, or a homogeneous
matrix for rigid motions and translations); that of a finite factor is an `Element`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import GroupError
from symcheck.groups.element import Element

Component = Floats | Element
SAME = 1e-9
"""Largest difference of the entries of equal elements: products of a few hundred factors have a smaller rounding
error."""


class LieElement(Element):
    """An element of a continuous group, by value.

    Attributes:
        parts: one component per factor of the group.

    Example:
        >>> half = LieElement([-np.eye(2)])
        >>> (half * half).is_identity, ~half == half
        (True, True)
    """

    __slots__ = ("parts",)
    parts: tuple[Component, ...]

    def __init__(self, parts: Sequence[Component]) -> None:
        super().__init__(())  # it does not act on a finite set of points
        object.__setattr__(self, "parts", tuple(parts))

    def __mul__(self, other: Element) -> LieElement:
        if not isinstance(other, Element):
            return NotImplemented
        if not isinstance(other, LieElement) or [*map(_shape, self.parts)] != [*map(_shape, other.parts)]:
            raise GroupError("both factors must be elements of the same group.", where="g * h")
        return LieElement([_product(a, b) for a, b in zip(self.parts, other.parts, strict=True)])

    def __invert__(self) -> LieElement:
        return LieElement([~part if isinstance(part, Element) else _inverse(part) for part in self.parts])

    def __pow__(self, exponent: int) -> LieElement:
        return LieElement(
            [part**exponent if isinstance(part, Element) else _power(part, exponent) for part in self.parts]
        )

    @property
    def is_identity(self) -> bool:
        """Whether every component is the identity, matrices up to rounding."""
        return all(
            part.is_identity if isinstance(part, Element) else bool(np.abs(part - np.eye(len(part))).max() <= SAME)
            for part in self.parts
        )

    @property
    def order(self) -> int:
        """Not computed for elements of continuous groups.

        Raises:
            GroupError: always; most have infinite order.
        """
        raise GroupError("the order of an element of a continuous group cannot be computed.", where="order")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LieElement) or [*map(_shape, self.parts)] != [*map(_shape, other.parts)]:
            return False
        return all(
            a == b if isinstance(a, Element) or isinstance(b, Element) else bool(np.abs(a - b).max() <= SAME)
            for a, b in zip(self.parts, other.parts, strict=True)
        )

    def __hash__(self) -> int:
        # Equality allows for rounding, so the hash uses finite components only.
        return hash(tuple(part for part in self.parts if isinstance(part, Element)))

    def __repr__(self) -> str:
        shown = [
            repr(part) if isinstance(part, Element) else np.array2string(part, precision=4, suppress_small=True)
            for part in self.parts
        ]
        return f"LieElement({', '.join(' '.join(text.split()) for text in shown)})"


def _shape(part: Component) -> tuple[str, int]:
    return ("finite", part.degree) if isinstance(part, Element) else ("matrix", len(part))


def _product(a: Component, b: Component) -> Component:
    if isinstance(a, Element) or isinstance(b, Element):
        if not (isinstance(a, Element) and isinstance(b, Element)):
            raise GroupError("both factors must be elements of the same group.", where="g * h")
        return a * b
    return np.asarray(a @ b, dtype=np.float64)


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _power(matrix: Floats, exponent: int) -> Floats:
    return np.asarray(np.linalg.matrix_power(matrix, exponent), dtype=np.float64)
