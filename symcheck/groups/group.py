"""Finite groups as permutation groups with named generators and a presentation.

Every finite group acts faithfully on some set of points. An `Element` is therefore a permutation of points, and the
product of two elements is their composition: `g * h` applies `h` first. A `Group` keeps its generators in the given
order, identities included, because all other data ("one matrix per generator") follows this order.

A list of matrices, one per generator, is a representation if and only if every *relator* maps to the identity matrix.
Relators are words that equal the identity and together present the group. Groups of the catalogue have textbook
relators; for other groups, `symcheck.groups.presentation` derives relators from the Cayley graph. No function here
enumerates a group implicitly: S_30 has 2.7e32 elements and two generators.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.errors import GroupError
from symcheck.groups import chain_presentation, large, presentation
from symcheck.groups.element import Element, Word

LISTING_LIMIT = 100_000
"""Largest order for which elements are listed; for larger groups only generators, words and the order are available."""
LISTING_ENTRIES = 50_000_000
"""Largest order times number of points for which elements are listed: half a minute of work."""


class Group:
    """A finite group: generators in the order given, an order, and a presentation.

    Two groups are equal if their generators are equal, by value and in order. Then "one entry per generator" has the
    same meaning for both.

    Args:
        generators: at least one element, all on the same points; identities and repetitions are kept.
        name: the group's name in reports, for instance "D4".
        generator_names: one readable name per generator; "g1", "g2", ... by default.
        order: |G| if it is known; computed on demand otherwise.
        relators: words over generator indices (positive powers only) that present the group, if known, or a function
            that returns them. Words are checked immediately; a function is called when the words are first needed.
        family: catalogue name and parameter, for instance ("dihedral", 4); None for groups given by the user.

    Raises:
        GroupError: no generator, generators on different numbers of points, or a relator that does not hold.

    Example:
        >>> r = Element((1, 2, 3, 0))
        >>> G = Group([r], name="C4", generator_names=["r"])
        >>> G.order, [G.element_name(g) for g in G.elements()], G.relators
        (4, ['e', 'r', 'r^2', 'r^3'], ((0, 0, 0, 0),))
    """

    def __init__(
        self,
        generators: Sequence[Element],
        *,
        name: str,
        generator_names: Sequence[str] | None = None,
        order: int | None = None,
        relators: Sequence[Word] | Callable[[], Sequence[Word]] | None = None,
        family: tuple[str, int] | None = None,
    ) -> None:
        self.name = name
        self.generators = tuple(generators)
        self.family = family
        strangers = [g for g in self.generators if not isinstance(g, Element)]
        if strangers:
            raise GroupError(f"expected elements, got {strangers[0]!r}.", where="generators")
        if not self.generators:
            raise GroupError(
                "a group needs at least one generator, got none.",
                where="generators",
                remedy="Give the identity for the trivial group.",
            )
        degrees = sorted({g.degree for g in self.generators})
        if len(degrees) > 1:
            given = " and ".join(map(str, degrees))
            raise GroupError(f"all generators must act on the same number of points, got {given}.", where="generators")
        self.generator_names = tuple(generator_names or _default_names(len(self.generators)))
        if len(self.generator_names) != len(self.generators):
            raise GroupError(
                f"expected one name per generator ({len(self.generators)}), got {len(self.generator_names)}.",
                where="generator_names",
            )
        self._order = order
        self._presentation = relators
        if relators is not None and not callable(relators):
            # A function is not called here: deriving long relators would make every construction slow.
            self._check_relators(relators)

    def _check_relators(self, relators: Sequence[Word]) -> None:
        for word in relators:
            if not self.evaluate(word).is_identity:
                raise GroupError(f"the relator {self.word_name(word)} is not the identity of {self.name}.")

    @property
    def degree(self) -> int:
        """The number of points on which the group acts."""
        return self.generators[0].degree

    @property
    def identity(self) -> Element:
        """The identity e."""
        return Element.identity(self.degree)

    @property
    def order(self) -> int:
        """|G|, computed without enumeration for large groups (Schreier-Sims)."""
        if self._order is None:
            self._order = self._find_order()
        return self._order

    def _find_order(self) -> int:
        # Up to 2,000 elements listing is faster than loading sympy for Schreier-Sims.
        small = list(itertools.islice(_breadth_first(self.generators, self.identity), 2_001))
        return len(small) if len(small) <= 2_000 else large.order(self.generators)

    @cached_property
    def _words(self) -> dict[Element, Word]:
        """A shortest word of every element, breadth first; the identity first."""
        if not self.is_listable:
            raise GroupError(
                f"the elements of {self.name} cannot be listed: {self.order:.3g} elements on "
                f"{self.degree:,} points exceed the limit of {LISTING_LIMIT:,} elements and "
                f"{LISTING_ENTRIES:,} points in all.",
                where="elements",
                remedy="Work with the generators and words instead.",
            )
        return dict(_breadth_first(self.generators, self.identity))

    @property
    def is_listable(self) -> bool:
        """Whether the group is small enough for `elements()`."""
        return self.order <= LISTING_LIMIT and self.order * self.degree <= LISTING_ENTRIES

    def elements(self) -> tuple[Element, ...]:
        """All elements in the order of word length, starting with the identity.

        Returns:
            A tuple of |G| elements.

        Raises:
            GroupError: the group is not `is_listable`.

        Example:
            >>> from symcheck.groups import catalog
            >>> len(catalog.symmetric(4).elements())
            24
        """
        return tuple(self._words)

    def word(self, g: Element) -> Word:
        """A word of g: `g == gens[w[0]] * gens[w[1]] * ...`, the last letter applied first.

        Args:
            g: an element of the group.

        Returns:
            Generator indices; () for the identity. The word is shortest if the group is small enough to list.

        Raises:
            GroupError: g is not in the group.
        """
        if not isinstance(g, Element):
            raise GroupError(f"expected an element of {self.name}, got {g!r} ({type(g).__name__}).", where="g")
        if self.is_listable:
            # The method depends on the size: a list, a closed form, or a stabilizer chain.
            letters = self._words.get(g)
        elif g.is_identity and g.degree == self.degree:
            letters = ()
        elif self.family is not None and self.family[0] in ("cyclic", "dihedral"):
            letters = self._polygon_word(g)
        else:
            letters = large.word(self.generators, g)
        if letters is None:
            raise GroupError(f"{g!r} is not an element of {self.name}.", where="g")
        return letters

    def _polygon_word(self, g: Element) -> Word | None:
        """The word r^k or r^k s, from the image of the first corner, for groups that are too large to list."""
        turns = g.images[0] if g.images else 0
        # A cyclic group has one generator, hence no second candidate.
        candidates = [(0,) * turns, (*(0,) * turns, 1)][: len(self.generators)]
        return next((word for word in candidates if self.evaluate(word) == g), None)

    def __contains__(self, g: object) -> bool:
        if not isinstance(g, Element):
            return False
        try:
            self.word(g)
        except GroupError:
            return False
        return True

    def evaluate(self, word: Sequence[int]) -> Element:
        """The element given by a word, `gens[w[0]] * gens[w[1]] * ...`."""
        result = self.identity
        # Treat repetitions of a letter as a power: r^1000 takes ten products.
        for letter, run in itertools.groupby(word):
            result = result * self.generators[letter] ** len(list(run))
        return result

    @cached_property
    def relators(self) -> tuple[Word, ...]:
        """Words equal to the identity that together present the group (von Dyck).

        A map of the generators extends to a homomorphism if and only if it maps every relator to the identity.

        Raises:
            GroupError: no presentation is known, and the derived one is too long to be useful.
        """
        if self._presentation is not None:
            given = self._presentation() if callable(self._presentation) else self._presentation
            return tuple(tuple(word) for word in given)
        # Beyond the limit the whole Cayley graph is too large, and the chain gives longer relators.
        if self.order > presentation.LIMIT:
            return chain_presentation.derive(self.generators, *large.chain(self.generators), self.name)
        return presentation.derive(self.generators, self._words)

    @property
    def has_relators(self) -> bool:
        """Whether `relators` are known or short enough to derive; signed images are checked without them if not."""
        return self._presentation is not None or self.order <= presentation.LIMIT

    @cached_property
    def cayley_table(self) -> npt.NDArray[np.int64]:
        """Left multiplication by generators, (order, generators): entry (v, i) is the position of gens[i] * v.

        Cost: |G| times the number of generators times the number of points.
        """
        position = {g: k for k, g in enumerate(self._words)}
        # In the order of `elements()`, so that column i is the regular representation of generator i.
        rows = [[position[s * g] for s in self.generators] for g in position]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.generators))

    def conjugacy_classes(self) -> tuple[tuple[Element, ...], ...]:
        """The classes {h g h^-1} in the order of `elements()`, the identity first; the group must be listable."""
        classified: set[Element] = set()
        classes = []
        for g in self.elements():
            if g not in classified:
                # Classes are disjoint: an element that was already found belongs to a complete class.
                conjugates = _conjugates(g, self.generators)
                classified.update(conjugates)
                classes.append(conjugates)
        return tuple(classes)

    def word_name(self, word: Sequence[int]) -> str:
        """A word in generator names, for instance "r^2 s"; "e" for the empty word."""
        runs = [(self.generator_names[letter], len(list(run))) for letter, run in itertools.groupby(word)]
        return " ".join(name if count == 1 else f"{name}^{count}" for name, count in runs) or "e"

    def element_name(self, g: Element) -> str:
        """A readable name of g in generator names, for instance "e", "r", "r^2 s"."""
        return self.word_name(self.word(g))

    def __eq__(self, other: object) -> bool:
        # Names are ignored: groups with the same generators are equal.
        return self is other or (isinstance(other, Group) and self.generators == other.generators)

    def __hash__(self) -> int:
        return hash(self.generators)

    def __repr__(self) -> str:
        return f"Group({self.name}, generators {', '.join(self.generator_names)})"


def _default_names(count: int) -> list[str]:
    return ["g"] if count == 1 else [f"g{i + 1}" for i in range(count)]


def _breadth_first(generators: Sequence[Element], identity: Element) -> Iterator[tuple[Element, Word]]:
    """Elements with a shortest word each, identity first; the caller must ensure that the group is finite."""
    words: dict[Element, Word] = {identity: ()}
    frontier = [identity]
    yield identity, ()
    while frontier:
        # Elements of one word length at a time, so that each element's first word is a shortest one.
        following = []
        for g in frontier:
            for letter, generator in enumerate(generators):
                new = g * generator
                if new not in words:
                    words[new] = (*words[g], letter)
                    following.append(new)
                    yield new, words[new]
        frontier = following


def _conjugates(g: Element, generators: Sequence[Element]) -> tuple[Element, ...]:
    conjugates = {g: None}
    frontier = [g]
    while frontier:
        # Conjugation by generators reaches the whole class, since they generate the group.
        h = frontier.pop()
        for s in generators:
            new = s * h * ~s
            if new not in conjugates:
                conjugates[new] = None
                frontier.append(new)
    return tuple(conjugates)
