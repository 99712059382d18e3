"""Converts a trained run to an ordinary torch module, without the stacked program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.networks.build import build_plan
from reference_agents.networks.layers import Expansion
from reference_agents.networks.plans import (
    DEVIATION,
    MASKED_LOGIT,
    ActorCriticPlan,
    ConvPlan,
    FlattenPlan,
    GlobalMaxPoolPlan,
    LinearPlan,
    PoolPlan,
)
from reference_agents.networks.user import UserNetwork, build_module, export_user_network
from reference_agents.networks.views import Combine, Views, combine_views
from symcheck.array_types import Floats


class PolicyValueNetwork(torch.nn.Module):
    """The plain network: a trunk, a policy head and a value head.

    For continuous actions the policy head returns means, and the buffer `log_deviation` contains the logarithms of the
    standard deviations. Units are ordered channel-major: the components of a channel's representation lie next to each
    other.

    Args:
        plan: the layers.
    """

    def __init__(self, plan: ActorCriticPlan) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        for hidden in plan.trunk:
            if isinstance(hidden, LinearPlan):
                layers += [torch.nn.Linear(hidden.inputs, hidden.outputs), torch.nn.ReLU()]
            elif isinstance(hidden, ConvPlan):
                convolution = torch.nn.Conv2d(hidden.units_in, hidden.linear.outputs, hidden.kernel, hidden.stride)
                layers += [convolution, torch.nn.ReLU()]
            else:
                layers += _pool_modules(hidden)
        self.trunk = torch.nn.Sequential(*layers)
        self.policy = torch.nn.Linear(plan.policy.inputs, plan.policy.outputs)
        if plan.deviation_basis is not None:
            # A buffer: part of the state_dict and of an exported file, but not a trainable parameter.
            self.register_buffer("log_deviation", torch.zeros(plan.policy.outputs))
        self.value = torch.nn.Linear(plan.value.inputs, plan.value.outputs)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits or means (batch, actions), and values (batch, 1), of observations (batch, ...)."""
        features = self.trunk(observation)
        return self.policy(features), self.value(features)

    def numbers(self, observation: torch.Tensor) -> torch.Tensor:
        """The parameters of the action distribution: logits, or means followed by log standard deviations."""
        policy: torch.Tensor = self(observation)[0]
        deviation = getattr(self, "log_deviation", None)
        return policy if deviation is None else torch.cat([policy, deviation.expand_as(policy)], dim=-1)


def to_module(plan: ActorCriticPlan, parameters: Mapping[str, torch.Tensor]) -> PolicyValueNetwork:
    """The plain module of one run.

    Args:
        plan: the layers.
        parameters: one run's parameters by name, as `StackedParameters.of_run` gives them.

    Returns:
        A float32 module on the CPU that computes the same function.
    """
    module = PolicyValueNetwork(plan)
    hidden = [layer for layer in plan.trunk if isinstance(layer, LinearPlan | ConvPlan)]
    plain = [layer for layer in module.trunk if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d)]
    # Trunk, policy, value: the order in which the stacked network has its parameters.
    for layer, target in zip([*hidden, plan.policy, plan.value], [*plain, module.policy, module.value], strict=True):
        # Fold the input scale into the first layer: the exported network takes raw observations.
        weight = plain_weight(layer, parameters) * (plan.input_scale if layer is plan.trunk[0] else 1.0)
        bias = plain_bias(layer.linear, parameters)
        if layer is plan.policy and plan.masked:
            weight, bias = _mask_actions(weight, bias, plan.masked)
        target.load_state_dict({"weight": weight.reshape(target.weight.shape).contiguous(), "bias": bias})
    if plan.deviation_basis is not None:
        module.log_deviation = _expand(plan.deviation_basis, parameters[DEVIATION]).flatten()
    return module


