"""Code that tells a capture, the way of a call or an earlier call from a plain call is not proved; harmless code is."""

from __future__ import annotations

import builtins
import contextvars
import functools
import genericpath
import itertools
import logging
import math
import random
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._tensor_str import PRINT_OPTS

from symcheck.engine.networks.capture.code_paths import CodePath, path_taken
from symcheck.engine.networks.capture.gate import capture_every_call
from symcheck.engine.networks.capture.own_code import is_own_code
from symcheck.engine.networks.subject.values import Opaque

Ask = Callable[[nn.Module, Tensor, Tensor], Any]
LARGE = 50
LOG = logging.getLogger(__name__)


class Guarded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0] * (1.0 if x.shape[0] == LARGE else 0.0)


class AsksForGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor) -> Tensor:
        return s * (1.0 if ctx.needs_input_grad[0] else 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor) -> Tensor:
        return 2 * s

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return 2 * gradients[0]


def counting() -> Iterator[int]:
    n = 0
    while True:
        n += 1
        yield n


class Slotted:
    __slots__ = ("n",)

    def __reduce__(self) -> Any:  # says nothing of what it counts
        return Slotted, ()


NAMES = {"linear", "other"}
Uncounted = type("Uncounted", (), {"n": 0, "__module__": "torch"})
COUNTER, RANDOM, LOCAL, SLOTTED = counting(), random.Random(0), threading.local(), Slotted()
ITERATOR, VARIABLE = itertools.count(), contextvars.ContextVar("calls", default=0)
OTHER = types.ModuleType("other")
OTHER.__file__ = __file__
LOCAL.n = SLOTTED.n = OTHER.n = 0  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=4)
def remembered(key: object) -> object:
    return key


def counted_by_attributes(*, of: Any) -> float:
    of.n += 1
    return float(of.n > 1000)


def counted_by_builtins() -> float:
    builtins.calls = getattr(builtins, "calls", 0) + 1  # type: ignore[attr-defined]
    return float(builtins.calls > 1000)  # type: ignore[attr-defined]


def counted_by_variable() -> float:
    VARIABLE.set(VARIABLE.get() + 1)
    return float(VARIABLE.get() > 1000)


def counted_by_cache() -> float:
    remembered(object())
    return float(remembered.cache_info().misses > 1000)


def _names() -> set[str]:
    return {"linear", "other"}


def _first(name: str, *names: str) -> str:
    return name


def _format() -> str:
    return "%s"


TOLD: dict[str, Ask] = {
    "the type of a tensor": lambda net, x, s: float(type(x) is Tensor),
    "the type of a size, in a branch": lambda net, x, s: (
        1.0 if type(x.shape[0]) is int and x.shape[0] == LARGE else 0.0
    ),
    "what a tensor can be asked": lambda net, x, s: float(not hasattr(x, "fake_mode")),
    "whether modes are active": lambda net, x, s: float(torch._C._len_torch_dispatch_stack() == 0),
    "a setting of torch": lambda net, x, s: float(torch.backends.mkldnn.enabled),
    "a setting of Python": lambda net, x, s: float(logging.root.manager.disable == 0),
    "the stack": lambda net, x, s: float(len(traceback.extract_stack()) < 30),
    "whether gradients flow": lambda net, x, s: 1.0 if AsksForGradients.apply(s).requires_grad else 0.0,
    "whether a function needs gradients": lambda net, x, s: AsksForGradients.apply(s),  # type: ignore[no-untyped-call]
    "a size within vmap": lambda net, x, s: torch.func.vmap(lambda r: r[0] * (1.0 if len(x) == LARGE else 0.0))(x),
    "a size within functional_call": lambda net, x, s: torch.func.functional_call(Guarded(), {}, (x,)),
    "a size within a derivative": lambda net, x, s: torch.func.jvp(Guarded(), (x,), (x,))[0],
    "a Python generator": lambda net, x, s: float(next(COUNTER) > 1000),
    "an iterator": lambda net, x, s: float(next(ITERATOR) > 1000),
    "a generator of random numbers": lambda net, x, s: float(RANDOM.random() > 2),
    "data of a thread": lambda net, x, s: counted_by_attributes(of=LOCAL),
    "an object that hides what it holds": lambda net, x, s: counted_by_attributes(of=SLOTTED),
    "another module": lambda net, x, s: counted_by_attributes(of=OTHER),
    "a name among the builtins": lambda net, x, s: counted_by_builtins(),
    "a context variable": lambda net, x, s: counted_by_variable(),
    "the statistics of a cache": lambda net, x, s: counted_by_cache(),
    "a setting in an object of torch": lambda net, x, s: float(torch._tensor_str.PRINT_OPTS.precision == 7),
    "a setting in a module": lambda net, x, s: float(len(warnings.filters) > 1000),
    "a setting read by name": lambda net, x, s: float(torch._tensor_str.PRINT_OPTS.precision == 7),
    "a setting imported by name": lambda net, x, s: float(PRINT_OPTS.precision == 7),
    "a count in a class of torch": lambda net, x, s: counted_by_attributes(of=Uncounted),
    "the text of an object": lambda net, x, s: float(f"{object()}".endswith("zz>")),
    "a text from a function": lambda net, x, s: float((_format() % COUNTER).endswith("zz")),
    "the text of a function": lambda net, x, s: float("zz" in str(counting)),
    "the text of what a function gives": lambda net, x, s: float(f"{iter(())}" == "zz"),
    "texts as keys": lambda net, x, s: float(min([Slotted(), COUNTER], key=repr) is None),
    "the first of a set": lambda net, x, s: float(next(iter(NAMES)) == "zz"),
    "a loop over a set": lambda net, x, s: float(
        sum(float(name > "b") * 2**n for n, name in enumerate({"a", *NAMES})) > 9
    ),
    "the first of a set from a function": lambda net, x, s: float(next(iter(_names())) == "zz"),
    "a set as arguments": lambda net, x, s: float(_first(*NAMES) == "zz"),
    "the first of equal length": lambda net, x, s: float(min(NAMES, key=len) == "zz"),
    "a set under a condition": lambda net, x, s: float(next(iter(NAMES if x.ndim == 2 else ())) == "zz"),
    "an address in a text by names": lambda net, x, s: float("{f}".format_map({"f": _first}).endswith("zz")),
    "what a set gives up": lambda net, x, s: float({"a", "b", "c"}.pop() == "zz"),
    "the hash of a text": lambda net, x, s: float("a".__hash__() == 7),
    "a file": lambda net, x, s: float(genericpath.exists("/zz")),
    "a limit of the interpreter": lambda net, x, s: float(sys.getrecursionlimit() > 3000),
}

