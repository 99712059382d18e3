"""All symmetries of a finite MDP: the pairs (L, K) of the paper's equations for R and T, as one finite group.

A search on the reduced structure proposes permutations of the states, which determine the action maps. Both are then
verified on every state-action pair of the MDP, which is a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from symcheck.array_types import Bools, Floats, Ints
from symcheck.errors import SpecError, SymcheckError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.mdp import search_builtin, search_igraph
from symcheck.mdp.ends import extend_symmetry
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.group_names import named_group
from symcheck.mdp.homomorphism import EXACT_DISTRIBUTION, Homomorphism, exact_reward_error, from_maps, ranked_in_blocks
from symcheck.mdp.sparse_rows import orbit_labels, renumber
from symcheck.mdp.structure import Structure, reduce_mdp
from symcheck.verdict import Facts, Verdict, decide

if TYPE_CHECKING:
    from symcheck.symmetry.symmetry import Symmetry


@dataclass(frozen=True)
class AutomorphismGroup:
    """The automorphism group of an MDP, given by generators.

    Attributes:
        mdp: the MDP.
        group: the group as permutations of all states; generators in the order of the maps below.
        state_maps: L of each generator: the image of each state, (generators, S). States that are not counted are
            mapped too if episodes end in them, and fixed otherwise.
        action_maps: K of each generator: the image of action a in state s, (generators, S, A).
        counted: the counted states: reachable and not absorbing, (S,).
        reward_residual: the largest |R(s, a) - R(L s, K a)| over all counted pairs and generators.
        transition_residual: the largest L1 distance between the mapped distribution of (s, a) and the distribution of
            its image.
        moves_ends: whether the maps extend consistently to the states in which episodes end; these states have no
            value, but an environment returns their observations.

    Example:
        >>> from symcheck.mdp.worlds import torus_chase
        >>> found = torus_chase().automorphism_group()
        >>> found.group.name, found.order, len(found.orbits), found.verdict
        ('D4', 8, 10, 'proved')
    """

    mdp: FiniteMDP
    group: Group
    state_maps: Ints
    action_maps: Ints
    counted: Bools
    reward_residual: float
    transition_residual: float
    moves_ends: bool

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict; proved if the residuals allow it, because every pair was compared under every generator."""
        exact = self.reward_residual <= exact_reward_error(self.mdp) and self.transition_residual <= EXACT_DISTRIBUTION
        pairs = int((self.counted[:, None] & self.mdp.available).sum()) * len(self.state_maps)
        # An MDP without a counted pair still has the identity, which was compared with itself.
        return decide(Facts(checked=max(1, pairs), violations=int(not exact), exhaustive=True)).verdict

    @property
    def order(self) -> int:
        """The number of symmetries."""
        return self.group.order

    @property
    def name(self) -> str:
        """The name of the group, such as "C4" or "D4", if it has one; otherwise its order in words."""
        return self.group.name

    @cached_property
    def interchanges(self) -> int:
        """The number of ways to exchange interchangeable actions, state by state; `order` does not include them.

        The group of all (L, K), these exchanges included, has `order * interchanges` elements.
        """
        distinct = reduce_mdp(self.mdp).distinct
        copies = np.bincount(distinct[distinct >= 0])
        # Each class of n interchangeable actions can be rearranged in n! ways.
        return math.prod(math.factorial(number) for number in copies.tolist())

    @property
    def generators(self) -> tuple[Element, ...]:
        """The generators, as permutations of the states, in the order of `state_maps` and `action_maps`."""
        return self.group.generators

    @cached_property
    def orbit_map(self) -> Ints:
        """The orbit of each state, (S,), numbered by its lowest state."""
        return orbit_labels(self.state_maps)

    @cached_property
    def orbits(self) -> tuple[Ints, ...]:
        """The states of each orbit, in the order of their lowest states, including states that are not counted."""
        order = np.argsort(self.orbit_map, kind="stable")
        return tuple(np.split(order, np.cumsum(np.bincount(self.orbit_map))[:-1]))

    @cached_property
    def pair_orbit_map(self) -> Ints:
        """The orbit of each pair, (S, A), numbered by its lowest pair; interchangeable actions stay separate."""
        states, actions = self.mdp.n_states, self.mdp.n_actions
        # Pair (s, a) has number s * actions + a; a generator sends it to (L s, K_s a).
        images = self.state_maps[:, :, None] * actions + self.action_maps
        return orbit_labels(images.reshape(len(images), -1)).reshape(states, actions)

    @cached_property
    def preserves_initial(self) -> bool:
        """Whether every generator preserves the start distribution."""
        start = self.mdp.initial
        if start is None:
            return True
        # Start probabilities are inputs, not results: tolerance 64 rounding units of 1, as for distributions. Compare
        # with the start distribution on the images of states.
        return all(np.abs(start[images] - start).max() <= 64 * np.finfo(np.float64).eps for images in self.state_maps)

    def homomorphism(self) -> Homomorphism:
        """The group-structured homomorphism onto the orbits: the smallest abstract MDP by symmetry alone.

        Returns:
            An exact homomorphism; its abstract MDP has one state per orbit of counted states. If states are equivalent
            without a symmetry, `minimal_homomorphism` returns a coarser one.
        """
        onto_orbits = self._onto(self.orbit_map, self.pair_orbit_map)
        # If the maps do not extend to final states, these may not respect the orbits; then uncounted states are kept
        # separate.
        return onto_orbits if onto_orbits.is_exact else self._onto(*self._apart())

    def _onto(self, block: Ints, classes: Ints) -> Homomorphism:
        actions = ranked_in_blocks(block, np.where(self.mdp.available, classes, -1))
        return from_maps(self.mdp, block, actions, origin="orbits of all symmetries", group=self.group)

    def _apart(self) -> tuple[Ints, Ints]:
        """Orbits of the counted states; absorbing states are one block, and other uncounted states stay alone.

        Final states are mapped according to the pairs that lead to them, regardless of their own rows in the table.
        """
        states, actions = self.mdp.n_states, self.mdp.n_actions
        # Labels above all state numbers, so that they differ from every orbit's label.
        idle = np.where(self.mdp.absorbing, states, states + 1 + np.arange(states))
        pairs = states * actions + 1 + np.arange(states * actions).reshape(states, actions)
        idle_pairs = np.where(self.mdp.absorbing[:, None], states * actions, pairs)
        # One block for all absorbing states: their values are all 0.
        block = renumber(np.where(self.counted, self.orbit_map, idle))
        return block, np.where(self.counted[:, None], self.pair_orbit_map, idle_pairs)

    def symmetry(self, name: str | None = None) -> Symmetry:
        """The group as a claim about an environment that observes state indices, for `verify_env` and the wrappers.

        Args:
            name: the claim's name.

        Returns:
            Permutations of the states and, if K does not depend on the state, permutations of the actions; otherwise a
            function of action and state. The claim includes the start distribution if it is known and preserved.

        If the maps do not extend to final states, observations of final states would violate the claim, although no
        value depends on them. The claim then uses only the symmetries that extend, which may form a smaller group.

        Raises:
            SpecError: the group of that claim is trivial.

        Example:
            >>> from symcheck.mdp.worlds import torus_chase
            >>> torus_chase().automorphism_group().symmetry().group.name
            'D4'
        """
        from symcheck.symmetry.symmetry import Symmetry  # loads gymnasium

        # Wrappers map final states too; the generators that extend to them may generate a smaller group.
        if not self.moves_ends:
            return self._moving_ends().symmetry(name)
        actions = [self._action_entry(index) for index in range(len(self.state_maps))]
        return Symmetry(
            name or f"{self.name} of {self.mdp.n_states} states",
            self.group,
            self.state_maps.tolist(),
            actions,
            initial=self.mdp.initial is not None and self.preserves_initial,
        )

    def _moving_ends(self) -> AutomorphismGroup:
        keeping_ends = find_automorphisms(self.mdp, ends="kept")
        if keeping_ends.order == 1:
            raise SpecError(
                f"{self.name} preserves values, but does not extend to the states in which episodes end.",
                where="AutomorphismGroup.symmetry",
                remedy="Use homomorphism(), which needs no images of final states.",
            )
        return keeping_ends

    def _action_entry(self, index: int) -> object:
        """One permutation if all counted states share it, otherwise a function of the state."""
        maps = self.action_maps[index]
        # States in which no action is taken may have any action map.
        counted_maps = maps[self.counted]
        if len(counted_maps) and (counted_maps == counted_maps[0]).all():
            return counted_maps[0].tolist()

        def image_of(action: object, state: object) -> np.int64:
            return np.int64(maps[int(state), int(action)])  # type: ignore[call-overload]

        return image_of

    def summary(self) -> str:
        """One sentence with the order, the orbits and the enumeration."""
        states = f"{int(self.counted.sum()):,} counted states (of {self.mdp.n_states:,})"
        if self.order == 1:
            return f"no symmetry except the identity: all {states} can be distinguished"
        orbits = len(np.unique(self.orbit_map[self.counted]))
        return f"{self.name}, order {self.order:,}: {orbits:,} orbits of {states}; every pair enumerated"

    def __repr__(self) -> str:
        return f"AutomorphismGroup({self.summary()})"


