"""All state of a network and of its own code, recorded to detect changes made by a call.

A counter, a growing list, a global variable or a default argument leaves no operator in a graph. Therefore everything
reachable from the code is serialised before and after calls: modules and their order, classes, closures, globals,
modules that are imported inside a function, caches, frames of generators, and the numbers of tensors.
"""

from __future__ import annotations

import collections
import functools
import gc
import inspect
import io
import pickle
import random
import sys
import types
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.engine.networks.capture.own_code import is_own_code, is_own_file, names_of
from symcheck.engine.networks.capture.texts_and_orders import is_unordered
from symcheck.engine.networks.subject.copies import slots_of
from symcheck.nn.basis_layer import BasisLayer
from symcheck.statements.statement import Statement, state

GENERATORS = "a generator of random numbers"
"""The state that a stochastic network changes; a seed of the run makes its draws reproducible."""
SCALARS = (type(None), bool, int, float, complex, str, bytes)
PLAIN = (*SCALARS, tuple, list, dict, set, frozenset)
_OF_GRAPHS = ("_buffers", "_parameters", "training")
_FRAMES = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
_LRU_LINK = "_lru_list_elem"
"""The type of the links in a bounded `lru_cache`."""
_CLOSED = frozenset(["ctypes", "_ctypes", "mmap", "contextvars", "_contextvars"])
"""Standard-library modules whose objects cannot be serialised and can be read without a call: memory and context
variables. Other such objects of Python and torch (locks, files) are read by calls, which are monitored."""


@dataclass
class Held:
    """The state of a network and its own code at one time.

    Attributes:
        parts: by name, state other than tensors, as comparable bytes.
        tensors: by name, the tensors in the order in which they are reached, with their versions and numbers.
        closed: the type of the first object that cannot be inspected; "" if there is none.
        sets: whether there are sets whose order differs between processes.
    """

    parts: dict[str, bytes] = field(default_factory=dict)
    tensors: dict[str, list[tuple[torch.Tensor, Any]]] = field(default_factory=dict)
    closed: str = ""
    sets: bool = False


def what_is_held(net: nn.Module, functions: dict[types.CodeType, dict[str, Any]]) -> Held:
    """All state that a call can change without leaving a trace in its graph.

    Args:
        net: the network.
        functions: the code that runs in a call, with its globals.

    Returns:
        Modules, globals that the code reads, the classes of the network, and the generators of random numbers.
    """
    held = Held()
    classes: dict[type, None] = {}
    codes: set[types.CodeType] = set()

    def keep(name: str, item: Any) -> None:
        writer = _Writer(classes, codes)
        held.parts[name] = writer.bytes_of(item)
        held.tensors[name] = writer.tensors
        held.closed = held.closed or writer.closed
        held.sets = held.sets or writer.sets

    for name, module in net.named_modules():
        order = [(child, id(item)) for child, item in module._modules.items()]
        keep(name or "the network", (_kept_by(module), order))
        classes.setdefault(type(module))
    words = set().union(*map(names_of, functions))
    for code, names in functions.items():
        keep(f"a global of {code.co_name}", _used_by(code, names, words))
    # serialising a class may reach further classes
    written: set[type] = set()
    while remaining := [cls for cls in classes if cls not in written]:
        for cls in remaining:
            written.add(cls)
            for kind in (*inspect.getmro(cls), *inspect.getmro(type(cls))):
                if kind is cls and is_own_class(cls):
                    keep(cls.__qualname__, {key: item for key, item in vars(cls).items() if key not in _OF_A_CLASS})
                elif is_own_class(kind):
                    classes.setdefault(kind)
    # functions that run but were not reached above, for example torch hooks
    inner = {item for code in functions for item in code.co_consts if isinstance(item, types.CodeType)}
    if missed := [code for code in functions if code not in codes and code not in inner]:
        for function in gc.get_referrers(*missed):
            if isinstance(function, types.FunctionType):
                keep(f"what {function.__name__} holds", function)
    keep(
        GENERATORS,
        (random.getstate(), np.random.get_state(), torch.get_rng_state().numpy().tobytes()),  # noqa: NPY002
    )
    return held


_OF_A_CLASS = ("__dict__", "__weakref__", "__module__", "_abc_impl")


def _used_by(code: types.CodeType, names: Mapping[str, Any], all_words: set[str]) -> dict[str, Any]:
    """The globals that code refers to, and those of its own imported modules.

    For other modules by the network's author, all names used by any code count, because a module may be passed as an
    argument.
    """
    words = sorted(names_of(code))
    used = {word: names[word] for word in words if word in names}
    package = str(names.get("__package__") or "")
    imported = [sys.modules.get(name) for word in words for name in (word, f"{package}.{word}") if word not in names]
    for module in [*used.values(), *imported]:
        if isinstance(module, types.ModuleType) and is_own_file(getattr(module, "__file__", None) or "<frozen"):
            used |= {
                f"{module.__name__}.{word}": vars(module)[word] for word in sorted(all_words) if word in vars(module)
            }
    return used


