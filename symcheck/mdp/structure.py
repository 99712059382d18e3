"""The structure that a symmetry of an MDP must preserve, reduced to its relevant part.

Only states in which an episode takes an action are counted. Actions of one state with the same reward and distribution
are merged into one action with a multiplicity: exchanging them is a trivial symmetry, and there can be very many of
these. The remaining structure is a graph: states, their distinct actions, and weighted edges from actions to states.
Distinct actions of a state differ in reward or distribution, so a permutation of the states determines the images of
the actions: symmetries are permutations of states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats, Hashes, Ints
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.sparse_rows import gather_rows, hash_pairs, mix_bits, row_of_entry, row_sums
from symcheck.mdp.value_classes import ROUNDING, ValueClasses


@dataclass(frozen=True)
class Structure:
    """The reduced MDP as a coloured graph, states and actions renumbered.

    Attributes:
        states: the numbers, in the MDP, of the n counted states (and of final states if they are kept).
        owner: the state of each of the m distinct actions, sorted.
        colour: the class of reward and multiplicity of each distinct action, (m,); images must have the same class.
        state_colour: the class of each state's start probability, (n,), if that is preserved; images must have the same
            class.
        indptr: pointers to the outcomes of each distinct action, (m + 1,).
        columns: next states of the outcomes.
        weights: classes of equal probability of the outcomes.
        distinct: the distinct action of each pair of the MDP, (S * A,); -1 for pairs that are not counted.
    """

    states: Ints
    owner: Ints
    colour: Hashes
    state_colour: Hashes
    indptr: Ints
    columns: Ints
    weights: Ints
    distinct: Ints

    def action_images(self, images: Ints) -> Ints | None:
        """The image of each distinct action under a permutation of the states.

        Args:
            images: the image of each state, (n,).

        Returns:
            The image of each distinct action, (m,); None if the permutation is not a symmetry.

        Cost: sorting the distinct actions.
        """
        # Both are sorted by owner and signature, so that matching actions have equal positions.
        own_order = np.lexsort((self._signatures(np.arange(len(self.states))), self.owner))
        moved = images[self.owner]
        image_order = np.lexsort((self._signatures(images), moved))
        # Every distinct action must have an image with equal reward, multiplicity and distribution.
        same = (self.owner[own_order] == moved[image_order]) & (
            self._signatures(np.arange(len(self.states)))[own_order] == self._signatures(images)[image_order]
        )
        if not same.all() or (self.state_colour[images] != self.state_colour).any():
            return None
        result = np.empty(len(self.owner), dtype=np.int64)
        result[image_order] = own_order
        return result

    def _signatures(self, images: Ints) -> Hashes:
        """Reward, multiplicity and distribution of each distinct action, with states renamed."""
        # The distribution as a sum of hashes over (next state, weight).
        return self.colour + row_sums(hash_pairs(images[self.columns], self.weights), self.indptr)


def reduce_mdp(mdp: FiniteMDP, *, preserve_initial: bool = False, keep_ends: bool = False) -> Structure:
    """The structure of an MDP.

    Args:
        mdp: the MDP.
        preserve_initial: whether start probabilities are part of the structure.
        keep_ends: whether the states in which episodes end are part of the structure, as states without actions.

    Returns:
        The structure.
    """
    counted: Bools = mdp.acted_in
    # Rows of available pairs in counted states.
    rows = np.flatnonzero((counted[:, None] & mdp.available).reshape(-1))
    row, target, weights = _relevant_outcomes(mdp, rows, counted, keep_ends)
    # States that occur only as outcomes are vertices without actions.
    kept = counted.copy()
    kept[target] = True
    states, local = np.flatnonzero(kept), np.cumsum(kept) - 1
    columns = local[target]
    rewards = _reward_classes(mdp.rewards.reshape(-1)[rows])
    pointers = np.searchsorted(row, np.arange(len(rows) + 1)).astype(np.int64)
    # Equal signatures mean interchangeable actions, up to a collision of 64-bit hashes, which verification would
    # detect.
    signature = mix_bits(row_sums(hash_pairs(columns, weights), pointers) + mix_bits(rewards, 1))
    keep, distinct, multiplicity = _merge_actions(rows // mdp.n_actions, signature)
    kept_entries, indptr = gather_rows(pointers, keep)
    # -1 for uncounted pairs.
    every = np.full(mdp.n_states * mdp.n_actions, -1, dtype=np.int64)
    every[rows] = distinct
    start = np.zeros(mdp.n_states) if mdp.initial is None or not preserve_initial else mdp.initial
    return Structure(
        states=states,
        owner=local[rows[keep] // mdp.n_actions],
        # Keep the number of merged actions, otherwise states with one and with two such actions would be equal.
        colour=hash_pairs(rewards[keep], multiplicity, 4),
        state_colour=hash_pairs(ValueClasses(ROUNDING).of(start[states]), counted[states], 6),
        indptr=indptr,
        columns=columns[kept_entries],
        weights=weights[kept_entries],
        distinct=every,
    )


def _relevant_outcomes(mdp: FiniteMDP, rows: Ints, counted: Bools, keep_ends: bool) -> tuple[Ints, Ints, Ints]:
    """Row (as an index into `rows`), next state and weight class of every outcome in the structure."""
    parts = []
    distributions = [(mdp.transitions, 0)]
    if keep_ends and mdp.terminations is not None:
        distributions.append((mdp.terminations, 1))
    for distribution, kind in distributions:
        entries, pointers = gather_rows(distribution.indptr.astype(np.int64), rows)
        columns = distribution.indices[entries].astype(np.int64)
        # Outcomes in uncounted states have no value; they are included only if final states are requested.
        stays = np.ones(len(columns), dtype=np.bool_) if keep_ends else counted[columns]
        kinds = np.full(int(stays.sum()), kind, dtype=np.int64)
        parts.append((row_of_entry(pointers)[stays], columns[stays], distribution.data[entries][stays], kinds))
    row, columns, values, kinds = (np.concatenate(part) for part in zip(*parts, strict=True))
    # Transitions and terminations of equal probability have different classes.
    weights = ValueClasses(ROUNDING).of(values) * 2 + kinds
    order = np.argsort(row, kind="stable")
    return row[order], columns[order], weights[order]


def _reward_classes(rewards: Floats) -> Ints:
    scale = float(np.abs(rewards).max(initial=0.0))
    # Relative to the largest reward.
    return ValueClasses(ROUNDING * max(scale, float(np.finfo(np.float64).tiny))).of(rewards)


def _merge_actions(state: Ints, signature: Hashes) -> tuple[Ints, Ints, Ints]:
    """First pair of each (state, signature), the class of every pair, and how many pairs each class has."""
    # Position is the last sort key, so that each class begins with its first pair.
    order = np.lexsort((np.arange(len(state)), signature, state))
    first = np.ones(len(state), dtype=np.bool_)
    # A new class begins where state or signature changes.
    first[1:] = (state[order][1:] != state[order][:-1]) | (signature[order][1:] != signature[order][:-1])
    group = np.cumsum(first) - 1
    leaders = order[first]
    by_position = np.argsort(leaders, kind="stable")  # classes numbered by their first pair, so sorted by state
    rank = np.empty_like(by_position)
    rank[by_position] = np.arange(len(by_position))
    distinct = np.empty(len(state), dtype=np.int64)
    distinct[order] = rank[group]
    return leaders[by_position], distinct, np.bincount(distinct)
