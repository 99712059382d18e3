"""A presentation, from a stabilizer chain, of a group that is too large to list.

A base b_1, b_2, ... gives subgroups G = G_1 > G_2 > ... where G_i fixes the base points before b_i, and G_i acts on the
orbit of b_i with stabilizer G_(i+1). Let the letters S_i generate G_i and include S_(i+1), and let the word u_p take
b_i to the point p. Then s u_p = u_(s p) h with h in G_(i+1), and h is a word in S_(i+1). These relations, one for every
point and letter, present G: they imply that the cosets of <S_(i+1)> in the presented group are no more than the points
of the orbit, so the presented group is no larger than G.

Most of these relations follow from the others. As in `presentation`, an edge (p, s) becomes known when it is the only
unknown edge of some relator's loop; only edges that stay unknown get their own relator.

Source: derived above; for short words of coset representatives, T. Minkwitz, "An algorithm for solving the
factorization problem in permutation groups", J. Symbolic Computation 26 (1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from symcheck.errors import GroupError
from symcheck.groups.element import Element, Word

FIRST_WORDS = 20_000
"""Number of shortest words tried as coset representatives before products of representatives."""
ROUNDS = 40
"""Number of rounds of products of representatives before giving up on missing ones."""
LARGEST = 2_000_000
"""Maximum total number of letters of all relators in a usable presentation."""
Signed = tuple[int, ...]
"""A word with inverses: letter k is k + 1, its inverse -(k + 1)."""


@dataclass
class Level:
    """One step of the chain.

    Attributes:
        base: the point whose stabilizer the next level is.
        size: the number of points in its orbit.
        table: for each point of the orbit, an element of this level's group that maps the base point to it, with a
            word.
    """

    base: int
    size: int
    table: dict[int, tuple[Element, Signed]] = field(default_factory=dict)


def derive(generators: Sequence[Element], base: Sequence[int], sizes: Sequence[int], name: str) -> tuple[Word, ...]:
    """Relators with positive powers only that present a group given by its stabilizer chain.

    Args:
        generators: elements on the same points.
        base: a base of the group: points whose pointwise stabilizer is trivial.
        sizes: for each base point, the size of its orbit under the elements that fix the base points before it.
        name: the group's name, for messages.

    Returns:
        Words over the generators' indices.

    Raises:
        GroupError: the relators become too long to be of use.

    Example:
        >>> swap, turn = Element((1, 0, 2)), Element((1, 2, 0))
        >>> derive([swap, turn], [0, 1], [3, 2], "S3")
        ((0, 0), (1, 1, 1), (0, 1, 0, 1))
    """
    levels = [Level(b, n) for b, n in zip(base, sizes, strict=True)]
    _fill(levels, generators, name)
    letters = _Letters(generators)
    # The powers of the generators come first: they are short, and close many edges below.
    relators: list[Signed] = [(i + 1,) * g.order for i, g in enumerate(generators)]
    # From the bottom of the chain up: relators of G_{i+1} are known when those of G_i are derived.
    for depth in reversed(range(len(levels))):
        own = letters.of_level(levels, depth)
        relators.extend(_edge_relators(levels, depth, own, letters, relators))
    words: dict[Word, None] = {}
    total = 0
    # Equal words are counted once in the result; `total` bounds the letters of all of them.
    for relator in relators:
        word = letters.positive(relator)
        if word and word not in words:
            words[word] = None
            total += len(word)
        if total > LARGEST:
            raise GroupError(
                f"the derived presentation of {name} has more than {LARGEST:,} letters.",
                where="relators",
                remedy="Use a group of the catalogue, or pass the group's relators to Group.",
            )
    return tuple(words)


def _fill(levels: list[Level], generators: Sequence[Element], name: str) -> None:
    """Finds coset representatives with short words, first among the shortest words, then among products."""
    # Shortest words first; breadth first, so that representatives get short words.
    for g, word in _shortest(generators):
        _place(levels, g, word)
        if all(len(level.table) == level.size for level in levels):
            # Products of representatives reach the cosets that no short word reaches.
            return
    for _ in range(ROUNDS):
        for level in levels:
            entries = list(level.table.values())
            for first, first_word in entries:
                for second, second_word in entries:
                    _place(levels, first * second, _reduce_word((*first_word, *second_word)))
        if all(len(level.table) == level.size for level in levels):
            # Every table is complete when each level has as many entries as its orbit has points.
            return
    raise GroupError(
        f"no short words for the coset representatives of {name} were found.",
        where="relators",
        remedy="Use a group of the catalogue, or pass the group's relators to Group.",
    )


def _shortest(generators: Sequence[Element]) -> Iterator[tuple[Element, Signed]]:
    identity = Element.identity(generators[0].degree)
    frontier: list[tuple[Element, Signed]] = [(identity, ())]
    reached = {identity}
    # Letters are signed: i + 1 for a generator, -(i + 1) for its inverse.
    steps = [(g, i + 1) for i, g in enumerate(generators)] + [(~g, -(i + 1)) for i, g in enumerate(generators)]
    yield identity, ()
    while frontier and len(reached) < FIRST_WORDS:
        words, frontier = frontier, []
        for g, word in words:
            for step, letter in steps:
                new = g * step
                if new not in reached:
                    reached.add(new)
                    frontier.append((new, (*word, letter)))
                    yield frontier[-1]


def _place(levels: list[Level], g: Element, word: Signed) -> None:
    """Sifts an element down the chain; stores it where a representative is missing or has a longer word."""
    for level in levels:
        # The image of the base under g determines its coset.
        point = g.images[level.base]
        held = level.table.get(point)
        # A shorter word replaces the stored one; the longer one is sifted further as an element of the next level.
        if held is None or len(word) < len(held[1]):
            level.table[point] = (g, word)
            if held is None:
                return
            g, word, held = held[0], held[1], (g, word)
        # The quotient of two representatives of the same coset fixes the base, so it belongs to the next level.
        g, word = ~held[0] * g, _reduce_word((*_inverse(held[1]), *word))


class _Letters:
    """The generators, with additional elements so that the letters of every level generate its group.

    Args:
        generators: elements on the same points.
    """

    def __init__(self, generators: Sequence[Element]) -> None:
        self.elements = list(generators)
        self._spelled: list[Signed] = [(i + 1,) for i in range(len(generators))]
        self._given = len(generators)
        self._orders = [g.order for g in generators]

    def of_level(self, levels: Sequence[Level], depth: int) -> list[int]:
        """Letters that generate a level's group: those that fix earlier base points, and missing representatives."""
        # Elements of this level fix all base points before its own.
        before = [level.base for level in levels[:depth]]
        own = [k for k, g in enumerate(self.elements) if all(g.images[b] == b for b in before)]
        level = levels[depth]
        # Shortest words first, so that added letters are short words in the given generators.
        missing = sorted(level.table.items(), key=lambda item: (len(item[1][1]), item[0]))
        for point, (g, word) in missing:
            # For a point that the letters do not reach, add its representative as a letter.
            if point not in self.tree(level.base, own):
                self.elements.append(g)
                self._spelled.append(word)
                own.append(len(self.elements) - 1)
        return own

    def tree(self, start: int, own: Sequence[int]) -> dict[int, Signed]:
        """For each point that the letters reach, a word that maps the start to it, breadth first."""
        words: dict[int, Signed] = {start: ()}
        frontier = [start]
        while frontier:
            point = frontier.pop(0)
            for k in own:
                image = self.elements[k].images[point]
                if image not in words:
                    words[image] = (k + 1, *words[point])
                    frontier.append(image)
        return words

    def evaluate(self, word: Signed) -> Element:
        """The element that a word of letters spells."""
        result = Element.identity(self.elements[0].degree)
        for letter in word:
            g = self.elements[abs(letter) - 1]
            result = result * (g if letter > 0 else ~g)
        return result

    def positive(self, word: Signed) -> Word:
        """The word in the given generators, with positive powers only; full powers of generators are kept."""
        # A full power of a generator is the relator itself; reducing it modulo the order would erase it.
        if len(set(word)) == 1 and 0 < word[0] <= self._given:
            return (word[0] - 1,) * len(word)
        # Runs (letter, exponent), exponents modulo the order: inverses become positive powers.
        runs: list[tuple[int, int]] = []
        for letter in self._in_generators(word):
            k, count = abs(letter) - 1, 1 if letter > 0 else -1
            if runs and runs[-1][0] == k:
                count += runs.pop()[1]
            if count % self._orders[k]:
                runs.append((k, count % self._orders[k]))
        return tuple(k for k, count in runs for _ in range(count))

    def _in_generators(self, word: Signed) -> Iterator[int]:
        for letter in word:
            part = self._spelled[abs(letter) - 1]
            yield from part if letter > 0 else _inverse(part)


