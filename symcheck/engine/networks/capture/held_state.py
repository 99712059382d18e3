"""All state of a network and of its own code, recorded to detect changes made by a call.

A counter, a growing list, a global variable or a default argument leaves no operator in a graph. Therefore everything
reachable from the code is serialised before and after calls: modules and their order, classes, closures, globals,
modules that are imported inside a function, caches, frames of generators, and the numbers of tensors.
"""

from __future__ import annotations

import collections
import gc
import inspect
import io
import logging
import pickle
import random
import struct
import sys
import types
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.engine.networks.capture.asking_functions import FUNCTIONS, PLAIN, Cached, asks_more_than_its_arguments
from symcheck.engine.networks.capture.own_code import is_own_class, is_own_code, is_own_file, names_of
from symcheck.engine.networks.capture.texts_and_orders import is_unordered
from symcheck.nn.basis_layer import BasisLayer
from symcheck.statements.statement import Statement, state

GENERATORS = "a generator of random numbers"
"""The state that a stochastic network changes; a seed of the run makes its draws reproducible."""
_OF_GRAPHS = ("_buffers", "_parameters", "training")
_FRAMES = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
_OF_LOCKS = frozenset(["__new__", "__init__", "__repr__", "__enter__", "__exit__", "__doc__", "__module__"])
"""Attributes of objects on which code can only wait; such objects have no state to read."""


@dataclass
class Held:
    """The state of a network and its own code at one time.

    Attributes:
        parts: by name, state other than tensors, as comparable bytes.
        tensors: by name, the tensors in the order in which they are reached, with their versions and numbers.
        closed: the type of the first object that cannot be inspected, or of a function in it that depends on
            more than its arguments; "" if there is none.
        of_given: how the copy refers to the network as given: "key" as a key of a mapping, "held" in another way, ""
            if it does not.
        scripts: the TorchScript functions and modules that it refers to, by name.
        sets: whether there are sets whose order differs between processes.
        caches: by identity, the cached functions of its own code, each with the number of calls that it answered.
    """

    parts: dict[str, bytes] = field(default_factory=dict)
    tensors: dict[str, list[tuple[torch.Tensor, Any]]] = field(default_factory=dict)
    closed: str = ""
    of_given: str = ""
    scripts: dict[str, Any] = field(default_factory=dict)
    sets: bool = False
    caches: dict[int, tuple[Any, int]] = field(default_factory=dict)

    def answered_by_caches(self, later: Held, disabled: Collection[int]) -> str:
        """The name of a cached function that answered calls between two times, and was not watched; "" if none did."""
        for place, (function, hits) in later.caches.items():
            if place not in disabled and hits > self.caches.get(place, (function, 0))[1]:
                return f"the cache of {function.__name__}"
        return ""


def what_is_held(
    net: nn.Module, functions: dict[types.CodeType, dict[str, Any]], given: nn.Module | None = None
) -> Held:
    """All state that a call can change without leaving a trace in its graph.

    Args:
        net: the network.
        functions: the code that runs in a call, with its globals.
        given: the network as given, of which this one is a copy.

    Returns:
        Modules, globals that the code reads, the classes of the network, and the generators of random numbers.
    """
    held = Held()
    classes: dict[type, None] = {}
    codes: set[types.CodeType] = set()
    parts = () if given is None else (*given.modules(), *given.parameters(), *given.buffers())
    originals = {id(part) for part in parts}

    def keep(name: str, item: Any) -> None:
        writer = _Writer(classes, codes, originals)
        held.parts[name] = writer.bytes_of(item)
        held.tensors[name] = writer.tensors
        held.closed = held.closed or writer.closed
        held.of_given = max(held.of_given, writer.of_given)
        held.scripts |= writer.scripts
        held.sets = held.sets or writer.sets
        held.caches |= writer.caches

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
    # calls of compiled functions are watched
    used = {word: names[word] for word in words if word in names and not isinstance(names[word], FUNCTIONS)}
    package = str(names.get("__package__") or "")
    modules = [sys.modules.get(name) for word in words for name in (word, f"{package}.{word}") if word not in names]
    modules += used.values()
    met: set[int] = set()
    while modules:
        module = modules.pop()
        if not isinstance(module, types.ModuleType) or id(module) in met:
            continue
        met.add(id(module))
        own = is_own_file(getattr(module, "__file__", None) or "<frozen")
        for word in all_words & vars(module).keys():
            part = vars(module)[word]
            # for library functions, only attributes that were attached to them
            if own or (isinstance(part, types.FunctionType) and vars(part)):
                used[f"{module.__name__}.{word}"] = part
            modules.append(part)
    return dict(sorted(used.items()))


