"""Networks of escnn are verified as any others: its own equivariance tests, asked from outside.

escnn documents that every module commutes with its group (`check_equivariance`, on the elements of the group and to a
tolerance). Here the same modules are given to verify-net. Not a dependency: `pip install escnn`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.results import RunResult
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

escnn = pytest.importorskip("escnn", reason="the package escnn is not installed", exc_type=ImportError)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TURN = Symmetry("turn", catalog.cyclic(4), observation=["rot90"], action=[[1, 2, 3, 0]])
MIRROR = Symmetry("mirror", catalog.cyclic(2), observation=["flip_lr"], action=[[1, 0]])


class Network(nn.Module):
    """Two convolutions, a pool over positions and one more; outputs move as the regular representation."""

    def __init__(self, space: Any, *, stride: int = 1, kernel: int = 5) -> None:
        super().__init__()
        from escnn import nn as layers

        self.given = layers.FieldType(space, [space.trivial_repr])
        hidden = layers.FieldType(space, 8 * [space.regular_repr])
        made = layers.FieldType(space, [space.regular_repr])
        self.first = layers.R2Conv(self.given, hidden, kernel_size=kernel, stride=stride)
        self.second = layers.R2Conv(hidden, hidden, kernel_size=3)
        self.relu, self.pool = layers.ReLU(hidden), layers.PointwiseAdaptiveMaxPool(hidden, 1)
        self.last = layers.R2Conv(hidden, made, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        from escnn.nn import GeometricTensor

        hidden = self.relu(self.second(self.relu(self.first(GeometricTensor(x, self.given)))))
        return self.last(self.pool(hidden)).tensor.flatten(1)


def verified(net: nn.Module, symmetry: Symmetry, size: int = 15) -> RunResult:
    return run_net(net.eval(), symmetry, options=NetOptions(samples=200, input_shape=(1, size, size)))


def spaces() -> dict[str, Any]:
    from escnn import gspaces

    return {"turn": gspaces.rot2dOnR2(4), "mirror": gspaces.flip2dOnR2()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("symmetry", [TURN, MIRROR], ids=lambda symmetry: symmetry.name)
def test_its_networks_hold_their_symmetry_up_to_the_rounding_of_its_bases(
    symmetry: Symmetry, kernel: int, seed: int
) -> None:
    torch.manual_seed(seed)
    result = verified(Network(spaces()[symmetry.name], kernel=kernel), symmetry)
    assert result.verdict in ("proved", "passed"), result.method_reason


def test_larger_filters_round_beyond_the_published_level_and_the_report_says_so_and_what_helps() -> None:
    torch.manual_seed(0)
    result = verified(Network(spaces()["turn"], kernel=9), TURN)
    assert result.verdict == "failed"
    causes = [cause for item in result.properties for cause in item.causes if cause.code == "SYM134"]
    assert causes
    assert all("summed from a basis in float32" in str(cause) and cause.fields["ulps"] > 4 for cause in causes)
    torch.manual_seed(0)
    net = Network(spaces()["turn"], kernel=9)
    options = NetOptions(samples=200, input_shape=(1, 15, 15), mode="train")
    assert run_net(net, TURN, options=options).verdict == "passed"


@pytest.mark.parametrize("name", ["turn", "mirror"])
def test_what_its_documentation_checks_element_by_element_is_what_we_verify(name: str) -> None:
    from escnn.nn import GeometricTensor

    torch.manual_seed(0)
    space = spaces()[name]
    net = Network(space).eval()
    x = GeometricTensor(torch.randn(3, 1, 15, 15), net.given)
    made = net.first(x)
    for g in space.testing_elements:
        moved = net.first(x.transform(g))
        torch.testing.assert_close(moved.tensor, made.transform(g).tensor, atol=1e-5, rtol=1e-4)
    assert verified(net, TURN if name == "turn" else MIRROR).verdict in ("proved", "passed")


def test_a_stride_that_does_not_fit_is_found_although_the_layers_are_its_own() -> None:
    torch.manual_seed(0)
    assert verified(Network(spaces()["turn"], stride=2), TURN, size=15).verdict in ("proved", "passed")
    assert verified(Network(spaces()["turn"], stride=2), TURN, size=16).verdict == "failed"


def test_one_filter_changed_behind_its_back_is_found() -> None:
    torch.manual_seed(0)
    net = Network(spaces()["turn"]).eval()
    with torch.no_grad():
        net.second.filter[0, 0, 0, 0] += 1e-2
    result = verified(net, TURN)
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"second"}
