"""A finite MDP: states and actions are indices, distributions are sparse rows, and rewards are expectations.

    R(s, a),    T(s' | s, a),    and the probability that the episode ends after (s, a), for each s' if known.

Row s * actions + a of `transitions` is the distribution of the states in which the episode continues. The same row of
`terminations` is the distribution of the states in which the episode has just ended. Together they sum to one. The
value after termination is 0. An absorbing state with reward 0 is an equivalent notation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from symcheck import arrays
from symcheck.array_types import Bools, Floats, Ints
from symcheck.errors import SpecError
from symcheck.mdp import reading
from symcheck.mdp.sparse_rows import Csr

ModelT = TypeVar("ModelT", bound="FiniteMDP")
"""The class under construction: `TabularMDP` or a user's subclass."""


class FiniteMDP:
    """The checked arrays of a finite MDP with S states and A actions; the base class of `TabularMDP`.

    Arguments and errors are those of `symcheck.mdp.tabular.TabularMDP`.

    Example:
        >>> FiniteMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [1.0]], 0.5)
        FiniteMDP(2 states, 1 action, discount 0.5)

    Source: van der Pol et al. 2020, section 2.2.
    """

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        discount: float,
        initial: Any = None,
        *,
        terminations: Any = None,
        available: Any = None,
        layout: Any = None,
        labels: Sequence[Hashable] | None = None,
    ) -> None:
        self.discount = reading.read_discount(discount)
        distribution, self.n_states, self.n_actions, unit = reading.read_distributions(transitions, "transitions")
        shape = (self.n_states, self.n_actions)
        ends, ending = self._read_ends(terminations, shape)
        # Rows of the distribution may sum to less than 1: the rest ends the episode.
        going_on: Floats = np.asarray(distribution.sum(axis=1)).reshape(shape)
        self.available = _read_available(available, shape)
        # The longest row bounds the accumulated rounding error.
        longest = int(np.diff(distribution.indptr).max(initial=0))
        reading.check_sums(going_on + ending, self.available, longest, unit)
        if not self.available.any(axis=1).all():
            state = int(np.flatnonzero(~self.available.any(axis=1))[0])
            raise SpecError(
                f"every state must have at least one action, but state {state} has none.", where="available"
            )
        # Rewards per next state are averaged over all outcomes, terminations included.
        everything = distribution if ends is None else distribution + ends
        expected = reading.read_rewards(rewards, everything, *shape)
        self.rewards: Floats = np.where(self.available, expected, 0.0)
        self.transitions: Csr = distribution
        self.terminations: Csr | None = ends
        self.termination: Floats = ending
        self.initial = reading.read_initial(initial, self.n_states)
        self.layout = _read_layout(layout, self.n_states)
        self.labels = None if labels is None else _read_labels(labels, self.n_states)
        self.counts: Ints | None = None

    @staticmethod
    def _read_ends(value: Any, shape: tuple[int, int]) -> tuple[Csr | None, Floats]:
        if value is None:
            return None, np.zeros(shape)
        # An (S, A) array of probabilities: the final states are unknown.
        if not sparse.issparse(value) and np.shape(value) == shape:
            ending = arrays.to_numpy(value, where="terminations", error=SpecError).astype(np.float64)
            if not ((ending >= 0) & np.isfinite(ending)).all():
                raise SpecError("expected probabilities of at least 0.", where="terminations")
            return None, ending
        ends, states, actions, _ = reading.read_distributions(value, "terminations")
        if (states, actions) != shape:
            raise SpecError(
                f"the transitions have {shape} states and actions, but the terminations have {(states, actions)}.",
                where="terminations",
            )
        return ends, np.asarray(ends.sum(axis=1)).reshape(shape)

    def __repr__(self) -> str:
        actions = f"{self.n_actions:,} action" + ("" if self.n_actions == 1 else "s")
        words = f"{self.n_states:,} states, {actions}, discount {self.discount:g}"
        idle = self.n_states - int(self.acted_in.sum())
        return f"{type(self).__name__}({words}{f'; no action taken in {idle:,}' if idle else ''})"

    @cached_property
    def absorbing(self) -> Bools:
        """Absorbing states: every action stays in the state with reward 0. Shape (S,)."""
        rows = np.arange(self.n_states * self.n_actions)
        # Rows with a single outcome: a self-loop has only one.
        alone = np.diff(self.transitions.indptr) == 1
        target = np.full(len(rows), -1, dtype=np.int64)
        target[alone] = self.transitions.indices[self.transitions.indptr[:-1][alone]]
        stays = (target == rows // self.n_actions).reshape(self.n_states, self.n_actions)
        # The state never changes and the reward is 0, so the value is 0 in both notations.
        idle: Bools = ((stays & (self.rewards == 0.0)) | ~self.available).all(axis=1)
        idle &= (self.termination == 0.0).all(axis=1)
        return idle

    @cached_property
    def reachable(self) -> Bools:
        """States that an episode can visit before it ends, (S,); all states if `initial` is None."""
        if self.initial is None:
            return np.ones(self.n_states, dtype=np.bool_)
        edges = self.transitions.tocoo()
        source = edges.row // self.n_actions
        seeds = np.flatnonzero(self.initial > 0)
        hub = self.n_states  # one more node that leads to every start state
        rows = np.concatenate([source, np.full(len(seeds), hub)])
        columns = np.concatenate([edges.col, seeds])
        # From all start states at once.
        graph = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(hub + 1, hub + 1))
        order = csgraph.breadth_first_order(graph, hub, return_predecessors=False)
        reached = np.zeros(hub + 1, dtype=np.bool_)
        reached[order] = True
        # Drop the hub.
        return reached[:-1]

    @cached_property
    def acted_in(self) -> Bools:
        """The counted states: reachable and not absorbing. Shape (S,)."""
        return self.reachable & ~self.absorbing


def _read_available(value: Any, shape: tuple[int, int]) -> Bools:
    if value is None:
        return np.ones(shape, dtype=np.bool_)
    array = np.asarray(value)
    if array.shape != shape or array.dtype != np.bool_:
        raise SpecError(f"expected booleans of shape {shape}, got {array.shape} ({array.dtype}).", where="available")
    return array


def _read_layout(value: Any, states: int) -> Ints | None:
    if value is None:
        return None
    array = arrays.to_numpy(value, where="layout", error=SpecError)
    if array.shape != (states, 2) or array.dtype.kind not in "iu":
        raise SpecError(
            f"expected integers (row, column) of shape ({states}, 2); got {array.shape} ({array.dtype}).",
            where="layout",
        )
    return array.astype(np.int64)


def _read_labels(value: Sequence[Hashable], states: int) -> tuple[Hashable, ...]:
    if len(value) != states:
        raise SpecError(f"expected {states} names, one per state, got {len(value)}.", where="labels")
    return tuple(value)
