"""Following the action of the generators through one run of a network.

The network runs once, in float64, on one input. Every torch function it calls passes through `Tracer`, which keeps for
each tensor what is known of it: a constant, or a `Value`. Ordinary Python (loops, shape arithmetic, dictionaries) needs
no support. What would make the run depend on the input in ways that are not followed (reading a number out of a tensor,
NumPy, random numbers, tensors of unknown origin) is noticed and ends the proof there; the network is then tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.array_types import Floats
from symcheck.engine.networks.compositions import COMPOSITIONS
from symcheck.engine.networks.precision import DROPOUTS, RANDOM, Float64Mode, is_cast, run_in_float64, to_float64
from symcheck.engine.networks.values import LayerRecord, Opaque, SignedPermutation, Value
from symcheck.statements.statement import Statement, state

_METADATA_NAMES = (
    "__format__ __hash__ __len__ __repr__ _version device dim dtype element_size get_device grad grad_fn "
    "is_complex is_contiguous is_cuda is_floating_point is_leaf is_meta is_mkldnn is_mps is_nested is_quantized "
    "is_signed is_sparse layout names ndim ndimension nelement numel requires_grad requires_grad_ retain_grad "
    "shape size storage_offset stride sym_size "
)
METADATA = frozenset(_METADATA_NAMES.split())
_SAME_SIGNATURE_NAMES = (
    "abs adaptive_avg_pool2d adaptive_max_pool2d add addmm amax avg_pool2d cat chunk clone contiguous conv1d "
    "conv2d detach div dropout elu expand flatten gelu group_norm hardtanh layer_norm leaky_relu linear "
    "log_softmax matmul max_pool2d mean mm mul neg permute relu reshape select sigmoid silu softmax softplus "
    "split squeeze stack sub sum sym_size t tanh transpose unsqueeze view unflatten index_select slice pad prelu relu_ "
    "baddbmm bmm einsum masked_fill scaled_dot_product_attention tril triu where exp log sqrt rsqrt square pow sin cos "
    "clamp clamp_min clamp_max minimum maximum min max sort topk median logsumexp var std prod flip roll repeat rsub "
    "amin view_as broadcast_tensors pixel_shuffle pixel_unshuffle channel_shuffle conv_transpose1d conv_transpose2d "
    "nan_to_num glu bilinear cosine_similarity gru lstm rnn_tanh rnn_relu gru_cell lstm_cell "
)
SAME_SIGNATURE = frozenset(_SAME_SIGNATURE_NAMES.split())
"""Operators of exported graphs that take their arguments as the torch function of the same name does."""
_HIDDEN = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_OUTERMOST = str(Path(__file__).with_name("proof.py"))


PARAMETRISED = ".parametrizations."
"""What torch puts between the name of a layer and that of the module that makes its weight: faults are the layer's."""


class NotUnderstoodError(Exception):
    """A rule cannot follow this call; carries the reason and, where something failed, its record."""

    def __init__(self, reason: Statement, record: LayerRecord | None = None) -> None:
        self.reason = reason
        self.record = record
        super().__init__(reason.code)


@dataclass
class Call:
    """One torch function call, as rules see it."""

    name: str
    result: Any
    tracer: Tracer
    source: str
    module: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result; of the first, where there are several."""
        first = self.result if isinstance(self.result, torch.Tensor) else self.result[0]
        return tuple(first.shape)

    def value(self, tensor: Any) -> Value | None:
        """What is known of a tensor; None for constants and plain numbers."""
        return self.tracer.value(tensor) if isinstance(tensor, torch.Tensor) else None

    def constant(self, tensor: Any) -> Floats:
        """A constant as a float64 array.

        Raises:
            NotUnderstoodError: it depends on the input.
        """
        if self.value(tensor) is not None:
            raise NotUnderstoodError(state("SYM155", operation=self.name, depends="weights"))
        return as_array(tensor)

    def owner(self, *parameters: Any) -> str:
        """The layer's name: the module that holds the parameter, or that runs, else the parameter, else the line."""
        names = [self.tracer.owners[id(p)] for p in parameters if id(p) in self.tracer.owners]
        # A lone layer is named by its own, empty name.
        if any(names) or (names and self.tracer.is_leaf and not self.module):
            return next((name for name in names if name), "")
        own = next((self.tracer.own[id(p)] for p in parameters if id(p) in self.tracer.own), "")
        return self.module or own or f"{self.name} at {self.source}"

    def record(self, record: LayerRecord) -> LayerRecord:
        """Add a layer's record to the certificate."""
        record.source = record.source or self.source
        self.tracer.records.append(record)
        return record


