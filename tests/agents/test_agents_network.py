"""The stacked network: its gradients, its parameters, and the plain module that it exports."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reference_agents.catalog import TASKS, find_network, find_task
from reference_agents.export import export_module
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.networks.factory import make_network
from reference_agents.networks.layers import Expansion, Lifting
from reference_agents.networks.parameters import Layout
from reference_agents.networks.plans import ConvPlan, GlobalMaxPoolPlan, LinearPlan
from reference_agents.networks.views import Views

CPU = torch.device("cpu")
TASK = find_task("cartpole")
SMALL = [task for task in TASKS.values() if task.observation_shape != (4, 80, 80)]  # the others: tests/atari
NETWORKS = [(task.name, network) for task in SMALL for network in task.networks]


def _network(name: str, seeds: tuple[int, ...] = (0, 1, 2), *, task: str = "cartpole") -> ActorCritic:
    return make_network(find_task(task), find_network(find_task(task), name), seeds, CPU)


def _observations(*, task: str = "cartpole") -> torch.Tensor:
    return torch.randn(3, 20, *find_task(task).observation_shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("task", "name"), NETWORKS)
def test_the_backward_pass_agrees_with_automatic_differentiation_of_the_exported_module(task: str, name: str) -> None:
    # numbers of its own: beside a tie of two maxima or a kink both gradients are right, and not equal
    generator = torch.Generator().manual_seed(1)
    network = _network(name, task=task)
    network.parameters.values.add_(0.01 * torch.randn(network.parameters.values.shape, generator=generator))
    network.refresh()
    observations = _observations(task=task)
    logits, values = network.forward(observations, keep=True)
    d_logits = torch.randn(logits.shape, generator=generator)
    d_values = torch.randn(values.shape, generator=generator)
    network.backward(d_logits, d_values)
    views = network.parameters.layout.views(network.parameters.gradients)
    for run in range(3):
        parameters = {k: v.requires_grad_() for k, v in network.parameters.of_run(run).items()}
        loss = _differentiable_loss(network, task, name, parameters, observations[run], d_logits[run], d_values[run])
        expected = torch.autograd.grad(loss, list(parameters.values()))
        for key, gradient in zip(parameters, expected, strict=True):
            # float32 sums of a few hundred terms of order one, in another order
            torch.testing.assert_close(views[key][run], gradient, rtol=1e-4, atol=1e-4)


def _differentiable_loss(
    network: ActorCritic,
    task: str,
    name: str,
    parameters: dict[str, torch.Tensor],
    x: torch.Tensor,
    d_logits: torch.Tensor,
    d_values: torch.Tensor,
) -> torch.Tensor:
    how = find_network(find_task(task), name).views
    if how not in ("symmetrized", "averaged"):
        numbers, values = _plain(network, parameters, x)
        return (numbers * d_logits).sum() + (values * d_values).sum()
    views = Views(find_task(task))
    numbers, values = _plain(network, parameters, views.observations(x.unsqueeze(0))[0])
    back = views.back(numbers.unsqueeze(0))[0]
    combined = back.mean(0) if how == "symmetrized" else torch.softmax(back, -1).mean(0).log()
    return (combined * d_logits).sum() + (values.view(views.order, -1).mean(0) * d_values).sum()


def _plain(
    network: ActorCritic, parameters: dict[str, torch.Tensor], x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    plan = network.plan
    if plan.takes_images:
        x = x.permute(0, 2, 3, 1)
    for layer in plan.trunk:
        if isinstance(layer, LinearPlan):
            x = torch.relu(_linear(layer, parameters, x))
        elif isinstance(layer, ConvPlan):
            windows = x.unfold(1, layer.kernel, layer.stride).unfold(2, layer.kernel, layer.stride)
            x = torch.relu(_linear(layer.linear, parameters, windows.permute(0, 1, 2, 4, 5, 3).flatten(3)))
        else:
            pixels = x.flatten(1, 2)
            x = pixels.max(1).values if isinstance(layer, GlobalMaxPoolPlan) else pixels.mean(1)
    policy, value = (_linear(head, parameters, x) for head in (plan.policy, plan.value))
    if plan.deviation_basis is not None:
        basis = torch.as_tensor(plan.deviation_basis, dtype=torch.float32)
        deviation = torch.einsum("rio,rde->d", parameters["log_deviation"], basis)
        policy = torch.cat([policy, deviation.expand_as(policy)], dim=1)
    return policy, value[:, 0]


def _linear(plan: LinearPlan, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    basis = torch.as_tensor(plan.weight_basis, dtype=torch.float32)
    weight = torch.einsum("rio,rde->eido", parameters[f"{plan.name}.weight"], basis).reshape(plan.inputs, plan.outputs)
    y = x @ weight
    if plan.bias_basis is not None:
        bias_basis = torch.as_tensor(plan.bias_basis, dtype=torch.float32)
        y = y + torch.einsum("rio,rde->do", parameters[f"{plan.name}.bias"], bias_basis).reshape(plan.outputs)
    return y


@pytest.mark.parametrize(("task", "name"), NETWORKS)
def test_the_exported_module_computes_the_same_function(task: str, name: str) -> None:
    network = _network(name, task=task)
    network.parameters.values.add_(0.1 * torch.randn_like(network.parameters.values))
    network.refresh()
    observations = _observations(task=task)
    logits, values = network.forward(observations)
    for run in range(3):
        module = export_module(find_task(task), find_network(find_task(task), name), network.parameters.of_run(run))
        plain_logits, (_, plain_values) = module.numbers(observations[run]), module(observations[run])
        # float32 sums of up to 128 terms of order one, in another order
        torch.testing.assert_close(plain_logits, logits[run], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(plain_values[:, 0], values[run], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("task", "name"), NETWORKS)
def test_the_entries_of_each_initial_weight_have_the_variance_asked_for(task: str, name: str) -> None:
    plan = build_plan(find_task(task), find_network(find_task(task), name))
    rng = np.random.default_rng(0)
    for layer in plan.layers:
        draws = [layer.initial_weight(rng.random) for _ in range(max(1, 40_000 // (layer.inputs * layer.outputs)))]
        entries = np.concatenate([np.einsum("rio,rde->iode", w, layer.weight_basis).ravel() for w in draws])
        # 40,000 entries, of which at least one in eight is independent: the relative error of a variance is below 3%
        variance = 2 / (layer.inputs + (0 if plan.takes_images else layer.outputs))
        if name == "cnn-code":  # PyTorch's: uniform up to the root of 1 / inputs
            variance = 1 / (3 * layer.inputs)
        assert np.mean(np.square(entries)) == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("name", ["equivariant", "equivariant-deep", "symmetrized", "averaged"])
def test_the_equivariant_network_swaps_its_logits_and_keeps_its_value_in_the_mirror(name: str) -> None:
    network = _network(name)
    network.parameters.values.add_(0.1 * torch.randn_like(network.parameters.values))
    network.refresh()
    observations = _observations()
    logits, values = network.forward(observations)
    mirrored_logits, mirrored_values = network.forward(-observations)
    # float32 sums of up to 128 terms of order one, in another order
    torch.testing.assert_close(mirrored_logits, logits.flip(2), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mirrored_values, values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["nullspace", "random", "mlp", "mlp-wide", "extractor", "augmented"])
def test_no_baseline_is_equivariant(name: str) -> None:
    network = _network(name)
    observations = _observations()
    logits, mirrored = network.forward(observations)[0], network.forward(-observations)[0]
    assert (mirrored - logits.flip(2)).abs().max() > 1e-2


@pytest.mark.parametrize(
    "basis",
    [np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 2.0], [1.0, 0.0]]]), np.random.default_rng(0).normal(size=(3, 2, 4))],
)
def test_collecting_gradients_is_the_transpose_of_expanding_coefficients(basis: np.ndarray) -> None:
    rank, dim_out, dim_in = basis.shape
    expansion = Expansion(basis, CPU)
    generator = torch.Generator().manual_seed(0)
    coefficients = torch.randn(2, rank, 3, 5, generator=generator)
    matrices = torch.randn(2, dim_in * 3, dim_out * 5, generator=generator)
    collected = torch.empty_like(coefficients)
    expansion.collect(matrices, collected)
    left, right = (expansion.expand(coefficients) * matrices).sum(), (coefficients * collected).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-4)  # float32 sums of a few hundred terms


def test_parameters_start_on_cache_lines_and_padding_is_not_counted() -> None:
    layout = Layout()
    layout.add("a", (3,))
    layout.add("b", (17, 2))
    assert layout.offsets == {"a": 0, "b": 16}
    assert layout.used == 64
    assert layout.parameters == 37


def test_a_seed_gives_the_same_initial_parameters_in_any_company() -> None:
    together, alone = _network("mlp", (4, 5, 6)), _network("mlp", (5,))
    assert torch.equal(together.parameters.values[1], alone.parameters.values[0])
    assert not torch.equal(together.parameters.values[0], together.parameters.values[1])


@pytest.mark.parametrize(("task", "network", "layer", "lifts"), [
    ("cartpole", "equivariant", 0, True), ("cartpole", "equivariant", 1, True), ("gridworld", "equivariant", 3, True),
    ("cartpole", "nullspace", 1, False), ("cartpole", "random", 1, False), ("cartpole", "mlp", 1, False),
])  # fmt: skip
def test_layers_into_the_regular_representation_are_lifted_and_others_are_not(
    task: str, network: str, layer: int, lifts: bool
) -> None:
    plan = build_plan(find_task(task), find_network(find_task(task), network)).trunk[layer]
    assert isinstance(plan, LinearPlan)
    assert (Lifting.of(plan, CPU) is not None) is lifts


@pytest.mark.parametrize(("task", "layer"), [("cartpole", 0), ("cartpole", 1), ("gridworld", 3)])
def test_a_lifted_product_is_the_product_with_the_whole_weight_and_lower_is_its_transpose(
    task: str, layer: int
) -> None:
    plan = build_plan(find_task(task), find_network(find_task(task), "equivariant")).trunk[layer]
    assert isinstance(plan, LinearPlan)
    lifting = Lifting.of(plan, CPU)
    assert lifting is not None
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, plan.inputs, generator=generator)
    coefficients = torch.randn(2, len(plan.weight_basis), plan.channels_in, plan.channels_out, generator=generator)
    actual = torch.bmm(lifting.lift(x), coefficients.flatten(1, 2)).view(2, 5, -1) * lifting.value
    expected = torch.bmm(x, Expansion(plan.weight_basis, CPU).expand(coefficients))
    # float32 sums of up to 128 terms of order one, in another order
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    other = torch.randn(lifting.lift(x).shape, generator=generator)
    left, right = (lifting.lift(x) * other).sum(), (x * lifting.lower(other)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-3)
