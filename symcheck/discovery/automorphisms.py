"""All signed permutations that preserve a table of effects: a backtracking search with forward checking.

A variable is a coordinate (or an action), and its values are literals. Fixing the image of one variable restricts the
images of the others; a variable without a possible image ends the branch. Only state coordinates are branched on. The
images of actions follow from their effects, and are determined afterwards on real transitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.discovery.structure import Structure

MOST_MAPS = 512
_MOST_NODES = 20_000  # maximum number of branches; each takes a third of a millisecond for a robot with 47 coordinates
_JOINT_RELATIVE = 0.15  # for means over episodes, which are biased only if start states are asymmetric


@dataclass(frozen=True)
class Found:
    """Signed permutations that preserve the structure.

    Attributes:
        maps: (index, sign) pairs; the identity is first if it is among them.
        complete: whether the search was exhaustive, rather than stopped at its limits.
    """

    maps: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    complete: bool


def automorphisms(structure: Structure, *, most: int = MOST_MAPS) -> Found:
    """Search for all signed permutations that preserve a table of effects.

    Args:
        structure: the table of effects.
        most: the maximum number of maps.

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
    """One map for every coordinate and each of its possible images, chosen to move few other coordinates.

    If identical parts can be permuted freely, there are factorially many maps; these maps generate all of them.

    Args:
        structure: the table of effects.

    Returns:
        Maps as in `Found`, without duplicates and without the identity.

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
        self.back: dict[int, int] = {}  # the first image to try for each variable, if it is not the variable itself
        self.variables = structure.literals
        self.count = sum(len(own) for own in self.variables)
        self.negated = np.arange(self.count)
        for own in self.variables:
            if len(own) == 2:
                self.negated[list(own)] = own[::-1]
        # Rows of action literals are empty: nothing has an effect on an action.
        missing = self.count - len(structure.table)
        self.table = np.concatenate([structure.table, np.zeros((missing, self.count))])
        self.floor = np.concatenate([structure.floor, np.zeros(missing)])
        self.drift = np.concatenate([structure.drift, np.zeros(missing)])
        self.firsts = np.array([own[0] for own in self.variables])

    def run(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        yield from self.extend(self.domains(), [])

    def domains(self) -> Bools:
        """domains[v, q]: whether literal q is a possible image of variable v, according to these two only."""
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
        # A column contains coordinates with different floors; after sorting, compare with the largest floor.
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
        """The domains after the choice v -> q, and their earlier values; None if a variable has no possible image."""
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
            self._keep_joint(fits, source, image)
        for u, goes in chosen:
            self._keep_mixed(fits, (p, self.variables[u][0]), (q, goes))
        if not fits[v, q]:  # the effect of v jointly with other variables may be on v itself
            return None
        narrowed: Bools = domains & fits
        narrowed[:, [q, self.negated[q]]] = False
        narrowed[v] = False
        narrowed[v, q] = True
        return narrowed if narrowed.any(axis=1).all() else None

    def _keep_pairs(self, fits: Bools, source: int, image: int) -> None:
        """Remove, in place, images of a pair of literals whose joint effect differs."""
        pairs, states = self.structure.pairs, 2 * self.structure.dim
        if pairs is None or source >= states:
            return
        own, others = pairs[source, self.firsts[: self.structure.dim]][:, None], pairs[image][None, :]
        fits[: self.structure.dim, :states] &= (own == others) | (own < 0) | (others < 0)

    def _keep_joint(self, fits: Bools, source: int, image: int) -> None:
        """Remove, in place, images of a pair of literals whose joint numbers differ."""
        states, firsts = 2 * self.structure.dim, self.firsts[: self.structure.dim]
        if source >= states:
            return
        for joint in self.structure.joint:
            floor = np.hypot(joint.floor[source, firsts][:, None], joint.floor[image][None, :])
            fits[: self.structure.dim, :states] &= _close_all(
                joint.table[source, firsts], joint.table[image], floor, _JOINT_RELATIVE
            )

    def _keep_mixed(self, fits: Bools, sources: tuple[int, int], images: tuple[int, int]) -> None:
        """Remove, in place, images that do not map the mixed effects of two literals to those of their images."""
        mixed, floor = self.structure.mixed, self.structure.mixed_floor
        if mixed is None or floor is None:
            return
        (p, u), (q, w), firsts = sources, images, self.firsts[: self.structure.dim]
        open_ones = fits[: self.structure.dim, : 2 * self.structure.dim]
        relative = self.structure.relative
        # Restrict the image of a third coordinate, as the coordinate that both affect, or as the joint cause of an
        # effect on one of them.
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
    """Whether each entry of the left is close to each entry of the right, shape (len(left), len(right))."""
    a, b = left[:, None], right[None, :]
    return np.asarray(np.abs(a - b) <= floor + relative * np.maximum(np.abs(a), np.abs(b)))