Rule = Callable[..., Any]
_RuleT = TypeVar("_RuleT", bound=Rule)
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[_RuleT], _RuleT]:
    """Register how an action passes through torch functions of these names: `rule(call, *args, **kwargs) -> Value`."""

    def register(function: _RuleT) -> _RuleT:
        for name in names:
            RULES[name] = function
        return function

    return register


@dataclass
class Logged:
    """The result of one call: what is known of it, and its numbers."""

    value: Value
    numbers: Floats
    trusted: bool


@dataclass(frozen=True, eq=False)
class _Known:
    """A tensor, what is known of it (None: a constant), and how often it had been changed in place by then."""

    tensor: torch.Tensor
    value: Value | None
    version: int


class Tracer(Float64Mode):
    """Keeps what is known of every tensor while the network runs.

    Args:
        net: the float64 copy; its parameters, buffers and tensor attributes are the constants.
        generators: how many generators act.
        names: from a module's name in `net` to the one that records should carry.
    """

    def __init__(self, net: nn.Module, generators: int, names: Callable[[str], str] = str) -> None:
        super().__init__()
        self.generators = generators
        self.records: list[LayerRecord] = []
        self.escaped: Opaque | None = None
        self.given: Mapping[int, Sequence[SignedPermutation]] = {}
        self.log: dict[int, Logged] = {}
        self.owners: dict[int, str] = {}
        self.stack: list[str] = []
        self._known: dict[int, _Known] = {}
        self._calls = 0
        for name, module in net.named_modules():
            for tensor in tree_flatten({k: v for k, v in vars(module).items() if k != "_modules"})[0]:
                if isinstance(tensor, torch.Tensor):
                    self.owners.setdefault(id(tensor), names(name.partition(PARAMETRISED)[0]))
                    self.learn(tensor, None)
        parameters = {name for name, _ in net.named_parameters(recurse=False)}
        # one layer alone: its own name, which is empty, names it; other modules without children hold several
        self.is_leaf = next(net.children(), None) is None and parameters <= {"weight", "bias"}
        self.own = {} if self.is_leaf else _own_tensors(net, names)

    @property
    def module(self) -> str:
        """The module that runs now; "" where the network's own forward does."""
        return self.stack[-1] if self.stack else ""

    def learn(self, tensor: torch.Tensor, value: Value | None) -> None:
        """Say what is known of a tensor; None: a constant."""
        self._known[id(tensor)] = _Known(tensor, value, tensor._version)

    def value(self, tensor: torch.Tensor) -> Value | None:
        """What is known of a tensor; None: a constant.

        Compiled code and a few methods change tensors where nothing is seen but that torch counts the change.
        """
        known = self._known.get(id(tensor))
        if known is None:
            return Opaque(state("SYM156"), self.module)
        # torch counts changes in place: a tensor changed behind our back is not what was learnt.
        if known.version != tensor._version and not isinstance(known.value, Opaque):
            return Opaque(state("SYM157"), self.module)
        return known.value

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch function and follow the action through it."""
        kwargs = kwargs or {}
        name = _name(func)
        if name in METADATA:
            return func(*args, **kwargs)
        # Converting first: rules see what the function sees.
        args, kwargs = self._convert(args), self._convert(kwargs)
        composed = composed_of(self, name, args, kwargs)
        if composed is not None:
            return composed
        inputs = [item for item in tree_flatten((args, kwargs))[0] if isinstance(item, torch.Tensor)]
        versions = [tensor._version for tensor in inputs]
        values = [self.value(tensor) for tensor in inputs]
        # The identity in float64, known as its argument already.
        if is_cast(func, args, kwargs):
            return args[0]
        result = run_in_float64(func, args, kwargs)
        self._calls += 1
        # Versions tell which arguments the function wrote into.
        changed = [t for t, version in zip(inputs, versions, strict=True) if t._version != version]
        for tensor, value in zip(inputs, values, strict=True):
            self.learn(tensor, value)  # as of before the call, for the rule, which looks at it after
        known = self._follow(name, args, kwargs, values, result)
        self._learn_results(result, known)
        self._pass_owner_on(inputs, values, result)
        self._forget_aliases(changed, result, name)
        return result

    def _convert(self, tree: Any) -> Any:
        """Arguments in float64, known as what they were before."""
        if isinstance(tree, torch.Tensor):
            double = to_float64(tree)
            if double is not tree:
                self.learn(double, self.value(tree))
            return double
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return tree
        if isinstance(tree, list | tuple):
            return type(tree)(self._convert(item) for item in tree)
        if isinstance(tree, dict):
            return {key: self._convert(item) for key, item in tree.items()}
        return to_float64(tree)

    def _follow(self, name: str, args: Any, kwargs: Any, values: list[Value | None], result: Any) -> Any:
        source = caller()
        module = self.module
        if name in RANDOM or (name in DROPOUTS and _is_training(args, kwargs)):
            return Opaque(state("SYM158", operation=name), module, source)
        # Constants make constants.
        if all(value is None for value in values):
            return None
        opaque = next((value for value in values if isinstance(value, Opaque)), None)
        tensors = [item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor)]
        # Numbers that leave torch (`item`, comparisons in Python) may steer what follows.
        if not tensors and self.escaped is None and (result is not None or name.endswith("=")):
            self.escaped = opaque or Opaque(state("SYM156", operation=name), module, source)
        if opaque is not None:
            return opaque
        call = Call(name, result, self, source, module)
        try:
            if name not in RULES:
                raise NotUnderstoodError(state("SYM154", operation=name))
            value = RULES[name](call, *args, **kwargs)
            if len(tensors) > 1 and not isinstance(value, list):
                further = Opaque(state("SYM159", operation=name), module, source)
                return [value] + [further] * (len(tensors) - 1)
            return value
        except NotUnderstoodError as error:
            return Opaque(error.reason, module, source, record=error.record)
        # A signature that the rule does not know.
        except TypeError as error:
            return Opaque(state("SYM154", operation=name, error=str(error)), module, source)

    def _learn_results(self, result: Any, known: Any) -> None:
        tensors = [item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor)]
        values = known if isinstance(known, list) else [known] * len(tensors)
        for k, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
            self.learn(tensor, value)
            if value is not None and not isinstance(value, Opaque) and k == 0:
                # What comes behind a rounded layer agrees only up to that rounding.
                trusted = all(record.level == "exact" for record in self.records)
                self.log[self._calls] = Logged(value, as_array(tensor).reshape(-1), trusted)

    def _pass_owner_on(self, inputs: list[torch.Tensor], values: list[Value | None], result: Any) -> None:
        """What is computed from a layer's parameters alone is that layer's weight too."""
        if isinstance(result, torch.Tensor) and inputs and all(value is None for value in values):
            owner = next((self.owners[id(tensor)] for tensor in inputs if self.owners.get(id(tensor))), "")
            own = next((self.own[id(tensor)] for tensor in inputs if id(tensor) in self.own), "")
            if owner:
                self.owners.setdefault(id(result), owner)
            elif own:
                self.own.setdefault(id(result), own)
                if id(result) not in self._known:
                    self.learn(result, None)  # kept alive, as its identity names it

    def _forget_aliases(self, changed: list[torch.Tensor], result: Any, name: str) -> None:
        for tensor in changed:
            # All tensors with this memory changed with it.
            storage = tensor.untyped_storage().data_ptr()
            for known in list(self._known.values()):
                other, value = known.tensor, known.value
                if other is not result and other.untyped_storage().data_ptr() == storage:
                    changed_in_place = Opaque(state("SYM157", operation=name), self.module)
                    self.learn(other, value if isinstance(value, Opaque) else changed_in_place)


def _own_tensors(net: nn.Module, names: Callable[[str], str]) -> dict[int, str]:
    """What the network itself holds beside its layers: the attribute by which each tensor is called."""
    own: dict[int, str] = {}
    # Modules of the network have names; the root's own tensors are meant here.
    for name, module in net.named_modules():
        if names(name):
            continue
        held = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_buffers(recurse=False)),
            **vars(module),
        }
        own.update({id(tensor): key for key, tensor in held.items() if isinstance(tensor, torch.Tensor)})
    return own


class Recorder(Float64Mode):
    """Runs the network again and keeps the numbers of the same calls, to hold the rules against what happened."""

    def __init__(self, wanted: set[int]) -> None:
        super().__init__()
        self.numbers: dict[int, Floats] = {}
        self._wanted = wanted
        self._calls = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch function; count it as `Tracer` does."""
        kwargs = kwargs or {}
        name = _name(func)
        if name in METADATA:
            return func(*args, **kwargs)
        composed = composed_of(self, name, tree_map(to_float64, args), tree_map(to_float64, kwargs))
        if composed is not None:
            return composed
        result = run_in_float64(func, args, kwargs)
        if is_cast(func, args, kwargs):
            return result
        self._calls += 1
        if self._calls in self._wanted:
            first = next(item for item in tree_flatten(result)[0] if isinstance(item, torch.Tensor))
            self.numbers[self._calls] = as_array(first).reshape(-1)
        return result


