"""Policies as functions of batches, and the parts of their residuals, on small networks with known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from symcheck import Symmetry
from symcheck.engine.policies.calling import Policy, open_policy
from symcheck.engine.policies.context import PolicyContext
from symcheck.engine.policies.options import PolicyOptions
from symcheck.errors import TargetError
from symcheck.groups import catalog

STATES = np.random.default_rng(0).normal(size=(50, 4))


class Normaliser(nn.Module):
    def __init__(self, mean: Any) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("var", torch.ones(len(mean), dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, var = self.get_buffer("mean"), self.get_buffer("var")
        return (x - mean) / (var + 1e-8).sqrt()


class Actor(nn.Module):
    """A normaliser, a layer and a bound; swapping the halves of the input swaps the two actions."""

    def __init__(self, mean: Any = (0.0, 0.0, 0.0, 0.0), off: float = 0.0, shift: float = 0.0) -> None:
        super().__init__()
        self.normaliser, self.layer, self.shift = Normaliser(list(mean)), nn.Linear(4, 2, bias=False), shift
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 4.0], [3.0, 4.0 + off, 1.0, 2.0]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = torch.tanh(0.1 * self.layer(self.normaliser(x))) + torch.tensor([self.shift, 0.0])
        return made


def context(net: nn.Module, observations: Any = STATES, **options: Any) -> PolicyContext:
    symmetry = Symmetry("halves", catalog.cyclic(2), observation=[[2, 3, 0, 1]], action=[[1, 0]])
    policy = open_policy(net, observations[:4], 2)
    return PolicyContext(policy, symmetry, observations, PolicyOptions(**options), ("left", "right"))


def test_an_equivariant_policy_has_no_residual_in_any_part() -> None:
    made = context(Actor())
    assert made.count == 50
    assert made.words == [(0,)]
    assert made.residuals[(0,)].max() < 1e-12
    assert {name: part and part["violates"] for name, part in made.parts.items()} == {
        "normaliser": False, "network": False, "post": False}  # fmt: skip
    assert made.one_sided_columns == []
    assert made.deviation_residuals is None
    spread = made.answer.action.std(axis=0)
    np.testing.assert_allclose(made.tolerances, 1e-5 * spread)
    assert context(Actor(), tolerance=0.25).tolerances.tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("net", "part"),
    [(Actor(mean=(0.5, 0.0, 0.0, 0.0)), "normaliser"), (Actor(off=0.5), "network"), (Actor(shift=0.25), "post")],
)
def test_a_residual_belongs_to_the_part_that_breaks_the_claim(net: nn.Module, part: str) -> None:
    made = context(net)
    for name, told in made.parts.items():
        assert told is not None
        assert told["violates"] is (name == part), name
        if name == part:
            assert told["max_residual"] >= told["mean_residual"] > 1e-3
            assert told["action"] in ("left", "right")
        else:
            assert told["max_residual"] < 1e-12
    signed = [table for table in made._split((0,)).values() if table is not None]
    np.testing.assert_allclose(np.sum(signed, axis=0), made._signed((0,)), atol=1e-12)
    if part == "post":
        post = made.parts["post"]
        assert post is not None
        assert post["max_residual"] == pytest.approx(0.25)
        assert made.residuals[(0,)].tolist() == [[pytest.approx(0.25)] * 2] * 50
    if part == "normaliser":
        columns = {entry["column"] if "column" in entry else entry.get("index") for entry in made.one_sided_columns}
        assert len(columns) >= 1


def test_a_constant_action_is_compared_with_its_size_and_a_gait_with_its_deviation() -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([torch.full_like(x[:, :1], -4.0), x[:, :1]], dim=1)

    made = context(Constant())
    np.testing.assert_allclose(made.tolerances, [4e-5, 1e-5 * STATES[:, 0].std()])
    gaps = np.abs(STATES[:, 0].mean() + 4.0)
    np.testing.assert_allclose(made.gait[1], gaps / STATES[:, 0].std())
    assert made.gait[0] == np.inf
    assert made.parts["normaliser"] is made.parts["post"] is None


def test_deviations_are_compared_without_signs() -> None:
    class Gaussian(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.actor, self.factor = Actor(), factor

        def forward(self, x: torch.Tensor) -> Any:
            mean = self.actor(x)
            return torch.distributions.Normal(mean, torch.tensor([1.0, self.factor]).expand_as(mean))

    assert context(Gaussian(1.0)).deviation_residuals == pytest.approx([0.0, 0.0])
    assert context(Gaussian(1.5)).deviation_residuals == pytest.approx([0.5, 0.5])


def test_a_policy_is_called_as_it_expects_and_its_modules_are_watched() -> None:
    class Method(nn.Module):
        def act_inference(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2] * 2

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("not here")

    policy = open_policy(Method(), STATES[:3], 2)
    np.testing.assert_array_equal(policy.run(STATES).action, STATES[:, :2] * 2)
    assert (policy.dtype, policy.last_layer, policy.normalisers) == (torch.float64, None, [])
    net = Actor()
    opened = open_policy(net, STATES[:3], 2)
    assert opened.net is not net
    assert not opened.net.training
    layer: Any = opened.last_layer
    assert opened.normalisers == [opened.net.normaliser]
    answer = opened.run(STATES)
    np.testing.assert_allclose(answer.given[layer], STATES, atol=1e-7)
    np.testing.assert_allclose(answer.seen[layer], answer.given[layer] @ layer.weight.detach().numpy().T)
    replaced = opened.run(STATES, {layer: np.zeros((50, 2))})
    np.testing.assert_array_equal(replaced.action, np.zeros((50, 2)))
    assert not layer._forward_hooks
    assert Policy(net, torch.float64, 3).last_layer is None


def test_the_action_is_the_first_output_of_its_width_and_the_second_its_deviation() -> None:
    class Returning(nn.Module):
        def __init__(self, *widths: int) -> None:
            super().__init__()
            self.widths = widths

        def forward(self, x: torch.Tensor) -> Any:
            return tuple(torch.full((len(x), width), float(k)) for k, width in enumerate(self.widths))

    def run(*widths: int) -> tuple[float, float | None]:
        answer = Policy(Returning(*widths), torch.float64, 2).run(STATES)
        return float(answer.action[0, 0]), None if answer.deviation is None else float(answer.deviation[0, 0])

    assert run(2) == (0.0, None)
    assert run(5, 2) == (1.0, None)
    assert run(2, 3, 2) == (0.0, 2.0)
    assert run(2, 2, 2) == (0.0, None)
    with pytest.raises(
        TargetError, match=r"must return 2 numbers, one for each action component, but returned \[\(50, 3\)\]"
    ):
        run(3)

    class Raising(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            raise ZeroDivisionError("nothing")

    with pytest.raises(TargetError, match="the policy raised ZeroDivisionError"):
        open_policy(Raising(), STATES[:2], 2)

    class Single(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            if x.dtype == torch.float64:
                raise TypeError("float32 only")
            return x[:, :2]

    assert open_policy(Single(), STATES[:2], 2).dtype == torch.float32

    class ByName(nn.Module):
        def forward(self, x: Any) -> Any:
            return x["a"] + x["b"]

    named = {"a": STATES[:, :2], "b": STATES[:, 2:]}
    by_name = open_policy(ByName(), named, 2)
    assert not by_name.grouped
    np.testing.assert_array_equal(by_name.run(named).action, STATES[:, :2] + STATES[:, 2:])
