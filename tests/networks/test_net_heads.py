"""Heads that agents have: several outputs of one layer, twins, bounds, order statistics; proved, and faults found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from net_catalogue import Draw, linear, mirror, swap_blocks
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def opposite() -> Symmetry:
    """x -> -x on four numbers; two continuous actions change their signs."""
    return Symmetry("opposite", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[["-1", "-2"]])


def agents() -> Symmetry:
    """Three agents of two numbers each, in any order; an action for each."""
    first, second = [2, 3, 0, 1, 4, 5], [2, 3, 4, 5, 0, 1]
    return Symmetry("agents", catalog.symmetric(3), observation=[first, second], action=[[1, 0, 2], [1, 2, 0]])


def of_states_and_actions() -> Symmetry:
    """A critic's input, both parts of which change their sign."""
    observation = [{"state": [-1, -1, -1, -1], "action": [-1, -1]}]
    return Symmetry("critic", catalog.cyclic(2), observation=observation, action=[["-1", "-2"]])


def nudged(tensor: torch.Tensor, place: tuple[int, ...], by: float) -> None:
    with torch.no_grad():
        tensor[place] += by


def pairs_of_units(draw: Draw, half: int, inputs: int = 4) -> nn.Linear:
    """A layer whose units come in pairs that x -> -x exchanges."""
    weight, bias = draw(half, inputs), draw(half)
    return linear(torch.cat([weight, -weight]), torch.cat([bias, bias]))


