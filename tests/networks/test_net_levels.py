"""Each published level of a verdict has a subject just below it and one just above."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from net_catalogue import Draw, Lambda, linear, mirror, mirror_mlp, swap_blocks
from torch import Tensor, nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

ULP = 2.0**-23
"""A float32 unit in the last place of numbers from 1 to 2."""


def verified(net: nn.Module, symmetry: Symmetry | None = None, **options: Any) -> RunResult:
    return run_net(net, symmetry or mirror(), options=NetOptions(**{"samples": 128, **options}))


def named(result: RunResult, name: str = "network_equivariance") -> PropertyResult:
    return next(p for p in result.properties if p.name == name)


def total(x: Tensor) -> Tensor:
    """The sum of all entries, by a function through which no proof goes; shape (n, 1)."""
    return x.sum(-1, keepdim=True) * torch.special.i0(0 * x[:, :1])


def off_by(relative: float) -> nn.Module:
    """Two outputs s and -s, the second too large by a relative amount: so is the residual over the output's scale."""
    return Lambda(lambda x: torch.cat([total(x), -(1 + relative) * total(x)], 1))


@pytest.mark.parametrize(
    ("relative", "strict", "verdict"),
    [
        (0.0, True, "passed"),
        (0.9e-12, True, "passed"),
        (1.1e-12, True, "failed"),
        (1.1e-12, False, "passed"),
        (0.9e-5, False, "passed"),
        (1.1e-5, False, "failed"),
    ],
)
def test_outputs_are_judged_at_1e_12_if_strict_and_at_1e_5(relative: float, strict: bool, verdict: str) -> None:
    result = verified(off_by(relative), strict=strict)
    assert result.verdict == verdict
    assert named(result).max_residual == pytest.approx(relative, rel=1e-2, abs=1e-15)  # float64 rounding of s


def test_every_pair_beyond_the_level_is_counted() -> None:
    result = named(verified(off_by(1e-2)))
    few = named(verified(off_by(1.1e-5)))
    assert result.violations > 0.8 * result.checked
    assert 1 <= few.violations < 0.1 * few.checked


def test_a_pass_on_samples_states_the_fraction_that_they_leave_open() -> None:
    result = named(verified(off_by(0.0), alpha=0.05))
    assert result.bound is not None
    assert result.bound["kind"] == "violation_fraction"
    assert result.bound["value"] == pytest.approx(1 - 0.05 ** (1 / result.checked))
    assert result.bound["confidence"] == pytest.approx(0.95)


class Weights(nn.Module):
    """Two layers; weights of the second between 1 and 2, up to sign, so that their float32 unit is `ULP`."""

    def __init__(self, change: Callable[[Tensor], None]) -> None:
        super().__init__()
        draw = Draw(1)
        first = draw(8, 4).double()
        self.first = linear(torch.cat([first, -first]))
        a, b = (1.0 + draw(8, 8).double().abs().clamp(max=0.9) for _ in range(2))
        weight = torch.cat([torch.cat([a, b], 1), torch.cat([b, a], 1)])
        change(weight)
        self.second = linear(weight)
        self.head = linear(swap_blocks(draw, 1, 8).double())

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


def one_weight(units: float) -> nn.Module:
    def change(weight: Tensor) -> None:
        weight[2, 3] += units * ULP

    return Weights(change)