def _kept_by(module: nn.Module) -> dict[str, Any]:
    """The attributes of a module, without its submodules."""
    # The code of a torch graph is the graph itself: only its tensors are state, and torch's caches vary.
    named: Iterable[str] = (
        _OF_GRAPHS if isinstance(module, torch.fx.GraphModule) else vars(module).keys() - {"_modules"}
    )
    if isinstance(module, BasisLayer) and not is_own_class(type(module)):
        named = set(named) - {"_kept"}  # the cached weight, which is computed from the coefficients
    held = {"": (type(module), _referents(module)), **{key: vars(module)[key] for key in sorted(named)}}
    if isinstance(module, nn.RNNBase):  # in a copy, references to the weights of the original
        held["_flat_weight_refs"] = [ref for ref in module._flat_weight_refs if not _refers_to_weight(ref)]
    return held


def _refers_to_weight(ref: Any) -> bool:
    return ref is None or (
        isinstance(ref, weakref.ref) and isinstance(ref(), nn.Parameter | None) and not getattr(ref(), "__dict__", 0)
    )


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


def is_otherwise(before: Held, after: Held) -> str:
    """The name of the first state that differs at two times, tensors that were replaced included; "" if none does."""
    for name, part in after.parts.items():
        pairs = zip(before.tensors.get(name, []), after.tensors[name], strict=False)
        if before.parts.get(name) != part or any(old is not new or was != now for (old, was), (new, now) in pairs):
            return name
    return ""


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


