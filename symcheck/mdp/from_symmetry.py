"""Group-structured homomorphisms: the pairs of one orbit of a given symmetry become one abstract pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Ints
from symcheck.errors import SpecError
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.homomorphism import Homomorphism, from_maps, ranked_in_blocks
from symcheck.mdp.sparse_rows import orbit_labels
from symcheck.symmetry.symmetry import Symmetry

if TYPE_CHECKING:
    from symcheck.symmetry.bound import BoundSymmetry


def homomorphism_from_symmetry(
    mdp: FiniteMDP, symmetry: Symmetry, *, observations: npt.ArrayLike | None = None, approximate: bool = False
) -> Homomorphism:
    """See `TabularMDP.homomorphism_from`."""
    state_maps, action_maps = tabulate_maps(mdp, symmetry, observations)
    # The image of pair (s, a) as a row number, one table per generator.
    pairs = state_maps[:, :, None] * mdp.n_actions + action_maps
    block = orbit_labels(state_maps)
    # Orbits of pairs under the same generators.
    classes = orbit_labels(pairs.reshape(len(pairs), -1)).reshape(mdp.available.shape)
    homomorphism = from_maps(
        mdp,
        block,
        ranked_in_blocks(block, np.where(mdp.available, classes, -1)),
        origin=f"orbits of {symmetry.name}",
        group=symmetry.group,
    )
    if not (homomorphism.is_exact or approximate):
        raise SpecError(
            f"{symmetry.name} is not a symmetry of this MDP: within an orbit, rewards deviate from their average by "
            f"up to {homomorphism.reward_error:.3g} and next-state distributions by up to "
            f"{homomorphism.transition_error:.3g} (L1).",
            where="homomorphism_from",
            remedy="Pass approximate=True for the averaged MDP, with a bound on its cost in value.",
        )
    return homomorphism


def tabulate_maps(mdp: FiniteMDP, symmetry: Symmetry, observations: npt.ArrayLike | None) -> tuple[Ints, Ints]:
    """Tabulate L and K of every generator.

    Args:
        mdp: the MDP.
        symmetry: acts on state numbers, or on `observations`.
        observations: the observation of each state, (S, ...); None if it is the state's number.

    Returns:
        Images of the states, (generators, S), and of the actions in each state, (generators, S, A).

    Raises:
        SpecError: the symmetry does not fit, or an image is not an observation of a state.
    """
    # Without observations, the observation of a state is its number.
    shown = np.arange(mdp.n_states) if observations is None else np.asarray(observations)
    # Observations must be distinct, otherwise images could not be looked up.
    if len(shown) != mdp.n_states or len(np.unique(shown, axis=0)) != mdp.n_states:
        raise SpecError(
            f"expected {mdp.n_states} distinct observations, one per state; got {len(shown)} of which "
            f"{len(np.unique(shown, axis=0))} are distinct.",
            where="observations",
        )
    if symmetry.is_continuous:
        raise SpecError(
            f"expected a finite group, got {symmetry.group.name}: finitely many states have finite orbits only.",
            where=symmetry.name,
            remedy="Claim a finite subgroup that maps states to states, for instance C4.",
        )
    bound = _bind_symmetry(mdp, symmetry, None if observations is None else shown)
    words = [(index,) for index in range(len(symmetry.group.generators))]
    states = np.stack([_match_states(shown, bound.observation_batch(word, shown), symmetry.name) for word in words])
    actions = np.empty((len(words), mdp.n_states, mdp.n_actions), dtype=np.int64)
    for index, word in enumerate(words):
        # K may depend on the state: map one action in all states at a time.
        for action in range(mdp.n_actions):
            chosen = np.full(mdp.n_states, action, dtype=np.int64)
            actions[index, :, action] = np.asarray(bound.action_batch(word, chosen, shown), dtype=np.int64)
    return states, actions


def _bind_symmetry(mdp: FiniteMDP, symmetry: Symmetry, observations: npt.NDArray[Any] | None) -> BoundSymmetry:
    from gymnasium import spaces

    choices = spaces.Discrete(mdp.n_actions)
    if observations is None:
        return symmetry.bind(spaces.Discrete(mdp.n_states), choices)
    # Unbounded: only the shape of the space is used.
    space = spaces.Box(-np.inf, np.inf, observations.shape[1:], np.float64)
    return symmetry.bind(space, choices)


def _match_states(shown: npt.NDArray[Any], images: Any, name: str) -> Ints:
    """The state whose observation equals each image."""
    # Look up by content: images are newly computed objects.
    table = {_key(observation): state for state, observation in enumerate(shown)}
    numbers = np.array([table.get(_key(observation), -1) for observation in np.asarray(images)], dtype=np.int64)
    if (numbers < 0).any():
        state = int(np.flatnonzero(numbers < 0)[0])
        raise SpecError(
            f"{name} maps state {state} to an observation that no state has "
            f"({int((numbers < 0).sum())} states are affected).",
            where="homomorphism_from",
        )
    return numbers


def _key(observation: Any) -> bytes:
    """A key that is equal for equal observations: it ignores dtypes and signed zeros, and rounds to 9 decimals."""
    rounded = np.round(np.asarray(observation, dtype=np.float64), 9) + 0.0
    return rounded.tobytes()
