"""The stacked network of a task and a name."""

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
        task: gives sizes and symmetry.
        network: which one.
        seeds: one per run.
        device: where its parameters live.

    Returns:
        The network; one that views observations from every side where its description says so.
    """
    if network.basis == "user":
        return UserActorCritic(network, task, seeds, device)
    plan = build_plan(task, network)
    if network.views in ("symmetrized", "averaged"):
        combine = cast(Combine, network.views)
        return ViewingActorCritic(plan, seeds, device, views=Views(task).to(device), combine=combine)
    return ActorCritic(plan, seeds, device)
