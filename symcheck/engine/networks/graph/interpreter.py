"""Translation of a captured graph of core operators into nodes over entries."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map

import symcheck.engine.networks.graph.pools
import symcheck.engine.networks.graph.products
import symcheck.engine.networks.graph.scattering  # noqa: F401
from symcheck.array_types import Ints
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.capture.places import place_of
from symcheck.engine.networks.graph.chosen_places import equal_to_place, indicators_of, read_at_places
from symcheck.engine.networks.graph.entries import INDEXED, MOVING, Entries, as_tensor, constant, leaves, mapped, move
from symcheck.engine.networks.graph.nodes import BATCH, Graph, NoCertificateError, Step
from symcheck.engine.networks.graph.operators import OPERATORS, as_stored, cast, fit_into
from symcheck.engine.networks.graph.ranges import hold_always
from symcheck.engine.networks.graph.resampling import RESAMPLING, resample
from symcheck.engine.networks.graph.unknown import as_unknown, axis_of
from symcheck.engine.networks.subject.precision import float64_default
from symcheck.statements.statement import state

ALIKE = 1e-12
"""Largest relative difference between constants with the same computation for two samples: some float64 rounding."""
SHAPED = frozenset(
    [
        "ones_like",
        "zeros_like",
        "full_like",
        "empty_like",
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "empty_strided",
        "new_empty_strided",
    ]
)
"""Operators that use only the shape of their argument."""
_WRITING = frozenset(["scatter", "index_put", "_index_put_impl"])
"""Operators whose first argument may contain values that are overwritten."""
_SIZES = frozenset(["sym_size", "sym_numel", "sym_stride", "sym_storage_offset"])


@dataclass(frozen=True, eq=False)
class Followed:
    """A network as nodes.

    Attributes:
        graph: the nodes.
        outputs: the entries of each output, by path; constants are negative.
    """

    graph: Graph
    outputs: Mapping[str, Ints]


def follow(captured: Capture, shape: tuple[int, ...], graph: Graph | None = None, *, unknown: bool = False) -> Followed:
    """Follow a captured network.

    Args:
        captured: the network.
        shape: the shape of one input, without the batch axis.
        graph: receives the nodes, so that they are available if tracing ends early.
        unknown: whether an operator without a rule may be treated as an unknown function.

    Returns:
        The nodes.

    Raises:
        NoCertificateError: an operator is not supported; the message names it.
    """
    graph = Graph() if graph is None else graph
    targets = [node.target for node in captured.module.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    graph.writes = any(target._schema.is_mutable and not _only_views(target) for target in targets)
    samples = BATCH if captured.size is not None else 1
    held = {name: constant(graph, tensor, name) for name, tensor in captured.state.items()}
    x = Entries(torch.from_numpy(graph.input(shape, samples)), torch.float64)
    with torch.no_grad(), float64_default():
        graph.size_of_batch = captured.size
        fallback = partial(as_unknown, graph) if unknown else None
        results = _run(graph, captured.module, tree_flatten((held, x))[0], fallback)
    outputs = {}
    for path, result in zip(captured.outputs, results, strict=False):
        outputs[path] = _entries_of_one(graph, result, samples, captured.size is not None)
    for check in results[len(captured.outputs) :]:
        if not hold_always(graph, check.array):
            raise NoCertificateError(state("SYM180", operation="a check of arguments"))
    return Followed(graph, outputs)


def _entries_of_one(graph: Graph, result: Entries, samples: int, batched: bool) -> Ints:
    """The entries of an output for the first sample, which must be the same for all samples."""
    ids = result.array.astype(np.int64)
    rows = ids.reshape(samples, -1) if not batched or ids.shape[:1] == (samples,) else None
    if rows is None:
        raise NoCertificateError(state("SYM193", operation="output"))
    entries = np.where(rows < 0, rows, rows // BATCH)
    mixed = (rows >= 0) & (rows % BATCH != np.arange(samples)[:, None])
    if mixed.any():
        raise NoCertificateError(state("SYM193", operation="output"))
    values = entries[0] >= 0
    if (entries[:, values] != entries[0, values]).any() or (entries[:, ~values] >= 0).any():
        raise NoCertificateError(state("SYM193", operation="output"))
    numbers = graph.numbers(entries[:, ~values])
    if not np.allclose(numbers, numbers[0], rtol=ALIKE, atol=0.0, equal_nan=True):
        raise NoCertificateError(state("SYM193", operation="output"))
    return np.asarray(entries[0])


Fallback = Callable[[fx.Node, dict[fx.Node, Any]], Any]


def _run(graph: Graph, module: fx.GraphModule, inputs: list[Any], fallback: Fallback | None = None) -> list[Any]:
    """Run a graph on ids; placeholders receive the inputs in order."""
    values: dict[fx.Node, Any] = {}
    given = iter(inputs)
    for node in module.graph.nodes:
        raise_if_late()
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "get_attr":
            held = getattr(module, str(node.target))
            values[node] = constant(graph, held) if isinstance(held, torch.Tensor) else held
        elif node.op == "output":
            return list(tree_flatten(_looked_up(node.args[0], values))[0])
        else:
            values[node] = _follow_one(graph, node, values, fallback)
    return []


def _follow_one(graph: Graph, node: fx.Node, values: dict[fx.Node, Any], fallback: Fallback | None) -> Any:
    """The result of one operator, recorded as a step of the graph if its place is known."""
    args, kwargs = _looked_up(node.args, values), _looked_up(node.kwargs, values)
    place, first = place_of(node), len(graph.nodes)
    given = tuple(item.array.copy() for item in leaves((args, kwargs))) if place is not None else ()
    try:
        result = _computed_or_unknown(graph, node, values, (tuple(args), dict(kwargs)), fallback)
    except NoCertificateError as error:
        error.place = place or error.place
        raise
    results = leaves(result)
    if results and results[0].is_constant:
        _make_alike(graph, node, results)
    if place is not None and results and node.target is not operator.getitem:
        graph.steps.append(Step(place, node, given, first, len(graph.nodes), results[0].array.copy()))
    return result


def _make_alike(graph: Graph, node: fx.Node, results: Sequence[Entries]) -> None:
    """Make constants that are computed once per sample equal: products may round differently by row."""
    values = tree_flatten(node.meta.get("val"))[0]
    for value, result in zip(values, results, strict=False):
        axis = axis_of(value, graph.size_of_batch) if isinstance(value, torch.Tensor) else None
        if axis is None or not result.ids.numel() or not result.dtype.is_floating_point:
            continue
        # if batches are concatenated, samples are the inner index
        rows = result.array.swapaxes(0, axis).reshape(-1, BATCH, result.ids.numel() // result.ids.shape[axis])
        numbers = graph.numbers(rows)
        with np.errstate(invalid="ignore"):
            gap = np.abs(numbers - numbers[:, :1])
        if 0 < gap.max(initial=0.0) <= ALIKE * np.abs(numbers).max(initial=0.0):
            first = np.broadcast_to(rows[:, :1], rows.shape).reshape(result.array.swapaxes(0, axis).shape)
            result.ids = torch.from_numpy(np.ascontiguousarray(first.swapaxes(0, axis)))


def _computed_or_unknown(
    graph: Graph, node: fx.Node, values: dict[fx.Node, Any], given: tuple[Any, Any], fallback: Fallback | None
) -> Any:
    """The result of one operator by its rule; otherwise as an unknown function, if that is allowed."""
    parent = node.args[0] if node.target is operator.getitem else None
    try:
        result = compute(graph, node.target, *given)
        # positions of largest entries have no rule, and most networks do not use them
        if result is None and fallback is not None and isinstance(parent, fx.Node) and node.users:
            whole = fallback(parent, values)
            return None if whole is None else whole[node.args[1]]
    except Exception as raised:  # no rule, or a form of the operator that the rule does not cover
        other = None if fallback is None else fallback(node, values)
        if other is not None:
            return other
        if isinstance(raised, NoCertificateError):
            raise
        raise NoCertificateError(state("SYM190", operation=str(node.target))) from raised
    return result


def _looked_up(item: Any, values: dict[fx.Node, Any]) -> Any:
    return fx.node.map_aggregate(item, lambda part: values[part] if isinstance(part, fx.Node) else part)


def compute(graph: Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of one operator on ids.

    Raises:
        NoCertificateError: the operator is not supported.
    """
    if not isinstance(target, torch._ops.OpOverload):
        return target(*args, **kwargs)  # sizes, and items of tuples
    if target.namespace not in ("aten", "prims"):
        raise NoCertificateError(state("SYM190", operation=target._schema.name))
    result = _compute(graph, target, args, kwargs)
    dtype, floating = kwargs.get("dtype"), all(item.dtype.is_floating_point for item in leaves((args, kwargs)))
    if not isinstance(result, Entries) or (floating and (dtype is None or dtype.is_floating_point)):
        return result
    if floating and not result.is_constant and target._schema.name != "aten::_to_copy":
        raise NoCertificateError(state("SYM190", operation=f"{target._schema.name} with an integer or boolean dtype"))
    return _with_dtype(graph, target, args, kwargs, result)


