"""Advantages and returns of a batch of steps, for every environment at once."""

from __future__ import annotations

import torch


def advantages_and_returns(
    r_t: torch.Tensor,
    v_t: torch.Tensor,
    v_next_t: torch.Tensor,
    terminated_t: torch.Tensor,
    ended_t: torch.Tensor,
    *,
    discount: float,
    gae_lambda: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimation.

        delta_t = r_t + discount * (1 - terminated_t) * v_next_t - v_t
        A_t     = delta_t + discount * lambda * (1 - ended_t) * A_{t+1}
        G_t     = A_t + v_t

    Termination stops the bootstrap. Truncation by a time limit does not: the value of the last observation estimates
    the remaining return, but no advantage of the next episode enters.

    Args:
        r_t: rewards, shape (time, ...).
        v_t: values of the observations acted on, same shape.
        v_next_t: values of the next observations, before any restart, same shape.
        terminated_t: whether the task ended with the step, same shape, bool.
        ended_t: whether the episode ended with the step, by termination or truncation, same shape, bool.
        discount: the discount factor, in (0, 1].
        gae_lambda: the decay lambda, in [0, 1].

    Returns:
        Advantages A_t and returns G_t, same shape.

    Example:
        >>> zero, no = torch.zeros(2), torch.zeros(2, dtype=torch.bool)
        >>> advantages_and_returns(
        ...     torch.ones(2), zero, torch.tensor([0.0, 4.0]), no, no, discount=0.5, gae_lambda=1.0
        ... )[1].tolist()
        [2.5, 3.0]

    Source:
        Schulman et al., "High-dimensional continuous control using generalized advantage estimation", 2016, eq. 11-16.
    """
    # The TD error; a termination has no next value, a truncation does.
    delta_t = r_t + discount * v_next_t * ~terminated_t - v_t
    # Both ends of an episode cut the sum: the next step belongs to another episode.
    decay_t = discount * gae_lambda * (~ended_t).to(r_t.dtype)
    advantage_t = torch.empty_like(delta_t)
    following = torch.zeros_like(delta_t[0])
    # A_t = delta_t + decay_t * A_{t+1}, from the last step backwards.
    for t in reversed(range(len(delta_t))):
        following = torch.addcmul(delta_t[t], decay_t[t], following, out=advantage_t[t])
    return advantage_t, advantage_t + v_t
