"""The place in a network's code from which an operator was called, recorded during the capture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import get_proxy_mode

KEY = "place"
"""Key under which a node of a captured graph stores its place."""
_HIDDEN = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]))
"""Files that do not belong to the network: torch's, and those of this engine."""
_OUTERMOST = tuple(str(Path(__file__).with_name(name)) for name in ("capture.py", "one_run.py"))
"""The files that call the network."""


@dataclass(frozen=True)
class Place:
    """The call from which an operator comes.

    Attributes:
        module: the module whose forward ran, as in `named_modules()`; "" for the network itself.
        kind: its class if it is a layer without submodules; otherwise "".
        operation: the called function.
        source: file and line of the innermost frame of the network's own code; "torch" if all of it is torch's.
    """

    module: str = ""
    kind: str = ""
    operation: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The kind of layer, or the function."""
        return self.kind or self.operation


class PlaceMarks:
    """Attaches places to the nodes of a graph during its construction.

    Args:
        net: the captured network.
    """

    def __init__(self, net: nn.Module) -> None:
        self._net = net
        self._running: list[tuple[str, str]] = []

    def mark(self, operation: str) -> None:
        """Attach the place to every node that was added since the previous call."""
        mode = get_proxy_mode()
        if mode is None:
            return
        place: Place | None = None
        for node in reversed(mode.tracer.graph.nodes):
            if KEY in node.meta or node.op == "placeholder":
                return
            if place is None:
                module, kind = self._running[-1] if self._running else ("", "")
                place = Place(module, kind, operation, _own_line())
            node.meta[KEY] = place

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Track which module runs, while active."""

        def entering(name: str, kind: str) -> Callable[..., None]:
            return lambda module, inputs: self._running.append((name, kind))

        def leaving(module: nn.Module, inputs: object, output: object) -> None:
            self._running.pop()

        handles = []
        for name, module in self._net.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                continue
            kind = type(module).__name__ if _is_layer(name, module) else ""
            handles.append(module.register_forward_pre_hook(entering(name, kind), prepend=True))
            handles.append(module.register_forward_hook(leaving))
        try:
            yield
        finally:
            self._running.clear()
            for handle in handles:
                handle.remove()


def _is_layer(name: str, module: nn.Module) -> bool:
    """Whether a module is a single layer: no submodules, and if it is the network, the parameters of a layer."""
    if next(module.children(), None) is not None:
        return False
    parameters = {parameter for parameter, _ in module.named_parameters(recurse=False)}
    whole = type(module).__module__.startswith("torch.") or bool(parameters)
    return bool(name) or (whole and parameters <= {"weight", "bias"})


def place_of(node: fx.Node) -> Place | None:
    """The place of a node of a captured graph; None if none was recorded."""
    place = node.meta.get(KEY)
    return place if isinstance(place, Place) else None


def _own_line() -> str:
    # the caller of the function; the monitor called this function and `mark`
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and not frame.f_code.co_filename.endswith(_OUTERMOST):
        file = frame.f_code.co_filename
        if not file.startswith(_HIDDEN) and not file.startswith("<"):
            return f"{Path(file).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "torch"
