"""Side effects of a network's call, and its reads of anything other than its input.

A counter, a growing list, a global variable or a default argument leaves no operator in a graph. Therefore all state of
the network and its own code is compared before and after calls, and the functions that this code calls are monitored:
those that read a clock, the environment, files or memory addresses may return something else next time.
"""

from __future__ import annotations

import builtins
import collections
import gc
import io
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.engine.networks.capture.own_code import (
    GENERATED,
    LIBRARY,
    PACKAGES,
    is_importing,
    is_own_code,
    is_own_file,
)
from symcheck.statements.statement import Statement, state

_OUTSIDE_NAMES = (
    "time os posix random _random secrets uuid datetime threading _thread socket subprocess io _io select gc "
    "inspect ctypes _ctypes tempfile pathlib weakref "
)
_OUTSIDE = frozenset(_OUTSIDE_NAMES.split())
"""Modules whose functions answer by what is no input: clock, environment, files, chance, memory."""
_PURE_NAMES = (
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc "
    "typing types abc _abc enum copy copyreg contextlib dataclasses numbers string re _sre fractions decimal "
    "statistics bisect _bisect heapq _heapq array struct _struct keyword reprlib"
)
_PURE = frozenset(_PURE_NAMES.split())
"""Modules of the standard library whose functions answer by their arguments."""
_TELLING = frozenset(["debug", "info", "warning", "error", "exception", "critical", "log", "warn"])
"""Functions that tell somebody something and answer nothing."""
_OPERATORS = ("torch._C._nn", "torch._C._fft", "torch._C._linalg", "torch._C._special")
_SETTINGS_NAMES = (
    "torch.compiler torch._dynamo torch.backends torch.overrides torch.utils._python_dispatch torch._subclasses "
    "torch.random torch.profiler torch.fx torch._guards torch.multiprocessing"
)
_SETTINGS = tuple(_SETTINGS_NAMES.split())
"""Parts of torch that tell how, and not what, is computed."""
_COMPILED = frozenset(["compile_wrapper", "_fn", "__call__"])
"""Functions by which compiled code is called."""
_ASKING_NAMES = (
    "id hash globals vars dir open input exec eval compile breakpoint cache_info cache_clear geterr get_printoptions "
    "locals is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
    "is_autocast_cpu_enabled _getframe is_contiguous stride storage_offset data_ptr getrefcount is_compiling "
    "get_default_dtype result_type promote_types can_cast "
    "is_anomaly_enabled get_num_threads initial_seed get_rng_state perf_counter monotonic "
    "_is_functional_tensor "
)
_ASKING = frozenset(_ASKING_NAMES.split())
"""Functions that tell how a call is made, or where a tensor lies, and not what it holds."""
GENERATORS = "a generator of random numbers"
"""What a network that draws changes; what it draws is fixed by a seed of the run."""
_OF_GRAPHS = ("_buffers", "_parameters", "training")
_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_PLAIN = (*_SCALARS, tuple, list, dict, set, frozenset)


@dataclass
class Watched:
    """The functions that the network's own code ran and called in one call.

    Attributes:
        functions: the code that ran, with its globals.
        asked: the first function called whose result no input determines; "" if there is none.
        source: file and line of that call.
    """

    functions: dict[types.CodeType, dict[str, Any]] = field(default_factory=dict)
    asked: str = ""
    source: str = ""

    def note(self, name: str, frame: types.FrameType) -> None:
        """Record the first such function."""
        if not self.asked:
            self.asked, self.source = name, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextmanager
def watched_calls() -> Iterator[Watched]:
    """Monitor the network's own code while active: which functions run, and what they call."""
    watched = Watched()
    kinds: dict[types.CodeType, bool] = {}
    outermost = sys._getframe(2)

    def is_own(frame: types.FrameType) -> bool:
        code = frame.f_code
        if code not in kinds:
            kinds[code] = is_own_code(code.co_filename, frame.f_globals)
        return kinds[code] and not is_importing(frame, outermost)

    def profile(frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if is_own(frame) and asks_more_than_its_arguments(argument):
                watched.note(getattr(argument, "__name__", "a compiled function"), frame)
        elif event == "call":
            code, caller = frame.f_code, _caller_outside(frame)
            if is_own(frame):
                watched.functions[code] = frame.f_globals
            elif caller is not None and is_own(caller):
                module = str(frame.f_globals.get("__name__", ""))
                direct = caller is frame.f_back and (
                    code.co_name in _ASKING or (module.startswith(_SETTINGS) and code.co_name not in _COMPILED)
                )
                outside = code.co_filename.startswith(LIBRARY[0]) and not _is_package(code.co_filename)
                strange = outside and code.co_name not in _TELLING and module.partition(".")[0] not in _PURE
                if direct or strange or module.partition(".")[0] in _OUTSIDE:
                    watched.note(code.co_name, caller)

    before = sys.getprofile()
    with collection_paused():
        sys.setprofile(profile)
        try:
            yield watched
        finally:
            sys.setprofile(before)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection, because its hooks (timers of test frameworks) are not code of the network."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _is_package(file: str) -> bool:
    return any(part in file for part in PACKAGES)


def asks_more_than_its_arguments(function: Any) -> bool:
    """Whether the result of a compiled function may depend on more than its arguments; True if not known."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if name in _ASKING or isinstance(owner, _CHANCE):
        return True
    if owner is None or isinstance(owner, _PLAIN):
        module = getattr(function, "__module__", None) or ""
    elif isinstance(owner, types.ModuleType | type):
        module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    else:
        module = type(owner).__module__
    if isinstance(owner, type) and is_own_class(owner):
        return False
    # torch keeps its operators apart from the functions that tell or change its settings
    if isinstance(owner, types.ModuleType) and module.startswith("torch"):
        return not module.startswith(_OPERATORS)
    return bool(module) and module.partition(".")[0] not in (*_PURE, "torch", "numpy")


def _caller_outside(frame: types.FrameType) -> types.FrameType | None:
    """The calling frame, ignoring detours through the standard library."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith((LIBRARY[0], *GENERATED)):
        # packages of others lie below the same folder
        if any(part in caller.f_code.co_filename for part in PACKAGES):
            break
        caller = caller.f_back
    return caller


_CHANCE = (random.Random, np.random.RandomState, np.random.Generator)


@dataclass
class Held:
    """The state of a network and its own code at one time.

    Attributes:
        parts: by name, state other than tensors, as comparable bytes.
        tensors: by name, the tensors in the order in which they are reached, with their version counters.
    """

    parts: dict[str, bytes]
    tensors: dict[str, list[tuple[torch.Tensor, int]]]


def what_is_held(net: nn.Module, functions: dict[types.CodeType, dict[str, Any]]) -> Held:
    """All state that a call can change without a trace in its graph.

    Args:
        net: the network.
        functions: the code that runs in a call, with its globals.

    Returns:
        Modules, globals that the code reads, the classes of the network, and the generators of random numbers.
    """
    held = Held({}, {})

    def keep(name: str, item: Any) -> None:
        writer = _Writer()
        held.parts[name] = writer.bytes_of(item)
        held.tensors[name] = writer.tensors

    seen: set[type] = set()
    for name, module in net.named_modules():
        # The code of a graph of torch is its graph: it keeps nothing but tensors, and torch's caches beside them vary.
        named = _OF_GRAPHS if isinstance(module, torch.fx.GraphModule) else vars(module).keys() - {"_modules"}
        keep(name or "the network", {key: vars(module)[key] for key in sorted(named)})
        seen.update(cls for cls in type(module).__mro__ if is_own_class(cls))
    for cls in seen:
        keep(cls.__qualname__, dict(vars(cls)))
    words = sorted(set().union(*map(words_of, functions)))
    for code, names in functions.items():
        used = {name: names[name] for name in sorted(_names_of(code)) if name in names}
        keep(f"a global of {code.co_name}", (used, _read_of_modules(code, names, words)))
    keep(
        GENERATORS,
        (random.getstate(), np.random.get_state(), torch.get_rng_state().numpy().tobytes()),  # noqa: NPY002
    )
    return held


def settings_read(functions: Mapping[types.CodeType, dict[str, Any]]) -> bytes:
    """The settings that the network's own code may read from modules, as bytes."""
    words = sorted(set().union(*map(words_of, functions)))
    return _Writer().bytes_of([_read_of_modules(code, names, words) for code, names in functions.items()])


def words_of(code: types.CodeType) -> set[str]:
    """The names that code uses, of variables and attributes, and strings in it that may be such names."""
    return _names_of(code) | {item for item in code.co_consts if isinstance(item, str) and item.isidentifier()}


def _read_of_modules(code: types.CodeType, names: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """What own code may read, by these names, from the modules among a function's globals, by dotted name."""
    read: dict[str, Any] = {}

    def look(item: Any, prefix: str, depth: int) -> None:
        for word in words:
            try:
                held = getattr(item, word)
            except Exception:  # a property of a library that does not answer here
                continue
            name = f"{prefix}.{word}"
            if isinstance(held, (*_PLAIN, np.ndarray)):
                read[name] = _brief(held)
            elif isinstance(held, types.ModuleType) and is_own_file(getattr(held, "__file__", None) or "<frozen"):
                read[name] = None  # looked into where the code names it
            elif isinstance(held, torch.Tensor):
                read[name] = held
            elif not callable(held) and depth:
                look(held, name, depth - 1)

    modules = {word: names[word] for word in _names_of(code) if isinstance(names.get(word), types.ModuleType)}
    for name, module in sorted({**modules, "builtins": builtins}.items()):
        look(module, name, 3)
    return read


def _brief(item: Any) -> Any:
    """Numbers and text unchanged; for containers their entries, up to a thousand."""
    if isinstance(item, dict):
        return "dict", len(item), [(_entry_of(key), _entry_of(item[key])) for key in list(item)[:1000]]
    if isinstance(item, set | frozenset):
        return type(item).__name__, len(item), sorted(repr(_entry_of(part)) for part in list(item)[:1000])
    if isinstance(item, list | tuple):
        return type(item).__name__, len(item), [_entry_of(part) for part in item[:1000]]
    return item


def _entry_of(part: Any) -> Any:
    """An entry of a container: numbers and text unchanged, other objects by identity."""
    return part if isinstance(part, _SCALARS) else id(part)


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
        for (old, version), (new, later) in zip(before.tensors[name], after.tensors[name], strict=True):
            if old is new and version != later:
                return state("SYM183", what=name)
            if old is not new and stale is not None:
                stale.update((id(old), id(new)))
    return None


def lasting_change(reason: Statement) -> str:
    """The state that a call leaves for later ones, from the reason that ended a proof; "" for other reasons.

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


def _names_of(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            names |= _names_of(item)
    return names


def _slots_of(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if name not in ("__dict__", "__weakref__")]


class _Writer(pickle.Pickler):
    """Serialises an object's state: tensors by their shape, functions by their closures."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        super().__init__(self._stream, protocol=4)
        self.tensors: list[tuple[torch.Tensor, int]] = []

    def bytes_of(self, item: Any) -> bytes:
        """The state as bytes, equal for equal states."""
        self.dump(item)
        return self._stream.getvalue()

    def persistent_id(self, item: Any) -> Any:
        """Name objects that are not inspected."""
        if isinstance(item, _PLAIN):
            return None
        if isinstance(item, torch.Tensor):
            self.tensors.append((item, 0 if item.is_inference() else item._version))
            return ("tensor", tuple(item.shape), str(item.dtype), type(item).__name__)
        if isinstance(item, nn.Module):
            # each module of a network is compared under its own name
            return ("module", id(item)) if isinstance(item, torch.jit.ScriptModule) else None
        if isinstance(item, torch.Generator):
            return ("generator", item.get_state().numpy().tobytes())
        if isinstance(item, types.ModuleType | types.CodeType | types.BuiltinFunctionType | torch.dtype | torch.device):
            return (type(item).__name__, id(item))
        if isinstance(item, types.GeneratorType):
            frame = item.gi_frame
            # its variables are looked into apart
            return (
                ("generator", id(item))
                if frame is None or not is_own_code(frame.f_code.co_filename, frame.f_globals)
                else None
            )
        if isinstance(item, type) and not is_own_class(item):
            return ("class", id(item))
        return None

    def reducer_override(self, item: Any) -> Any:
        """How functions, classes and objects that cannot be pickled are inspected."""
        if isinstance(item, types.FunctionType):
            if not is_own_code(item.__code__.co_filename, item.__globals__):
                return tuple, ((id(item),),)
            return tuple, ((id(item),),), (item.__closure__, item.__defaults__, item.__kwdefaults__, vars(item))
        if isinstance(item, types.CellType):
            try:
                return tuple, (("cell",),), item.cell_contents
            except ValueError:  # nothing in it yet
                return tuple, (("cell",),)
        if isinstance(item, types.MethodType):
            return tuple, (("method",),), (item.__func__, item.__self__)
        if isinstance(item, type):
            held = {
                key: value for key, value in vars(item).items() if key not in ("__dict__", "__weakref__", "__module__")
            }
            return tuple, ((id(item),),), held
        if isinstance(item, property | staticmethod | classmethod):
            return tuple, ((id(item),),)
        if isinstance(item, types.GeneratorType):
            frame: Any = item.gi_frame
            return tuple, ((id(item), frame.f_lasti),), dict(frame.f_locals)
        if is_own_class(type(item)):  # whatever it says of itself when it is written
            slots = [name for cls in type(item).__mro__ for name in _slots_of(cls)]
            held = {name: getattr(item, name, None) for name in slots}
            base: list[Any] = (
                [list(item)] if isinstance(item, list | tuple | set | frozenset | collections.deque) else []
            )
            base += [dict(item)] if isinstance(item, dict) else []
            return tuple, ((id(type(item)), *base),), {**held, **getattr(item, "__dict__", {})}
        try:
            reduced = item.__reduce_ex__(4)
        except Exception:  # locks, files, handles: nothing to compare but which one it is
            return tuple, ((type(item).__name__, id(item)),), dict(getattr(item, "__dict__", {}))
        if isinstance(reduced, str):
            return tuple, ((reduced, id(item)),)
        # who makes it is not compared; what it is made of is
        maker, arguments, *rest = reduced
        return (tuple, ((getattr(maker, "__name__", ""), *arguments),), *rest)


def called_twice(run: Callable[[], Any]) -> Watched:
    """Call the network twice; return what was recorded in the second call."""
    run()
    with watched_calls() as watched:
        run()
    return watched