def _with_dtype(graph: Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Entries) -> Entries:
    """The result of an operator on booleans or integers, with the dtype that torch gives it."""
    blank = [
        mapped(items, lambda item: torch.empty(item.ids.shape, dtype=item.dtype, device="meta"))
        for items in (args, kwargs)
    ]
    blank[1].pop("device", None)  # numbers of meta tensors cannot be moved
    dtype = target(*blank[0], **blank[1]).dtype
    name = target._schema.name.removeprefix("aten::").rstrip("_")
    whole = not dtype.is_floating_point and dtype != torch.bool
    if whole and not result.is_constant and name not in MOVING | INDEXED and not fit_into(graph, result.array, dtype):
        raise NoCertificateError(
            state("SYM190", operation=f"{name} of numbers that may be out of range for {str(dtype)[6:]}")
        )
    return result if dtype == result.dtype else Entries(result.ids, dtype)


def _compute(graph: Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = target._schema.name.split("::")[-1]
    entries = leaves((args, kwargs))
    if name in _SIZES:
        return target(*mapped(args, lambda item: item.ids))
    if args and args[0] is None:
        return None  # positions of largest entries must not be used here
    if name == "_to_copy" and not (kwargs.get("dtype") or torch.float64).is_floating_point:
        _refuse_nan(graph, name, entries)
    if name == "_to_copy" and not entries[0].is_constant and kwargs.get("dtype") is not None:
        return cast(graph, entries[0], kwargs["dtype"])
    if name == "_to_copy" and entries[0].is_constant:
        return _constants(graph, target(as_tensor(graph, entries[0]), **kwargs)) if kwargs.get("dtype") else entries[0]
    if not entries or name in SHAPED:
        plain = mapped(args, lambda item: torch.empty(item.ids.shape, dtype=item.dtype))
        made = target(*plain, **kwargs)
        # Uninitialised memory is represented by NaN; an operator that reads it is rejected.
        return _unwritten(graph, made) if "empty" in name else _constants(graph, made)
    if name == "copy_":
        _check_cast(args[0], args[1])
        args[0].ids.copy_(args[1].ids)
        return args[0]
    if target._schema.is_mutable:
        return _in_place(graph, name, target, args, kwargs)
    if graph.indicators and (result := _at_places(graph, name, args)) is not None:
        return result
    if name in MOVING or (name in INDEXED and not all(item.is_constant for item in entries)):
        return move(graph, name, target, args, kwargs)
    if name not in _WRITING:
        _refuse_nan(graph, name, entries)
    if all(item.is_constant for item in entries):
        return _constants(graph, target(*mapped(args, _number(graph)), **mapped(kwargs, _number(graph))))
    known = OPERATORS.get(name)
    if known is not None:
        return known(graph, *args, **kwargs)
    if name in RESAMPLING:
        return resample(graph, target, args, kwargs)
    return _decomposed(graph, name, target, args, kwargs)


def _at_places(graph: Graph, name: str, args: tuple[Any, ...]) -> Entries | None:
    """The result of an operator on positions of largest entries; None if no argument is such a position."""
    if name in ("eq", "ne"):
        equal = equal_to_place(graph, *args[:2])
        return OPERATORS["logical_not"](graph, equal) if equal is not None and name == "ne" else equal
    return (
        read_at_places(graph, name, args)
        if any(indicators_of(graph, item) is not None for item in leaves(args[1:]))
        else None
    )


def _unwritten(graph: Graph, made: torch.Tensor) -> Entries:
    return Entries(torch.from_numpy(graph.constants(np.full(tuple(made.shape), np.nan))), made.dtype)


def _refuse_nan(graph: Graph, name: str, entries: Sequence[Entries]) -> None:
    for item in entries:
        if np.isnan(graph.numbers(item.array[item.array < 0])).any():
            raise NoCertificateError(state("SYM190", operation=f"{name} of NaN or of memory that was never written"))


def _only_views(target: Any) -> bool:
    return torch.Tag.inplace_view in target.tags


def _number(graph: Graph) -> Callable[[Entries], torch.Tensor]:
    return lambda item: as_tensor(graph, item)


def _constants(graph: Graph, result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return constant(graph, result)
    return tree_map(lambda item: constant(graph, item) if isinstance(item, torch.Tensor) else item, result)


def _check_cast(into: Entries, source: Entries) -> None:
    if not into.dtype.is_floating_point and source.dtype not in (into.dtype, torch.bool):
        raise NoCertificateError(state("SYM190", operation="a cast to integers"))


def _in_place(graph: Graph, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Translate an operator that writes into its first argument: compute the result, then copy it."""
    functional = getattr(torch.ops.aten, name.removesuffix("_"), None)
    if not name.endswith("_") or functional is None:
        raise NoCertificateError(state("SYM190", operation=name))
    if name in ("fill_", "zero_"):
        value = args[1] if name == "fill_" else 0.0
        dtype = args[0].dtype
        filled = value if isinstance(value, Entries) else constant(graph, torch.tensor(as_stored(value, dtype)))
        _check_cast(args[0], Entries(filled.ids, filled.dtype if isinstance(value, Entries) else dtype))
        args[0].ids.copy_(filled.ids)
        return args[0]
    overload = getattr(functional, target._overloadname, None) or functional.default
    result = compute(graph, overload, args, kwargs)
    if _only_views(target):
        args[0].ids = result.ids
    else:
        _check_cast(args[0], result)
        args[0].ids.copy_(result.ids)
    return args[0]


def _decomposed(graph: Graph, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator, decomposed as torch defines it."""
    rule = torch._decomp.decomposition_table.get(target)
    if rule is None:
        raise NoCertificateError(state("SYM190", operation=name))
    entries = leaves((args, kwargs))
    examples = [torch.zeros(item.ids.shape, dtype=item.dtype) for item in entries]
    structure: list[Any] = []

    def run(*tensors: torch.Tensor) -> Any:
        remaining = iter(tensors)
        result = target(*mapped(args, lambda _: next(remaining)), **mapped(kwargs, lambda _: next(remaining)))
        leaves_of_result, spec = tree_flatten(result)
        structure[:] = [spec]
        return leaves_of_result

    try:
        module = make_fx(run, decomposition_table={target: rule})(*examples)
    except Exception as error:  # torch's own decomposition does not run on it
        raise NoCertificateError(state("SYM190", operation=name)) from error
    if any(node.target is target for node in module.graph.nodes):
        raise NoCertificateError(state("SYM190", operation=name))
    results = _run(graph, module, list(entries), None)
    return torch.utils._pytree.tree_unflatten(results, structure[0])
