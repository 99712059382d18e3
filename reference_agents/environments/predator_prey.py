"""The grid world for many runs at once; the rules and images are those of `symcheck.envs.predator_prey`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.environments.vector import Step
from reference_agents.randomness import Purpose, UniformStreams
from symcheck.array_types import Array, Bools, Floats
from symcheck.envs.predator_prey import (
    CATCH_REWARD,
    EPISODE_LIMIT,
    MOVES,
    PIXELS,
    PREY_MOVES,
    REACH,
    SIZE,
    STEP_REWARD,
    images,
    wrap,
)


class PredatorPreyVector:
    """The grid world for all environments of all runs.

    Each step takes six uniform numbers per environment, which determine the prey's move or the next start state.

    Args:
        seeds: one seed per run.
        environments: the number of environments of each run.
        purpose: the purpose of the stream that draws start states and the prey's moves.
        index: the index of the stream among those of that purpose.
        coded: whether observations are the indices of images, in the order of `all_images`, instead of the images.
    """

    observation_shape: tuple[int, ...] = (1, PIXELS, PIXELS)
    action_numbers: int = 1

    def __init__(
        self,
        seeds: Sequence[int],
        environments: int,
        *,
        purpose: Purpose = Purpose.ENVIRONMENT,
        index: int = 0,
        coded: bool = False,
    ) -> None:
        # Six numbers per step: whether and where the prey moves, and four for the two cells of a new start.
        self._streams = UniformStreams(seeds, purpose, (environments, 6), index=index)
        self._images = None if coded else all_images()
        self.displacements: npt.NDArray[np.int64] = np.zeros((len(seeds), environments, 2), dtype=np.int64)
        self.elapsed: npt.NDArray[np.int64] = np.zeros((len(seeds), environments), dtype=np.int64)

    def reset(self) -> Array:
        """Start a new episode in every environment; images of shape (runs, environments, 1, 21, 21), float32."""
        self.displacements = _starts(self._streams.next())
        self.elapsed[:] = 0
        return self._draw(self.displacements)

    def step(self, actions: Array, *, active: Bools | None = None) -> Step:
        """Move every active agent, then possibly its prey; ended episodes restart."""
        uniforms = self._streams.next()
        # 0 is no move; 1 to 4 are the moves.
        prey = np.where(uniforms[..., 0] < PREY_MOVES, 1 + (4 * uniforms[..., 1]).astype(np.int64), 0)
        following = wrap(self.displacements + MOVES[actions] - MOVES[prey])
        if active is not None:
            following = np.where(active[..., None], following, self.displacements)
        self.elapsed += 1 if active is None else active
        terminated: Bools = np.logical_not(following.any(-1))
        # Both may start on the same cell; an agent that does not move there does not catch its prey.
        if active is not None:
            terminated = terminated & active
        truncated = self.elapsed >= EPISODE_LIMIT
        ended = terminated | truncated
        final = self._draw(following)
        self.displacements = np.where(ended[..., None], _starts(uniforms), following)
        self.elapsed[ended] = 0
        # If nothing was restarted, both observations are the same image.
        observation = self._draw(self.displacements) if ended.any() else final
        reward = np.where(terminated, CATCH_REWARD, STEP_REWARD).astype(np.float32)
        return Step(observation, final, reward, terminated, truncated)

    def random_actions(self, uniforms: Floats) -> Array:
        """Uniformly random actions."""
        return (len(MOVES) * uniforms[..., 0]).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        return {
            "streams": self._streams.state(),
            "displacements": torch.from_numpy(self.displacements.copy()),
            "elapsed": torch.from_numpy(self.elapsed.copy()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same seeds."""
        self._streams.restore(state["streams"])
        self.displacements = state["displacements"].numpy()
        self.elapsed = state["elapsed"].numpy()

    def _draw(self, displacements: npt.NDArray[np.int64]) -> Array:
        # Row-major numbers 0 to 48.
        codes: Array = (displacements + REACH) @ np.array([SIZE, 1])
        return codes if self._images is None else self._images[codes]


def all_images() -> Array:
    """Every image, ordered by displacement, row by row; shape (49, 1, 21, 21), float32."""
    return images().reshape(SIZE * SIZE, 1, PIXELS, PIXELS).astype(np.float32)


def _starts(uniforms: Floats) -> npt.NDArray[np.int64]:
    """Displacements of two cells drawn uniformly, from the last four numbers."""
    cells = (SIZE * uniforms[..., 2:]).astype(np.int64)
    return wrap(cells[..., :2] - cells[..., 2:])
