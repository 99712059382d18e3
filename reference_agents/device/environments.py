"""CartPole and the grid world in tensors; states are in fixed buffers that every step overwrites.

With the same uniform numbers, the grid world agrees bit for bit with the NumPy environment. CartPole agrees up to the
last bits of sines and cosines, which differ between libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from reference_agents.environments import cartpole
from reference_agents.environments.predator_prey import all_images
from symcheck.envs import predator_prey


@dataclass(frozen=True)
class DeviceStep:
    """The result of one step of every environment: `environments.vector.Step` in tensors (runs, environments)."""

    final_observation: torch.Tensor
    reward: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor


class DeviceEnvironment(Protocol):
    """All environments of all runs on a device; ended episodes restart within the same step.

    Attributes:
        uniforms: the number of uniform numbers in [0, 1) that a reset or a step takes for each environment.
        actions: the number of actions.
    """

    uniforms: int
    actions: int

    def reset(self, uniforms: torch.Tensor) -> None:
        """Start a new episode in every environment; uniforms of shape (runs, environments, self.uniforms), float64."""

    def observe(self) -> torch.Tensor:
        """The current observations, (runs, environments, ...)."""

    def step(self, actions: torch.Tensor, uniforms: torch.Tensor, *, active: torch.Tensor | None = None) -> DeviceStep:
        """Apply one action to every active environment; actions and active of shape (runs, environments)."""


class CartPoleDevice:
    """CartPole-v1; states in float64 as in Gymnasium.

    Args:
        runs: the number of runs.
        environments: the number of environments of each run.
        device: the device of the states.
    """

    # Uniform numbers that a step takes, all for a start state, and the number of actions.
    uniforms, actions = 4, 2

    def __init__(self, runs: int, environments: int, device: torch.device) -> None:
        self.states = torch.zeros(runs, environments, 4, dtype=torch.float64, device=device)
        self.elapsed = torch.zeros(runs, environments, dtype=torch.int64, device=device)

    def reset(self, uniforms: torch.Tensor) -> None:
        """As `DeviceEnvironment.reset`."""
        self.states.copy_(_cart_start(uniforms))
        self.elapsed.zero_()

    def observe(self) -> torch.Tensor:
        """(runs, environments, 4), float32."""
        return self.states.float()

    def step(self, actions: torch.Tensor, uniforms: torch.Tensor, *, active: torch.Tensor | None = None) -> DeviceStep:
        """As `DeviceEnvironment.step`."""
        following = cart_dynamics(self.states, actions)
        elapsed = self.elapsed + 1
        # Inactive environments do not change, including their step count.
        if active is not None:
            following = torch.where(active.unsqueeze(-1), following, self.states)
            elapsed = torch.where(active, elapsed, self.elapsed)
        terminated = (following[..., 0].abs() > cartpole.POSITION_LIMIT) | (
            following[..., 2].abs() > cartpole.ANGLE_LIMIT
        )
        truncated = elapsed >= cartpole.EPISODE_LIMIT
        ended = terminated | truncated
        # `copy_`: a recorded graph reads and writes the same memory in every replay.
        self.states.copy_(torch.where(ended.unsqueeze(-1), _cart_start(uniforms), following))
        self.elapsed.copy_(torch.where(ended, 0, elapsed))
        reward = torch.ones(ended.shape, device=ended.device)
        # The observation before a restart, which the bootstrap needs.
        return DeviceStep(following.float(), reward, terminated, truncated)


def _cart_start(uniforms: torch.Tensor) -> torch.Tensor:
    return (2.0 * uniforms - 1.0) * cartpole.START_RANGE


def cart_dynamics(states: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """One Euler step; as `environments.cartpole.dynamics`.

    Args:
        states: (..., 4), float64.
        actions: 0 pushes to the left, 1 to the right; shape (...).

    Returns:
        The next states, shape (..., 4).

    Example:
        >>> cart_dynamics(torch.zeros(1, 4, dtype=torch.float64), torch.tensor([1])).round(decimals=4).tolist()
        [[0.0, 0.1951, 0.0, -0.2927]]
    """
    x, x_dot, theta, theta_dot = states.unbind(-1)
    force = torch.where(actions == 1, cartpole.FORCE, -cartpole.FORCE).to(states.dtype)
    linear, angular = cartpole.BODY.accelerations(force, theta_dot, theta.cos(), theta.sin())
    step = cartpole.TIME_STEP
    return torch.stack(
        [x + step * x_dot, x_dot + step * linear, theta + step * theta_dot, theta_dot + step * angular], dim=-1
    )


class PredatorPreyDevice:
    """The 7 x 7 grid world; its state is the displacement agent - prey.

    Args:
        runs: the number of runs.
        environments: the number of environments of each run.
        device: the device of the states.
        coded: whether observations are the indices of images, in the order of `all_images`, instead of the images.
    """

    # Whether and where the prey moves, then four numbers for two start cells.
    uniforms, actions = 6, len(predator_prey.MOVES)

    def __init__(self, runs: int, environments: int, device: torch.device, *, coded: bool) -> None:
        self.displacements = torch.zeros(runs, environments, 2, dtype=torch.int64, device=device)
        self.elapsed = torch.zeros(runs, environments, dtype=torch.int64, device=device)
        self._moves = torch.as_tensor(predator_prey.MOVES, device=device)
        # Row-major: the number of a displacement is 7 * (row + 3) + column + 3.
        self._rows = torch.tensor([predator_prey.SIZE, 1], device=device)
        self._images = None if coded else torch.as_tensor(all_images(), device=device)

    def reset(self, uniforms: torch.Tensor) -> None:
        """As `DeviceEnvironment.reset`."""
        self.displacements.copy_(_grid_start(uniforms))
        self.elapsed.zero_()

    def observe(self) -> torch.Tensor:
        """Indices of images (runs, environments), int64; or images (runs, environments, 1, 21, 21), float32."""
        return self._draw(self.displacements)

    def step(self, actions: torch.Tensor, uniforms: torch.Tensor, *, active: torch.Tensor | None = None) -> DeviceStep:
        """As `DeviceEnvironment.step`."""
        moves = uniforms[..., 0] < predator_prey.PREY_MOVES
        prey = torch.where(moves, 1 + (4 * uniforms[..., 1]).long(), 0)
        following = _wrap(self.displacements + self._moves[actions] - self._moves[prey])
        elapsed = self.elapsed + 1
        if active is not None:
            following = torch.where(active.unsqueeze(-1), following, self.displacements)
            elapsed = torch.where(active, elapsed, self.elapsed)
        terminated = ~following.bool().any(-1)
        # Both may start on the same cell; an agent that does not move there does not catch its prey.
        if active is not None:
            terminated = terminated & active
        truncated = elapsed >= predator_prey.EPISODE_LIMIT
        ended = terminated | truncated
        self.displacements.copy_(torch.where(ended.unsqueeze(-1), _grid_start(uniforms), following))
        self.elapsed.copy_(torch.where(ended, 0, elapsed))
        reward = torch.where(terminated, predator_prey.CATCH_REWARD, predator_prey.STEP_REWARD).float()
        return DeviceStep(self._draw(following), reward, terminated, truncated)

    def _draw(self, displacements: torch.Tensor) -> torch.Tensor:
        codes = ((displacements + predator_prey.REACH) * self._rows).sum(-1)
        return codes if self._images is None else self._images[codes]


def _wrap(displacements: torch.Tensor) -> torch.Tensor:
    return (displacements + predator_prey.REACH) % predator_prey.SIZE - predator_prey.REACH


def _grid_start(uniforms: torch.Tensor) -> torch.Tensor:
    # uniforms[..., 2:] has four numbers: row and column of agent and prey.
    cells = (predator_prey.SIZE * uniforms[..., 2:]).long()
    return _wrap(cells[..., :2] - cells[..., 2:])