def _kept_by(module: nn.Module) -> dict[str, Any]:
    """The attributes of a module, without its submodules."""
    # The code of a torch graph is the graph itself: only its tensors are state, and torch's caches vary.
    named: Iterable[str] = (
        _OF_GRAPHS if isinstance(module, torch.fx.GraphModule) else vars(module).keys() - {"_modules"}
    )
    if isinstance(module, BasisLayer):
        named = set(named) - {"_kept"}  # the cached weight, which is computed from the coefficients
    return {key: vars(module)[key] for key in sorted(named)}


def what_changed(before: Held, after: Held, *, stale: set[int] | None = None) -> Statement | None:
    """The changes made by calls.

    Args:
        before: the state before the calls.
        after: the state after them.
        stale: receives the identities of replaced tensors. Replacement alone is not a change; a stored result matters
            only if it is read again.

    Returns:
        The reason; None if nothing changed.
    """
    for name, part in after.parts.items():
        if before.parts.get(name) != part:
            return state("SYM183", what=name)
        for (old, numbers), (new, later) in zip(before.tensors[name], after.tensors[name], strict=True):
            if old is new and numbers != later:
                return state("SYM183", what=name)
            if old is not new and stale is not None:
                stale.update((id(old), id(new)))
    return None


def what_first_inputs_leave(net: nn.Module, other: nn.Module) -> tuple[str, dict[int, str]]:
    """The modules in which a network stores values from its first inputs.

    Args:
        net: a copy of the network that was called.
        other: a copy that was called with other inputs.

    Returns:
        The name of the first module that stores a value other than a tensor; "" if there is none. Then the names of
        modules that store tensors, by the identity of the tensor in the first copy. They matter only if they are read
        again.
    """
    kept: dict[int, str] = {}
    for (name, mine), (_, others) in zip(net.named_modules(), other.named_modules(), strict=False):
        writers = _Writer(by_identity=False), _Writer(by_identity=False)
        parts = [writer.bytes_of(_kept_by(module)) for writer, module in zip(writers, (mine, others), strict=True)]
        if parts[0] != parts[1]:
            return name or "the network", kept
        for (tensor, numbers), (_, their) in zip(writers[0].tensors, writers[1].tensors, strict=True):
            if numbers[1:] != their[1:]:
                kept[id(tensor)] = name or "the network"
    return "", kept


def lasting_change(reason: Statement) -> str:
    """The state that a call leaves for later calls, taken from the reason that ended a proof; "" for other reasons.

    Args:
        reason: why there is no graph of every call.
    """
    what = str(reason.fields["what"]) if reason.code == "SYM183" else ""
    return "" if what == GENERATORS else what


