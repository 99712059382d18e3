"""Detects state other than the input that a call of a network reads.

The functions called by the network's own code are monitored. A function that reads a clock, the environment, files or
memory addresses may return a different value in the next call.
"""

from __future__ import annotations

import gc
import inspect
import io
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from symcheck.engine.networks.capture.held_state import PLAIN, is_own_class
from symcheck.engine.networks.capture.library_settings import TELLING
from symcheck.engine.networks.capture.own_code import (
    GENERATED,
    LIBRARY,
    PACKAGES,
    is_importing,
    is_own_code,
)
from symcheck.engine.networks.subject.compiled import backend_of, is_torchs_backend, name_of_backend

_OUTSIDE_NAMES = (
    "time os posix random _random secrets uuid datetime threading _thread socket subprocess io _io select gc "
    "inspect ctypes _ctypes tempfile pathlib weakref "
)
_OUTSIDE = frozenset(_OUTSIDE_NAMES.split())
"""Modules whose functions depend on more than their arguments: clocks, environment variables, files, randomness,
memory."""
_PURE_NAMES = (
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc "
    "typing types abc _abc enum copy copyreg contextlib dataclasses numbers string re _sre fractions "
    "bisect _bisect heapq _heapq array struct _struct keyword reprlib"
)
_PURE = frozenset(_PURE_NAMES.split())
"""Standard-library modules whose functions depend on their arguments only."""
_OPERATORS = tuple(f"torch._C._{name}" for name in ["nn", "fft", "linalg", "special", "sparse"])
_SETTINGS_NAMES = (
    "torch.compiler torch._dynamo torch.backends torch.overrides torch.utils._python_dispatch torch._subclasses "
    "torch.random torch.profiler torch.fx torch._guards torch.multiprocessing torch.utils._config_module"
)
_SETTINGS = tuple(_SETTINGS_NAMES.split())
"""Parts of torch that affect how a result is computed, but not its value."""
_WRAPPER = "compile_wrapper"
_COMPILED = frozenset([_WRAPPER, "_fn", "__call__"])
"""Functions that call compiled code."""
_ASKING_NAMES = (
    "id hash __import__ globals vars dir open input exec eval compile breakpoint cache_info cache_clear geterr "
    "get_printoptions locals is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
    "is_autocast_cpu_enabled _getframe is_contiguous stride storage_offset data_ptr getrefcount is_compiling "
    "get_default_dtype result_type promote_types can_cast "
    "is_anomaly_enabled get_num_threads initial_seed get_rng_state perf_counter monotonic "
    "_is_functional_tensor fromfile memmap get_device is_shared "
)
_ASKING = frozenset(_ASKING_NAMES.split())
"""Functions that reveal how a call is made, or where a tensor is stored, but not its values."""


@dataclass
class Watched:
    """The functions that the network's own code ran and called in one call.

    Attributes:
        functions: the code that ran, with its globals.
        cells: the variables of enclosing functions that this code names, with their values.
        backend: a graph compiler other than torch's under which a part runs; "" if there is none.
        asked: the first function called whose result no input determines; "" if there is none.
        source: file and line of that call.
    """

    functions: dict[types.CodeType, dict[str, Any]] = field(default_factory=dict)
    cells: dict[types.CodeType, dict[str, Any]] = field(default_factory=dict)
    backend: str = ""
    asked: str = ""
    source: str = ""

    def note(self, name: str, frame: types.FrameType) -> None:
        """Record the first such function."""
        if not self.asked:
            self.asked, self.source = name, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextmanager
def watched_calls() -> Iterator[Watched]:
    """While active, record which functions of the network's own code run, and the functions that they call."""
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
            if argument is io.open and _is_of_packages(frame.f_code.co_filename) and not is_importing(frame, outermost):
                watched.note("open", frame)
            elif is_own(frame) and asks_more_than_its_arguments(argument):
                watched.note(getattr(argument, "__name__", "a compiled function"), frame)
        elif event == "call":
            code, caller = frame.f_code, _caller_outside(frame)
            if code.co_name == _WRAPPER and (callback := frame.f_locals.get("callback")) is not None:
                backend = backend_of(callback)
                if not is_torchs_backend(backend):
                    watched.backend = name_of_backend(backend)
            if is_own(frame):
                watched.functions[code] = frame.f_globals
                if code.co_freevars and code not in watched.cells:
                    outer = frame.f_locals
                    watched.cells[code] = {name: outer[name] for name in code.co_freevars if name in outer}
            elif caller is not None and is_own(caller):
                module = str(frame.f_globals.get("__name__", ""))
                direct = caller is frame.f_back and (
                    code.co_name in _ASKING or (module.startswith(_SETTINGS) and code.co_name not in _COMPILED)
                )
                direct = direct or (caller is frame.f_back and module.startswith("torch") and _takes_nothing(code))
                outside = _is_of_python(code.co_filename) and not _is_package(code.co_filename)
                strange = outside and code.co_name not in TELLING and module.partition(".")[0] not in _PURE
                strange = strange and not (module == "logging" and caller is not frame.f_back)  # within one that tells
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


def _is_of_python(file: str) -> bool:
    """Whether code belongs to Python's standard library; parts of it, such as `os.path`, are frozen."""
    return file.startswith((LIBRARY[0], "<frozen ")) and not file.startswith("<frozen importlib")


def _is_package(file: str) -> bool:
    return any(part in file for part in PACKAGES)


def _is_of_packages(file: str) -> bool:
    """Whether code belongs to a package other than torch; files that such a package reads are not counted as input."""
    return _is_package(file) and not file.startswith(LIBRARY[1])


def _takes_nothing(code: types.CodeType) -> bool:
    """Whether a function has no parameters, so that its result is a setting or describes where the code runs."""
    given = (
        code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    )
    return given == 0 and code.co_name not in ("is_scripting", "<module>", "<lambda>")


def asks_more_than_its_arguments(function: Any) -> bool:
    """Whether the result of a compiled function may depend on more than its arguments; True if unknown."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if name in _ASKING or isinstance(owner, _CHANCE):
        return True
    if owner is None or isinstance(owner, PLAIN):
        module = getattr(function, "__module__", None) or ""
    elif isinstance(owner, types.ModuleType | type):
        module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    else:
        module = type(owner).__module__
    if isinstance(owner, type) and is_own_class(owner):
        return False
    # torch keeps operators in separate modules from the functions that read or change settings
    if isinstance(owner, types.ModuleType) and module.startswith("torch"):
        return not module.startswith(_OPERATORS)
    return bool(module) and module.partition(".")[0] not in (*_PURE, "torch", "numpy")


def _caller_outside(frame: types.FrameType) -> types.FrameType | None:
    """The calling frame, ignoring detours through the standard library."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith((LIBRARY[0], *GENERATED)):
        # third-party packages are installed below the same folder
        if any(part in caller.f_code.co_filename for part in PACKAGES):
            break
        caller = caller.f_back
    return caller


_CHANCE = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)


def called_twice(run: Callable[[], Any]) -> Watched:
    """Call the network twice; return what was recorded in the second call."""
    run()
    with watched_calls() as watched:
        run()
    return watched
