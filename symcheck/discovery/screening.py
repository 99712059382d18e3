"""Screening by single transitions: which maps of the structure preserve the dynamics?

The screen is deliberately loose. It accepts maps that hold in most states up to a few percent of a step. A symmetry
that is broken only at a wall, only in the reward, or by 0.1% still reaches verification, which rejects it and gives the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory, Outcomes
from symcheck.discovery.maps import SignedMap
from symcheck.errors import TargetError

CASES = 32
_MISFIT = 0.05  # largest misfit, relative to a typical step
_EXACT = 1e-3  # the same, if the map is to hold at a case; rounding and contacts cause smaller ones
_CHANCE = 7.0  # standard deviations of one outcome; five for a difference of two
_SHARE = 0.5  # fraction of the cases that must fit
_FEW_VALUES = 8  # maximum number of different rewards for which a single value can be rare
_RARE = 0.2  # largest fraction of cases with a rare reward
_CONSTANT = 24  # number of states in which a coordinate that is constant within an episode does not change
_TELLING = 24  # number of cases with a rare reward or termination
_LOOKED_THROUGH = 4096  # maximum number of steps, including repetitions
_LOOKING = 0.25  # of the time budget
_RARE_MISFITS = 0.15  # allowed fraction of rare cases that differ: rounding affects the rim of a goal
_REWARD_MISFIT = 0.01  # relative to the spread of rewards; determines the order of verification


@dataclass(frozen=True)
class Cases:
    """Transitions for the comparison: states and actions of the pool, and their outcomes.

    Attributes:
        states: shape (n, dim).
        actions: n actions.
        outcomes: the outcomes.
        scale: typical change of every coordinate in one step, shape (dim,), positive.
        telling: further cases with a rare reward or a termination; None if there are none.
    """

    states: Floats
    actions: list[Any]
    outcomes: Outcomes
    scale: Floats
    telling: Cases | None = None


@dataclass(frozen=True)
class Screened:
    """The result of screening a pair of maps.

    Attributes:
        passes: whether the candidate goes on to verification.
        residual: median over the cases of the largest misfit of a coordinate, relative to a typical step.
        share: the fraction of cases that fit.
        coordinate: the coordinate with the worst fit.
        reward_agrees: whether rewards agree on nearly all cases that fit.
        reward_gap: median difference of rewards.
        refuted: counterexamples among steps that repeat exactly, in words; "" if there are none.
        missed: the fraction of cases at which next state, reward or termination differs, even slightly.
        images: the outcomes at the images of the cases.
    """

    passes: bool
    residual: float
    share: float
    coordinate: int
    reward_agrees: bool
    reward_gap: float
    refuted: str
    missed: float
    images: Outcomes


def draw_cases(lab: Laboratory, count: int = CASES) -> Cases:
    """Step random states of the pool under random actions.

    Args:
        lab: the environment.
        count: the number of cases.

    Returns:
        The cases.
    """
    rows = lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)
    states, actions = lab.states[rows], lab.draw_actions(count)
    outcomes = lab.outcomes(states, actions)
    scale = step_scale(lab, states, outcomes)
    return Cases(states, actions, outcomes, scale, _look_for_rare(lab, outcomes, scale))


def _look_for_rare(lab: Laboratory, usual: Outcomes, scale: Floats) -> Cases | None:
    """Steps with a rare reward or termination; if these are rare, only such steps distinguish maps."""
    values, counts = np.unique(usual.rewards, return_counts=True)
    few = len(values) <= _FEW_VALUES
    common = set(values[counts > _RARE * len(usual.rewards)].tolist())
    states: list[Floats] = []
    actions: list[Any] = []
    rows: list[Outcomes] = []
    for state, action in _draw_rare(lab) if few else lab.ending_steps:
        if len(rows) >= _TELLING or not lab.in_time(_LOOKING):
            break
        try:
            outcome = lab.outcomes(state[None], [action])
        except TargetError:  # a combined state need not be valid
            continue
        if outcome.settled[0] and ((few and float(outcome.rewards[0]) not in common) or outcome.ended[0] != 0):
            states.append(state)
            actions.append(action)
            rows.append(outcome)
    if not rows:
        return None
    parts = ("states", "observations", "rewards", "ended", "settled")
    joined = Outcomes(*(np.concatenate([getattr(row, part) for row in rows]) for part in parts))
    return Cases(np.stack(states), actions, joined, scale)


def _draw_rare(lab: Laboratory) -> Iterator[tuple[Floats, Any]]:
    """Steps to search, in states that take constants from other episodes."""
    pool = _mix_constants(lab)
    for row in lab.rng.integers(len(pool), size=_LOOKED_THROUGH // lab.repeats):
        yield pool[row], lab.draw_actions(1)[0]


def _mix_constants(lab: Laboratory) -> Floats:
    """Visited states in which quantities fixed within an episode (goal, command) come from other episodes."""
    states = lab.states[lab.rng.permutation(len(lab.states))]
    some = states[:_CONSTANT]
    followed = lab.outcomes(some, lab.draw_actions(len(some))).states
    if followed.shape != some.shape:
        return states
    constant = (followed == some).all(axis=0)
    if constant.any() and not constant.all():
        others = states[lab.rng.permutation(len(states))]
        states = np.where(constant, others, states)
    return np.asarray(states)


def step_scale(lab: Laboratory, states: Floats, outcomes: Outcomes) -> Floats:
    """The change of every coordinate in one step: the upper quartile, or the spread if it rarely changes."""
    if outcomes.states.shape != states.shape:
        return np.asarray(np.maximum(np.abs(outcomes.states).max(axis=0), 1e-12))
    moved = np.abs(lab.difference(states, outcomes.states))
    typical = np.quantile(moved, 0.75, axis=0)
    typical = np.where(typical > 0, typical, moved.max(axis=0))
    return np.asarray(np.where(typical > 0, typical, np.where(lab.spread > 0, lab.spread, 1.0)))


def map_actions(lab: Laboratory, action_map: SignedMap, actions: list[Any]) -> list[Any]:
    """K applied to actions in the environment's own form."""
    if lab.values is not None:
        return [lab.values.image(action_map.index, action) for action in actions]
    first = np.asarray(actions[0])
    flat = np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in actions])
    images = action_map.apply(flat)
    return [image.astype(first.dtype).reshape(first.shape) for image in images]


