"""Normalisations: equivariant in both modes, and unlike plain batch normalisation on skewed data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from symcheck import groups
from symcheck import representations as reps
from symcheck.errors import SymcheckError
from symcheck.nn import BasisLinear, EquivariantBatchNorm, EquivariantLayerNorm, EquivariantSequential, to_dense
from symcheck.representations.representation import Representation

C3, C4 = groups.cyclic(3), groups.cyclic(4)
REPRESENTATIONS = [reps.regular(C4), reps.standard(groups.hyperoctahedral(3)), reps.rotation(C3)]
TURN = reps.regular(C4)


def act(rho: Representation, x: Tensor) -> Tensor:
    matrix = torch.as_tensor(np.asarray(rho.matrix(rho.group.generators[-1]), dtype=float)).to(x)
    return torch.tensordot(x, matrix, dims=([2], [1])).movedim(-1, 2)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def one_sided(rho: Representation, *pixels: int) -> Tensor:
    """Data whose components differ in mean and size."""
    trend = torch.arange(1.0, rho.dim + 1).reshape(1, 1, rho.dim, *(1,) * len(pixels))
    return (torch.randn(16, 3, rho.dim, *pixels) * trend + trend).double()


@pytest.mark.parametrize("rho", REPRESENTATIONS, ids=lambda rho: rho.name)
@pytest.mark.parametrize("make", [EquivariantBatchNorm, EquivariantLayerNorm])
@pytest.mark.parametrize("pixels", [(), (5, 5)])
def test_normalisation_is_equivariant_in_train_and_eval_mode(
    rho: Representation, make: type[EquivariantBatchNorm], pixels: tuple[int, ...]
) -> None:
    norm = make(rho, 3).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    for _ in range(10):
        norm(one_sided(rho, *pixels))
    x = one_sided(rho, *pixels)
    for mode in (True, False):
        norm.train(mode)
        moved, expected = norm(act(rho, x)), act(rho, norm(x))
        assert float((moved - expected).detach().abs().max()) < 1e-12  # a few ulp of numbers up to 30


def test_plain_batch_normalisation_would_break_on_the_same_data() -> None:
    plain = nn.BatchNorm1d(12).double()
    for _ in range(10):
        plain(one_sided(TURN).flatten(1))
    x = one_sided(TURN)
    plain.eval()
    moved, expected = plain(act(TURN, x).flatten(1)), act(TURN, plain(x.flatten(1)).unflatten(1, (3, 4))).flatten(1)
    assert float((moved - expected).detach().abs().max()) > 0.1


@pytest.mark.parametrize("rho", REPRESENTATIONS, ids=lambda rho: rho.name)
def test_batch_normalisation_brings_lengths_to_one(rho: Representation) -> None:
    out = EquivariantBatchNorm(rho, 3).double()(one_sided(rho))
    # eps = 1e-5 against variances of at least 1.
    torch.testing.assert_close(out.square().mean(dim=(0, 2)), torch.ones(3).double(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("pixels", [(), (5, 5)])
def test_plain_copies_agree_in_eval_mode(pixels: tuple[int, ...]) -> None:
    for rho in REPRESENTATIONS:
        norm = EquivariantBatchNorm(rho, 3, images=bool(pixels)).double()
        norm(one_sided(rho, *pixels))
        norm.eval()
        x = one_sided(rho, *pixels)
        torch.testing.assert_close(norm.materialize()(x.flatten(1, 2)), norm(x).flatten(1, 2))
    layer = EquivariantLayerNorm(TURN, 3).double()
    x = one_sided(TURN, *pixels)
    torch.testing.assert_close(layer.materialize()(x.flatten(1, 2)), layer(x).flatten(1, 2))


def test_normalised_networks_are_checked_and_become_plain() -> None:
    net = EquivariantSequential(
        BasisLinear(TURN, TURN, 1, 3), EquivariantBatchNorm(TURN, 3), nn.ReLU(), EquivariantLayerNorm(TURN, 3)
    )
    net(torch.randn(16, 1, 4))
    net.eval()
    x = torch.randn(16, 1, 4)
    torch.testing.assert_close(to_dense(net)(x), net(x).flatten(1))
    with pytest.raises(SymcheckError, match="do not fit"):
        EquivariantSequential(BasisLinear(TURN, TURN, 1, 3), EquivariantBatchNorm(TURN, 4))


def test_lengths_that_are_not_invariant_are_refused() -> None:
    skewed = reps.from_matrices(groups.cyclic(2), [[[-1, 1], [0, 1]]])
    for make in (EquivariantBatchNorm, EquivariantLayerNorm):
        with pytest.raises(SymcheckError, match="orthogonal"):
            make(skewed, 3)
    with pytest.raises(SymcheckError, match="no plain torch counterpart"):
        EquivariantLayerNorm(REPRESENTATIONS[2], 3).materialize()
