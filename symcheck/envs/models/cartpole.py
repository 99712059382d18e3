"""Batched cart and pole: the equations of motion of a pole on a cart, one explicit or half-implicit Euler step.

The equations use arithmetic only, so they work for NumPy and torch in any precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.envs.models.model import BatchModel, Transitions


@dataclass(frozen=True)
class CartAndPole:
    """The physical parameters of a cart and pole.

    Attributes:
        gravity: the acceleration of gravity, in m/s^2.
        mass: the mass of cart and pole together, in kg.
        pole_mass: the mass of the pole, in kg.
        length: half the length of the pole, in m.
        moment: the pole's mass times its half length, in kg m.
    """

    gravity: float
    mass: float
    pole_mass: float
    length: float
    moment: float

    def accelerations(self, push: Any, spin: Any, cosine: Any, sine: Any) -> tuple[Any, Any]:
        """The accelerations of the cart (m/s^2) and of the pole's angle (rad/s^2), without friction.

        Args:
            push: the force on the cart, in N; numbers or arrays of NumPy or torch, as the other arguments.
            spin: the pole's angular velocity, in rad/s.
            cosine: the cosine of the pole's angle.
            sine: the sine of the pole's angle.

        Example:
            >>> CartAndPole(9.8, 1.1, 0.1, 0.5, 0.05).accelerations(0.0, 0.0, 1.0, 0.0)
            (0.0, 0.0)

        Source: R. V. Florian, Correct equations for the dynamics of the cart-pole system (2007), without friction.
        """
        # Operations in the environment's order: a different order changes the last bit.
        pull = (push + self.moment * (spin * spin) * sine) / self.mass
        # 4/3 is a uniform rod's moment of inertia about its end, over m l^2, with l half its length.
        inertia = self.length * (4.0 / 3.0 - self.pole_mass * (cosine * cosine) / self.mass)
        turn = (self.gravity * sine - cosine * pull) / inertia
        return pull - self.moment * turn * cosine / self.mass, turn


def build(env: Any) -> BatchModel:
    """The batched form of a `CartPoleEnv`.

    Args:
        env: the unwrapped environment; masses, lengths, thresholds and rewards are read from it.

    Returns:
        The form; states are (x, x velocity, angle, angular velocity).
    """
    force, tau = env.force_mag, env.tau
    body = CartAndPole(env.gravity, env.total_mass, env.masspole, env.length, env.polemass_length)
    far, tilted = env.x_threshold, env.theta_threshold_radians
    euler = env.kinematics_integrator == "euler"
    # Rewards of continuing and of terminating steps. The Sutton-Barto variant only penalises termination.
    going, over = (0.0, -1.0) if env._sutton_barto_reward else (1.0, 1.0)

    def is_terminal(states: Floats) -> npt.NDArray[np.bool_]:
        x, angle = states[:, 0], states[:, 2]
        return np.asarray((x < -far) | (x > far) | (angle < -tilted) | (angle > tilted))

    def step(states: Floats, actions: npt.NDArray[Any]) -> Transitions:
        # Contiguous rows: the arithmetic below is vectorised over n states.
        x, v, angle, spin = np.ascontiguousarray(states.T)
        push = np.where(actions == 1, force, -force)
        drive, turn = body.accelerations(push, spin, np.cos(angle), np.sin(angle))
        following = np.empty_like(states)
        # Explicit Euler uses the old velocities, the half-implicit form the new ones.
        if euler:
            following[:, 0], following[:, 2] = x + tau * v, angle + tau * spin
            following[:, 1], following[:, 3] = v + tau * drive, spin + tau * turn
        else:
            following[:, 1], following[:, 3] = v + tau * drive, spin + tau * turn
            following[:, 0], following[:, 2] = x + tau * following[:, 1], angle + tau * following[:, 3]
        over_now = is_terminal(following)
        return Transitions(following, observe(following), np.where(over_now, over, going), over_now)

    return BatchModel("the batched form of CartPoleEnv", step, observe, is_terminal)


def observe(states: Floats) -> npt.NDArray[np.float32]:
    """The observations of states: the states in float32."""
    return states.astype(np.float32)
