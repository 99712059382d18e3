"""The factors of a continuous group: rotations, rigid motions, translations and finite groups.

Each factor gives its Lie generators and discrete generators as matrices of its defining representation (homogeneous
matrices if it contains translations), samples an element, and writes an element as exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import GroupError
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group
from symcheck.groups.lie_element import SAME, Component

Kind = Literal["so", "o", "se", "e", "t", "finite"]
_AXES = "xyz"
_TITLES = {"so": "SO", "o": "O", "se": "SE", "e": "E", "t": "T"}


@dataclass(frozen=True)
class Factor:
    """One factor of a product.

    Attributes:
        kind: the family; "t" for translations, "finite" for a finite group.
        n: the dimension of the space that it rotates or translates; 0 for finite groups.
        finite: the finite group; None for continuous factors.

    Example:
        >>> Factor("so", 3).algebra, Factor("o", 2).discrete_names
        (('turn_x', 'turn_y', 'turn_z'), ('reflection',))
    """

    kind: Kind
    n: int = 0
    finite: Group | None = None

    @property
    def name(self) -> str:
        """For instance "SO(3)"."""
        return self.finite.name if self.finite is not None else f"{_TITLES[self.kind]}({self.n})"

    @property
    def translates(self) -> bool:
        """Whether the factor contains translations and is therefore not compact."""
        return self.kind in ("se", "e", "t")

    @property
    def turns(self) -> bool:
        """Whether the factor contains rotations; in one dimension there are none."""
        return self.kind in ("so", "o", "se", "e") and self.n > 1

    @property
    def reflects(self) -> bool:
        """Whether the factor has a discrete generator of determinant -1."""
        return self.kind in ("o", "e")

    @property
    def size(self) -> int:
        """The number of rows of the defining matrices, which are homogeneous if the factor contains translations."""
        return self.n + 1 if self.translates else self.n

    @cached_property
    def planes(self) -> tuple[tuple[int, int], ...]:
        """The planes of rotation; (i, j) rotates e_i towards e_j. In three dimensions: about x, y, z."""
        if not self.turns:
            return ()
        if self.n == 3:
            return ((1, 2), (2, 0), (0, 1))
        return tuple((i, j) for i in range(self.n) for j in range(i + 1, self.n))

    @property
    def shifts(self) -> int:
        """The number of translations, which come before the rotations."""
        return self.n if self.translates else 0

    @cached_property
    def algebra(self) -> tuple[str, ...]:
        """Names of the Lie generators, in order."""
        # Axes by letter up to three dimensions.
        axes = list(_AXES[: self.n]) if self.n <= 3 else [str(i) for i in range(self.n)]
        shifts = ["shift"] if self.n == 1 else [f"shift_{axis}" for axis in axes]
        if self.n == 2:
            turns = ["turn"]
        elif self.n == 3:
            turns = [f"turn_{axis}" for axis in _AXES]
        else:
            # A separator makes two-digit axes unambiguous.
            gap = "" if self.n <= 10 else "_"
            turns = [f"turn_{i}{gap}{j}" for i, j in self.planes]
        return (*(shifts if self.translates else []), *(turns if self.turns else []))

    @cached_property
    def algebra_matrices(self) -> tuple[Floats, ...]:
        """The Lie generators as matrices of the defining representation."""
        made = []
        for axis in range(self.shifts):
            shift = np.zeros((self.size, self.size))
            shift[axis, self.n] = 1.0
            made.append(shift)
        for i, j in self.planes:
            turn = np.zeros((self.size, self.size))
            # d/dt of e_i -> cos t e_i + sin t e_j.
            turn[j, i], turn[i, j] = 1.0, -1.0
            made.append(turn)
        return tuple(made)

    @cached_property
    def discrete(self) -> tuple[Component, ...]:
        """The discrete generators."""
        if self.finite is not None:
            return self.finite.generators
        if not self.reflects:
            return ()
        mirror = np.eye(self.size)
        if self.is_inverted:
            mirror[: self.n, : self.n] *= -1
        else:
            mirror[0, 0] = -1.0
        return (mirror,)

    @property
    def is_inverted(self) -> bool:
        """Whether the discrete generator is the inversion rather than the reflection of the first axis."""
        return self.kind == "o" and self.n % 2 == 1

    @property
    def discrete_names(self) -> tuple[str, ...]:
        """Names of the discrete generators."""
        if self.finite is not None:
            return self.finite.generator_names
        return (("inversion" if self.is_inverted else "reflection"),) if self.reflects else ()

    @property
    def relators(self) -> tuple[Word, ...]:
        """Relations among the discrete generators alone."""
        if self.finite is not None:
            return self.finite.relators
        return ((0, 0),) if self.reflects else ()

    @property
    def identity(self) -> Component:
        """The identity."""
        return self.finite.identity if self.finite is not None else np.eye(self.size)

    def exp(self, index: int, amount: float) -> Component:
        """The element of the one-parameter group of Lie generator `index` at `amount`."""
        matrix = np.eye(self.size)
        if index < self.shifts:
            matrix[index, self.n] = amount
            return matrix
        i, j = self.planes[index - self.shifts]
        cos, sin = math.cos(amount), math.sin(amount)
        matrix[i, i] = matrix[j, j] = cos
        matrix[j, i], matrix[i, j] = sin, -sin
        return matrix

    def sample(self, rng: np.random.Generator) -> Component:
        """A Haar element.

        Raises:
            GroupError: the factor contains translations, so it has no uniform distribution.
        """
        if self.finite is not None:
            elements = self.finite.elements()
            return elements[int(rng.integers(len(elements)))]
        if self.translates:
            raise GroupError(
                f"{self.name} is not compact, so its elements cannot be drawn uniformly.",
                where="sample",
                remedy="Draw its rotations with sample, and its shifts from your own range with exp(i, t).",
            )
        return haar(self.n, rng, special=not self.reflects)

    def decompose(self, component: Component) -> tuple[list[Floats], Word]:
        """Coefficient vectors over the Lie generators and a word: the element is exp(c_0) exp(c_1) ... h.

        Raises:
            GroupError: the matrix is not an element of this factor.
        """
        if self.finite is not None:
            if not isinstance(component, Element):
                raise GroupError(f"expected an element of {self.name}.", where="g")
            return [], self.finite.word(component)
        if isinstance(component, Element):
            raise GroupError(f"expected an element of {self.name}.", where="g")
        rotation: Floats = component[: self.n, : self.n]
        word: Word = ()
        if np.abs(rotation.T @ rotation - np.eye(self.n)).max() > 1e3 * SAME or not self._is_whole(component):
            raise GroupError(f"{component.tolist()} is not an element of {self.name}.", where="g")
        if np.linalg.det(rotation) < 0:
            if not self.reflects:
                raise GroupError(f"a reflection is not an element of {self.name}.", where="g")
            # g = (g h) h, as h is its own inverse.
            rotation, word = rotation @ np.asarray(self.discrete[0])[: self.n, : self.n], (0,)
        factors = []
        if self.translates:
            factors.append(np.concatenate([component[: self.n, self.n], np.zeros(len(self.planes))]))
        if self.turns:
            generator = rotation_logarithm(rotation)
            angles = np.array([generator[j, i] for i, j in self.planes])
            factors.append(np.concatenate([np.zeros(self.shifts), angles]))
        return factors, word

    def _is_whole(self, component: Floats) -> bool:
        """Whether the constant parts of a homogeneous matrix have their required values."""
        if self.kind == "t" and np.abs(component[: self.n, : self.n] - np.eye(self.n)).max() > SAME:
            return False
        return not self.translates or bool(np.array_equal(component[self.n], np.eye(self.size)[self.n]))


def haar(n: int, rng: np.random.Generator, *, special: bool) -> Floats:
    """A uniformly distributed orthogonal matrix; a rotation if `special`.

    Source: F. Mezzadri, "How to generate random matrices from the classical compact groups" (2007): QR of a Gaussian
    matrix, with the signs of R's diagonal moved into Q.
    """
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
    if special and np.linalg.det(q) < 0:
        q[:, 0] *= -1  # maps one component of O(n) onto the other, and keeps the uniform distribution
    return np.asarray(q, dtype=np.float64)


def rotation_logarithm(rotation: Floats) -> Floats:
    """A skew matrix X with exp(X) the given rotation, angles at most pi.

    Args:
        rotation: orthogonal with determinant 1, shape (n, n).

    Returns:
        Shape (n, n).
    """
    from scipy.linalg import schur

    blocks, basis = schur(rotation, output="real")
    n, generator, halves = len(rotation), np.zeros_like(rotation), []
    place = 0
    while place < n:
        if place + 1 < n and abs(blocks[place + 1, place]) > SAME:
            angle = math.atan2(blocks[place + 1, place], (blocks[place, place] + blocks[place + 1, place + 1]) / 2)
            generator[place + 1, place], generator[place, place + 1] = angle, -angle
            place += 2
            continue
        # Real eigenvalues are 1 and -1; eigenvalues -1 come in pairs, each a half turn.
        halves += [place] if blocks[place, place] < 0 else []
        place += 1
    for i, j in zip(halves[::2], halves[1::2], strict=True):
        generator[j, i], generator[i, j] = math.pi, -math.pi
    skew = basis @ generator @ basis.T
    return np.asarray((skew - skew.T) / 2, dtype=np.float64)


def coordinates_in(matrix: Floats, basis: Sequence[Floats]) -> Floats:
    """The coefficients of a matrix in a basis of matrices whose span contains it."""
    stacked = np.array([element.reshape(-1) for element in basis]).T
    return np.asarray(np.linalg.lstsq(stacked, matrix.reshape(-1), rcond=None)[0], dtype=np.float64)
