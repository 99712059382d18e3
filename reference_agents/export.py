"""A trained run as an ordinary torch module, with nothing of the stacked program left in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch

from reference_agents.networks.actor_critic import ActorCriticPlan
from reference_agents.networks.layers import Expansion, LinearPlan


class PolicyValueNetwork(torch.nn.Module):
    """The plain network: linear layers and ReLUs, a policy head and a value head.

    Units are ordered channel-major: the components of a channel's representation lie next to each other.

    Args:
        sizes: units of the input and of each hidden layer.
        actions: outputs of the policy head.
    """

    def __init__(self, sizes: tuple[int, ...], actions: int) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        self.trunk = torch.nn.Sequential(*layers)
        self.policy = torch.nn.Linear(sizes[-1], actions)
        self.value = torch.nn.Linear(sizes[-1], 1)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (batch, actions) and values (batch, 1) of observations (batch, size)."""
        features = self.trunk(observation)
        return self.policy(features), self.value(features)


def to_module(plan: ActorCriticPlan, parameters: Mapping[str, torch.Tensor]) -> PolicyValueNetwork:
    """The plain module of one run.

    Args:
        plan: the layers.
        parameters: one run's parameters by name, as `StackedParameters.of_run` gives them.

    Returns:
        A float32 module on the CPU that computes the same function.
    """
    sizes = (plan.trunk[0].inputs, *(layer.outputs for layer in plan.trunk))
    module = PolicyValueNetwork(sizes, plan.policy.outputs)
    linears = [layer for layer in module.trunk if isinstance(layer, torch.nn.Linear)]
    for layer, linear in zip(plan.layers, [*linears, module.policy, module.value], strict=True):
        weight, bias = _dense(layer, parameters)
        linear.load_state_dict({"weight": weight, "bias": bias})
    return module


def _dense(plan: LinearPlan, parameters: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The layer's weight (outputs, inputs) and bias (outputs,), channel-major."""
    _, dim_out, dim_in = plan.weight_basis.shape
    device = torch.device("cpu")
    matrix = Expansion(plan.weight_basis, device).expand(parameters[f"{plan.name}.weight"].unsqueeze(0))[0]
    blocks = matrix.reshape(dim_in, plan.channels_in, dim_out, plan.channels_out)
    weight = blocks.permute(3, 2, 1, 0).reshape(plan.outputs, plan.inputs).contiguous()
    bias = torch.zeros(plan.outputs)
    if plan.bias_basis is not None and f"{plan.name}.bias" in parameters:
        offset = Expansion(plan.bias_basis, device).expand(parameters[f"{plan.name}.bias"].unsqueeze(0))[0]
        bias = offset.reshape(dim_out, plan.channels_out).T.reshape(-1).contiguous()
    return weight, bias
