"""From a network's description to its layers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.networks.actor_critic import ActorCriticPlan
from reference_agents.networks.layers import Basis, LinearPlan

_DENSE: Basis = np.ones((1, 1, 1))


def build_plan(task: Task, network: NetworkPlan) -> ActorCriticPlan:
    """The layers of a network for a task."""
    sizes = (4, *network.channels)
    trunk = tuple(
        LinearPlan(f"hidden{depth}", before, after, _DENSE, _DENSE)
        for depth, (before, after) in enumerate(pairwise(sizes))
    )
    return ActorCriticPlan(
        trunk,
        LinearPlan("policy", sizes[-1], 2, _DENSE, _DENSE),
        LinearPlan("value", sizes[-1], 1, _DENSE, _DENSE),
    )
