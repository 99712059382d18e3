"""A presentation from the Cayley graph (Cannon's colouring).

Take a spanning tree of the Cayley graph; its edges are known to be trivial. Add a relator for the first edge that is
not yet known, trace every relator from every vertex, and mark an edge as known when it is the only unknown edge of a
loop. When every edge is known, the relators added so far present the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from symcheck.groups.element import Element, Word

LIMIT = 5_000
"""Largest order for which a presentation is derived from the whole Cayley graph: a few seconds of work. Larger groups
get one from a stabilizer chain (`chain_presentation`), whose relators are longer."""


def derive(generators: Sequence[Element], words: Mapping[Element, Word]) -> tuple[Word, ...]:
    """Relators with positive powers only that present the group.

    Args:
        generators: the generators of the group.
        words: a shortest word of every element, breadth first, the identity first.

    Returns:
        Words over generator indices, the generators' own powers first.

    Example:
        >>> a, b = Element((1, 0, 2, 3)), Element((0, 1, 3, 2))
        >>> derive([a, b], {Element.identity(4): (), a: (0,), b: (1,), a * b: (0, 1)})
        ((0, 0), (1, 1), (1, 0, 1, 0))

    Cost: grows with the square of the order; meant for orders up to `LIMIT`.

    Source: J. J. Cannon, "Construction of defining relators for finite groups", Discrete Mathematics 5 (1973).
    """
    table = _right_table(generators, words)
    paths = list(words.values())
    orders = [g.order for g in generators]
    known = _tree_edges(paths, table)
    relators: list[Word] = []
    for word in [(i,) * n for i, n in enumerate(orders)]:
        # The powers of generators come first: Cannon's procedure then needs fewer and shorter relators.
        relators.append(word)
        _close(known, relators, table)
    # One candidate for each edge that is not known yet.
    loops = (_relator(int(v), int(i), paths, table, orders) for v, i in np.argwhere(~known))
    # Short candidates first: they are easier to read, and determine the same number of edges.
    candidates = sorted(loops, key=lambda candidate: len(candidate[1]))
    for (v, i), word in candidates:
        if not known[v, i]:
            relators.append(word)
            known[v, i] = True
            _close(known, relators, table)
    return tuple(relators)


def _right_table(generators: Sequence[Element], elements: Iterable[Element]) -> npt.NDArray[np.int64]:
    """(order, generators): the position of v * gens[i]; the breadth-first words are paths in this graph."""
    position = {g: k for k, g in enumerate(elements)}
    return np.array([[position[g * s] for s in generators] for g in position], dtype=np.int64)


def _tree_edges(words: Sequence[Word], table: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(order, generators): whether the edge (v, i) belongs to the breadth-first spanning tree."""
    known = np.zeros(table.shape, dtype=bool)
    position = {word: v for v, word in enumerate(words)}
    # Breadth first: every word without its last letter is the word of its parent in the tree.
    for word in words[1:]:
        known[position[word[:-1]], word[-1]] = True
    return known


def _relator(
    v: int, i: int, words: Sequence[Word], table: npt.NDArray[np.int64], orders: Sequence[int]
) -> tuple[tuple[int, int], Word]:
    """The loop: to v along the tree, over the edge i, back along the tree."""
    end = words[int(table[v, i])]
    outward = (*words[v], i)
    while end and outward and end[0] == outward[0]:  # a common initial path cancels up to conjugation
        end, outward = end[1:], outward[1:]
    # Positive powers only: g^-1 is g^(order - 1).
    back = [letter for letter in reversed(end) for _ in range(orders[letter] - 1)]
    return (v, i), _without_full_powers((*outward, *back), orders)


def _without_full_powers(word: Sequence[int], orders: Sequence[int]) -> Word:
    """The word with repeated letters reduced modulo the generators' orders."""
    stack: list[list[int]] = []
    for letter in word:
        if stack and stack[-1][0] == letter:
            stack[-1][1] += 1
        else:
            stack.append([letter, 1])
        # A full power of a letter is trivial and vanishes.
        stack[-1][1] %= orders[letter]
        if stack[-1][1] == 0:
            stack.pop()
    return tuple(letter for letter, count in stack for _ in range(count))


def _close(known: npt.NDArray[np.bool_], relators: Sequence[Word], table: npt.NDArray[np.int64]) -> None:
    """Marks every edge that is the only unknown edge in the loop of some relator, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for word in relators:
            vertices, letters = _loop(word, table)
            # unknown[step, v]: whether the step-th edge of the loop from v is still unknown.
            unknown = ~known[vertices, letters[:, None]]
            single = np.flatnonzero(unknown.sum(axis=0) == 1)
            if single.size:
                step = unknown[:, single].argmax(axis=0)
                known[vertices[step, single], letters[step]] = True
                changed = True


def _loop(word: Word, table: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The edges of a relator's loop from every vertex: (length, order) start vertices and (length,) letters."""
    vertices = np.empty((len(word), len(table)), dtype=np.int64)
    vertex = np.arange(len(table))
    letters = np.array(word, dtype=np.int64)
    # All start vertices are followed at once.
    for step, letter in enumerate(letters):
        vertices[step] = vertex
        vertex = table[vertex, letter]
    return vertices, letters
