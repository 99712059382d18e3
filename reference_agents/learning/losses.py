"""Derivatives of the losses of PPO and A2C by logits and values, in closed form.

With p = softmax(logits), H = -sum p log p, one sample's derivatives are

    d log p[a] / d logit_j = 1[j = a] - p_j                d H / d logit_j = -p_j (log p_j + H)

Losses are means over a run's batch. Their derivatives go into the network's backward pass; the tests compare them with
automatic differentiation of the losses as written in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LossWeights:
    """The coefficients of the loss: policy + value_coefficient * value - entropy_coefficient * entropy."""

    value_coefficient: float
    entropy_coefficient: float
    clip: float


@dataclass(frozen=True)
class Batch:
    """Steps of every run that a gradient is taken over; all of shape (runs, batch).

    Attributes:
        actions: what was done, int64.
        log_probabilities: of those actions when they were drawn.
        advantages: how much better they were than expected.
        returns: what the values should have been.
    """

    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


def ppo_derivatives(
    logits: torch.Tensor, values: torch.Tensor, batch: Batch, weights: LossWeights
) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives of PPO's clipped loss,

        mean( -min(q A, clip(q, 1 - c, 1 + c) A) )
        + value_coefficient mean( (v - G)^2 / 2 ) - entropy_coefficient mean(H),

    with q the ratio of the new to the old probability of the action.

    Args:
        logits: (runs, batch, actions).
        values: (runs, batch).
        batch: the steps.
        weights: the coefficients.

    Returns:
        The derivatives by the logits and by the values, same shapes.

    Source:
        Schulman et al., "Proximal policy optimization algorithms", 2017, eq. 7 and 9.
    """  # noqa: D415 - the equation is part of the sentence
    log_p = torch.log_softmax(logits, dim=-1)
    chosen = log_p.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
    ratio = torch.exp(chosen - batch.log_probabilities)
    clipped = ((ratio > 1.0 + weights.clip) & (batch.advantages > 0)) | (
        (ratio < 1.0 - weights.clip) & (batch.advantages < 0)
    )
    d_chosen = torch.where(clipped, 0.0, ratio * batch.advantages).neg_()
    return _combine(log_p, values, batch, d_chosen, weights)


def a2c_derivatives(
    logits: torch.Tensor, values: torch.Tensor, batch: Batch, weights: LossWeights
) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives of A2C's loss, which is PPO's with -A log p[a] in place of the clipped ratio.

    Args:
        logits: (runs, batch, actions).
        values: (runs, batch).
        batch: the steps; the old probabilities are not used.
        weights: the coefficients.

    Returns:
        The derivatives by the logits and by the values, same shapes.

    Source:
        Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016, section 4.
    """
    return _combine(torch.log_softmax(logits, dim=-1), values, batch, -batch.advantages, weights)


def _combine(
    log_p: torch.Tensor, values: torch.Tensor, batch: Batch, d_chosen: torch.Tensor, weights: LossWeights
) -> tuple[torch.Tensor, torch.Tensor]:
    p = log_p.exp()
    entropy = -(p * log_p).sum(-1, keepdim=True)
    d_logits = p * (log_p + entropy).mul_(weights.entropy_coefficient)
    d_logits.sub_(p * d_chosen.unsqueeze(-1))
    d_logits.scatter_add_(-1, batch.actions.unsqueeze(-1), d_chosen.unsqueeze(-1))
    d_values = (values - batch.returns).mul_(weights.value_coefficient)
    size = batch.actions.shape[1]
    return d_logits.div_(size), d_values.div_(size)
