"""Detects settings of Python, torch and NumPy that the network's own code reads.

A setting of a library (`torch._tensor_str.PRINT_OPTS`, `warnings.filters`, `sys.flags`) belongs to the process and is
not an input. The profiler records calls, but not reads of attributes. Therefore chains of names in the bytecode are
followed.
"""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import itertools
import logging
import numbers
import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import constraints

from symcheck.engine.networks.capture.asking_functions import FUNCTIONS, asks_more_than_its_arguments
from symcheck.engine.networks.capture.instructions import steps_of
from symcheck.engine.networks.capture.own_code import is_own_file, words_of

_CONSTANT_NAMES = (
    "pi e tau inf nan infj nanj infty euler_gamma newaxis maxsize maxunicode hexversion platform byteorder version "
    "version_info float_info int_info hash_info thread_info implementation api_version copyright float_repr_style "
    "sep linesep name curdir pardir extsep builtin_module_names stdlib_module_names ascii_letters ascii_lowercase "
    "ascii_uppercase digits hexdigits octdigits punctuation printable whitespace cuda hip debug git_version"
)
_CONSTANTS = frozenset(_CONSTANT_NAMES.split())
"""Lower-case library names of numbers and strings that stay constant while a process runs."""
_FIXED = (
    *(types.ModuleType, type, enum.Enum, type(NotImplemented), type(Ellipsis)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, np.dtype, constraints.Constraint),
)
_PLAIN = (numbers.Number, str, bytes, tuple)
_WRITTEN_TO = frozenset(["write", "flush"])
"""Methods that only write to a stream, which does not affect the computation."""
TELLING = frozenset(["debug", "info", "warning", "error", "exception", "critical", "log", "warn"])
"""Functions that log or warn and return nothing."""
_OF_ATTRIBUTES = frozenset(["LOAD_ATTR", "IMPORT_FROM", "STORE_ATTR", "DELETE_ATTR"])
_WITHOUT_FILE = sys.stdlib_module_names - {"__main__"}
Cells = Mapping[types.CodeType, Mapping[str, Any]]


def setting_read(net: nn.Module, functions: Mapping[types.CodeType, dict[str, Any]], cells: Cells) -> str:
    """The first setting of a library that code reads or writes, by its dotted name; "" if there is none.

    Args:
        net: the network, of which attributes may be modules of Python.
        functions: the network's own code that runs in a call, with its globals.
        cells: the variables of enclosing functions that this code names, with their values.
    """
    held = {
        key: item for part in net.modules() for key, item in vars(part).items() if isinstance(item, types.ModuleType)
    }
    library, words = _Library(), set().union(*map(words_of, functions))
    for code, names in functions.items():
        reader = _Reader({**vars(builtins), **names, **cells.get(code, {})}, held, library, words)
        if reader.may_read(code) and (read := reader.read_by(code)):
            return read
    return ""


