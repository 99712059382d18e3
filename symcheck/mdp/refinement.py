"""The coarsest partition of states that a homomorphism can have, by partition refinement.

Start with one block. A pair (s, a) is described by its reward and by the probability that it gives to each block; a
state by the *set* of the descriptions of its actions, because actions may be matched differently from state to state.
States with different descriptions cannot be equivalent, so blocks split, descriptions change, and so on until nothing
splits. The final partition is stable, hence a homomorphism, and no stable partition is coarser.

Only pairs that lead to a state whose block was renamed are described again, and the unchanged part of a split block
keeps its name. So if splits spread slowly through a large MDP, each pair is described a few times, not once per round.

Source: Givan, Dean and Greig, "Equivalence notions and model minimization in Markov decision processes", 2003, for
refinement; Ravindran and Barto 2001 for state-dependent action maps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from symcheck.array_types import Bools, Floats, Hashes, Ints
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.sparse_rows import Csr, gather_rows, hash_pairs, mix_bits, row_of_entry, row_sums
from symcheck.mdp.value_classes import ROUNDING, ValueClasses


@dataclass(frozen=True)
class Partition:
    """Blocks of states and classes of pairs.

    Attributes:
        state: the block of each state, (S,), numbered by its lowest state.
        pair: a description of each pair, (S * A,); pairs of one block are matched if their descriptions are equal.
        rounds: number of rounds in which blocks were split.
    """

    state: Ints
    pair: Hashes
    rounds: int


def coarsest_partition(mdp: FiniteMDP, *, tolerance: float = 0.0, salt: int = 0) -> Partition:
    """The coarsest stable partition.

    Args:
        mdp: the MDP.
        tolerance: rewards, and probabilities of blocks, that differ by at most this count as equal; 0 allows rounding
            only.
        salt: chooses the hash functions.

    Returns:
        Blocks and pair descriptions. Hashes may collide (probability 2^-64 per pair), so verify conclusions drawn from
        them.

    Cost: about n log n for n entries of the transitions if splits spread gradually; at worst n times the number of
        rounds.
    """
    return _Refinement(mdp, tolerance, salt).run()


class _Refinement:
    """The state of a run: block names never change their meaning, so old descriptions stay valid."""

    def __init__(self, mdp: FiniteMDP, tolerance: float, salt: int) -> None:
        self._mdp = mdp
        self._salt = salt
        distribution: Csr = mdp.transitions
        self._indptr = distribution.indptr.astype(np.int64)
        self._columns = distribution.indices.astype(np.int64)
        self._values: Floats = distribution.data
        # The pairs that lead to each state: only their descriptions change if its block changes.
        self._into = _predecessors(distribution)
        self._classes = ValueClasses(max(tolerance, ROUNDING), chained=tolerance == 0.0)
        self._reward = _reward_hashes(mdp, tolerance, salt)
        self._available = mdp.available.reshape(-1)
        self.pair: Hashes = np.zeros(len(self._reward), dtype=np.uint64)
        self.block: Ints = np.zeros(mdp.n_states, dtype=np.int64)
        # Space for as many blocks as there are states; it grows if more names are needed.
        self._size = np.zeros(mdp.n_states, dtype=np.int64)
        self._size[0] = mdp.n_states
        self._shared: Hashes = np.zeros(mdp.n_states, dtype=np.uint64)  # the description that a block's states share
        self._count = 1

    def run(self) -> Partition:
        states = np.arange(self._mdp.n_states, dtype=np.int64)
        pairs = np.flatnonzero(self._available)
        rounds = 0
        while len(states):
            # Only pairs that lead to a state in a renamed block are described again.
            self.pair[pairs] = self._describe_pairs(pairs)
            moved = self._split(states, self._state_hashes(states))
            pairs = self._leading_to(moved)
            states = _unique(pairs // self._mdp.n_actions, self._mdp.n_states)
            rounds += 1
        return Partition(_numbered_by_lowest(self.block), self.pair, rounds)

    def _describe_pairs(self, pairs: Ints) -> Hashes:
        """Reward and distribution over blocks of some pairs, hashed."""
        entries, pointers = gather_rows(self._indptr, pairs)
        # Add up the probabilities of equal blocks before classifying them: 1/3 + 1/3 equals 2/3.
        where, key_of, total = self._block_distribution(entries, pointers)
        terms = hash_pairs(key_of, self._classes.of(total), self._salt)
        starts = np.searchsorted(where, np.arange(len(pairs) + 1))
        # Sums of hashes ignore the order of the blocks.
        return mix_bits(row_sums(terms, starts) + self._reward[pairs], self._salt)

    def _block_distribution(self, entries: Ints, pointers: Ints) -> tuple[Ints, Ints, Floats]:
        """Row, block and probability of each (row, block) with an entry, sorted."""
        rows = row_of_entry(pointers)
        # One sort key per (pair, block).
        key = rows * self._count + self.block[self._columns[entries]]
        order = np.argsort(key, kind="stable")
        key, values = key[order], self._values[entries][order]
        # The first entry of every run of equal keys.
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
        total = np.add.reduceat(values, first) if len(first) else np.zeros(0)
        return key[first] // self._count, key[first] % self._count, total

    def _state_hashes(self, states: Ints) -> Hashes:
        """The set of the descriptions of each state's actions, hashed."""
        actions = self._mdp.n_actions
        pairs = (states[:, None] * actions + np.arange(actions)).reshape(-1)
        # Unavailable actions have no description: 0.
        kept = np.where(self._available[pairs], self.pair[pairs], np.uint64(0)).reshape(len(states), actions)
        kept.sort(axis=1)
        # A set, not a multiset: equal actions of a state count once.
        fresh = np.ones(kept.shape, dtype=np.bool_)
        fresh[:, 1:] = kept[:, 1:] != kept[:, :-1]
        fresh &= kept != 0
        total: Hashes = np.where(fresh, mix_bits(kept, self._salt + 2), np.uint64(0)).sum(axis=1, dtype=np.uint64)
        return total

    def _split(self, states: Ints, described: Hashes) -> Ints:
        """Give every group of touched states that differs from the rest of its block a new name."""
        block = self.block[states]
        # Sorted by block, then by description: groups are runs.
        order = np.lexsort((described, block))
        states, block, described = states[order], block[order], described[order]
        new = np.concatenate([[True], (block[1:] != block[:-1]) | (described[1:] != described[:-1])])
        group = np.cumsum(new) - 1
        start = np.flatnonzero(new)
        size = np.diff(np.concatenate([start, [len(states)]]))
        owner, shared = block[start], described[start]
        # One group per block keeps the name, so that old descriptions stay valid.
        stays = self._staying(owner, shared, size)
        self._shared[owner[stays]] = shared[stays]
        leaving = np.flatnonzero(~stays)
        names = np.full(len(start), -1, dtype=np.int64)
        names[leaving] = self._count + np.arange(len(leaving))
        self._grow(self._count + len(leaving))
        # Update the block sizes.
        np.subtract.at(self._size, owner[leaving], size[leaving])
        self._size[names[leaving]] = size[leaving]
        self._shared[names[leaving]] = shared[leaving]
        self._count += len(leaving)
        moved = ~stays[group]
        self.block[states[moved]] = names[group[moved]]
        changed: Ints = states[moved]
        return changed

    def _staying(self, owner: Ints, shared: Hashes, size: Ints) -> Bools:
        """Which groups keep their block's name: any equal to its untouched part, otherwise the largest."""
        begins = np.concatenate([[True], owner[1:] != owner[:-1]])  # groups come sorted by their block
        # The number of touched states of the block.
        touched = np.add.reduceat(size, np.flatnonzero(begins))[np.cumsum(begins) - 1]
        whole = touched == self._size[owner]
        # Untouched states share one description; a group with the same description keeps their block.
        like_the_rest = ~whole & (shared == self._shared[owner])
        by_size = np.lexsort((-size, owner))
        largest = np.zeros(len(owner), dtype=np.bool_)
        largest[by_size[begins]] = True  # sorted by block again, the largest group of each first
        stays: Bools = like_the_rest | (whole & largest)
        return stays

    def _grow(self, needed: int) -> None:
        if needed > len(self._size):
            # Grow by a factor of at least two: amortised constant time per name.
            more = max(needed, 2 * len(self._size)) - len(self._size)
            self._size = np.concatenate([self._size, np.zeros(more, dtype=np.int64)])
            self._shared = np.concatenate([self._shared, np.zeros(more, dtype=np.uint64)])

    def _leading_to(self, moved: Ints) -> Ints:
        indptr, pairs = self._into
        entries, _ = gather_rows(indptr, moved)
        return _unique(pairs[entries], len(self.pair))