def _edge_relators(
    levels: Sequence[Level], depth: int, own: list[int], letters: _Letters, known: Sequence[Signed]
) -> list[Signed]:
    """Relators for the edges of a level's orbit that do not follow from known relators or from each other."""
    level = levels[depth]
    words = letters.tree(level.base, own)
    points = sorted(words)
    place = {point: k for k, point in enumerate(points)}
    column = {k: i for i, k in enumerate(own)}
    # The Schreier graph: rows are orbit points, columns are letters; entry (v, i) is the image of point v under letter
    # i.
    moves = np.array([[place[letters.elements[k].images[p]] for k in own] for p in points])
    done = np.zeros(moves.shape, dtype=bool)
    # Edges of the spanning tree are trivial by the choice of representatives.
    for point, word in words.items():
        if word:
            before = place[letters.elements[word[0] - 1].images.index(point)]
            done[before, column[word[0] - 1]] = True
    # Only relators in this level's letters can be followed around its graph.
    usable = [word for word in known if all(abs(letter) - 1 in column for letter in word)]
    new_relators: list[Signed] = []
    _close(done, [*usable, *new_relators], moves, column)
    # Edges near the base first: their loops are shorter, and determine edges further out.
    for v, i in sorted(np.argwhere(~done).tolist(), key=lambda edge: len(words[points[edge[0]]])):
        if done[v, i]:
            continue
        image = points[moves[v, i]]
        # The loop: along the tree to v, over the edge, and back along the tree. It fixes the base, so it belongs to the
        # next level.
        loop = _reduce_word((*_inverse(words[image]), own[i] + 1, *words[points[v]]))
        rest = _sift_element(levels, depth + 1, letters, letters.evaluate(loop))
        done[v, i] = True
        # The loop equals a word of the deeper level: their quotient is a relator.
        relator = _reduce_cyclically((*loop, *_inverse(rest)))
        if relator:
            new_relators.append(relator)
        _close(done, [*usable, *new_relators], moves, column)
    return new_relators


