"""Networks that differ in a box so thin that no sample meets it: only a sound proof keeps them from being `proved`.

Each pair of functions A, B makes a network [A(x) + w x, B(-x) - w x], which is equivariant if and only if A = B.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from net_catalogue import mirror
from torch import Tensor, nn

from symcheck.certificate_checker import RejectedError, check, digest
from symcheck.engine.networks.capture.capture import capture_network
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.domain import Domain

Function = Callable[[Tensor], Tensor]
CENTRE = torch.tensor([1.3, -0.7, 0.4, 1.2])


def distance(x: Tensor) -> Tensor:
    return (x - CENTRE.to(x.dtype)).abs().amax(1)


def inside(x: Tensor, radius: float) -> Tensor:
    return distance(x) < radius


def number(flag: Tensor, x: Tensor) -> Tensor:
    return flag.to(x.dtype)


def bump(x: Tensor) -> Tensor:
    return torch.relu(0.1 - distance(x))


class Pair(nn.Module):
    def __init__(self, first: Function, second: Function) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.first, self.second = nn.Linear(4, 1, bias=False), first, second

    def forward(self, x: Tensor) -> Tensor:
        shared = self.linear(x)[:, 0]
        return torch.stack([shared + self.first(x), self.second(-x) - shared], 1)


WRONG: dict[str, tuple[Function, Function]] = {
    "a sum of booleans": (
        lambda x: number(inside(x, 0.1) + inside(x, 0.2), x),
        lambda x: number(inside(x, 0.1), x) + number(inside(x, 0.2), x),
    ),
    "a count taken for a boolean": (
        lambda x: number(torch.stack([inside(x, 0.1), inside(x, 0.2)], 1).sum(1).bool(), x),
        lambda x: number(torch.stack([inside(x, 0.1), inside(x, 0.2)], 1).sum(1), x),
    ),
    "bits of whole numbers": (
        lambda x: number((4 * number(inside(x, 0.1), x)).long() & 3, x),
        lambda x: number(torch.logical_and((4 * number(inside(x, 0.1), x)).long(), torch.full((), 3)), x),
    ),
    "a short whole number that wraps": (
        lambda x: number((200 * number(inside(x, 0.1), x)).long().to(torch.int8), x),
        lambda x: number((200 * number(inside(x, 0.1), x)).long(), x),
    ),
    "a check for NaN": (
        lambda x: number(torch.isnan(torch.sqrt(distance(x) - 0.1)), x),
        lambda x: number(torch.isnan(torch.sqrt(distance(-x) - 0.1)), x),
    ),
    "terms that cancel in rounding": (
        lambda x: 1e16 * bump(x) - 1e16 * bump(x) + bump(x),
        lambda x: 0 * x[:, 0],
    ),
    "a number that a boolean cannot hold": (
        lambda x: number(inside(x, 0.2).masked_fill(inside(x, 0.1), 2), x),
        lambda x: number(torch.where(inside(x, 0.1), 2, inside(x, 0.2)), x),
    ),
    "another number in single precision": (
        lambda x: (3.0 if x.dtype == torch.float32 else 1.0) * bump(x),
        bump,
    ),
    "the default dtype": (
        lambda x: (3.0 if torch.get_default_dtype() == torch.float32 else 1.0) * bump(x),
        bump,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_difference_in_a_thin_box_is_not_proved(name: str) -> None:
    first, second = WRONG[name]
    assert run_net(Pair(first, second), mirror(), options=NetOptions(samples=32)).verdict != "proved"


@pytest.mark.parametrize("function", [bump, lambda x: number(inside(x, 0.1) & inside(x, 0.2), x)])
def test_the_same_function_on_both_sides_is_proved(function: Function) -> None:
    assert run_net(Pair(function, function), mirror(), options=NetOptions(samples=32)).verdict == "proved"


def test_memory_that_was_never_written_is_no_constant_whatever_it_holds() -> None:
    captured = capture_network(Pair(lambda x: torch.empty_like(x)[:, 0], lambda x: 0 * x[:, 0]).double(), (4,))
    with pytest.raises(NoCertificateError) as refused:
        follow(captured, (4,))
    assert "never written" in refused.value.reason.fields["operation"]


class Asks(nn.Module):
    """Another network in a plain call than without gradients."""

    def __init__(self, asks: Callable[[Tensor], bool]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.asks = nn.Linear(4, 1, bias=False), asks

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        both = torch.cat([y, -y], 1)
        return both + torch.tensor([1.0, 0.0]) if self.asks(both) else both


@pytest.mark.parametrize("asks", [lambda y: y.requires_grad, lambda y: y.is_inference()])
def test_what_a_network_does_only_while_gradients_are_recorded_or_inferred_ends_the_proof(
    asks: Callable[[Tensor], bool],
) -> None:
    assert run_net(Asks(asks), mirror(), options=NetOptions(samples=32)).verdict != "proved"


def test_an_operator_of_another_library_is_not_taken_for_the_one_of_torch_with_its_name() -> None:
    library = torch.library.Library("symcheck_tests", "DEF")
    library.define("relu(Tensor x) -> Tensor", tags=[torch.Tag.pointwise])
    library.impl("relu", lambda x: torch.where(x > 8000, 3 * x, torch.relu(x)), "CompositeExplicitAutograd")

    def function(x: Tensor) -> Tensor:
        return torch.ops.symcheck_tests.relu(x[:, 0])

    assert run_net(Pair(function, function), mirror(), options=NetOptions(samples=32)).verdict != "proved"


@pytest.mark.parametrize("change", ["no generator", "an output without entries"])
def test_a_claim_that_says_nothing_is_rejected(change: str) -> None:
    packed = {"dtype": "int64", "shape": [0], "data": ""}
    index = {"dtype": "int8", "shape": [2], "data": "AAE="}
    sign = {"dtype": "int8", "shape": [2], "data": "AQE="}
    swap = {"index": {**index, "data": "AQA="}, "sign": sign}
    document = {
        "schema": "symcheck-certificate/2",
        "claim": {"statement": "f(L x) = K f(x)", "tolerance": "weights equal", "generators": ["g"]},
        "input": {"shape": [2]},
        "weights": {},
        "nodes": [{"op": "input", "name": "x", "size": 2, "actions": [swap]}],
        "outputs": [{"path": "", "entries": index, "actions": [swap]}],
    }
    check({**document, "digest": digest(document)})
    if change == "no generator":
        document["claim"]["generators"], document["nodes"][0]["actions"] = [], []
        document["outputs"][0]["actions"] = []
    else:
        document["outputs"][0]["entries"] = packed
        document["outputs"][0]["actions"] = [{"index": packed, "sign": packed}]
    with pytest.raises(RejectedError):
        check({**document, "digest": digest(document)})


def test_an_image_may_leave_a_range_by_a_millionth_of_it_and_by_no_more() -> None:
    box = Domain(np.array([0.0, -np.inf]), np.array([2.0, 1.0]), np.zeros(2, dtype=bool))
    edges = np.array([[2 + 1.9e-6, 0], [2 + 2.1e-6, 0], [-1.9e-6, 0], [-2.1e-6, 0], [1, 1 + 1e-12], [1, -1e9]])
    assert box.contains(edges).tolist() == [True, False, True, False, False, True]
