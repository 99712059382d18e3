"""MDP homomorphisms: a state map, state-dependent action maps, the abstract MDP, and how policies are lifted from it.

    R_abstract(sigma(s), alpha_s(a)) = R(s, a),
    T_abstract(sigma(s') | sigma(s), alpha_s(a)) = sum over s'' in sigma^-1(sigma(s')) of T(s'' | s, a).

For any two maps, the abstract MDP averages rewards and distributions over the pairs that map to the same abstract pair.
The largest deviation from these averages measures how far the maps are from a homomorphism; for an exact homomorphism,
this deviation is due to rounding only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse

from symcheck.array_types import Bools, Floats, Ints
from symcheck.errors import SpecError
from symcheck.mdp import pictures, solving
from symcheck.mdp.bounds import lifted_policy_loss_bound
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.sparse_rows import renumber

if TYPE_CHECKING:
    from pathlib import Path

    from symcheck.groups.group import Group


@dataclass(frozen=True)
class Homomorphism:
    """A homomorphism h = (sigma, {alpha_s}) from an MDP onto an abstract MDP.

    Attributes:
        mdp: the original.
        abstract_mdp: the image of `mdp`; actions that a block does not have are not `available` there.
        state_map: sigma, the abstract state of each state, (S,).
        action_map: alpha, the abstract action of each action in each state, (S, A); -1 if the action is not available.
        reward_error: largest |R(s, a) - R_abstract(h(s, a))|, in units of reward.
        transition_error: largest L1 distance between the distribution of (s, a) over blocks (termination included)
            and the abstract distribution of h(s, a), in [0, 2]. Blocks of absorbing states are equivalent to
            termination.
        origin: how the homomorphism was computed, in words.
        group: the group whose orbits are the blocks; None otherwise.

    Example:
        >>> from symcheck.mdp.tabular import TabularMDP
        >>> h = TabularMDP([[[0, 1.0]], [[1.0, 0]]], [[1.0], [1.0]], 0.5).minimal_homomorphism()
        >>> h.lift([[1.0]]).tolist(), h.is_exact
        ([[1.0], [1.0]], True)

    Source: van der Pol et al. 2020, "MDP homomorphisms" and "Optimal value equivalence and lifted policies".
    """

    mdp: FiniteMDP
    abstract_mdp: FiniteMDP
    state_map: Ints
    action_map: Ints
    reward_error: float
    transition_error: float
    origin: str = "given maps"
    group: Group | None = None

    @property
    def is_exact(self) -> bool:
        """Whether both errors are within rounding; if so, h-equivalent pairs have the same optimal value."""
        return self.reward_error <= exact_reward_error(self.mdp) and self.transition_error <= EXACT_DISTRIBUTION

    @cached_property
    def blocks(self) -> tuple[Ints, ...]:
        """The states of each abstract state."""
        # A stable sort keeps the states of a block in ascending order.
        order = np.argsort(self.state_map, kind="stable")
        sizes = np.bincount(self.state_map, minlength=self.abstract_mdp.n_states)
        return tuple(np.split(order, np.cumsum(sizes)[:-1]))

    def lift(self, policy: npt.ArrayLike) -> Floats:
        """The lift of an abstract policy to the original MDP.

        pi(a | s) = pi_abstract(alpha_s(a) | sigma(s)) / |alpha_s^-1(alpha_s(a))|: probability is divided evenly over
        the actions that map to the same abstract action. The lift is equal for h-equivalent pairs, and optimal if
        the abstract policy is optimal.

        Args:
            policy: a policy of the abstract MDP: an action for each abstract state, integers (B,), or probabilities (B,
                A').

        Returns:
            Probabilities, (S, A).

        Raises:
            SpecError: not a policy of the abstract MDP.

        Source: van der Pol et al. 2020, equation for the lifted policy, after Ravindran and Barto 2001.
        """
        abstract = solving.read_policy(self.abstract_mdp, policy, where="abstract policy")
        # -1 marks unavailable actions; any index works, because their probability is masked.
        mapped = np.where(self.action_map < 0, 0, self.action_map)
        mass = np.where(self.mdp.available, abstract[self.state_map[:, None], mapped], 0.0)
        # The abstract probability is shared among the actions with the same image.
        return mass / self._preimages()

    def _preimages(self) -> Ints:
        """|alpha_s^-1(alpha_s(a))|, (S, A)."""
        wide = self.mdp.n_actions + 1
        # One key per (state, abstract action); 0 for actions that are not available.
        key = np.arange(self.mdp.n_states)[:, None] * wide + self.action_map + 1
        counts: Ints = np.bincount(key.reshape(-1))[key]
        return counts

    def lift_values(self, values: npt.ArrayLike) -> Floats:
        """Lift abstract state values, (B,), or pair values, (B, A'), to the original: V(s) = V_abstract(sigma(s)).

        Args:
            values: the values of abstract states or pairs.

        Returns:
            Shape (S,) or (S, A); -inf for actions that are not available.

        Raises:
            SpecError: a wrong shape.
        """
        array = np.asarray(values, dtype=np.float64)
        shape = (self.abstract_mdp.n_states, self.abstract_mdp.n_actions)
        if array.shape == shape[:1]:
            return array[self.state_map]
        if array.shape != shape:
            raise SpecError(f"expected shape {shape[:1]} or {shape}, got {array.shape}.", where="values")
        mapped = np.where(self.action_map < 0, 0, self.action_map)
        return np.where(self.mdp.available, array[self.state_map[:, None], mapped], -np.inf)

    def value_loss_bound(self) -> float:
        """A bound on the loss of the lifted optimal policy relative to the optimum, in every state.

        Returns:
            The bound in units of return; 0 if the homomorphism is exact up to rounding.

        Raises:
            OptionError: discount 1.

        Source: `symcheck.mdp.lifted_policy_loss_bound`.
        """
        if self.is_exact:
            return 0.0
        optimal = solving.value_iteration(self.abstract_mdp).values
        # Termination has value 0, so the span includes 0 if an episode can end.
        ends = bool((self.mdp.termination > 0).any())
        low, high = float(optimal.min()), float(optimal.max())
        span = max(high, 0.0) - min(low, 0.0) if ends else high - low
        return lifted_policy_loss_bound(
            self.reward_error, self.transition_error, self.mdp.discount, abstract_value_span=span
        )

    def summary(self) -> str:
        """One sentence with the sizes before and after, and the errors."""
        before, after = self.mdp, self.abstract_mdp
        sizes = (
            f"{before.n_states:,} states and {int(before.available.sum()):,} pairs become {after.n_states:,} and "
            f"{int(after.available.sum()):,}"
        )
        if self.is_exact:
            return f"{sizes}; exact"
        return (
            f"{sizes}; approximate: within a block, rewards deviate from their mean by up to "
            f"{self.reward_error:.3g} and distributions by up to {self.transition_error:.3g} (L1)"
        )

    def __repr__(self) -> str:
        return f"Homomorphism({self.summary()})"

    def save_html(self, path: str | Path, *, target: str = "MDP") -> Path:
        """Write a page that shows the original MDP, coloured by block, and the abstract MDP.

        Args:
            path: the file.
            target: the MDP's name on the page.

        Returns:
            The path.

        Raises:
            SymcheckError: the file cannot be written.
        """
        return pictures.save(self, path, target=target)

    def _repr_html_(self) -> str:
        return pictures.render_frame(self)


EXACT_DISTRIBUTION = 1e-9
"""Largest L1 distance of distributions that counts as rounding: 100 times `value_classes.ROUNDING`, because the
rounding of many blocks adds up."""


def exact_reward_error(mdp: FiniteMDP) -> float:
    """The largest difference of rewards that counts as rounding: 1e-9 of the largest reward, as for distributions."""
    return EXACT_DISTRIBUTION * float(np.abs(mdp.rewards).max(initial=0.0))


def from_maps(
    mdp: FiniteMDP,
    state_map: Ints,
    action_map: Ints,
    *,
    origin: str = "given maps",
    group: Group | None = None,
) -> Homomorphism:
    """The homomorphism (exact or approximate) with these maps.

    Args:
        mdp: the original.
        state_map: the abstract state of each state, (S,); each of 0..B-1 must occur.
        action_map: the abstract action of each action, (S, A); -1 if the action is not available.
        origin: how the maps were found, in words.
        group: the group whose orbits are the blocks; None otherwise.

    Returns:
        The homomorphism; its abstract MDP averages rewards and distributions over the pairs that map to the same
        abstract pair.

    Raises:
        SpecError: maps of the wrong shape, or states of one block with different abstract actions.
    """
    state_map, action_map = np.asarray(state_map, dtype=np.int64), np.asarray(action_map, dtype=np.int64)
    states, actions = mdp.n_states, mdp.n_actions
    if state_map.shape != (states,) or action_map.shape != (states, actions):
        raise SpecError(
            f"the state map must have shape ({states},), and the action map ({states}, {actions}); got "
            f"{state_map.shape} and {action_map.shape}.",
            where="homomorphism",
        )
    # Abstract actions are numbered within each block; `wide` is the largest number of actions of a block.
    blocks, wide = int(state_map.max()) + 1, int(action_map.max()) + 1
    pairs = np.flatnonzero(mdp.available.reshape(-1))
    # The abstract pair of every pair, as a row number.
    image = state_map[pairs // actions] * wide + action_map.reshape(-1)[pairs]
    available = _match_actions(state_map, image, pairs // actions, blocks, wide)
    # The average over all pairs with the same image.
    weights = 1.0 / np.bincount(image, minlength=blocks * wide)[image]
    # average is (abstract pairs, pairs), onto is (states, blocks).
    average = sparse.csr_array((weights, (image, np.arange(len(pairs)))), shape=(blocks * wide, len(pairs)))
    onto = sparse.csr_array((np.ones(states), (np.arange(states), state_map)), shape=(states, blocks))
    distributions = sparse.csr_array(mdp.transitions[pairs] @ onto)
    ends, rewards = mdp.termination.reshape(-1)[pairs], mdp.rewards.reshape(-1)[pairs]
    abstract_distributions = sparse.csr_array(average @ distributions)
    abstract_ends, abstract_rewards = average @ ends, average @ rewards
    # Compare each pair with the average of its class.
    gaps = _distances(
        distributions - abstract_distributions[image], ends - abstract_ends[image], _worthless(mdp, state_map, blocks)
    )
    abstract = _abstract(mdp, abstract_distributions, abstract_rewards, abstract_ends, available, state_map)
    reward_gap = float(np.abs(rewards - abstract_rewards[image]).max(initial=0.0))
    return Homomorphism(mdp, abstract, state_map, action_map, reward_gap, float(gaps.max(initial=0.0)), origin, group)


def _worthless(mdp: FiniteMDP, state_map: Ints, blocks: int) -> Bools:
    """Whether each block consists of absorbing states only, so that reaching it is equivalent to termination."""
    # A block with one non-absorbing state has a value.
    only = np.ones(blocks, dtype=np.bool_)
    only[state_map[~mdp.absorbing]] = False
    return only


def _distances(distributions: sparse.csr_array[np.float64], ends: Floats, worthless: Bools) -> Floats:
    """L1 norms of differences of distributions over blocks; blocks of absorbing states are counted as termination."""
    going: Floats = np.asarray(abs(distributions[:, np.flatnonzero(~worthless)]).sum(axis=1)).reshape(-1)
    # Absorbing blocks and terminations are equivalent notations.
    ended = np.asarray(distributions[:, np.flatnonzero(worthless)].sum(axis=1)).reshape(-1) + ends
    distances: Floats = going + np.abs(ended)
    return distances


def _match_actions(state_map: Ints, image: Ints, owner: Ints, blocks: int, wide: int) -> Bools:
    """The abstract actions of each block. Rejects blocks whose states differ in their abstract actions."""
    # List each (state, abstract pair) once, however many actions map to it.
    have = np.unique(np.stack([owner, image]), axis=1)
    per_image = np.bincount(have[1], minlength=blocks * wide).reshape(blocks, wide)
    size = np.bincount(state_map, minlength=blocks)
    # Some states of the block have the abstract action, others do not.
    torn = (per_image > 0) & (per_image < size[:, None])
    if torn.any() or not size.all():
        block = int(np.argwhere(torn)[0][0]) if torn.any() else int(np.flatnonzero(size == 0)[0])
        raise SpecError(
            "the action maps must be surjective: all states of a block need the same abstract actions, "
            f"but those of block {block} differ.",
            where="homomorphism",
        )
    return per_image > 0


def _abstract(
    mdp: FiniteMDP,
    distributions: sparse.csr_array[np.float64],
    rewards: Floats,
    ends: Floats,
    available: Bools,
    state_map: Ints,
) -> FiniteMDP:
    """The abstract MDP. Averages of distributions are normalised to remove rounding."""
    shape = available.shape
    # Transitions and terminations sum to 1 for an available pair, and to 0 for an unavailable one.
    total = np.asarray(distributions.sum(axis=1)).reshape(-1) + ends
    scale = np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)
    initial = None if mdp.initial is None else np.bincount(state_map, weights=mdp.initial, minlength=shape[0])
    return type(mdp)(
        sparse.csr_array(sparse.diags_array(scale) @ distributions),
        rewards.reshape(shape),
        mdp.discount,
        initial,
        terminations=(ends * scale).reshape(shape),
        available=available,
    )


def ranked_in_blocks(block: Ints, classes: Ints) -> Ints:
    """Renumber classes of pairs 0, 1, ... within each block, in the order of their first pair.

    Args:
        block: the block of each state, (S,).
        classes: the classes of each pair, (S, A); -1 is kept.

    Returns:
        Shape (S, A).
    """
    flat = classes.reshape(-1)
    # -1 stands for pairs that are not available.
    pairs = np.flatnonzero(flat >= 0)
    numbered = renumber(flat[pairs])
    owner = np.zeros(int(numbered.max()) + 1, dtype=np.int64)
    # The block that each class belongs to.
    owner[numbered] = block[pairs // classes.shape[1]]
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner)
    rank = np.empty_like(owner)
    # The index of a class among the classes of its block.
    rank[order] = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    result = np.full(len(flat), -1, dtype=np.int64)
    result[pairs] = rank[numbered]
    return result.reshape(classes.shape)
