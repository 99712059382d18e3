"""The action map that belongs to a state map, inferred from the effects of actions at a few states and their images.

Under a symmetry, L maps the outcome of action a at s to the outcome of K a at L s. Each action (or each component of a
Box action, changed in both directions) is matched to the one whose outcome fits best.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Bools, Floats
from symcheck.discovery.action_values import values_of
from symcheck.discovery.assignment import assign
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.structure import CHANCE, action_middle, action_reach, probe_actions
from symcheck.errors import TargetError

_STATES, _STATES_RANDOM, _STATES_NOISY = 4, 8, 24  # number of states at which actions are tried
MOST_ACTIONS = 64  # maximum number of actions: a match needs every action at every state
_REPEATS = 9  # repetitions of a random step; enough for a match, because screening is more precise
_FURTHER = 24  # states searched for those that distinguish actions
_MOST_FURTHER = 8
_MOST_STEPS = 4_000  # while some actions still coincide: a key or a lever works in few states
_LOOKING = 0.2  # of the time budget
# smallest difference of rewards or terminations, and the misfit that one costs, relative to a typical step
_TOLD = 1e-3
_FEW_ACTIONS, _FEW_COMPONENTS = 4, 2  # up to these numbers, all action maps are listed
_TIE = 1e-6  # relative to a typical step; if misfits differ by less, the component keeps its place


@dataclass(frozen=True)
class ActionProbes:
    """Outcomes of every probe action at a few states.

    Attributes:
        states: shape (k, dim).
        outcomes: next state, reward and termination, shape (k, probes, dim + 2).
        scale: typical change of every state coordinate in one step, shape (dim,).
    """

    states: Floats
    outcomes: Floats
    scale: Floats


def refuse_large(space: spaces.Space[Any]) -> None:
    """Reject action spaces that are too large to search.

    Args:
        space: the environment's action space.

    Raises:
        TargetError: the space is too large; the message gives the size and a workaround.

    Example:
        >>> refuse_large(spaces.MultiDiscrete([9] * 8))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        symcheck.errors.TargetError: action space: the search can match at most 64 values of all action components ...
    """
    way_out = (
        "Wrap the environment with fewer, Discrete actions, or write the symmetry down and check it with verify-env."
    )
    if isinstance(space, spaces.Box):
        return
    values = values_of(space)
    if values is None:
        raise TargetError(
            f"only Discrete, MultiDiscrete, MultiBinary and Box actions can be searched, got {space}.",
            where="action space",
            remedy=way_out,
        )
    if values.total > MOST_ACTIONS:
        counted = "discrete actions" if values.single else "values of all action components together"
        raise TargetError(
            f"the search can match at most {MOST_ACTIONS} {counted}, but there are {values.total:,}.",
            where="action space",
            remedy=way_out,
        )


def list_few(lab: Laboratory) -> list[SignedMap]:
    """All action maps if there are few; empty if there are many.

    Args:
        lab: the environment.

    Returns:
        Permutations of at most four Discrete actions, signed permutations of at most two components of a Box.
    """
    if lab.values is not None and lab.values.single and lab.values.total <= _FEW_ACTIONS:
        return [SignedMap.of(images) for images in itertools.permutations(range(lab.values.total))]
    size = int(np.prod(lab.action_space.shape or (1,)))
    if not isinstance(lab.action_space, spaces.Box) or size > _FEW_COMPONENTS:
        return []
    middle = action_middle(lab.action_space)
    signs = itertools.product((1, -1), repeat=size)
    return [SignedMap.about(index, sign, middle) for sign in signs for index in itertools.permutations(range(size))]


def try_actions(lab: Laboratory, scale: Floats) -> ActionProbes:
    """Step every probe action at a few states of the pool; at more states while single actions coincide.

    Args:
        lab: the environment.
        scale: typical change of every coordinate in one step, shape (dim,).

    Returns:
        The outcomes. The cost is 4 to 28 x (values of actions, or 2 x components) steps, or 4,000 if some coincide.
    """
    count = _STATES if lab.kind == "deterministic" else _STATES_RANDOM if lab.is_whole else _STATES_NOISY
    states = _draw_states(lab, count)
    outcomes = _tabulate_outcomes(lab, states)
    if lab.values is not None and lab.kind == "deterministic":
        for _ in range(max(1, _MOST_STEPS // (_FURTHER * lab.values.joint))):
            more = _draw_states(lab, _FURTHER)
            followed = _tabulate_outcomes(lab, more)
            telling = _list_telling(outcomes, followed)
            states, outcomes = np.concatenate([states, more[telling]]), np.concatenate([outcomes, followed[telling]])
            if len(lab.states) <= len(states) or not lab.in_time(_LOOKING) or not _coincide(outcomes):
                break
    return ActionProbes(states, outcomes, scale)


def _draw_states(lab: Laboratory, count: int) -> Floats:
    states: Floats = lab.states[lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)]
    return states


def _list_telling(outcomes: Floats, followed: Floats) -> list[int]:
    """Further states that distinguish actions with equal effects in all earlier states."""
    alike = ~_differ(outcomes).any(axis=0)
    telling: list[int] = []
    for row, differ in enumerate(_differ(followed)):
        if (differ & alike).any() and len(telling) < _MOST_FURTHER:
            telling.append(row)
            alike &= ~differ
    return telling


def _coincide(outcomes: Floats) -> bool:
    """Whether two actions have the same outcome in all states."""
    return bool((~_differ(outcomes).any(axis=0)).sum() > outcomes.shape[1])


def _differ(outcomes: Floats) -> Bools:
    """The pairs of actions with different outcomes, shape (states, actions, actions)."""
    differ: Bools = (outcomes[:, :, None, :] != outcomes[:, None, :, :]).any(axis=-1)
    return differ


def _tabulate_outcomes(lab: Laboratory, states: Floats) -> Floats:
    """Next state, reward and termination of every probe at every state, shape (states, probes, dim + 2).

    A probe is one value of one component, averaged over the values of the others; or a Box component changed up or
    down.
    """
    if lab.values is None:
        sets = [[action] for action in probe_actions(_require_box(lab.action_space))]
    else:
        sets = [lab.values.with_literal(literal) for literal in range(lab.values.total)]
    return np.stack([[_average_step(lab, state, actions) for actions in sets] for state in states])


def _average_step(lab: Laboratory, state: Floats, actions: list[Any]) -> Floats:
    # Noise affects real-valued outcomes more than integers, whose medians are mostly exact.
    most = _REPEATS if lab.is_whole else lab.repeats
    outcomes = lab.outcomes(np.repeat(state[None], len(actions), axis=0), actions, most=most)
    rows = np.concatenate([outcomes.states, outcomes.rewards[:, None], outcomes.ended[:, None]], axis=1)
    return np.asarray(rows.mean(axis=0))


def _require_box(space: spaces.Space[Any]) -> spaces.Box:
    if not isinstance(space, spaces.Box):
        raise TargetError(f"only Box actions can be searched here, got {space}.", where="action space")
    return space


def matching_action_map(lab: Laboratory, state_map: SignedMap, probes: ActionProbes) -> SignedMap:
    """The action map that fits a state map best; the screening decides whether it fits well.

    Args:
        lab: the environment.
        state_map: L on states.
        probes: outcomes at the states themselves.

    Returns:
        A permutation of the values of integer actions, or a signed permutation (with offset) of the components of a Box
        action.

    Raises:
        TargetError: the environment rejects the image of a state.
    """
    images = _tabulate_outcomes(lab, state_map.apply(probes.states))
    expected = state_map.apply(probes.outcomes[..., :-2])
    gaps = lab.difference(expected[:, :, None, :], images[:, None, :, :-2])  # (states, from, to, dim)
    # Clipped, so that one coordinate that hits a wall does not outweigh all others.
    misfit = np.minimum(np.abs(gaps) / probes.scale, 1e3).sum(axis=-1)
    # Rewards and terminations distinguish actions that do not change the state. Their weight is small, so that a reward
    # that breaks the symmetry is still found later. If noise exceeds the effects of actions, their weight exceeds the
    # noise; medians of integers are mostly exact.
    by_chance, paid = lab.noise
    chance = 0.0 if lab.is_whole else CHANCE * float((by_chance / probes.scale).sum()) / len(misfit) ** 0.5
    told = np.abs(probes.outcomes[:, :, None, -2:] - images[:, None, :, -2:])
    counted = (told > [_TOLD + CHANCE * paid, _TOLD]).sum(axis=-1)
    misfit = (misfit + max(_TOLD, chance) * counted).mean(axis=0)
    if lab.values is not None:
        # Actions with equal effects cannot be distinguished. If there is one action per coordinate, it moves with its
        # coordinate.
        usual = state_map.index if len(misfit) == state_map.dim else range(len(misfit))
        return lab.values.match(misfit, list(usual))
    return _box_map(lab.action_space, misfit)


def _box_map(space: spaces.Space[Any], misfit: Floats) -> SignedMap:
    if not isinstance(space, spaces.Box):
        raise TargetError(f"only Box actions can be searched here, got {space}.", where="action space")
    # Probes come in pairs, +component and -component.
    up, down = slice(0, None, 2), slice(1, None, 2)
    kept = misfit[up, up] + misfit[down, down]
    turned = misfit[up, down] + misfit[down, up]
    # Components of different widths cannot be exchanged: their images would leave the space.
    reach = action_reach(space)
    unlike = np.abs(reach[:, None] - reach[None, :]) > 1e-6 * (reach[:, None] + reach[None, :])
    best = np.minimum(kept, turned + _TIE) + _TIE * (1 - np.eye(len(kept))) + 1e6 * unlike
    index = assign(best)
    at = np.arange(len(index))
    sign = np.where(kept[at, index] <= turned[at, index] + _TIE, 1, -1)
    return SignedMap.about(index, sign, action_middle(space))
