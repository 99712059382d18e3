"""A device that is none: tensors on it compute what the processor does, but go to and fro only where they are told to.

Tensors of the device `DEVICE` are wrappers around tensors of the processor. As on a GPU, an operation with tensors of
both places raises, `numpy()` does too, and every copy between the places is counted. `record` stands for a CUDA graph:
it takes down the operations of a function and repeats them on the same memory, without a line of its Python; while it
does, whatever would have to wait for a device raises.

A wrapper's device is called "meta", because torch knows that name everywhere and has no kernels for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "meta"

_aten = torch.ops.aten
_COPIES = (_aten._to_copy.default, _aten.copy_.default)
_INDEXING = (_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default)
# Their result, or its size, depends on numbers that only the device knows.
_WAITING = (
    _aten._local_scalar_dense.default,
    _aten.nonzero.default,
    _aten.masked_select.default,
    _aten._unique2.default,
    _aten.equal.default,
)


def is_device(device: Any) -> bool:
    """Whether what was given as a device names the simulated one."""
    return device is not None and torch.device(device).type == DEVICE


class OnDevice(torch.Tensor):
    """A tensor of the simulated device; `held` has its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> OnDevice:
        made: OnDevice = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} on a tensor of a device that is no longer simulated")


class _Making(TorchFunctionMode):
    """`torch.tensor` fills a tensor of "meta" with nothing, before any dispatch: make it here, then move it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and is_device(kwargs.get("device")):
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        if func is torch.Tensor.tolist and isinstance(args[0], OnDevice):
            return args[0].cpu().tolist()
        return func(*args, **kwargs)


class SimulatedDevice(TorchDispatchMode):
    """The device, as long as the context lasts.

    Attributes:
        transfers: every copy between the device and the processor: which operation, of how many numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.transfers: list[tuple[str, int]] = []
        self._making = _Making()
        self._recording: _Recording | None = None

    def __enter__(self) -> SimulatedDevice:
        self._making.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._making.__exit__(*error)

    def record(self, work: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
        """As `reference_agents.device.graph.record`: nothing is executed before the first repetition."""
        self._recording = recording = _Recording(generator)
        try:
            work()
        finally:
            self._recording = None
        recording.undo()
        return recording.replay

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        ours = [one for one in tensors if isinstance(one, OnDevice)]
        others = [one for one in tensors if not isinstance(one, OnDevice)]
        device = kwargs.get("device")
        if not ours and not is_device(device):
            return func(*args, **kwargs)
        leaves = func in _COPIES and (bool(others) or (device is not None and not is_device(device)))
        if any(is_device(one.device) for one in others):
            raise NotImplementedError(f"{func}: torch made a tensor of {DEVICE!r} where this cannot see it")
        self._check(func, args, ours, others, crosses=leaves)
        if device is not None:
            kwargs["device"] = "cpu"
        args, kwargs = tree_map(_held, (args, kwargs))
        if self._recording is not None:
            self._recording.before(func, args, kwargs)
        result = func(*args, **kwargs)
        if self._recording is not None:
            self._recording.after(func, args, kwargs, result)
        if leaves and not is_device(device) and func is _aten._to_copy.default:
            return result
        if func is _aten.copy_.default and not isinstance(tensors[0], OnDevice):
            return tensors[0]
        known = {id(one.held): one for one in ours}
        return tree_map(lambda one: _wrapped(one, known), result)

    def _check(self, func: Any, args: Any, ours: list[OnDevice], others: list[torch.Tensor], *, crosses: bool) -> None:
        """Refuse what a GPU refuses; count copies."""
        indices = func in _INDEXING and bool(ours) and any(one.dim() for one in others)
        if crosses or indices:
            self.transfers.append((str(func), sum(one.numel() for one in (*others, *ours[:1]))))
        elif ours and any(one.dim() for one in others):
            raise RuntimeError(f"{func}: expected all tensors to be on the same device")
        if self._recording is None:
            return
        masks = func in _INDEXING and any(one is not None and one.dtype == torch.bool for one in args[1])
        if crosses or indices or masks or func in _WAITING:
            raise RuntimeError(f"{func}: not permitted while a graph is recorded")


class _Recording:
    """The operations of a piece of work, with the memory that each of them reads and writes."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator, self._state = generator, generator.get_state()
        self._operations: list[tuple[Any, Any, Any, Any]] = []
        self._made: dict[int, torch.Tensor] = {}
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def before(self, func: Any, args: Any, kwargs: Any) -> None:
        """Keep what is about to be overwritten, where it was there before the recording."""
        for one in _written(func, args, kwargs):
            address = one.untyped_storage().data_ptr()
            if address not in self._made and address not in self._saved:
                whole = torch.empty(0, dtype=one.dtype).set_(one.untyped_storage())
                self._saved[address] = (whole, whole.clone())

    def after(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Take an operation down."""
        self._operations.append((func, args, kwargs, result))
        if _makes(func):
            for one in tree_leaves(result):
                if isinstance(one, torch.Tensor):
                    self._made[one.untyped_storage().data_ptr()] = one

    def undo(self) -> None:
        """As if nothing had been executed: what was there is as before, what was made holds nothing of use."""
        for whole, before in self._saved.values():
            whole.copy_(before)
        for one in self._made.values():
            if one.is_floating_point():
                one.fill_(torch.nan)
        self._generator.set_state(self._state)

    def replay(self) -> None:
        """Repeat every operation on the memory that it had."""
        for func, args, kwargs, result in self._operations:
            if _written(func, args, kwargs):
                func(*args, **kwargs)
            elif _makes(func):
                for old, new in zip(tree_leaves(result), tree_leaves(func(*args, **kwargs)), strict=True):
                    if isinstance(old, torch.Tensor):
                        old.copy_(new)


def _held(one: Any) -> Any:
    return one.held if isinstance(one, OnDevice) else one


def _wrapped(one: Any, known: dict[int, OnDevice]) -> Any:
    """What an operation returned, on the device; an argument that it wrote to is itself."""
    if not isinstance(one, torch.Tensor):
        return one
    return known[id(one)] if id(one) in known else OnDevice(one)


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that an operation writes to."""
    found = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = kwargs.get(argument.name, args[position] if position < len(args) else None)
            found += [one for one in tree_leaves(given) if isinstance(one, torch.Tensor)]
    return found


def _makes(func: Any) -> bool:
    """Whether an operation gives new memory, rather than a view or what it wrote to."""
    return all(one.alias_info is None for one in func._schema.returns)
