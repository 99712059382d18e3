"""Batched pendulum: a torque on a rod, one half-implicit Euler step; costs are quadratic in state and torque."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.envs.models.model import BatchModel, Transitions, never


def build(env: Any) -> BatchModel:
    """The batched form of a `PendulumEnv`.

    Args:
        env: the unwrapped environment; gravity, mass, length, step and limits are read from it.

    Returns:
        The form; states are (angle, angular velocity), torques are float32 as in the action space.

    Source: the equation of motion of a uniform rod about its end, moment of inertia m l^2 / 3.
    """
    # Gravity's torque and the motor's, each over the moment of inertia m l^2 / 3.
    gravity_torque, motor = 3 * env.g / (2 * env.l), 3.0 / (env.m * env.l**2)
    dt, strongest, fastest = env.dt, env.max_torque, env.max_speed

    def step(states: Floats, actions: npt.NDArray[Any]) -> Transitions:
        angle, spin = states[:, 0], states[:, 1]
        torque = np.clip(actions, -strongest, strongest)[:, 0]
        # The angle in [-pi, pi): the cost counts the distance from upright.
        upright = ((angle + np.pi) % (2 * np.pi)) - np.pi
        # Powers computed by the C library, as for scalars; x * x may differ in the last bit.
        cost = np.float_power(upright, 2.0) + 0.1 * np.float_power(spin, 2.0) + 0.001 * _squares(torque)
        faster = spin + (gravity_torque * np.sin(angle) + motor * torque) * dt
        faster = np.clip(faster, -fastest, fastest)
        # The angle uses the new velocity: half-implicit Euler.
        following = np.stack([angle + faster * dt, faster], axis=1)
        return Transitions(following, observe(following), -cost, never(states))

    return BatchModel("the batched form of PendulumEnv", step, observe, never, state_showing)


def observe(states: Floats) -> npt.NDArray[np.float32]:
    """The observations of states: cosine and sine of the angle, and the angular velocity, in float32."""
    angle, spin = states[:, 0], states[:, 1]
    return np.stack([np.cos(angle), np.sin(angle), spin], axis=1).astype(np.float32)


def state_showing(observations: npt.NDArray[Any]) -> Floats:
    """The states that belong to observations, in float64."""
    wide = observations.astype(np.float64)
    return np.stack([np.arctan2(wide[:, 1], wide[:, 0]), wide[:, 2]], axis=1)


def _squares(torques: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Squares of float32 scalars, one by one, because the C library and NumPy's array code round differently."""
    return np.array([torque**2 for torque in torques], dtype=torques.dtype)
