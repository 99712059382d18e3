"""Wrappers that normalise by running statistics: warmed where they have seen nothing yet, and frozen.

An environment that changes while it is checked cannot be judged, so that the statistics are frozen. Fresh ones say mean
0 and variance 1, which nobody trains on: they are first gathered as training begins, by the uniform policy. Statistics
that have seen steps already are the user's, and stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from symcheck.array_types import Floats

WARMING_STEPS = 500
_MOMENTS = ("mean", "var", "count")


class Normaliser(NamedTuple):
    """A wrapper that normalises by running statistics, such as `NormalizeObservation`.

    Attributes:
        layer: the wrapper.
        statistics: its mean, variance and count; None where they are not found.
    """

    layer: Any
    statistics: Any

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and variance, float64, as vectors."""
        mean, variance = (np.ravel(np.asarray(getattr(self.statistics, name), float)) for name in _MOMENTS[:2])
        return mean, variance


def normalisers(env: Any) -> list[Normaliser]:
    """The normalising wrappers of a stack, from the outermost on: those that have a switch `update_running_mean`.

    Example:
        >>> stack = gym.wrappers.NormalizeObservation(gym.make("Pendulum-v1"))
        >>> [type(each.layer).__name__ for each in normalisers(stack)]
        ['NormalizeObservation']
    """
    kept = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper | gym.vector.VectorWrapper):
        if isinstance(getattr(type(layer), "update_running_mean", None), property):
            # Whatever the wrapper calls them: an object with a mean, a variance and a count.
            held = [each for each in vars(layer).values() if all(hasattr(each, name) for name in _MOMENTS)]
            kept.append(Normaliser(layer, held[0] if held else None))
        layer = layer.env
    return kept


def settle_statistics(env: Any, reset: Callable[[], Any]) -> bool:
    """Warm the statistics that have seen no step, and freeze all of them.

    Args:
        env: with its wrappers.
        reset: resets it.

    Returns:
        Whether they were warmed.
    """
    layers = normalisers(env)
    # Gymnasium begins to count at 1e-4.
    fresh = any(each.statistics is not None and float(each.statistics.count) < 1 for each in layers)
    if fresh:
        for each in layers:
            each.layer.update_running_mean = each.statistics is not None and float(each.statistics.count) < 1
        _warm(env, reset)
    for each in layers:
        each.layer.update_running_mean = False
    return fresh


def _warm(env: Any, reset: Callable[[], Any]) -> None:
    """Some steps of the uniform policy; what an environment raises is reported when it is stepped in earnest."""
    try:
        reset()
        for _ in range(WARMING_STEPS):
            ended, cut = env.step(env.action_space.sample())[2:4]
            # Slots of a vector environment reset themselves.
            if not isinstance(env, gym.vector.VectorEnv) and (ended or cut):
                reset()
    except Exception:  # whatever it is, the next reset or step meets it again and says what was being done
        return