def screen(lab: Laboratory, state_map: SignedMap, action_map: SignedMap, cases: Cases) -> Screened:
    """Compare T(L s, K a) with L T(s, a) on the cases.

    Args:
        lab: the environment.
        state_map: L on states.
        action_map: K on actions.
        cases: the original transitions.

    Returns:
        The result. The cost is one step per case.

    Raises:
        TargetError: the environment rejects an image.
    """
    images = lab.outcomes(state_map.apply(cases.states), map_actions(lab, action_map, cases.actions))
    gaps = lab.difference(state_map.apply(cases.outcomes.states), images.states)
    # The image of a coordinate keeps the scale of the original coordinate.
    scale = SignedMap.of(state_map.index).apply(cases.scale[None])[0]
    relative = np.abs(gaps) / scale
    relative = np.where(np.isfinite(relative), relative, np.inf)
    worst = relative.max(axis=1)
    by_chance, paid_by_chance = lab.noise
    chance = _CHANCE * SignedMap.of(state_map.index).apply(by_chance[None])[0] / scale
    within = (relative <= _MISFIT + chance).all(axis=1)
    rewards = np.abs(images.rewards - cases.outcomes.rewards)
    spread = float(np.ptp(cases.outcomes.rewards)) or max(1.0, float(np.abs(cases.outcomes.rewards).max()))
    agreeing = rewards[within] <= _REWARD_MISFIT * spread + _CHANCE * paid_by_chance
    exact = (relative <= _EXACT + chance).all(axis=1) & (rewards <= _EXACT * spread + _CHANCE * paid_by_chance)
    exact &= (images.ended == cases.outcomes.ended) | ~images.settled
    refuted, rare_gap = _compare_rare(lab, state_map, action_map, cases.telling)
    return Screened(
        passes=bool(within.mean() >= _SHARE),
        residual=float(np.median(worst)),
        share=float(within.mean()),
        coordinate=int(np.argmax(np.median(relative, axis=0))),
        reward_agrees=not refuted and bool(len(agreeing) and agreeing.mean() >= 0.9),
        reward_gap=max(float(np.median(rewards)), rare_gap),
        refuted=refuted,
        missed=1.0 - float(exact.mean()),
        images=images,
    )


def _compare_rare(
    lab: Laboratory, state_map: SignedMap, action_map: SignedMap, telling: Cases | None
) -> tuple[str, float]:
    """Rare rewards and terminations that differ at the images: their number, in words, and the median difference."""
    if telling is None:
        return "", 0.0
    try:
        images = lab.outcomes(state_map.apply(telling.states), map_actions(lab, action_map, telling.actions))
    except TargetError:  # only the other cases had valid images
        return "", 0.0
    gaps = np.abs(images.rewards - telling.outcomes.rewards)
    largest = _REWARD_MISFIT * max(float(np.abs(telling.outcomes.rewards).max()), 1e-12)
    differ = ((gaps > largest) | (images.ended != telling.outcomes.ended)) & images.settled
    if differ.mean() <= _RARE_MISFITS:
        return "", 0.0
    said = f"reward or termination differs on {differ.sum()} of {len(differ)} steps with a rare reward or a termination"
    return said, float(np.median(gaps[differ]))
