"""Networks of the kinds that users bring, each with a fault planted and without: verdict, layer and cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from net_catalogue import Draw, Lambda, linear, mirror, mirror_mlp, swap_blocks
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.pytest_file import pytest_source
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import TargetError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def ring() -> Symmetry:
    """Four agents in a ring, each with one number and one action, move up by one."""
    return Symmetry("ring", catalog.cyclic(4), observation=[[1, 2, 3, 0]], action=[[1, 2, 3, 0]])


def pairs() -> Symmetry:
    """Two agents with two numbers each change places, and their actions with them."""
    return Symmetry("pairs", catalog.cyclic(2), observation=[[2, 3, 0, 1]], action=[[1, 0]])


def verified(net: nn.Module, symmetry: Symmetry, **options: Any) -> RunResult:
    return run_net(net, symmetry, options=NetOptions(samples=200, **options))


def outputs(result: RunResult) -> PropertyResult:
    return next(p for p in result.properties if p.name == "network_equivariance")


class Adjacency(nn.Module):
    """Two rounds of messages along the edges of a ring, as products with a matrix; one edge may weigh more."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        eye = torch.eye(4)
        edges = 0.5 * (eye.roll(1, 0) + eye.roll(-1, 0))
        edges[0, 1] += 0.1 * wrong
        self.register_buffer("edges", edges)
        self.embed, self.hidden, self.head = nn.Linear(1, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.embed(x.unsqueeze(-1)))
        h = torch.relu(self.hidden(self.edges @ h))
        return self.head(torch.matmul(self.edges, h)).squeeze(-1)


