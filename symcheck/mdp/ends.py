"""Extends symmetries of the counted states to actions and to final states (those in which episodes end).

Final states have value 0, so a symmetry of the values need not map them. An environment still returns their
observations, and a claim about it must map them too. A final state is characterised by the counted pairs that lead to
it; the images of these pairs must lead to its image in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Hashes, Ints
from symcheck.errors import SymcheckError
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.sparse_rows import Csr, hash_pairs, row_of_entry
from symcheck.mdp.structure import Structure
from symcheck.mdp.value_classes import ROUNDING, ValueClasses


@dataclass(frozen=True)
class Extended:
    """A symmetry of all states and actions.

    Attributes:
        states: the image of each state, (S,).
        actions: the image of each action in each state, (S, A); the identity in states that are not counted.
        moves_ends: whether the map extends to final states.
    """

    states: Ints
    actions: Ints
    moves_ends: bool


@dataclass(frozen=True)
class _Ends:
    """How counted pairs lead to final states: parallel arrays, one entry per (pair, final state)."""

    pair: Ints
    target: Ints
    weight: Ints


def extend_symmetry(mdp: FiniteMDP, structure: Structure, images: Ints) -> Extended:
    """Extend a permutation of the counted states.

    Args:
        mdp: the MDP.
        structure: the reduced structure of the MDP.
        images: the images of the counted states, in the numbering of the structure.

    Returns:
        Maps on all states and actions.

    Raises:
        SymcheckError: the permutation is not a symmetry of the structure.
    """
    if not len(structure.owner):  # no state is counted
        return Extended(np.arange(mdp.n_states), np.tile(np.arange(mdp.n_actions), (mdp.n_states, 1)), True)
    distinct_images = structure.action_images(images)
    if distinct_images is None:
        raise SymcheckError("the search proposed a permutation that is not a symmetry.", where="automorphism_group")
    states = np.arange(mdp.n_states)
    # Convert local numbers of the reduced structure to those of the MDP; other states are fixed for now.
    states[structure.states] = structure.states[images]
    final = _final_outcomes(mdp, structure)
    moves = _move_ends(structure, final, distinct_images, states)
    actions = _action_map(mdp, structure, distinct_images, final, states)
    # First try to map the final states too; give up if no action map is consistent with that.
    consistent = moves and _consistent(mdp, final, states, actions)
    uniform = _uniform(mdp, structure, distinct_images, final if consistent else None, states)
    return Extended(states, actions if uniform is None else np.tile(uniform, (mdp.n_states, 1)), consistent)


def _final_outcomes(mdp: FiniteMDP, structure: Structure) -> _Ends:
    """Ends proper, and steps into absorbing states; distinguished by their weight class."""
    pairs, targets, values, kinds = [], [], [], []
    counted = mdp.acted_in
    sources: list[tuple[Csr, int]] = [(mdp.transitions, 0)]
    if mdp.terminations is not None:
        sources.append((mdp.terminations, 1))
    for distribution, kind in sources:
        row = row_of_entry(distribution.indptr.astype(np.int64))
        # A transition counts as an end if the next state is not counted; a termination always does.
        keep = (structure.distinct[row] >= 0) & ((kind == 1) | ~counted[distribution.indices])
        pairs.append(row[keep])
        targets.append(distribution.indices[keep].astype(np.int64))
        values.append(distribution.data[keep])
        kinds.append(np.full(int(keep.sum()), kind, dtype=np.int64))
    # Odd and even classes: ends proper and steps into absorbing states never match.
    weight = ValueClasses(ROUNDING).of(np.concatenate(values)) * 2 + np.concatenate(kinds)
    return _Ends(np.concatenate(pairs), np.concatenate(targets), weight)


def _led_to(final: _Ends, action: Ints, states: int) -> Hashes:
    """A hash, for each state, of the pairs that lead to it as a final state; 0 for other states."""
    hashes = np.zeros(states, dtype=np.uint64)
    # A sum of hashes of (pair, weight), independent of the order of the pairs.
    np.add.at(hashes, final.target, hash_pairs(action[final.pair], final.weight))
    return hashes


def _move_ends(structure: Structure, final: _Ends, distinct_images: Ints, states: Ints) -> bool:
    """Map each final state to the one reached by the images of its pairs; return whether that is possible."""
    # Hashes of how each state is reached, and of how its image must be reached.
    reached_by = _led_to(final, structure.distinct, len(states))
    # Label pairs by their images; uncounted pairs keep the label -1.
    moved = np.where(structure.distinct >= 0, distinct_images[structure.distinct], -1)
    asked_for = _led_to(final, moved, len(states))
    counted = structure.states
    # A counted state that is also an end has its image already: it must fit.
    if (asked_for[counted] != reached_by[states[counted]]).any():
        return False
    loose = np.setdiff1d(np.unique(final.target), counted)
    # Sort both by these hashes, so that equal hashes have equal positions.
    asked, offered = (
        loose[np.argsort(asked_for[loose], kind="stable")],
        loose[np.argsort(reached_by[loose], kind="stable")],
    )
    if (asked_for[asked] != reached_by[offered]).any():
        return False
    states[asked] = offered
    return True


def _action_map(mdp: FiniteMDP, structure: Structure, distinct_images: Ints, final: _Ends, states: Ints) -> Ints:
    """K: interchangeable actions map to actions that end in the images of their final states, otherwise in order.

    Unavailable actions of a state map to unavailable actions of its image, so that K is bijective.
    """
    actions = np.tile(np.arange(mdp.n_actions), (mdp.n_states, 1))
    rows = np.flatnonzero(structure.distinct >= 0)
    # The distinct action to which each pair must map.
    to = distinct_images[structure.distinct[rows]]
    own_ends, image_ends = (
        _endings(final, target, len(structure.distinct))[rows] for target in (final.target, states[final.target])
    )
    # Among interchangeable actions, match those with the same final states, the rest in order.
    offered = np.lexsort((rows, own_ends, structure.distinct[rows]))
    asked = np.lexsort((rows, image_ends, to))
    actions.reshape(-1)[rows[asked]] = rows[offered] % mdp.n_actions
    # Unavailable actions are matched in order: K_s must be a permutation.
    gone = np.flatnonzero(mdp.acted_in[:, None] & ~mdp.available)
    asked = np.lexsort((gone, states[gone // mdp.n_actions]))
    actions.reshape(-1)[gone[asked]] = gone % mdp.n_actions
    return actions


def _uniform(
    mdp: FiniteMDP, structure: Structure, distinct_images: Ints, final: _Ends | None, states: Ints
) -> Ints | None:
    """One permutation of the actions that is valid in every counted state; None if there is none.

    Actions that are interchangeable in all states are matched in order, so that the maps of several generators compose.
    """
    if mdp.n_actions > _MOST_COMPARED:
        return None
    shape = (mdp.n_states, mdp.n_actions)
    counted = np.flatnonzero(mdp.acted_in)
    distinct = structure.distinct.reshape(shape)
    # asked[s, a]: the distinct action to which pair (s, a) must map; offered[s, b]: the distinct action of action b in
    # the image state.
    asked = np.where(distinct >= 0, distinct_images[distinct], -1)[counted]
    offered = distinct[states[counted]]
    # fits[a, b]: whether mapping a to b is valid in every counted state.
    fits = (asked[:, :, None] == offered[:, None, :]).all(axis=0)
    # alike[a, b]: whether a and b are interchangeable everywhere.
    alike = (distinct[counted][:, :, None] == distinct[counted][:, None, :]).all(axis=0)
    if final is not None:
        pairs = len(structure.distinct)
        own_ends = _endings(final, final.target, pairs).reshape(shape)
        image_ends = _endings(final, states[final.target], pairs).reshape(shape)
        # The map must also respect final states.
        fits &= (image_ends[counted][:, :, None] == own_ends[states[counted]][:, None, :]).all(axis=0)
        alike &= (own_ends[counted][:, :, None] == own_ends[counted][:, None, :]).all(axis=0)
    chosen = np.full(mdp.n_actions, -1, dtype=np.int64)
    # The k-th of several interchangeable actions maps to the k-th action that fits.
    for action in range(mdp.n_actions):
        rank = int(alike[action, :action].sum())
        images = np.flatnonzero(fits[action])
        if len(images) <= rank:
            return None
        chosen[action] = images[rank]
    return chosen if len(np.unique(chosen)) == mdp.n_actions else None


_MOST_COMPARED = 64
"""Maximum number of actions: all pairs of actions are compared in every state; 64 actions in 10,000 states take 40
MB."""


def _endings(final: _Ends, target: Ints, pairs: int) -> Hashes:
    hashes = np.zeros(pairs, dtype=np.uint64)
    np.add.at(hashes, final.pair, hash_pairs(target, final.weight))
    return hashes


def _consistent(mdp: FiniteMDP, final: _Ends, states: Ints, actions: Ints) -> bool:
    """Whether the image of every pair ends in the images of the pair's final states."""
    rows = np.arange(mdp.n_states * mdp.n_actions)
    images = states[rows // mdp.n_actions] * mdp.n_actions + actions.reshape(-1)
    own_ends = _endings(final, final.target, len(rows))
    image_ends = _endings(final, states[final.target], len(rows))
    # Only pairs with a final state need to be compared.
    led = np.unique(final.pair)
    return bool((own_ends[images[led]] == image_ends[led]).all())
