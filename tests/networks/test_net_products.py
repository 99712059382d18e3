"""Attention with masks, products of values, ensembles, coordinates: proved, and their planted faults found in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from net_catalogue import Draw, conv, linear, mirror, mirror_mlp, swap_blocks
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


def agents() -> Symmetry:
    """Three agents of two numbers each, in any order; an action for each."""
    first, second = [2, 3, 0, 1, 4, 5], [2, 3, 4, 5, 0, 1]
    return Symmetry("agents", catalog.symmetric(3), observation=[first, second], action=[[1, 0, 2], [1, 2, 0]])


def ring() -> Symmetry:
    """Four agents in a ring, each with one number and one action, move up by one."""
    return Symmetry("ring", catalog.cyclic(4), observation=[[1, 2, 3, 0]], action=[[1, 2, 3, 0]])


def steering() -> Symmetry:
    """Left and right exchanged in an image; the steering angle changes its sign."""
    return Symmetry("steering", catalog.cyclic(2), observation=["flip_lr"], action=[["-1"]])


def nudged(tensor: torch.Tensor, entry: int, by: float) -> None:
    with torch.no_grad():
        tensor.view(-1)[entry] += by


class Masked(nn.Module):
    """Torch's attention over three agents, which do not look at themselves, with padding that hides nobody."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Linear(2, 8), nn.Linear(8, 1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("unseen", torch.eye(3, dtype=torch.bool))
        self.unseen[0, 1] = wrong

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(x.view(-1, 3, 2))
        padding = torch.zeros(len(x), 3, dtype=torch.bool)
        seen, _ = self.attention(tokens, tokens, tokens, key_padding_mask=padding, attn_mask=self.unseen)
        return self.head(tokens + seen).squeeze(-1)


