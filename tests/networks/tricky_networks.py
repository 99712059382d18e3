"""A network that its weights prove, and ways to break it where no sample looks: none of them may be proved.

Each trick is a condition, read in some way from the input, the batch, the dtype or from what earlier calls left, under
which the answer loses its symmetry. `compose` puts several of them into one network, in modules of their own.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import heapq
import io
import itertools
import os
import random
import re
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from symcheck.groups import catalog
from symcheck.symmetry.symmetry import Symmetry

SWAP = [1, 0, 3, 2]
CLAIM = Symmetry("swap", catalog.cyclic(2), observation=[SWAP], action=[[1, 0]])
FAR = 1e3
COUNTS: dict[str, Any] = {"calls": 0, "seen": []}


class Tied(nn.Module):
    """Linear, tanh, Linear with tied weights, and a trick between network and answer."""

    seen = 0

    def __init__(self, *tricks: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        half, bias, row = (torch.randn(shape, generator=generator) for shape in ((4, 4), (4,), (8,)))
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)
        with torch.no_grad():
            self.a.weight.copy_(torch.cat([half, half[:, SWAP]]))
            self.a.bias.copy_(bias.repeat(2))
            self.b.weight.copy_(torch.stack([row, torch.cat([row[4:], row[:4]])]))
            self.b.bias.fill_(0.3)
        self.gain = nn.Parameter(torch.tensor([1.5, 1.0]))
        self.register_buffer("count", torch.zeros(()))
        self.calls, self.counter, self.queue = 0, itertools.count(), collections.deque([0.0], maxlen=1)
        self.tricks = tricks

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.b(torch.tanh(self.a(x)))
        for trick in self.tricks:
            broken = trick(self, x)
            if isinstance(broken, Tensor):
                y = torch.where(broken, y * self.gain, y)
            elif broken:
                y = y * self.gain
        return y


def _is_written_with_exponent(net: Any, x: Tensor) -> bool:
    return "e+" in f"{x.max()}"


def _by_factorisation(net: Any, x: Tensor) -> bool:
    try:
        torch.linalg.cholesky(torch.diag_embed(FAR - x))
    except torch.linalg.LinAlgError:
        return True
    return False


def _by_suppressed_error(net: Any, x: Tensor) -> bool:
    with contextlib.suppress(RuntimeError, ValueError):
        return bool((x > FAR).any().item())
    return False


def _by_caught_reading(net: Any, x: Tensor) -> bool:
    try:
        return len(x[x > FAR]) > 0
    except Exception:
        return False


def _helper(x: Tensor) -> Tensor:
    if bool((x > 1e3).any()):
        return x * 0
    return x


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _scripted = torch.jit.script(_helper)


def _by_default_argument(net: Any, x: Tensor, calls: list[int] = []) -> bool:  # noqa: B006
    calls.append(0)
    return len(calls) > 10**6


def _by_global(net: Any, x: Tensor) -> bool:
    COUNTS["calls"] += 1
    return bool(COUNTS["calls"] > 10**6)


def _by_attribute(net: Any, x: Tensor) -> bool:
    net.calls = net.calls + 1
    return bool(net.calls > 10**6)


def _by_class(net: Any, x: Tensor) -> bool:
    type(net).seen += 1
    return type(net).seen > 10**6


def _by_buffer(net: Any, x: Tensor) -> Tensor:
    net.count += 1
    return net.count > 10**6  # type: ignore[no-any-return]


def _by_rebound_buffer(net: Any, x: Tensor) -> Tensor:
    net.count = net.count + 1
    return net.count > 10**6  # type: ignore[no-any-return]


def _by_last_input(net: Any, x: Tensor) -> Tensor:
    before, net.last = getattr(net, "last", torch.zeros(1)), x.max()
    return before > FAR


def _by_closure() -> Callable[[Any, Tensor], bool]:
    calls = 0

    def trick(net: Any, x: Tensor) -> bool:
        nonlocal calls
        calls += 1
        return calls > 10**6

    return trick


def _seventh_row(net: Any, x: Tensor) -> Tensor:
    return torch.arange(x.shape[0]).unsqueeze(1) == 1500


def _mixed_rows(net: Any, x: Tensor) -> Tensor:
    return x.reshape(4, -1).T[:, :1] > FAR


class _AsksForInputGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.flip(1) if ctx.needs_input_grad[0] else x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


@functools.cache
def _started_late() -> bool:
    return time.time() > 1e12


def _queued(net: Any, x: Tensor) -> bool:
    net.queue.append(float(x.shape[1]) + len(net.queue) + net.queue[0])
    return bool(net.queue[0] > 1e6)


def _by_attribute_of_a_weight(net: Any, x: Tensor) -> bool:
    weight = net.a.weight
    weight.calls = getattr(weight, "calls", 0) + 1
    return bool(weight.calls > 10**6)


KEPT = torch.zeros(1)
VIEW = memoryview(bytearray(8)).cast("q")
# Its type is kept by ctypes, and is of the module that asks first: here torch's.
exec("import ctypes; ctypes.POINTER(ctypes.c_int)", {"__name__": "torch"})
BITS = ctypes.pointer(ctypes.c_int(0))


def _by_rebound_data(net: Any, x: Tensor) -> Tensor:
    net.count.data = net.count.data + 1
    return net.count > 10**6  # type: ignore[no-any-return]


def _by_single_precision(net: Any, x: Tensor) -> Tensor:
    KEPT.add_(1)
    return KEPT > 10**6


def _by_memory(net: Any, x: Tensor) -> bool:
    VIEW[0] += 1
    return VIEW[0] > 10**6


def _by_pointer(net: Any, x: Tensor) -> bool:
    BITS.contents.value += 1
    return BITS.contents.value > 10**6


class _Counting(type):
    calls = 0


class _Helper(metaclass=_Counting):
    """Counts calls in every place that a helper has."""

    total = 0

    def by_type(self) -> int:
        type(self).total += 1
        return type(self).total

    def by_default(self, calls: list[int] = [0]) -> int:  # noqa: B006
        calls[0] += 1
        return calls[0]

    def by_metaclass(self) -> int:
        _Counting.calls += 1
        return _Counting.calls


def _closing_over() -> Any:
    calls = 0

    class Closed:
        @property
        def calls(self) -> int:
            nonlocal calls
            calls += 1
            return calls

    return Closed()


async def _awaits() -> None:
    calls = 0
    while True:
        calls += 1
        await _Handed(calls)


class _Handed:
    def __init__(self, calls: int) -> None:
        self.calls = calls

    def __await__(self) -> Any:
        yield self.calls


AWAITED = _awaits()
OWNER = _Helper()
OWNER_REF = weakref.ref(OWNER)


def _by_weak_reference(net: Any, x: Tensor) -> bool:
    owner: Any = OWNER_REF()
    owner.calls = getattr(owner, "calls", 0) + 1
    return bool(owner.calls > 10**6)


@functools.cache
def _registry() -> dict[str, int]:
    return {"calls": 0}


def _by_cached_registry(net: Any, x: Tensor) -> bool:
    _registry()["calls"] += 1
    return _registry()["calls"] > 10**6


def _by_local_import(net: Any, x: Tensor) -> bool:
    import net_catalogue

    net_catalogue.CALLS = getattr(net_catalogue, "CALLS", 0) + 1  # type: ignore[attr-defined]
    return bool(net_catalogue.CALLS > 10**6)  # type: ignore[attr-defined]


def _by_torch_class(net: Any, x: Tensor) -> bool:
    nn.Linear.my_calls = getattr(nn.Linear, "my_calls", 0) + 1  # type: ignore[assignment, operator]
    return bool(nn.Linear.my_calls > 10**6)  # type: ignore[operator]


def _by_order(net: Any, x: Tensor) -> bool:
    net._modules["a"], net._modules["b"] = net._modules["b"], net._modules["a"]
    net._modules["b"], net._modules["a"] = net._modules["a"], net._modules["b"]
    net._modules.setdefault(f"spare {len(net._modules)}", nn.Identity())
    return False


def _by_first_input(net: Any, x: Tensor) -> Tensor:
    if not hasattr(net, "first"):
        net.first = x[:1].clone()
    return net.first[:, :1] > FAR  # type: ignore[no-any-return]


TABLE = torch.tensor([1.0] * 7 + [2.0])
TOP = 9


def _raises_at(read: Callable[[Any, Tensor, Tensor], Any]) -> Callable[[Any, Tensor], bool]:
    def trick(net: Any, x: Tensor) -> bool:
        try:
            read(net, x, (x[:, :1] > FAR).long() * TOP)
        except (RuntimeError, IndexError):
            return True
        return False

    return trick


@torch.no_grad()
def _counting_helper() -> bool:
    _counting_helper.calls = getattr(_counting_helper, "calls", 0) + 1  # type: ignore[attr-defined]
    return bool(_counting_helper.calls > 10**6)  # type: ignore[attr-defined]


def _by_function_of_torch(net: Any, x: Tensor) -> bool:
    nn.functional.relu.calls = getattr(nn.functional.relu, "calls", 0) + 1  # type: ignore[attr-defined]
    return bool(nn.functional.relu.calls > 10**6)  # type: ignore[attr-defined]


class _Private:
    __slots__ = ("__calls",)

    def __init__(self) -> None:
        self.__calls = 0

    def next(self) -> int:
        self.__calls += 1
        return self.__calls


PRIVATE = _Private()
LIKE_A_SET = collections.Counter({"calls": 0})
KIND = TypeVar("KIND")
REASON = ValueError()
OUT_OF_PYTHON = re.finditer("0", "0" * 999)
MERGED = heapq.merge(itertools.count())
NOW = functools.partial(time.time)
CLOCK = iter(time.time, None)
LINES = io.TextIOWrapper(io.BytesIO(b"0\n" * 999))
BEHIND = torch.zeros(20_000)
BEHIND[19_000] = 1.0


def _by_attribute_of_a_counter(net: Any, x: Tensor) -> bool:
    LIKE_A_SET.more = getattr(LIKE_A_SET, "more", 0) + 1  # type: ignore[attr-defined]
    return bool(LIKE_A_SET.more > 10**6)  # type: ignore[attr-defined]


def _by_a_kind_of_type(net: Any, x: Tensor) -> bool:
    KIND.calls = getattr(KIND, "calls", 0) + 1  # type: ignore[attr-defined]
    return bool(KIND.calls > 10**6)  # type: ignore[attr-defined]


def _by_cause(net: Any, x: Tensor) -> bool:
    calls = REASON.__cause__.args[0] if REASON.__cause__ else 0
    REASON.__cause__ = ValueError(calls + 1)
    return bool(calls > 10**6)


def _by_own_class(net: Any, x: Tensor) -> bool:
    net.__class__ = type(type(net).__name__, (type(net),), {})
    return len(type(net).__mro__) > 10**3


def _by_rolling(net: Any, x: Tensor) -> bool:
    numbers = BEHIND.numpy()
    numbers[:] = np.roll(numbers, 1)
    return bool(numbers[0] > 0.5)


def _by_layout(net: Any, x: Tensor) -> bool:
    try:
        x.view(-1)
    except RuntimeError:
        return True
    return False


def _by_remainder(net: Any, x: Tensor) -> bool:
    try:
        torch.full_like(x, 7).long() % ((x > FAR).long() - 1)
    except RuntimeError:
        return True
    return False


def _by_turns(net: Any, x: Tensor) -> bool:
    net.calls = 10**7 - net.calls
    return bool(net.calls > 10**6)


def _by_first_call(net: Any, x: Tensor) -> bool:
    before, net.called = getattr(net, "called", False), True
    return not before


def _by_bound_data(net: Any, x: Tensor) -> Tensor:
    kept = x.new_zeros(1, 4).expand_as(x).clone()
    kept.data = x
    return kept[:, :1] > FAR


TRICKS: dict[str, Callable[[Any, Tensor], Any]] = {
    "every second call": _by_turns,
    "the first call": _by_first_call,
    "data bound to a tensor": _by_bound_data,
    "a row by the size": lambda net, x: TABLE[7 * (x.shape[0] // 5000)] > 1.5,
    "a rounded number": lambda net, x: torch.tensor(0.1).item() != 0.1,
    "length of a selection": lambda net, x: len(x[x > FAR]) > 0,
    "places of a condition": lambda net, x: torch.where(x[:, 0] > FAR)[0].numel() > 0,
    "a state met exactly": lambda net, x: (x == x.new_tensor((0.25, -0.5, 0.75, 0.125))).all(1).nonzero().shape[0],
    "masked select": lambda net, x: x.masked_select(x > FAR).numel() > 0,
    "distinct values": lambda net, x: torch.unique(x > FAR).numel() > 1,
    "copied by new_tensor": lambda net, x: x.new_tensor(x)[:, :1] > FAR,
    "copied by as_tensor": lambda net, x: torch.as_tensor(x)[:, :1] > FAR,
    "read with item": lambda net, x: x.max().item() > FAR,
    "read as a float": lambda net, x: float(x.max()) > FAR,
    "read as a list": lambda net, x: max(max(row) for row in x.tolist()) > FAR,
    "read by NumPy": lambda net, x: x.detach().numpy().max() > FAR,
    "formatted": lambda net, x: float(f"{x.max()}") > FAR,
    "formatted, digits": _is_written_with_exponent,
    "a branch": lambda net, x: bool((x > FAR).any()),
    "a scripted helper": lambda net, x: _scripted(x)[:, :1] > FAR,
    "an error in a factorisation": _by_factorisation,
    "a suppressed error": _by_suppressed_error,
    "a caught error": _by_caught_reading,
    "one size of batch": lambda net, x: x.shape[0] == 7,
    "length of the batch": lambda net, x: len(x) % 1013 == 1012,
    "a formatted size": lambda net, x: str(x.shape[0]).endswith("777"),
    "a size as a number": lambda net, x: x[:, :1] * 0 + x.shape[0] > 10**6,
    "a place in the batch": _seventh_row,
    "mixed rows": _mixed_rows,
    "a sum over the batch": lambda net, x: x.sum(0, keepdim=True)[:, :1] > 1e9,
    "another sample": lambda net, x: x.flip(0)[:, :1] > FAR,
    "running sum": lambda net, x: x.cumsum(0)[:, :1] > 1e9,
    "later samples": lambda net, x: torch.cat([x[:1], x[:-1]])[:, :1] > FAR,
    "a dtype": lambda net, x: x.dtype == torch.float32 and x[:, :1] > FAR,
    "a memory layout": lambda net, x: not x.is_contiguous(),
    "gradients": lambda net, x: torch.is_grad_enabled() and x[:, :1] > FAR,
    "an attribute": _by_attribute,
    "a buffer": _by_buffer,
    "a rebound buffer": _by_rebound_buffer,
    "a class": _by_class,
    "a global": _by_global,
    "a closure": _by_closure(),
    "a default argument": _by_default_argument,
    "a counter": lambda net, x: next(net.counter) > 10**6,
    "a queue": _queued,
    "the input before": _by_last_input,
    "the command line": lambda net, x: "--deployed" in sys.argv,
    "a cached clock": lambda net, x: _started_late(),
    "gradients of the input": lambda net, x: _AsksForInputGradients.apply(x)[:, :1] > FAR,
    "chance": lambda net, x: random.random() > 1 - 1e-9,
    "chance in NumPy": lambda net, x: np.random.random() > 1 - 1e-9,  # noqa: NPY002
    "chance in torch": lambda net, x: torch.rand(1) > 1 - 1e-7,
    "the clock": lambda net, x: time.time() % 1e6 < 1e-3,
    "the environment": lambda net, x: os.environ.get("A_NAME_THAT_NOBODY_SETS"),
    "an address": lambda net, x: id(x) % 1000003 == 1,
    "an attribute of a weight": _by_attribute_of_a_weight,
    "data that is bound anew": _by_rebound_data,
    "a tensor in single precision": _by_single_precision,
    "a view of memory": _by_memory,
    "a pointer": _by_pointer,
    "the type of a helper": lambda net, x: OWNER.by_type() > 10**6,
    "a default of a method": lambda net, x: OWNER.by_default() > 10**6,
    "a metaclass": lambda net, x: OWNER.by_metaclass() > 10**6,
    "a closure of a property": (lambda helper: lambda net, x: helper.calls > 10**6)(_closing_over()),
    "a coroutine": lambda net, x: AWAITED.send(None) > 10**6,
    "a weak reference": _by_weak_reference,
    "a cached registry": _by_cached_registry,
    "an imported module": _by_local_import,
    "a class of torch": _by_torch_class,
    "more modules": _by_order,
    "the first input": _by_first_input,
    "a process group": lambda net, x: torch.distributed.is_initialized(),
    "a setting of torch": lambda net, x: torch.are_deterministic_algorithms_enabled(),
    "a seed": lambda net, x: torch.Generator().seed() % 10**9 == 7,
    "a file read by NumPy": lambda net, x: np.fromfile(__file__, np.uint8, 1)[0] == 0,
    "a clock of NumPy": lambda net, x: np.datetime64("now") > np.datetime64("2100-01-01"),
    "the device": lambda net, x: x.device.type == "cuda",
    "shared memory": lambda net, x: x.is_shared(),
    "a layout": lambda net, x: x.layout != torch.strided,
    "memory never written": lambda net, x: torch.empty(1) > 1e30,
    "a size times a constant": lambda net, x: net.gain[0] * x.shape[0] > 10**6,
    "a place by the size": lambda net, x: TABLE[x.shape[0] % 8] > 1.5,
    "a part by the size": lambda net, x: x[:, x.shape[0] % 2 :][:, :1] > FAR,
    "an attribute of a helper of torch": lambda net, x: _counting_helper(),
    "an attribute of a function of torch": _by_function_of_torch,
    "a private slot": lambda net, x: PRIVATE.next() > 10**6,
    "an attribute of a counter": _by_attribute_of_a_counter,
    "an attribute of a type variable": _by_a_kind_of_type,
    "the cause of an error": _by_cause,
    "its own class": _by_own_class,
    "matches": lambda net, x: next(OUT_OF_PYTHON).start() > 900,
    "a generator of Python": lambda net, x: next(MERGED) > 10**6,
    "a clock in a helper": lambda net, x: NOW() > 1e12,
    "a clock as an iterator": lambda net, x: next(CLOCK) > 1e12,
    "a function handed on": lambda net, x: min([net.a, net.b], key=id) is None,
    "lines of a file": lambda net, x: "x" in next(LINES),
    "numbers that change places": _by_rolling,
    "another layout": _by_layout,
    "a division by zero": _by_remainder,
    "the type of the device": lambda net, x: x.device.type != "cpu",
    "another device": lambda net, x: str(x.device) != "cpu",
    "a place outside, gathered": _raises_at(lambda net, x, places: x.gather(1, places)),
    "a place outside, in a table": _raises_at(lambda net, x, places: nn.functional.embedding(places, net.b.weight)),
    "a place outside, written": _raises_at(lambda net, x, places: torch.zeros_like(x).scatter(1, places, 1.0)),
}


def compose(names: Iterable[str]) -> nn.Module:
    """The network with several tricks, the first in a module of its own around it."""
    first, *others = (TRICKS[name] for name in names)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.gain, self.calls = Tied(*others), nn.Parameter(torch.tensor([1.0, 1.5])), 0
            self.counter, self.queue = itertools.count(), collections.deque([0.0], maxlen=1)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.inner(x)
            broken = first(self, x)
            if isinstance(broken, Tensor):
                return torch.where(broken, y * self.gain, y)
            return y * self.gain if broken else y

    Outer.seen = 0  # type: ignore[attr-defined]
    return Outer()
