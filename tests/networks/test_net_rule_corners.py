"""Corners of the operator rules: each network is right and proved, and its twin with one fault is found in place."""

from __future__ import annotations

import math

import pytest
import torch
from net_catalogue import Draw, conv, flip, linear, swap_blocks
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import PropertyResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def verified(net: nn.Module, symmetry: Symmetry, *shape: int) -> dict[str, PropertyResult]:
    result = run_net(net, symmetry, options=NetOptions(input_shape=shape or None, samples=64))
    return {item.name: item for item in result.properties}


def mirrored_pairs(draw: Draw, out: int, inputs: int, *kernel: int) -> torch.Tensor:
    """(2 out, 2 inputs, *kernel): filters that are mirror images in pairs, on both sides."""
    a, c = draw(out, inputs, *kernel), draw(out, inputs, *kernel)
    return torch.cat([torch.cat([a, c], 1), torch.cat([c.flip(-1), a.flip(-1)], 1)])


class Flipped(nn.Module):
    """Mirrored filters, a middle, and a head that exchanges two actions; images are 6 wide, or lines 6 long."""

    def __init__(self, middle: nn.Module, rank: int, spoil: float = 0.0) -> None:
        super().__init__()
        draw = Draw(3)
        w, b = draw(4, 1, *(3,) * rank), draw(4)
        self.first = (nn.Conv1d, nn.Conv2d)[rank - 1](1, 8, 3, padding=1)
        self.first.weight, self.first.bias = nn.Parameter(torch.cat([w, w.flip(-1)])), nn.Parameter(b.repeat(2))
        self.middle = middle
        self.head = linear(swap_blocks(draw, 1, 4))
        with torch.no_grad():
            next(self.middle.parameters()).view(-1)[0] += spoil

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.middle(torch.relu(self.first(x))))
        return self.head(y.flatten(2).amax(-1))


def unpadded() -> nn.Module:
    """Windows fit only without padding: with one more column on each side the last of them would lie otherwise."""
    return conv(mirrored_pairs(Draw(4), 4, 4, 3, 3), Draw(5)(4).repeat(2), stride=3, padding="valid")


def grouped() -> nn.Module:
    """Four groups of two channels; groups 0 and 2, and 1 and 3, are mirror images."""
    w = Draw(6)(4, 2, 3, 3)
    return conv(torch.cat([w, w.flip(-1)]), Draw(7)(4).repeat(2), groups=4, padding=1)


def transposed(rank: int, bias: bool) -> nn.Module:
    layer = (nn.ConvTranspose1d, nn.ConvTranspose2d)[rank - 1](8, 8, 3, stride=2, padding=1, bias=bias)
    layer.weight = nn.Parameter(mirrored_pairs(Draw(8), 4, 4, *(3,) * rank))
    if bias:
        layer.bias = nn.Parameter(Draw(9)(4).repeat(2))
    return layer


CONVOLUTIONS = {
    "padding by name": (unpadded, 2),
    "groups": (grouped, 2),
    "transposed": (lambda: transposed(2, True), 2),
    "transposed without bias": (lambda: transposed(2, False), 2),
    "transposed line": (lambda: transposed(1, True), 1),
}
LINE = Symmetry("line", catalog.cyclic(2), observation=[[5, 4, 3, 2, 1, 0]], action=[[1, 0]])


class OnLine(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x[:, None])


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("spoil", [0.0, 0.01], ids=["right", "one weight off"])
def test_convolutions_are_proved_and_one_weight_is_found(case: str, spoil: float) -> None:
    make, rank = CONVOLUTIONS[case]
    net = Flipped(make(), rank, spoil)
    found = verified(net, flip(), 1, 6, 6) if rank == 2 else verified(OnLine(net), LINE, 6)
    certificate = found["layer_certificate"]
    assert certificate.verdict == ("failed" if spoil else "proved")
    if spoil:
        assert str(certificate.location).endswith("middle")


def thirds() -> list[list[float]]:
    """A turn of the plane by 120 degrees, which is no signed permutation."""
    c, s = math.cos(2 * math.pi / 3), math.sin(2 * math.pi / 3)
    return [[c, -s], [s, c]]


