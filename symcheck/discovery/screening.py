"""Single transitions, both sides: which maps of the structure are maps of the dynamics?

The screen is loose on purpose: it lets pass what holds on most states up to a few percent of a step, so that a
symmetry that is broken at a wall, in the reward or by a thousandth is verified, and refused with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory, Outcomes
from symcheck.discovery.maps import SignedMap

CASES = 32
_MISFIT = 0.05  # of a typical step
_SHARE = 0.5  # of the cases that must fit
_REWARD_MISFIT = 0.01  # of the spread of rewards, for the order in which candidates are verified


@dataclass(frozen=True)
class Cases:
    """Transitions to compare with: states and actions of the pool, and what followed.

    Attributes:
        states: shape (n, dim).
        actions: n actions.
        outcomes: what followed.
        scale: how far a step typically moves every coordinate, shape (dim,), positive.
    """

    states: Floats
    actions: list[Any]
    outcomes: Outcomes
    scale: Floats


@dataclass(frozen=True)
class Screened:
    """How a pair of maps did on the cases.

    Attributes:
        passes: whether it is worth verifying.
        residual: median over the cases of the largest misfit of a coordinate, relative to a typical step.
        share: of the cases that fit.
        coordinate: where it fits worst.
        reward_agrees: whether rewards agree on nearly all cases that fit.
        reward_gap: median difference of rewards.
    """

    passes: bool
    residual: float
    share: float
    coordinate: int
    reward_agrees: bool
    reward_gap: float


def draw_cases(lab: Laboratory, count: int = CASES) -> Cases:
    """Step random states of the pool under random actions.

    Args:
        lab: the environment.
        count: how many cases.

    Returns:
        The cases.
    """
    rows = lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)
    states, actions = lab.states[rows], lab.draw_actions(count)
    outcomes = lab.outcomes(states, actions)
    return Cases(states, actions, outcomes, step_scale(lab, states, outcomes))


def step_scale(lab: Laboratory, states: Floats, outcomes: Outcomes) -> Floats:
    """How far a step moves every coordinate: the upper quartile, or the spread where it mostly stays."""
    if outcomes.states.shape != states.shape:
        return np.asarray(np.maximum(np.abs(outcomes.states).max(axis=0), 1e-12))
    moved = np.abs(lab.difference(states, outcomes.states))
    typical = np.quantile(moved, 0.75, axis=0)
    typical = np.where(typical > 0, typical, moved.max(axis=0))
    return np.asarray(np.where(typical > 0, typical, np.where(lab.spread > 0, lab.spread, 1.0)))


def map_actions(lab: Laboratory, action_map: SignedMap, actions: list[Any]) -> list[Any]:
    """K on actions of the environment's own form."""
    if lab.count_of_actions is not None:
        return [lab.action(action_map.index[lab.index_of(action)]) for action in actions]
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
        cases: the left sides.

    Returns:
        How it did; costs one step a case.

    Raises:
        TargetError: the environment refuses an image.
    """
    images = lab.outcomes(state_map.apply(cases.states), map_actions(lab, action_map, cases.actions))
    gaps = lab.difference(state_map.apply(cases.outcomes.states), images.states)
    # The image of a coordinate has the scale of the coordinate it came from.
    scale = SignedMap.of(state_map.index).apply(cases.scale[None])[0]
    relative = np.abs(gaps) / scale
    worst = np.where(np.isfinite(relative), relative, np.inf).max(axis=1)
    fits = worst <= _MISFIT
    rewards = np.abs(images.rewards - cases.outcomes.rewards)
    spread = float(np.ptp(cases.outcomes.rewards)) or max(1.0, float(np.abs(cases.outcomes.rewards).max()))
    agreeing = rewards[fits] <= _REWARD_MISFIT * spread
    return Screened(
        passes=bool(fits.mean() >= _SHARE),
        residual=float(np.median(worst)),
        share=float(fits.mean()),
        coordinate=int(np.argmax(np.median(relative, axis=0))),
        reward_agrees=bool(len(agreeing) and agreeing.mean() >= 0.9),
        reward_gap=float(np.median(rewards)),
    )
