"""A proof from one run speaks of every input, batch and call, or is not made: tricks end it, and are named."""

from __future__ import annotations

import functools
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.utils._sympy.functions import FloorDiv, Mod
from tricky_networks import CLAIM, SWAP, TRICKS, Tied, compose

from symcheck.engine.networks.capture.gate import capture_every_call
from symcheck.engine.networks.capture.sizes import holds_for_all_sizes
from symcheck.engine.networks.graph.interpreter import follow
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.torchscript import followable
from symcheck.engine.networks.subject.values import Opaque

FEW = NetOptions(samples=32)
COPIES = ("copied by new_tensor", "copied by as_tensor")
"""Copies of the input, which stand in the graph and are left to the rules."""
NAMED = {
    "length of a selection": "SYM180",
    "a suppressed error": "SYM180",
    "formatted": "SYM180",
    "an error in a factorisation": "SYM184",
    "one size of batch": "SYM181",
    "a formatted size": "SYM181",
    "another sample": "SYM182",
    "a place in the batch": "SYM181",
    "an attribute": "SYM183",
    "a buffer": "SYM183",
    "a default argument": "SYM183",
    "the clock": "SYM185",
    "data that is bound anew": "SYM183",
    "a cached registry": "SYM183",
    "the first input": "SYM183",
    "a setting of torch": "SYM185",
    "the device": "SYM185",
    "a place by the size": "SYM181",
    "a place outside, gathered": "SYM184",
    "a dtype": "SYM188",
    "every second call": "SYM183",
    "the first call": "SYM183",
    "a row by the size": "SYM181",
    "a rounded number": "SYM188",
}


def why(net: nn.Module, deployed: nn.Module | None = None) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        captured = capture_every_call(net.double(), deployed, (4,), 0, alone=False)
        if isinstance(captured, Opaque):
            return captured.reason.code
        try:
            follow(captured, (4,))
        except NoCertificateError as error:  # a check of arguments that the graph does not show to pass
            return error.reason.code
    return None


def test_the_network_without_a_trick_is_proved() -> None:
    assert run_net(Tied(), CLAIM, options=FEW).verdict == "proved"
    assert why(Tied(lambda net, x: x[:, :1] > 1e3)) is None


@pytest.mark.parametrize("name", [name for name in TRICKS if name not in COPIES])
def test_a_trick_ends_the_proof_and_its_kind_is_named(name: str) -> None:
    code = why(Tied(TRICKS[name]), Tied(TRICKS[name]).float())
    assert code is not None
    assert code == NAMED.get(name, code)


@pytest.mark.parametrize("name", [*COPIES, "length of a selection", "a counter"])
def test_a_network_with_a_trick_is_not_proved(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_net(Tied(TRICKS[name]), CLAIM, options=FEW)
    # what counts calls may be another network later
    assert result.verdict == ("undecided" if name == "a counter" else "passed")
    assert result.method_reason is not None
    assert result.method_reason.code == "method_not_followed"


@pytest.mark.parametrize("seed", range(6))
def test_composed_tricks_end_the_proof_and_the_reason_is_named(seed: int) -> None:
    rng = random.Random(seed)
    # a dtype shows only beside the network as deployed
    names = rng.sample(sorted(TRICKS.keys() - {*COPIES, "a dtype", "a rounded number"}), 3)
    reason = why(compose(names))
    assert str(reason).startswith("SYM1"), names


class Harmless(Tied):
    """What networks do without harm: caches, kept answers, constants read out, sizes used to reshape."""

    cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = torch.full((2,), 0.5)
        scale = float(self.a.bias.numel()) * self.count.item() + 1.0
        y = self.b(torch.tanh(self.a(x.reshape(len(x), -1)))).view(x.shape[0], 2) * scale
        self.answer = y * self.cache
        return self.answer


def test_what_is_kept_and_not_read_again_ends_no_proof() -> None:
    assert why(Harmless()) is None
    assert run_net(Harmless(), CLAIM, options=FEW).verdict == "proved"


class Helper:
    """Keeps a constant in its class."""

    scale = 0.5

    @property
    def double(self) -> float:
        return 2 * self.scale


@functools.cache
def _tables() -> dict[str, Tensor]:
    return {"rows": torch.ones(3, 2)}


class Ordinary(Tied):
    """What looks like the tricks and is none: helpers, caches, devices passed on, places that lie inside."""

    def __init__(self) -> None:
        super().__init__()
        self.helper = Helper()

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x) * self.helper.double
        best = y.gather(1, y.argmax(1, keepdim=True))
        row = nn.functional.embedding((x > 0).any(1).long(), _tables()["rows"].to(y.dtype))
        return torch.empty(len(x), 2, dtype=x.dtype, device=x.device).copy_(y + best * row)


def test_helpers_caches_and_places_inside_end_no_proof() -> None:
    captured = capture_every_call(Ordinary().double(), Ordinary(), (4,), 0, alone=False)
    assert not isinstance(captured, Opaque)


class CachedStatically(Tied):
    """A method that reads the environment once for all objects, before anybody watches."""

    @staticmethod
    @functools.cache
    def is_late() -> bool:
        return "NEVER_SET" in os.environ

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * self.gain if self.is_late() else y


def _cached_in_a_closure() -> Callable[[], bool]:
    return functools.cache(lambda: "NEVER_SET" in os.environ)