class InThirds(nn.Module):
    """An observation in the plane, scaled or not, then three units at 120 degrees, an action for each."""

    def __init__(self, scale: bool, spoil: float = 0.0) -> None:
        super().__init__()
        turn = torch.tensor(thirds(), dtype=torch.float64)
        row = torch.tensor([[0.8, 0.3]], dtype=torch.float64)
        rows = torch.cat([row, row @ turn.T, row @ turn.T @ turn.T])
        self.register_buffer("std", torch.tensor([2.0, 2.0], dtype=torch.float64) if scale else None)
        self.first = linear(rows, torch.full((3,), 0.1, dtype=torch.float64))
        roll = torch.tensor([[0.5, 0.2, -0.4], [-0.4, 0.5, 0.2], [0.2, -0.4, 0.5]])
        self.head = linear(roll.double())
        with torch.no_grad():
            self.first.weight[0, 0] += spoil

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x if self.std is None else x / self.std + 0.0
        return self.head(torch.tanh(self.first(x)))


THIRDS = Symmetry("thirds", catalog.cyclic(3), observation=[thirds()], action=[[1, 2, 0]])


@pytest.mark.parametrize("scale", [False, True], ids=["plain", "scaled"])
def test_the_first_layer_under_a_matrix_is_matched_and_a_hundredth_is_found_there(scale: bool) -> None:
    assert verified(InThirds(scale), THIRDS)["layer_certificate"].verdict == "proved"
    wrong = verified(InThirds(scale, 0.01), THIRDS)["layer_certificate"]
    assert (wrong.verdict, wrong.location) == ("failed", "first")


RING = Symmetry("ring", catalog.cyclic(4), observation=[[1, 2, 3, 0]], action=[[1, 2, 3, 0]])


class Neighbours(nn.Module):
    """The larger of any two neighbours of four: the exchange of 0 and 2 moves the neighbours (2, 3) to none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, [0, 1, 1, 2, 2, 3]].view(-1, 3, 2).amax(-1)


def test_blocks_that_are_carried_to_no_block_are_blamed() -> None:
    exchange = Symmetry("exchange", catalog.cyclic(2), observation=[[2, 1, 0, 3]], action=[[1, 0, 2]])
    failed = verified(Neighbours(), exchange)["network_equivariance"]
    assert failed.verdict == "failed"
    assert str(failed.location).startswith("amax at test_net_rule_corners.py:")
    assert (failed.causes[0].code, failed.causes[0].fields["operation"]) == ("SYM112", "amax")


class Spread(nn.Module):
    """Every number of the ring three times, each with a constant of its own, and their sum."""

    def __init__(self, scale: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x[:, :, None].expand(-1, -1, 3) * self.scale).sum(-1)


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_one_constant_is_blamed_where_the_others_are_carried_whatever_their_size(size: float) -> None:
    draw = torch.Generator().manual_seed(0)
    carried = (torch.rand(1, 3, generator=draw) + 0.5).expand(4, 3).clone()
    assert verified(Spread(size * carried), RING)["network_equivariance"].verdict == "proved"
    carried[2, 1] *= 1.5
    assert verified(Spread(size * carried), RING)["layer_certificate"].causes[0].code == "SYM111"
    # Where no two constants agree none is the wrong one.
    unrelated = verified(Spread(size * (torch.rand(4, 3, generator=draw) + 0.5)), RING)
    cause = unrelated["network_equivariance"].causes[0]
    assert (cause.code, cause.fields["units"]) == ("SYM111", [])


class Zeros(nn.Module):
    """Whether either of two numbers is zero, and how many of them are: a sum of booleans is no sum of numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zero = torch.logical_not(x)
        either = zero[:, 0] + zero[:, 1]
        return torch.stack([either.to(x.dtype), zero.to(x.dtype).sum(1)], 1)


class Filled(nn.Module):
    """Numbers above 1 become a number that is stored without an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fill", torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(x > 1, self.fill)


def test_booleans_of_numbers_are_not_added_and_stored_numbers_without_an_axis_are_filled_in() -> None:
    exchange = Symmetry("exchange", catalog.cyclic(2), observation=[[1, 0]], action=[[1, 0]])
    zeros = verified(Zeros(), exchange, 2)
    assert zeros["network_equivariance"].verdict == "failed"
    assert "representation_propagation" not in zeros
    assert verified(Filled(), exchange, 2)["network_equivariance"].verdict == "proved"
