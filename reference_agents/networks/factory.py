"""Makes the stacked network for a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.networks.user import UserActorCritic
from reference_agents.networks.views import Combine, ViewingActorCritic, Views


def make_network(task: Task, network: NetworkPlan, seeds: Sequence[int], device: torch.device) -> StackedNetwork:
    """The network with freshly drawn parameters.

    Args:
        task: the task, which gives sizes and symmetry.
        network: the description of the network.
        seeds: one seed per run.
        device: the device of its parameters.

    Returns:
        The network; a `ViewingActorCritic` if its description averages over transformed inputs.
    """
    if network.basis == "user":
        return UserActorCritic(network, task, seeds, device)
    plan = build_plan(task, network)
    if network.views in ("symmetrized", "averaged"):
        combine = cast(Combine, network.views)
        return ViewingActorCritic(plan, seeds, device, views=Views(task).to(device), combine=combine)
    return ActorCritic(plan, seeds, device)
