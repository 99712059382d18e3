"""Derivatives of the losses of PPO and A2C with respect to policy outputs and values, in closed form.

Losses are means over a run's batch. Their derivatives are the input of the network's backward pass; tests compare them
with automatic differentiation of the losses in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from reference_agents.learning.distributions import Distribution, Gaussian
from reference_agents.settings import Algorithm


@dataclass(frozen=True)
class LossWeights:
    """The coefficients of the loss: policy + value_coefficient * value - entropy_coefficient * entropy + penalty."""

    value_coefficient: float
    entropy_coefficient: float
    clip: float
    bound_penalty: float = 0.0


@dataclass(frozen=True)
class Batch:
    """The steps of every run in one gradient; all arrays have shape (runs, batch).

    Attributes:
        actions: the actions; int64, or float32 with an axis of coordinates.
        log_probabilities: the logarithms of the probabilities of those actions when they were drawn.
        advantages: the advantages of those actions.
        returns: the targets of the values.
    """

    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


def ppo_derivatives(
    numbers: torch.Tensor, values: torch.Tensor, batch: Batch, weights: LossWeights, policy: Distribution
) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives of PPO's clipped loss.

    With q the ratio of the new to the old probability of the action, the loss is

        mean( -min(q A, clip(q, 1 - c, 1 + c) A) )
        + value_coefficient mean( (v - G)^2 / 2 ) - entropy_coefficient mean(H).

    Args:
        numbers: the outputs of the policy, (runs, batch, numbers).
        values: (runs, batch).
        batch: the steps.
        weights: the coefficients.
        policy: the action distribution that the outputs parametrise.

    Returns:
        The derivatives with respect to `numbers` and `values`, of the same shapes.

    Source:
        Schulman et al., "Proximal policy optimization algorithms", 2017, eq. 7 and 9.
    """
    # pi(a|s) / pi_old(a|s), from logarithms.
    ratio = torch.exp(policy.log_probability(numbers, batch.actions) - batch.log_probabilities)
    # Where the clipped term is the smaller one, the loss is constant in the ratio and the gradient 0.
    clipped = ((ratio > 1.0 + weights.clip) & (batch.advantages > 0)) | (
        (ratio < 1.0 - weights.clip) & (batch.advantages < 0)
    )
    # d(ratio)/d(log p) = ratio; the loss is minus the objective.
    d_log_probability = torch.where(clipped, 0.0, ratio * batch.advantages).neg_()
    return _combine(numbers, values, batch, d_log_probability, weights, policy)


def a2c_derivatives(
    numbers: torch.Tensor, values: torch.Tensor, batch: Batch, weights: LossWeights, policy: Distribution
) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives of A2C's loss, which is PPO's with -A log p[a] in place of the clipped ratio.

    Args:
        numbers: the outputs of the policy, (runs, batch, numbers).
        values: (runs, batch).
        batch: the steps; the old probabilities are not used.
        weights: the coefficients.
        policy: the action distribution that the outputs parametrise.

    Returns:
        The derivatives with respect to `numbers` and `values`, of the same shapes.

    Source:
        Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016, section 4.
    """
    return _combine(numbers, values, batch, -batch.advantages, weights, policy)


def _combine(
    numbers: torch.Tensor,
    values: torch.Tensor,
    batch: Batch,
    d_log_probability: torch.Tensor,
    weights: LossWeights,
    policy: Distribution,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_numbers = policy.derivatives(numbers, batch.actions, d_log_probability, weights.entropy_coefficient)
    if weights.bound_penalty and isinstance(policy, Gaussian):
        d_numbers = d_numbers + policy.bound_derivatives(numbers, weights.bound_penalty)
    # Of value_coefficient * (v - R)^2 / 2.
    d_values = (values - batch.returns).mul_(weights.value_coefficient)
    size = values.shape[1]
    # Means over the batch of each run.
    return d_numbers.div_(size), d_values.div_(size)


Derivatives = Callable[
    [torch.Tensor, torch.Tensor, Batch, LossWeights, Distribution], tuple[torch.Tensor, torch.Tensor]
]
DERIVATIVES: Mapping[Algorithm, Derivatives] = {"ppo": ppo_derivatives, "a2c": a2c_derivatives}
