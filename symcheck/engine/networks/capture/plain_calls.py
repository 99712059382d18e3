"""Checks that plain calls compute the captured graph, and that the network's code does not detect the capture.

During a capture, tensors have no values and sizes are symbols. Code that depends on this, instead of on its input,
computes something else in a plain call. Therefore the executed instructions of the network's own code are compared
between calls of several kinds and sizes, and the operators of the graph are compared with those that run on tensors
with values.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from symcheck.engine.networks.capture.capture import Capture, graph_of_numbers
from symcheck.engine.networks.capture.code_paths import CodePath, path_taken
from symcheck.engine.networks.capture.computations import are_alike, moving_steps
from symcheck.engine.networks.capture.own_code import words_of
from symcheck.engine.networks.subject.compiled import eager_stance
from symcheck.engine.networks.subject.precision import Float64Mode, copy_network, float64_default
from symcheck.engine.networks.subject.values import Opaque
from symcheck.nn.basis_layer import BasisLayer
from symcheck.statements import statement

SIZES = (2, 7)
"""Further batch sizes to call; not 1, which code may treat as a special case."""

ALIKE = 1e-12
"""Relative difference of constants in two graphs in float64 that counts as rounding."""
_KINDS_NAMES = "type isinstance issubclass hasattr getattr callable is_ is_not __class__ __dict__ fake_mode "
KINDS = frozenset(_KINDS_NAMES.split())
"""Names with which code distinguishes kinds of tensors or sizes without an explicit branch."""


def why_calls_differ(
    net: nn.Module,
    captured: Capture,
    x: torch.Tensor,
    functions: Collection[types.CodeType],
    *,
    alone: bool,
) -> Opaque | None:
    """The difference between a plain call and the captured graph.

    Args:
        net: the captured float64 copy.
        captured: its graph.
        x: a batch.
        functions: the network's own code that runs in a call.
        alone: whether it takes one input at a time.

    Returns:
        The reason, with the line after which the paths diverge; None if all calls agree.
    """
    batches = [x] if alone else [x, *(torch.cat([x] * size)[:size] for size in SIZES)]
    ours = copy_network(net, device=torch.device("cpu"))
    calls: list[tuple[nn.Module, torch.Tensor, Any]] = [(ours, batch, torch.no_grad()) for batch in batches]
    calls.append((with_gradients(net), x, torch.enable_grad()))
    calls.append((ours, laid_out_otherwise(x), torch.no_grad()))
    inferring = torch.inference_mode()
    calls.append((copy_network(net, device=torch.device("cpu")), x, inferring))
    for module, batch, mode in calls:
        # compiled code runs no Python instructions to compare, so it runs uncompiled, as in the capture
        with eager_stance(), mode, float64_default(), Float64Mode():
            try:
                taken = path_of(module, batch.clone())
            except RuntimeError:
                # it computes gradients itself, and raises in inference mode; or uses `view`, and raises for this layout
                if mode is not inferring and batch.is_contiguous():
                    raise
                continue
        if (source := captured.path.where_it_leaves(taken)) is not None:
            return Opaque(statement.state("SYM187"), source=source)
    if not any(KINDS & words_of(code) for code in functions):
        # with the same instructions, only code that inspects types can compute something else
        return None
    for module in ours.modules():
        if isinstance(module, BasisLayer):  # the capture cannot keep weights, so neither does this run
            object.__setattr__(module, "keep_weight", _no_weight)
    with_numbers = moving_steps(graph_of_numbers(ours, x), {}, captured.size, len(x))
    without = moving_steps(captured.module, captured.state, captured.size, len(x))
    if not are_alike(without, with_numbers, ALIKE):
        return Opaque(statement.state("SYM187"))
    return None


def _no_weight() -> None:
    """Placeholder for a layer that stores no weight between calls."""


def laid_out_otherwise(x: torch.Tensor) -> torch.Tensor:
    """The same numbers with the batch as the fastest axis in memory, so that the tensor is not contiguous."""
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


def with_gradients(net: nn.Module) -> nn.Module:
    """A copy that records gradients, as in training."""
    trained = copy_network(net, device=torch.device("cpu"))
    for parameter in trained.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    return trained


def path_of(net: Callable[[torch.Tensor], Any], x: torch.Tensor) -> CodePath:
    """The instructions executed by the network's own code in one call."""
    net(x)  # after this call, all cached values exist
    path = CodePath()
    with path_taken(path):
        net(x)
    return path