def _sift_element(levels: Sequence[Level], depth: int, letters: _Letters, g: Element) -> Signed:
    """An element of a deeper level as a word in that level's letters."""
    word: Signed = ()
    # Split off one representative at each level until only the identity is left.
    for d in range(depth, len(levels)):
        before = [level.base for level in levels[:d]]
        own = [k for k, h in enumerate(letters.elements) if all(h.images[b] == b for b in before)]
        step = letters.tree(levels[d].base, own)[g.images[levels[d].base]]
        g = ~letters.evaluate(step) * g
        word = (*word, *step)
    return _reduce_word(word)


def _close(
    done: npt.NDArray[np.bool_], relators: Sequence[Signed], moves: npt.NDArray[np.int64], column: dict[int, int]
) -> None:
    """Marks every edge that is the only unknown edge in the loop of some relator, until nothing changes."""
    # back[:, i] is the inverse of column i: the preimage under letter i.
    back = np.empty_like(moves)
    for i in range(moves.shape[1]):
        back[moves[:, i], i] = np.arange(len(moves))
    changed = True
    while changed:
        changed = False
        for word in relators:
            # All start vertices are followed at once: one column of `edges` per start.
            vertices = np.arange(len(moves))
            edges = np.empty((len(word), len(moves)), dtype=np.int64)
            # The last letter acts first, hence the reversed order.
            columns = np.array([column[abs(letter) - 1] for letter in reversed(word)])
            for step, letter in enumerate(reversed(word)):
                i = columns[step]
                ends = moves[vertices, i] if letter > 0 else back[vertices, i]
                # An inverse letter runs over the same edge from its other end.
                edges[step] = vertices if letter > 0 else ends
                vertices = ends
            unknown = ~done[edges, columns[:, None]]
            # If a single edge of a loop is unknown, it follows from the others.
            for start in np.flatnonzero(unknown.sum(axis=0) == 1):
                step = int(unknown[:, start].argmax())
                if not done[edges[step, start], columns[step]]:
                    done[edges[step, start], columns[step]] = changed = True


def _inverse(word: Signed) -> Signed:
    return tuple(-letter for letter in reversed(word))


def _reduce_word(word: Sequence[int]) -> Signed:
    """The freely reduced word."""
    stack: list[int] = []
    for letter in word:
        if stack and stack[-1] == -letter:
            stack.pop()
        else:
            stack.append(letter)
    return tuple(stack)


def _reduce_cyclically(word: Signed) -> Signed:
    word = _reduce_word(word)
    # A relator and its conjugates are equivalent: cut the shared ends.
    while len(word) > 1 and word[0] == -word[-1]:
        word = word[1:-1]
    return word
