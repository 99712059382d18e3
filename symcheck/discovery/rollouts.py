"""Steps of uniform-policy episodes, and tests of an observation map on them that do not depend on the action map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Bools, Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.structure import action_middle, action_reach
from symcheck.engine.environments.cases.pool import Pool, roll_out
from symcheck.errors import TargetError

_STEPS = 4000
FEWEST_STEPS = 50
_AT_A_TIME = 256
_GATHERING = 0.25  # of the time budget
_FEWEST_EPISODES = 20
SKEWED = 1.2
"""Additional safety factor: for maps that are not their own inverse, the sums need not be symmetric."""


@dataclass(frozen=True)
class Rollouts:
    """Steps of uniform-policy episodes.

    Attributes:
        before: flattened observations, shape (n, dim).
        after: the next ones, shape (n, dim).
        actions: features of the actions, shape (n, features): indicators, or components relative to the centre of the
            box.
        rewards: shape (n,).
        ended: whether the step terminated the episode, shape (n,).
        episode: index of the episode, shape (n,).
    """

    before: Floats
    after: Floats
    actions: Floats
    rewards: Floats
    ended: Bools
    episode: npt.NDArray[np.int64]

    @property
    def begins(self) -> npt.NDArray[np.intp]:
        """The first row of each episode."""
        return np.flatnonzero(np.diff(self.episode, prepend=self.episode[0] - 1))


def roll(lab: Laboratory, reduce: Callable[[Floats], Floats] = lambda flat: flat) -> Rollouts:
    """Step uniform-policy episodes; there are too few steps to search only if the time budget ended.

    Args:
        lab: an environment whose states cannot be set.
        reduce: reduces the size of flattened observations, shape (n, numbers).

    Raises:
        TargetError: observations are not numbers.
    """
    pool = Pool()
    roll_out(lab.stepper, lab.placement, _STEPS, pool, lambda: lab.in_time(_GATHERING))
    codec = lab.stepper.codec
    # A few at a time: thousands of flattened images take gigabytes.
    parts = [pool.visits[i : i + _AT_A_TIME] for i in range(0, len(pool.visits), _AT_A_TIME)]
    before = np.concatenate([reduce(codec.flatten_batch([visit.situation.obs for visit in part])) for part in parts])
    after = np.concatenate([reduce(np.stack([visit.step.flat for visit in part])) for part in parts])
    actions = action_features(lab, [visit.action for visit in pool.visits])
    usable = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    if usable.sum() < FEWEST_STEPS and (usable.size >= FEWEST_STEPS or lab.in_time(_GATHERING)):
        raise TargetError(
            f"only {usable.sum():,} of {len(before):,} steps have finite observations; all others contain "
            "NaN or infinity.",
            where=lab.label,
            remedy=(
                "The search needs finite observations. If you know the symmetry, write it down and check "
                "it with verify-env."
            ),
        )
    rewards = np.array([visit.step.reward for visit in pool.visits], dtype=np.float64)
    ended = np.array([visit.step.terminated for visit in pool.visits], dtype=bool)
    episode = np.cumsum([visit.situation.origin == "start" for visit in pool.visits])
    return Rollouts(before[usable], after[usable], actions[usable], rewards[usable], ended[usable], episode[usable])


def count_alike(rollouts: Rollouts) -> float:
    """The effective number of episodes of equal length.

    Example:
        >>> rows, numbers = np.zeros((4, 1)), np.zeros(4)
        >>> count_alike(Rollouts(rows, rows, rows, numbers, numbers > 0, np.array([1, 1, 2, 2])))
        2.0
    """
    lengths = np.unique(rollouts.episode, return_counts=True)[1]
    return float(lengths.sum() ** 2 / (lengths**2).sum())


def play_short(lab: Laboratory, steps: int, longest: int) -> list[Rollouts]:
    """Additional steps from short episodes; fewer if the time budget ends."""
    codec, parts = lab.stepper.codec, []  # type: Any, list[Rollouts]
    taken = 0
    while taken < steps and lab.in_time(_GATHERING):
        played = lab.stepper.play(longest)
        seen = codec.flatten_batch(played.seen)
        taken += len(played.steps)
        if np.isfinite(seen).all():
            rewards = np.array([step.reward for step in played.steps], dtype=np.float64)
            ended = np.array([step.terminated for step in played.steps], dtype=bool)
            number = np.full(len(rewards), len(parts))
            parts.append(Rollouts(seen[:-1], seen[1:], action_features(lab, played.actions), rewards, ended, number))
    return parts


def join_rollouts(*parts: Rollouts) -> Rollouts:
    """Several rollouts joined into one, with consecutively numbered episodes.

    Raises:
        ValueError: the sequence is empty.
    """
    numbers, first = [], 0
    for part in parts:
        numbers.append(part.episode - part.episode.min() + first)
        first = int(numbers[-1].max()) + 1
    columns = zip(*((p.before, p.after, p.actions, p.rewards, p.ended) for p in parts), strict=True)
    before, after, actions, rewards, ended = (np.concatenate(column) for column in columns)
    return Rollouts(before, after, actions, rewards, ended, np.concatenate(numbers))


def action_features(lab: Laboratory, actions: Sequence[Any]) -> Floats:
    """Indicators of the values of integer actions; Box components relative to the middle, in half widths."""
    if lab.values is not None:
        return lab.values.indicators(actions)
    if isinstance(lab.action_space, spaces.Box):
        flat = np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in actions])
        return np.asarray((flat - action_middle(lab.action_space)) / action_reach(lab.action_space))
    raise TargetError(f"expected Discrete or Box actions, got {lab.action_space}.", where="action space")


def sum_by_episode(rows: Floats, episode: npt.NDArray[np.int64]) -> Floats:
    """Sums over the steps of each episode, shape (episodes, ...).

    Example:
        >>> sum_by_episode(np.array([1.0, 2.0, 4.0]), np.array([1, 1, 3])).tolist()
        [3.0, 4.0]
    """
    begins = np.flatnonzero(np.diff(episode, prepend=episode[0] - 1))
    return np.asarray(np.add.reduceat(rows, begins, axis=0))


def refutes_whatever_the_actions(
    rollouts: Rollouts, before: Floats, after: Floats, move: Callable[[Floats], Floats], level: float
) -> bool:
    """Whether episodes under uniform actions change their distribution under an observation map.

    A permutation of the actions preserves the uniform policy. So if the map is a symmetry with any action map, an
    episode and its image have the same distribution, and the difference of a feature between the two has mean zero.

    Args:
        rollouts: rewards, terminations and episodes.
        before: observations, or smaller images of them, shape (n, dim).
        after: the next ones.
        move: the map, on stacked rows.
        level: upper bound on the probability of refuting a true symmetry.

    Returns:
        Whether it is refuted. Features are sums over an episode of first moments, steps, squares of steps, and their
        products with rewards, terminations and starts.
    """
    differences = _features(rollouts, before, after) - _features(rollouts, move(before), move(after))
    episodes, at = np.unique(rollouts.episode, return_inverse=True)
    if len(episodes) < _FEWEST_EPISODES:
        return False
    sums = np.zeros((len(episodes), differences.shape[1]))
    np.add.at(sums, at, differences)
    # A self-normalised sum of symmetric terms exceeds x with probability 2 exp(-x^2 / 2) at most (Hoeffding).
    size = np.sqrt((sums**2).sum(axis=0))
    statistic = np.abs(sums.sum(axis=0)) / np.where(size > 0, size, 1.0)
    largest = SKEWED * math.sqrt(2 * math.log(2 * sums.shape[1] / level))
    return bool(statistic.max(initial=0.0) > largest)


def _features(rollouts: Rollouts, before: Floats, after: Floats) -> Floats:
    step = after - before
    rewards, ended = rollouts.rewards[:, None], rollouts.ended[:, None].astype(np.float64)
    first = np.diff(rollouts.episode, prepend=-1)[:, None] != 0
    return np.concatenate(
        [before, step, step**2, rewards * before, rewards * step, ended * after, first * before], axis=1
    )
