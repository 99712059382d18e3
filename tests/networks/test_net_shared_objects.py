"""Memory that tensors share or not by their layout, and parts of a network that are known by which objects they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from tricky_networks import Tied

from symcheck.engine.networks.capture.gate import capture_every_call
from symcheck.engine.networks.subject.precision import in_float64
from symcheck.engine.networks.subject.values import Opaque

TABLE: dict[nn.Module, float] = {}


def why(net: nn.Module) -> str | None:
    captured = capture_every_call(in_float64(net), None, (4,), 0, alone=False, given=net)
    return captured.reason.code if isinstance(captured, Opaque) else None


class Writes(nn.Module):
    """Writes into what a function makes of a hidden layer, and returns the hidden layer or the result."""

    def __init__(self, function: Callable[[Tensor], Tensor], *, returns: str) -> None:
        super().__init__()
        self.linear, self.function, self.returns = nn.Linear(4, 4), function, returns

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.linear(x))
        made = self.function(hidden)
        made.mul_(2.0)
        return hidden if self.returns == "hidden" else made.reshape(-1, 4)


VIEW_OR_COPY: dict[str, Callable[[Tensor], Tensor]] = {
    "reshape": lambda hidden: hidden.reshape(-1),
    "flatten": lambda hidden: hidden.flatten(),
    "contiguous": lambda hidden: hidden.contiguous(),
    "float": lambda hidden: hidden.float(),
    "a view of reshape": lambda hidden: hidden.reshape(-1, 2, 2)[:, 0],
}


@pytest.mark.parametrize("name", VIEW_OR_COPY)
def test_a_write_into_what_may_be_a_copy_ends_the_proof_where_the_other_is_read(name: str) -> None:
    assert why(Writes(VIEW_OR_COPY[name], returns="hidden")) == "SYM176"


@pytest.mark.parametrize("name", list(VIEW_OR_COPY)[:4])
def test_a_write_into_what_may_be_a_copy_is_harmless_where_only_it_is_read(name: str) -> None:
    assert why(Writes(VIEW_OR_COPY[name], returns="made")) is None


def test_a_write_into_a_view_is_harmless() -> None:
    assert why(Writes(lambda hidden: hidden.view(-1), returns="hidden")) is None


def test_what_dropout_gives_in_eval_mode_is_its_argument() -> None:
    net = Writes(lambda hidden: nn.functional.dropout(hidden, 0.5, training=False), returns="hidden")
    captured = capture_every_call(in_float64(net), None, (4,), 0, alone=False, given=net)
    assert not isinstance(captured, Opaque)
    x = torch.randn(2, 4, dtype=torch.float64)
    expected = 2.0 * torch.tanh(net.double().linear(x))
    torch.testing.assert_close(captured.module(captured.state, x)[0], expected)


class Hooked(Tied):
    def __init__(self, hook: Callable[[nn.Module, nn.Module], float | Tensor]) -> None:
        super().__init__()
        layer = self.b
        layer.register_forward_hook(lambda module, inputs, output: output * hook(module, layer))


class Tabled(Tied):
    def __init__(self) -> None:
        super().__init__()
        TABLE[self.b] = 1.5

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * TABLE.get(self.b, 1.0)


def _is_the_same(module: nn.Module, layer: nn.Module) -> float:
    return 1.5 if module is layer else 1.0


@pytest.mark.parametrize("make", [Tabled, lambda: Hooked(_is_the_same)])
def test_parts_known_by_which_objects_they_are_end_the_proof(make: Callable[[], nn.Module]) -> None:
    assert why(make()) == "SYM175"


def _uses_weights(module: Any, layer: Any) -> Tensor:
    return layer.weight.sum()  # type: ignore[no-any-return]


def test_a_closure_over_a_layer_that_compares_nothing_ends_no_proof() -> None:
    assert why(Hooked(_uses_weights)) is None
