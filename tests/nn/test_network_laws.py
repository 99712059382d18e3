"""Equivariance of whole networks over generated groups, representations and weights."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from symcheck.nn import to_dense
from symcheck.representations.representation import Representation
from symcheck_properties import strategies

law = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
Drawn = tuple[Representation, Representation, nn.Module, int]


def cases() -> st.SearchStrategy[Drawn]:
    """Two representations of a group, a network between them, and a seed for inputs."""
    representations = strategies.groups(8).flatmap(lambda G: st.tuples(*[strategies.representations(G, max_dim=6)] * 2))
    return representations.flatmap(
        lambda pair: st.tuples(
            st.just(pair[0]), st.just(pair[1]), strategies.networks(*pair), st.integers(0, 2**32 - 1)
        )
    )


def largest_residual(net: nn.Module, rho_in: Representation, rho_out: Representation, x: Tensor) -> float:
    """|f(rho_in(g) x) - rho_out(g) f(x)| over the scale of the output and of the representations, over generators."""
    worst = 0.0
    with torch.no_grad():
        y = net(x).double()
        for K, L in zip(rho_out.generator_matrices, rho_in.generator_matrices, strict=True):
            moved = (x.double() @ torch.as_tensor(np.asarray(L, dtype=float)).T).to(x.dtype)
            expected = y @ torch.as_tensor(np.asarray(K, dtype=float)).T
            spread = float(np.abs(K).max() * np.abs(L).max())
            scale = max(1.0, float(y.abs().max()), float(expected.abs().max())) * max(1.0, spread)
            worst = max(worst, float((net(moved).double() - expected).abs().max()) / scale)
    return worst


def inputs(rho: Representation, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(6, 1, rho.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-12)])
def test_networks_are_equivariant_at_both_precisions(dtype: torch.dtype, tolerance: float) -> None:
    # Four layers of unit normal weights amplify rounding by up to their widths: about 1e3 ulp of the output's scale.
    @law
    @given(cases())
    def check(drawn: Drawn) -> None:
        rho_in, rho_out, net, seed = drawn
        assert largest_residual(net.to(dtype), rho_in, rho_out, inputs(rho_in, seed, dtype)) <= tolerance

    check()


@law
@given(cases())
def test_networks_stay_equivariant_after_steps_saving_loading_copying_and_exporting(drawn: Drawn) -> None:
    rho_in, rho_out, net, seed = drawn
    net = net.double()
    x = inputs(rho_in, seed, torch.float64)
    optimizer = torch.optim.SGD(net.parameters(), 1e-2)
    for _ in range(2):
        loss = net(x).square().mean().clamp_max(1e3)
        optimizer.zero_grad()
        if loss.requires_grad:
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    loaded = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.zero_()
    loaded.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(loaded(x), net(x))
    assert largest_residual(loaded, rho_in, rho_out, x) <= 1e-12
    dense = to_dense(net)
    scale = max(1.0, float(net(x).detach().abs().max()))
    assert float((dense(x) - net(x).flatten(1)).detach().abs().max()) <= 1e-12 * scale


def test_the_law_notices_one_wrong_weight() -> None:
    @settings(law, max_examples=10, phases=[Phase.generate])
    @given(cases())
    def check(drawn: Drawn) -> None:
        rho_in, rho_out, net, seed = drawn
        dense = to_dense(net.double())
        last = dense[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight[0, 0] += 1.0
        wrapped = nn.Sequential(dense, nn.Unflatten(1, (1, rho_out.dim)))
        assert largest_residual(wrapped, rho_in, rho_out, inputs(rho_in, seed, torch.float64)) <= 1e-12

    with pytest.raises(AssertionError):
        check()
