"""What the trainer asks of an environment that steps all environments of all runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Array, Bools


@dataclass(frozen=True)
class Step:
    """What one step of every environment returned.

    Attributes:
        observation: what to act on next, shape (runs, environments, *observation); where an episode ended, the first
            observation of the next episode.
        final_observation: what the step itself led to, same shape; differs from `observation` only where an episode
            ended. This is what a value may be bootstrapped from.
        reward: shape (runs, environments), float32.
        terminated: the task ended; nothing follows. Shape (runs, environments).
        truncated: the time limit ended the episode; the task would have gone on. Both may be set.
        score: what is reported of the step where that is not the reward (which may be clipped); else None.
        game_over: where what is reported ends, if not with an episode (which may be one life of a game); else None.
    """

    observation: Array
    final_observation: Array
    reward: npt.NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    # Unclipped rewards and ends of whole games, where episodes are lives of a game; None elsewhere.
    score: npt.NDArray[np.float32] | None = None
    game_over: Bools | None = None


class VectorEnvironment(Protocol):
    """All environments of all runs, with one random stream per run; ended episodes restart within the same step.

    Attributes:
        observation_shape: the shape of one observation.
        action_numbers: uniform numbers that draw one action: 1 for discrete actions, else their coordinates.
    """

    observation_shape: tuple[int, ...]
    action_numbers: int

    def random_actions(self, uniforms: npt.NDArray[np.float64]) -> Array:
        """Actions uniform over all there are, from numbers (runs, environments, action_numbers) in [0, 1)."""

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on, in tensors, numbers and strings."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same seeds."""

    def reset(self) -> Array:
        """Start every episode afresh; observations of shape (runs, environments, *observation_shape)."""

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Apply one action to every environment.

        Environments that are not active stay as they are; None means that all are. What a call takes from the random
        streams is the same whatever happens in it.
        """