class _Writer(pickle.Pickler):
    """Serialises an object's state: tensors by their shape, functions by their closures, classes by their names.

    Args:
        classes: receives the author's classes that are encountered.
        codes: receives the code of the functions that are encountered.
        originals: the identities of the parts of the network of which this one is a copy.
        by_identity: whether objects that are not inspected must be the same ones; otherwise their type is enough.
    """

    def __init__(
        self,
        classes: dict[type, None] | None = None,
        codes: set[types.CodeType] | None = None,
        originals: Collection[int] = (),
        *,
        by_identity: bool = True,
    ) -> None:
        self._stream = io.BytesIO()
        super().__init__(self._stream, protocol=4)
        self._classes = {} if classes is None else classes
        self._codes = set() if codes is None else codes
        self._originals = originals
        self._by_identity = by_identity
        self._id: Callable[[Any], int] = id if by_identity else lambda item: 0
        self.tensors: list[tuple[torch.Tensor, Any]] = []
        self.closed = ""
        self.of_given = ""
        self.scripts: dict[str, Any] = {}
        self.sets = False
        self.caches: dict[int, tuple[Any, int]] = {}

    def bytes_of(self, item: Any) -> bytes:
        """The state as bytes, equal for equal states."""
        self.dump(item)
        return self._stream.getvalue()

    def persistent_id(self, item: Any) -> Any:
        """Assign names to objects that are not inspected."""
        if isinstance(item, PLAIN):
            self.sets = self.sets or is_unordered(item)
            if isinstance(item, dict | set | frozenset) and any(map(self._is_original, item)):
                self.of_given = "key"
            return None
        if self._is_original(item):
            self.of_given = self.of_given or "held"
        if isinstance(item, torch.Tensor):
            self.tensors.append((item, _numbers_of(item)))
            return ("tensor", tuple(item.shape), str(item.dtype), type(item).__name__, getattr(item, "__dict__", None))
        if isinstance(item, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            self.scripts[str(getattr(item, "name", None) or type(item).__name__)] = item
            return ("script", self._id(item))
        if isinstance(item, torch.Generator):
            return ("generator", item.get_state().numpy().tobytes())
        if isinstance(item, FUNCTIONS) and asks_more_than_its_arguments(item):
            self.closed = self.closed or item.__name__
        if isinstance(item, _WHOLE) or (isinstance(item, FUNCTIONS) and isinstance(_self_of(item), _WHOLE)):
            return (type(item).__name__, self._id(item))
        if isinstance(item, type):
            if is_own_class(item):
                self._classes.setdefault(item)
            return ("class", self._id(item))
        return None

    def _is_original(self, item: Any) -> bool:
        item = item() if isinstance(item, weakref.ref) else item
        return id(item) in self._originals

    def reducer_override(self, item: Any) -> Any:
        """How functions, frames and objects that cannot be pickled are inspected."""
        if isinstance(item, types.FunctionType):
            self._codes.add(item.__code__)
            own = _is_own_function(item)
            held = (item.__closure__, item.__defaults__, item.__kwdefaults__, vars(item)) if own else ()
            # torch numbers its wrappers of functions, each copy's by itself
            attached = vars(item) if self._by_identity else {}
            return tuple, ((self._id(item),),), (*held, attached)
        if (frame := next((name for kind, name in _FRAMES.items() if isinstance(item, kind)), None)) is not None:
            frame = getattr(item, frame)
            return tuple, ((self._id(item),),), () if frame is None else (frame.f_lasti, dict(frame.f_locals))
        attributes = getattr(item, "__dict__", None)  # of `list[int]` those of its class, which are compared elsewhere
        beside = (attributes if isinstance(attributes, dict) else None, _referents(item))
        if is_own_class(type(item)):  # its own pickling methods are ignored
            self._classes.setdefault(type(item))
            return tuple, ((self._id(type(item)), *self._built_in_part(item)),), beside
        try:
            reduced = item.__reduce_ex__(4)
        except Exception:  # only the objects that it refers to can be compared
            self._note_closed(item)
            # such objects may be made anew each time, as the `__dict__` of a class is
            which = 0 if isinstance(item, _SHOWN) else self._id(item)
            return tuple, ((type(item).__name__, which),), beside
        if isinstance(item, Cached) and _is_own_function(item.__wrapped__):
            self.caches[id(item)] = (item, item.cache_info().hits)
        if isinstance(reduced, str):
            return tuple, ((reduced, self._id(item)),), beside
        # compare the constructor's name and its arguments, not the constructor itself
        maker, arguments, *rest = reduced
        return tuple, ((getattr(maker, "__name__", ""), *arguments),), (*rest[:1], *beside), *rest[1:]

    def _built_in_part(self, item: Any) -> list[Any]:
        """The state that an object of an author's class inherits from a built-in or extension class."""
        built_in = [cls for cls in type(item).__mro__ if _is_compiled(cls)]
        if built_in[0] is object:
            return []
        if built_in[0] in (list, tuple, set, frozenset, dict, collections.deque):
            return [list(item.items() if isinstance(item, dict) else item)]
        try:
            return list(item.__reduce_ex__(4)[1:3])
        except Exception:  # an object that cannot be serialised ends the proof; the message names it
            self._note_closed(item)
            return []

    def _note_closed(self, item: Any) -> None:
        """Record an object that may hold data beyond the objects it refers to; no call shows that such data is read."""
        compiled = next(cls for cls in type(item).__mro__ if _is_compiled(cls))
        if compiled is not object and compiled not in _SHOWN and not _OF_LOCKS.issuperset(_readable_names(compiled)):
            self.closed = self.closed or f"{type(item).__module__}.{type(item).__name__}"


_WHOLE = (
    *(types.ModuleType, types.CodeType, type, torch.dtype, torch.device, type(None)),
    *(types.FrameType, types.TracebackType, logging.Logger),
)
"""Types that are compared by identity. A read of a frame or of a logger's attributes ends the proof."""
_SHOWN = (
    *(types.CellType, types.MethodType, property, staticmethod, classmethod),
    *(memoryview, types.MappingProxyType, types.UnionType, weakref.ReferenceType),
)
"""Types whose only state is the objects that they refer to."""


def _is_own_function(item: Any) -> bool:
    return isinstance(item, types.FunctionType) and is_own_code(item.__code__.co_filename, item.__globals__)


def _self_of(function: Any) -> Any:
    return getattr(function, "__self__", None)


def _is_compiled(cls: type) -> bool:
    """Whether a class is written in C: it is static or immutable, or its objects have additional memory."""
    flags, members = cls.__flags__, sum(isinstance(item, types.MemberDescriptorType) for item in vars(cls).values())
    room = cls.__basicsize__ - (cls.__base__.__basicsize__ if cls.__base__ else 0)
    # Py_TPFLAGS_HEAPTYPE and IMMUTABLETYPE; a class of Python adds its slots, and places for attributes and references
    return not flags & 1 << 9 or bool(flags & 1 << 8) or room > (members + 2) * _POINTER


_POINTER = struct.calcsize("P")


def _readable_names(cls: type) -> set[str]:
    """The names that a program reads by attributes, operators, loops or calls, without naming a method."""
    data = (types.GetSetDescriptorType, types.MemberDescriptorType)
    return {name for name, item in vars(cls).items() if name.startswith("__") or isinstance(item, data)}


def _referents(item: Any) -> list[Any]:
    """The objects that an object refers to in slots and in compiled classes, without its class and attributes."""
    if isinstance(item, weakref.ref):
        return [item()]
    if isinstance(item, memoryview):
        return [item.tobytes()]
    own = getattr(item, "__dict__", None)
    if not _is_compiled(type(item)) and own is not None and all("__slots__" not in vars(c) for c in type(item).__mro__):
        return []
    return [part for part in gc.get_referents(item) if part is not own and not isinstance(part, _WHOLE)]


def _numbers_of(tensor: torch.Tensor) -> Any:
    """The version of a tensor and its numbers; a write through `.data` or a NumPy array does not change the version."""
    version = 0 if tensor.is_inference() else tensor._version
    try:
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    except Exception:  # sparse, quantised or empty tensors, and tensors without values
        return (version,)
    return version, zlib.crc32(raw.data)
