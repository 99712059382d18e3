"""Automorphism search by refinement and backtracking, for small MDPs and installations without igraph.

Colours of states are refined until they are stable. If all states have different colours, the group is trivial.
Otherwise one state of a cell gets a new colour, colours are refined again, and so on until all differ; these states
form the base. An automorphism is determined by the images of the base. So for every level of the base, deepest first,
each other state of the cell is tried in place of the base state. A branch is abandoned as soon as its colours cannot
match those of the base. States already reached by the automorphisms found so far are not tried.

The order of the group is the product of the sizes of the orbits of all levels.

Source: B. D. McKay and A. Piperno, "Practical graph isomorphism, II", 2014, for individualisation and refinement; the
order by orbits of a stabilizer chain is Schreier's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Hashes, Ints
from symcheck.errors import SymcheckError
from symcheck.mdp.sparse_rows import hash_pairs, mix_bits, row_of_entry, row_sums
from symcheck.mdp.structure import Structure

BUDGET = 20_000
"""Maximum number of colour refinements; each takes a few milliseconds for hundreds of states."""


@dataclass
class _Level:
    """One level of the base: the individualised state, the other states of its cell, and the refined colours."""

    state: int
    cell: Ints
    colours: Hashes


class _Colouring:
    """Colour refinement: an isomorphism-invariant function of the initial colours."""

    def __init__(self, structure: Structure) -> None:
        self._s = structure
        count = len(structure.states)
        self._action_of_entry = row_of_entry(structure.indptr)
        # Entries sorted by the state that they lead to, with pointers per state.
        self._incoming = np.argsort(structure.columns, kind="stable")
        self._in_pointers = np.searchsorted(structure.columns[self._incoming], np.arange(count + 1)).astype(np.int64)
        self._owned = np.searchsorted(structure.owner, np.arange(count + 1)).astype(np.int64)
        self.spent = 0

    def refine(self, colours: Hashes) -> Hashes:
        """The stable colours: no further refinement by neighbours splits them."""
        self.spent += 1
        if self.spent > BUDGET:
            raise SymcheckError(
                f"the built-in search tried {BUDGET:,} partial maps of {len(colours):,} states without a result.",
                where="automorphism_group",
                remedy="For larger MDPs, install igraph: pip install 'symcheck[discover]'",
            )
        # Refine until the number of colours stops growing.
        count = len(np.unique(colours))
        while True:
            colours = self._recolour(colours)
            following = len(np.unique(colours))
            if following == count:
                return colours
            count = following

    def _recolour(self, colours: Hashes) -> Hashes:
        s = self._s
        outgoing = row_sums(hash_pairs(colours[s.columns], s.weights), s.indptr)
        # An action's new colour combines its own colour, the colours of its next states, and that of its state.
        action = mix_bits(s.colour + outgoing + mix_bits(colours[s.owner], 8), 9)
        chosen = row_sums(mix_bits(action, 10), self._owned)
        # Incoming transitions distinguish states too.
        arriving = hash_pairs(action[self._action_of_entry], s.weights, 11)[self._incoming]
        return mix_bits(colours + chosen + mix_bits(row_sums(arriving, self._in_pointers), 12), 13)


def search(structure: Structure) -> tuple[list[Ints], int]:
    """Generators and order of the automorphism group.

    Args:
        structure: the reduced MDP.

    Returns:
        Images of the states for each generator, and the order.

    Raises:
        SymcheckError: the search exceeded its budget.
    """
    colouring = _Colouring(structure)
    # Colours before individualisation: every automorphism preserves them.
    first = colouring.refine(structure.state_colour)
    levels = _base(colouring, first)
    generators: list[Ints] = []
    order = 1
    # From the deepest level upwards, as in Schreier-Sims: stabilisers first.
    for depth in reversed(range(len(levels))):
        before = levels[depth - 1].colours if depth else first
        order *= _widen(structure, colouring, levels, depth, before, generators)
    return generators, order


def _base(colouring: _Colouring, colours: Hashes) -> list[_Level]:
    levels = []
    # The base is complete if every state has its own colour.
    while (cell := _smallest_cell(colours)) is not None:
        state = int(cell[0])
        colours = colouring.refine(_single_out(colours, state))
        levels.append(_Level(state, cell, colours))
    return levels


def _smallest_cell(colours: Hashes) -> Ints | None:
    """The states of the smallest cell with at least two states.

    Among equal sizes, the smallest colour is chosen, so that the choice does not depend on the numbering.
    """
    values, counts = np.unique(colours, return_counts=True)
    several = counts > 1
    if not several.any():
        return None
    smallest = int(np.flatnonzero(several & (counts == counts[several].min()))[0])
    return np.flatnonzero(colours == values[smallest])


def _single_out(colours: Hashes, state: int) -> Hashes:
    marked = colours.copy()
    # A colour that no other state has.
    marked[state] = mix_bits(colours[state : state + 1], 14)[0]
    return marked


def _widen(
    structure: Structure,
    colouring: _Colouring,
    levels: list[_Level],
    depth: int,
    before: Hashes,
    generators: list[Ints],
) -> int:
    """Find all images of this level's base state that fix the base states above; return the size of its orbit."""
    level = levels[depth]
    hopeless: set[int] = set()
    for candidate in level.cell.tolist():
        orbit = orbit_of(level.state, generators)
        # Images under known generators need no search; nor do the orbits of failed candidates.
        if candidate in orbit or candidate in hopeless:
            continue
        automorphism = _descend(structure, colouring, levels, depth, before, candidate)
        if automorphism is None:
            hopeless |= orbit_of(candidate, generators)
        else:
            generators.append(automorphism)
    return len(orbit_of(level.state, generators))


def _descend(
    structure: Structure, colouring: _Colouring, levels: list[_Level], depth: int, before: Hashes, candidate: int
) -> Ints | None:
    """An automorphism that maps this level's base state to `candidate` and fixes those above; None if there is none."""
    colours = colouring.refine(_single_out(before, candidate))
    target = levels[depth].colours
    base_order, image_order = np.argsort(target), np.argsort(colours)
    # Different multisets of colours: no such automorphism exists.
    if (target[base_order] != colours[image_order]).any():
        return None
    # Every state has its own colour: equal colours determine the images.
    if depth + 1 == len(levels):
        images = np.empty(len(colours), dtype=np.int64)
        images[base_order] = image_order
        # Colours are hashes, so verify the map on the structure itself.
        return images if structure.action_images(images) is not None else None
    # Candidate images of the next base state.
    chosen = colours == target[levels[depth + 1].state]
    for following in np.flatnonzero(chosen).tolist():
        automorphism = _descend(structure, colouring, levels, depth + 1, colours, following)
        if automorphism is not None:
            return automorphism
    return None


def orbit_of(state: int, generators: list[Ints]) -> set[int]:
    """The orbit of a state under the generators.

    Example:
        >>> sorted(orbit_of(0, [np.array([1, 0, 2])]))
        [0, 1]
    """
    orbit = {state}
    waiting = [state]
    while waiting:
        point = waiting.pop()
        for images in generators:
            image = int(images[point])
            if image not in orbit:
                orbit.add(image)
                waiting.append(image)
    return orbit
