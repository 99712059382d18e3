"""Verdicts are about the network as given, not about what its classes call a copy or a conversion of it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from net_catalogue import mirror, mirror_mlp
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net

FEW = NetOptions(samples=50)


class Shifted(nn.Module):
    """Equivariant without its offset; `off` adds the offset."""

    def __init__(self, off: float = 1.0) -> None:
        super().__init__()
        self.inner = mirror_mlp()
        self.off = off

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        return y + torch.tensor([self.off, 0.0], dtype=y.dtype)


class CopiesWithoutOffset(Shifted):
    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        made = Shifted(0.0)
        made.load_state_dict(self.state_dict())
        return made


class KeepsNoOffset(Shifted):
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "off": 0.0}


class ReducedToTheMirror(Shifted):
    def __reduce_ex__(self, protocol: Any) -> Any:
        return Shifted, (0.0,)


class ConvertedWithoutOffset(Shifted):
    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> nn.Module:
        self.off = 0.0
        return super()._apply(fn, recurse)


KINDS = [CopiesWithoutOffset, KeepsNoOffset, ReducedToTheMirror, ConvertedWithoutOffset]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inside", [False, True])
def test_a_copy_that_leaves_out_the_fault_does_not_hide_it(kind: type[Shifted], inside: bool) -> None:
    net = nn.Sequential(kind()) if inside else kind()
    assert run_net(net, mirror(), options=FEW).verdict == "failed"


@pytest.mark.parametrize("kind", KINDS)
def test_classes_that_define_copies_are_proved_and_left_as_they_were(kind: type[Shifted]) -> None:
    hooks = {name: item for name, item in vars(kind).items() if name.startswith("__")}
    assert run_net(kind(0.0), mirror(), options=FEW).verdict == "proved"
    assert {name: item for name, item in vars(kind).items() if name.startswith("__")} == hooks


class WithALock(Shifted):
    """A lock cannot be copied; the class says how it is."""

    def __init__(self, off: float = 0.0) -> None:
        super().__init__(off)
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        made = type(self)(self.off)
        made.inner = copy.deepcopy(self.inner, memo)
        return made


@pytest.mark.parametrize(("off", "verdicts"), [(0.0, ("proved", "passed")), (1.0, ("failed",))])
def test_what_cannot_be_copied_as_it_is_is_copied_as_its_class_says(off: float, verdicts: tuple[str, ...]) -> None:
    assert run_net(WithALock(off), mirror(), options=FEW).verdict in verdicts


def test_a_role_in_words_and_a_length_are_taken_as_on_the_command_line() -> None:
    options = NetOptions(outputs="action, invariant", input_shape=4)
    assert (options.outputs, options.input_shape) == (("action", "invariant"), (4,))
    assert NetOptions(input_shape="1,21,21").input_shape == (1, 21, 21)