def composed_of(mode: Float64Mode, name: str, args: Any, kwargs: Any) -> Any:
    """The result by simpler functions, each seen by `mode` itself; None where there is no such way."""
    if name not in COMPOSITIONS:
        return None
    with mode:
        return COMPOSITIONS[name](*args, **kwargs)


@contextmanager
def module_names(net: nn.Module, stack: list[str], names: Callable[[str], str] = str) -> Iterator[None]:
    """While active, `stack` holds the names of the modules whose forward is running, innermost last."""

    def entering(name: str) -> Callable[..., None]:
        return lambda module, inputs: stack.append(names(name))

    def leaving(module: nn.Module, inputs: Any, output: Any) -> None:
        stack.pop()

    handles = []
    for name, module in net.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        handles.append(module.register_forward_pre_hook(entering(name), prepend=True))
        handles.append(module.register_forward_hook(leaving))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def as_array(tensor: Any) -> Floats:
    """A tensor or number as a float64 array, a copy."""
    if isinstance(tensor, torch.Tensor):
        return np.array(tensor.detach().cpu().double().numpy())
    return np.array(tensor, dtype=np.float64)


def caller() -> str:
    """File and line of the innermost frame of the network's own code; "torch" where all of it is torch's."""
    frame = sys._getframe(1)
    # Up to the frame of the proof, which started the run.
    while frame is not None and not frame.f_code.co_filename.endswith(_OUTERMOST):
        file = frame.f_code.co_filename
        if not file.startswith(_HIDDEN) and not file.startswith("<"):
            return f"{Path(file).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "torch"


def _name(func: Callable[..., Any]) -> str:
    """The function's name; for attributes such as `x.T`, the attribute's; for operators of exported graphs, theirs."""
    if isinstance(func, torch._ops.OpOverload):
        name = str(func._schema.name).removeprefix("aten::")
        return name if name in SAME_SIGNATURE else f"aten.{name}"
    name = getattr(func, "__name__", str(func))
    if name in ("__get__", "__set__"):
        attribute = getattr(getattr(func, "__self__", None), "__name__", name)
        return f"{attribute}" if name == "__get__" else f"{attribute} ="
    return str(name)


def _is_training(args: Any, kwargs: Any) -> bool:
    # A dropout without flags is called as in training.
    training = kwargs.get("training", args[2] if len(args) > 2 else True)
    probability = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    return bool(training) and probability > 0
