"""The operators of a captured graph that depend on the input, for comparing two graphs of one network.

Everything else is evaluated, because torch may decompose it differently, and a network may keep it from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils._pytree import tree_flatten

from symcheck.array_types import Bools, Floats
from symcheck.engine.networks.capture.operator_kinds import RANDOM
from symcheck.engine.networks.subject.precision import default_dtype

_END = 2**62
"""The end of a slice that runs to the end of its axis."""
_LIMIT, _TINY = 1e30, 1e-5
"""Larger numbers stand for infinity, and smaller ones keep a quotient finite; both depend on the dtype
(`torch.finfo`)."""
Step = tuple[str, list[Any]]


class Moving(int):
    """The place of an operator among those that depend on the input."""


def moving_steps(module: fx.GraphModule, state: Mapping[str, torch.Tensor], symbol: Any, samples: int) -> list[Step]:
    """The operators of a graph that depend on the input, in order, each with its arguments, for one batch size.

    Args:
        module: the graph.
        state: the parameters and buffers of its network, in the order of its inputs; the last input is the batch.
        symbol: the batch size symbol; None if the size is a number.
        samples: the batch size.

    Returns:
        Names of operators, and arguments: a `Moving` place, or a value that does not depend on the input.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    values: dict[fx.Node, Any] = dict(
        zip(reversed(placeholders), [Moving(0), *reversed(list(state.values()))], strict=False)
    )
    steps: list[Step] = [("input", [])]

    def value_of(item: Any) -> Any:
        size = item.meta.get("val") if isinstance(item, fx.Node) else None
        known = values.get(item, size) if isinstance(item, fx.Node) else item
        return _number_of(size, symbol, samples) if isinstance(size, torch.SymInt) else known

    for node in module.graph.nodes:
        if node.op == "get_attr":
            values[node] = getattr(module, str(node.target))
        if node.op not in ("call_function", "output") or isinstance(node.meta.get("val"), torch.SymInt | int):
            continue
        args, kwargs = fx.node.map_aggregate((node.args, dict(node.kwargs)), value_of)
        if node.op == "call_function" and not any(isinstance(item, Moving) for item in tree_flatten((args, kwargs))[0]):
            values[node] = _evaluate_node(node, args, kwargs, lambda size: _number_of(size, symbol, samples))
        elif node.op == "call_function" and _keeps_all(node):
            values[node] = args[0]
        else:
            if "view.default" in str(node.target) and isinstance(made := node.meta.get("val"), torch.Tensor):
                args = (args[0], [_number_of(size, symbol, samples) for size in made.shape])  # -1 as the actual size
            values[node] = Moving(len(steps))
            steps.append((str(node.target), tree_flatten((args, kwargs))[0]))
    return steps


def are_alike(mine: list[Step], others: list[Step], tolerance: float, *, across_dtypes: bool = False) -> bool:
    """Whether two graphs compute the same.

    Args:
        mine: the operators of one graph.
        others: those of the other.
        tolerance: the relative difference of constants that counts as none.
        across_dtypes: whether the graphs compute in different dtypes. Constants of one sign then count as equal if both
            stand for infinity, or both only keep a quotient finite: such numbers depend on the dtype.
    """
    if [name for name, _ in mine] != [name for name, _ in others]:
        return False
    pairs = [(left, right) for (_, left), (_, right) in zip(mine, others, strict=True)]
    return all(
        len(left) == len(right)
        and all(_is_alike(*pair, tolerance, across_dtypes) for pair in zip(left, right, strict=True))
        for left, right in pairs
    )


