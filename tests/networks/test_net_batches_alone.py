"""Operators that treat the samples of a batch alike, against runs of each sample alone; places that lie in range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from torch import Tensor, nn

from symcheck.engine.networks.capture import sizes
from symcheck.engine.networks.capture.batch_axis import why_samples_meet
from symcheck.engine.networks.capture.capture import RefusedCaptureError, capture_network
from symcheck.engine.networks.capture.places_in_range import upper_bound

F = nn.functional
W = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 6)))
FILTERS = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 2, 2, 2)))


class Net(nn.Module):
    """A function of a batch of six numbers each."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def meets(function: Callable[[Tensor], Tensor]) -> str | None:
    """The code of the reason why samples meet; None if they do not."""
    try:
        captured = capture_network(Net(function), (6,))
    except RefusedCaptureError as error:
        return str(error.reason.code)
    found = why_samples_meet(captured)
    return None if found is None else str(found[0].code)


def treats_alike(function: Callable[[Tensor], Tensor]) -> bool:
    """Oracle: every sample alone gives its own row of every batch."""
    for count, seed in ((2, 0), (3, 1), (4, 2)):
        x = torch.from_numpy(np.random.default_rng(seed).normal(size=(count, 6)))
        try:
            whole, rows = function(x), [function(x[i : i + 1]) for i in range(count)]
        except (RuntimeError, IndexError, ValueError):  # it does not take every batch
            return False
        if len(whole) != count:
            return False
        for i, alone in enumerate(rows):
            if alone.shape[1:] != whole.shape[1:] or not torch.allclose(alone[0], whole[i]):
                return False
    return True


def image(x: Tensor) -> Tensor:
    """Two channels of three places, beside themselves."""
    return x.reshape(-1, 2, 3, 1).expand(-1, 2, 3, 3)


ALIKE: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: x.tanh() * x + 1,
    "pointwise with a constant": lambda x: x + W[0],
    "a column beside rows": lambda x: x * x[:, :1],
    "view": lambda x: x.view(-1, 2, 3).view(-1, 6),
    "rows of pieces": lambda x: x.reshape(-1, 3).tanh().reshape(-1, 6),
    "transposed and back": lambda x: x.t().exp().t(),
    "permuted": lambda x: x.reshape(-1, 2, 3).permute(2, 0, 1).exp().permute(1, 0, 2).reshape(-1, 6),
    "sum": lambda x: x.sum(dim=1, keepdim=True),
    "softmax": lambda x: x.softmax(dim=-1),
    "sorted": lambda x: x.sort(dim=1).values,
    "flipped": lambda x: x.flip(1),
    "rolled": lambda x: x.roll(1, dims=1),
    "cumulated": lambda x: x.cumsum(dim=1),
    "sliced": lambda x: x[:, 1:4],
    "whole slice": lambda x: x[:],
    "selected": lambda x: x[:, 2],
    "joined": lambda x: torch.cat([x, x.exp()], dim=1),
    "stacked": lambda x: torch.stack([x, x.exp()], dim=1),
    "chunks": lambda x: x.chunk(2, dim=1)[1],
    "matrix": lambda x: x @ W,
    "linear": lambda x: F.linear(x, W),
    "batches of products": lambda x: x.reshape(-1, 2, 3) @ x.reshape(-1, 3, 2),
    "constant times columns": lambda x: (W @ x.t()).t(),
    "padded": lambda x: F.pad(x, (1, 2)),
    "repeated": lambda x: x.repeat(1, 2),
    "expanded": lambda x: x[:, None].expand(-1, 3, -1),
    "indexed": lambda x: x[:, torch.tensor([0, 2])],
    "normalised": lambda x: F.layer_norm(x, (6,)),
    "groups": lambda x: F.group_norm(x.reshape(-1, 2, 3), 2),
    "convolution": lambda x: F.conv2d(image(x), FILTERS),
    "pool": lambda x: F.avg_pool2d(image(x), 2),
    "largest pool": lambda x: F.max_pool2d(image(x), 2),
    "zeros beside": lambda x: torch.cat([x, torch.zeros_like(x)], dim=1),
    "ones": lambda x: torch.ones_like(x) + x,
    "written": lambda x: x.clone().index_fill_(1, torch.tensor([1]), 0.0),
    "two batches in turn": lambda x: torch.cat([x, x.exp()], dim=0).tanh()[: x.shape[0]],
    "own row": lambda x: x[torch.arange(x.shape[0]), x.argmax(dim=1)],
    "bilinear": lambda x: F.bilinear(x, x, torch.stack([W, W + 1])),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.reshape(-1, 2, 3)] * 3),
}
MIXED: dict[str, Callable[[Tensor], Tensor]] = {
    "centred": lambda x: x - x.mean(dim=0),
    "total": lambda x: x + x.sum(),
    "softmax over samples": lambda x: x.softmax(dim=0),
    "sorted samples": lambda x: x.sort(dim=0).values,
    "flipped samples": lambda x: x.flip(0),
    "rolled samples": lambda x: x.roll(1, dims=0),
    "rolled flat": lambda x: x.roll(1),
    "cumulated samples": lambda x: x.cumsum(dim=0),
    "first sample": lambda x: x + x[:1],
    "a sample less": lambda x: x[1:],
    "every second": lambda x: x[::2],
    "a sample": lambda x: x + x[0],
    "gram": lambda x: x @ x.t(),
    "gram of samples": lambda x: x.t() @ x,
    "transposed beside": lambda x: x.reshape(-1, 6) + x.sum(dim=1),
    "padded samples": lambda x: F.pad(x, (0, 0, 1, 0)),
    "repeated samples": lambda x: x.repeat(2, 1),
    "joined samples": lambda x: torch.cat([x, torch.zeros(1, 6, dtype=x.dtype)], dim=0),
    "pieces across samples": lambda x: x.reshape(6, -1).t(),
    "pieces in another order": lambda x: x.reshape(2, -1, 3).permute(1, 0, 2).reshape(-1, 6),
    "indexed samples": lambda x: x[torch.tensor([0, 0])],
    "row by content": lambda x: x[x[:, 0].argsort()],
    "statistics of the batch": lambda x: F.batch_norm(x, None, None, training=True),
    "attention between samples": lambda x: F.scaled_dot_product_attention(*[x[None]] * 3),
    "norm of samples": lambda x: F.layer_norm(x.t(), (x.shape[0],)).t(),
    "as many ones": lambda x: x + x.shape[0],
    "numbered": lambda x: x + torch.arange(x.shape[0])[:, None],
    "written sample": lambda x: x.clone().index_fill_(0, torch.tensor([1]), 0.0),
    "largest sample": lambda x: x + x.max(dim=0).values,
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_operators_that_keep_samples_apart_are_followed(name: str) -> None:
    assert treats_alike(ALIKE[name])
    assert meets(ALIKE[name]) is None


@pytest.mark.parametrize("name", MIXED)
def test_operators_that_mix_samples_are_refused(name: str) -> None:
    assert not treats_alike(MIXED[name])
    assert meets(MIXED[name]) is not None


def test_randomness_and_unknown_operators_are_named() -> None:
    assert meets(lambda x: x + torch.rand_like(x)) == "SYM158"
    assert meets(lambda x: x + torch.linalg.det(x.reshape(-1, 6, 1) @ x.reshape(-1, 1, 6))[:, None]) is not None


def test_a_write_into_a_narrower_tensor_that_is_kept_is_refused() -> None:
    kept = torch.zeros(6)
    assert meets(lambda x: x + kept.add_(1)) == "SYM183"
    assert meets(lambda x: x + (kept + 1)) is None


def bound_of(function: Callable[[Tensor], Tensor]) -> int | None:
    """The bound of the positions that a function computes; the network reads entries at them."""
    captured = capture_network(Net(lambda x: function(x).double() + 0.5), (6,))
    places = [node for node in captured.graph.nodes if node.op == "call_function"]
    whole = [node for node in places if isinstance(node.meta.get("val"), Tensor)
             and not node.meta["val"].is_floating_point()]  # fmt: skip
    return upper_bound(whole[-1])


EDGES = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (lambda x: x.argmax(dim=1), 6),
        (lambda x: x[:, :4].argmin(dim=1), 4),
        (lambda x: x.argsort(dim=1), 6),
        (lambda x: x.argmax(), None),
        (lambda x: x.argmax(dim=0), None),
        (lambda x: x.sort(dim=1)[1], 6),
        (lambda x: torch.bucketize(x, EDGES), 4),
        (lambda x: torch.searchsorted(EDGES, x), 4),
        (lambda x: x > 0, 2),
        (lambda x: x.argmax(dim=1).clamp(0, 3), 4),
        (lambda x: x.argmax(dim=1).clamp(-1, 3), None),
        (lambda x: x.long().remainder(5), 5),
        (lambda x: x.long().remainder(-5), None),
        (lambda x: x.long(), None),
        (lambda x: torch.zeros_like(x, dtype=torch.int64), 1),
        (lambda x: (x > 0).to(torch.int64), 2),
        (lambda x: x.argmax(dim=1).view(-1, 1), 6),
    ],
)
def test_positions_have_the_bound_of_their_operator(function: Any, bound: int | None) -> None:
    assert bound_of(function) == bound
    if bound is not None:
        x = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 6))) * 3
        places = function(x).long()
        assert 0 <= int(places.min()) <= int(places.max()) < bound
        assert int(places.max()) == bound - 1


