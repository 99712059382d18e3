"""Learning rates that adapt, for each run, to the size of its policy updates.

After an update the divergence of the new policy from the old one is estimated on the batch. Above twice the target the
learning rate is divided by 1.5, and below half of it multiplied by 1.5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.learning.distributions import Distribution
from reference_agents.learning.rollout import Rollout
from symcheck.array_types import Floats

FACTOR, BAND = 1.5, 2.0
"""The factor in the rule of rsl_rl and of Isaac Gym's PPO."""
LEAST, MOST = 0.01, 10.0
"""Rates stay within these multiples of the requested rate."""


class AdaptiveRates:
    """The factor of every run's learning rate.

    Args:
        runs: the number of runs.
        target: the target divergence; 0 leaves the factors at 1.

    Example:
        >>> rates = AdaptiveRates(2, 0.01)
        >>> rates.follow(np.array([0.1, 0.01]))
        >>> rates.factors.round(2).tolist()
        [0.67, 1.0]
    """

    def __init__(self, runs: int, target: float) -> None:
        self.target = target
        self.factors: Floats = np.ones(runs)

    def state(self) -> list[float]:
        """The factors."""
        return [float(factor) for factor in self.factors]

    def restore(self, state: list[float]) -> None:
        """Restore a state of the same runs."""
        self.factors = np.array(state)

    def follow(self, divergences: Floats) -> None:
        """Adapt the factors after an update with these divergences, (runs,)."""
        # NaN leaves its run's rate unchanged.
        self.factors[divergences > BAND * self.target] /= FACTOR
        self.factors[divergences < self.target / BAND] *= FACTOR
        np.clip(self.factors, LEAST, MOST, out=self.factors)


def policy_divergence(policy: Distribution, numbers: torch.Tensor, rollout: Rollout) -> Floats:
    """An estimate of the divergence KL(old, new) on a batch, (runs,): the mean of q - 1 - log q for ratios q.

    Args:
        policy: the action distribution that the outputs parametrise.
        numbers: the outputs of the new policy for the batch, (runs, batch, numbers).
        rollout: the batch, with the old policy's log probabilities.

    Source:
        Schulman, "Approximating KL divergence", 2020: the estimator k3, which is never negative.
    """
    log_ratios = policy.log_probability(numbers, rollout.actions) - rollout.log_probabilities
    estimates: npt.NDArray[np.float64] = (torch.expm1(log_ratios) - log_ratios).double().mean(1).cpu().numpy()
    return estimates
