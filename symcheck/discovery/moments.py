"""Moments of episodes under the uniform policy, which a symmetry preserves for any action map.

Quantities that no step changes (a goal, a command, a mask of actions) have no effects that a table of probes could
show. Their moments with rewards, with terminations and with other quantities show which of them belong together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.blocks import blocks_of
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.rollouts import Rollouts, count_alike, sum_by_episode
from symcheck.discovery.structure import Joint, Structure
from symcheck.spaces.values import numeric

Played = dict[int, Rollouts | None]

FEWEST_EPISODES = 20  # with fewer, standard errors are themselves inaccurate
ERRORS = 6.0  # allowed error in standard errors; large, because hundreds of estimates must all lie within it
_ROUNDING = 1e-9  # relative to a step: means of this size are zero up to rounding
_STEPS = 8_000  # for each length of episodes
# Start states distinguish goals and masks. The steps of an episode share its goal, so rare rewards show what belongs to
# a goal only in many episodes, and slow effects of a command only in longer ones.
_LENGTHS = (30, 2)
_LOOKING = 0.3  # of the time budget


def middle_of(lab: Laboratory, seen: Floats) -> Floats:
    """The point about which observations are negated.

    Args:
        lab: the environment.
        seen: flattened observations, shape (n, dim).

    Returns:
        Shape (dim,): the middle of spaces of whole numbers and of coordinates with two values; zero elsewhere.
    """
    low, high = seen.min(axis=0), seen.max(axis=0)
    middle = np.concatenate([part.middle for part in blocks_of(lab.observation_space)])
    # Reversed about another point, a coordinate of two values would leave them.
    two = (high > low) & ((seen == low) | (seen == high)).all(axis=0)
    return np.where(two, (low + high) / 2, middle)


def moments_of_steps(rollouts: Rollouts, middle: Floats) -> tuple[Joint, ...]:
    """Moments of steps, and of outcomes with the observations where they happen.

    Args:
        rollouts: steps of episodes.
        middle: the point about which observations are negated.

    Returns:
        Numbers over literals; empty if there are too few episodes to estimate the errors of their means.
    """
    if count_alike(rollouts) < FEWEST_EPISODES:
        return ()
    moved = rollouts.after - rollouts.before
    size = np.abs(moved)
    made = [_moments(moved, moved, rollouts, signed=True), _moments(size, size, rollouts, signed=False)]
    return (*made, *_moments_of_outcomes(rollouts, rollouts.after - middle))


def with_moments(lab: Laboratory, structure: Structure, played: Played) -> Structure | None:
    """The structure extended by moments of states with each other, with rewards and with terminations.

    Args:
        lab: an environment whose states can be set and read.
        structure: the structure measured at the centre.
        played: steps of episodes by their length, which are played once; this function adds those that are missing.

    Returns:
        The structure with `joint`; None if there are too few episodes.
    """
    made: list[Joint] = []
    for longest in _LENGTHS:
        if longest not in played:
            played[longest] = _play_states(lab, longest)
        rollouts = played[longest]
        if rollouts is not None and count_alike(rollouts) >= FEWEST_EPISODES:
            place = rollouts.before - structure.centre
            made += [_moments(place, None, rollouts, signed=True), _moments(place, place, rollouts, signed=True)]
            made += [*_moments_of_changes(rollouts, place), *_moments_of_outcomes(rollouts, place)]
    return replace(structure, joint=(*structure.joint, *made)) if made else None


def _play_states(lab: Laboratory, longest: int) -> Rollouts | None:
    """Steps of short episodes with the states before them in place of observations; None if states are not numbers."""
    states: list[Floats] = []
    rewards: list[float] = []
    ended: list[bool] = []
    episode: list[int] = []
    number = 0
    while len(rewards) < _STEPS and lab.in_time(_LOOKING):
        played = lab.stepper.play(longest, read=True)
        vectors = [numeric(state) for state in played.states]
        if any(vector is None or len(vector) != lab.dim or not np.isfinite(vector).all() for vector in vectors):
            return None
        states += [vector for vector in vectors if vector is not None]
        rewards += [step.reward for step in played.steps]
        ended += [step.terminated for step in played.steps]
        episode += [number] * len(played.steps)
        number += 1
    if not rewards:
        return None
    before, nothing = np.stack(states), np.zeros((len(rewards), 0))
    return Rollouts(before, before, nothing, np.array(rewards), np.array(ended), np.array(episode))


def _moments_of_changes(rollouts: Rollouts, place: Floats) -> list[Joint]:
    """Moments of the change in a step with the place before it: which place of a dial follows which.

    The last step of an episode is left out, because its next state was not read; so there are none if episodes have
    one step.
    """
    at = np.flatnonzero(np.diff(rollouts.episode) == 0)
    continued = replace(rollouts, episode=rollouts.episode[at])
    if not len(at) or count_alike(continued) < FEWEST_EPISODES:
        return []
    return [_moments(rollouts.before[at + 1] - rollouts.before[at], place[at], continued, signed=True)]


def _moments_of_outcomes(rollouts: Rollouts, place: Floats) -> list[Joint]:
    """Moments of places with the deviations of rewards and terminations from their means."""
    made = []
    for values in (rollouts.rewards, rollouts.ended.astype(np.float64)):
        if np.ptp(values) > 0:
            told = (values - values.mean())[:, None]
            made += [_moments(told * place, None, rollouts, signed=True)]
            made += [_moments(told * place, place, rollouts, signed=True)]
    return made


def _moments(first: Floats, other: Floats | None, rollouts: Rollouts, *, signed: bool) -> Joint:
    """Means over steps of columns (or of their products), indexed by literals, with error bounds."""
    # A mean of a single column is the same for every second literal.
    second = np.ones((len(first), 1)) if other is None else other
    mean = first.T @ second / len(first)
    products = np.stack([sum_by_episode(first * own[:, None], rollouts.episode) for own in second.T], axis=2)
    lengths = np.unique(rollouts.episode, return_counts=True)[1]
    # Standard error of a ratio estimator: an episode's sum minus its length times the mean.
    errors = np.sqrt(((products - lengths[:, None, None] * mean) ** 2).sum(axis=0)) / len(first)
    dim = first.shape[1]
    signs = np.tile([1.0, -1.0], dim) if signed else np.ones(2 * dim)
    wide = [np.broadcast_to(each, (dim, dim)).repeat(2, 0).repeat(2, 1) for each in (mean, ERRORS * errors)]
    return Joint(wide[0] * signs[:, None] * (1.0 if other is None else signs), wide[1] + _ROUNDING)
