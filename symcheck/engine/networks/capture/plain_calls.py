"""Checks that plain calls compute the captured graph, and that the network's code does not detect the capture.

During a capture, tensors have no values and sizes are symbols. Code that depends on this, instead of on its input,
computes something else in a plain call. Therefore the executed instructions of the network's own code are compared
between calls of several kinds and sizes, and the operators of the graph are compared with those that run on tensors
with values.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.utils._pytree import tree_flatten

from symcheck.engine.networks.capture.capture import Capture, graph_of_numbers, tensors_of
from symcheck.engine.networks.capture.code_paths import CodePath, path_taken
from symcheck.engine.networks.capture.own_code import words_of
from symcheck.engine.networks.subject.compiled import eager_stance
from symcheck.engine.networks.subject.precision import Float64Mode, copy_network, float64_default
from symcheck.engine.networks.subject.values import Opaque
from symcheck.nn.basis_layer import BasisLayer
from symcheck.statements import statement

SIZES = (2, 7)
"""Further batch sizes to call; not 1, which code may treat as a special case."""

_KINDS_NAMES = "type isinstance issubclass hasattr getattr callable is_ is_not __class__ __dict__ fake_mode "
KINDS = frozenset(_KINDS_NAMES.split())
"""Names with which code distinguishes kinds of tensors or sizes without an explicit branch."""


def why_calls_differ(
    net: nn.Module,
    deployed: nn.Module | None,
    captured: Capture,
    x: torch.Tensor,
    functions: Collection[types.CodeType],
    *,
    alone: bool,
) -> Opaque | None:
    """The difference between a plain call and the captured graph.

    Args:
        net: the captured float64 copy.
        deployed: the network as deployed, if torch runs it and the code reads no dtype; otherwise None.
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
    inferring = torch.inference_mode()
    calls.append((copy_network(net, device=torch.device("cpu")), x, inferring))
    for module, batch, mode in calls:
        # compiled code runs no Python instructions to compare, so it runs uncompiled, as in the capture
        with eager_stance(), mode, float64_default(), Float64Mode():
            try:
                taken = path_of(module, batch.clone())
            except RuntimeError:
                if mode is not inferring:  # in inference mode, a network that computes gradients itself raises
                    raise
                continue
        if (source := captured.path.where_it_leaves(taken)) is not None:
            return Opaque(statement.state("SYM187"), source=source)
    if deployed is not None:
        dtype = next((p.dtype for p in deployed.parameters() if p.is_floating_point()), torch.float32)
        used = copy_network(deployed, device=torch.device("cpu"))
        with eager_stance(), torch.no_grad():
            taken = path_of(used, x.to(dtype))
        if (source := captured.path.where_it_leaves(taken)) is not None:
            return Opaque(statement.state("SYM187"), source=source)
    if not any(KINDS & words_of(code) for code in functions):
        # with the same instructions, only code that inspects types can compute something else
        return None
    for module in ours.modules():
        if isinstance(module, BasisLayer):  # the capture cannot keep weights, so neither does this run
            object.__setattr__(module, "keep_weight", _no_weight)
    with_numbers = operators_in(graph_of_numbers(ours, x), tensors_of(ours), captured.size, len(x))
    if operators_in(captured.module, captured.state, captured.size, len(x)) != with_numbers:
        return Opaque(statement.state("SYM187"))
    return None


def _no_weight() -> None:
    """Placeholder for a layer that stores no weight between calls."""


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


def operators_in(
    module: fx.GraphModule, state: Mapping[str, torch.Tensor], symbol: Any, samples: int
) -> list[tuple[Any, ...]]:
    """The operators of a graph in order, with all their arguments, for a given batch size.

    Args:
        module: the graph.
        state: the parameters and buffers of its network, by name.
        symbol: the batch size symbol; None if the size is a number.
        samples: the batch size.
    """
    names = {id(tensor): name for name, tensor in state.items()}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    tokens: dict[fx.Node, Any] = dict(zip(reversed(placeholders), ["x", *reversed(list(state))], strict=False))
    steps: list[tuple[Any, ...]] = []
    moving = set(placeholders[-1:])  # values that depend on the input

    def token(item: Any) -> Any:
        if not isinstance(item, fx.Node):
            return item
        size = item.meta.get("val")
        return _number_of(size, symbol, samples) if isinstance(size, torch.SymInt) else tokens[item]

    for node in module.graph.nodes:
        if node.op == "get_attr":
            held = getattr(module, str(node.target))
            tokens[node] = names.get(id(held)) or _numbers_of(held)
        elif node.op == "output":
            steps.append(("output", _readable(node.args, token)))
        elif node.op == "call_function" and _keeps_all(node):
            tokens[node] = token(node.args[0])  # torch omits this operator only in its code for symbolic sizes
            moving.update({node} if node.args[0] in moving else ())
        elif node.op == "call_function" and not isinstance(node.meta.get("val"), torch.SymInt | int):
            if not moving.intersection(node.all_input_nodes):
                # depends on parameters only: torch may decompose it differently for symbolic sizes
                tokens[node] = _Fixed(_leaves_of(node, token))
                continue
            moving.add(node)
            tokens[node] = len(steps)
            args = node.args
            if "view.default" in str(node.target) and isinstance(made := node.meta.get("val"), torch.Tensor):
                # replace -1 by the actual size
                args = (args[0], [_number_of(size, symbol, samples) for size in made.shape])
            steps.append((str(node.target), _readable(args, token), _readable(node.kwargs, token)))
    return steps


def _number_of(size: Any, symbol: Any, samples: int) -> int:
    return int(size.node.expr.subs(symbol, samples)) if isinstance(size, torch.SymInt) else int(size)


@dataclass(frozen=True)
class _Fixed:
    """A value computed from parameters and numbers only, and identified by them."""

    leaves: tuple[str, ...]


def _leaves_of(node: fx.Node, token: Callable[[Any], Any]) -> tuple[str, ...]:
    """The parameters, constants and non-integer numbers from which a node is computed, unordered."""
    leaves: set[str] = set()
    for item in tree_flatten((node.args, dict(node.kwargs)))[0]:
        known = token(item)
        if isinstance(known, _Fixed):
            leaves.update(known.leaves)
        elif isinstance(item, fx.Node | float) and not isinstance(known, int):
            leaves.add(repr(known))
    return tuple(sorted(leaves))


def _keeps_all(node: fx.Node) -> bool:
    """Whether an operator is a slice over a whole axis, or an alias of the same values."""
    if str(node.target) in ("aten.detach.default", "aten.alias.default"):
        return True
    if str(node.target) != "aten.slice.Tensor":
        return False
    given: list[Any] = [*node.args[2:], *(0, _END, 1)[len(node.args) - 2 :]]
    start, end, step = given
    return start in (0, None) and step == 1 and (end is None or (isinstance(end, int) and end >= _END))


_END = 2**62
"""The end of a slice that runs to the end of its axis."""


def _readable(items: Any, token: Callable[[Any], Any]) -> str:
    # compared as text, so that NaN equals NaN and 1 differs from 1.0
    return repr(fx.node.map_aggregate(dict(items) if isinstance(items, Mapping) else items, token))


def _numbers_of(held: Any) -> Any:
    if not isinstance(held, torch.Tensor):
        return held
    return (tuple(held.shape), str(held.dtype), held.detach().reshape(-1).tolist())
