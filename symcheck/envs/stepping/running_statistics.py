"""Warms up and freezes wrappers that normalise by running statistics.

An environment must not change during a check, so the statistics are frozen. New statistics have mean 0 and variance 1,
unlike in training. They are therefore first collected with the uniform policy, as at the beginning of training.
Statistics that have already been updated are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from symcheck.array_types import Floats
from symcheck.envs.vec_env import VecEnvBatch

WARMING_STEPS = 500
_MOMENTS = ("mean", "var", "count")


class Normaliser(NamedTuple):
    """A wrapper that normalises by running statistics, such as `NormalizeObservation`.

    Attributes:
        layer: the wrapper.
        statistics: its mean, variance and count; None if they cannot be located.
        switch: the attribute that turns updates on and off.
    """

    layer: Any
    statistics: Any
    switch: str = "update_running_mean"

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and variance, float64, as vectors."""
        mean, variance = (np.ravel(np.asarray(getattr(self.statistics, name), float)) for name in _MOMENTS[:2])
        return mean, variance


def normalisers(env: Any) -> list[Normaliser]:
    """The normalising wrappers of a stack, outermost first: those with a switch for updates.

    Gymnasium's have `update_running_mean`; `VecNormalize` of Stable-Baselines3 has `training`.

    Example:
        >>> stack = gym.wrappers.NormalizeObservation(gym.make("Pendulum-v1"))
        >>> [type(each.layer).__name__ for each in normalisers(stack)]
        ['NormalizeObservation']
    """
    kept = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper | gym.vector.VectorWrapper):
        if isinstance(getattr(type(layer), "update_running_mean", None), property):
            kept.append(Normaliser(layer, _statistics_of(layer)))
        layer = layer.env
    layer = layer.venv if isinstance(layer, VecEnvBatch) else None
    while layer is not None:
        if isinstance(getattr(layer, "training", None), bool) and (statistics := _statistics_of(layer)) is not None:
            kept.append(Normaliser(layer, statistics, "training"))
        layer = vars(layer).get("venv")
    return kept


def _statistics_of(layer: Any) -> Any:
    """The statistics of a wrapper, under any name: its first attribute with a mean, a variance and a count.

    Otherwise None.
    """
    held = [each for each in vars(layer).values() if all(hasattr(each, name) for name in _MOMENTS)]
    return held[0] if held else None


def settle_statistics(env: Any, reset: Callable[[], Any]) -> bool:
    """Warm up statistics that have no data, and freeze all of them.

    Args:
        env: the environment with its wrappers.
        reset: resets it.

    Returns:
        Whether any were warmed up.
    """
    layers = normalisers(env)
    # Gymnasium initialises the count with 1e-4.
    fresh = any(each.statistics is not None and float(each.statistics.count) < 1 for each in layers)
    if fresh:
        for each in layers:
            setattr(each.layer, each.switch, each.statistics is not None and float(each.statistics.count) < 1)
        _warm(env, reset)
    for each in layers:
        setattr(each.layer, each.switch, False)
    return fresh


def _warm(env: Any, reset: Callable[[], Any]) -> None:
    """Take some steps with the uniform policy.

    Errors of the environment are reported when it is stepped during the run.
    """
    try:
        reset()
        for _ in range(WARMING_STEPS):
            ended, cut = env.step(env.action_space.sample())[2:4]
            # Slots of a vector environment reset automatically.
            if not isinstance(env, gym.vector.VectorEnv) and (ended or cut):
                reset()
    except Exception:  # the next reset or step raises it again, with a message that names the call
        return
