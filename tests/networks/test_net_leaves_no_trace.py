"""A run leaves the network and the random generators bit for bit as it found them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from net_catalogue import GridNet, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_state_gradients_and_flags_are_as_before(mode: str) -> None:
    net = GridNet(middle=nn.BatchNorm2d(16)).train()
    net.conv2.eval()
    net(torch.rand(4, 1, 21, 21))[0].sum().backward()
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    gradients = {name: None if p.grad is None else p.grad.clone() for name, p in net.named_parameters()}
    flags = {name: module.training for name, module in net.named_modules()}
    hooks = {name: len(module._forward_hooks) for name, module in net.named_modules()}
    run_net(net, turn(), options=NetOptions(mode=mode, input_shape=(1, 21, 21), samples=100))
    assert all(torch.equal(state[name], tensor) for name, tensor in net.state_dict().items())
    assert {name: module.training for name, module in net.named_modules()} == flags
    assert {name: len(module._forward_hooks) for name, module in net.named_modules()} == hooks
    for name, parameter in net.named_parameters():
        before = gradients[name]
        assert (parameter.grad is None) == (before is None)
        assert before is None or torch.equal(parameter.grad, before)
        assert parameter.requires_grad


def test_random_generators_and_the_default_dtype_are_as_before() -> None:
    net = nn.Sequential(mirror_mlp(), nn.Dropout(0.1))
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate(), torch.get_default_dtype()  # noqa: NPY002
    run_net(net, mirror(), options=NetOptions(mode="train", noise_seed=3))
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert before[2] == random.getstate()
    assert before[3] == torch.get_default_dtype()


def test_the_same_seed_gives_the_same_result() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    first, second = (run_net(net, mirror(), options=NetOptions(seed=7)).to_dict() for _ in range(2))
    first.pop("duration_s")
    second.pop("duration_s")
    assert first == second


def test_an_agent_that_keeps_the_results_of_its_last_step_is_verified() -> None:
    class Remembers(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = super().forward(x)
            return self.last

    torch.manual_seed(0)
    net = Remembers(nn.Linear(4, 2, bias=False))
    with torch.no_grad():
        net[0].weight[1] = -net[0].weight[0]
    net(torch.randn(3, 4))  # what stays is no leaf of the graph, and torch does not copy it
    kept = net.last
    assert run_net(net, mirror(), options=NetOptions()).verdict == "proved"
    assert net.last is kept
