"""No stated bound on what rounded weights do is below what a search over its box finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from far_networks import FILTERS, PAIRS, World
from net_catalogue import Draw, Lambda, conv, linear, mirror_mlp, swap_blocks
from torch import Tensor, nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import PropertyResult, RunResult

Bend = Callable[[Tensor], Tensor]
ROUNDING = 1e-13
"""Residual over the largest output that float64 rounding alone leaves in networks of this size."""
STEPS = 12


def jittered(net: nn.Module, names: list[str]) -> nn.Module:
    """Tensors changed by a relative 2e-8 at random: below one float32 unit in the last place each."""
    generator = torch.Generator().manual_seed(2)
    for name in names:
        tensor = net.get_parameter(name)
        with torch.no_grad():
            tensor *= 1 + 2e-8 * torch.randn(tensor.shape, generator=generator, dtype=torch.float64).clamp(-2, 2)
    return net


class Chain(nn.Module):
    """Three layers with a bend after the first two, and a gain and shift of each unit after the first.

    Args:
        bend: of the hidden units.
        pairs: of hidden units, in both layers.
        positive: whether all weights and biases are, so that bounds are nearly attained where all inputs are 1.
        bias: how many times larger biases are than weights.
    """

    def __init__(self, bend: Bend, pairs: int = 1, *, positive: bool = True, bias: float = 1.0) -> None:
        super().__init__()
        draw, self.bend = Draw(3), bend
        first, b = draw(pairs, 4), bias * draw(pairs)
        self.gain, self.shift = (nn.Parameter(torch.full((2 * pairs,), number)) for number in (1.5, 0.25))
        self.first = linear(torch.cat([first, -first]), torch.cat([b, b]))
        self.second = linear(swap_blocks(draw, pairs, pairs), bias * draw(pairs).repeat(2))
        self.last = linear(swap_blocks(draw, 1, pairs), bias * draw(1).repeat(2))
        if positive:
            for tensor in (self.first.bias, *self.second.parameters(), *self.last.parameters()):
                tensor.data.abs_()
            self.first.weight.data[:pairs].abs_()
            self.first.weight.data[pairs:].abs_().neg_()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.bend(self.second(self.gain * self.bend(self.first(x)) + self.shift)))


class Images(nn.Module):
    """Two convolutions in one mirrored pair of filters each, all weights positive; something between, and a head."""

    def __init__(self, between: Bend, bias: float = 1.0) -> None:
        super().__init__()
        draw, self.between = Draw(8), between
        w, b = draw(1, 1, 3, 3).abs(), bias * draw(1).abs()
        self.first = conv(torch.cat([w, w.flip(-1)]), torch.cat([b, b]), padding=1)
        a, c = draw(1, 1, 3, 3).abs(), draw(1, 1, 3, 3).abs()
        weight = torch.cat([torch.cat([a, c], 1), torch.cat([c.flip(-1), a.flip(-1)], 1)])
        self.second = conv(weight, bias * draw(1).abs().repeat(2), padding=1)
        self.last = linear(swap_blocks(draw, 1, 1).abs(), draw(1).repeat(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.second(self.between(torch.relu(self.first(x))))).amax((2, 3)))


@dataclass(frozen=True)
class Rounded:
    """A network with its symmetry, and which of its tensors are rounded."""

    build: Callable[[], nn.Module]
    tensors: list[str]
    world: World = PAIRS

    def net(self) -> nn.Module:
        return jittered(self.build().double(), self.tensors)


ALL = [f"{layer}.{part}" for layer in ("first", "second", "last") for part in ("weight", "bias")]
BENDS: dict[str, Bend] = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "leaky_relu, steep": lambda h: F.leaky_relu(-h, 4.0),
    "elu": F.elu,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "softplus, flat": lambda h: F.softplus(h, beta=0.05),
    "softplus, sharp": lambda h: F.softplus(h, beta=5.0),
    "softplus with a jump": lambda h: F.softplus(h, 1.0, 0.1),
    "gelu": lambda h: F.gelu(1.4 * h),
    "silu": lambda h: F.silu(2.4 * h),
    "sigmoid": lambda h: torch.sigmoid(0.1 * h),
    "abs": torch.abs,
    "prelu of each unit": lambda h: F.prelu(h, torch.full((h.shape[1],), 0.1, dtype=h.dtype)),
    "prelu of each unit, steep": lambda h: F.prelu(-h, torch.full((h.shape[1],), 3.0, dtype=h.dtype)),
    "scaled and shifted": lambda h: 0.75 + 3.0 * F.relu(h) / 2.0,
    "of two paths": lambda h: F.relu(h) + torch.tanh(h),
    "beside a constant": lambda h: torch.cat([F.relu(h), torch.ones_like(h)], -1)[:, :2],
}
SUBJECTS: dict[str, Rounded] = {
    **{
        f"{name}, {tensor} rounded": Rounded(lambda f=f: Chain(f), [tensor])
        for name, f in BENDS.items()
        for tensor in ("first.weight", "second.weight")
    },
    **{
        f"relu, {name} rounded": Rounded(lambda: Chain(F.relu), [name])
        for name in (*ALL[1:2], *ALL[3:], "gain", "shift")
    },
    **{f"large biases, {name} rounded": Rounded(lambda: Chain(F.relu, bias=30.0), [name]) for name in ALL},
    "wide, all rounded": Rounded(lambda: Chain(F.relu, 8, positive=False), ALL),
    "wide elu, all rounded": Rounded(lambda: Chain(F.elu, 8, positive=False), ALL),
    **{f"images, {name} rounded": Rounded(lambda: Images(lambda x: x), [name], FILTERS) for name in ALL},
    "images, large biases": Rounded(lambda: Images(lambda x: x, 30.0), ["second.weight"], FILTERS),
    "images, max pool": Rounded(lambda: Images(lambda x: F.max_pool2d(x, 3, 2, 1)), ["first.weight"], FILTERS),
    "images, average pool": Rounded(lambda: Images(lambda x: F.avg_pool2d(x, 3, 1)), ["first.weight"], FILTERS),
    "images, another divisor": Rounded(
        lambda: Images(lambda x: F.avg_pool2d(x, 3, 2, divisor_override=1)), ["first.weight"], FILTERS
    ),
    "images, a sum of positions": Rounded(
        lambda: Images(lambda x: x + x.sum((2, 3), keepdim=True)), ["first.weight", "second.weight"], FILTERS
    ),
}


def largest_residual(net: nn.Module, world: World) -> float:
    """Largest |K f(x) - f(Lx)| over |x| <= 1 that corners, uniform draws and projected gradient ascent find."""
    generator = torch.Generator().manual_seed(3)
    drawn = 2 * torch.rand(96, *world.shape, generator=generator, dtype=torch.float64) - 1
    x, largest = torch.cat([drawn, drawn.sign()]), 0.0
    for step in range(STEPS):
        x = x.detach().requires_grad_(True)
        gap = (world.move_output(net(x)) - net(world.move_input(x))).abs().amax(1)
        largest = max(largest, float(gap.detach().max()))
        (gradient,) = torch.autograd.grad(gap.sum(), x)
        x = (x.detach() + 0.5 / (1 + step) * gradient.sign()).clamp(-1, 1)
    return largest


def named(result: RunResult, name: str) -> PropertyResult:
    return next(p for p in result.properties if p.name == name)


def verified(subject: Rounded) -> RunResult:
    return run_net(
        subject.net(), subject.world.symmetry(), options=NetOptions(samples=64, input_shape=subject.world.shape)
    )


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_stated_bound_is_below_what_a_search_finds(name: str) -> None:
    net, world = SUBJECTS[name].net(), SUBJECTS[name].world
    found = largest_residual(net, world)
    rounding = ROUNDING * float(net(torch.ones(1, *world.shape, dtype=torch.float64)).detach().abs().max())
    assert found > 10 * rounding  # there is something to bound
    result = verified(SUBJECTS[name])
    assert result.verdict == "passed"
    stated = [named(result, p).bound for p in ("layer_certificate", "network_equivariance")]
    stated = [bound for bound in stated if bound is not None and bound["kind"] == "output_residual"]
    assert all(found <= bound["value"] + rounding for bound in stated), (found, stated)


@pytest.mark.parametrize("name", ["wide, all rounded", "prelu of each unit, second.weight rounded", "images, max pool"])
def test_a_bound_is_stated_over_the_box_and_near_what_is_found(name: str) -> None:
    result = verified(SUBJECTS[name])
    bound = named(result, "network_equivariance").bound
    assert bound is not None
    assert bound["kind"] == "output_residual"
    assert bound["region"].code == "region_box"
    assert bound["region"].fields["box"] == 1.0
    assert bound["confidence"] == 1.0
    assert named(result, "layer_certificate").bound == bound
    assert bound["value"] <= 100 * largest_residual(SUBJECTS[name].net(), SUBJECTS[name].world)


VECTORS = [name for name in SUBJECTS if not name.startswith("images")]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (index % 2)) for index, name in enumerate(VECTORS)]
)
def test_the_units_of_each_layer_move_as_its_record_says_within_its_bound(name: str) -> None:
    net, result = SUBJECTS[name].net(), verified(SUBJECTS[name])
    seen: dict[str, list[np.ndarray]] = {"first": [], "second": []}
    for layer, kept in seen.items():
        net.get_submodule(layer).register_forward_hook(lambda _m, _i, y, kept=kept: kept.append(y.detach().numpy()))
    x = 2 * torch.rand(512, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64) - 1
    x = torch.cat([x, x.sign()])
    net(x), net(-x)
    records: list[dict[str, Any]] = [record for record in result.layers if record["name"] in seen]
    assert [record["name"] for record in records] == ["first", "second"]
    for record in records:
        before, after = seen[record["name"]]
        (images,) = record["images"]
        wanted = np.empty_like(before)
        for unit, image in enumerate(images):
            wanted[:, abs(image) - 1] = np.sign(image) * before[:, unit]
        gap = np.abs(wanted - after).max()
        assert record["bound"] is None or gap <= record["bound"] + ROUNDING * np.abs(after).max(), record["name"]


def test_the_bound_of_several_outputs_covers_the_one_that_moves_most() -> None:
    net = jittered(mirror_mlp(8, value=True).double(), ["value.weight"])
    x = 2 * torch.rand(2000, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64) - 1
    with torch.no_grad():
        found = float((net(x)[1] - net(-x)[1]).abs().max())
    bound = named(run_net(net, PAIRS.symmetry(), options=NetOptions(samples=64)), "network_equivariance").bound
    assert bound is not None
    assert 0 < found <= bound["value"]


def test_a_network_whose_bend_jumps_is_given_no_bound_on_its_outputs() -> None:
    bound = named(verified(SUBJECTS["softplus with a jump, second.weight rounded"]), "network_equivariance").bound
    assert bound is not None
    assert bound["kind"] == "violation_fraction"


def test_an_exact_network_is_proved_without_a_bound() -> None:
    result = run_net(Lambda(lambda x, n: n(x), Chain(F.relu)), PAIRS.symmetry(), options=NetOptions(samples=64))
    assert result.verdict == "proved"
    assert named(result, "network_equivariance").bound is None
