"""Elements of permutation groups, by value, and words over generators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.errors import GroupError

Word = tuple[int, ...]
"""Generator indices; the last one acts first."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a group, represented by the image of each point.

    `(g * h).images[i] == g.images[h.images[i]]`: the right factor acts first, as for matrices.

    Attributes:
        images: tuple of length n, a permutation of 0..n-1; point i goes to images[i].

    Example:
        >>> r = Element((1, 2, 0))
        >>> (r * r).images, (~r).images, r**3 == Element.identity(3)
        ((2, 0, 1), (2, 0, 1), True)
    """

    images: tuple[int, ...]

    @staticmethod
    def identity(degree: int) -> Element:
        """The identity on `degree` points."""
        return Element(tuple(range(degree)))

    @property
    def degree(self) -> int:
        """The number of points."""
        return len(self.images)

    def __mul__(self, other: Element) -> Element:
        if not isinstance(other, Element):
            return NotImplemented
        if len(self.images) != len(other.images):
            raise GroupError(
                "both factors must be elements of the same group: "
                f"got elements on {self.degree} and on {other.degree} points.",
                where="g * h",
            )
        # (g h)(x) = g(h(x)): the images of h are looked up among those of g.
        return Element(tuple(map(self.images.__getitem__, other.images)))

    def __invert__(self) -> Element:
        inverse = [0] * len(self.images)
        for point, image in enumerate(self.images):
            inverse[image] = point
        return Element(tuple(inverse))

    def __pow__(self, exponent: int) -> Element:
        base = self if exponent >= 0 else ~self
        # Repeated squaring: the number of products grows with the logarithm of the exponent.
        result, exponent = Element.identity(self.degree), abs(exponent)
        while exponent:
            if exponent & 1:
                result = result * base
            base, exponent = base * base, exponent >> 1
        return result

    @property
    def is_identity(self) -> bool:
        """Whether every point is fixed."""
        return all(point == image for point, image in enumerate(self.images))

    @property
    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """The cycles of length two and more, each from its smallest point."""
        visited = [False] * self.degree
        longer_cycles = []
        for start in range(self.degree):
            # A point follows its images until the cycle closes.
            cycle = []
            point = start
            while not visited[point]:
                visited[point] = True
                cycle.append(point)
                point = self.images[point]
            if len(cycle) > 1:
                longer_cycles.append(tuple(cycle))
        return tuple(longer_cycles)

    @property
    def order(self) -> int:
        """The smallest n >= 1 with g^n = e: the least common multiple of the cycle lengths."""
        # As Python integers: the order of a long permutation overflows 64 bits.
        return int(np.lcm.reduce([len(cycle) for cycle in self.cycles], initial=1, dtype=object))

    def __repr__(self) -> str:
        return "Element(" + ("".join("(" + " ".join(map(str, c)) + ")" for c in self.cycles) or "e") + ")"
