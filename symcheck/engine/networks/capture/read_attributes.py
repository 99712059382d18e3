"""Detects attributes that the network's own code reads and that do not depend on the input.

The profiler records calls, but not reads of attributes. Therefore the names in the bytecode are checked.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from symcheck.engine.networks.capture.own_code import words_of
from symcheck.statements.statement import Statement, state

Cached = functools._lru_cache_wrapper
"""The type of functions decorated with `functools.cache` or `lru_cache`."""
_CLOCKS = frozenset(["datetime64"])
"""Types whose constructor may read a clock."""
_DEVICES = frozenset(["cuda", "mps", "xpu", "hpu", "mtia", "privateuseone"])
"""Device names; code that uses one asks on which device it runs."""
_REVEALING_NAMES = (
    "needs_input_grad __hash__ __repr__ __str__ __format__ __sizeof__ __globals__ f_globals gi_frame __iter__ "
    "_validate_args"
)
_REVEALING = frozenset(_REVEALING_NAMES.split())
"""Names that reveal whether gradients are recorded, expose a memory address without a call, or access attributes
indirectly."""


def read_outside(functions: Mapping[types.CodeType, dict[str, Any]]) -> str:
    """The first name through which code reads how the process was started or how a call is made; "" if there is none.

    Args:
        functions: the network's own code that runs in a call, with its globals.
    """
    for code in functions:
        words = words_of(code)
        strings = [item for item in code.co_consts if isinstance(item, str)]
        if told := next((item for item in strings if item.partition(":")[0] in _DEVICES), ""):
            return told
        if clock := words & _CLOCKS:
            return next(iter(clock))
        if asked := _REVEALING & words:
            return min(asked)
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


_CHANGING_LISTS = frozenset(
    ["append", "_set_item", "insert", "extend", "pop", "clear", "remove", "Delete", "reverse", "sort"]
)
_ASKING_NAMES = "is_grad_enabled is_contiguous stride requires_grad is_cuda layout device is_leaf data_ptr grad"
_ASKING = frozenset(_ASKING_NAMES.split())
_COMPARING = frozenset(["eq", "ne", "__is__", "__isnot__", "__contains__"])


def read_by_scripts(net: nn.Module, functions: Mapping[types.CodeType, dict[str, Any]]) -> Statement | None:
    """State that TorchScript inside a network changes, or reads besides its input; no Python code shows it.

    Args:
        net: the network.
        functions: the network's own code that runs in a call, with its globals.

    Returns:
        The reason; None if it does neither.
    """
    scripts: dict[str, Any] = {
        name: module for name, module in net.named_modules() if isinstance(module, torch.jit.ScriptModule)
    }
    named = {word: scope.get(word) for code, scope in functions.items() for word in words_of(code)}
    scripts |= {word: item for word, item in named.items() if isinstance(item, torch.jit.ScriptFunction)}
    for name, script in scripts.items():
        for node in _nodes_of(getattr(script, "inlined_graph", None)):
            kind = node.kind().partition("::")[2]
            made_by = [item.node().kind() for item in node.inputs()]
            writes = kind in _CHANGING_LISTS or (kind.endswith("_") and not kind.startswith("_"))
            if kind == "SetAttr" or (writes and made_by[:1] == ["prim::GetAttr"]):
                return state("SYM183", what=name)
            if kind in _ASKING or (kind in _COMPARING and "prim::dtype" in made_by):
                return state("SYM185", operation="dtype" if kind in _COMPARING else kind)
    return None


def _nodes_of(graph: Any) -> Iterator[Any]:
    """The nodes of a graph of TorchScript, inner blocks included."""
    for node in () if graph is None else graph.nodes():
        yield node
        for block in node.blocks():
            yield from _nodes_of(block)
