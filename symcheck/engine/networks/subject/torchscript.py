"""TorchScript in traceable form: its graph converted to torch functions, and its nodes one by one."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

_EXAMPLE = 11  # batch size for the conversion: a batch of one would be treated as a fixed size


def followable(net: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """A form of a float64 network whose torch functions can be traced; for TorchScript, its converted graph.

    Args:
        net: the network.
        shape: the shape of one input, without the batch axis.

    Returns:
        The network itself if it is not TorchScript, or if this version of torch cannot convert it.
    """
    if not isinstance(net, torch.jit.ScriptModule) or calls_python(net):
        return net
    # The converter logs its attempts, and torch.export prints the graph of an attempt that fails.
    log = logging.getLogger("torch._export.non_strict_utils")
    was_disabled, log.disabled = log.disabled, True
    try:
        from torch._export.converter import TS2EPConverter

        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            example = torch.zeros(_EXAMPLE, *shape, dtype=torch.float64)
            converted: nn.Module = TS2EPConverter(net, (example,)).convert().module()
            return converted
    except Exception:  # the converter is not part of torch's public API; without it, the network is only tested
        return net
    finally:
        log.disabled = was_disabled


def calls_python(net: nn.Module) -> bool:
    """Whether TorchScript calls Python code that it ignores (`torch.jit.ignore`): its conversion ends the process."""
    scripts = (module for module in net.modules() if isinstance(module, torch.jit.ScriptModule))
    return any(node.kind() == "prim::PythonOp" for script in scripts for node in nodes_of(script))


def nodes_of(script: Any) -> Iterator[Any]:
    """The nodes of a module or function of TorchScript with everything that it calls, inner blocks included."""
    graph = getattr(script, "inlined_graph", None)
    return iter(()) if graph is None else _nodes_below(graph)


def _nodes_below(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes_below(inner)
