"""A Stable-Baselines3 policy as a plain module: observations in, distribution parameters and values out."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from symcheck.errors import TargetError


class PolicyParameters(nn.Module):
    """Action logits (or means) and the value of an actor-critic policy.

    Args:
        policy: an `ActorCriticPolicy`.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(logits or means, shape (n, actions); values, shape (n, 1))."""
        features = self.policy.extract_features(observations)
        if isinstance(features, tuple):
            pi, vf = (
                self.policy.mlp_extractor.forward_actor(features[0]),
                self.policy.mlp_extractor.forward_critic(features[1]),
            )
        else:
            pi, vf = self.policy.mlp_extractor(features)
        return self.policy.action_net(pi), self.policy.value_net(vf)


def parameters_of(policy: Any) -> nn.Module:
    """A module that returns the policy's parameters: logits or means and values, or Q values.

    Raises:
        TargetError: neither an actor-critic policy nor a Q network.
    """
    if hasattr(policy, "action_net") and hasattr(policy, "mlp_extractor"):
        return PolicyParameters(policy)
    q_net = getattr(policy, "q_net", None)
    if isinstance(q_net, nn.Module):
        return q_net
    raise TargetError(
        f"expected an actor-critic policy or a Q network, got {type(policy).__name__}.",
        where="TARGET",
        remedy="Wrap it in a factory that returns tensors.",
    )
