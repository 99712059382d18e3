"""Layers of emlp's torch port are verified as any others: its own equivariance tests, asked from outside.

emlp's tests draw group elements and compare rho(g) f(x) with f(rho(g) x). Here the same layers are given to verify-net.
Their weights are projected by JAX in float32 on every call, so that the network is judged at that precision. Not a
dependency: `pip install emlp`.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.groups import catalog
from symcheck.groups.group import Group
from symcheck.intertwiners.build import intertwiner_basis
from symcheck.representations import constructors
from symcheck.symmetry.symmetry import Symmetry

layers = pytest.importorskip("emlp.nn.pytorch", reason="the package emlp is not installed", exc_type=ImportError)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CASES = [("Z", catalog.cyclic(5), 5), ("S", catalog.symmetric(4), 4)]


def layer(name: str, n: int) -> nn.Module:
    from emlp import groups
    from emlp.reps import V

    torch.manual_seed(0)
    vectors = V(getattr(groups, name)(n))
    return layers.Linear(vectors, vectors)


def natural(group: Group) -> Symmetry:
    images = [list(g.images) for g in group.generators]
    return Symmetry("permuted", group, observation=images, action=images)


@pytest.mark.parametrize(("name", "group", "n"), CASES)
def test_a_layer_of_its_is_equivariant_under_our_group_of_the_same_name(name: str, group: Group, n: int) -> None:
    result = run_net(layer(name, n), natural(group), options=NetOptions(samples=100))
    assert result.verdict == "passed", result.method_reason


@pytest.mark.parametrize(("name", "group", "n"), CASES)
def test_its_projected_weights_lie_in_the_span_of_our_basis(name: str, group: Group, n: int) -> None:
    given = layer(name, n)
    weight = given.proj_w(given.weight).detach().double().numpy()
    rho = constructors.permutation(group, [list(g.images) for g in group.generators])
    assert abs(intertwiner_basis(rho, rho).project(weight) - weight).max() < 1e-6  # float32


def test_a_layer_for_a_smaller_group_is_accused_of_the_larger_one() -> None:
    result = run_net(layer("Z", 4), natural(catalog.symmetric(4)), options=NetOptions(samples=100))
    assert result.verdict == "failed"
