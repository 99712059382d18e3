"""Which action map goes with a state map: read off what actions do at a few states and at their images.

No action map is guessed. Under a symmetry, the outcome of action a at s, moved by L, is the outcome of K a at L s; each
action (or each component of a Box action, nudged both ways) is matched to the one whose outcome fits best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from scipy.optimize import linear_sum_assignment

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.structure import action_middle, action_reach, probe_actions
from symcheck.errors import TargetError

_STATES, _STATES_RANDOM = 4, 8  # at which actions are tried
MOST_ACTIONS = 64  # tried one by one at every state; a match needs all of them
_REPEATS = 9  # of a random step; a match needs no more, and the screen looks closer
_TIE = 1e-6  # misfits are relative to a typical step: below, an action stays where it is


@dataclass(frozen=True)
class ActionProbes:
    """Outcomes of every probe action at a few states.

    Attributes:
        states: shape (k, dim).
        actions: the probe actions.
        outcomes: shape (k, actions, dim).
        scale: per state coordinate, how far a step typically moves it, shape (dim,).
    """

    states: Floats
    actions: list[Any]
    outcomes: Floats
    scale: Floats


def refuse_large(space: spaces.Space[Any]) -> None:
    """Refuse action spaces that cannot be searched.

    Args:
        space: the environment's action space.

    Raises:
        TargetError: with the size and the way out.

    Example:
        >>> refuse_large(spaces.MultiDiscrete([9] * 6))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.TargetError: action space: expected Discrete or Box actions, got ... (531,441 joint actions)...
    """
    way_out = (
        "Wrap the environment with fewer, Discrete actions, or write the symmetry down and check it with verify-env."
    )
    if isinstance(space, spaces.Box):
        return
    if isinstance(space, spaces.Discrete):
        if int(space.n) > MOST_ACTIONS:
            raise TargetError(
                f"expected at most {MOST_ACTIONS} discrete actions to match, got {int(space.n):,}.",
                where="action space",
                remedy=way_out,
            )
        return
    raise TargetError(
        f"expected Discrete or Box actions, got {space}{_joint_size(space)}.", where="action space", remedy=way_out
    )


def _joint_size(space: spaces.Space[Any]) -> str:
    if isinstance(space, spaces.MultiDiscrete):
        return f" ({int(np.prod(space.nvec.astype(object))):,} joint actions)"
    if isinstance(space, spaces.MultiBinary):
        return f" ({2 ** int(np.prod(space.shape)):,} joint actions)"
    return ""


def try_actions(lab: Laboratory, scale: Floats) -> ActionProbes:
    """Step every probe action at a few states of the pool.

    Args:
        lab: the environment.
        scale: how far a step typically moves every coordinate, shape (dim,).

    Returns:
        What followed; costs 4 x (discrete actions, or 2 x components) steps.
    """
    count = _STATES if lab.kind == "deterministic" else _STATES_RANDOM
    rows = lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)
    states = lab.states[rows]
    actions = _probes(lab)
    return ActionProbes(states, actions, _tabulate_outcomes(lab, states, actions), scale)


def _probes(lab: Laboratory) -> list[Any]:
    count = lab.count_of_actions
    if count is not None:
        return [lab.action(a) for a in range(count)]
    if isinstance(lab.action_space, spaces.Box):
        return probe_actions(lab.action_space)
    raise TargetError(f"expected Discrete or Box actions, got {lab.action_space}.", where="action space")


def _tabulate_outcomes(lab: Laboratory, states: Floats, actions: list[Any]) -> Floats:
    return np.stack(
        [lab.outcomes(np.repeat(state[None], len(actions), axis=0), actions, most=_REPEATS).states for state in states]
    )


def matching_action_map(lab: Laboratory, state_map: SignedMap, probes: ActionProbes) -> SignedMap:
    """The action map that fits a state map best; whether it fits well is for the screening to say.

    Args:
        lab: the environment.
        state_map: L on states.
        probes: outcomes at the states themselves.

    Returns:
        A permutation of discrete actions, or a signed permutation (with offset) of the components of a Box action.

    Raises:
        TargetError: the environment refuses the image of a state.
    """
    images = _tabulate_outcomes(lab, state_map.apply(probes.states), probes.actions)
    expected = state_map.apply(probes.outcomes)
    gaps = lab.difference(expected[:, :, None, :], images[:, None, :, :])  # (states, from, to, dim)
    # Clipped: one coordinate that hits a wall must not outweigh all others.
    misfit = np.minimum(np.abs(gaps) / probes.scale, 1e3).sum(axis=-1).mean(axis=0)
    if lab.count_of_actions is not None:
        # Actions that did the same are told apart by nothing: each cell's own action goes where the cell goes.
        usual = state_map.index if len(misfit) == state_map.dim else range(len(misfit))
        tied = np.ones_like(misfit)
        tied[np.arange(len(misfit)), list(usual)] = 0
        _, index = linear_sum_assignment(misfit + _TIE * tied)
        return SignedMap.of(index)
    return _box_map(lab.action_space, misfit)


def _box_map(space: spaces.Space[Any], misfit: Floats) -> SignedMap:
    if not isinstance(space, spaces.Box):
        raise TargetError(f"expected Box actions, got {space}.", where="action space")
    # Probes come in pairs, +component and -component.
    up, down = slice(0, None, 2), slice(1, None, 2)
    kept = misfit[up, up] + misfit[down, down]
    turned = misfit[up, down] + misfit[down, up]
    # Components of another width cannot be exchanged: their images would leave the space.
    reach = action_reach(space)
    unlike = np.abs(reach[:, None] - reach[None, :]) > 1e-6 * (reach[:, None] + reach[None, :])
    best = np.minimum(kept, turned + _TIE) + _TIE * (1 - np.eye(len(kept))) + 1e6 * unlike
    _, index = linear_sum_assignment(best)
    at = np.arange(len(index))
    sign = np.where(kept[at, index] <= turned[at, index] + _TIE, 1, -1)
    return SignedMap.about(index, sign, action_middle(space))
