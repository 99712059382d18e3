"""The data of a page of an MDP homomorphism, filled by `symcheck.mdp.pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Matching:
    """How the actions of one block are matched.

    Attributes:
        block: the abstract state.
        states: some of its states.
        actions: for each of these states, the original actions behind each abstract action.
    """

    block: int
    states: Sequence[int]
    actions: Sequence[Sequence[Sequence[int]]]


@dataclass(frozen=True)
class HomomorphismModel:
    """One page: an MDP and its abstract MDP.

    Attributes:
        target: the name of the MDP.
        origin: how the maps were computed, in words.
        block: the abstract state of each state.
        pairs: the number of (state, action) pairs of the original.
        abstract_pairs: the number of pairs of the abstract MDP.
        idle: for each state, whether no episode takes an action in it.
        edges: (block, block, probability) of abstract transitions, the largest over actions; between different blocks.
        state_edges: the same between states of the original; only if there are few enough states to draw a graph.
        matchings: the matching of actions, for the blocks shown.
        place: (row, column) of each state; None if states have no place.
        labels: a name of each state; None if its number is the name.
        values: optimal value of each block; None if they were not computed.
        exact: whether rewards and distributions agree up to rounding.
        reward_error: largest difference of rewards within a block, from their mean.
        transition_error: largest L1 distance of distributions within a block, from their mean.
        loss_bound: a bound on the loss of the lifted optimal policy; None if the homomorphism is exact or the bound
            unknown.
        group: the group's name, if the blocks are orbits.
        order: its order, in words.
        command: the command that repeats it; "" if there is none.
        versions: package name and version.
    """

    target: str
    origin: str
    block: Sequence[int]
    pairs: int
    abstract_pairs: int
    idle: Sequence[bool]
    edges: Sequence[tuple[int, int, float]] = ()
    state_edges: Sequence[tuple[int, int, float]] = ()
    matchings: Sequence[Matching] = ()
    place: Sequence[tuple[int, int]] | None = None
    labels: Sequence[str] | None = None
    values: Sequence[float] | None = None
    exact: bool = True
    reward_error: float = 0.0
    transition_error: float = 0.0
    loss_bound: float | None = None
    group: str = ""
    order: str = ""
    command: str = ""
    versions: Sequence[tuple[str, str]] = ()

    @property
    def blocks(self) -> int:
        """The number of abstract states."""
        return max(self.block, default=-1) + 1
