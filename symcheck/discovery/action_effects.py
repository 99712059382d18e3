"""What actions do to images: a test of action maps on episodes.

An action moves objects in a direction, wherever they are. Products of pixels before and after a step, averaged for each
action over half of the episodes, show this direction. Episodes of the other half agree better with these averages than
their images do, unless the action map belongs to the map of images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from symcheck.array_types import Floats
from symcheck.discovery.episode_counts import list_images
from symcheck.discovery.maps import SignedMap
from symcheck.discovery.orbit_scores import Episodes
from symcheck.discovery.rollouts import Rollouts

_TAUGHT, _ASKED = 10_000, 10_000  # maximum number of steps for averages, and of steps that are compared with these
# Actions often have small effects on images, and verification by whole episodes detects a wrong action map even less. A
# false rejection leaves the map open, while a false claim trains a policy with exchanged actions.
_LEVEL = 0.01


def mean_changes(changes: Floats, actions: Floats) -> Floats:
    """The mean change of every pixel, weighted by the features of actions, shape (features, pixels)."""
    return np.asarray(actions.T @ changes / len(changes))


def mean_products(before: Floats, after: Floats, actions: Floats) -> Floats:
    """Mean products of pixels after and before a step, weighted alike, shape (features, pixels, pixels)."""
    return np.stack([(after * weight[:, None]).T @ before for weight in actions.T]) / len(before)


class ActionEffects:
    """Effects of actions on half of the episodes, with which action maps are tested on the other half.

    Args:
        rollouts: the episodes, with small images.
        rng: draws steps.
    """

    def __init__(self, rollouts: Rollouts, rng: np.random.Generator) -> None:
        self._rollouts = rollouts
        numbers = np.unique(rollouts.episode, return_inverse=True)[1]
        # Episode lengths alternate, so split by pairs of episodes.
        teaches = numbers // 2 % 2 == 0
        self._taught = rng.permutation(np.flatnonzero(teaches))[:_TAUGHT]
        self._asked = rng.permutation(np.flatnonzero(~teaches))[:_ASKED]

    @cached_property
    def _means(self) -> tuple[Floats, Floats, Floats]:
        """Means of observations before and after steps, and of the features of actions."""
        rollouts = self._rollouts
        before, after, actions = (
            part[self._taught].mean(axis=0) for part in (rollouts.before, rollouts.after, rollouts.actions)
        )
        return before, after, actions

    @cached_property
    def _effects(self) -> tuple[Floats, Floats]:
        """Mean changes, shape (features, numbers), and mean products of numbers after and before a step."""
        rollouts, rows = self._rollouts, self._taught
        before, after, actions = self._centre(rollouts.before[rows], rollouts.after[rows], rollouts.actions[rows])
        return mean_changes(after - before, actions), mean_products(before, after, actions)

    def _centre(self, before: Floats, after: Floats, actions: Floats) -> tuple[Floats, Floats, Floats]:
        means = self._means
        return before - means[0], after - means[1], actions - means[2]

    def _scores(self, before: Floats, after: Floats, actions: Floats) -> Floats:
        """How well steps agree with the effects of their actions, shape (steps, 2)."""
        before, after, actions = self._centre(before, after, actions)
        changes, products = self._effects
        moved = ((actions @ changes) * (after - before)).sum(axis=1)
        joint = sum(
            weight * ((after @ each) * before).sum(axis=1) for weight, each in zip(actions.T, products, strict=True)
        )
        return np.stack([moved, np.asarray(joint)], axis=1)

    def refute(self, move: Callable[[Floats], Floats], order: int, action_map: SignedMap | None, level: float) -> str:
        """The quantity that episodes agree with better than their images do; "" if there is none.

        Args:
            move: the map of observations, on stacked rows.
            order: the order of the map together with its action map.
            action_map: the map of actions; nothing is tested without it.
            level: the largest probability of refuting a symmetry that other tests allow; this one allows 1%.

        Returns:
            The quantity, in words.
        """
        if action_map is None or order < 2 or not len(self._taught) or not len(self._asked):
            return ""
        rollouts, rows = self._rollouts, self._asked
        turn = SignedMap.of(action_map.index, action_map.sign)  # features are relative to the middle of a box
        images = zip(
            list_images(rollouts.before[rows], move, order),
            list_images(rollouts.after[rows], move, order),
            list_images(rollouts.actions[rows], turn.apply, order),
            strict=True,
        )
        scores = np.stack([self._scores(*each) for each in images], axis=1)
        leaning = Episodes(rollouts.episode[rows]).lean(scores, sides=1)
        return "effects of actions" if leaning.exceeds(order, max(level, _LEVEL), sides=1) else ""
