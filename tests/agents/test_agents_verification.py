"""What the record says about a network's equivariance, and what it must not say."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from reference_agents.catalog import TASKS, find_network, find_task
from reference_agents.equivariant_export import to_equivariant_module
from reference_agents.export import PolicyValueNetwork, ViewingNetwork, export_module, to_module
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.verification import verify
from symcheck.errors import OptionError

SMALL = [task for task in TASKS.values() if task.observation_shape != (4, 80, 80)]  # the others: tests/atari
ALL = [(task.name, plan) for task in SMALL for plan in task.networks.values() if plan.claims_equivariance]
CLAIMS = [
    pytest.param(task, plan.name, marks=[pytest.mark.long] * (task == "gridworld"))
    for task, plan in ALL
    if plan.basis == "equivariant"
]
REBUILT = [pytest.param(*claim.values, False, marks=claim.marks) for claim in CLAIMS]
VIEWS = [(task, plan.name) for task, plan in ALL if plan.views]


def _module(task: str, network: str) -> PolicyValueNetwork | ViewingNetwork:
    plan = build_plan(find_task(task), find_network(find_task(task), network))
    stacked = ActorCritic(plan, [0], torch.device("cpu"))
    noise = torch.randn(stacked.parameters.values.shape, generator=torch.Generator().manual_seed(0))
    stacked.parameters.values.add_(0.1 * noise)
    return export_module(find_task(task), find_network(find_task(task), network), stacked.parameters.of_run(0))


@pytest.mark.parametrize(("task", "network"), CLAIMS)
def test_every_network_that_claims_equivariance_is_proved_whatever_its_parameters(task: str, network: str) -> None:
    verification = verify(_module(task, network), find_network(find_task(task), network), find_task(task))
    assert verification.verdict == "proved", verification.detail


@pytest.mark.long
@pytest.mark.parametrize(("task", "network"), VIEWS)
def test_a_network_that_looks_from_every_side_passes(task: str, network: str) -> None:
    verification = verify(_module(task, network), find_network(find_task(task), network), find_task(task))
    assert verification.verdict in ("passed", "proved"), verification.detail


@pytest.mark.parametrize(("task", "network"), CLAIMS)
def test_one_hidden_weight_off_by_a_thousandth_is_not_proved(task: str, network: str) -> None:
    module = _module(task, network)
    with torch.no_grad():
        module.trunk[2].weight.view(-1)[0].mul_(1.001)  # type: ignore[union-attr, operator]
    verification = verify(module, find_network(find_task(task), network), find_task(task))
    assert verification.verdict == "failed", verification.detail


@pytest.mark.parametrize(
    ("task", "network"),
    [("cartpole", "mlp"), ("cartpole", "nullspace"), ("cartpole", "extractor"), ("gridworld", "cnn")],
)
def test_a_baseline_makes_no_claim_and_would_fail_it(task: str, network: str) -> None:
    plan = find_network(find_task(task), network)
    assert verify(_module(task, network), plan, find_task(task)).verdict is None
    claiming = dataclasses.replace(plan, basis="equivariant", free_heads=False)
    assert verify(_module(task, network), claiming, find_task(task)).verdict == "failed"


@pytest.mark.parametrize(("task", "network", "apart"), [*REBUILT, ("acrobot", "equivariant", True)])
def test_the_module_of_equivariant_layers_computes_the_same_function_and_passes(
    task: str, network: str, apart: bool
) -> None:
    the_task = find_task(task)
    plan = dataclasses.replace(find_network(the_task, network), separate_bodies=apart, bias_gain=1.0)
    stacked = ActorCritic(build_plan(the_task, plan), [0], torch.device("cpu"))
    stacked.parameters.values.add_(0.1 * torch.randn(stacked.parameters.values.shape))
    parameters = stacked.parameters.of_run(0)
    layers, plain = to_equivariant_module(the_task, plan, parameters), to_module(stacked.plan, parameters)
    observations = torch.randn(7, *the_task.observation_shape)
    for actual, expected in zip(layers(observations), plain(observations), strict=True):
        # float32 sums of up to 1,600 terms, in another order
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)
    assert verify(layers, plan, the_task).verdict in ("passed", "proved")


def test_a_baseline_cannot_be_rebuilt_of_equivariant_layers() -> None:
    task = find_task("cartpole")
    with pytest.raises(OptionError, match="expected an equivariant network, got 'mlp'"):
        to_equivariant_module(task, find_network(task, "mlp"), {})
