"""Batched mountain car, with three actions or a continuous one: a car in a cosine valley between walls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.envs.models.model import BatchModel, Transitions

_SLOPE = 0.0025  # of the continuous version, in which gravity is a constant


def build(env: Any) -> BatchModel:
    """The batched form of a `MountainCarEnv`.

    Args:
        env: the unwrapped environment; force, gravity, bounds and goal are read from it.

    Returns:
        The form; states are (position, velocity).

    Source: A. W. Moore, Efficient memory-based learning for robot control (1990), chapter 4.3.
    """
    force, gravity, fastest = env.force, env.gravity, env.max_speed
    low, high = env.min_position, env.max_position

    def step(states: Floats, actions: npt.NDArray[Any]) -> Transitions:
        position, velocity = states[:, 0], states[:, 1]
        velocity = velocity + ((actions - 1) * force + _cosines(3 * position) * (-gravity))
        velocity = np.clip(velocity, -fastest, fastest)
        # Velocity first: the position uses the new velocity.
        position = np.clip(position + velocity, low, high)
        # The left wall stops the car; the right end is the goal.
        velocity = np.where((position == low) & (velocity < 0), 0.0, velocity)
        following = np.stack([position, velocity], axis=1)
        return Transitions(following, observe(following), np.full(len(states), -1.0), reached(following))

    reached = _goal(env)
    return BatchModel("the batched form of MountainCarEnv", step, observe, reached)


def build_continuous(env: Any) -> BatchModel:
    """The batched form of a `Continuous_MountainCarEnv`.

    Args:
        env: the unwrapped environment; power, bounds and goal are read from it.

    Returns:
        The form; its next states have float32 precision, like the environment's.

    Source: as `build`, with a force proportional to the action and its square as a cost.
    """
    power, fastest, low, high = env.power, env.max_speed, env.min_position, env.max_position
    weakest, strongest = env.min_action, env.max_action
    reached = _goal(env)

    def step(states: Floats, actions: npt.NDArray[Any]) -> Transitions:
        position, velocity = states[:, 0], states[:, 1]
        push = np.clip(actions[:, 0], weakest, strongest)
        # The environment adds in float32 here, because its actions are float32.
        velocity = velocity + (push * power - (_SLOPE * _cosines(3 * position)).astype(push.dtype))
        velocity = np.clip(velocity, -fastest, fastest)
        position = np.clip(position + velocity, low, high)
        velocity = np.where((position == low) & (velocity < 0), 0.0, velocity)
        ends = reached(np.stack([position, velocity], axis=1))
        # Computed from the unclipped action in float64, as in the environment.
        cost = actions[:, 0].astype(np.float64) ** 2 * 0.1
        shown = np.stack([position, velocity], axis=1).astype(np.float32)
        # The environment stores its state in float32; converting to float64 is exact.
        return Transitions(shown.astype(np.float64), shown, np.where(ends, 100.0, 0.0) - cost, ends)

    return BatchModel("the batched form of Continuous_MountainCarEnv", step, observe, reached)


def observe(states: Floats) -> npt.NDArray[np.float32]:
    """The observations of states: the states in float32."""
    return states.astype(np.float32)


def _goal(env: Any) -> Any:
    place, speed = env.goal_position, env.goal_velocity
    return lambda states: (states[:, 0] >= place) & (states[:, 1] >= speed)


def _cosines(angles: Floats) -> Floats:
    """Cosines computed by the C library; NumPy's differ in the last bit on some processors."""
    return np.fromiter(map(math.cos, angles.tolist()), dtype=np.float64, count=len(angles))