HARMLESS: dict[str, Ask] = {
    "nothing": lambda net, x, s: 0.0,
    "checks of types": lambda net, x, s: 1.0 if isinstance(x, Tensor) and isinstance(net, nn.Module) else 0.0,
    "sizes to reshape": lambda net, x, s: x.reshape(x.shape[0], 2, -1).flatten(1)[:, 0],
    "sizes to make constants": lambda net, x, s: torch.ones(len(x), dtype=x.dtype),
    "branches on settings of its own": lambda net, x, s: s if net.training else 2 * s,
    "a function with its own gradient": lambda net, x, s: Doubled.apply(s),  # type: ignore[no-untyped-call]
    "vmap": lambda net, x, s: torch.func.vmap(lambda r: r.sum() ** 2)(x),
    "functional_call": lambda net, x, s: torch.func.functional_call(
        net.linear, dict(net.linear.named_parameters()), (x,)
    )[:, 0],
    "texts of numbers and names": lambda net, x, s: s if f"{x.shape[1]}" + str(len(NAMES)) == "42" else 2 * s,
    "a joined shape": lambda net, x, s: s if "x".join(map(str, x.shape[1:])) == "4" else 2 * s,
    "a member of a set": lambda net, x, s: (
        s if "linear" in NAMES and type(net.linear).__name__ in {"Linear"} else 2 * s
    ),
    "a set in order": lambda net, x, s: sum(float(len(name)) for name in sorted(NAMES)) * s,
    "a set of numbers": lambda net, x, s: sum(float(n) for n in {1, 2} | {3}) * s,
    "constants of libraries": lambda net, x, s: s * math.pi * np.pi * (1.0 if sys.maxsize > 0 else torch.inf),
    "what is logged": lambda net, x, s: LOG.debug("%s", net) or s,
    "its own attributes": lambda net, x, s: s if "_modules" in net.__dict__ else 2 * s,
    "sums, sorted names and maps": lambda net, x, s: sum(map(float, sorted({"a": 1, "b": 2}.values()))) * s,
}


class Asks(nn.Module):
    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self.linear, self.ask = nn.Linear(4, 1), ask

    def forward(self, x: Tensor) -> Tensor:
        s = self.linear(x)[:, 0]
        return s + self.ask(self, x, s)


def refused(ask: Ask) -> bool:
    return isinstance(capture_every_call(Asks(ask).double().eval(), None, (4,), 0, alone=False), Opaque)


@pytest.mark.parametrize("name", TOLD)
def test_what_tells_one_call_from_another_ends_the_proof(name: str) -> None:
    assert refused(TOLD[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_what_every_call_does_alike_ends_no_proof(name: str) -> None:
    assert not refused(HARMLESS[name])


def test_the_line_after_which_the_code_takes_another_way_is_named() -> None:
    refusal = capture_every_call(Asks(TOLD["the type of a size, in a branch"]).double(), None, (4,), 0, alone=False)
    assert isinstance(refusal, Opaque)
    assert refusal.reason.code == "SYM187"
    assert refusal.source.startswith("test_net_plain_calls.py:")


@pytest.mark.parametrize(
    ("file", "names", "own"),
    [
        ("<stdin>", {"__name__": "__main__"}, True),
        ("<string>", {"__name__": "net", "__file__": __file__}, True),
        ("<string>", {"__name__": "torch", "__file__": torch.__file__}, False),
        ("<eval_with_key>.0", {}, False),
    ],
)
def test_code_without_a_file_belongs_to_its_module(file: str, names: dict[str, Any], own: bool) -> None:
    assert is_own_code(file, names) is own


def test_what_an_import_runs_is_no_code_of_the_network(tmp_path, monkeypatch):
    # torch imports parts of itself during the capture alone, which runs finders of other packages
    (tmp_path / "imported_late.py").write_text("def f():\n    return 1\n\n\nvalue = f()\n")
    monkeypatch.syspath_prepend(tmp_path)
    imported, called = CodePath(), CodePath()
    with path_taken(imported):
        import imported_late
    with path_taken(called):
        imported_late.f()
    assert imported.steps == []
    assert len(called.steps) >= 2
