"""Networks under groups that act by matrices: gates, norms, products and attention are followed through the graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from certificate_mutants import is_certified
from torch import Tensor, nn

from symcheck import nn as layers
from symcheck.engine.networks.capture.capture import capture_network
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.claims import AffineMap, InputClaim, OutputClaim
from symcheck.groups import catalog
from symcheck.groups.continuous import so
from symcheck.representations import constructors, operations
from symcheck.representations.lie_constructors import vector
from symcheck.symmetry.symmetry import Symmetry

ANGLES = (1.0, 0.7)


def turns() -> list[np.ndarray]:
    """Two generic turns of space."""
    made = []
    for axis, angle in zip(([1.0, 2.0, 2.0], [2.0, -1.0, 2.0]), ANGLES, strict=True):
        x, y, z = np.array(axis) / 3
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        made.append(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)
    return made


def in_space(outputs: int = 1) -> tuple[InputClaim, tuple[OutputClaim, ...]]:
    """Two vectors and a scalar in, one vector out (or an invariant)."""
    given = [np.eye(7) for _ in turns()]
    for matrix, turn in zip(given, turns(), strict=True):
        matrix[:3, :3] = matrix[3:6, 3:6] = turn
    answer = [np.kron(np.eye(outputs), turn) for turn in turns()] if outputs else [np.eye(1)] * 2
    moved = tuple(AffineMap(matrix, np.zeros(7)) for matrix in given)
    images = tuple(AffineMap(matrix, np.zeros(len(matrix))) for matrix in answer)
    return InputClaim((7,), moved), (OutputClaim("output", "given", len(answer[0]), images),)


class Mixed(nn.Module):
    """Four vectors and four scalars, mixed from two and one: linear maps that leave the components alone."""

    def __init__(self, function: Callable[[Mixed, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.function = function
        self.mix = nn.Parameter(torch.randn(4, 2, generator=generator))
        self.last = nn.Parameter(torch.randn(1, 4, generator=generator))
        self.of_scalars = nn.Parameter(torch.randn(4, 1, generator=generator))
        self.heads = nn.Parameter(torch.randn(4, 4, generator=generator))
        self.off = 0.0

    def forward(self, x: Tensor) -> Tensor:
        vectors = torch.einsum("ck,bkd->bcd", self.mix, x[:, :6].unflatten(1, (2, 3)))
        vectors = vectors + self.off * torch.eye(4, 3)
        return self.function(self, vectors, nn.functional.linear(x[:, 6:], self.of_scalars))


def out(net: Mixed, vectors: Tensor) -> Tensor:
    return (net.last @ vectors).flatten(1)


def attend(net: Mixed, v: Tensor, scores: Tensor) -> Tensor:
    return out(net, torch.softmax(scores, -1) @ v)


def normed(v: Tensor) -> Tensor:
    return v / (v.square().sum(-1, keepdim=True) + 1e-6).sqrt()


CARRIED: dict[str, Callable[[Mixed, Tensor, Tensor], Tensor]] = {
    "gates": lambda net, v, s: out(net, torch.sigmoid(s)[..., None] * v),
    "norms": lambda net, v, s: out(net, v * torch.relu(v.norm(dim=-1, keepdim=True) - 0.5)),
    "gates in two layers": lambda net, v, s: out(net, s.tanh()[..., None] * (net.heads @ (normed(v) * s[..., None]))),
    "cross products": lambda net, v, s: out(net, torch.cross(v, v.roll(1, 1), dim=-1)),
    "bilinear": lambda net, v, s: out(net, torch.einsum("bci,bdi,bdj->bcj", v, v, v)),
    "attention on invariants": lambda net, v, s: attend(net, v, v @ v.transpose(1, 2)),
    "an average over channels": lambda net, v, s: out(net, v / v.square().mean((1, 2), keepdim=True).sqrt()),
    "a maximum of lengths": lambda net, v, s: out(net, v * v.square().sum(-1).amax(1)[:, None, None]),
}
BROKEN: dict[str, Callable[[Mixed, Tensor, Tensor], Tensor]] = {
    "a function of components": lambda net, v, s: out(net, torch.tanh(v)),
    "a gate that reads a component": lambda net, v, s: out(net, torch.sigmoid(v[..., :1]) * v),
    "a norm of two components": lambda net, v, s: out(net, v * v[..., :2].square().sum(-1, keepdim=True)),
    "another norm": lambda net, v, s: out(net, v * v.abs().sum(-1, keepdim=True)),
    "a product component by component": lambda net, v, s: out(net, v * v.roll(1, 1)),
    "a norm over channels": lambda net, v, s: out(net, v / v.norm(dim=1, keepdim=True)),
    "attention on components": lambda net, v, s: attend(net, v, v[..., :2] @ v[..., :2].transpose(1, 2)),
    "one weight off": lambda net, v, s: out(net, v * s[..., None]) + 1e-7 * v[:, 0, [1, 0, 2]],
    "a vector that is moved": lambda net, v, s: out(net, v * s[..., None]) + 1e-7,
    "cross products in another order": lambda net, v, s: out(net, torch.cross(v, v.roll(1, 1), dim=-1)[..., [0, 2, 1]]),
    "a part of the products": lambda net, v, s: out(
        net, v * (v[..., :2] * v.roll(1, 1)[..., :2]).sum(-1, keepdim=True)
    ),
}


def is_carried(function: Callable[[Mixed, Tensor, Tensor], Tensor], *, off: float = 0.0) -> bool:
    net = Mixed(function).double()
    net.off = off
    return is_certified(capture_network(net, (7,)), *in_space())


@pytest.mark.parametrize("name", CARRIED)
def test_a_network_of_gates_norms_and_products_is_carried(name: str) -> None:
    assert is_carried(CARRIED[name])


@pytest.mark.parametrize("name", BROKEN)
def test_a_network_that_breaks_the_turn_is_not_carried(name: str) -> None:
    assert not is_carried(BROKEN[name])


def test_a_bias_of_a_vector_is_not_carried_through_gates() -> None:
    assert not is_carried(CARRIED["gates"], off=1e-7)


def exchanged(function: Callable[[Tensor], Tensor]) -> bool:
    """Two numbers exchanged by matrices, as in a basis in which an action is no permutation."""
    swap = np.array([[0.6, 0.8], [0.8, -0.6]])
    mirrored = (AffineMap(swap, np.zeros(2)),)
    net = Basis(function).double()
    claim = InputClaim((2,), mirrored), (OutputClaim("output", "given", 2, mirrored),)
    return is_certified(capture_network(net, (2,)), *claim)


class Basis(nn.Module):
    """A function of the sum and the difference along the axis of the mirror and across it."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        across, along = np.array([1.0, -2.0]) / 5**0.5, np.array([2.0, 1.0]) / 5**0.5
        self.register_buffer("turn", torch.from_numpy(np.stack([along + across, along - across])) / 2**0.5)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x @ self.turn.T) @ self.turn


