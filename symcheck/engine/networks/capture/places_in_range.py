"""Bounds on integers that a network computes from its input and uses as positions."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import torch
from torch import fx

from symcheck.engine.networks.capture.operator_kinds import ALONG, AT_PLACES, PERMUTING, POINTWISE, PRODUCTS, VIEWS

_KEEPING_NAMES = (
    "view _unsafe_view reshape unsqueeze squeeze permute transpose t expand slice select clone detach alias contiguous "
    "flip roll repeat lift_fresh lift_fresh_copy"
)
_KEEPING = frozenset(_KEEPING_NAMES.split())
"""Operators whose results are values of their first argument."""
_PLACES = frozenset(["argmax", "argmin", "argsort", "sort", "topk", "max", "min", "kthvalue", "median", "mode"])
"""Operators that return positions of entries along an axis."""


def may_lie_outside(node: fx.Node, argument: str, batched: Collection[fx.Node]) -> bool:
    """Whether an operator may raise because positions that depend on the input lie outside its tensor.

    Args:
        node: the operator.
        argument: the name of the argument that holds the positions.
        batched: the nodes among its arguments that depend on the input.
    """
    names = [item.name for item in node.target._schema.arguments]  # type: ignore[union-attr]
    given: Any = node.args
    if (places := given[names.index(argument)]) not in batched:
        return False
    table, dim = given[0].meta["val"], given[1] if "dim" in names else 0
    size, bound = table.shape[dim] if table.ndim else 1, upper_bound(places)
    return bound is None or not isinstance(size, int) or bound > size


def may_divide_by_zero(node: fx.Node) -> bool:
    """Whether an operator divides integers by the integers of a tensor, so that it raises if one of them is zero."""
    if not isinstance(node.target, torch._ops.OpOverload) or len(node.args) < 2:
        return False
    name = node.target._schema.name.removeprefix("aten::").rstrip("_")
    values = [item.meta.get("val") for item in node.all_input_nodes]
    whole = all(not item.is_floating_point() for item in values if isinstance(item, torch.Tensor))
    rounds = name in ("floor_divide", "remainder", "fmod") or node.kwargs.get("rounding_mode") is not None
    return whole and rounds and isinstance(node.args[1], fx.Node)


def numbers_own_rows(node: fx.Node) -> bool:
    """Whether the numbers of an `arange` only make each sample read its own row of the batch.

    Args:
        node: an `arange` of the batch size.
    """
    return len(node.args) == 1 and all(reads_own_row(user, node) for user in node.users)


def reads_own_row(user: fx.Node, rows: fx.Node) -> bool:
    """Whether an operator reads one row of each sample, at positions inside its tensor."""
    if str(user.target) != "aten.index.Tensor" or user.args[0] is rows:
        return False
    source, indices = user.args[0].meta["val"], list(user.args[1])  # type: ignore[union-attr, arg-type]
    own, samples = indices.pop(0), str(source.shape[0])
    if own is not rows or rows in indices or not all(isinstance(item, fx.Node) for item in indices):
        return False
    values = [item.meta["val"] for item in (rows, *indices)]
    bounds = [upper_bound(item) for item in indices]
    alike = all(value.ndim == 1 and str(value.shape[0]) == samples for value in values)
    return alike and all(bound is not None and bound <= source.shape[k] for k, bound in enumerate(bounds, start=1))


def drop_what_decides_nothing(module: fx.GraphModule) -> None:
    """Remove position checks that pass for every input, and unused values that cannot raise."""
    for node in list(module.graph.nodes):
        if str(node.target).startswith("aten._assert_async") and _always_passes(node.args[0]):
            module.graph.erase_node(node)
        if str(node.target) == "aten.ones_like.default" and not node.meta["val"].shape:
            # the start of a gradient; it uses only the dtype of the differentiated value
            with module.graph.inserting_before(node):
                one = module.graph.call_function(torch.ops.aten.ones.default, ([],), {"dtype": node.meta["val"].dtype})
            one.meta = node.meta
            node.replace_all_uses_with(one)
    for node in reversed(list(module.graph.nodes)):
        known = isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.is_mutable
        if may_divide_by_zero(node):
            continue
        if known and not node.users and node.target._schema.name.removeprefix("aten::") in _WITHOUT_EFFECT:
            module.graph.erase_node(node)
    module.recompile()


_WITHOUT_EFFECT = (
    (ALONG - AT_PLACES.keys()) | POINTWISE | VIEWS | PERMUTING | PRODUCTS | {"ge", "lt", "all", "ones_like"}
)


def _always_passes(check: fx.Node) -> bool:
    """Whether all positions of a node are at least 0, or below a number, according to their operators."""
    if str(check.target) != "aten.all.default":
        return False
    asked: Any = check.args[0]
    name = str(getattr(asked, "target", ""))
    if name not in ("aten.ge.Scalar", "aten.lt.Scalar") or not isinstance(asked.args[0], fx.Node):
        return False
    bound, limit = upper_bound(asked.args[0]), asked.args[1]
    return bound is not None and (limit <= 0 if "ge" in name else limit >= bound)


def upper_bound(node: fx.Node) -> int | None:
    """A strict upper bound of a node's integers, if they are non-negative; None if no bound is known.

    Args:
        node: a node of a captured graph.
    """
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool:
        return 2
    if node.op == "get_attr":
        return _bound_of(getattr(node.graph.owning_module, str(node.target)))
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        parent, item = node.args
        return _length_of_axis(parent) if item == 1 else None  # type: ignore[arg-type]
    if str(node.target) == "aten.zeros.default":
        return 1
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(node.args[0], fx.Node):
        return None
    name = node.target._schema.name.removeprefix("aten::")
    source = node.args[0]
    if name in ("zeros_like", "new_zeros"):
        return 1
    if name in _KEEPING:
        return upper_bound(source)
    if name == "_to_copy":
        whole = isinstance(value, torch.Tensor) and value.dtype in (torch.int32, torch.int64)
        return upper_bound(source) if whole else None
    if name == "clamp" and len(node.args) == 3 and all(isinstance(item, int) for item in node.args[1:]):
        low, high = node.args[1:]
        return int(high) + 1 if 0 <= int(low) <= int(high) else None  # type: ignore[arg-type]
    if name == "remainder" and isinstance(node.args[1], int) and node.args[1] > 0:
        return node.args[1]
    if name in ("bucketize", "searchsorted"):
        # positions run from 0 to the number of thresholds, inclusive
        table = node.args[1 if name == "bucketize" else 0]
        length = table.meta["val"].shape[-1] if isinstance(table, fx.Node) else None
        return length + 1 if isinstance(length, int) else None
    return _length_of_axis(node) if name in ("argmax", "argmin", "argsort") else None


def _bound_of(constant: Any) -> int | None:
    if not isinstance(constant, torch.Tensor) or constant.is_floating_point() or not constant.numel():
        return None
    return int(constant.max()) + 1 if int(constant.min()) >= 0 else None


def _length_of_axis(node: fx.Node) -> int | None:
    """The number of positions among which an operator chooses; None if it chooses none."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    schema = node.target._schema
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs
    defaults = {argument.name: argument.default_value for argument in schema.arguments}
    value, dim = given["self"].meta["val"], given.get("dim", defaults.get("dim"))  # type: ignore[union-attr]
    if schema.name.removeprefix("aten::") not in _PLACES or not isinstance(dim, int):
        return None
    size = value.shape[dim]
    return size if isinstance(size, int) else None
