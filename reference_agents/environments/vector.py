"""The interface of environments that step all environments of all runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Array, Bools


@dataclass(frozen=True)
class Step:
    """The result of one step of every environment.

    Attributes:
        observation: the next observation to act on, shape (runs, environments, *observation); if an episode ended, the
            first observation of the next episode.
        final_observation: the observation after the step, same shape; it differs from `observation` only if an episode
            ended. Values are bootstrapped from it.
        reward: shape (runs, environments), float32.
        terminated: whether the task ended, shape (runs, environments).
        truncated: whether the time limit ended the episode before the task ended. Both flags may be set.
        score: the reported score of the step if it differs from the reward (which may be clipped); otherwise None.
        game_over: the end of the scored game if it is not the end of the episode (which may be one life); otherwise
            None.
    """

    observation: Array
    final_observation: Array
    reward: npt.NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    # Unclipped rewards and ends of whole games, if episodes are single lives; otherwise None.
    score: npt.NDArray[np.float32] | None = None
    game_over: Bools | None = None


class VectorEnvironment(Protocol):
    """All environments of all runs, with one random stream per run; ended episodes restart within the same step.

    Attributes:
        observation_shape: the shape of one observation.
        action_numbers: the number of uniform numbers that draw one action: 1 for a discrete action, otherwise its
            number of coordinates.
    """

    observation_shape: tuple[int, ...]
    action_numbers: int

    def random_actions(self, uniforms: npt.NDArray[np.float64]) -> Array:
        """Uniformly random actions, from numbers (runs, environments, action_numbers) in [0, 1)."""

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`, in tensors, numbers and strings."""

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same seeds."""

    def reset(self) -> Array:
        """Start a new episode in every environment; observations of shape (runs, environments, *observation_shape)."""

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Apply one action to every environment.

        Inactive environments do not change; None means that all are active. Every call consumes the same number of
        random values.
        """
