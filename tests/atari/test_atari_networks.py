import dataclasses

import numpy as np
import pytest
import torch

from reference_agents import verification
from reference_agents.catalog import NetworkPlan, Task, find_network, find_task
from reference_agents.equivariant_export import to_equivariant_module
from reference_agents.export import export_module
from reference_agents.learning.distributions import Categorical
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.blocks import ConvRelu
from reference_agents.networks.build import build_plan, image_size
from reference_agents.networks.direct import DirectConvRelu
from reference_agents.networks.factory import make_network
from reference_agents.networks.layers import StackedLinear
from reference_agents.networks.parameters import StackedParameters
from reference_agents.networks.plans import MASKED_LOGIT, LinearPlan
from reference_agents.verification import verify

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verification, "SAMPLES", 20)  # proofs are the same


SCALE = {"input_scale": 1 / 255}
PUBLISHED = ("extractor", "nullspace", "random")


def plan_of(task: Task, name: str) -> NetworkPlan:
    return find_network(task, name).with_quirks(SCALE)


def screens(runs: int, batch: int) -> torch.Tensor:
    drawn = np.random.default_rng(0).integers(0, 256, (runs, batch, 4, 80, 80), dtype=np.uint8)
    return torch.from_numpy(drawn)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("equivariant", "extractor", "averaged") else pytest.mark.slow)
        for name in find_task("pong").networks
    ],
)
def test_the_exported_network_is_the_same_function_of_bytes(name: str):
    task = find_task("pong")
    network = make_network(task, plan_of(task, name), [0, 1], CPU)
    x = screens(2, 3)
    numbers, values = network.forward(x)
    module = export_module(task, plan_of(task, name), network.parameters.of_run(1))
    with torch.no_grad():
        policy, value = module(x[1].float())
    # sums of up to 2,816 float32 products of order 0.1
    torch.testing.assert_close(policy, numbers[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(value[:, 0], values[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("task", "name"), [("pong", "extractor"), ("pong", "equivariant"), ("breakout", "cnn")])
def test_the_backward_pass_agrees_with_automatic_differentiation_of_the_exported_module(task: str, name: str):
    the_task = find_task(task)
    plan = plan_of(the_task, name)
    network = make_network(the_task, plan, [0], CPU)
    x = screens(1, 2)
    numbers, values = network.forward(x, keep=True)
    drawn = torch.Generator().manual_seed(0)
    d_numbers, d_values = (torch.randn(one.shape, generator=drawn) for one in (numbers, values))
    network.backward(d_numbers, d_values)
    gradients = network.parameters.layout.views(network.parameters.gradients)
    module = export_module(the_task, plan, network.parameters.of_run(0))
    policy, value = module(x[0].float())
    ((policy * d_numbers[0]).sum() + (value[:, 0] * d_values[0]).sum()).backward()
    # derivative by the parameters along themselves: the same number in either parametrisation of a linear layer
    for layer, linear in (("policy", module.policy), ("value", module.value)):
        own = network.parameters.layout.views(network.parameters.values)
        along = sum((gradients[f"{layer}.{part}"] * own[f"{layer}.{part}"]).sum() for part in ("weight", "bias"))
        rows = slice(0, 4) if task == "pong" and layer == "policy" else slice(None)
        plain = (linear.weight.grad[rows] * linear.weight[rows]).sum() + (
            linear.bias.grad[rows] * linear.bias[rows]
        ).sum()
        torch.testing.assert_close(along, plain.detach(), rtol=1e-3, atol=1e-4)
    for depth, at in ((0, 0), (1, 2), (2, 5)):
        weight = module.trunk[at].weight
        own = network.parameters.layout.views(network.parameters.values)[f"hidden{depth}.weight"]
        along = (gradients[f"hidden{depth}.weight"] * own).sum()
        torch.testing.assert_close(along, (weight.grad * weight).sum().detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("to_input", [False, True])
def test_a_direct_convolution_is_the_convolution_over_windows(to_input: bool):
    linear = LinearPlan("c", 25 * 3, 6, np.ones((1, 1, 1)), np.ones((1, 1, 1)), "he")
    plan = dataclasses.replace(linear, bias_gain=1.0)
    parameters = StackedParameters(_layout(plan), 2, CPU)
    parameters.values.normal_(generator=torch.Generator().manual_seed(0))
    views = (parameters.layout.views(parameters.values), parameters.layout.views(parameters.gradients))
    layer = StackedLinear(plan, *views, CPU)
    layer.refresh()
    x = torch.randn(2, 3, 11, 13, 3, generator=torch.Generator().manual_seed(1))
    outcomes = []
    for block in (ConvRelu(layer, kernel=5, stride=2), DirectConvRelu(layer, kernel=5, stride=2)):
        y, tape = block.forward(x)
        d_x = block.backward(tape, torch.cos(y.detach()), to_input=to_input)
        outcomes.append((y, parameters.gradients.clone(), torch.zeros(()) if d_x is None else d_x))
    for one, two in zip(*outcomes, strict=True):
        # float32 sums of 75 products, in another order
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


def _layout(plan: LinearPlan):
    from reference_agents.networks.parameters import Layout

    layout = Layout()
    plan.declare(layout)
    return layout


def test_a_run_in_company_and_the_same_run_alone_agree_bit_for_bit():
    task = find_task("pong")
    both, alone = (make_network(task, plan_of(task, "extractor"), seeds, CPU) for seeds in ([0, 1], [1]))
    x = screens(2, 4)
    for network, given, place in ((both, x, 1), (alone, x[1:], 0)):
        numbers, values = network.forward(given, keep=True)
        network.backward(torch.cos(numbers), torch.cos(values))
        if place:
            expected = (numbers[place], values[place], network.parameters.gradients[place].clone())
    for one, two in zip(expected, (numbers[0], values[0], network.parameters.gradients[0]), strict=True):
        assert torch.equal(one, two)


def test_answers_that_were_kept_step_by_step_are_those_of_the_whole_batch():
    task = find_task("pong")
    network = make_network(task, plan_of(task, "equivariant"), [0, 1], CPU)
    assert isinstance(network, ActorCritic)
    x = screens(2, 6)
    numbers, values = network.forward(x, keep=True)
    network.backward(torch.cos(numbers), torch.cos(values))
    expected = network.parameters.gradients.clone()
    network.start_keeping()
    for start in (0, 2, 4):
        network.forward(x[:, start : start + 2], keep=True)
    joined, joined_values = network.join_kept()
    network.backward(torch.cos(joined), torch.cos(joined_values))
    torch.testing.assert_close(joined, numbers, rtol=1e-4, atol=1e-5)  # products of other batch sizes
    torch.testing.assert_close(network.parameters.gradients, expected, rtol=1e-3, atol=1e-4)


def test_the_papers_extractor_has_2816_features_and_its_layer_sizes():
    task = find_task("pong")
    plan = build_plan(task, plan_of(task, "extractor"))
    assert image_size(task, plan_of(task, "extractor")) == (8, 8)
    assert [layer.inputs for layer in plan.layers] == [4 * 64, 11 * 2 * 25, 2816, 362, 362]
    assert [layer.outputs for layer in plan.layers] == [22, 44, 362, 6, 1]


def test_the_plain_network_has_the_papers_layer_sizes():
    task = find_task("pong")
    plan = build_plan(task, plan_of(task, "cnn"))
    assert [layer.inputs for layer in plan.layers] == [4 * 64, 16 * 25, 2048, 512, 512]
    assert [layer.outputs for layer in plan.layers] == [16, 32, 512, 6, 1]


def test_parameter_counts_of_pongs_networks_lie_within_four_percent():
    task = find_task("pong")
    counts = [build_plan(task, plan).layout().parameters for plan in task.networks.values()]
    assert max(counts) / min(counts) < 1.04


def test_masked_actions_are_never_drawn_and_take_no_gradient():
    task = find_task("pong")
    network = make_network(task, plan_of(task, "extractor"), [0], CPU)
    numbers, _ = network.forward(screens(1, 8), keep=True)
    assert (numbers[..., 4:] == MASKED_LOGIT).all()
    drawn = {
        int(a) for u in np.linspace(0, 1 - 1e-12, 50) for a in Categorical().sample(numbers, np.full((1, 8), u))[0]
    }
    assert drawn == {0, 1, 2, 3}
    network.backward(torch.ones_like(numbers), torch.zeros(1, 8))
    gradient = network.parameters.layout.views(network.parameters.gradients)["policy.weight"]
    assert gradient[..., :4].abs().sum() > 0
    assert not gradient[..., 4:].any()


def test_breakouts_actions_are_all_its_own():
    assert find_task("breakout").masked == ()


def proved_module(task: Task, name: str) -> torch.nn.Module:
    plan = plan_of(task, name)
    return export_module(task, plan, make_network(task, plan, [3], CPU).parameters.of_run(0))


@pytest.mark.parametrize("task", [pytest.param("pong", marks=pytest.mark.long), "breakout"])
def test_the_end_to_end_network_is_proved(task: str):
    the_task = find_task(task)
    module = proved_module(the_task, "equivariant")
    assert verify(module, plan_of(the_task, "equivariant"), the_task).verdict == "proved"


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "entry"), [(0, (3, 1, 2, 2)), (2, (5, 7, 1, 4)), (5, (7, 300))])
def test_one_wrong_weight_of_the_end_to_end_network_is_found(layer: int, entry: tuple[int, ...]):
    task = find_task("pong")
    module = proved_module(task, "equivariant")
    with torch.no_grad():
        module.trunk[layer].weight[entry] += 0.01
    said = verify(module, plan_of(task, "equivariant"), task)
    assert said.verdict == "failed"
    assert f"trunk.{layer}" in said.detail


@pytest.mark.long
def test_the_extractors_features_are_proved_and_its_policy_makes_no_claim():
    task = find_task("pong")
    plan = plan_of(task, "extractor")
    module = export_module(task, plan, make_network(task, plan, [0], CPU).parameters.of_run(0))
    assert not plan.claims_equivariance
    said = verify(module, plan, task)
    assert said.verdict is None
    assert said.detail.startswith("features proved")
    assert said.detail.endswith("the layers after them are unconstrained, so the policy is not equivariant")
    with torch.no_grad():
        module.trunk[2].weight[3, 1, 2, 2] += 0.01
    assert verify(module, plan, task).verdict == "failed"


def test_the_listing_says_that_the_published_policy_is_not_equivariant():
    assert "NOT equivariant" in find_network(find_task("pong"), "extractor").summary


@pytest.mark.parametrize("name", PUBLISHED[1:])
def test_other_bases_make_no_claim(name: str):
    task = find_task("pong")
    plan = plan_of(task, name)
    module = export_module(task, plan, make_network(task, plan, [0], CPU).parameters.of_run(0))
    assert verify(module, plan, task).verdict is None


@pytest.mark.parametrize("task", ["pong", "breakout"])
def test_the_network_rebuilt_of_equivariant_layers_is_the_same_function(task: str):
    the_task = find_task(task)
    plan = plan_of(the_task, "equivariant")
    network = make_network(the_task, plan, [0], CPU)
    network.parameters.values.add_(0.01 * torch.randn(network.parameters.values.shape, generator=torch.Generator()))
    parameters = network.parameters.of_run(0)
    rebuilt, plain = to_equivariant_module(the_task, plan, parameters), export_module(the_task, plan, parameters)
    x = screens(1, 2)[0].float()
    with torch.no_grad():
        for one, two in zip(rebuilt(x), plain(x), strict=True):
            # sums of up to 2,816 float32 products of order 0.1
            torch.testing.assert_close(one.reshape(two.shape), two, rtol=1e-3, atol=1e-3)
