"""Networks with parts under `torch.compile`: run compiled only in the deployed copy.

Compiled code cannot be observed function by function, and compiling it again for float64 would take long and show
nothing about the weights. Therefore a run uses the network's own Python code everywhere except in its deployed copy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

_DECORATED = "_torchdynamo_orig_callable"


def is_compiled(net: nn.Module) -> bool:
    """Whether any part of a network runs under `torch.compile`: a module, or a module's forward method.

    Example:
        >>> is_compiled(nn.Linear(2, 2))
        False
    """
    if "torch._dynamo" not in sys.modules:  # nothing was compiled in this process
        return False
    # Script modules have no Python forward that could be compiled.
    own = (module for module in net.modules() if not isinstance(module, torch.jit.ScriptModule))
    return any(
        hasattr(module, "_orig_mod") or _in_place(module) or hasattr(type(module).forward, _DECORATED) for module in own
    )


def compiled_alike(net: nn.Module, copy: nn.Module) -> nn.Module:
    """The copy, with the modules compiled in place compiled again; copying does not preserve that."""
    # Both copies list their modules in the same order.
    for own, other in zip(net.modules(), copy.modules(), strict=False):
        if _in_place(own) and not _in_place(other):
            other.compile()
    return copy


def _in_place(module: nn.Module) -> bool:
    return not isinstance(module, torch.jit.ScriptModule) and getattr(module, "_compiled_call_impl", None) is not None


@contextmanager
def eager_stance() -> Iterator[None]:
    """Run compiled networks by their own Python code inside this block."""
    with _stance("force_eager"):
        yield


@contextmanager
def compiled_stance() -> Iterator[None]:
    """Run compiled networks compiled inside this block, even within `eager_stance`."""
    with _stance("default"):
        yield


@contextmanager
def _stance(stance: str) -> Iterator[None]:
    if "torch._dynamo" not in sys.modules:  # loading it takes seconds, and there is nothing to be said to it
        yield
        return
    with torch.compiler.set_stance(stance):
        yield
