"""Networks with parts under `torch.compile`, which run compiled only in the deployed copy.

Compiled code cannot be observed function by function, and compiling it again for float64 would take long and show
nothing about the weights. Therefore a run uses the network's own Python code everywhere except in its deployed copy.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

_DECORATED = "_torchdynamo_orig_callable"


def is_compiled(net: nn.Module) -> bool:
    """Whether any part of a network runs under `torch.compile`: a module, or a module's forward method.

    Example:
        >>> is_compiled(nn.Linear(2, 2))
        False
    """
    if "torch._dynamo" not in sys.modules:  # nothing has been compiled in this process
        return False
    # Script modules have no Python forward that could be compiled.
    own = (module for module in net.modules() if not isinstance(module, torch.jit.ScriptModule))
    return any(
        hasattr(module, "_orig_mod") or _in_place(module) or hasattr(type(module).forward, _DECORATED) for module in own
    )


def compiled_alike(net: nn.Module, copy: nn.Module) -> nn.Module:
    """The copy, with modules that were compiled in place compiled again, because a copy loses its compiled code."""
    # Both copies list their modules in the same order.
    for own, other in zip(net.modules(), copy.modules(), strict=False):
        if _in_place(own) and not _in_place(other):
            backend = backend_of(_callback_of(own))
            other.compile(**({} if backend is None else {"backend": backend}))
    return copy


def foreign_backend(net: nn.Module) -> str:
    """The name of a backend other than torch's that runs a module of a network; "" if there is none."""
    if not is_compiled(net):
        return ""
    callbacks = [_callback_of(module) for module in net.modules()]
    backends = [backend_of(callback) for callback in callbacks if callback is not None]
    return next((name_of_backend(item) for item in backends if not is_torchs_backend(item)), "")


def _callback_of(module: nn.Module) -> Any:
    if hasattr(module, "_orig_mod"):
        return getattr(getattr(module, "dynamo_ctx", None), "callback", None)
    return inspect.getclosurevars(module._compiled_call_impl).nonlocals.get("callback") if _in_place(module) else None  # type: ignore[arg-type]


def name_of_backend(backend: Any) -> str:
    """The name of a backend."""
    return str(getattr(backend, "__name__", type(backend).__name__))


def backend_of(callback: Any) -> Any:
    """The function that compiles graphs; None for torch's unmodified default compiler.

    Args:
        callback: the callback that `torch.compile` attaches to a compiled function.
    """
    from torch._dynamo.eval_frame import innermost_backend

    inner: Any = innermost_backend(callback)
    if type(inner).__name__ == "_TorchCompileInductorWrapper":
        return next((item for item in inner.config.values() if callable(item)), None)
    return getattr(inner, "compiler_fn", inner)


def is_torchs_backend(backend: Any) -> bool:
    """Whether a backend is part of torch; the default one may contain a user's own passes."""
    modules = [item for name, item in list(sys.modules.items()) if name.startswith("torch._dynamo.backends.")]
    return backend is None or any(backend is item for module in modules for item in vars(module).values())


def _in_place(module: nn.Module) -> bool:
    return not isinstance(module, torch.jit.ScriptModule) and getattr(module, "_compiled_call_impl", None) is not None


@contextmanager
def eager_stance() -> Iterator[None]:
    """Run compiled networks by their own Python code inside this block."""
    with _stance("force_eager"):
        yield


@contextmanager
def compiled_stance() -> Iterator[None]:
    """Inside this block, compiled networks run as compiled code, even within `eager_stance`."""
    with _stance("default"):
        yield


@contextmanager
def _stance(stance: str) -> Iterator[None]:
    if "torch._dynamo" not in sys.modules:  # if it is not loaded, nothing is compiled; loading it takes seconds
        yield
        return
    with torch.compiler.set_stance(stance):
        yield
