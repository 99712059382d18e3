"""The graph of a single run, for networks without a graph of every call: it locates faults, and proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from symcheck.array_types import Floats
from symcheck.engine.networks.capture.capture import Capture, tensors_of
from symcheck.engine.networks.capture.places import PlaceMarks
from symcheck.engine.networks.subject.outputs import named_outputs
from symcheck.engine.networks.subject.precision import Float64Mode, copy_network, float64_default


def capture_one_run(net: nn.Module, x: Floats) -> Capture | None:
    """The computation of a float64 network on one input, with the branches that this input takes.

    Args:
        net: the network.
        x: the input, shape (1, *shape).

    Returns:
        The graph; None if the network does not run while it is traced, or computes outside torch.
    """
    ours = copy_network(net, device=torch.device("cpu"))
    held = tensors_of(ours)
    marks = PlaceMarks(ours)
    paths: list[str] = []

    def run(given: dict[str, torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
        with marks.watching(), Float64Mode(), _Marking(marks):
            result = torch.func.functional_call(ours, given, (x,))
        outputs = {path: tensor for path, tensor in named_outputs(result).items() if tensor.is_floating_point()}
        paths[:] = outputs
        return list(outputs.values())

    try:
        with torch.no_grad(), float64_default():
            trace = make_fx(run, _allow_non_fake_inputs=True, _error_on_data_dependent_ops=False)
            module = trace(held, torch.from_numpy(x.copy()))
    except Exception:  # its own code, or torch's, does not run while it is traced
        return None
    return Capture(module, held, tuple(paths), None)


_LEAVING = ("numpy", "__array__", "tolist", "__dlpack__")
"""Functions whose results hide a dependence on the input, so that values look like constants."""


class _LeftError(Exception):
    """The network computes outside torch."""


class _Marking(TorchFunctionMode):
    def __init__(self, marks: PlaceMarks) -> None:
        super().__init__()
        self._marks = marks

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch function, and record its place."""
        name = getattr(func, "__name__", "")
        if name in _LEAVING:
            raise _LeftError
        result = func(*args, **(kwargs or {}))
        self._marks.mark(name.strip("_"))
        return result
