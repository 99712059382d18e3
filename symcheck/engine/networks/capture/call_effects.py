"""Detects state other than the input that a call of a network reads.

The functions called by the network's own code are monitored. A function that reads a clock, the environment, files or
memory addresses may return a different value in the next call.
"""

from __future__ import annotations

import gc
import inspect
import io
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symcheck.engine.networks.capture.asking_functions import ASKING, OUTSIDE, PURE, asks_more_than_its_arguments
from symcheck.engine.networks.capture.library_settings import TELLING
from symcheck.engine.networks.capture.own_code import (
    GENERATED,
    LIBRARY,
    PACKAGES,
    is_importing,
    is_own_code,
)
from symcheck.engine.networks.subject.compiled import backend_of, is_torchs_backend, name_of_backend

_SETTINGS_NAMES = (
    "torch.compiler torch._dynamo torch.backends torch.overrides torch.utils._python_dispatch torch._subclasses "
    "torch.random torch.profiler torch.fx torch._guards torch.multiprocessing torch.utils._config_module"
)
_SETTINGS = tuple(_SETTINGS_NAMES.split())
"""Parts of torch that affect how a result is computed, but not its value."""
_WRAPPER = "compile_wrapper"
_COMPILED = frozenset([_WRAPPER, "_fn", "__call__"])
"""Functions that call compiled code."""


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
                    code.co_name in ASKING or (module.startswith(_SETTINGS) and code.co_name not in _COMPILED)
                )
                direct = direct or (caller is frame.f_back and module.startswith("torch") and _takes_nothing(code))
                outside = _is_of_python(code.co_filename) and not _is_package(code.co_filename)
                strange = outside and code.co_name not in TELLING and module.partition(".")[0] not in PURE
                strange = strange and not (module == "logging" and caller is not frame.f_back)  # within one that tells
                if direct or strange or module.partition(".")[0] in OUTSIDE:
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


def _caller_outside(frame: types.FrameType) -> types.FrameType | None:
    """The calling frame, ignoring detours through the standard library."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith((LIBRARY[0], *GENERATED)):
        # third-party packages are installed below the same folder
        if any(part in caller.f_code.co_filename for part in PACKAGES):
            break
        caller = caller.f_back
    return caller


def called_twice(run: Callable[[], Any]) -> Watched:
    """Call the network twice; return what was recorded in the second call."""
    run()
    with watched_calls() as watched:
        run()
    return watched
