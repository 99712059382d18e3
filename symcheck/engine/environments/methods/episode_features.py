"""What is compared of whole episodes: totals of named features, and one feature that half of the episodes taught."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.equations import Part

_MOST_FEATURES = 2000  # (coordinate, covariate) pairs
_LEARNED_RIDGE = 0.1  # of the mean squared column: weights of rare (s, a) stay near zero
_OFTEN = 0.05  # share of the transitions in which a value that repeats occurs


@dataclass(frozen=True)
class Transitions:
    """One episode's transitions, mapped or not.

    Attributes:
        obs: observations before each step, shape (t, dim).
        actions: actions, a list of t.
        rewards: shape (t,).
        following: observations after each step, shape (t, dim).
        ended: shape (t,), bool as float.
        shows_numbers: whether some observation after a step holds a number; NaN is left out of reduced ones.
    """

    obs: Floats
    actions: list[Any]
    rewards: Floats
    following: Floats
    ended: Floats
    shows_numbers: bool


def what_followed(part: Part, episodes: list[Transitions]) -> Floats:
    """What follows (s, a) in every transition, shape (transitions, dim)."""
    if not episodes:
        return np.zeros((0, 1))
    if part == "transition":
        return np.concatenate([episode.following for episode in episodes])
    column = {"reward": "rewards", "termination": "ended"}[part]
    return np.concatenate([getattr(episode, column) for episode in episodes])[:, None]


def repeating_columns(targets: Floats) -> npt.NDArray[np.bool_]:
    """Which columns hold one value so often that its rank among the others says little, shape (targets,)."""
    often = [np.unique(column, return_counts=True)[1].max() for column in targets.T]
    return np.asarray(often) > _OFTEN * len(targets)


def named_features(
    scores: Floats, target_names: list[str], covariates: Floats, names: list[str], starts: npt.NDArray[np.intp]
) -> tuple[Floats, list[str]]:
    """Totals over each episode of means and spreads, also where each covariate is high, with names."""
    described = [f"mean of {n}" for n in target_names] + [f"spread of {n}" for n in target_names]
    blocks = [_totals(scores, starts), _totals((scores**2 - 1) / np.sqrt(2), starts)]
    for j in range(0, len(names), max(1, -(-len(names) * len(target_names) // _MOST_FEATURES))):
        # Centred, so that a mean that differs everywhere does not count again here.
        side = (covariates[:, [j]] > 0).astype(np.float64)
        blocks.append(_totals(scores * (side - side.mean()), starts))
        described += [f"mean of {n} where {names[j]} is high, against elsewhere" for n in target_names]
    return np.concatenate(blocks, axis=1), described


def learned_feature(scores: Floats, design: Floats, starts: npt.NDArray[np.intp], pairs: int) -> Floats:
    """Differences of one feature on the second half of the pairs, whose weights the first half taught; shape (n, 1).

    Which way the two groups differ given (s, a) is regressed on the first half and looked for in the second. The
    second half's swaps know nothing of the first, so that the test keeps its level whatever was learned.
    """
    lengths = np.diff([*starts, len(scores)])
    episode = np.repeat(np.arange(2 * pairs), lengths)
    half = pairs // 2
    # Both members of a pair teach or are tested together: swaps move whole pairs.
    teaching = (episode % pairs) < half
    sign = np.where(episode < pairs, -1.0, 1.0)[:, None]
    gram = design[teaching].T @ design[teaching]
    # A ridge in units of the mean squared column: independent of how many transitions there are.
    ridge = _LEARNED_RIDGE * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram + ridge, design[teaching].T @ (sign * scores)[teaching])
    totals = _totals((scores * (design @ weights)).sum(axis=1, keepdims=True), starts)
    return totals[half:pairs] - totals[pairs + half :]


def _totals(features: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    """Sums over each episode, shape (episodes, features)."""
    return np.asarray(np.add.reduceat(features, starts, axis=0))
