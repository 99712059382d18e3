"""Learning rates that follow how far an update moved the policy, each run by itself.

After an update the divergence of the new policy from the old one is estimated on the batch. Above twice the target the
rate is divided by 1.5, below half of it multiplied: steps stay as large as the policy allows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.learning.distributions import Distribution
from reference_agents.learning.rollout import Rollout
from symcheck.array_types import Floats

FACTOR, BAND = 1.5, 2.0
"""Of the rule of rsl_rl and of Isaac Gym's PPO."""
LEAST, MOST = 0.01, 10.0
"""Rates stay within these multiples of what the user asked for."""


class AdaptiveRates:
    """The factor of every run's learning rate.

    Args:
        runs: how many.
        target: the divergence to aim at; 0 leaves the factors at 1.

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
        """Go on from a state of the same runs."""
        self.factors = np.array(state)

    def follow(self, divergences: Floats) -> None:
        """Change the factors after an update that moved the policies so far, (runs,)."""
        # What is not a number leaves its run's rate alone.
        self.factors[divergences > BAND * self.target] /= FACTOR
        self.factors[divergences < self.target / BAND] *= FACTOR
        np.clip(self.factors, LEAST, MOST, out=self.factors)


def policy_divergence(policy: Distribution, numbers: torch.Tensor, rollout: Rollout) -> Floats:
    """An estimate of the divergence KL(old, new) on a batch, (runs,): the mean of q - 1 - log q for ratios q.

    Args:
        policy: how the numbers are read.
        numbers: what the new policy gives for the batch, (runs, batch, numbers).
        rollout: the batch, with the old policy's log probabilities.

    Source:
        Schulman, "Approximating KL divergence", 2020: the estimator k3, which is never negative.
    """
    log_ratios = policy.log_probability(numbers, rollout.actions) - rollout.log_probabilities
    estimates: npt.NDArray[np.float64] = (torch.expm1(log_ratios) - log_ratios).double().mean(1).cpu().numpy()
    return estimates