class Messages(nn.Module):
    """Messages along a ring added up by index, as graph libraries do; one message may go astray."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.source = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0])
        self.target = torch.tensor([1, 2, 3, 0, 0, 1, 2, 1 if wrong else 3])
        self.embed, self.message, self.head = nn.Linear(1, 8), nn.Linear(16, 8), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.embed(x.unsqueeze(-1)))
        sent = torch.relu(self.message(torch.cat([h[:, self.source], h[:, self.target]], -1)))
        gathered = torch.zeros_like(h).index_add(1, self.target, sent)
        return self.head(torch.cat([h, gathered], -1)).squeeze(-1)


class Einsum(nn.Module):
    """A head, and a hidden layer over blocks of axes, as sums of products."""

    def __init__(self, wrong: str = "") -> None:
        super().__init__()
        draw = Draw()
        first, bias = draw(8, 4), draw(8)
        self.embed = linear(torch.cat([first, -first]), torch.cat([bias, bias]))
        self.hidden = nn.Parameter(swap_blocks(draw, 8, 8).reshape(2, 8, 2, 8))
        self.head = nn.Parameter(swap_blocks(draw, 1, 8))
        if wrong:
            with torch.no_grad():
                getattr(self, wrong).view(-1)[3] += 1e-4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.embed(x)).reshape(-1, 2, 8)
        h = torch.relu(torch.einsum("gkhj,bhj->bgk", self.hidden, h)).flatten(1)
        return torch.einsum("bi, oi -> bo", h, self.head)


def normed(norm: Callable[[nn.Module], nn.Module], wrong: bool) -> nn.Module:
    net = mirror_mlp(16)
    if wrong:
        with torch.no_grad():
            net[2].weight[3, 2] += 1e-4
    torch.manual_seed(0)
    norm(net[2])
    return net


@dataclass(frozen=True)
class Kind:
    """A kind of network: builds it without (False) and with its fault, and the layer that is then named."""

    build: Callable[[bool], nn.Module]
    layer: str
    symmetry: Callable[[], Symmetry] = mirror
    verdict: str = "proved"
    options: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "adjacency matrix": Kind(Adjacency, "edges", ring),
    "messages by index": Kind(Messages, "message", ring),
    "einsum, head": Kind(lambda wrong: Einsum("head" if wrong else ""), "head"),
    "einsum, blocks": Kind(lambda wrong: Einsum("hidden" if wrong else ""), "hidden"),
    "spectral norm": Kind(lambda wrong: normed(nn.utils.parametrizations.spectral_norm, wrong), "2"),
    "weight norm": Kind(lambda wrong: normed(nn.utils.parametrizations.weight_norm, wrong), "2", verdict="passed"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_correct_network_of_a_kind_that_users_bring_is_not_accused(name: str) -> None:
    kind = KINDS[name]
    result = verified(kind.build(False), kind.symmetry(), **kind.options)
    assert result.verdict == kind.verdict, result.method_reason


@pytest.mark.parametrize("name", KINDS)
def test_its_planted_fault_is_found_at_its_layer(name: str) -> None:
    kind = KINDS[name]
    result = verified(kind.build(True), kind.symmetry(), **kind.options)
    failed = [p for p in result.properties if p.verdict == "failed"]
    assert {p.location for p in failed} == {kind.layer}, result.method_reason
    assert all(p.counterexample is not None for p in failed)


def masked(threshold: float) -> nn.Module:
    """Actions are forbidden (minus infinity) at one end of the first coordinate; a fault is another threshold."""

    def forward(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        forbidden = torch.stack([x[:, 0] > 0.5, x[:, 0] < -threshold], 1)
        return net(x).masked_fill(forbidden, float("-inf"))

    return Lambda(forward, mirror_mlp(16))


def test_a_mask_that_moves_along_is_not_accused_and_one_that_does_not_is_shown_where_it_differs() -> None:
    assert verified(masked(0.5), mirror()).verdict == "proved"
    result = verified(masked(0.6), mirror())
    failed = outputs(result)
    assert failed.verdict == "failed"
    assert (failed.causes[0].code, failed.causes[0].fields["infinite"]) == ("SYM152", True)
    assert "infinite on one side only" in str(failed.causes[0])
    assert failed.counterexample is not None
    expected, actual = np.array(failed.counterexample.expected), np.array(failed.counterexample.actual)
    assert (np.isinf(expected) != np.isinf(actual)).any()
    assert failed.counterexample.residual == float("inf")
    assert 0.5 < abs(failed.counterexample.observation[0]) <= 0.6


def test_masks_do_not_keep_a_counterexample_from_being_shrunk() -> None:
    net = masked(0.5)
    with torch.no_grad():
        net.inner[0][2].weight[3, 2] += 0.5
    failed = outputs(verified(net, mirror()))
    assert failed.verdict == "failed"
    assert failed.counterexample is not None
    assert np.count_nonzero(failed.counterexample.observation) <= 2
    assert np.isfinite(failed.counterexample.residual)


def test_the_test_written_for_a_masked_network_passes_once_the_mask_is_mended(tmp_path: Any) -> None:
    result = verified(masked(0.6), mirror())
    source = pytest_source(masked(0.6), mirror(), result, target="nets.py:build")
    for threshold, holds in ((0.5, True), (0.6, False)):
        scope: dict[str, Any] = {"__name__": "written"}
        exec(compile(source, "written.py", "exec"), scope)
        scope["load"] = lambda threshold=threshold: masked(threshold).double()
        if holds:
            scope["test_the_output_moves_as_claimed"]()
        else:
            with pytest.raises(AssertionError, match="but f"):
                scope["test_the_output_moves_as_claimed"]()


def test_lazy_modules_that_never_ran_are_refused_by_name() -> None:
    net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 2))
    with pytest.raises(TargetError, match=r"lazy parameters or buffers, .*: 0\.weight, 0\.bias"):
        verified(net, mirror())


def test_what_is_changed_in_place_by_the_network_itself_is_a_place_with_a_name() -> None:
    def forward(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        hidden = net[0](x)
        hidden[:, :3].clamp_(min=0)
        return net[2](torch.tanh(hidden))

    failed = outputs(verified(Lambda(forward, mirror_mlp(16, layers=1)), mirror()))
    assert failed.verdict == "failed"
    assert str(failed.location).startswith("clamp at test_net_user_networks.py:")
    assert [(cause.code, cause.fields["operation"]) for cause in failed.causes] == [("SYM114", "clamp")]


def test_a_seed_for_dropout_in_train_mode_is_named_as_the_cause_and_eval_mode_as_the_remedy() -> None:
    net = mirror_mlp(16, between=lambda n: nn.Dropout(0.5))
    failed = outputs(verified(net, mirror(), mode="train", noise_seed=1))
    assert failed.verdict == "failed"
    assert (failed.causes[0].code, failed.causes[0].fields["layers"]) == ("SYM170", ["1", "4"])
    assert str(failed.causes[0]).startswith("dropout in train mode (1, 4)")
    assert "eval mode" in str(failed.causes[0])
    assert verified(net, mirror()).verdict == "proved"
    without = mirror_mlp(16, between=lambda n: nn.Dropout(0.0))
    assert verified(without, mirror(), mode="train", noise_seed=1).verdict == "passed"


def test_a_doubt_about_outputs_that_no_input_bears_out_is_not_put_as_a_wrong_weight() -> None:
    """A number and its negative are exchanged when it changes its sign: the trace knows them as two numbers."""
    torch.manual_seed(0)

    def forward(x: torch.Tensor, weights: nn.Module) -> torch.Tensor:
        made = (weights(x.square().sum(-1, keepdim=True)) * x).sum(-1)
        return torch.stack([made, -made], -1)

    proved = outputs(verified(Lambda(forward, nn.Linear(1, 4)), mirror()))
    assert proved.verdict == "proved"
    assert "0 float32 ulps" not in proved.detail


def test_an_output_that_is_partly_nan_is_not_taken_for_samples_that_influence_each_other() -> None:
    failed = outputs(verified(Lambda(lambda x, net: torch.sqrt(net(x)), mirror_mlp(16)), mirror()))
    assert failed.verdict == "failed"
    assert "one by one" not in failed.detail
