"""Detects attributes that the network's own code reads and that do not depend on the input.

The profiler records calls, but not reads of attributes. Therefore the names in the bytecode are checked.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from symcheck.engine.networks.capture.asking_functions import Cached
from symcheck.engine.networks.capture.instructions import steps_of
from symcheck.engine.networks.capture.own_code import is_own_class, words_of
from symcheck.engine.networks.subject.torchscript import nodes_of
from symcheck.statements.statement import Statement, state

_CLOCKS = frozenset(["datetime64"])
"""Types whose constructor may read a clock."""
_DEVICES = frozenset(["cuda", "mps", "xpu", "hpu", "mtia", "privateuseone"])
"""Device names; code that uses one asks on which device it runs."""
_REVEALING_NAMES = (
    "needs_input_grad __hash__ __repr__ __str__ __format__ __sizeof__ __globals__ f_globals __iter__ _validate_args "
    "gi_frame cr_frame ag_frame tb_frame f_back f_code f_locals f_builtins"
)
_REVEALING = frozenset(_REVEALING_NAMES.split())
"""Names that reveal whether gradients are recorded, expose a memory address without a call, or access attributes
indirectly or through a frame."""
_HERE = frozenset(["cpu", "meta"])
_OF_DEVICES = frozenset(["type", "index"])


def read_outside(functions: Mapping[types.CodeType, dict[str, Any]]) -> str:
    """The first name through which code reads how the process was started or how a call is made; "" if there is none.

    Args:
        functions: the network's own code that runs in a call, with its globals.
    """
    for code, names in functions.items():
        words = words_of(code)
        strings = [item for item in code.co_consts if isinstance(item, str)]
        if told := next((item for item in strings if item.partition(":")[0] in _DEVICES), ""):
            return told
        if "device" in words and (told := _asked_of_device(code, names)):
            return told
        if clock := words & _CLOCKS:
            return next(iter(clock))
        if asked := _REVEALING & words:
            return min(asked)
    return ""


def _asked_of_device(code: types.CodeType, names: Mapping[str, Any]) -> str:
    """How code with a device can identify it: by its type, or by comparison with another device; "" if it cannot."""
    read = {str(step.value) for step in steps_of(code) if step.name == "LOAD_ATTR" and not step.is_method}
    if "device" not in read:
        return ""
    others = [item for item in code.co_consts if isinstance(item, str) and item.partition(":")[0] in _HERE]
    others += [word for word in code.co_names if isinstance(names.get(word), torch.device)]
    return next((f"device.{word}" for word in read & _OF_DEVICES), "device" if others else "")


def compares_identities(functions: Iterable[types.CodeType]) -> bool:
    """Whether code compares the identities of objects, except with None or another constant."""
    for code in functions:
        for before, step in itertools.pairwise(steps_of(code)):
            equal = step.name == "COMPARE_OP" and ("==" in step.printed or "!=" in step.printed)
            if (step.name in ("IS_OP", "CONTAINS_OP") or equal) and before.name != "LOAD_CONST":
                return True
    return any({"is_", "is_not", "eq", "ne", "__eq__", "__ne__"} & words_of(code) for code in functions)


@contextmanager
def without_caches(net: nn.Module, functions: Mapping[types.CodeType, dict[str, Any]]) -> Iterator[set[int]]:
    """Disable `functools.cache` of the network's own code inside this block, so that its computation can be watched.

    Args:
        net: the network, whose methods may be cached.
        functions: the code that runs in a call, with its globals.

    Returns:
        The identities of the disabled caches, which are those of globals and of the network's classes.
    """
    changed: list[tuple[Callable[[str, Any], None], str, Any]] = []
    disabled: set[int] = set()
    kinds = {kind for module in net.modules() for kind in type(module).__mro__ if is_own_class(kind)}
    scopes: list[tuple[Callable[[str, Any], None], Mapping[str, Any]]] = [
        *((scope.__setitem__, scope) for scope in {id(scope): scope for scope in functions.values()}.values()),
        *((partial(setattr, kind), vars(kind)) for kind in kinds),
    ]
    for write, scope in scopes:
        for name, item in list(scope.items()):
            wrapper = type(item) if isinstance(item, staticmethod | classmethod) else None
            cached = item if wrapper is None else item.__func__
            if isinstance(cached, Cached):
                changed.append((write, name, item))
                disabled.add(id(cached))
                write(name, cached.__wrapped__ if wrapper is None else wrapper(cached.__wrapped__))
    try:
        yield disabled
    finally:
        for write, name, item in changed:
            write(name, item)


_CHANGING_LISTS = frozenset(
    ["append", "_set_item", "insert", "extend", "pop", "clear", "remove", "Delete", "reverse", "sort"]
)
_ASKING_NAMES = "is_grad_enabled is_contiguous stride requires_grad is_cuda layout device is_leaf data_ptr grad"
_ASKING = frozenset(_ASKING_NAMES.split())
_COMPARING = frozenset(["eq", "ne", "__is__", "__isnot__", "__contains__"])


def read_by_scripts(net: nn.Module, others: Mapping[str, Any]) -> Statement | None:
    """State that TorchScript inside a network changes, or reads besides its input; no Python code shows it.

    Args:
        net: the network.
        others: functions and modules of TorchScript that its code refers to, by name.

    Returns:
        The reason; None if it does neither.
    """
    scripts: dict[str, Any] = {
        name: module for name, module in net.named_modules() if isinstance(module, torch.jit.ScriptModule)
    }
    for name, script in {**others, **scripts}.items():
        for node in nodes_of(script):
            kind = node.kind().partition("::")[2]
            made_by = [item.node().kind() for item in node.inputs()]
            writes = kind in _CHANGING_LISTS or (kind.endswith("_") and not kind.startswith("_"))
            if kind == "SetAttr" or (writes and made_by[:1] == ["prim::GetAttr"]):
                return state("SYM183", what=name)
            if kind in _ASKING or (kind in _COMPARING and "prim::dtype" in made_by):
                return state("SYM185", operation="dtype" if kind in _COMPARING else kind)
    return None
