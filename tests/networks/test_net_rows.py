"""Networks over rows of a table (points, tokens, agents): distances between rows, and a learned row beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.groups import catalog
from symcheck.groups.continuous import so
from symcheck.symmetry.symmetry import Symmetry


def verdict(net: nn.Module, symmetry: Symmetry, **options: Any) -> str:
    return run_net(net, symmetry, options=NetOptions(samples=100, **options)).verdict


def rows_exchanged() -> Symmetry:
    """Three rows of two numbers change places; two outputs stay."""
    return Symmetry(
        "rows",
        catalog.symmetric(3),
        observation=[[2, 3, 0, 1, 4, 5], [2, 3, 4, 5, 0, 1]],
        action=[[0, 1], [0, 1]],
    )


def points_turned() -> Symmetry:
    """Three points of the plane turn about the origin; two outputs stay."""
    return Symmetry(
        "turn", so(2), observation=[{"rotate": [[0, 1], [2, 3], [4, 5]]}], action=[{"algebra": [[0, 0], [0, 0]]}]
    )


class Distances(nn.Module):
    """Mean distances between the rows, and to learned centres; one row may weigh more."""

    def __init__(self, p: float = 2.0, *, wrong: bool = False, centres: int = 0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.p = p
        self.centres = nn.Parameter(torch.randn(centres, 2)) if centres else None
        self.head = nn.Linear(1 + centres, 2)
        self.register_buffer("weights", torch.tensor([1.0, 1.0, 1.1 if wrong else 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.view(-1, 3, 2)
        features = [torch.cdist(rows, rows, p=self.p).sum(-1).mul(self.weights).mean(-1, keepdim=True)]
        if self.centres is not None:
            features.append(torch.exp(-torch.cdist(rows, self.centres, p=self.p)).mean(1))
        return self.head(torch.cat(features, -1))


# with more than 25 rows, torch computes Euclidean distances by a product of matrices
@pytest.mark.parametrize(("p", "centres"), [(1.0, 0), (2.0, 0), (float("inf"), 2), (2.0, 30)])
@pytest.mark.parametrize("wrong", [False, True])
def test_distances_between_exchanged_rows_are_proved(p: float, centres: int, wrong: bool) -> None:
    assert verdict(Distances(p, centres=centres, wrong=wrong), rows_exchanged()) == ("failed" if wrong else "proved")


@pytest.mark.parametrize(("p", "right"), [(2.0, "proved"), (1.0, "failed")])
def test_only_euclidean_distances_are_invariant_under_rotations(p: float, right: str) -> None:
    assert verdict(Distances(p), points_turned()) == right


def test_distances_of_other_exponents_are_tested_on_samples() -> None:
    assert verdict(Distances(3.0), rows_exchanged()) == "passed"


class Crowd(nn.Module):
    """Adds the mean distance to the other samples of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = Distances()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.plain(x) + torch.cdist(x, x).mean(-1, keepdim=True)


def test_distances_between_samples_of_a_batch_are_not_proved() -> None:
    assert verdict(Crowd(), rows_exchanged()) != "proved"


class ClassToken(nn.Module):
    """A learned row attends to the rows of the input; the rows may know their positions."""

    def __init__(self, *, positions: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.token = nn.Linear(2, 8), nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(3, 8) * positions)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.embed(x.view(-1, 3, 2)) + self.positions
        rows = torch.cat([self.token.expand(len(x), -1, -1), rows], 1)
        return self.head(self.attention(rows, rows, rows, need_weights=False)[0][:, 0])


@pytest.mark.parametrize("positions", [False, True])
def test_a_learned_row_beside_the_rows_of_the_input_is_proved(positions: bool) -> None:
    """Its part of the first layer is the same for every sample, whatever the position in the batch rounds to."""
    assert verdict(ClassToken(positions=positions), rows_exchanged()) == ("failed" if positions else "proved")


class Gated(nn.Module):
    """A vector scaled by a function of three invariants: the first layer reads neither two nor six numbers."""

    def __init__(self, *, wrong: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gain = nn.Linear(3, 1)
        self.register_buffer("stretch", torch.tensor([1.0, 1.1 if wrong else 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lengths = x.view(-1, 3, 2).square().sum(-1)
        return self.gain(lengths) * x[:, :2] * self.stretch


@pytest.mark.parametrize("wrong", [False, True])
def test_rotated_components_give_the_smallest_input_when_the_first_layer_takes_fewer(wrong: bool) -> None:
    claim = Symmetry("turn", so(2), observation=[{"rotate": [[0, 1], [2, 3], [4, 5]]}], action=[{"rotate": [[0, 1]]}])
    assert verdict(Gated(wrong=wrong), claim) == ("failed" if wrong else "proved")


@dataclasses.dataclass
class Decision:
    """What a policy returns."""

    logits: torch.Tensor
    value: torch.Tensor


class Returning(nn.Module):
    """A policy over two numbers that returns a dataclass; its value may prefer the first number."""

    def __init__(self, *, wrong: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.own = nn.Linear(1, 1)
        self.wrong = wrong

    def forward(self, x: torch.Tensor) -> Decision:
        logits = self.own(x.unsqueeze(-1)).squeeze(-1)
        return Decision(logits, logits.sum(-1, keepdim=True) + self.wrong * x[:, :1])


def test_the_fields_of_a_dataclass_are_outputs() -> None:
    swap = Symmetry("swap", catalog.cyclic(2), observation=[[1, 0]], action=[[1, 0]])
    assert verdict(Returning(), swap) == "proved"
    failed = run_net(Returning(wrong=True), swap, options=NetOptions(samples=100))
    found = next(item for item in failed.properties if item.name == "network_equivariance").counterexample
    assert failed.verdict == "failed"
    assert found is not None
    assert "output.value" in found.where
