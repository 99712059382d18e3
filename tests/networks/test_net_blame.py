"""The weight that a report names is the one that was changed, or one of two that nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from net_catalogue import GridNet, turn
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


@pytest.mark.parametrize(
    ("net", "side", "place"),
    [
        (GridNet(), 21, "conv1.1.42"),
        (GridNet(), 21, "conv2.17.8"),
        (GridNet(kernel=3, stride=1, padding=1), 7, "conv1.5.2"),
        (GridNet(kernel=3, stride=1, padding=1), 7, "conv2.30.98"),
    ],
)
def test_a_wrong_weight_of_a_filter_is_named_among_its_turned_copies(net: GridNet, side: int, place: str) -> None:
    layer, row, column = place.split(".")
    weight = net.get_submodule(layer).weight
    with torch.no_grad():
        weight.view(len(weight), -1)[int(row), int(column)] += 0.01 * weight.abs().max()
    failed = sc.verify_net(net, turn(), samples=64, input_shape=(1, side, side))["layer_certificate"]
    assert failed.counterexample is not None
    assert failed.counterexample.where == f"{layer}: unit {row}, weight from input {column}"


def test_an_orbit_whose_weights_agree_blames_none() -> None:
    turn = SignedPermutation(np.array([1, 2, 3, 0]), np.ones(4, dtype=np.int64))
    rows = np.concatenate([np.array([np.roll([1.0, 2.0, 3.0, 4.0], k) for k in range(4)]), np.zeros((4, 1))], axis=1)
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == []
    rows[2, 2] += 0.5
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == [(2, 2)]
    rows[1, 1] += 0.7  # two of four are off: nobody is outvoted
    assert TiedWeights(rows, [turn], [turn]).blame(0, 0) == []
