"""Attributes that the network's own code reads and that no input determines.

The profiler records calls, but not reads of attributes. Therefore names are looked up in the code.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from symcheck.engine.networks.capture.call_effects import words_of

_OF_THE_PROCESS = ("argv", "orig_argv", "flags", "warnoptions", "modules", "_xoptions", "stdin")
"""What `sys` holds of how the process was started, and of what else it has loaded."""
Cached = functools._lru_cache_wrapper
"""The kind of what `functools.cache` and `lru_cache` make."""
_OF_A_CALL = "needs_input_grad"
"""By which the context of an autograd function tells whether gradients of the input are recorded."""


def read_outside(functions: Mapping[types.CodeType, dict[str, Any]]) -> str:
    """The first name by which code reads how the process was started or how a call is made; "" if there is none.

    Args:
        functions: the network's own code that runs in a call, with its globals.
    """
    held = [getattr(sys, name) for name in _OF_THE_PROCESS if hasattr(sys, name)] + [os.environ]
    for code, names in functions.items():
        words = words_of(code)
        if _OF_A_CALL in words:
            return _OF_A_CALL
        if any(names.get(word) is sys for word in words):
            read = next((name for name in _OF_THE_PROCESS if name in words), "")
            if read:
                return f"sys.{read}"
        for word in words:
            if any(names.get(word) is item for item in held):
                return word
    return ""


@contextmanager
def without_caches(functions: Mapping[types.CodeType, dict[str, Any]]) -> Iterator[None]:
    """Disable `functools.cache` of the network's own code inside this block, so that its computation can be watched."""
    changed: list[tuple[dict[str, Any], str, Any]] = []
    for scope in {id(scope): scope for scope in functions.values()}.values():
        cached = {name: item for name, item in scope.items() if isinstance(item, Cached)}
        for name, item in cached.items():
            changed.append((scope, name, item))
            scope[name] = item.__wrapped__
    try:
        yield
    finally:
        for scope, name, item in changed:
            scope[name] = item