class CachedInAnAttribute(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.is_late = _cached_in_a_closure()

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * self.gain if self.is_late() else y


class CachedRows(Tied):
    @classmethod
    @functools.cache
    def rows(cls) -> int:
        return 2

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.rows()


@pytest.mark.parametrize(
    ("kind", "code"), [(CachedStatically, "SYM185"), (CachedInAnAttribute, "SYM185"), (CachedRows, None)]
)
def test_what_a_cached_method_reads_is_seen(kind: type[Tied], code: str | None) -> None:
    net = kind()
    net(torch.zeros(1, 4))
    cached = vars(kind).get("is_late") or vars(kind).get("rows")
    assert why(net) == code
    assert (vars(kind).get("is_late") or vars(kind).get("rows")) is cached


def test_no_rounded_quotient_of_the_batch_size_is_a_constant() -> None:
    n = sympy.Symbol("n", positive=True, integer=True)
    far = FloorDiv(Mod(n, 5003), 5000)
    assert far.subs(n, 1009) == far.subs(n, 2**40) == 0 != far.subs(n, 5001)
    assert not holds_for_all_sizes(sympy.Eq(far, 0, evaluate=False))
    assert holds_for_all_sizes(sympy.Eq(n * (n + 1), n**2 + n, evaluate=False))


@pytest.mark.parametrize(
    ("left", "right", "holds"),
    [
        (lambda n: FloorDiv(3 * n - 1, n, evaluate=False), 2, True),  # three chunks of a batch behind two others
        (lambda n: FloorDiv(3 * n, n, evaluate=False), 3, True),
        (lambda n: Mod(3 * n - 1, n, evaluate=False) + 1, lambda n: n, True),
        (lambda n: FloorDiv(4 * n + 3, 4, evaluate=False), lambda n: n, True),
        (lambda n: FloorDiv(FloorDiv(6 * n + 5, 3, evaluate=False) - 1, n, evaluate=False), 2, True),
        (lambda n: FloorDiv(n - 3, n, evaluate=False), 0, False),  # n = 2
        (lambda n: FloorDiv(n, 3, evaluate=False), 0, False),
        (lambda n: FloorDiv(n + 100, n, evaluate=False), 1, False),  # n <= 100
        (lambda n: FloorDiv(n * n, n + 1000, evaluate=False), lambda n: n - 1000, False),
        (lambda n: Mod(n, 2), 1, False),
    ],
)
def test_a_rounded_quotient_is_settled_if_its_rest_is_one_for_all_sizes(left: Any, right: Any, holds: bool) -> None:
    n = sympy.Symbol("n", positive=True, integer=True)
    wanted = right(n) if callable(right) else sympy.Integer(right)
    guard = sympy.Eq(left(n), wanted, evaluate=False)
    assert holds_for_all_sizes(guard) is holds
    agree = [int(left(n).subs(n, size)) == int(wanted.subs(n, size)) for size in range(2, 2_000)]
    assert all(agree) is holds


class ScriptedCounter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls: int = 0

    def forward(self, y: Tensor) -> Tensor:
        self.calls += 1
        return y * y[:, :1] if self.calls > 1000000 else y


class ScriptedList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = [0]

    def forward(self, y: Tensor) -> Tensor:
        self.calls[0] += 1
        return y * y[:, :1] if self.calls[0] > 1000000 else y


class ScriptedDtype(nn.Module):
    def forward(self, y: Tensor) -> Tensor:
        return y * y[:, :1] if y.dtype == torch.float16 else y


class ScriptedPlain(nn.Module):
    def forward(self, y: Tensor) -> Tensor:
        return y.to(dtype=y.dtype) * 2.0


@pytest.mark.parametrize(
    ("script", "code"),
    [(ScriptedCounter, "SYM183"), (ScriptedList, "SYM183"), (ScriptedDtype, "SYM185"), (ScriptedPlain, None)],
)
def test_what_a_scripted_part_keeps_or_asks_is_seen(script: type[nn.Module], code: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of annotations, and of scripts as such
        net = nn.Sequential(Tied(), torch.jit.script(script()))
    assert why(net) == code


class ScriptedSize(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.stack([x[:, 0], x[:, 1]], 1)
        return y * y[:, :1] if x.shape[0] > 5000 else torch.where(y > 0, y, 0.5 * y)


class ScriptedChoice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.stack([x[:, 0], x[:, 1]], 1)
        return torch.where(y > 0, y, 0.5 * y)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("script", "proved"), [(ScriptedChoice, True), (ScriptedSize, False)])
def test_a_scripted_network_is_converted_for_every_size_of_batch(script: type[nn.Module], proved: bool) -> None:
    net = followable(torch.jit.script(script().double()), (4,))
    assert not isinstance(net, torch.jit.ScriptModule)
    assert (why(net) is None) is proved


class Delicate(Tied):
    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and x.abs().max() > 100:
            raise ValueError("far outside")
        return super().forward(x)


def test_a_network_that_raises_far_outside_is_refused_and_not_the_run() -> None:
    assert why(Delicate()) == "SYM186"


class OneDtype(Tied):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * self.gain if x.dtype == torch.float32 else y


def test_a_branch_on_the_dtype_ends_the_proof_of_the_copy_that_does_not_take_it() -> None:
    assert why(OneDtype(), OneDtype().float()) == "SYM188"
    assert why(OneDtype(), None) is None


def test_the_tied_network_moves_as_claimed() -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    net = Tied()
    assert torch.allclose(net(x).flip(1), net(x[:, SWAP]), atol=1e-6)
