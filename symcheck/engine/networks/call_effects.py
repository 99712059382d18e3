"""What a call of a network changes outside its result, and what it reads beside its input.

A counter, a list that grows, a global variable or a default argument leaves no operator in a graph. So everything that
the network and its own code hold is compared before and after calls, and the functions that this code calls are
watched: those that read a clock, the environment, files or memory addresses can answer otherwise next time.
"""

from __future__ import annotations

import gc
import io
import pickle
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.statements.statement import Statement, state

_LIBRARY = tuple(str(Path(path)) for path in (sysconfig.get_paths()["stdlib"], Path(torch.__file__).parent))
_PACKAGES = ("site-packages", "dist-packages")
_PURE = frozenset(("jax", "jaxlib", "jaxtyping", "equinox", "flax", "wadler_lindig"))
"""Libraries of pure functions: what they keep between calls are compiled functions and their names."""
_OWN = str(Path(__file__).parents[2])
_OUTSIDE_NAMES = (
    "time os posix random _random secrets uuid datetime threading _thread socket subprocess io _io select gc "
    "inspect ctypes _ctypes tempfile pathlib weakref "
)
_OUTSIDE = frozenset(_OUTSIDE_NAMES.split())
"""Modules whose functions answer by what is no input: clock, environment, files, chance, memory."""
_ASKING_NAMES = (
    "id hash globals locals is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
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
_PLAIN = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


@dataclass
class Watched:
    """What the network's own code did in one call.

    Attributes:
        functions: the code that ran, with its globals.
        asked: the first function that it called whose answer no input determines; "" where there is none.
        source: file and line of that call.
    """

    functions: dict[types.CodeType, dict[str, Any]] = field(default_factory=dict)
    asked: str = ""
    source: str = ""

    def note(self, name: str, frame: types.FrameType) -> None:
        """Keep the first function that was asked."""
        if not self.asked:
            self.asked, self.source = name, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextmanager
def watched_calls() -> Iterator[Watched]:
    """While active, the network's own code is watched: which functions run, and what they call."""
    watched = Watched()
    kinds: dict[types.CodeType, bool] = {}

    def is_own(code: types.CodeType) -> bool:
        if code not in kinds:
            kinds[code] = is_own_file(code.co_filename)
        return kinds[code]

    def profile(frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if is_own(frame.f_code):
                owner = getattr(argument, "__self__", None)
                module = getattr(argument, "__module__", None) or getattr(owner, "__name__", None) or ""
                name = getattr(argument, "__name__", "")
                if name in _ASKING or str(module).partition(".")[0] in _OUTSIDE or isinstance(owner, _CHANCE):
                    watched.note(name, frame)
        elif event == "call":
            code, caller = frame.f_code, _caller_outside(frame)
            if is_own(code):
                watched.functions[code] = frame.f_globals
            elif caller is not None and is_own(caller.f_code):
                module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
                if module in _OUTSIDE or (code.co_name in _ASKING and caller is frame.f_back):
                    watched.note(code.co_name, caller)

    before, collecting = sys.getprofile(), gc.isenabled()
    # What others hook into garbage collection (timers of test frameworks) is no code of the network.
    gc.disable()
    sys.setprofile(profile)
    try:
        yield watched
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()


def _caller_outside(frame: types.FrameType) -> types.FrameType | None:
    """The frame that called, the standard library's own detours left out."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith((_LIBRARY[0], "<")):
        # packages of others lie below the same folder
        if any(part in caller.f_code.co_filename for part in _PACKAGES):
            break
        caller = caller.f_back
    return caller


_CHANCE = (random.Random, np.random.RandomState, np.random.Generator)


def is_own_file(file: str) -> bool:
    """Whether code of this file is the network's own, and neither torch's, the standard library's nor ours."""
    if file.startswith("<"):  # graphs of torch are written to such files
        return False
    if any(part in file for part in _PACKAGES):
        if not _PURE.isdisjoint(Path(file).parts):
            return False
        return not file.startswith((_LIBRARY[1], str(Path(np.__file__).parent)))
    return not file.startswith((*_LIBRARY, _OWN))


@dataclass
class Held:
    """What a network and its own code hold at one time.

    Attributes:
        parts: by name, what is held beside tensors, as bytes that can be compared.
        tensors: by name, the tensors in the order in which they are reached, and how often each was written to.
    """

    parts: dict[str, bytes]
    tensors: dict[str, list[tuple[torch.Tensor, int]]]


def what_is_held(net: nn.Module, functions: dict[types.CodeType, dict[str, Any]]) -> Held:
    """Everything that a call can change without a trace in its graph.

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
    for code, names in functions.items():
        used = {name: names[name] for name in _names_of(code) if name in names}
        keep(f"a global of {code.co_name}", dict(used.items()))
    keep(
        GENERATORS,
        (random.getstate(), np.random.get_state(), torch.get_rng_state().numpy().tobytes()),  # noqa: NPY002
    )
    return held


def what_changed(before: Held, after: Held, *, stale: set[int] | None = None) -> Statement | None:
    """What calls changed.

    Args:
        before: what was held.
        after: what is held after them.
        stale: receives the identities of tensors that were replaced by others, which alone is no change: a result that
            is kept counts only where it is read again.

    Returns:
        The reason; None where nothing changed.
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
    """Where a call leaves something that a later one may read, by the reason that ended a proof; "" for other reasons.

    Args:
        reason: why there is no graph of every call.
    """
    what = str(reason.fields["what"]) if reason.code == "SYM183" else ""
    return "" if what == GENERATORS else what


def is_own_class(cls: type) -> bool:
    """Whether a class is written by the network's own author."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return file is not None and is_own_file(file)


def _names_of(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            names |= _names_of(item)
    return names


class _Writer(pickle.Pickler):
    """Writes what an object holds: tensors by their shape, functions by what they close over."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        super().__init__(self._stream, protocol=4)
        self.tensors: list[tuple[torch.Tensor, int]] = []

    def bytes_of(self, item: Any) -> bytes:
        """What the object holds, as bytes that are equal where it holds the same."""
        self.dump(item)
        return self._stream.getvalue()

    def persistent_id(self, item: Any) -> Any:
        """Name what is not looked into."""
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
            return ("generator", id(item), None if frame is None else frame.f_lasti)
        if isinstance(item, type) and not is_own_class(item):
            return ("class", id(item))
        return None

    def reducer_override(self, item: Any) -> Any:
        """How functions, classes and what refuses to be written are looked into."""
        if isinstance(item, types.FunctionType):
            if not is_own_file(item.__code__.co_filename):
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
        try:
            reduced = item.__reduce_ex__(4)
        except Exception:  # locks, files, handles: nothing to compare but which one it is
            return tuple, ((type(item).__name__, id(item)),)
        if isinstance(reduced, str):
            return tuple, ((reduced, id(item)),)
        # who makes it is not compared; what it is made of is
        maker, arguments, *rest = reduced
        return (tuple, ((getattr(maker, "__name__", ""), *arguments),), *rest)


def called_twice(run: Callable[[], Any]) -> Watched:
    """Call twice; of the second call what was watched."""
    run()
    with watched_calls() as watched:
        run()
    return watched
