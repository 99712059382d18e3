"""Where numbers of a computer are no real numbers: whole numbers that wrap around, NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from tricky_networks import CLAIM, Tied

from symcheck.engine.networks.capture.gate import capture_every_call
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.precision import in_float64
from symcheck.engine.networks.subject.values import Opaque
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

FEW = NetOptions(samples=32)
FAR = 2.5e3
ODD = Symmetry("odd", catalog.cyclic(2), observation=[[-1] * 4], action=[[-1, -1]])
Change = Callable[[Tensor], Tensor]


class Added(nn.Module):
    """An equivariant network, and a function of the input that is added to its output."""

    def __init__(self, net: nn.Module, change: Change) -> None:
        super().__init__()
        self.net, self.change = net, change

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + self.change(x).to(x.dtype)


def odd_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6, bias=False), nn.Tanh(), nn.Linear(6, 2, bias=False))


def beyond(x: Tensor, dtype: torch.dtype) -> Tensor:
    """-1, 0 or 1, by whether the first inputs lie far below zero or far above it."""
    return (x[:, :2] > FAR).to(dtype) - (x[:, :2] < -FAR).to(dtype)


WHOLE: dict[str, tuple[Change, Change]] = {
    "difference": (lambda x: beyond(x, torch.uint8), lambda x: beyond(x, torch.int8)),
    "product": (lambda x: beyond(x, torch.int8) * 64 * 2, lambda x: beyond(x, torch.int8) * 63 * 2),
    "sum": (
        lambda x: (beyond(x, torch.int8) * 64).sum(1, keepdim=True, dtype=torch.int8),
        lambda x: (beyond(x, torch.int8) * 64).sum(1, keepdim=True),
    ),
    "cast": (
        lambda x: F.hardshrink(x[:, :2], FAR).int(),
        lambda x: F.hardshrink(x[:, :2], FAR).clamp(-1e5, 1e5).int(),
    ),
}
"""Operations that leave the range of their dtype far out, and the same within it."""


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_that_may_wrap_around_are_not_proved_and_others_are(name: str) -> None:
    wraps, fits = (run_net(Added(odd_net(), change), ODD, options=FEW).verdict for change in WHOLE[name])
    assert (wraps, fits) == ("passed", "proved")


def test_a_whole_number_does_wrap_around() -> None:
    x = torch.full((1, 4), 2 * FAR)
    change = WHOLE["difference"][0]
    assert not torch.equal(change(-x).float(), -change(x).float())


def one_sided(change: Change) -> Change:
    return lambda x: torch.stack([change(x[:, 0]), torch.zeros_like(x[:, 0])], 1)


def both_sides(change: Change) -> Change:
    return lambda x: change(x[:, :2])


UNDEFINED: dict[str, Change] = {
    "zero times a root": lambda h: 0.0 * (4e3 - h).sqrt(),
    "zero times an exponential": lambda h: 0.0 * torch.exp(0.1 * h),
    "a root minus itself": lambda h: (4e3 - h).sqrt() - (4e3 - h).sqrt(),
    "zero times a product that float32 cannot represent": lambda h: 0.0 * (1e35 * h),
    "what a product that vanishes leaves out": lambda h: (
        F.relu(h - FAR) - F.relu(h - FAR) * 1e-30 * 1e-30 * 1e30 * 1e30
    ),
    "a root that differs from itself": lambda h: 1.0 - ((4e3 - h).sqrt() == (4e3 - h).sqrt()).to(h.dtype),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_term_that_vanishes_but_may_be_nan_on_one_side_ends_the_proof(name: str) -> None:
    change = UNDEFINED[name]
    assert run_net(Added(Tied(), one_sided(change)), CLAIM, options=FEW).verdict == "passed"
    assert run_net(Added(Tied(), both_sides(change)), CLAIM, options=FEW).verdict == "proved"
    far = torch.full((1,), 1e4)
    assert change(far).isnan().any() or change(far).any()


class Scaled(Tied):
    """A tied network, and a term that a number computed from constants switches off, in float64 or in every dtype."""

    def __init__(self, is_one: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.is_one = is_one

    def forward(self, x: Tensor) -> Tensor:
        wrong = F.relu(x[:, :2] - FAR) * self.gain
        return super().forward(x) + torch.where(self.is_one(self.gain[:1]), 1.0, 0.0) * wrong


CONSTANTS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "a number too large": (lambda g: torch.tensor([1e40]).isinf(), lambda g: torch.tensor([1e38]).isinf()),
    "a product too large": (lambda g: (g * 1e30 * 1e30).isinf(), lambda g: (g * 1e10 * 1e10).isinf()),
    "a product too small": (lambda g: g * 1e-30 * 1e-30 == 0, lambda g: g * 1e-10 * 1e-10 == 0),
    "a sum that rounds": (lambda g: torch.ones(1) * 2**24 + 1 == 2**24, lambda g: torch.ones(1) * 2**23 + 1 == 2**23),
    "a function that saturates": (lambda g: torch.tanh(0 * g + 10) == 1, lambda g: torch.tanh(0 * g + 5) == 1),
}
"""Constants that the deployed dtype cannot represent, and others that it can."""


def why_not_deployed(net: nn.Module) -> str | None:
    captured = capture_every_call(in_float64(net), net, (4,), 0, alone=False, given=net)
    return captured.reason.code if isinstance(captured, Opaque) else None


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_that_the_deployed_dtype_does_not_hold_ends_the_proof(name: str) -> None:
    beyond_range, within = (why_not_deployed(Scaled(is_one)) for is_one in CONSTANTS[name])
    assert (beyond_range, within) == ("SYM188", None)


@pytest.mark.parametrize("factor", [1e40, 1e-50])
def test_a_factor_that_the_deployed_dtype_does_not_hold_ends_the_proof(factor: float) -> None:
    assert why_not_deployed(Added(Tied(), lambda x: factor * x[:, :2])) == "SYM188"
    assert why_not_deployed(Added(Tied(), lambda x: factor**0.5 * x[:, :2])) is None


def test_the_single_precision_of_constants_in_a_network_in_double_precision_is_seen() -> None:
    rounds, fits = (Scaled(is_one).double() for is_one in CONSTANTS["a sum that rounds"])
    assert (why_not_deployed(rounds), why_not_deployed(fits)) == ("SYM188", None)
