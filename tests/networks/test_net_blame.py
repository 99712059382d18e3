"""The weight that a report names is the one that was changed, or one of two that nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import symcheck as sc
from symcheck.engine.networks.blame.weight_orbits import TiedWeights
from symcheck.engine.networks.subject.values import SignedPermutation
from symcheck.nn import (
    BasisLinear,
    EquivariantSequential,
    MergeChannels,
    PointwiseNonlinearity,
    SplitChannels,
    to_dense,
)

MIRROR = sc.Symmetry("mirror", sc.groups.cyclic(2), observation=[[-1, 1, 1, -1]], action=[[1, 0]])
TURN = sc.Symmetry("turn", sc.groups.cyclic(4), observation=[["+2", "-1"]], action=[[1, 2, 3, 0]])


def network(symmetry: sc.Symmetry) -> nn.Module:
    hidden = sc.representations.regular(symmetry.group)
    seen, acted = symmetry.observation_representation, symmetry.action_representation
    torch.manual_seed(0)
    return to_dense(
        EquivariantSequential(
            SplitChannels(seen),
            BasisLinear(seen, hidden, 1, 8),
            PointwiseNonlinearity(hidden, "tanh"),
            BasisLinear(hidden, hidden, 8, 8),
            PointwiseNonlinearity(hidden, "tanh"),
            BasisLinear(hidden, acted, 8, 1),
            MergeChannels(),
        )
    )


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize(("symmetry", "named"), [(MIRROR, 2), (TURN, 1)])
def test_a_wrong_weight_is_named_with_its_only_partner_or_alone(symmetry: sc.Symmetry, named: int, layer: int) -> None:
    net = network(symmetry)
    weight = [module for module in net.modules() if isinstance(module, nn.Linear)][layer].weight
    row, column = weight.shape[0] - 1, weight.shape[1] - 1
    with torch.no_grad():
        weight[row, column] += 0.01
    failed = sc.verify_net(net, symmetry, samples=64)["layer_certificate"]
    assert failed.counterexample is not None
    where = failed.counterexample.where
    assert f" {row}, weight from input {column}" in where
    assert where.count("weight from input") == named


def test_an_orbit_whose_weights_agree_blames_none() -> None:
    turn = SignedPermutation(np.array([1, 2, 3, 0]), np.ones(4, dtype=np.int64))
    rows = np.concatenate([np.array([np.roll([1.0, 2.0, 3.0, 4.0], k) for k in range(4)]), np.zeros((4, 1))], axis=1)
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == []
    rows[2, 2] += 0.5
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == [(2, 2)]
    rows[1, 1] += 0.7  # two of four are off: nobody is outvoted
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == []
