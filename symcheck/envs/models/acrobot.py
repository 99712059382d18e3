"""Batched acrobot: two links, a torque at the joint between them, one fourth-order Runge-Kutta step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.envs.models.model import BatchModel, Transitions

_G = 9.8  # a constant, not a parameter of the environment
_TURN = 2 * np.pi


def build(env: Any) -> BatchModel | None:
    """The batched form of an `AcrobotEnv`, None if it adds noise to its torque.

    Args:
        env: the unwrapped environment; masses, lengths, torques, limits and the variant are read from it.

    Returns:
        The form; states are (angle 1, angle 2, angular velocity 1, angular velocity 2).

    Source: R. S. Sutton and A. G. Barto, Reinforcement Learning (1998), section 11.3.
    """
    # Noise comes from the environment's generator, which a batch cannot use.
    if env.torque_noise_max > 0:
        return None
    torques = np.asarray(env.AVAIL_TORQUE, dtype=np.float64)
    dt, fast_1, fast_2 = env.dt, env.MAX_VEL_1, env.MAX_VEL_2
    derivative = _derivative(env)

    def step(states: Floats, actions: npt.NDArray[Any]) -> Transitions:
        # `states.T` has shape (4, n): one row for each coordinate, as the derivative unpacks it.
        following = _runge_kutta(derivative, states.T, torques[np.asarray(actions, dtype=np.int64)], dt)
        angles = [_wrap_angles(following[j]) for j in range(2)]
        spins = [np.clip(following[2], -fast_1, fast_1), np.clip(following[3], -fast_2, fast_2)]
        states = np.stack([*angles, *spins], axis=1)
        ends = is_terminal(states)
        # The reward is 0 for a terminating step, and -1 otherwise.
        return Transitions(states, observe(states), np.where(ends, 0.0, -1.0), ends)

    return BatchModel("the batched form of AcrobotEnv", step, observe, is_terminal, state_showing)


def observe(states: Floats) -> npt.NDArray[np.float32]:
    """The observations of states: cosines and sines of both angles, and both angular velocities, in float32."""
    theta_1, theta_2 = states[:, 0], states[:, 1]
    shown = [np.cos(theta_1), np.sin(theta_1), np.cos(theta_2), np.sin(theta_2), states[:, 2], states[:, 3]]
    return np.stack(shown, axis=1).astype(np.float32)


def state_showing(observations: npt.NDArray[Any]) -> Floats:
    """The states that belong to observations, in float64."""
    wide = observations.astype(np.float64)
    angles = [np.arctan2(wide[:, 1], wide[:, 0]), np.arctan2(wide[:, 3], wide[:, 2])]
    return np.stack([*angles, wide[:, 4], wide[:, 5]], axis=1)


def is_terminal(states: Floats) -> npt.NDArray[np.bool_]:
    """Whether the tip is a link's length above the base."""
    # Height of the tip above the base, in link lengths; the second angle is relative to the first link.
    return np.asarray(-np.cos(states[:, 0]) - np.cos(states[:, 1] + states[:, 0]) > 1.0)


def _derivative(env: Any) -> Callable[[Floats, Floats], Floats]:
    m_1, m_2, moment = env.LINK_MASS_1, env.LINK_MASS_2, env.LINK_MOI
    l_1, c_1, c_2 = env.LINK_LENGTH_1, env.LINK_COM_POS_1, env.LINK_COM_POS_2
    # Sutton and Barto's book and the NIPS paper differ in one term of the second link's equation.
    nips = env.book_or_nips == "nips"

    def derivative(state: Floats, torque: Floats) -> Floats:
        theta_1, theta_2, spin_1, spin_2 = state
        cosine, sine = np.cos(theta_2), np.sin(theta_2)
        # d_1, d_2, phi_1 and phi_2 as in the book; operations are in the environment's order, so that rounding agrees.
        d_1 = m_1 * c_1**2 + m_2 * (l_1**2 + c_2**2 + 2 * l_1 * c_2 * cosine) + moment + moment
        d_2 = m_2 * (c_2**2 + l_1 * c_2 * cosine) + moment
        phi_2 = m_2 * c_2 * _G * np.cos(theta_1 + theta_2 - np.pi / 2.0)
        phi_1 = (
            # `float_power` calls the C library, as ** of two scalars does in the environment.
            -m_2 * l_1 * c_2 * np.float_power(spin_2, 2.0) * sine
            - 2 * m_2 * l_1 * c_2 * spin_2 * spin_1 * sine
            + (m_1 * c_1 + m_2 * l_1) * _G * np.cos(theta_1 - np.pi / 2)
            + phi_2
        )
        numerator = torque + d_2 / d_1 * phi_1
        if not nips:
            numerator = numerator - m_2 * l_1 * c_2 * np.float_power(spin_1, 2.0) * sine
        faster_2 = (numerator - phi_2) / (m_2 * c_2**2 + moment - np.float_power(d_2, 2.0) / d_1)
        faster_1 = -(d_2 * faster_2 + phi_1) / d_1
        return np.stack([spin_1, spin_2, faster_1, faster_2])

    return derivative


def _runge_kutta(derivative: Callable[[Floats, Floats], Floats], state: Floats, torque: Floats, dt: float) -> Floats:
    # The classical tableau; the torque is constant during a step.
    half = dt / 2.0
    k_1 = derivative(state, torque)
    k_2 = derivative(state + half * k_1, torque)
    k_3 = derivative(state + half * k_2, torque)
    k_4 = derivative(state + dt * k_3, torque)
    return np.asarray(state + dt / 6.0 * (k_1 + 2 * k_2 + 2 * k_3 + k_4))


def _wrap_angles(angles: Floats) -> Floats:
    """Angles in [-pi, pi], by subtracting one full turn at a time, so that rounding agrees with the environment."""
    while (angles > np.pi).any():
        angles = np.where(angles > np.pi, angles - _TURN, angles)
    while (angles < -np.pi).any():
        angles = np.where(angles < -np.pi, angles + _TURN, angles)
    return angles
