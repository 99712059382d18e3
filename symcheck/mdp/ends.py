"""Symmetries of the states that count, extended to the whole MDP: actions, and the states in which episodes end.

Final states carry no value, so no symmetry has to know them. An environment shows them all the same, and a claim about
it must say where they go: a final state is known by how the counted pairs lead to it, and its image must be led to in
the same way by their images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcheck.errors import SymcheckError
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.sparse_rows import Csr, Hashes, Ints, paired, row_of_entry
from symcheck.mdp.structure import Structure
from symcheck.mdp.value_classes import ROUNDING, ValueClasses


@dataclass(frozen=True)
class Extended:
    """A symmetry on everything.

    Attributes:
        states: the image of each state, (S,).
        actions: the image of each action in each state, (S, A); the identity where a state does not count.
        moves_ends: whether final states could be moved along.
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


def extended(mdp: FiniteMDP, structure: Structure, images: Ints) -> Extended:
    """Extend a permutation of the counted states.

    Args:
        mdp: the MDP.
        structure: its reduced structure.
        images: of the counted states, in the structure's numbers.

    Returns:
        Maps on all states and actions.

    Raises:
        SymcheckError: the permutation is no symmetry of the structure.
    """
    if not len(structure.owner):  # no state counts
        return Extended(np.arange(mdp.n_states), np.tile(np.arange(mdp.n_actions), (mdp.n_states, 1)), True)
    distinct_images = structure.action_images(images)
    if distinct_images is None:
        raise SymcheckError("the search proposed a permutation that is no symmetry.", where="automorphism_group")
    states = np.arange(mdp.n_states)
    states[structure.states] = structure.states[images]
    final = _final_outcomes(mdp, structure)
    moves = _move_ends(structure, final, distinct_images, states)
    actions = _action_map(mdp, structure, distinct_images, final, states)
    consistent = moves and _consistent(mdp, final, states, actions)
    uniform = _uniform(mdp, structure, distinct_images, final if consistent else None, states)
    return Extended(states, actions if uniform is None else np.tile(uniform, (mdp.n_states, 1)), consistent)


def _final_outcomes(mdp: FiniteMDP, structure: Structure) -> _Ends:
    """Ends proper, and steps into absorbing states; told apart by their weight class."""
    pairs, targets, values, kinds = [], [], [], []
    counted = mdp.acted_in
    sources: list[tuple[Csr, int]] = [(mdp.transitions, 0)]
    if mdp.terminations is not None:
        sources.append((mdp.terminations, 1))
    for law, kind in sources:
        row = row_of_entry(law.indptr.astype(np.int64))
        keep = (structure.distinct[row] >= 0) & ((kind == 1) | ~counted[law.indices])
        pairs.append(row[keep])
        targets.append(law.indices[keep].astype(np.int64))
        values.append(law.data[keep])
        kinds.append(np.full(int(keep.sum()), kind, dtype=np.int64))
    weight = ValueClasses(ROUNDING).of(np.concatenate(values)) * 2 + np.concatenate(kinds)
    return _Ends(np.concatenate(pairs), np.concatenate(targets), weight)


def _led_to(final: _Ends, action: Ints, states: int) -> Hashes:
    """For each state, how it is reached as an end, hashed; 0 for states that are none."""
    found = np.zeros(states, dtype=np.uint64)
    np.add.at(found, final.target, paired(action[final.pair], final.weight))
    return found


def _move_ends(structure: Structure, final: _Ends, distinct_images: Ints, states: Ints) -> bool:
    """Send final states to those that are led to as their images must be; whether that is possible."""
    here = _led_to(final, structure.distinct, len(states))
    moved = np.where(structure.distinct >= 0, distinct_images[structure.distinct], -1)
    there = _led_to(final, moved, len(states))
    counted = structure.states
    if (there[counted] != here[states[counted]]).any():
        return False
    loose = np.setdiff1d(np.unique(final.target), counted)
    asked, offered = loose[np.argsort(there[loose], kind="stable")], loose[np.argsort(here[loose], kind="stable")]
    if (there[asked] != here[offered]).any():
        return False
    states[asked] = offered
    return True


def _action_map(mdp: FiniteMDP, structure: Structure, distinct_images: Ints, final: _Ends, states: Ints) -> Ints:
    """K: interchangeable actions go to those that end in the images of their final states, else in their order.

    Actions that a state does not have go to those that its image does not have, so that K is one to one.
    """
    actions = np.tile(np.arange(mdp.n_actions), (mdp.n_states, 1))
    rows = np.flatnonzero(structure.distinct >= 0)
    to = distinct_images[structure.distinct[rows]]
    here, there = (
        _endings(final, target, len(structure.distinct))[rows] for target in (final.target, states[final.target])
    )
    offered = np.lexsort((rows, here, structure.distinct[rows]))
    asked = np.lexsort((rows, there, to))
    actions.reshape(-1)[rows[asked]] = rows[offered] % mdp.n_actions
    gone = np.flatnonzero(mdp.acted_in[:, None] & ~mdp.available)
    asked = np.lexsort((gone, states[gone // mdp.n_actions]))
    actions.reshape(-1)[gone[asked]] = gone % mdp.n_actions
    return actions


def _uniform(
    mdp: FiniteMDP, structure: Structure, distinct_images: Ints, final: _Ends | None, states: Ints
) -> Ints | None:
    """One permutation of the actions that serves in every counted state, where there is one; else None.

    Actions that do the same in all states are sent to each other's images in their order, so that maps of several
    generators compose.
    """
    if mdp.n_actions > _MOST_COMPARED:
        return None
    shape = (mdp.n_states, mdp.n_actions)
    counted = np.flatnonzero(mdp.acted_in)
    distinct = structure.distinct.reshape(shape)
    asked = np.where(distinct >= 0, distinct_images[distinct], -1)[counted]
    offered = distinct[states[counted]]
    fits = (asked[:, :, None] == offered[:, None, :]).all(axis=0)
    alike = (distinct[counted][:, :, None] == distinct[counted][:, None, :]).all(axis=0)
    if final is not None:
        pairs = len(structure.distinct)
        here = _endings(final, final.target, pairs).reshape(shape)
        there = _endings(final, states[final.target], pairs).reshape(shape)
        fits &= (there[counted][:, :, None] == here[states[counted]][:, None, :]).all(axis=0)
        alike &= (here[counted][:, :, None] == here[counted][:, None, :]).all(axis=0)
    chosen = np.full(mdp.n_actions, -1, dtype=np.int64)
    for action in range(mdp.n_actions):
        rank = int(alike[action, :action].sum())
        images = np.flatnonzero(fits[action])
        if len(images) <= rank:
            return None
        chosen[action] = images[rank]
    return chosen if len(np.unique(chosen)) == mdp.n_actions else None


_MOST_COMPARED = 64
"""Every two actions are compared in every state: 64 of them in 10,000 states take 40 MB."""


def _endings(final: _Ends, target: Ints, pairs: int) -> Hashes:
    found = np.zeros(pairs, dtype=np.uint64)
    np.add.at(found, final.pair, paired(target, final.weight))
    return found


def _consistent(mdp: FiniteMDP, final: _Ends, states: Ints, actions: Ints) -> bool:
    """Whether every pair ends in the images of where its original ends."""
    rows = np.arange(mdp.n_states * mdp.n_actions)
    images = states[rows // mdp.n_actions] * mdp.n_actions + actions.reshape(-1)
    here = _endings(final, final.target, len(rows))
    there = _endings(final, states[final.target], len(rows))
    led = np.unique(final.pair)
    return bool((here[images[led]] == there[led]).all())