def most_weights(units: float, share: float = 1.0, small: float = 1.0) -> nn.Module:
    """Changes of up to `units` in a share of the layer; weights but one may be small, so that only their layer counts.

    Rows of one half are changed against their images in the other, which makes differences of both.
    """

    def change(weight: Tensor) -> None:
        rows, columns = weight[:8], weight.shape[1]
        largest = weight[0, 0].clone()
        weight *= small
        weight[0, 0] = weight[8, 8] = largest
        noise = 2 * torch.rand(8, columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1
        noise[3, 4] = 1.0
        changed = torch.rand(8, columns, generator=torch.Generator().manual_seed(1)) < share
        changed[3, 4], changed[0, 0] = True, False
        rows += units * ULP * noise * changed

    return Weights(change)


@pytest.mark.parametrize(
    ("units", "verdict"), [(0.0, "proved"), (0.1, "passed"), (3.9, "passed"), (4.1, "failed"), (40.0, "failed")]
)
def test_one_weight_is_judged_at_four_float32_units_of_its_own_size(units: float, verdict: str) -> None:
    result = verified(one_weight(units))
    assert result.verdict == verdict
    certificate = named(result, "layer_certificate")
    assert certificate.max_residual == pytest.approx(units * ULP, abs=1e-15)
    if verdict == "failed":
        assert certificate.location == named(result).location == "second"
    if units:
        assert certificate.tolerance == pytest.approx(4 * ULP, rel=1e-6)
        assert verified(one_weight(units), strict=True).verdict == "failed"


@pytest.mark.parametrize("power", [-10, 10])
@pytest.mark.parametrize(("units", "verdict"), [(3.9, "passed"), (4.1, "failed")])
def test_the_level_of_a_weight_is_the_same_in_every_unit(units: float, verdict: str, power: int) -> None:
    net = one_weight(units)
    net.second.weight.data.mul_(2.0**power)
    result = verified(net)
    assert result.verdict == verdict
    assert named(result, "layer_certificate").max_residual == pytest.approx(units * ULP * 2.0**power)


@pytest.mark.parametrize(
    ("units", "share", "verdict"),
    [(3.9, 1.0, "passed"), (4.1, 1.0, "failed"), (3.9, 0.7, "passed"), (3.9, 0.3, "failed"), (3.9, 0.0, "failed")],
)
def test_small_weights_are_judged_by_the_largest_only_where_most_of_them_differ(
    units: float, share: float, verdict: str
) -> None:
    assert verified(most_weights(units, share, small=1e-3)).verdict == verdict


def test_the_layer_that_differs_most_is_the_one_that_is_reported() -> None:
    net = mirror_mlp(16).double()
    for layer, relative in (("0", 1e-9), ("2", 2e-8), ("4", 1e-9)):
        net.get_submodule(layer).weight.data[0, 3] *= 1 + relative
    result = verified(net, strict=True)
    certificate = named(result, "layer_certificate")
    assert certificate.max_residual == max(layer["residual"] for layer in result.layers) > 0
    assert certificate.location == named(result).location == "2"


def nearly_constant(spread: float) -> nn.Module:
    return Lambda(lambda x: (1 + spread * torch.tanh(x.square().sum(-1, keepdim=True))).expand(-1, 2))


@pytest.mark.parametrize(("spread", "verdict"), [(0.0, "undecided"), (0.5e-13, "undecided"), (3e-13, "proved")])
def test_an_output_that_varies_within_rounding_only_shows_nothing(spread: float, verdict: str) -> None:
    assert verified(nearly_constant(spread)).verdict == verdict


def test_a_constant_output_that_is_off_by_more_than_rounding_is_a_failure_and_not_undecided() -> None:
    net = Lambda(lambda x: torch.tensor([1.0, 1.0 + 1e-8], dtype=torch.float64).expand(len(x), 2))
    assert verified(net).verdict == "failed"


def nan_beyond(limit: float, place: int = 0) -> nn.Module:
    def forward(x: Tensor) -> Tensor:
        outputs = torch.cat([total(x), -total(x)], 1)
        missing = (x.abs().amax(1) > limit)[:, None] & (torch.arange(2) == place)
        return outputs.masked_fill(missing, float("nan"))

    return Lambda(forward)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("limit", "verdict"), [(100.0, "failed"), (1e6, "passed")])
def test_a_number_that_is_missing_on_some_inputs_fails(limit: float, place: int, verdict: str) -> None:
    result = named(verified(nan_beyond(limit, place)))
    assert result.verdict == verdict
    if verdict == "failed":
        assert result.counterexample is not None
        assert np.abs(result.counterexample.observation).max() > limit
        assert np.isnan(result.counterexample.residual)
        assert result.counterexample.where == f"output[{place}]" or place == 1


def test_a_number_that_is_missing_as_deployed_only_fails_too() -> None:
    net = Lambda(lambda x: torch.cat([total(x), -total(x)], 1) + 0 * (1e4 * x).sum(1, keepdim=True))
    assert verified(net).verdict == "passed"
    assert verified(net, dtype="float16").verdict == "failed"  # 0 times infinity


