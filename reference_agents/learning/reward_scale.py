"""Scales rewards by the running standard deviation of discounted returns.

The value loss and the advantages of every task are then of order one, for any unit of rewards. The scale is the same
for a state and its images, so equivariant networks stay equivariant. Evaluations use unscaled rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from symcheck.array_types import Array, Bools, Floats

# Smaller deviations count as those of constant rewards.
LEAST_DEVIATION = 1e-8


class RewardScale:
    """The standard deviation of each run's discounted returns, over all steps of all its environments so far.

    Args:
        runs: the number of runs.
        environments: the number of environments of each run.
        discount: the discount of the returns.

    Example:
        >>> scale = RewardScale(1, 2, 0.5)
        >>> scale.add(np.array([[1.0, 3.0]]), np.zeros((1, 2), bool))
        >>> scale.deviations().tolist()
        [1.0]
    """

    def __init__(self, runs: int, environments: int, discount: float) -> None:
        self._discount = discount
        self._running = np.zeros((runs, environments))
        # Number, mean and sum of squared differences from the mean of each run's returns.
        self._count, self._mean, self._squares = np.zeros(runs), np.zeros(runs), np.zeros(runs)

    def add(self, rewards: Array, ended: Bools) -> None:
        """Add one step of every environment; both arguments have shape (runs, environments)."""
        self._running = self._discount * self._running + rewards
        size = self._running.shape[1]
        mean, total = self._running.mean(1), self._count + size
        difference = mean - self._mean
        # Combine two samples: Chan, Golub and LeVeque (1983), equation 1.5.
        self._squares += self._running.var(1) * size + difference**2 * self._count * size / total
        self._mean += difference * size / total
        self._count = total
        self._running[ended] = 0.0

    def deviations(self) -> Floats:
        """The standard deviation of each run's returns, shape (runs,); 1 if all were equal."""
        deviation: Floats = np.sqrt(self._squares / np.maximum(self._count, 1.0))
        return np.where(deviation > LEAST_DEVIATION, deviation, 1.0)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        parts = {"running": self._running, "count": self._count, "mean": self._mean, "squares": self._squares}
        return {name: torch.from_numpy(part.copy()) for name, part in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        names = ("running", "count", "mean", "squares")
        self._running, self._count, self._mean, self._squares = (state[name].numpy().copy() for name in names)