def find_automorphisms(
    mdp: FiniteMDP, *, method: str = "auto", preserve_initial: bool = False, ends: str = "merged"
) -> AutomorphismGroup:
    """See `TabularMDP.automorphism_group`."""
    if method not in ("auto", "igraph", "builtin"):
        raise SpecError(f"expected 'auto', 'igraph' or 'builtin', got {method!r}.", where="method")
    if ends not in ("merged", "kept"):
        raise SpecError(f"expected 'merged' or 'kept', got {ends!r}.", where="ends")
    structure = reduce_mdp(mdp, preserve_initial=preserve_initial, keep_ends=ends == "kept")
    # No pair is counted: there is nothing to permute.
    if not len(structure.owner):
        return _verify_maps(mdp, structure, named_group([Element.identity(1)], 1), [np.zeros(0, dtype=np.int64)])
    # igraph handles larger MDPs; the built-in search has no dependencies.
    use_igraph = method == "igraph" or (method == "auto" and search_igraph.is_installed())
    generators, order = (search_igraph if use_igraph else search_builtin).search(structure)
    count = len(structure.states)
    # An empty generating set becomes the identity, which every group has.
    elements = [Element(tuple(images.tolist())) for images in generators] or [Element.identity(max(count, 1))]
    known = named_group(elements, order)
    # The search numbers counted states first; the remaining vertices are not states of the MDP.
    return _verify_maps(mdp, structure, known, [np.array(g.images[:count], dtype=np.int64) for g in known.generators])