@pytest.mark.parametrize(("below", "above", "verdict"), [(-50.0, 50.0, "passed"), (-50.0, 51.0, "failed")])
def test_infinities_compare_as_equal_on_both_sides_and_fail_on_one(below: float, above: float, verdict: str) -> None:
    def forward(x: Tensor) -> Tensor:
        outputs = torch.cat([total(x), -total(x)], 1)
        masked = torch.stack([x[:, 0] > above, x[:, 0] < below], 1)
        return outputs.masked_fill(masked, float("-inf"))

    assert verified(Lambda(forward), samples=4000).verdict == verdict


def halves() -> Symmetry:
    """Two halves of an observation exchanged, and two actions."""
    return Symmetry("halves", catalog.cyclic(2), observation=[[2, 3, 0, 1]], action=[[1, 0]])


def faulty_where(bump: Callable[[Tensor], Tensor], place: int = 0) -> nn.Module:
    """Correct under `mirror` and `halves` but for a bump on one output."""

    def forward(x: Tensor) -> Tensor:
        s, d = total(x.square()), total(x * torch.tensor([1.0, 1.0, -1.0, -1.0]).to(x))
        return torch.cat([s + d, s - d], 1) + bump(x)[:, None] * (torch.arange(2) == place)

    return Lambda(forward)


BUMPS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[], Symmetry]]] = {
    "beyond 200": (lambda x: torch.relu(x.amax(1) - 200).square(), mirror),
    "near the origin": (lambda x: 4e-5 * torch.exp(-20 * x.square().sum(1)) * (x[:, 0] > 0), mirror),
    "at fixed points": (
        lambda x: torch.exp(-1e6 * (x[:, :2] - x[:, 2:]).square().sum(1)) * (x[:, 0] - x[:, 1]).square(),
        halves,
    ),
}


@pytest.mark.parametrize(("name", "place"), [(name, 0) for name in BUMPS] + [("beyond 200", 1)])
def test_a_fault_that_one_family_of_inputs_shows_is_found(name: str, place: int) -> None:
    bump, symmetry = BUMPS[name]
    assert verified(faulty_where(lambda x: 0 * x[:, 0]), symmetry(), samples=400).verdict == "passed"
    result = named(verified(faulty_where(bump, place), symmetry(), samples=400))
    assert result.verdict == "failed"
    assert result.counterexample is not None
    expected, actual = np.array(result.counterexample.expected), np.array(result.counterexample.actual)
    assert result.counterexample.residual == np.abs(expected - actual).max() > 0
    assert result.counterexample.where == f"output[{np.abs(expected - actual).argmax()}]"


def test_a_fault_that_only_an_ascent_reaches_is_found() -> None:
    """In 40 dimensions no draw points so nearly into one direction that exp(30 (cos - 1)) exceeds 1e-5."""
    direction = torch.randn(40, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    direction /= direction.norm()

    def net(size: float) -> nn.Module:
        def forward(x: Tensor) -> Tensor:
            norm = x.norm(dim=1, keepdim=True)
            cosine = ((x @ direction.to(x))[:, None] / norm.clamp_min(1e-9)).clamp_max(1)  # so exp is finite
            bump = size * norm * torch.exp(30 * (cosine - 1))
            return torch.cat([norm + bump, norm], 1) + 0 * x.sum(-1, keepdim=True)

        return Lambda(forward)

    signs = Symmetry("signs", catalog.cyclic(2), observation=[[-1] * 40], action=[[1, 0]])
    assert verified(net(0.0), signs).verdict == "proved"
    assert verified(net(1.0), signs).verdict == "failed"


def test_decisions_are_counted_where_they_are_clear() -> None:
    result = named(verified(mirror_mlp(16)))
    rows = {row["name"]: row for row in result.per_coordinate}
    assert 0.7 * result.checked < rows["argmax decisions"]["checked"] <= result.checked
    assert rows["argmax decisions"]["violations"] == 0


def test_a_shrunk_counterexample_still_shows_the_fault_and_no_rounding() -> None:
    net = mirror_mlp(16)
    net[2].weight.data[3, 5] *= 1.001
    result = named(verified(net))
    assert result.counterexample is not None
    assert result.max_residual is not None
    size = np.abs(result.counterexample.actual).max()
    assert result.counterexample.residual >= 1e-3 * result.max_residual * size
