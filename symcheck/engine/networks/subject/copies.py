"""Deep copies of modules, independent of how their classes define copying.

A class may define how it is copied or pickled (`__deepcopy__`, `__getstate__`, `__reduce_ex__`). Such a copy may lack
attributes and compute a different function. Verdicts must concern the network as given.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

_HOOKS = frozenset(["__deepcopy__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs_ex__"])


@contextmanager
def copied_as_they_are(net: nn.Module) -> Iterator[None]:
    """Inside this block, `copy.deepcopy` copies the modules of a network attribute by attribute.

    This applies to classes in the user's own files that define how they are copied. Classes of packages are unaffected.
    So are objects that are not modules: a sentinel, for instance, must stay the same object.

    Args:
        net: the network that will be copied.
    """
    classes = {type(module) for module in net.modules() if _defines_copies(type(module))}
    previous = [(cls, vars(cls).get("__deepcopy__")) for cls in classes]
    for cls in classes:
        cls.__deepcopy__ = _copy_attributes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for cls, hook in previous:
            if hook is None:
                del cls.__deepcopy__  # type: ignore[attr-defined]
            else:
                cls.__deepcopy__ = hook  # type: ignore[attr-defined]


def _defines_copies(cls: type) -> bool:
    return any(_HOOKS & vars(base).keys() and _is_users(base) for base in cls.__mro__)


def _is_users(cls: type) -> bool:
    """Whether a class comes from the user's own files, not from Python, torch or another package."""
    package = cls.__module__.partition(".")[0]
    if package in sys.stdlib_module_names - {"__main__"} or package in ("torch", "symcheck"):
        return False
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _copy_attributes(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    """A copy with copies of all attributes, in `__dict__` and in slots."""
    made: nn.Module = object.__new__(type(module))
    memo[id(module)] = made
    made.__dict__.update(copy.deepcopy(vars(module), memo))
    for cls in type(module).__mro__:
        for name in slots_of(cls):
            if hasattr(module, name):
                object.__setattr__(made, name, copy.deepcopy(getattr(module, name), memo))
    return made


def slots_of(cls: type) -> list[str]:
    """The names of the attribute slots of a class, without those of its bases.

    Args:
        cls: any class.
    """
    slots = vars(cls).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if name not in ("__dict__", "__weakref__")]