def _verify_maps(mdp: FiniteMDP, structure: Structure, known: Group, generators: list[Ints]) -> AutomorphismGroup:
    """Extend local permutations to all states, derive action maps, enumerate."""
    everywhere = [extend_symmetry(mdp, structure, images) for images in generators]
    state_maps = np.stack([extension.states for extension in everywhere])
    action_maps = np.stack([extension.actions for extension in everywhere])
    counted = mdp.acted_in
    # Verify both equations on every counted pair: the result depends neither on hashes nor on the search.
    residuals = [_residuals(mdp, counted, extension.states, extension.actions) for extension in everywhere]
    reward, transition = (max(part) for part in zip(*residuals, strict=True))
    if not (reward <= exact_reward_error(mdp) and transition <= EXACT_DISTRIBUTION):
        raise SymcheckError(
            f"the search returned maps that are not a symmetry: rewards differ by {reward:.3g}, and "
            f"distributions by {transition:.3g}.",
            where="automorphism_group",
            remedy="Some values of the model differ by more than rounding but less than 1e-9; round them.",
        )
    group = Group(
        [Element(tuple(images.tolist())) for images in state_maps],
        name=known.name,
        generator_names=known.generator_names,
        order=known.order,
        # Passed as a function: relators of a large group are derived only on request.
        relators=(lambda: known.relators),
    )
    return AutomorphismGroup(
        mdp,
        group,
        state_maps,
        action_maps,
        counted,
        reward,
        transition,
        all(extension.moves_ends for extension in everywhere),
    )


def _residuals(mdp: FiniteMDP, counted: Bools, states: Ints, actions: Ints) -> tuple[float, float]:
    """The largest differences of rewards and of distributions over all counted pairs, by enumeration."""
    _require_permutations(counted, states, actions)
    # Pairs of counted states, as row numbers s * actions + a.
    pairs = np.flatnonzero((counted[:, None] & mdp.available).reshape(-1))
    s, a = np.divmod(pairs, mdp.n_actions)
    images = states[s] * mdp.n_actions + actions[s, a]
    rewards = mdp.rewards.reshape(-1)
    # Distributions are compared on counted states; of other outcomes only the total is compared.
    living = np.flatnonzero(counted)
    position = np.full(mdp.n_states, -1, dtype=np.int64)
    position[states[living]] = np.arange(len(living))
    of_pairs = mdp.transitions[pairs][:, living]
    of_images = mdp.transitions[images][:, states[living]]  # column j is the image of living[j]
    apart: Floats = np.asarray(abs(sparse.csr_array(of_pairs - of_images)).sum(axis=1)).reshape(-1)
    # Terminations and transitions into absorbing states both end the episode: the missing mass must agree too.
    gone = np.abs(np.asarray(of_pairs.sum(axis=1)).reshape(-1) - np.asarray(of_images.sum(axis=1)).reshape(-1))
    return float(np.abs(rewards[pairs] - rewards[images]).max(initial=0.0)), float((apart + gone).max(initial=0.0))


def _require_permutations(counted: Bools, states: Ints, actions: Ints) -> None:
    # L must permute the states, each K_s the actions, and counted states must map to counted states.
    onto = np.sort(states) == np.arange(len(states))
    rows = np.sort(actions[counted], axis=1) == np.arange(actions.shape[1])
    if not onto.all() or not rows.all() or not counted[states[counted]].all():
        raise SymcheckError("the search returned maps that are not one-to-one.", where="automorphism_group")
