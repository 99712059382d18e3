"""All signed permutations that leave a table of effects alone: a backtracking search with forward checking.

A variable is a coordinate (or an action), its values are literals. Deciding where one variable goes restricts where
the others can go; a variable that has nowhere left to go ends the branch. Only state coordinates are branched on:
where actions go follows from how they act, and is found on real transitions afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.discovery.structure import Structure

MOST_MAPS = 512
_MOST_NODES = 20_000  # branches looked at; a third of a millisecond each for a robot of 47 coordinates


@dataclass(frozen=True)
class Found:
    """Signed permutations that leave the structure alone.

    Attributes:
        maps: (index, sign) pairs, the identity first where it is among them.
        complete: whether the search ended by itself, rather than at its limits.
    """

    maps: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    complete: bool


def automorphisms(structure: Structure, *, most: int = MOST_MAPS) -> Found:
    """Search.

    Args:
        structure: the table of effects.
        most: stop after so many maps.

    Returns:
        The maps.

    Example:
        >>> turn = np.array([[1.0, -1.0], [-1.0, 1.0]])
        >>> table = np.block([[0 * turn, turn], [-turn, 0 * turn]])
        >>> spring = Structure(np.zeros(2), table, np.zeros(4), np.full(4, 1e-3), ((0, 1), (2, 3)), 2, ())
        >>> len(automorphisms(spring).maps)  # the quarter turns
        4
    """
    search = _Search(structure)
    maps = []
    for assignment in search.run():
        maps.append(assignment)
        if len(maps) >= most:
            search.complete = False
            break
    return Found(tuple(maps), search.complete)


def exchanges(structure: Structure) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """For every coordinate and every literal that it may go to, one map that moves little else.

    Where identical parts can be exchanged at will there are factorially many maps; these generate them.

    Args:
        structure: the table of effects.

    Returns:
        Maps as in `Found`, without repetition, the identity left out.

    Example:
        >>> free = Structure(np.zeros(3), np.zeros((6, 6)), np.zeros(6), np.ones(6), ((0, 1), (2, 3), (4, 5)), 3, ())
        >>> exchanges(free)[1]
        ((1, 0, 2), (1, 1, 1))
    """
    search = _Search(structure)
    domains = search.domains()
    made: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    for v in range(structure.dim):
        own = search.variables[v][0]
        for q in np.flatnonzero(domains[v]).tolist():
            if q == own or q // 2 < v:
                continue
            search.nodes, search.back = 0, {v: q, q // 2: own + q % 2}
            narrowed = search.narrow(domains, v, q)
            found = None if narrowed is None else next(search.extend(narrowed, [(v, q)]), None)
            if found is not None:
                made[found] = None
    return tuple(made)


class _Search:
    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.complete = True
        self.nodes = 0
        self.back: dict[int, int] = {}  # where variables go first, if not to themselves
        self.variables = structure.literals
        self.count = sum(len(own) for own in self.variables)
        self.negated = np.arange(self.count)
        for own in self.variables:
            if len(own) == 2:
                self.negated[list(own)] = own[::-1]
        # Rows of action literals are empty: nothing acts on an action.
        missing = self.count - len(structure.table)
        self.table = np.concatenate([structure.table, np.zeros((missing, self.count))])
        self.floor = np.concatenate([structure.floor, np.zeros(missing)])
        self.drift = np.concatenate([structure.drift, np.zeros(missing)])
        self.firsts = np.array([own[0] for own in self.variables])

    def run(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        yield from self.extend(self.domains(), [])

    def domains(self) -> Bools:
        """domains[v, q]: whether variable v may go to literal q, judged by everything about v and q alone."""
        domains = np.zeros((len(self.variables), self.count), dtype=bool)
        kinds = np.array([self._kind(v) for v, own in enumerate(self.variables) for _ in own])
        signatures = [self._signature(q) for q in range(self.count)]
        for v, own in enumerate(self.variables):
            p = own[0]
            for q in np.flatnonzero(kinds == self._kind(v)):
                domains[v, q] = self._alike(p, int(q), signatures)
        if self.structure.parts is not None:
            owner = np.array(self.structure.parts)
            domains[: len(owner), : 2 * len(owner)] &= owner[:, None] == np.repeat(owner, 2)
        for j in self.structure.fixed:
            domains[j] = False
            domains[j, 2 * j] = True
        return domains

    def _kind(self, v: int) -> int:
        return 0 if v < self.structure.dim else len(self.variables[v])

    def _signature(self, q: int) -> tuple[Floats, Floats]:
        return np.sort(self.table[q]), np.sort(self.table[:, q])

    def _alike(self, p: int, q: int, signatures: list[tuple[Floats, Floats]]) -> bool:
        floor = max(self.floor[p], self.floor[q])
        own = (
            (self.table[p, p], self.table[q, q]),
            (self.table[p, self.negated[p]], self.table[q, self.negated[q]]),
            (self.drift[p], self.drift[q]),
        )
        if not all(_close(np.array(a), np.array(b), floor, self.structure.relative) for a, b in own):
            return False
        rows = _close(signatures[p][0], signatures[q][0], floor, self.structure.relative)
        # A column mixes coordinates with floors of their own; sorted, they are compared with the largest of them.
        return rows and _close(signatures[p][1], signatures[q][1], float(self.floor.max()), self.structure.relative)

    def extend(
        self, domains: Bools, chosen: list[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        if self.nodes >= _MOST_NODES:
            self.complete = False
            return
        taken = {v for v, _ in chosen}
        free = [v for v in range(self.structure.dim) if v not in taken]
        if not free:
            yield self._as_map(chosen)
            return
        v = min(free, key=lambda coordinate: int(domains[coordinate].sum()))
        own = self.back.get(v, self.variables[v][0])
        for q in sorted(np.flatnonzero(domains[v]).tolist(), key=lambda literal: (literal != own, literal)):
            self.nodes += 1
            narrowed = self.narrow(domains, v, int(q), chosen)
            if narrowed is not None:
                yield from self.extend(narrowed, [*chosen, (v, int(q))])

    def narrow(self, domains: Bools, v: int, q: int, chosen: Sequence[tuple[int, int]] = ()) -> Bools | None:
        """The domains once v goes to q, and others where they were sent; None if a variable has nowhere to go."""
        p = self.variables[v][0]
        fits = np.ones_like(domains)
        for sign in (False, True):
            source, image = (self.negated[p], self.negated[q]) if sign else (p, q)
            fits &= _close_all(
                self.table[source, self.firsts], self.table[image], self._floor(source, image), self.structure.relative
            )
            others = np.maximum(self.floor[self.firsts][:, None], self.floor[None, :])
            fits &= _close_all(self.table[self.firsts, source], self.table[:, image], others, self.structure.relative)
            self._keep_pairs(fits, source, image)
        for u, goes in chosen:
            self._keep_mixed(fits, (p, self.variables[u][0]), (q, goes))
        if not fits[v, q]:  # what v does with others may be done to v itself
            return None
        narrowed: Bools = domains & fits
        narrowed[:, [q, self.negated[q]]] = False
        narrowed[v] = False
        narrowed[v, q] = True
        return narrowed if narrowed.any(axis=1).all() else None

    def _keep_pairs(self, fits: Bools, source: int, image: int) -> None:
        """Leave out, in place, what would take a pair of literals to one that does something else together."""
        pairs, states = self.structure.pairs, 2 * self.structure.dim
        if pairs is None or source >= states:
            return
        own, others = pairs[source, self.firsts[: self.structure.dim]][:, None], pairs[image][None, :]
        fits[: self.structure.dim, :states] &= (own == others) | (own < 0) | (others < 0)

    def _keep_mixed(self, fits: Bools, sources: tuple[int, int], images: tuple[int, int]) -> None:
        """Leave out, in place, what would not carry the mixed effects of two literals into those of their images."""
        mixed, floor = self.structure.mixed, self.structure.mixed_floor
        if mixed is None or floor is None:
            return
        (p, u), (q, w), firsts = sources, images, self.firsts[: self.structure.dim]
        open_ones = fits[: self.structure.dim, : 2 * self.structure.dim]
        relative = self.structure.relative
        # Where a third coordinate goes: as what both move, or as what moves one of them together with the other.
        others = np.maximum(floor[firsts][:, None], floor[None, :])
        open_ones &= _close_all(mixed[p, u, firsts], mixed[q, w], others, relative)
        open_ones &= _close_all(mixed[p, firsts, u], mixed[q, :, w], max(floor[u], floor[w]), relative)
        open_ones &= _close_all(mixed[u, firsts, p], mixed[w, :, q], max(floor[p], floor[q]), relative)

    def _floor(self, source: int, image: int) -> float:
        return float(max(self.floor[source], self.floor[image]))

    def _as_map(self, chosen: list[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        index, sign = [0] * self.structure.dim, [1] * self.structure.dim
        for v, q in chosen:
            index[v], sign[v] = q // 2, 1 if q % 2 == 0 else -1
        return tuple(index), tuple(sign)


def _close(a: Floats, b: Floats, floor: float, relative: float) -> bool:
    return bool((np.abs(a - b) <= floor + relative * np.maximum(np.abs(a), np.abs(b))).all())


def _close_all(left: Floats, right: Floats, floor: float | Floats, relative: float) -> Bools:
    """Every entry of the left against every entry of the right, shape (len(left), len(right))."""
    a, b = left[:, None], right[None, :]
    return np.asarray(np.abs(a - b) <= floor + relative * np.maximum(np.abs(a), np.abs(b)))