def _is_alike(left: Any, right: Any, tolerance: float, across_dtypes: bool) -> bool:
    if isinstance(left, Moving) or isinstance(right, Moving):
        return isinstance(left, Moving) and isinstance(right, Moving) and left == right
    if not isinstance(left, torch.Tensor | float) or not isinstance(right, torch.Tensor | float):
        return left == right or (_is_floating(left) and _is_floating(right))
    numbers, usual = (_as_tensor(item) for item in (left, right))
    if numbers.shape != usual.shape or numbers.is_floating_point() != usual.is_floating_point():
        return False
    if not numbers.is_floating_point():
        return torch.equal(numbers, usual)
    a, b = (item.double().numpy() for item in (numbers, usual))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if across_dtypes:
        same |= (np.sign(a) == np.sign(b)) & (_stand_for_infinity(a, b) | ((np.abs(a) < _TINY) & (np.abs(b) < _TINY)))
    bound = tolerance * np.abs(b, where=np.abs(b) < _LIMIT, out=np.zeros_like(b)).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        return bool((same | (np.abs(a - b) <= bound)).all())


def _as_tensor(item: torch.Tensor | float) -> torch.Tensor:
    """A constant; a single number keeps its digits, and a size as small as float64 has."""
    return item.detach().cpu() if isinstance(item, torch.Tensor) else torch.tensor(item, dtype=torch.float64)


def _stand_for_infinity(a: Floats, b: Floats) -> Bools:
    """Where two numbers are larger than any that is computed with, and both of them finite or both infinite."""
    return np.asarray((np.abs(a) > _LIMIT) & (np.abs(b) > _LIMIT) & (np.isinf(a) == np.isinf(b)))


def are_constants_held(steps: list[Step], dtype: torch.dtype) -> bool:
    """Whether a dtype can represent the constants of a graph: none of them becomes infinite or zero.

    Args:
        steps: the operators of the graph as deployed.
        dtype: the deployed dtype. Operators use at least float32 for single numbers.
    """
    used = torch.float64 if dtype == torch.float64 else torch.float32
    for _, arguments in steps:
        for item in arguments:
            if isinstance(item, float) or (isinstance(item, torch.Tensor) and item.dtype == torch.float64):
                number = torch.as_tensor(item, dtype=torch.float64).detach()
                held = number.to(used)
                if ((held.isinf() & number.isfinite()) | ((held == 0) & (number != 0))).any():
                    return False
    return True


def _is_floating(item: Any) -> bool:
    return isinstance(item, torch.dtype) and item.is_floating_point


def _evaluate_node(node: fx.Node, args: Any, kwargs: Any, number_of: Callable[[Any], int]) -> Any:
    """The value of an operator that does not depend on the input; a name for memory that was never written."""
    target: Callable[..., Any] = node.target  # type: ignore[assignment]
    name = target._schema.name.removeprefix("aten::") if isinstance(target, torch._ops.OpOverload) else ""
    made = node.meta.get("val")
    if "empty" in name or name.startswith(RANDOM):
        return name, tuple(map(number_of, made.shape)) if isinstance(made, torch.Tensor) else ()
    # what an operator makes without a dtype has the default one of its capture
    dtype = made.dtype if isinstance(made, torch.Tensor) and made.is_floating_point() else torch.get_default_dtype()
    with torch.no_grad(), default_dtype(dtype):
        return target(*args, **kwargs)


def _number_of(size: Any, symbol: Any, samples: int) -> int:
    return int(size.node.expr.subs(symbol, samples)) if isinstance(size, torch.SymInt) else int(size)


def _keeps_all(node: fx.Node) -> bool:
    """Whether an operator is a slice over a whole axis, a change between floating dtypes, or the same values again."""
    name, made, given = str(node.target), node.meta.get("val"), [item.meta.get("val") for item in node.all_input_nodes]
    if name == "aten._to_copy.default":
        return all(isinstance(item, torch.Tensor) and item.is_floating_point() for item in (made, *given))
    if name in ("aten.detach.default", "aten.alias.default", "aten.clone.default"):
        return True
    if name != "aten.slice.Tensor":
        return False
    bounds: list[Any] = [*node.args[2:], *(0, _END, 1)[len(node.args) - 2 :]]
    start, end, step = bounds
    return start in (0, None) and step == 1 and (end is None or (isinstance(end, int) and end >= _END))