class _Reader:
    """Follows names and attributes through bytecode, instruction by instruction.

    Args:
        known: the values of names defined outside the function.
        held: modules of Python that are attributes of the network.
        library: the objects in modules of libraries.
        words: the names in all of the network's own code.
    """

    def __init__(self, known: Mapping[str, Any], held: Mapping[str, Any], library: _Library, words: set[str]) -> None:
        self._known, self._held, self._library, self._words = known, held, library, words
        self._local: dict[str, Any] = {}

    def may_read(self, code: types.CodeType) -> bool:
        """Whether the names in code, in any order, could lead to a setting: a cheap test before the exact one."""
        words = {part for word in (*code.co_names, *code.co_freevars) for part in (word, word.rpartition(".")[2])}
        roots = [self._known.get(word, self._held.get(word)) for word in words]
        roots += [sys.modules.get(word) for word in code.co_names]
        if any(item in self._library or isinstance(item, logging.Logger) or _asks(item) for item in roots):
            return True
        met: dict[int, Any] = {id(item): item for item in roots if is_of_library(item)}
        waiting = [builtins, *met.values()]
        while waiting:
            item = waiting.pop()
            for word in words | self._words:
                part = _part(item, word)
                if is_setting(word, part) or _asks(part):
                    return True
                if id(part) not in met and is_of_library(part):
                    met[id(part)] = part
                    waiting.append(part)
        return bool(met) and any(step.name == "STORE_ATTR" for step in steps_of(code))

    def read_by(self, code: types.CodeType) -> str:
        """The dotted name of the first setting."""
        every = steps_of(code)
        # a marker of a call, before the first name of the called object or after the last
        marked = {id(step) for pair in itertools.pairwise(every) for step in pair if pair[0].name == "PUSH_NULL"}
        marked |= {id(step) for step, after in itertools.pairwise(every) if after.name == "PUSH_NULL"}
        steps = [step for step in every if step.name != "PUSH_NULL"]
        top: Any = None
        dotted, module, is_called = "", None, False
        for place, step in enumerate(steps):
            begins = step.name not in _OF_ATTRIBUTES
            is_called = (is_called and not begins) or step.is_method or id(step) in marked
            word, following = str(step.value), steps[place + 1 : place + 2]
            if (
                is_of_library(top)
                and step.name not in (*_OF_ATTRIBUTES, "STORE_FAST", "STORE_DEREF")
                and (told := self._told_beyond(top))
            ):
                return f"{dotted}.{told}"
            then = str(following[0].value) if following and following[0].name == "LOAD_ATTR" else ""
            if step.name in ("LOAD_GLOBAL", "LOAD_DEREF"):
                top, dotted = self._known.get(word), word
                asks = top in self._library or (top is vars(builtins).get(word) and is_setting(word, top))
                if isinstance(top, logging.Logger):
                    asks = bool(then) and then not in TELLING
                asks = asks or (_asks(top) and not is_called)  # calls are watched
            elif step.name == "LOAD_FAST":
                top, dotted, asks = self._local.get(word), word, False
            elif step.name == "IMPORT_NAME":
                whole = bool(following) and following[0].name == "IMPORT_FROM"
                top = module = sys.modules.get(word if whole else word.partition(".")[0])
                dotted, asks = word, False
            elif step.name in _OF_ATTRIBUTES:
                top = module if step.name == "IMPORT_FROM" else top
                if step.name in ("STORE_ATTR", "DELETE_ATTR") and is_of_library(top):
                    return f"{dotted}.{word}"
                inner = _part(top, word) if is_of_library(top) else self._held.get(word)
                asks = is_of_library(top) and (is_setting(word, inner) or (_asks(inner) and not is_called))
                asks = asks and not (inner in (sys.stdout, sys.stderr) and (not then or then in _WRITTEN_TO))
                top, dotted = inner, f"{dotted}.{word}"
            else:
                if step.name == "STORE_FAST":
                    self._local[word] = top
                top, asks = None, False
            if asks:
                return dotted
        return ""

    def _told_beyond(self, item: Any) -> str:
        """A setting that code may read from a module or class that it passes on."""
        return next((word for word in self._words if is_setting(word, _part(item, word))), "")


def _asks(item: Any) -> bool:
    """Whether an object is a compiled function whose result depends on more than its arguments.

    If such a function is passed on, its calls are not recorded.
    """
    return isinstance(item, FUNCTIONS) and asks_more_than_its_arguments(item)


def _part(item: Any, word: str) -> Any:
    """An attribute of a module or class of a library, without running any code."""
    return inspect.getattr_static(item, word, None)


def is_of_library(item: Any) -> bool:
    """Whether an object is a module or class of a library, rather than of the network's author."""
    if isinstance(item, type):
        item = sys.modules.get(item.__module__)
    if not isinstance(item, types.ModuleType):
        return False
    file = vars(item).get("__file__")
    return not is_own_file(file) if file else item.__name__.partition(".")[0] in _WITHOUT_FILE


def is_setting(word: str, part: Any) -> bool:
    """Whether an attribute of a library is neither code nor a constant."""
    if part is None or isinstance(part, _FIXED) or callable(part):
        return False
    if inspect.isdatadescriptor(part) or hasattr(type(part), "__get__"):
        return False  # a descriptor: its value belongs to an instance, not to the library
    if isinstance(part, _PLAIN):
        return not (word.isupper() or word.startswith("__") or word in _CONSTANTS)
    return word not in _CONSTANTS and not (word.startswith("__") and word.endswith("__")) and not _is_stateless(part)


def _is_stateless(part: Any) -> bool:
    """Whether an object of a library has no state, as the constraints of torch's distributions."""
    return not isinstance(part, list | dict | set | frozenset) and getattr(part, "__dict__", None) == {}


class _Library:
    """Objects defined in library modules, which an author's module may import by name."""

    def __contains__(self, item: Any) -> bool:
        if item is None or callable(item) or isinstance(item, (*_FIXED, *_PLAIN, torch.Tensor, np.ndarray)):
            return False
        return (
            not isinstance(item, nn.Module | logging.Logger) and not _is_stateless(item) and id(item) in self._objects
        )

    @functools.cached_property
    def _objects(self) -> set[int]:
        modules = [item for item in list(sys.modules.values()) if is_of_library(item)]
        parts = [part for module in modules for part in list(vars(module).items())]
        return {id(item) for word, item in parts if not word.startswith("__")}