class ViewingNetwork(torch.nn.Module):
    """A plain network whose outputs are averaged over all transformed inputs, as one module.

    Args:
        network: the plain network.
        views: the views of the task.
        combine: how the outputs are combined.
        actions: the number of its outputs that are logits or means.
    """

    def __init__(self, network: PolicyValueNetwork, views: Views, combine: Combine, actions: int) -> None:
        super().__init__()
        self.network, self.views = network, views
        self._combine, self._actions = combine, actions

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits or means (batch, actions), and values (batch, 1), of observations (batch, ...)."""
        numbers, values = self._combine_all_views(observation)
        return numbers[:, : self._actions], values

    def numbers(self, observation: torch.Tensor) -> torch.Tensor:
        """The parameters of the action distribution: logits, or means followed by log standard deviations."""
        return self._combine_all_views(observation)[0]

    def _combine_all_views(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # L_g x for every g, all evaluated by the same network.
        views = [self.views.observation(observation, element) for element in range(self.views.order)]
        # All elements in one batch behind an axis of one run, as `Views.back` expects it.
        numbers = torch.cat([self.network.numbers(view) for view in views]).unsqueeze(0)
        values = torch.stack([self.network(view)[1] for view in views]).mean(0)
        return combine_views(self.views.back(numbers), self._combine)[0][0], values


TrainedNetwork = PolicyValueNetwork | ViewingNetwork | UserNetwork


def export_module(task: Task, network: NetworkPlan, parameters: Mapping[str, torch.Tensor]) -> TrainedNetwork:
    """The module of one run, for any kind of network; arguments and result as for `to_module`."""
    if network.basis == "user":
        return export_user_network(network, task, parameters)
    return _viewing(to_module(build_plan(task, network), parameters), task, network)


def empty_module(task: Task, network: NetworkPlan) -> TrainedNetwork:
    """The module of a network before weights are loaded into it."""
    if network.basis == "user":
        return UserNetwork(build_module(network, task), task)
    return _viewing(PolicyValueNetwork(build_plan(task, network)), task, network)


def _viewing(module: PolicyValueNetwork, task: Task, network: NetworkPlan) -> PolicyValueNetwork | ViewingNetwork:
    """The module itself, or its average over all transformed inputs if the network's description requires it."""
    if network.views in ("symmetrized", "averaged"):
        return ViewingNetwork(module, Views(task), cast(Combine, network.views), task.actions)
    return module


def plain_weight(plan: LinearPlan | ConvPlan, parameters: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The weight of a layer in the plain module: (outputs, inputs, ...), channel-major, not yet flattened."""
    linear = plan.linear
    if isinstance(plan, LinearPlan) and plan.components_in > 1:
        # A dense weight over several components: (components, channels in, outputs).
        dense = parameters[f"{linear.name}.weight"].view(plan.components_in, -1, plan.outputs)
        return _pixels_last(dense.permute(2, 1, 0), plan.pixels)
    matrix = _expand(linear.weight_basis, parameters[f"{linear.name}.weight"])
    dim_out = linear.weight_basis.shape[1]
    # Sizes after expansion: (dim_in * channels_in, dim_out * channels_out), representation first.
    outputs = (dim_out, linear.channels_out)
    if isinstance(plan, LinearPlan):
        blocks = matrix.view(linear.weight_basis.shape[2], linear.channels_in, *outputs)
        return _pixels_last(blocks.permute(3, 2, 1, 0), plan.pixels)
    pixels = matrix.view(plan.kernel, plan.kernel, plan.dim_in, plan.units_in // plan.dim_in, *outputs)
    # To torch's (channels_out, dim_out, channels_in, dim_in, kernel, kernel).
    return pixels.permute(5, 4, 3, 2, 0, 1)


def _pool_modules(plan: PoolPlan) -> list[torch.nn.Module]:
    if isinstance(plan, FlattenPlan):
        return [torch.nn.Flatten()]
    pool = torch.nn.AdaptiveMaxPool2d if isinstance(plan, GlobalMaxPoolPlan) else torch.nn.AdaptiveAvgPool2d
    # Adaptive pooling to one position is the global pool, whatever the size of the image.
    return [pool(1), torch.nn.Flatten()]


def _pixels_last(weight: torch.Tensor, pixels: int) -> torch.Tensor:
    """Reorder components from position-major to the order of a flattened image, with the position last."""
    if pixels == 1:
        return weight
    # (..., pixels * components) to (..., components, pixels).
    return weight.reshape(*weight.shape[:-1], pixels, -1).transpose(-1, -2)


def _mask_actions(
    weight: torch.Tensor, bias: torch.Tensor, masked: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The policy head whose masked logits do not depend on the observation."""
    # Clone, so that the trained parameters do not change.
    weight, bias = weight.reshape(len(bias), -1).clone(), bias.clone()
    weight[list(masked)] = 0.0
    bias[list(masked)] = MASKED_LOGIT
    return weight, bias


def plain_bias(plan: LinearPlan, parameters: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The bias (outputs,), channel-major."""
    if plan.bias_basis is None or f"{plan.name}.bias" not in parameters:
        return torch.zeros(plan.outputs)
    offset = _expand(plan.bias_basis, parameters[f"{plan.name}.bias"])
    # Channel-major: the unit of channel c and component d is c * dim + d.
    return offset.view(plan.bias_basis.shape[1], plan.channels_out).T.reshape(-1).contiguous()


def _expand(basis: Floats, coefficients: torch.Tensor) -> torch.Tensor:
    # An expansion has a first axis of runs.
    return Expansion(basis, torch.device("cpu")).expand(coefficients.unsqueeze(0))[0].contiguous()