def is_own_class(cls: type) -> bool:
    """Whether a class was written by the network's author."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return file is not None and is_own_file(file)


class _Writer(pickle.Pickler):
    """Serialises an object's state: tensors by their shape, functions by their closures, classes by their names.

    Args:
        classes: receives the author's classes that are encountered.
        codes: receives the code of the functions that are encountered.
        by_identity: whether objects that are not inspected must be the same ones; otherwise their type is enough.
    """

    def __init__(
        self,
        classes: dict[type, None] | None = None,
        codes: set[types.CodeType] | None = None,
        *,
        by_identity: bool = True,
    ) -> None:
        self._stream = io.BytesIO()
        super().__init__(self._stream, protocol=4)
        self._classes = {} if classes is None else classes
        self._codes = set() if codes is None else codes
        self._id: Callable[[Any], int] = id if by_identity else lambda item: 0
        self.tensors: list[tuple[torch.Tensor, Any]] = []
        self.closed = ""
        self.sets = False

    def bytes_of(self, item: Any) -> bytes:
        """The state as bytes, equal for equal states."""
        self.dump(item)
        return self._stream.getvalue()

    def persistent_id(self, item: Any) -> Any:
        """Assign names to objects that are not inspected."""
        if isinstance(item, PLAIN):
            self.sets = self.sets or is_unordered(item)
            return None
        if isinstance(item, torch.Tensor):
            self.tensors.append((item, _numbers_of(item)))
            return ("tensor", tuple(item.shape), str(item.dtype), type(item).__name__, getattr(item, "__dict__", None))
        if isinstance(item, nn.Module):
            # each module of a network is compared under its own name
            return ("module", self._id(item)) if isinstance(item, torch.jit.ScriptModule) else None
        if isinstance(item, torch.Generator):
            return ("generator", item.get_state().numpy().tobytes())
        if isinstance(item, types.ModuleType | types.CodeType | types.BuiltinFunctionType | torch.dtype | torch.device):
            return (type(item).__name__, self._id(item))
        if isinstance(item, type):
            if is_own_class(item):
                self._classes.setdefault(item)
            return ("class", self._id(item))
        return None

    def reducer_override(self, item: Any) -> Any:
        """How functions, frames and objects that cannot be pickled are inspected."""
        if isinstance(item, types.FunctionType):
            self._codes.add(item.__code__)
            if not is_own_code(item.__code__.co_filename, item.__globals__):
                return tuple, ((self._id(item),),)
            return tuple, ((self._id(item),),), (item.__closure__, item.__defaults__, item.__kwdefaults__, vars(item))
        looked_into = _parts_of(item)
        if looked_into is not None:
            return tuple, ((type(item).__name__,),), looked_into
        if is_own_class(type(item)):  # its own pickling methods are ignored
            self._classes.setdefault(type(item))
            slots = [name for cls in type(item).__mro__ for name in slots_of(cls)]
            held = {name: getattr(item, name, None) for name in slots}
            base: list[Any] = (
                [list(item)] if isinstance(item, list | tuple | set | frozenset | collections.deque) else []
            )
            base += [dict(item)] if isinstance(item, dict) else []
            base += self._built_in_part(item)
            return tuple, ((self._id(type(item)), *base),), {**held, **getattr(item, "__dict__", {})}
        try:
            reduced = item.__reduce_ex__(4)
        except Exception:  # locks, files, handles: only their identity can be compared
            self._note_closed(item)
            return tuple, ((type(item).__name__, self._id(item)),), dict(getattr(item, "__dict__", {}))
        if isinstance(reduced, str):
            return tuple, ((reduced, self._id(item)),)
        # compare the constructor's name and its arguments, not the constructor itself
        maker, arguments, *rest = reduced
        return (tuple, ((getattr(maker, "__name__", ""), *arguments),), *rest)

    def _built_in_part(self, item: Any) -> list[Any]:
        """The state that an object of an author's class inherits from a built-in or extension class."""
        built_in = [cls for cls in type(item).__mro__ if not cls.__flags__ & _OWN_MEMORY]
        if built_in[0] in (object, list, tuple, set, frozenset, dict, collections.deque):
            return []
        try:
            return list(item.__reduce_ex__(4)[1:3])
        except Exception:  # an object that cannot be serialised ends the proof; the message names it
            self._note_closed(item)
            return []

    def _note_closed(self, item: Any) -> None:
        # a ctypes type reports the module that first created it, so its base classes are checked
        tops = [cls.__module__.partition(".")[0] for cls in type(item).__mro__]
        if not _CLOSED.isdisjoint(tops) or (tops[0] not in sys.stdlib_module_names and tops[0] != "torch"):
            self.closed = self.closed or f"{type(item).__module__}.{type(item).__name__}"


_OWN_MEMORY = 1 << 9
"""The flag of types created at run time (`Py_TPFLAGS_HEAPTYPE`), such as classes written in Python."""


def _parts_of(item: Any) -> Any:
    """The contents of a built-in object that pickling does not serialise; None for other objects."""
    if isinstance(item, types.CellType):
        try:
            return (item.cell_contents,)
        except ValueError:  # an empty cell
            return ()
    if isinstance(item, types.MethodType):
        return item.__func__, item.__self__
    if isinstance(item, property):
        return item.fget, item.fset
    if isinstance(item, staticmethod | classmethod):
        return (item.__func__,)
    if isinstance(item, weakref.ref):
        return (item(),)
    if isinstance(item, memoryview):
        return (item.tobytes(),)
    if isinstance(item, types.MappingProxyType):
        return (dict(item),)
    if isinstance(item, functools._lru_cache_wrapper) or type(item).__name__ == _LRU_LINK:
        return tuple(part for part in gc.get_referents(item) if not isinstance(part, type))
    frame = next((getattr(item, name) for kind, name in _FRAMES.items() if isinstance(item, kind)), None)
    if frame is None:
        return (id(item),) if isinstance(item, tuple(_FRAMES)) else None
    if not is_own_code(frame.f_code.co_filename, frame.f_globals):
        return (id(item),)
    return id(item), frame.f_lasti, dict(frame.f_locals)


_LONG = 2**16
"""Maximum size, in bytes, of tensors that are compared byte by byte; for larger ones, sums of words are compared."""


def _numbers_of(tensor: torch.Tensor) -> Any:
    """The version of a tensor and its numbers: assigning to `.data`, or writing through an array, leaves no version."""
    version = 0 if tensor.is_inference() else tensor._version
    try:
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    except Exception:  # sparse, quantised or empty tensors, and tensors without values
        return (version,)
    words = raw[: raw.size // 8 * 8].view(np.int64) if raw.size > _LONG else None
    return version, zlib.crc32(raw.tobytes()) if words is None else int(words.sum())