class ByHand(nn.Module):
    """Attention along a ring written out, with a bias by distance; neighbours only."""

    def __init__(self, wrong: bool, fill: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.qkv, self.head, self.fill = nn.Linear(1, 8), nn.Linear(8, 24), nn.Linear(8, 1), fill
        step = (torch.arange(4)[:, None] - torch.arange(4)) % 4
        self.register_buffer("seen", step != 2)
        self.register_buffer("distance", 0.1 * step)
        nudged(self.distance, 1, 1e-3 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(x.unsqueeze(-1))
        q, k, v = self.qkv(tokens).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / math.sqrt(8) + self.distance
        return self.head(tokens + torch.softmax(self.fill(scores, self.seen), -1) @ v).squeeze(-1)


FILLS: dict[str, Callable[..., torch.Tensor]] = {
    "masked_fill": lambda scores, seen: scores.masked_fill(~seen, float("-inf")),
    "where": lambda scores, seen: torch.where(seen, scores, -1e9),
    "where, as a method": lambda scores, seen: scores.where(seen, torch.tensor(float("-inf"))),
    "minus infinity added": lambda scores, seen: scores + torch.zeros(4, 4).masked_fill(~seen, float("-inf")),
}


class Mixer(nn.Module):
    """The value of a team: the agents' values mixed by weights that a second network makes of what they see."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.of_agent, self.weights, self.head = nn.Linear(2, 3), nn.Linear(2, 3), nn.Linear(3, 1)
        self.register_buffer("gain", torch.ones(3, 1))
        nudged(self.gain, 1, 1e-3 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = x.view(-1, 3, 2)
        values, weights = torch.tanh(self.of_agent(each)), self.weights(each).abs() * self.gain
        return self.head(torch.bmm(values.transpose(1, 2), weights).diagonal(dim1=1, dim2=2))


class Einsums(nn.Module):
    """Attention over three agents in sums of products."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.head = nn.Linear(2, 12), nn.Linear(4, 1)
        self.register_buffer("shift", torch.zeros(3, 1))
        nudged(self.shift, 2, 1e-3 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (self.qkv(x.view(-1, 3, 2)) + self.shift).chunk(3, -1)
        weights = torch.softmax(torch.einsum("bqd,bkd->bqk", q, k), -1)
        return self.head(torch.relu(torch.einsum("bqk,bkd->bqd", weights, v))).squeeze(-1)


class Ensemble(nn.Module):
    """Three networks in one product each layer, and the least of what they say."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        members = [mirror_mlp(8, seed=seed) for seed in range(3)]
        self.layers = nn.ModuleList()
        for place in (0, 2, 4):
            layer = nn.Module()
            layer.weight = nn.Parameter(torch.stack([member[place].weight.T for member in members]))
            layer.bias = nn.Parameter(torch.stack([member[place].bias for member in members])[:, None])
            self.layers.append(layer)
        nudged(self.layers[1].weight, 100, 1e-6 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, third = self.layers
        h = torch.relu(torch.baddbmm(first.bias, x.expand(3, *x.shape), first.weight))
        h = torch.relu(torch.bmm(h, second.weight) + second.bias)
        return (torch.matmul(h, third.weight) + third.bias).min(0)[0]


class Keypoints(nn.Module):
    """Where the filters see something, as mean coordinates: a flip reverses the horizontal ones."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw()
        filters = draw(3, 1, 3, 3)
        self.conv = conv(filters + filters.flip(-1), draw(3), padding=1)
        self.register_buffer("across", torch.linspace(-1, 1, 9))
        nudged(self.across, 2, 1e-4 * wrong)
        self.head = linear(draw(1, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.conv(x)
        weights = torch.softmax(seen.flatten(2), -1).view_as(seen)
        return torch.tanh(self.head((weights * self.across).sum((2, 3))))


class Quantiles(nn.Module):
    """Hidden units times an embedding of four quantiles, which has an equal entry for both of a pair of units."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        draw = Draw(2)
        first, bias, embedding = draw(8, 4), draw(8), torch.relu(draw(4, 8))
        self.first = linear(torch.cat([first, -first]), torch.cat([bias, bias]))
        self.embedding = nn.Parameter(torch.cat([embedding, embedding], 1))
        self.head = linear(swap_blocks(draw, 1, 8))
        nudged(self.embedding, 3, 1e-6 * wrong)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        return self.head(hidden[:, None, :] * self.embedding).mean(1)


@dataclass(frozen=True)
class Kind:
    """A kind of network: builds it without (False) and with its fault, and the layer that is then named."""

    build: Callable[[bool], nn.Module]
    symmetry: Callable[[], Symmetry]
    layer: str
    options: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "masked attention": Kind(Masked, agents, "attention"),
    **{
        f"attention by hand, {name}": Kind(lambda wrong, fill=fill: ByHand(wrong, fill), ring, "distance")
        for name, fill in FILLS.items()
    },
    "attention in sums of products": Kind(Einsums, agents, "shift"),
    "mixed values": Kind(Mixer, agents, "gain", {"outputs": ("invariant",)}),
    "ensemble": Kind(Ensemble, mirror, "layers.1"),
    "keypoints": Kind(Keypoints, steering, "across", {"input_shape": (1, 9, 9)}),
    "quantiles": Kind(Quantiles, mirror, "embedding"),
}


def verified(name: str, wrong: bool) -> RunResult:
    kind = KINDS[name]
    return run_net(kind.build(wrong), kind.symmetry(), options=NetOptions(samples=200, **kind.options))


@pytest.mark.parametrize("name", KINDS)
def test_a_correct_network_of_this_kind_is_proved(name: str) -> None:
    result = verified(name, wrong=False)
    assert result.verdict == "proved", result.method_reason


@pytest.mark.parametrize("name", KINDS)
def test_the_fault_planted_in_it_is_found_at_its_place(name: str) -> None:
    result = verified(name, wrong=True)
    failed = [p for p in result.properties if p.verdict == "failed"]
    assert {p.location for p in failed} == {KINDS[name].layer}, result.method_reason


def test_a_mask_made_of_the_input_is_shown_by_the_graph_alone() -> None:
    class SeesTheNear(nn.Module):
        def __init__(self, off: float) -> None:
            super().__init__()
            self.off = nn.Parameter(off * torch.arange(4.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = x[:, :, None] * x[:, None, :]
            far = (x[:, :, None] - x[:, None, :]).abs() > 1 + self.off
            return (torch.softmax(scores.masked_fill(far, -1e9), -1) @ x[:, :, None]).squeeze(-1)

    result = run_net(SeesTheNear(0.0), ring(), options=NetOptions(samples=200))
    assert result.verdict == "proved"
    assert result.method_reason is not None
    assert result.method_reason.code == "method_compared"
    assert run_net(SeesTheNear(0.01), ring(), options=NetOptions(samples=200)).verdict == "failed"
