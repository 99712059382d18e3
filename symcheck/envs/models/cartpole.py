"""Batched cart and pole: the equations of motion of a pole on a cart, one explicit or half-implicit Euler step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.envs.models.model import BatchModel, Transitions, Vector


def build(env: Any) -> BatchModel:
    """The batched form of a `CartPoleEnv`.

    Args:
        env: the unwrapped environment; masses, lengths, thresholds and rewards are read from it.

    Returns:
        The form; states are (x, x velocity, angle, angular velocity).

    Source: R. V. Florian, Correct equations for the dynamics of the cart-pole system (2007), without friction.
    """
    force, gravity, tau = env.force_mag, env.gravity, env.tau
    mass, pole_mass, length, moment = env.total_mass, env.masspole, env.length, env.polemass_length
    far, tilted = env.x_threshold, env.theta_threshold_radians
    euler = env.kinematics_integrator == "euler"
    going, over = (0.0, -1.0) if env._sutton_barto_reward else (1.0, 1.0)

    def ended(states: Vector) -> npt.NDArray[np.bool_]:
        x, angle = states[:, 0], states[:, 2]
        return np.asarray((x < -far) | (x > far) | (angle < -tilted) | (angle > tilted))

    def step(states: Vector, actions: npt.NDArray[Any]) -> Transitions:
        x, v, angle, spin = np.ascontiguousarray(states.T)
        push = np.where(actions == 1, force, -force)
        cosine, sine = np.cos(angle), np.sin(angle)
        pull = (push + moment * np.square(spin) * sine) / mass
        turn = (gravity * sine - cosine * pull) / (length * (4.0 / 3.0 - pole_mass * np.square(cosine) / mass))
        drive = pull - moment * turn * cosine / mass
        following = np.empty_like(states)
        if euler:
            following[:, 0], following[:, 2] = x + tau * v, angle + tau * spin
            following[:, 1], following[:, 3] = v + tau * drive, spin + tau * turn
        else:
            following[:, 1], following[:, 3] = v + tau * drive, spin + tau * turn
            following[:, 0], following[:, 2] = x + tau * following[:, 1], angle + tau * following[:, 3]
        over_now = ended(following)
        return Transitions(following, observe(following), np.where(over_now, over, going), over_now)

    return BatchModel("the batched form of CartPoleEnv", step, observe, ended)


def observe(states: Vector) -> npt.NDArray[np.float32]:
    """What states show: themselves in float32."""
    return states.astype(np.float32)
