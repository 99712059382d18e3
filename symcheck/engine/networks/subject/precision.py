"""Runs a network in float64 with casts ignored.

Structure is tested on a float64 copy of the weights, in which rounding is 1e-16 and a fault keeps its size. Casts
inside `forward` (to bfloat16, to float32 and back) would reintroduce rounding, so they count as the identity here. The
deployed network, including its casts, is tested separately, against its own rounding.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from symcheck.engine.networks.subject.artefacts import structural
from symcheck.engine.networks.subject.copies import copied_as_they_are
from symcheck.errors import TargetError

_RANDOM_NAMES = (
    "rand randn randint normal bernoulli multinomial rand_like randn_like randint_like randperm poisson normal_ "
    "uniform_ exponential_ random_ bernoulli_ cauchy_ geometric_ log_normal_ binomial rrelu "
    "gumbel_softmax alpha_dropout feature_alpha_dropout empty empty_like new_empty empty_strided "
)
RANDOM = frozenset(_RANDOM_NAMES.split())
"""Functions whose result is not determined by their inputs."""
DROPOUTS = frozenset(("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"))
"""Functions that set random entries to zero in train mode and do nothing otherwise."""
CASTS = frozenset({"float", "half", "bfloat16", "double", "to", "type", "type_as"})


class Float64Mode(TorchFunctionMode):
    """While active, floating tensors are float64, and casts between floating dtypes do nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch function in float64."""
        return run_in_float64(func, args, kwargs or {})


class CostCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, counts the multiplications, the computed entries and the operators of a pass."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = self.entries = self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator, and count it."""
        result = func(*args, **(kwargs or {}))
        self.operators += 1
        if not getattr(func, "is_view", False):
            self.entries += sum(item.numel() for item in tree_leaves(result) if isinstance(item, torch.Tensor))
        count = flop_registry.get(getattr(func, "overloadpacket", None))
        if count is not None:
            # torch counts a multiplication and an addition
            self.products += int(count(*args, **(kwargs or {}), out_val=result)) // 2
        return result


def run_in_float64(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one torch function with floating arguments and dtypes converted to float64; casts become the identity."""
    if is_cast(func, args, kwargs):
        return to_float64(args[0])
    name = getattr(func, "__name__", "")
    if name in RANDOM or name in DROPOUTS:
        return _same_draws(func, name, args, kwargs)
    return func(*tree_map(to_float64, args), **tree_map(to_float64, kwargs))


def _same_draws(func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Random numbers drawn in float32, like the deployed network's, so that one seed gives the same noise."""
    if name in DROPOUTS:
        x = args[0] if args else kwargs.pop("input")
        if not kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else True)):
            return to_float64(x)  # the same tensor, into which may be written: torch's graphs have a copy here
        # Dropout of ones is the mask, already scaled by 1 / (1 - p).
        kept = func(torch.ones_like(x, dtype=torch.float32), *args[1:], **{**kwargs, "inplace": False})
        return to_float64(x) * kept.double()
    if name.endswith("_") and isinstance(args[0], torch.Tensor) and args[0].is_floating_point():
        # In-place draws: drawn into a float32 tensor, then copied into the float64 tensor.
        drawn = func(args[0].float(), *args[1:], **kwargs)
        return args[0].copy_(drawn)
    previous = torch.get_default_dtype()
    # Without a dtype argument, draws use the default dtype.
    torch.set_default_dtype(torch.float32)
    try:
        return tree_map(to_float64, func(*tree_map(_to_float32, args), **tree_map(_to_float32, kwargs)))
    finally:
        torch.set_default_dtype(previous)


def _to_float32(item: Any) -> Any:
    return item.float() if isinstance(item, torch.Tensor) and item.is_floating_point() else item


def is_cast(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call only changes the floating dtype (or device) of a floating tensor."""
    name = getattr(func, "__name__", "")
    if name not in CASTS or not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return False
    wanted = [item for item in (*args[1:], *kwargs.values()) if isinstance(item, torch.dtype)]
    wanted += [item.dtype for item in (*args[1:], *kwargs.values()) if isinstance(item, torch.Tensor)]
    named = not wanted and name == "type" and len(args) > 1
    return not named and all(dtype.is_floating_point for dtype in wanted)


def to_float64(item: Any) -> Any:
    """Floating tensors in float64, floating dtypes as float64, everything else unchanged."""
    if isinstance(item, torch.Tensor) and item.is_floating_point() and item.dtype != torch.float64:
        return item.double()
    if isinstance(item, torch.dtype) and item.is_floating_point:
        return torch.float64
    return item


def float64_default() -> AbstractContextManager[None]:
    """Make float64 the default dtype inside this block, and restore the previous default."""
    return default_dtype(torch.float64)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make a floating dtype the default inside this block, and restore the previous default."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


def dtype_of(net: nn.Module) -> torch.dtype:
    """The dtype in which a network computes: that of its first floating parameter, or float32."""
    return next((item.dtype for item in net.parameters() if item.is_floating_point()), torch.float32)


class _CopyResultsDetached(TorchFunctionMode):
    """Deep copies of tensors inside an autograd graph become detached copies of their values.

    Agents may store results of their last step as attributes (for instance a policy's distribution). Torch cannot copy
    those, and no forward pass depends on their history.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__deepcopy__ and not args[0].is_leaf:
            return args[0].detach().clone()
        return func(*args, **(kwargs or {}))


def _deep_copy(net: nn.Module) -> nn.Module:
    """A copy of all attributes of the network; if that fails, a copy made by its classes' own methods."""
    try:
        with copied_as_they_are(net):
            return copy.deepcopy(net)
    except Exception:  # handles or locks, which its classes omit from copies
        return copy.deepcopy(net)


def _is_on(net: nn.Module, device: torch.device) -> bool:
    """Whether all tensors are already on a device, so that the network's own `to` or `_apply` need not run."""
    return all(tensor.device == device for tensor in (*net.parameters(), *net.buffers()))


def copy_network(
    net: nn.Module,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    change: Callable[[nn.Module], nn.Module] = lambda copy: copy,
) -> nn.Module:
    """A deep copy on a device, modified in place, with floating parameters and buffers in the dtype given, if any.

    Raises:
        TargetError: the network cannot be copied.
    """
    try:
        with warnings.catch_warnings(), _CopyResultsDetached():  # torch's copying warns about its internals
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", "The .grad attribute", UserWarning)
            # One argument per call: modules of torchrl accept only one.
            copied = change(_deep_copy(net))
            placed = copied if _is_on(copied, device) else copied.to(device)
            return placed if dtype is None else placed.to(dtype)
    except Exception as error:
        raise TargetError(
            f"the network cannot be copied ({type(error).__name__}: {error}), and symcheck never changes it in place.",
            where=type(net).__name__,
            remedy="Give a factory that builds the network, or detach the tensors that are stored as attributes.",
        ) from error


def in_float64(net: nn.Module) -> nn.Module:
    """A deep copy with all floating parameters, buffers and tensor attributes in float64, on the CPU.

    Networks that do not run in float64 (`artefacts`) are replaced by their floating-point counterpart.
    """
    double = copy_network(net, device=torch.device("cpu"), dtype=torch.float64, change=structural)
    for module in double.modules():
        # Tensors held as plain attributes are not moved by `Module.to`.
        for name, item in list(vars(module).items()):
            if isinstance(item, torch.Tensor):
                vars(module)[name] = to_float64(item.detach().cpu())
    return double