def test_functions_of_forms_that_a_mirror_exchanges_are_exchanged() -> None:
    assert exchanged(torch.relu)
    assert exchanged(lambda pair: pair.sigmoid() * pair)
    assert not exchanged(lambda pair: pair.relu() * torch.tensor([1.0, 1 + 1e-9]))
    assert not exchanged(lambda pair: torch.cat([pair[:, :1].relu(), pair[:, 1:].tanh()], 1))


def test_layers_of_this_package_are_proved_under_a_continuous_group() -> None:
    group = so(3)
    v, t = vector(group), constructors.trivial(group)
    torch.manual_seed(0)
    gate = layers.GatedNonlinearity(v)
    body = layers.EquivariantSequential(
        layers.BasisLinear(operations.direct_sum(v, v, t), gate.input_representation, 1, 3),
        gate,
        layers.BasisLinear(v, v, 3, 2),
        layers.NormNonlinearity(v, 2),
        layers.BasisLinear(v, v, 2, 1),
    )
    net = nn.Sequential(nn.Unflatten(1, (1, 7)), body, nn.Flatten())
    symmetry = Symmetry(
        "turns", group, observation={"representation": "2*vector + scalar"}, action={"representation": "vector"}
    )
    options = NetOptions(samples=32, input_shape=(7,))
    result = run_net(net, symmetry, options=options)
    assert result.verdict == "proved"
    assert result.method_reason is not None
    assert result.method_reason.code == "method_compared"
    body[0].register_forward_hook(lambda module, given, made: made + 1e-3 * made[..., [0, 2, 1, 3]])
    assert run_net(net, symmetry, options=options).verdict == "failed"


def test_a_finite_group_of_turns_is_followed_through_gates() -> None:
    turn = constructors.rotation(catalog.cyclic(5)).matrix(catalog.cyclic(5).generators[0])
    moved = (AffineMap(turn, np.zeros(2)),)
    net = nn.Sequential(nn.Linear(2, 2, bias=False), Gate()).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[0.3, -1.2], [1.2, 0.3]]))
    claim = InputClaim((2,), moved), (OutputClaim("output", "given", 2, moved),)
    assert is_certified(capture_network(net, (2,)), *claim)
    with torch.no_grad():
        net[0].weight[0, 1] += 1e-7
    assert not is_certified(capture_network(net, (2,)), *claim)


class Gate(nn.Module):
    """A vector times a function of its length."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tanh(x.square().sum(1, keepdim=True))
