"""Continuous groups: rotations, rigid motions, translations, and products of these with finite groups.

| function | Lie generators, in order | discrete generators |
|---|---|---|
| `so(n)` | the rotation; about x, y, z; in the planes (0, 1), (0, 2), ..., (1, 2), ... | none | | `o(n)` | those of
`so(n)` | the reflection of the first axis (n even), the inversion (n odd) | | `translations(n)` | one per axis | none |
| `se(n)` | translations, then rotations | none | | `e(n)` | translations, then rotations | the reflection of the first
axis | | `product(*groups)` | all Lie generators, factor by factor | all discrete generators, factor by factor |

A `ContinuousGroup` has two lists, `algebra` (names of the one-parameter groups) and `generators` (discrete ones). "One
entry per generator" means the first list, then the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import GroupError
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group
from symcheck.groups.lie_element import Component, LieElement
from symcheck.groups.lie_factors import Factor, Kind, coordinates_in

DIMENSIONS_LIMIT = 32
"""Largest n: SO(32) has 496 Lie generators."""


class ContinuousGroup(Group):
    """A product of rotations, rigid motions, translations and finite groups.

    Args:
        factors: at least one.

    Attributes:
        factors: the factors as given.
        algebra: names of the Lie generators, factor by factor.
        generators: the discrete generators, factor by factor; there may be none.

    Example:
        >>> G = so(2)
        >>> turn = G.exp(0, math.pi / 2)
        >>> G.order, G.compact, G.algebra, (turn * turn * turn * turn).is_identity
        (inf, True, ('turn',), True)
    """

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = tuple(factors)
        self.family = None
        self.name = " x ".join(factor.name for factor in self.factors)
        self.generators = tuple(
            self._embed(k, component) for k, factor in enumerate(self.factors) for component in factor.discrete
        )
        names = [[*factor.algebra] for factor in self.factors], [[*factor.discrete_names] for factor in self.factors]
        self.algebra, self.generator_names = (_distinct_names(each) for each in names)

    def _embed(self, k: int, component: Component) -> LieElement:
        parts = [factor.identity for factor in self.factors]
        parts[k] = component
        return LieElement(parts)

    @property
    def degree(self) -> int:
        """Always 0: a continuous group does not act on a finite set of points."""
        return 0

    @property
    def identity(self) -> LieElement:
        """The identity e."""
        return LieElement([factor.identity for factor in self.factors])

    @property
    def order(self) -> Any:
        """The order, `math.inf`."""
        return math.inf

    @property
    def compact(self) -> bool:
        """Whether no factor contains translations."""
        return not any(factor.translates for factor in self.factors)

    @property
    def is_listable(self) -> bool:
        """False: elements cannot be listed."""
        return False

    def elements(self) -> tuple[Element, ...]:
        """Always raises: there are infinitely many elements.

        Raises:
            GroupError: always.
        """
        raise GroupError(
            f"{self.name} has infinitely many elements.",
            where="elements",
            remedy="Draw some with sample(rng), or make one with exp(i, t).",
        )

    def word(self, g: Element) -> Word:
        """Always raises: most elements are not products of discrete generators.

        Raises:
            GroupError: always.
        """
        raise GroupError(
            f"elements of {self.name} are not words in its discrete generators.",
            where="word",
            remedy="Use decompose(g): exponentials of Lie generators, then a word.",
        )

    def __contains__(self, g: object) -> bool:
        if not isinstance(g, LieElement) or len(g.parts) != len(self.factors):
            return False
        try:
            self.decompose(g)
        except (GroupError, ValueError, IndexError):
            return False
        return True

    def element_name(self, g: Element) -> str:
        """The element, written as its matrices."""
        return repr(g)

    @property
    def entry_names(self) -> tuple[str, ...]:
        """Names of the generators in the order of entries: the Lie generators, then the discrete ones."""
        return (*self.algebra, *self.generator_names)

    @cached_property
    def lie_places(self) -> tuple[tuple[int, int], ...]:
        """For each Lie generator, its factor and its index within the factor."""
        return tuple((k, i) for k, factor in enumerate(self.factors) for i in range(len(factor.algebra)))

    @cached_property
    def discrete_places(self) -> tuple[tuple[int, int], ...]:
        """For each discrete generator, its factor and its index within the factor."""
        return tuple((k, i) for k, factor in enumerate(self.factors) for i in range(len(factor.discrete)))

    def turns(self, i: int) -> bool:
        """Whether Lie generator i is a rotation, with period 2 pi, rather than a translation."""
        k, local = self.lie_places[i]
        return local >= self.factors[k].shifts

    def exp(self, i: int, t: float) -> LieElement:
        """The element of one-parameter group i at t, in radians for rotations and in units of length for translations.

        Args:
            i: the index of the Lie generator in `algebra`.
            t: the angle in radians, or the length.

        Returns:
            The element.

        Raises:
            GroupError: no such generator, or t is not a finite number.

        Example:
            >>> so(2).exp(0, math.pi).parts[0].round(12).tolist()
            [[-1.0, -0.0], [0.0, -1.0]]
        """
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < len(self.algebra):
            raise GroupError(
                f"expected the index of a Lie generator, 0..{len(self.algebra) - 1}, got {i!r}.", where="i"
            )
        if not isinstance(t, int | float | np.number) or not math.isfinite(t):
            raise GroupError(f"expected a finite number, got t = {t!r}.", where="t")
        k, local = self.lie_places[i]
        return self._embed(k, self.factors[k].exp(local, float(t)))

    def sample(self, rng: np.random.Generator) -> LieElement:
        """An element drawn uniformly (Haar measure).

        Args:
            rng: the generator.

        Returns:
            The element.

        Raises:
            GroupError: the group is not compact.

        Example:
            >>> so(3).sample(np.random.default_rng(0)) in so(3)
            True
        """
        return LieElement([factor.sample(rng) for factor in self.factors])

    def decompose(self, g: LieElement) -> tuple[tuple[Floats, ...], Word]:
        """Write g as exponentials followed by a word: g = exp(c_0 . A) exp(c_1 . A) ... h.

        Args:
            g: an element of the group.

        Returns:
            Coefficient vectors over the Lie generators, and a word over the discrete ones.

        Raises:
            GroupError: g is not in the group.
        """
        if not isinstance(g, LieElement) or len(g.parts) != len(self.factors):
            raise GroupError(f"expected an element of {self.name}, got {g!r} ({type(g).__name__}).", where="g")
        vectors: list[Floats] = []
        word: list[int] = []
        for k, (factor, part) in enumerate(zip(self.factors, g.parts, strict=True)):
            coefficients, letters = factor.decompose(part)
            own = [i for i, (owner, _) in enumerate(self.lie_places) if owner == k]
            first = [i for i, (owner, _) in enumerate(self.discrete_places) if owner == k]
            for some in coefficients:
                vectors.append(np.zeros(len(self.algebra)))
                vectors[-1][own] = some
            word += [first[letter] for letter in letters]
        return tuple(vectors), tuple(word)

    @cached_property
    def brackets(self) -> tuple[tuple[int, int, Floats], ...]:
        """(i, j, c) for i < j: [A_i, A_j] = sum of c_k A_k."""
        count, made = len(self.algebra), []
        for i, j in itertools.combinations(range(count), 2):
            (k, a), (m, b) = self.lie_places[i], self.lie_places[j]
            coefficients = np.zeros(count)
            if k == m:
                basis = self.factors[k].algebra_matrices
                own = [n for n, (owner, _) in enumerate(self.lie_places) if owner == k]
                coefficients[own] = np.rint(coordinates_in(basis[a] @ basis[b] - basis[b] @ basis[a], basis))
            made.append((i, j, coefficients))
        return tuple(made)

    def adjoint(self, h: int) -> Floats:
        """Row i contains c with h A_i h^-1 = sum of c_k A_k, for discrete generator h; shape (Lie, Lie)."""
        k, local = self.discrete_places[h]
        factor, result = self.factors[k], np.eye(len(self.algebra))
        if factor.finite is None:
            own = [n for n, (owner, _) in enumerate(self.lie_places) if owner == k]
            matrix = np.asarray(factor.discrete[local])
            for row, basis_matrix in zip(own, factor.algebra_matrices, strict=True):
                image = matrix @ basis_matrix @ np.linalg.inv(matrix)
                result[row, own] = np.rint(coordinates_in(image, factor.algebra_matrices))
        return result

    @cached_property
    def relators(self) -> tuple[Word, ...]:
        """Words in the discrete generators that equal the identity and present the discrete part."""
        words: list[Word] = []
        start = 0
        for factor in self.factors:
            words += [tuple(start + letter for letter in word) for word in factor.relators]
            start += len(factor.discrete)
        # Generators of different factors commute: a b a^-1 b^-1, inverses as positive powers.
        for a, b in itertools.combinations(range(len(self.generators)), 2):
            if self.discrete_places[a][0] != self.discrete_places[b][0]:
                words.append((a, b, *(a,) * (self.order_of(a) - 1), *(b,) * (self.order_of(b) - 1)))
        return tuple(words)

    def order_of(self, h: int) -> int:
        """The order of discrete generator h."""
        k, local = self.discrete_places[h]
        component = self.factors[k].discrete[local]
        return component.order if isinstance(component, Element) else 2

    @property
    def has_relators(self) -> bool:
        """True."""
        return True

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ContinuousGroup) and self.factors == other.factors)

    def __hash__(self) -> int:
        return hash(self.factors)

    def __repr__(self) -> str:
        discrete = f", generators {', '.join(self.generator_names)}" if self.generators else ""
        return f"ContinuousGroup({self.name}, algebra {', '.join(self.algebra)}{discrete})"


def so(n: int) -> ContinuousGroup:
    """The rotations of n-dimensional space, SO(n).

    Args:
        n: the dimension, at least 2.

    Returns:
        The group; its Lie generators rotate the planes listed in the module's table.

    Raises:
        GroupError: n is not an integer of at least 2.

    Example:
        >>> so(3).algebra
        ('turn_x', 'turn_y', 'turn_z')
    """
    return _single("so", n, 2, "so")


def o(n: int) -> ContinuousGroup:
    """Rotations and reflections of n-dimensional space, O(n).

    Args:
        n: the dimension, at least 2.

    Returns:
        The group; its discrete generator is the reflection of the first axis for even n, the inversion for odd n.

    Raises:
        GroupError: n is not an integer of at least 2.

    Example:
        >>> o(3).generator_names
        ('inversion',)
    """
    return _single("o", n, 2, "o")


def translations(n: int) -> ContinuousGroup:
    """The translations of n-dimensional space.

    Args:
        n: the dimension, at least 1.

    Returns:
        The group, one Lie generator per axis.

    Raises:
        GroupError: n is not a positive integer.

    Example:
        >>> translations(2).compact
        False
    """
    return _single("t", n, 1, "translations")


def se(n: int) -> ContinuousGroup:
    """Translations and rotations of n-dimensional space, SE(n).

    Args:
        n: the dimension, at least 1.

    Returns:
        The group; translations come before rotations.

    Raises:
        GroupError: n is not a positive integer.

    Example:
        >>> se(2).algebra
        ('shift_x', 'shift_y', 'turn')
    """
    return _single("se", n, 1, "se")


def e(n: int) -> ContinuousGroup:
    """All rigid motions of n-dimensional space, reflections included, E(n).

    Args:
        n: the dimension, at least 1.

    Returns:
        The group; its discrete generator is the reflection of the first axis.

    Raises:
        GroupError: n is not a positive integer.

    Example:
        >>> e(2).entry_names
        ('shift_x', 'shift_y', 'turn', 'reflection')
    """
    return _single("e", n, 1, "e")


def _single(kind: Kind, n: int, least: int, function: str) -> ContinuousGroup:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
        raise GroupError(f"expected an integer of at least {least}, got n = {n!r}.", where=f"{function}(n)")
    if n > DIMENSIONS_LIMIT:
        raise GroupError(f"expected at most {DIMENSIONS_LIMIT}, got n = {n:,}.", where=f"{function}(n)")
    return ContinuousGroup([Factor(kind, int(n))])


def joined(groups: Sequence[Group]) -> ContinuousGroup:
    """The direct product of groups; at least one is continuous."""
    factors: list[Factor] = []
    for group in groups:
        factors += group.factors if isinstance(group, ContinuousGroup) else [Factor("finite", finite=group)]
    return ContinuousGroup(factors)


def _distinct_names(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The names of all factors in order, with the factor's number where two factors share one."""
    every = [name for some in names for name in some]
    return tuple(
        name if every.count(name) == 1 else f"{name}{number}" for number, some in enumerate(names, 1) for name in some
    )
