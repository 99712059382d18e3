"""Verdicts do not depend on units: of weights, of hidden units, of inputs, of outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from far_networks import FILTERS, SIGNED, Far
from net_catalogue import Heads, mirror, mirror_mlp
from torch import Tensor, nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.symmetry.symmetry import Symmetry

SCALES = [1e-2, 1.0, 1e2]


@dataclass(frozen=True)
class Subject:
    """A network with its symmetry, and a layer in which a fault can be planted."""

    build: Callable[[], nn.Module]
    layer: str
    symmetry: Callable[[], Symmetry] = mirror
    shape: tuple[int, ...] = (4,)


SUBJECTS = {
    "pairs, first layer": Subject(lambda: mirror_mlp(16), "0"),
    "pairs, hidden layer": Subject(lambda: mirror_mlp(16), "2"),
    "pairs, head": Subject(lambda: mirror_mlp(16), "4"),
    "signs": Subject(lambda: Far(SIGNED, torch.tanh, {}), "head", SIGNED.symmetry),
    "filters": Subject(lambda: Far(FILTERS, F.relu, {}), "body", FILTERS.symmetry, FILTERS.shape),
    "pairs behind a norm": Subject(lambda: mirror_mlp(16, between=nn.LayerNorm), "3"),
}


def verified(net: nn.Module, subject: Subject, **options: Any) -> RunResult:
    return run_net(net, subject.symmetry(), options=NetOptions(samples=64, input_shape=subject.shape, **options))


def failed_at(result: RunResult) -> set[str | None]:
    return {p.location for p in result.properties if p.verdict == "failed"}


def scaled(net: nn.Module, factor: float) -> nn.Module:
    """All weights and biases in another unit."""
    for parameter in net.parameters():
        parameter.data.mul_(factor)
    return net


def with_wrong_weight(net: nn.Module, layer: str, relative: float) -> nn.Module:
    """The largest weight off; of a layer without a bias, of which every weight is right, a bias of that size."""
    module: Any = net.get_submodule(layer)
    weight = module.weight.data.view(-1)
    if module.bias is None:
        module.bias = nn.Parameter(torch.full((len(module.weight),), relative * float(weight.abs().max())))
    else:
        weight[int(weight.abs().argmax())] *= 1 + relative
    return net


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_correct_network_is_proved_in_every_unit_of_its_weights(name: str, scale: float) -> None:
    subject = SUBJECTS[name]
    result = verified(scaled(subject.build(), scale), subject)
    assert result.verdict == "proved", result.method_reason


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_wrong_weight_is_found_at_its_layer_in_every_unit(name: str, scale: float) -> None:
    subject = SUBJECTS[name]
    result = verified(with_wrong_weight(scaled(subject.build(), scale), subject.layer, 1e-5), subject)
    assert failed_at(result) == {subject.layer}, result.method_reason


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["pairs, hidden layer", "filters"])
def test_a_rounded_weight_passes_in_every_unit_unless_strict(name: str, scale: float) -> None:
    subject = SUBJECTS[name]
    net = with_wrong_weight(scaled(subject.build().double(), scale), subject.layer, 1e-8)
    assert verified(net, subject).verdict == "passed"
    assert failed_at(verified(net, subject, strict=True)) == {subject.layer}


def rescaled(net: nn.Module, factors: Tensor) -> nn.Module:
    """Hidden units of the first layer in their own units, which the next layer takes back."""
    factors = factors.to(net[0].weight.dtype)
    net[0].weight.data.mul_(factors[:, None])
    net[0].bias.data.mul_(factors)
    net[2].weight.data.div_(factors)
    return net


def factors(net: nn.Module, *, shared: bool, exact: bool) -> Tensor:
    """One factor of 0.01 to 100 for each unit, the same for both of a pair or not; powers of two if exact."""
    made = 10 ** (4 * torch.rand(16, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 2)
    made = 2 ** made.log2().round() if exact else made
    partner = torch.cdist(net[0].weight.data, -net[0].weight.data).argmin(1)
    return made[torch.minimum(torch.arange(16), partner)] if shared else made


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("shared", "exact", "dtype", "verdict"),
    [
        (True, True, torch.float32, "proved"),
        (True, True, torch.float64, "proved"),
        (False, True, torch.float32, "passed"),
        (False, True, torch.float64, "passed"),
        (False, False, torch.float32, "passed"),
        (False, False, torch.float64, "passed"),
    ],
)
def test_units_rescaled_by_a_hundredth_to_a_hundred_are_not_accused_and_a_wrong_weight_is(
    shared: bool, exact: bool, dtype: torch.dtype, verdict: str, scale: float
) -> None:
    subject = SUBJECTS["pairs, hidden layer"]
    made = factors(mirror_mlp(16), shared=shared, exact=exact)
    result = verified(rescaled(scaled(mirror_mlp(16).to(dtype), scale), made), subject)
    assert result.verdict == verdict, result.method_reason
    net = rescaled(with_wrong_weight(scaled(mirror_mlp(16).to(dtype), scale), "2", 1e-2), made)
    failed = failed_at(verified(net, subject))
    assert failed
    if shared:
        assert failed == {"2"}


@pytest.mark.parametrize("scale", SCALES)
def test_float32_rounding_of_rescaled_units_is_no_wrong_weight_in_any_unit(scale: float) -> None:
    """Factors of 0.5 to 1.5, unequal in a pair, leave every row near enough to be mistaken for a wrong image."""
    made = 0.5 + torch.rand(16, generator=torch.Generator().manual_seed(0))
    net = rescaled(scaled(mirror_mlp(16), scale), made)
    assert verified(net, SUBJECTS["pairs, hidden layer"]).verdict == "passed"


@pytest.mark.parametrize("wrong", [False, True])
def test_inputs_in_units_of_their_own_change_no_verdict(wrong: bool) -> None:
    subject = SUBJECTS["pairs, first layer"]
    net = mirror_mlp(16)
    net[0].weight.data.mul_(torch.tensor([1e-2, 1.0, 1e2, 1.0]))
    result = verified(with_wrong_weight(net, "0", 1e-5) if wrong else net, subject)
    assert result.verdict == ("failed" if wrong else "proved")
    assert failed_at(result) == ({"0"} if wrong else set())


@pytest.mark.parametrize("units", [(1e-2, 1e2), (1e2, 1e-2)])
@pytest.mark.parametrize("wrong", ["", "policy", "value"])
def test_a_fault_in_the_smaller_of_two_outputs_is_found_beside_the_larger(
    wrong: str, units: tuple[float, float]
) -> None:
    net = mirror_mlp(16, value=True)
    assert isinstance(net, Heads)
    scaled(net.policy, units[0])
    scaled(net.value, units[1])
    if wrong:
        with_wrong_weight(net, wrong, 1e-3)
    result = verified(net, SUBJECTS["pairs, head"])
    assert result.verdict == ("failed" if wrong else "proved")
    assert failed_at(result) == ({wrong} if wrong else set())
