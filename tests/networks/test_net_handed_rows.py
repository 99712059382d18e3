"""The cases of networks with one right answer each."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from net_catalogue import GridNet, Lambda, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.targets import load_checkpoint, resolve_network
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import RepresentationError, TargetError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def run(net: nn.Module, symmetry: Symmetry | None = None, **options: object) -> RunResult:
    return run_net(net, symmetry or mirror(), options=NetOptions(**options))


def named(result: RunResult, name: str) -> PropertyResult:
    return next(p for p in result.properties if p.name == name)


def off(relative: float, dtype: torch.dtype = torch.float32) -> nn.Module:
    net = mirror_mlp().to(dtype)
    with torch.no_grad():
        net[2].weight[3, 5] *= 1 + relative
    return net


def test_a_shuffled_mlp_is_proved_with_nothing_declared() -> None:
    result = run(mirror_mlp())
    assert result.verdict == "proved"
    assert [layer["name"] for layer in result.layers] == ["0", "2", "4"]
    assert {layer["verdict"] for layer in result.layers} == {"proved"}


def test_a_hidden_weight_off_by_a_millionth_fails_at_its_layer() -> None:
    result = run(off(1e-6))
    certificate = named(result, "layer_certificate")
    assert result.verdict == "failed"
    assert certificate.verdict == "failed"
    assert certificate.location == "2"
    assert certificate.max_residual is not None
    assert certificate.max_residual > 0
    counterexample = named(result, "network_equivariance").counterexample
    assert counterexample is not None
    assert np.count_nonzero(counterexample.observation) <= 1
    assert counterexample.residual > 0


def test_a_float64_weight_off_by_a_billionth_passes_as_rounded_and_fails_when_strict() -> None:
    net = off(1e-9, torch.float64)
    result = run(net)
    assert result.verdict == "passed"
    certificate = named(result, "layer_certificate")
    assert "weights rounded" in certificate.detail.lower()
    assert certificate.max_residual is not None
    assert certificate.bound is not None
    strict = run(net, strict=True)
    assert strict.verdict == "failed"
    assert named(strict, "layer_certificate").location == "2"


def test_the_bound_over_a_box_is_above_every_sampled_residual_and_close() -> None:
    net = off(1e-9, torch.float64)
    bound = named(run(net), "network_equivariance").bound
    assert bound is not None
    x = torch.rand(20_000, 4, dtype=torch.float64) * 2 - 1
    with torch.no_grad():
        sampled = (net(x).flip(-1) - net(-x)).abs().max().item()
    assert sampled <= bound["value"] <= 20 * sampled


@pytest.mark.parametrize("layer", ["conv1", "conv2"])
@pytest.mark.parametrize("middle", [None, nn.MaxPool2d(2), nn.AvgPool2d(3, 1, 1)])
def test_the_bound_of_a_convolutional_network_is_above_every_sampled_residual(
    layer: str, middle: nn.Module | None
) -> None:
    net = GridNet(7, middle=middle).double()
    with torch.no_grad():
        getattr(net, layer).weight[1, 0, 1, 2] *= 1 + 1e-9
    result = run(net, turn(), input_shape=(1, 21, 21), samples=200)
    assert result.verdict == "passed"
    bound = named(result, "layer_certificate").bound
    assert bound is not None
    x = torch.rand(300, 1, 21, 21, dtype=torch.float64) * 2 - 1
    with torch.no_grad():
        policy, turned = net(x)[0], net(torch.rot90(x, 1, (2, 3)))[0]
    sampled = (policy[:, [0, 4, 1, 2, 3]] - turned).abs().max().item()
    assert 0 < sampled <= bound["value"]
    # whole windows of the largest input are far from what images show; more than this would say nothing
    assert bound["value"] <= 1e4 * sampled


def test_a_c4_network_is_proved_and_its_cousin_with_even_filters_names_sizes_that_would_do() -> None:
    assert run(GridNet(7), turn(), input_shape=(1, 21, 21)).verdict == "proved"
    result = run(GridNet(6), turn(), input_shape=(1, 21, 21))
    failed = named(result, "representation_propagation")
    assert failed.location == "conv1"
    cause = failed.causes[0]
    assert (cause.code, cause.fields["layer"], cause.fields["sizes"]) == ("SYM101", "conv1", [20, 22])
    assert "stride 2 does not commute with rot90 at this size" in str(cause)
    assert "20, 22" in str(cause)


@pytest.mark.parametrize(("side", "verdict"), [(37, "failed"), (35, "proved")])
def test_max_pooling_by_two_fails_on_odd_maps_only(side: int, verdict: str) -> None:
    result = run(GridNet(5, middle=nn.MaxPool2d(2)), turn(), input_shape=(1, side, side), samples=400)
    assert result.verdict == verdict
    if verdict == "failed":
        assert named(result, "network_equivariance").location == "middle"


def test_an_action_map_of_order_three_is_no_representation_of_c2() -> None:
    with pytest.raises(RepresentationError, match="action"):
        Symmetry("wrong", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 2, 0]])


def test_a_callable_action_map_of_order_three_fails_group_axioms() -> None:
    symmetry = Symmetry(
        "wrong", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[lambda action, obs: (action + 1) % 3]
    )
    torch.manual_seed(0)
    result = run(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), symmetry, samples=100)
    assert named(result, "group_axioms").verdict == "failed"
    assert named(result, "network_equivariance").verdict == "failed"


def rounded_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """The 13 low bits of float32 dropped, as matrix units with 10-bit mantissas do."""
    return (x.contiguous().view(torch.int32) & -8192).view(torch.float32)


def test_a_network_with_tf32_products_passes_with_its_own_noise_reported() -> None:
    class Tf32(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mirror_mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.inner:
                if isinstance(layer, nn.Linear):
                    x = rounded_to_tf32(x) @ rounded_to_tf32(layer.weight).T + layer.bias
                else:
                    x = layer(x)
            return x

    result = run(Tf32())
    assert result.verdict in ("passed", "proved")
    assert "own rounding noise" in named(result, "network_equivariance").detail


def test_a_network_with_bfloat16_inside_passes_with_its_own_noise_reported() -> None:
    net = Lambda(lambda x, n: n(x.bfloat16()).float(), mirror_mlp().bfloat16())
    result = run(net)
    assert result.verdict in ("passed", "proved")
    assert "own rounding noise" in named(result, "network_equivariance").detail


def test_a_slow_first_call_changes_nothing() -> None:
    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mirror_mlp()
            self.warm = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.warm:
                time.sleep(0.3)
                self.warm = True
            return self.inner(x)

    assert run(Slow()).verdict == "proved"


def noisy() -> nn.Module:
    return Lambda(lambda x, n: n(x) + 0.1 * torch.randn(len(x), 1), mirror_mlp())


def test_a_noisy_network_is_undecided_and_told_about_the_noise_seed() -> None:
    result = run(noisy())
    assert result.verdict == "undecided"
    found = named(result, "network_equivariance")
    assert found.reason is not None
    assert found.reason.code == "stochastic"
    assert "stochastic" in found.detail
    assert "--noise-seed" in found.detail


def test_a_noisy_network_passes_when_its_draws_are_paired() -> None:
    assert run(noisy(), noise_seed=1).verdict == "passed"


def test_an_all_zero_network_is_undecided() -> None:
    net = mirror_mlp()
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    result = run(net)
    assert result.verdict == "undecided"
    found = named(result, "network_equivariance")
    assert found.reason is not None
    assert (found.reason.code, found.reason.fields["outputs"]) == ("constant_output", ["output"])
    assert "no spread" in found.detail.lower()


def test_a_constant_output_that_the_action_moves_has_failed() -> None:
    net = mirror_mlp()
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    with torch.no_grad():
        net[4].bias[0] = 1.0
    assert run(net).verdict == "failed"


def test_nan_on_some_inputs_fails_and_shows_the_input() -> None:
    net = nn.Sequential(mirror_mlp(), Lambda(lambda y: torch.log(y + 3.0)))
    result = run(net)
    found = named(result, "network_equivariance")
    assert found.verdict == "failed"
    assert found.location == "1"
    assert found.counterexample is not None
    assert np.isnan(found.counterexample.residual)


@pytest.mark.long
def test_an_input_of_four_frames_ends_in_seconds() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(4, 16, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2048, 2),
    )
    symmetry = Symmetry("flip", catalog.cyclic(2), observation=["flip_ud"], action=[[1, 0]])
    started = time.monotonic()
    result = run(net, symmetry, input_shape=(4, 80, 80))
    assert result.verdict == "failed"
    assert time.monotonic() - started < 20  # seconds; 2 s on an idle core


class Malicious:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (self.path, "w"))


def test_a_checkpoint_that_would_run_code_is_not_loaded(tmp_path: Path) -> None:
    file, mark = tmp_path / "bad.pt", tmp_path / "ran"
    torch.save({"weights": Malicious(str(mark))}, file)
    with pytest.raises(TargetError, match="--trust"):
        load_checkpoint(mirror_mlp(), file)
    assert not mark.exists()
    with pytest.raises(TargetError, match="--trust"):
        resolve_network(str(file))
    assert not mark.exists()
