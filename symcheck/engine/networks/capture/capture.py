"""A network as a graph of core operators, captured without values.

During the capture, tensors have shapes but no values, and the batch size is a symbol. Code that depends on a value
cannot run, and a dependence on the batch size leaves a guard. Parameters and buffers are inputs, so writes to them
appear in the graph.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_map

from symcheck.engine.networks.capture.code_paths import CodePath, path_taken
from symcheck.engine.networks.capture.own_code import is_own_code
from symcheck.engine.networks.capture.places import PlaceMarks
from symcheck.engine.networks.capture.places_in_range import drop_what_decides_nothing
from symcheck.engine.networks.capture.shared_memory import VIEW_OR_COPY
from symcheck.engine.networks.capture.sizes import SPLITTING, cuts_batches, holds_for_all_sizes, symbolic_len
from symcheck.engine.networks.capture.tensor_reads import (
    ASKING_THE_CALL,
    READERS,
    SHOWING,
    TOLD,
    writes_single_precision,
)
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.precision import Float64Mode, dtype_of, float64_default
from symcheck.statements.statement import Statement, state

HINT = 1009
"""Size of the example batch that represents all batch sizes. Torch needs one number; no branch may depend on it, and no
other size should equal it."""
_COMPILED = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
_CALLING = frozenset(["apply", "apply_", "map_", "map2_"])
"""Compiled functions that call their arguments."""
_SYMBOL = re.compile(r"\bs\d+\b")
_TORCH = str(Path(torch.__file__).parent)
_DISTRIBUTIONS = str(Path(_TORCH) / "distributions")


@dataclass(frozen=True, eq=False)
class Capture:
    """A network's graph.

    Attributes:
        module: runs the graph: takes the state as a dictionary, then one batch.
        state: parameters and buffers by name, as the graph expects them.
        outputs: the paths of the outputs, in the order in which the graph returns them.
        size: the symbol of the batch size; None if the network takes one sample only.
        assumptions: number of boolean tensors that the graph returns after the outputs, each assumed to be true
            everywhere. They are argument checks of torch's distributions.
        path: the executed instructions of the network's own code.
        backend: a graph compiler other than torch's under which a part of the network runs; "" if there is none.
    """

    module: fx.GraphModule
    state: Mapping[str, torch.Tensor]
    outputs: tuple[str, ...]
    size: Any
    assumptions: int = 0
    path: CodePath = field(default_factory=CodePath)
    backend: str = ""

    @property
    def graph(self) -> fx.Graph:
        """The operators in order."""
        return self.module.graph


class RefusedCaptureError(Exception):
    """The network cannot be captured as a graph. Carries the reason and the responsible line of the network's code."""

    def __init__(self, reason: Statement, source: str = "") -> None:
        self.reason = reason
        self.source = source
        super().__init__(reason.code)