N, K = sympy.symbols("n k", integer=True, positive=True)


class FloorDiv(sympy.Function):
    """Torch's rounded quotient."""


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [
        (2 * N, sympy.Integer(2), N),
        (2 * N + 1, sympy.Integer(2), N),
        (4 * N + 3, sympy.Integer(4), N),
        (4 * N + 4, sympy.Integer(4), N + 1),
        (3 * N, N, sympy.Integer(3)),
        (3 * N + 1, N, sympy.Integer(3)),
        (N, sympy.Integer(2), None),
        (N**2, N, N),
        (N + 5, N, None),
        (N * K, N, None),
        (sympy.sqrt(N), sympy.Integer(2), None),
    ],
)
def test_a_rounded_quotient_is_a_polynomial_only_if_it_is_one_for_every_size(
    dividend: Any, divisor: Any, quotient: Any
) -> None:
    found = sizes._quotient(dividend, divisor)
    assert (found is None) is (quotient is None)
    if quotient is not None:
        assert sympy.expand(found - quotient) == 0
        for n in (2, 3, 7, 100):
            values = [int(each.subs(N, n)) for each in (dividend, sympy.sympify(divisor), sympy.sympify(quotient))]
            assert values[0] // values[1] == values[2]


@pytest.mark.parametrize(
    ("polynomial", "never"), [(N, True), (N - 2, True), (N - 3, False), (N**2 - 4, True), (-N, False), (0, True)]
)
def test_a_polynomial_is_never_negative_from_a_batch_of_two_on(polynomial: Any, never: bool) -> None:
    assert sizes._is_never_negative(sympy.sympify(polynomial), N) is never


def test_sizes_that_are_numbers_have_no_symbol_and_are_one_batch() -> None:
    assert sizes.symbols_of(5) == set()
    assert sizes.multiple_of(5, N) == 1
