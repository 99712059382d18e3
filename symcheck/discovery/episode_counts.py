"""Counts of rewards, terminations and step lengths at places and their images; no model is needed.

Under a symmetry, rare rewards and terminations are as frequent and as large at the image of a place as at the place
itself, and steps have the same length. Places are intervals of single coordinates, and of sums and differences of two.
The difference of two coordinates shows, for example, whether a goal was reached or two robots collided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.orbit_scores import INTERVALS, Episodes, Leaning, lean, moving_columns
from symcheck.discovery.rollouts import Rollouts

_MOST_ROWS = 4_000  # maximum number of counted steps
_MOST_COLUMNS, _MOST_PAIRED = 48, 16  # maximum number of observation columns, alone and in pairs
_WILDEST = 3.0  # limit in interquartile ranges, so that a few extreme values do not outweigh all others


@dataclass(frozen=True)
class _Counted:
    """A counted quantity.

    Attributes:
        name: the name in words.
        rows: numbers of steps.
        weights: the weight of each step.
    """

    name: str
    rows: npt.NDArray[np.int64]
    weights: Floats


class EpisodeCounts:
    """Counts over episodes, with which maps are tested.

    Args:
        rollouts: the episodes.
        rng: draws steps.
        with_steps: whether step lengths are compared too.
    """

    def __init__(self, rollouts: Rollouts, rng: np.random.Generator, *, with_steps: bool) -> None:
        self._rollouts, self._rng, self._with_steps = rollouts, rng, with_steps

    @cached_property
    def _list_counts(self) -> list[_Counted]:
        rewards, ended = self._rollouts.rewards, self._rollouts.ended.astype(np.float64)
        return [*self._count("reward", rewards), *self._count("termination", ended)]

    def _count(self, name: str, values: Floats) -> Iterator[_Counted]:
        """How often a rare value occurs, and how large it is."""
        usual = usual_values(values)
        if usual is not None:
            rows = self._draw(~usual)
            yield _Counted(f"where the {name} is not the usual one", rows, np.ones(len(rows)))
            values, name = values[rows], name
        else:
            rows = self._draw(np.ones(len(values), dtype=bool))
            values = values[rows]
        if len(np.unique(values)) > 1:
            yield _Counted(name, rows, _limit(values - np.median(values)))

    def _draw(self, which: Bools) -> npt.NDArray[np.int64]:
        return np.asarray(self._rng.permutation(np.flatnonzero(which))[:_MOST_ROWS])

    def refute(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float) -> str:
        """The quantity whose counts differ at images; "" if there is none.

        Args:
            move: the map of observations, on stacked rows.
            order: the order of the map together with its action map.
            action_map: the map of actions; None for a test that does not depend on the action map.
            level: the largest probability of refuting a symmetry.

        Returns:
            The quantity, in words.
        """
        if order < 2:
            return ""
        level /= len(self._list_counts) + self._with_steps
        if self._with_steps and self._lean_of_steps(move, order, action_map).exceeds(order, level):
            return "next observation"
        if action_map is not None:
            return ""
        differing = (each.name for each in self._list_counts if self._differs_somewhere(each, move, order, level))
        return next(differing, "")

    def _differs_somewhere(self, counted: _Counted, move: Callable[[Floats], Floats], order: int, level: float) -> bool:
        episodes = Episodes(self._rollouts.episode[counted.rows])
        scores = np.repeat(counted.weights[:, None], order, axis=1)
        ends = (list_images(each[counted.rows], move, order) for each in (self._rollouts.after, self._rollouts.before))
        features = [place for images in ends for place in places_of(images)]
        leanings = (episodes.lean_on_intervals(scores, feature) for feature in features)
        # Divide the level by the number of all tests, so that the first rejection may end the loop.
        tests = len(features) * INTERVALS
        return any(Leaning(leaning.largest, tests).exceeds(order, level) for leaning in leanings)

    def _lean_of_steps(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None) -> Leaning:
        """Products of steps, and of step lengths, with the signs of the preceding observations and actions."""
        rollouts = self._rollouts
        # Features of actions are relative to the middle of the box.
        turn = SignedMap.of(action_map.index, action_map.sign) if action_map is not None else None
        before, after, actions = rollouts.before, rollouts.after, rollouts.actions
        unit = np.quantile(np.abs(after - before), 0.75, axis=0)
        middle = np.median(before, axis=0)
        episodes, means = Episodes(rollouts.episode), []
        for _ in range(order):
            step = (after - before) / np.where(unit > 0, unit, 1.0)
            step = np.clip(step, -_WILDEST, _WILDEST)
            follows = [np.ones((len(before), 1)), np.sign(before - middle), *([] if turn is None else [actions])]
            means.append(
                episodes.multiply(np.concatenate([step, np.abs(step)], axis=1), np.concatenate(follows, axis=1))
            )
            before, after = move(before), move(after)
            actions = actions if turn is None else turn.apply(actions)
        return lean(np.stack(means, axis=1), float(len(before)))


def usual_values(values: Floats, share: float = 0.8) -> Bools | None:
    """Which values equal the frequent one; None if no single value is frequent, or all are the same.

    Args:
        values: the values of all steps.
        share: a value in at least this share of the steps is frequent, and all others are rare.

    Example:
        >>> usual_values(np.array([0.0, 0, 0, 0, 0, 1])).tolist(), usual_values(np.array([0.0, 1, 2]))
        ([True, True, True, True, True, False], None)
    """
    different, counts = np.unique(values, return_counts=True)
    if len(different) < 2 or counts.max() < share * len(values):
        return None
    return np.asarray(values == different[np.argmax(counts)])


def list_images(rows: Floats, move: Callable[[Floats], Floats], order: int) -> list[Floats]:
    """The rows, and their images under the powers of a map."""
    images = [rows]
    while len(images) < order:
        images.append(move(images[-1]))
    return images


def places_of(images: list[Floats]) -> Iterator[Floats]:
    """Columns of observations, and sums and differences of two, that differ in an orbit; shape (steps, order) each."""
    moving = moving_columns(images)
    columns = np.flatnonzero(moving)[:_MOST_COLUMNS]
    for j in columns:
        yield np.stack([image[:, j] for image in images], axis=1)
    if images[0].shape[1] > _MOST_PAIRED:
        return
    for i in range(images[0].shape[1]):
        for j in range(i):
            if moving[i] or moving[j]:
                yield np.stack([image[:, i] - image[:, j] for image in images], axis=1)
                yield np.stack([image[:, i] + image[:, j] for image in images], axis=1)


def _limit(values: Floats) -> Floats:
    low, high = np.quantile(values, [0.25, 0.75])
    unit = (high - low) or float(np.abs(values).max()) or 1.0
    return np.asarray(np.clip(values / unit, -_WILDEST, _WILDEST))
