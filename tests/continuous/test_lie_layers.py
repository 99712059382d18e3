"""Layers over continuous groups: equivariant at Haar elements, and a network of them that learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import symcheck as sc
from symcheck.errors import SymcheckError
from symcheck.nn import (
    BasisLinear,
    EquivariantBatchNorm,
    EquivariantLayerNorm,
    EquivariantSequential,
    GatedNonlinearity,
    InvariantProducts,
    NormNonlinearity,
    PointwiseNonlinearity,
    TensorProduct,
)
from symcheck.symmetry.spec import parse_group

G, R = sc.groups, sc.representations


def gap(net: nn.Module, rho_in, rho_out, channels: int, seed: int = 0) -> float:
    """The largest difference between f(g x) and g f(x), for one Haar element, in float64."""
    net = net.double().eval()
    g = rho_in.group.sample(np.random.default_rng(seed))
    turn, image = (torch.from_numpy(rho.matrix(g)) for rho in (rho_in, rho_out))
    x = torch.randn(16, channels, rho_in.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return float((net(x @ turn.T) - net(x) @ image.T).abs().max())


@pytest.mark.parametrize("name", ["SO(2)", "O(2)", "SO(3)", "O(3)", "SO(4)", "C2 x so(3)"])
def test_a_network_of_linear_maps_norms_and_gates_is_equivariant(name: str) -> None:
    group = parse_group(name, "group")
    V = R.vector(group)
    gate = GatedNonlinearity(V)
    net = EquivariantSequential(
        BasisLinear(R.direct_sum(V, V, R.trivial(group)), gate.input_representation, 1, 8),
        gate,
        BasisLinear(V, V, 8, 8),
        NormNonlinearity(V, 8),
        EquivariantBatchNorm(V, 8),
        EquivariantLayerNorm(V, 8),
        BasisLinear(V, V, 8, 1),
    )
    assert gap(net, R.direct_sum(V, V, R.trivial(group)), V, 1) < 1e-12


def test_the_tensor_product_of_vectors_is_the_cross_product() -> None:
    V = R.vector(G.so(3))
    layer = TensorProduct(V, V, V, 1, 1).double()
    x, y = torch.randn(2, 5, 1, 3, dtype=torch.float64)
    ratio = layer(x, y) / torch.linalg.cross(x, y)
    assert torch.allclose(ratio, ratio[0, 0, 0].expand_as(ratio))
    with pytest.raises(SymcheckError, match="no product"):
        TensorProduct(*[R.vector(G.o(3))] * 3, 1, 1)
    with pytest.raises(SymcheckError, match="same group"):
        TensorProduct(V, R.vector(G.o(3)), V, 1, 1)


def test_tensor_products_are_equivariant() -> None:
    group = G.o(3)
    V = R.vector(group)
    rho = R.direct_sum(V, R.pseudovector(group))
    assert gap(TensorProduct(rho, rho, rho, 3, 4), rho, rho, 3) < 1e-12


def test_inner_products_are_invariant() -> None:
    V = R.vector(G.o(3))
    assert gap(InvariantProducts(V, 3), V, R.trivial(G.o(3)), 3) < 1e-12


def test_pointwise_functions_of_vectors_are_refused() -> None:
    with pytest.raises(SymcheckError, match="mix components"):
        PointwiseNonlinearity(R.vector(G.so(2)), "relu")


def test_a_network_learns_a_central_force() -> None:
    """f(x) = -x / (1 + |x|^2) under O(3): gates alone cannot measure a length, inner products can."""
    torch.manual_seed(0)
    group = G.o(3)
    V = R.vector(group)

    class Central(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.products = InvariantProducts(V, 1)
            self.scale = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
            self.linear = BasisLinear(V, V, 1, 1, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) * self.scale(self.products(x).squeeze(-1)).unsqueeze(-1)

    net = Central()
    x = torch.randn(256, 1, 3)
    target = -x / (1 + x.square().sum(-1, keepdim=True))
    # Adam written out: torch.optim takes seconds to import.
    parameters = list(net.parameters())
    first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    for step in range(1, 151):
        loss = (net(x) - target).square().mean()
        for p, g, m, v in zip(parameters, torch.autograd.grad(loss, parameters), first, second, strict=True):
            m.lerp_(g, 0.1)
            v.lerp_(g * g, 0.01)
            p.data -= 3e-2 * (m / (1 - 0.9**step)) / ((v / (1 - 0.99**step)).sqrt() + 1e-8)
    assert loss.item() < 0.02 * target.square().mean().item()
    assert gap(net, V, V, 1) < 1e-12