class OneLayerTwoOutputs(nn.Module):
    """Logits and a value, cut from the rows of one layer; the fault is in the rows of one of them."""

    def __init__(self, wrong: str, order: tuple[int, int]) -> None:
        super().__init__()
        draw = Draw()
        self.order, self.body = order, pairs_of_units(draw, 4)
        value = draw(1, 4).repeat(1, 2)
        weight = torch.cat([swap_blocks(draw, 1, 4), value, value])
        self.layer = linear(weight, torch.tensor([0.1, 0.1, 0.2, 0.2]))
        if wrong:
            nudged(self.layer.weight, ({"logits": 0, "value": 2}[wrong], 3), 1e-6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = self.layer(torch.relu(self.body(x))).chunk(2, -1)
        return tuple(parts[i] for i in self.order)


class ChangeOfBasis(nn.Module):
    """A linear layer that mixes all units, and two heads that undo it: the three are judged as one layer each way."""

    def __init__(self, wrong: str, bend: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        draw = Draw()
        self.bend, self.body = bend, pairs_of_units(draw, 4).double()
        basis = torch.linalg.qr(draw(8, 8).double())[0]
        self.mix = linear(basis)
        self.logits = linear(swap_blocks(draw, 1, 4).double() @ basis.T)
        self.value = linear(draw(1, 4).repeat(1, 2).double() @ basis.T)
        if wrong:
            nudged(getattr(self, wrong).weight, (0, 3), 1e-3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixed = self.mix(torch.relu(self.body(x)))
        return self.bend(self.logits(mixed)), self.value(mixed)


class NormalParameters(nn.Module):
    """Means, and deviations of the other rows of the same layer."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw()
        self.body, self.layer = linear(draw(8, 4)), linear(draw(4, 8), torch.zeros(4))
        nudged(self.layer.bias, (3,), 1e-6 * wrong)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        mean, scale = self.layer(torch.tanh(self.body(x))).chunk(2, -1)
        return {"mean": mean, "scale": F.softplus(scale.abs() + 0.5).clamp_min(1e-4)}


class Twins(nn.Module):
    """The lesser of two values of a state and an action."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.bodies = nn.ModuleList([pairs_of_units(Draw(seed), 8, 6) for seed in (1, 2)])
        self.heads = nn.ModuleList([linear(Draw(seed)(1, 8).repeat(1, 2)) for seed in (3, 4)])
        nudged(self.bodies[1].weight, (2, 1), 1e-6 * wrong)

    def forward(self, given: dict[str, torch.Tensor]) -> torch.Tensor:
        x = torch.cat([given["state"], given["action"]], 1)
        values = [head(torch.relu(body(x))) for body, head in zip(self.bodies, self.heads, strict=True)]
        return torch.min(*values)


class Bounded(nn.Module):
    """Actions between bounds of each entry."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw()
        self.body, self.head = linear(draw(8, 4)), linear(4 * draw(2, 8))
        self.register_buffer("high", torch.tensor([1.0, 0.5]))
        self.register_buffer("low", torch.tensor([-1.0, -0.5 + 1e-3 * wrong]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.body(x))).clamp(self.low, self.high)


class Gated(nn.Module):
    """Half of a layer's units are gates of the other half."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw()
        units, gates = pairs_of_units(draw, 4), pairs_of_units(draw, 4)
        self.body = linear(torch.cat([units.weight, gates.weight]), torch.cat([units.bias, gates.bias]))
        self.head = linear(swap_blocks(draw, 1, 4))
        nudged(self.body.weight, (10, 1), 1e-6 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.glu(self.body(x)))


class Pooled(nn.Module):
    """Each agent beside a statistic of all that does not care about their order."""

    def __init__(self, wrong: bool, statistic: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head, self.statistic = nn.Linear(2, 4), nn.LazyLinear(1), statistic
        self.gain = nn.Parameter(torch.ones(3, 1))
        nudged(self.gain, (1, 0), 1e-5 * wrong)
        self(torch.zeros(1, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = torch.tanh(self.embed(x.view(-1, 3, 2))) * self.gain
        of_all = self.statistic(each).flatten(1)[:, None].expand(-1, 3, -1)
        return self.head(torch.cat([each, of_all], -1)).squeeze(-1)


@dataclass(frozen=True)
class Kind:
    """A kind of network: builds it without (False) and with its fault, and the layer that is then named."""

    build: Callable[[Any], nn.Module]
    layer: str
    symmetry: Callable[[], Symmetry] = mirror
    options: dict[str, Any] = field(default_factory=dict)
    faults: tuple[Any, ...] = (True,)


MEAN_AND_SCALE = {"outputs": ("action", "action_scale")}
CUT = ("logits", "value")
KINDS = {
    "logits, then a value": Kind(
        lambda wrong: OneLayerTwoOutputs(wrong, (0, 1)),
        "layer",
        options={"outputs": ("action", "invariant")},
        faults=CUT,
    ),
    "a value, then logits": Kind(
        lambda wrong: OneLayerTwoOutputs(wrong, (1, 0)),
        "layer",
        options={"outputs": ("invariant", "action")},
        faults=CUT,
    ),
    "a change of basis": Kind(lambda wrong: ChangeOfBasis(wrong, lambda y: y), "mix", faults=("mix", *CUT)),
    "a change of basis, bent": Kind(lambda wrong: ChangeOfBasis(wrong, torch.tanh), "mix", faults=("mix", *CUT)),
    "mean and deviation of one layer": Kind(NormalParameters, "layer", opposite, MEAN_AND_SCALE),
    "twins": Kind(
        Twins,
        "bodies.1",
        of_states_and_actions,
        {"input_shape": {"state": (4,), "action": (2,)}, "outputs": ("invariant",)},
    ),
    "a gated layer": Kind(Gated, "body"),
    "sorted": Kind(lambda wrong: Pooled(wrong, lambda x: x.sort(1)[0]), "gain", agents),
    "the two largest": Kind(lambda wrong: Pooled(wrong, lambda x: x.topk(2, 1)[0]), "gain", agents),
    "the two smallest": Kind(lambda wrong: Pooled(wrong, lambda x: x.topk(2, dim=1, largest=False)[0]), "gain", agents),
    "the middle": Kind(lambda wrong: Pooled(wrong, lambda x: x.median(1)[0]), "gain", agents),
}


def verified(kind: Kind, fault: Any) -> RunResult:
    return run_net(kind.build(fault), kind.symmetry(), options=NetOptions(samples=200, **kind.options))


@pytest.mark.parametrize("name", KINDS)
def test_a_correct_network_with_such_a_head_is_proved(name: str) -> None:
    result = verified(KINDS[name], False)
    assert result.verdict == "proved", result.method_reason


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, kind in KINDS.items() for fault in kind.faults])
def test_a_fault_in_it_is_found_in_its_layer_whatever_other_outputs_show(name: str, fault: Any) -> None:
    result = verified(KINDS[name], fault)
    failed = [p for p in result.properties if p.verdict == "failed"]
    assert "layer_certificate" in {p.name for p in failed}
    assert {p.location for p in failed} == {KINDS[name].layer}, result.method_reason


class TwoMatrices(nn.Module):
    """A network of bare parameters, without a module inside."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw()
        first = draw(4, 4)
        self.first, self.second = nn.Parameter(torch.cat([first, -first])), nn.Parameter(swap_blocks(draw, 1, 4))
        nudged(self.first, (2, 1), 1e-6 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.first.T) @ self.second.T


def test_a_parameter_of_a_network_without_modules_is_named() -> None:
    kind = Kind(TwoMatrices, "first")
    assert verified(kind, False).verdict == "proved"
    assert {p.location for p in verified(kind, True).properties if p.verdict == "failed"} == {"first"}


def test_a_network_that_is_one_layer_leaves_no_gap_where_its_name_would_stand() -> None:
    torch.manual_seed(0)
    result = run_net(nn.Linear(4, 2), mirror(), options=NetOptions(samples=100))
    certificate = next(p for p in result.properties if p.name == "layer_certificate")
    assert certificate.verdict == "failed"
    assert certificate.location == ""
    assert certificate.counterexample is not None
    words = (certificate.detail, *map(str, certificate.causes), certificate.counterexample.where)
    assert not any(text.startswith((":", " ")) or " :" in text for text in words)


def test_bounds_of_each_action_must_be_opposite_where_the_action_changes_its_sign() -> None:
    kind = Kind(Bounded, "", opposite)
    assert verified(kind, False).verdict == "proved"
    result = verified(kind, True)
    assert result.verdict == "failed"
    why = next(cause for p in result.properties for cause in p.causes if cause.code == "SYM114")
    assert why.fields["constant"] == "bounds"
    assert "bounds of clamp are not invariant under the group action" in str(why)


def test_rescaled_units_that_leave_rounding_in_the_outputs_are_not_called_wrong_weights() -> None:
    """A third of the pairs have their second unit three times as large, and undo it: a float32 division rounds."""
    draw = Draw()
    body, weight = pairs_of_units(draw, 6), swap_blocks(draw, 1, 6)
    with torch.no_grad():
        body.weight[6:8] *= 3
        body.bias[6:8] *= 3
        weight[:, 6:8] /= 3
    result = run_net(nn.Sequential(body, nn.ReLU(), linear(weight)), mirror(), options=NetOptions(samples=200))
    assert result.verdict == "passed", result.method_reason
