"""A device that is none: tensors on it compute what the processor does, but go to and fro only where they are told to.

Tensors of the device `DEVICE` are wrappers around tensors of the processor. As on a GPU, an operation with tensors of
both places raises, `numpy()` does too, and every copy between the places is counted. `record` stands for a CUDA graph:
it takes down the operations of a function and repeats them on the same memory, without a line of its Python; while it
does, whatever would have to wait for a device raises.

The device is as late as it may be: it does nothing of what it is asked for until somebody waits for it, and then all of
it in order. A copy from or to page-locked memory that nobody waits for is one more thing to do, and reads its source at
that time; until then what it writes holds NaN and zeros. Memory is page-locked where it was asked for, as on a GPU.

A wrapper's device is called "meta", because torch knows that name everywhere and has no kernels for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

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
    """A tensor of the simulated device; `held` has its numbers, once the device has got that far."""

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


@dataclass(frozen=True)
class Transfer:
    """One copy between the places.

    Attributes:
        way: up to the device or down from it.
        size: how many bytes were copied.
        waited: whether the processor waited until it was done.
    """

    way: Literal["up", "down"]
    size: int
    waited: bool


class _Making(TorchFunctionMode):
    """What torch settles before any dispatch: `torch.tensor` for "meta", which it fills with nothing; page-locking."""

    def __init__(self, locked: _Locked) -> None:
        super().__init__()
        self._locked = locked

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and is_device(kwargs.get("device")):
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        if func is torch.Tensor.tolist and isinstance(args[0], OnDevice):
            return args[0].cpu().tolist()
        if func is torch.Tensor.is_pinned:
            return args[0] in self._locked
        if func is torch.Tensor.pin_memory:
            return args[0] if args[0] in self._locked else self._locked.add(args[0].clone())
        lock = bool(kwargs.pop("pin_memory", False))
        result = func(*args, **kwargs)
        return self._locked.add(result) if lock else result


class _Locked:
    """The page-locked memory of the processor."""

    def __init__(self) -> None:
        self._storages: dict[int, Any] = {}  # kept, so that no address is used twice

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        self._storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._storages

    def __len__(self) -> int:
        return len(self._storages)


class SimulatedDevice(TorchDispatchMode):
    """The device, as long as the context lasts.

    Attributes:
        transfers: every copy between the device and the processor.
        waits: what the processor waited for the device for.
        locked: the page-locked memory that was asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.transfers: list[Transfer] = []
        self.waits: list[str] = []
        self.locked = _Locked()
        self._making = _Making(self.locked)
        self._recording: _Recording | None = None
        self._asked = _Recording()
        self._caught_up = 0

    def __enter__(self) -> SimulatedDevice:
        self._making.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._making.__exit__(*error)
        self._catch_up()

    def event(self) -> Event:
        """As `torch.cuda.Event()`."""
        return Event(self)

    def record(self, work: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
        """As `reference_agents.device.graph.record`: nothing is executed before the first repetition."""
        self._catch_up()
        self._recording = recording = _Recording()
        try:
            work()
        finally:
            self._recording = None
        recording.undo()

        def replay() -> None:
            self._catch_up()
            recording.replay()

        return replay

    def wait(self, reason: str) -> None:
        """Let the device do everything that it has been asked for."""
        if self._recording is not None:
            raise RuntimeError(f"{reason}: not permitted while a graph is recorded")
        self.waits.append(reason)
        self._catch_up()

    def _catch_up(self) -> None:
        asked, self._asked = self._asked, _Recording()
        self._caught_up += 1
        asked.undo()
        asked.replay()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        ours = [one for one in tensors if isinstance(one, OnDevice)]
        others = [one for one in tensors if not isinstance(one, OnDevice)]
        device = kwargs.get("device")
        if not ours and not is_device(device):
            return func(*args, **kwargs)
        if any(is_device(one.device) for one in others):
            raise NotImplementedError(f"{func}: torch made a tensor of {DEVICE!r} where this cannot see it")
        if func in _COPIES and (others or (device is not None and not is_device(device))):
            return self._copy(func, args, kwargs)
        self._check(func, args, ours, others)
        if device is not None:
            kwargs["device"] = "cpu"
        args, kwargs = tree_map(_held, (args, kwargs))
        result = self._done_later(func, args, kwargs)
        known = {id(one.held): one for one in ours}
        return tree_map(lambda one: _wrap(one, known), result)

    def _done_later(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Take an operation down; what it gives now has the right shape and no numbers of use."""
        asked = self._asked if self._recording is None else self._recording
        asked.before(func, args, kwargs)
        result = func(*args, **kwargs)
        asked.after(func, args, kwargs, result)
        return result

    def _check(self, func: Any, args: Any, ours: list[OnDevice], others: list[torch.Tensor]) -> None:
        """Refuse what a GPU refuses; wait where it would."""
        if func in _INDEXING and ours:
            if any(one.dim() for one in others):
                self.wait(str(func))
                self.transfers.append(Transfer("up", sum(one.nbytes for one in others), waited=True))
            elif any(one is not None and one.dtype == torch.bool for one in args[1]):
                self.wait(str(func))
        elif ours and any(one.dim() for one in others):
            raise RuntimeError(f"{func}: expected all tensors to be on the same device")
        if func in _WAITING:
            self.wait(str(func))

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A copy between the places: waited for, or one more thing that the device does in its order."""
        makes = func is _aten._to_copy.default
        source: torch.Tensor = args[0] if makes else args[1]
        up = not isinstance(source, OnDevice)
        late = bool(kwargs.pop("non_blocking", False) or (not makes and len(args) > 2 and args[2]))
        target = _held(source).to(kwargs.get("dtype") or source.dtype, copy=True) if makes else _held(args[0])
        if late and not up and makes:
            self.locked.add(target)  # torch page-locks where it is not to wait
        elif late and not up:
            late = target in self.locked
        self.transfers.append(Transfer("up" if up else "down", _held(source).nbytes, waited=not late))
        if not late or self._recording is not None:
            self.wait(str(func))
        elif up and source not in self.locked:
            source = source.clone()  # what is not page-locked is copied to where it is, before anything goes on
        if late:
            self._asked.made(target) if makes else self._asked.before(_aten.copy_.default, (target, source), {})
            self._asked.after(_aten.copy_.default, (target, _held(source)), {}, target)
            target.zero_()
        elif makes:
            target = _held(source).to(target.dtype, copy=True)
        else:
            target.copy_(_held(source))
        if makes:
            return OnDevice(target) if up else target
        return args[0]


class Event:
    """As `torch.cuda.Event`: a place in the order of what the device does."""

    def __init__(self, device: SimulatedDevice) -> None:
        self._device, self._behind = device, -1

    def record(self) -> None:
        """Stand behind everything that the device has been asked for."""
        self._behind = self._device._caught_up

    def query(self) -> bool:
        """Whether the device has got there."""
        return self._device._caught_up > self._behind

    def synchronize(self) -> None:
        """Wait until it has."""
        if not self.query():
            self._device.wait("event")


class _Recording:
    """The operations of a piece of work, with the memory that each of them reads and writes."""

    def __init__(self) -> None:
        self._operations: list[tuple[Any, Any, Any, Any]] = []
        self._made: dict[int, torch.Tensor] = {}
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._generators: dict[torch.Generator, torch.Tensor] = {}

    def before(self, func: Any, args: Any, kwargs: Any) -> None:
        """Keep what is about to be overwritten, where it was there before the recording."""
        for one in _written(func, args, kwargs):
            address = one.untyped_storage().data_ptr()
            if address not in self._made and address not in self._saved:
                whole = torch.empty(0, dtype=one.dtype).set_(one.untyped_storage())
                self._saved[address] = (whole, whole.clone())
        for one in kwargs.values():
            if isinstance(one, torch.Generator) and one not in self._generators:
                self._generators[one] = one.get_state()

    def made(self, tensor: torch.Tensor) -> None:
        """Memory that is new since the recording began."""
        self._made[tensor.untyped_storage().data_ptr()] = tensor

    def after(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Take an operation down."""
        self._operations.append((func, args, kwargs, result))
        if _makes(func):
            for one in tree_leaves(result):
                if isinstance(one, torch.Tensor):
                    self.made(one)

    def undo(self) -> None:
        """As if nothing had been executed: what was there is as before, what was made holds nothing of use."""
        for whole, before in self._saved.values():
            whole.copy_(before)
        for one in self._made.values():
            if one.is_floating_point():
                one.fill_(torch.nan)
        for generator, state in self._generators.items():
            generator.set_state(state)

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


def _wrap(one: Any, known: dict[int, OnDevice]) -> Any:
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
