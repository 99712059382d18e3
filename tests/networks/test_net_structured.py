"""Networks of dictionaries and tuples are judged on one flat vector, under their own module names."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from net_catalogue import GridNet, mirror_mlp
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.errors import OptionError, SpecError
from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry


class ByName(nn.Module):
    """Position and velocity by name."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mirror_mlp()

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.inner(torch.cat([obs["position"], obs["velocity"]], -1))


class ImageAndNumber(nn.Module):
    """An image and an invariant number."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = GridNet()
        self.gain = nn.Linear(1, 1)

    def forward(self, obs: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        policy, value = self.grid(obs[0])
        gain = torch.sigmoid(self.gain(obs[1]))
        return policy * gain, value * gain


SHAPES = {"position": (2,), "velocity": (2,)}


def by_name() -> Symmetry:
    entry = {"position": [-1, -1], "velocity": [-1, -1]}
    return Symmetry("mirror", catalog.cyclic(2), observation=[entry], action=[[1, 0]])


def test_an_example_of_a_dictionary_says_the_sizes_of_its_parts() -> None:
    net: Any = ByName()
    # A claim that names one part alone does not say how long the other is.
    half = Symmetry("half", catalog.cyclic(2), observation=[{"position": [-1, -1]}], action=[[1, 0]])
    with pytest.raises(SpecError, match=r"--env ID.*example_input"):
        run_net(net, half, options=NetOptions())
    assert run_net(net, by_name(), options=NetOptions()).verdict == "proved"
    net.example_input = {name: torch.zeros(1, *shape) for name, shape in SHAPES.items()}
    assert run_net(net, by_name(), options=NetOptions()).verdict == "proved"
    with torch.no_grad():
        net.inner[2].weight[3, 5] *= 1.01
    assert run_net(net, by_name(), options=NetOptions()).verdict == "failed"


def test_an_example_of_a_tuple_says_the_sizes_of_its_parts() -> None:
    net: Any = ImageAndNumber()
    net.example_input = (torch.zeros(1, 1, 21, 21), torch.zeros(1, 1))
    symmetry = Symmetry("turn", catalog.cyclic(4), observation=[("rot90", [1])], action=[[0, 2, 3, 4, 1]])
    assert run_net(net, symmetry, options=NetOptions(samples=200)).verdict in ("proved", "passed")


def test_a_dictionary_of_vectors_is_proved() -> None:
    assert run_net(ByName(), by_name(), options=NetOptions(input_shape=SHAPES)).verdict == "proved"


def test_a_fault_behind_a_dictionary_is_named_as_in_the_network() -> None:
    net = ByName()
    with torch.no_grad():
        net.inner[2].weight[3, 5] *= 1.001
    result = run_net(net, by_name(), options=NetOptions(input_shape=SHAPES))
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"inner.2"}
    assert [layer["name"] for layer in result.layers] == ["inner.0", "inner.2", "inner.4"]


def test_a_tuple_of_an_image_and_an_unmoved_number_is_proved() -> None:
    symmetry = Symmetry("turn", catalog.cyclic(4), observation=[("rot90", "identity")], action=[[0, 2, 3, 4, 1]])
    options = NetOptions(input_shape=((1, 21, 21), (1,)), samples=200)
    assert run_net(ImageAndNumber(), symmetry, options=options).verdict == "proved"


def test_a_leaf_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match=r"\['velocity'\]"):
        run_net(ByName(), by_name(), options=NetOptions(input_shape={"position": (2,)}))


def test_a_leaf_of_another_size_gives_both_sizes() -> None:
    with pytest.raises(SpecError, match=r"2 components.*has 3"):
        run_net(ByName(), by_name(), options=NetOptions(input_shape={"position": (3,), "velocity": (2,)}))


def test_an_empty_leaf_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="--input-shape"):
        NetOptions(input_shape={"position": (0,)})


class FakeTensorDict(dict):  # type: ignore[type-arg]
    """What is used of the package tensordict."""

    def __init__(self, leaves: dict[str, torch.Tensor], batch_size: list[int]) -> None:
        super().__init__(leaves)
        self.batch_size = batch_size

    def select(self, *keys: str) -> FakeTensorDict:
        return FakeTensorDict({key: self[key] for key in keys}, self.batch_size)


@pytest.fixture(params=["stand-in", "package"])
def tensor_dict(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    if request.param == "package":
        return pytest.importorskip("tensordict", reason="the package tensordict is not installed").TensorDict
    monkeypatch.setitem(sys.modules, "tensordict", SimpleNamespace(TensorDict=FakeTensorDict))
    return FakeTensorDict


class OfTensorDict(nn.Module):
    """Adds its results to what it was given, as modules of torchrl do."""

    def __init__(self, net: nn.Module, kind: type, fresh: bool) -> None:
        super().__init__()
        self.net, self.kind, self.fresh = net, kind, fresh

    def forward(self, given: Any) -> Any:
        logits, value = self.net(given["observation"])
        if self.fresh:
            return self.kind({"logits": logits, "value": value}, batch_size=given.batch_size)
        given["logits"], given["value"] = logits, value
        return given.select("observation", "logits", "value")


@pytest.mark.parametrize("fresh", [True, False])
def test_a_network_of_tensordicts_is_judged_by_what_it_adds(tensor_dict: type, fresh: bool) -> None:
    net = OfTensorDict(mirror_mlp(value=True), tensor_dict, fresh)
    claim = Symmetry("m", catalog.cyclic(2), observation=[{"observation": [-1] * 4}], action=[[1, 0]])
    options = NetOptions(input_shape={"observation": (4,)}, samples=200)
    # The package looks into the batch by itself, which ends the proof: samples judge then.
    expected = ("proved",) if tensor_dict is FakeTensorDict else ("proved", "passed")
    assert run_net(net, claim, options=options).verdict in expected
    with torch.no_grad():
        net.net.body[2].weight[3, 5] *= 1.001
    result = run_net(net, claim, options=options)
    assert {p.location for p in result.properties if p.verdict == "failed"} == {"net.body.2"}
