"""Which vectorised environment plays which task."""

from __future__ import annotations

from reference_agents.catalog import Task
from reference_agents.environments.cartpole import CartPoleVector
from reference_agents.environments.predator_prey import PredatorPreyVector
from reference_agents.evaluation import MakeEnvironment

_ENVIRONMENTS: dict[str, MakeEnvironment] = {"cartpole": CartPoleVector, "gridworld": PredatorPreyVector}


def environment_class(task: Task) -> MakeEnvironment:
    """The environment of a task, called with seeds, environments per run and the purpose of its random streams."""
    return _ENVIRONMENTS[task.name]