def _predecessors(distribution: Csr) -> tuple[Ints, Ints]:
    """The pairs that lead to each state, as pointers and pairs."""
    turned = sparse.csc_array(distribution)
    return turned.indptr.astype(np.int64), turned.indices.astype(np.int64)


def _reward_hashes(mdp: FiniteMDP, tolerance: float, salt: int) -> Hashes:
    flat = mdp.rewards.reshape(-1)
    scale = float(np.abs(flat).max(initial=0.0))
    # Relative to the largest reward; `tiny` keeps the width positive if all rewards are 0.
    width = max(tolerance, ROUNDING * max(scale, np.finfo(np.float64).tiny))
    return mix_bits(ValueClasses(width, chained=tolerance == 0.0).of(flat), salt + 3)


def _unique(numbers: Ints, limit: int) -> Ints:
    """The sorted distinct numbers below `limit`: by sorting if there are few, by marking if there are many."""
    # Sorting n numbers costs about sixteen times as much as a pass over n marks.
    if len(numbers) * 16 < limit:
        return np.unique(numbers)
    marked = np.zeros(limit, dtype=np.bool_)
    marked[numbers] = True
    return np.flatnonzero(marked)


def _numbered_by_lowest(labels: Ints) -> Ints:
    """Blocks numbered in the order of their lowest states."""
    first = np.full(int(labels.max()) + 1, len(labels), dtype=np.int64)
    np.minimum.at(first, labels, np.arange(len(labels)))
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[labels]
