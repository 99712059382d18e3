"""Adapters for agents of other libraries: modules that map observations to distribution parameters and values.

Wrappers store the agent under an attribute whose name `Subject` omits, so layers keep their names. The attribute
`roles` of a wrapper states how its outputs transform.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from symcheck.engine.networks.subject.stable_baselines import deterministic_part
from symcheck.engine.networks.subject.trainers import computing_part
from symcheck.errors import TargetError

# Attribute names of CleanRL and of common actor-critic code, in the order in which they are looked for.
ACTORS = ("actor", "actor_mean", "policy_net", "pi")
CRITICS = ("critic", "value_net", "vf")
DEVIATIONS = ("log_std", "actor_logstd", "logstd", "std")


class SeparateHeads(nn.Module):
    """An agent without its own forward: an actor and a critic, each a network of the observation.

    Args:
        agent: holds the two as attributes.
        actor: name of the actor.
        critic: name of the critic, "" if there is none.
    """

    def __init__(self, agent: nn.Module, actor: str, critic: str) -> None:
        super().__init__()
        self.structured_input = agent
        self._names = actor, critic
        self.roles = _roles(agent, critic)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Logits or means, log-deviations if the agent has them, and values."""
        agent, (actor, critic) = self.structured_input, self._names
        mean = getattr(agent, actor)(observations)
        values = (getattr(agent, critic)(observations),) if critic else ()
        return (mean, *_deviations(agent, mean), *values)


class PolicyParameters(nn.Module):
    """A Stable-Baselines3 actor-critic policy: logits or means, log-deviations if it has them, and the value.

    Args:
        policy: an `ActorCriticPolicy`.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.structured_input = policy
        self.roles = _roles(policy, "value_net")

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(logits or means, shape (n, actions); possibly log-deviations; values, shape (n, 1))."""
        policy: Any = self.structured_input
        features = policy.extract_features(observations)
        # Separate feature extractors for actor and critic return two sets of features.
        if isinstance(features, tuple):
            extractor = policy.mlp_extractor
            pi, vf = extractor.forward_actor(features[0]), extractor.forward_critic(features[1])
        else:
            pi, vf = policy.mlp_extractor(features)
        mean = policy.action_net(pi)
        return (mean, *_deviations(policy, mean), policy.value_net(vf))


def adapt_agent(net: nn.Module) -> nn.Module:
    """A module whose forward maps observations to tensors, for an agent that has none.

    Args:
        net: any module.

    Returns:
        The module itself if its forward is usable, otherwise a wrapper with `roles`.

    Raises:
        TargetError: no forward, and no actor to call instead.
    """
    agent = getattr(net, "_orig_mod", net)  # torch.compile compiles only forward; an agent's parts are called directly
    part = deterministic_part(agent) or computing_part(agent)
    if part is not None:
        return part
    if is_actor_critic_policy(agent):
        return PolicyParameters(agent)
    # A DQN policy: its target network is not deployed.
    if isinstance(getattr(agent, "q_net", None), nn.Module) and hasattr(agent, "q_net_target"):
        return SeparateHeads(agent, "q_net", "")
    # Its own forward defines the network.
    if _takes_an_input(agent):
        return net
    actor = _first(agent, ACTORS)
    if not actor:
        raise TargetError(
            f"{type(agent).__name__} has neither a forward that takes an input nor one of the attributes "
            f"{', '.join(ACTORS)}.",
            where="network",
            remedy="Wrap the network in a module whose forward returns logits (or means) and values.",
        )
    return SeparateHeads(agent, actor, _first(agent, CRITICS))


def _takes_an_input(agent: nn.Module) -> bool:
    """Whether the forward of an agent is usable; some agents have none, or inherit one that only raises an error."""
    if getattr(agent.forward, "__func__", None) is nn.Module.forward:
        return False
    try:
        return bool(inspect.signature(agent.forward).parameters)
    except (TypeError, ValueError):  # compiled or scripted code without a signature
        return True


def is_actor_critic_policy(net: Any) -> bool:
    """Whether an agent has the parts of a Stable-Baselines3 actor-critic policy."""
    return all(hasattr(net, name) for name in ("extract_features", "mlp_extractor", "action_net", "value_net"))


def _first(net: nn.Module, names: tuple[str, ...]) -> str:
    return next((name for name in names if isinstance(getattr(net, name, None), nn.Module)), "")


def _deviations(agent: Any, mean: torch.Tensor) -> tuple[torch.Tensor, ...]:
    parameter = next((getattr(agent, n) for n in DEVIATIONS if isinstance(getattr(agent, n, None), torch.Tensor)), None)
    # A parameter whose size differs from that of the mean is not its deviation.
    if parameter is None or parameter.shape[-1] != mean.shape[-1]:
        return ()
    return (parameter.expand_as(mean),)


def _roles(agent: Any, critic: str) -> tuple[str, ...]:
    deviations = any(isinstance(getattr(agent, name, None), torch.Tensor) for name in DEVIATIONS)
    return ("action", *(("action_scale",) if deviations else ()), *(("invariant",) if critic else ()))