def capture_network(
    net: nn.Module,
    shape: tuple[int, ...],
    *,
    alone: bool = False,
    exact: bool = True,
    functions: Mapping[types.CodeType, dict[str, Any]] | None = None,
) -> Capture:
    """The graph of a network, valid for all values and batch sizes.

    Args:
        net: the network. Its tensors may have no values afterwards, so pass a copy that is not used again.
        shape: the shape of one input, without the batch axis.
        alone: whether it takes one input at a time; then there is no batch symbol.
        exact: whether casts count as the identity, as in the float64 copy; otherwise it is captured as deployed.
        functions: the network's own code that runs in a call, with its globals; `len` of a batch returns the symbol
            there during the capture.

    Returns:
        The graph.

    Raises:
        RefusedCaptureError: the computation depends on values or on the batch size, or cannot be captured.
    """
    sizes = _Sizes()
    fakes = FakeTensorMode(shape_env=sizes, allow_non_fake_inputs=True)
    dtype = torch.float64 if exact else dtype_of(net)
    x = _without_numbers(fakes, (1 if alone else HINT, *shape), dtype, alone)
    held = tensors_of(net)
    state_without = {name: fakes.from_tensor(tensor, static_shapes=True) for name, tensor in held.items()}
    marks = PlaceMarks(net)
    watch, functions = _Watch(sizes, marks, exact=exact), functions or {}
    paths: list[str] = []
    taken = CodePath()

    def run(given: dict[str, torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
        watch.constants = {id(given[name]): tensor for name, tensor in held.items()}
        with marks.watching(), Float64Mode() if exact else _as_it_is(), watch, path_taken(taken):
            result = torch.func.functional_call(net, given, (x,))
        outputs = {path: tensor for path, tensor in named_outputs(result).items() if tensor.is_floating_point()}
        paths[:] = outputs
        return [*outputs.values(), *watch.assumed]

    try:
        with (
            float64_default() if exact else _as_it_is(),
            torch.no_grad(),
            _without_warnings(),
            _in_plain_operators(),
            _noting_shown_sizes(watch),
            symbolic_len(functions.values()),
            fakes,
        ):
            module = make_fx(run, _allow_non_fake_inputs=True)(state_without, x)
    except Exception as error:  # the network's code, or torch's, does not run on tensors without values
        raise RefusedCaptureError(watch.reason or _reason_of(error, sizes), _own_line(error)) from error
    _refuse_values(watch, sizes)
    size = None if alone else _symbol_of(x.shape[0])
    if sizes.guarded:
        raise RefusedCaptureError(state("SYM181", guard=sizes.guarded))
    drop_what_decides_nothing(module)
    return Capture(module, held, tuple(paths), size, len(watch.assumed), taken)


def tensors_of(net: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a network by name; shared ones appear under their first name."""
    return {**dict(net.named_parameters(remove_duplicate=True)), **dict(net.named_buffers(remove_duplicate=True))}


def graph_of_numbers(net: nn.Module, x: torch.Tensor) -> fx.GraphModule:
    """The operators that run on tensors with values, parameters unchanged, in the float64 copy of a network."""
    watch = _Watch(_Sizes(), PlaceMarks(net))

    def run(x: torch.Tensor) -> list[torch.Tensor]:
        with Float64Mode(), watch:
            result = net(x)
        return [item for item in named_outputs(result).values() if item.is_floating_point()] + watch.assumed

    with float64_default(), torch.no_grad(), _without_warnings(), _in_plain_operators():
        module = make_fx(run)(x)
    drop_what_decides_nothing(module)
    return module


class _Sizes(ShapeEnv):
    """A shape environment that records comparisons of sizes in the network's code, and sizes that depend on values.

    Operators also read the batch size to select a kernel, which does not change the result. If they use it as a number,
    for example as an index, the graph holds only for some sizes.
    """

    depends_on_values = False
    guarded = ""

    def evaluate_expr(self, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
        """Evaluate a condition on sizes; record the first one outside of operators that affects the computation."""
        before = len(self.guards)
        answer = super().evaluate_expr(orig_expr, *args, **kwargs)
        asked = len(self.guards) > before
        if asked and (_is_asked_by_own_code() or not holds_for_all_sizes(self.guards[-1].expr)):
            self.guarded = self.guarded or _readable(self.guards[-1].expr)
        specialised = [known for known in self.replacements.values() if known.is_number]
        if specialised and not self.depends_on_values:
            self.guarded = self.guarded or f"n = {specialised[0]}"
        if self.guarded:
            # Stop early to save time: a loop over the batch creates nodes for every sample.
            raise RuntimeError("a size was requested")
        return answer

    def _get_user_frame(self) -> None:
        """Do nothing: the origin of a guard is not used, and finding it would cost 0.5 s of imports."""

    def create_unbacked_symint(self, *args: Any, **kwargs: Any) -> Any:
        """A size that depends on values."""
        self.depends_on_values = True
        return super().create_unbacked_symint(*args, **kwargs)

    def create_unbacked_symfloat(self, *args: Any, **kwargs: Any) -> Any:
        """A number that depends on values."""
        self.depends_on_values = True
        return super().create_unbacked_symfloat(*args, **kwargs)

    def create_unbacked_symbool(self, *args: Any, **kwargs: Any) -> Any:
        """A branch that depends on values."""
        self.depends_on_values = True
        return super().create_unbacked_symbool(*args, **kwargs)


def _is_asked_by_own_code() -> bool:
    """Whether the condition comes from the network, or from torch's Python code outside of operators.

    Inside operators, a condition selects a kernel.

    Functions that torch calls in turn, as `vmap` does, count as the network's own.
    """
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code is _Watch.__torch_function__.__code__:
            return False
        if _is_own(frame):
            return True
        frame = frame.f_back
    return True


def _is_own(frame: types.FrameType) -> bool:
    return is_own_code(frame.f_code.co_filename, frame.f_globals)


class _Watch(torch.overrides.TorchFunctionMode):
    """Answers attribute reads of parameters, and records those of tensors that depend on the input."""

    def __init__(self, sizes: _Sizes, marks: PlaceMarks, *, exact: bool = True) -> None:
        super().__init__()
        self.exact = exact
        self.sizes = sizes
        self.marks = marks
        self.constants: dict[int, torch.Tensor] = {}
        self.raised = ""
        self.reason: Statement | None = None
        self.assumed: list[torch.Tensor] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch function."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        attribute = name in ("__get__", "__set__")
        if attribute:
            name = getattr(getattr(func, "__self__", None), "__name__", name)
        if attribute and func.__name__ == "__set__" and _is_own(sys._getframe(1)):
            self.reason = self.reason or state("SYM176", operation=name)
        asks = name not in TOLD if attribute else name in ASKING_THE_CALL
        if asks and _is_own(sys._getframe(1)):
            self.reason = self.reason or state("SYM185", operation=name)
        if name == "_is_all_true" and sys._getframe(1).f_code.co_filename.startswith(_DISTRIBUTIONS):
            self.assumed.append(args[0])
            return True
        if name in READERS or name in SHOWING:
            if args and id(args[0]) in self.constants:
                return func(self.constants[id(args[0])], *args[1:], **kwargs)
            if not any(_is_plain(item) for item in args[:1]):
                self.reason = self.reason or state("SYM180", operation=name.strip("_"))
                # Stop early to save time: converting a whole batch to a list creates a symbol for every entry.
                raise RuntimeError("a tensor without values was read")
        if name in SPLITTING and cuts_batches(name, *args, **kwargs):
            self.reason = self.reason or state("SYM182", operation=name)
            # Stop early to save time: the sizes of fifty chunks are fifty rounded expressions of one symbol.
            raise RuntimeError("a batch was cut")
        # Below a compiled function only torch's code runs; tracing thousands of its calls would dominate the capture
        # time.
        tracer = sys.gettrace() if isinstance(func, _COMPILED) and name not in _CALLING else None
        if tracer is not None:
            sys.settrace(None)
        if self.exact and writes_single_precision(name, args, kwargs):
            self.reason = self.reason or state("SYM183", what="a tensor that is kept from call to call")
        try:
            result = func(*args, **kwargs)
            if name in VIEW_OR_COPY and args and result is args[0]:
                return torch.ops.aten.alias(result)  # a separate node, so that writes into it are visible
            return result
        except Exception:
            self.raised = self.raised or name.strip("_")  # the network's own code may catch the exception and continue
            raise
        finally:
            if tracer is not None:
                sys.settrace(tracer)
            self.marks.mark(name.strip("_"))


def _is_plain(item: Any) -> bool:
    """Whether a tensor has values: one built from Python numbers, independent of the input."""
    return not isinstance(item, FakeTensor) or item.constant is not None


def _without_numbers(fakes: FakeTensorMode, shape: tuple[int, ...], dtype: torch.dtype, alone: bool) -> torch.Tensor:
    batch = DimDynamic.STATIC if alone else DimDynamic.DYNAMIC
    sizes: Any = StatelessSymbolicContext(dynamic_sizes=[batch, *[DimDynamic.STATIC] * (len(shape) - 1)])
    return fakes.from_tensor(torch.empty(shape, dtype=dtype), symbolic_context=sizes)


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress torch's warnings and logs about its internals during a capture."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextmanager
def _in_plain_operators() -> Iterator[None]:
    """Decompose attention into products and sums in every dtype, and run compiled code uncompiled."""
    dynamo = sys.modules.get("torch._dynamo")
    refuses = None if dynamo is None else dynamo.config.error_on_nested_fx_trace
    if dynamo is not None:
        dynamo.config.error_on_nested_fx_trace = False
    try:
        # these decompositions implement recurrent layers in Python and keep sizes symbolic
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False), enable_python_dispatcher():
            yield
    finally:
        if dynamo is not None:
            dynamo.config.error_on_nested_fx_trace = refuses


@contextmanager
def _noting_shown_sizes(watch: _Watch) -> Iterator[None]:
    """Record sizes that are converted to text or used as keys: such uses leave no guard."""
    shown = {name: getattr(torch.SymInt, name) for name in ("__repr__", "__hash__")}

    def noting(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def show(size: Any) -> Any:
            if _is_own(sys._getframe(1)):
                watch.reason = watch.reason or state("SYM181", guard="n, converted to text or used as a key")
            return original(size)

        return show

    for name, original in shown.items():
        setattr(torch.SymInt, name, noting(original))
    try:
        yield
    finally:
        for name, original in shown.items():
            setattr(torch.SymInt, name, original)


def _reason_of(error: Exception, sizes: _Sizes) -> Statement:
    if sizes.guarded:
        return state("SYM181", guard=sizes.guarded)
    text = " ".join(str(error).split())[:200]
    if sizes.depends_on_values or "DataDependent" in type(error).__name__ or "data-dependent" in text:
        return state("SYM180", operation="a branch or a size")
    return state("SYM186", error=type(error).__name__, message=text)


def _refuse_values(watch: _Watch, sizes: _Sizes) -> None:
    if watch.reason is not None:
        raise RefusedCaptureError(watch.reason)
    if watch.raised:
        raise RefusedCaptureError(state("SYM184", operation=watch.raised))
    if sizes.depends_on_values:
        raise RefusedCaptureError(state("SYM180", operation="a selection or a number"))


def _symbol_of(size: Any) -> Any:
    """The symbol of the batch size.

    Raises:
        RefusedCaptureError: the size is a number.
    """
    expression = size.node.expr if isinstance(size, torch.SymInt) else size
    if not getattr(expression, "is_Symbol", False):
        raise RefusedCaptureError(state("SYM181", guard=f"n = {expression}"))
    return expression


def _readable(guard: Any) -> str:
    return _SYMBOL.sub("n", str(guard))


def _own_line(error: BaseException) -> str:
    """File and line of the innermost frame of the network's own code."""
    here = str(Path(__file__).parents[1])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((_TORCH, here, "<")):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def constants_without_numbers(captured: Capture) -> bool:
    """Whether the graph holds a tensor of unknown origin that has a shape but no values."""
    held = [getattr(captured.module, str(node.target), None) for node in captured.graph.nodes if node.op == "get_attr"]
    return any(isinstance(item, FakeTensor) for item in held)


def answers(captured: Capture, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The graph's output for a batch with values."""
    with torch.no_grad(), float64_default():
        # like the network, the graph may write into its inputs
        given = tree_map(lambda tensor: tensor.clone(), dict(captured.state))
        results = tree_flatten(captured.module(given, x))[0]
        return dict(zip(captured.outputs, results[: len(captured.outputs)], strict=True))
