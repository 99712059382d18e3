"""CartPole-v1 for many runs at once, bit for bit the dynamics of Gymnasium's environment.

A pole of half length 0.5 m and mass 0.1 kg stands on a cart of mass 1 kg that is pushed with 10 N to the left or to the
right, in explicit Euler steps of 0.02 s. An episode terminates if |x| > 2.4 m or |theta| > 12 degrees, and is truncated
after 500 steps; every step has reward 1.

Source: Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems",
1983; constants and time limit as in Gymnasium's CartPole-v1, against which the tests compare every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.environments.vector import Step
from reference_agents.randomness import Purpose, UniformStreams
from symcheck.array_types import Array, Bools, Floats
from symcheck.envs.models.cartpole import CartAndPole

# Constants of Gymnasium's CartPole-v1; sums and products are computed in the same order.
BODY = CartAndPole(gravity=9.8, mass=0.1 + 1.0, pole_mass=0.1, length=0.5, moment=0.1 * 0.5)
FORCE = 10.0
TIME_STEP = 0.02
ANGLE_LIMIT = 12 * 2 * math.pi / 360
POSITION_LIMIT = 2.4
EPISODE_LIMIT = 500
START_RANGE = 0.05


def dynamics(states: Floats, actions: Array) -> Floats:
    """One Euler step of the cart and its pole.

    Args:
        states: (x in m, x' in m/s, theta in rad, theta' in rad/s) along the last axis, shape (..., 4), float64.
        actions: 0 pushes to the left, 1 to the right; shape (...).

    Returns:
        The next states, shape (..., 4).

    Example:
        >>> dynamics(np.zeros((1, 4)), np.array([1])).round(4).tolist()
        [[0.0, 0.1951, 0.0, -0.2927]]
    """
    x, x_dot, theta, theta_dot = np.moveaxis(states, -1, 0)
    force = np.where(actions == 1, FORCE, -FORCE)
    linear, angular = BODY.accelerations(force, theta_dot, np.cos(theta), np.sin(theta))
    following = np.empty_like(states)
    following[..., 0] = x + TIME_STEP * x_dot
    following[..., 1] = x_dot + TIME_STEP * linear
    following[..., 2] = theta + TIME_STEP * theta_dot
    following[..., 3] = theta_dot + TIME_STEP * angular
    return following


class CartPoleVector:
    """CartPole for all environments of all runs; start states come from each run's own stream.

    Args:
        seeds: one seed per run.
        environments: the number of environments of each run.
        purpose: the purpose of the stream that draws the start states.
        index: the index of the stream among those of that purpose.
    """

    observation_shape: tuple[int, ...] = (4,)
    action_numbers: int = 1

    def __init__(
        self, seeds: Sequence[int], environments: int, *, purpose: Purpose = Purpose.ENVIRONMENT, index: int = 0
    ) -> None:
        self._starts = UniformStreams(seeds, purpose, (environments, 4), index=index)
        self.states: Floats = np.zeros((len(seeds), environments, 4))
        self.elapsed: npt.NDArray[np.int64] = np.zeros((len(seeds), environments), dtype=np.int64)

    def reset(self) -> Array:
        """Start a new episode in every environment; observations of shape (runs, environments, 4), float32."""
        self.states = start_states(self._starts.next())
        self.elapsed[:] = 0
        return self.states.astype(np.float32)

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Push every active cart once; ended episodes restart. Both arguments have shape (runs, environments)."""
        following = dynamics(self.states, actions)
        if active is not None:
            following = np.where(active[..., None], following, self.states)
        # In place; booleans count as 0 and 1, so that inactive environments do not change.
        self.elapsed += 1 if active is None else active
        terminated = (np.abs(following[..., 0]) > POSITION_LIMIT) | (np.abs(following[..., 2]) > ANGLE_LIMIT)
        truncated = self.elapsed >= EPISODE_LIMIT
        final = following.astype(np.float32)
        ended = terminated | truncated
        # Draw start states for all environments, so that the stream does not depend on which episodes ended.
        self.states = np.where(ended[..., None], start_states(self._starts.next()), following)
        self.elapsed[ended] = 0
        return Step(self.states.astype(np.float32), final, np.ones(ended.shape, np.float32), terminated, truncated)

    def random_actions(self, uniforms: Floats) -> Array:
        """Uniformly random actions."""
        return (2 * uniforms[..., 0]).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        return {
            "streams": self._starts.state(),
            "states": torch.from_numpy(self.states.copy()),
            "elapsed": torch.from_numpy(self.elapsed.copy()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same seeds."""
        self._starts.restore(state["streams"])
        self.states = state["states"].numpy()
        self.elapsed = state["elapsed"].numpy()


def start_states(uniforms: Floats) -> Floats:
    """Uniform on [-0.05, 0.05) in each coordinate, from uniform numbers in [0, 1)."""
    return (2.0 * uniforms - 1.0) * START_RANGE
