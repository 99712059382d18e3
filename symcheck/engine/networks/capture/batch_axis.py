"""Checks operator by operator that a captured network treats the samples of a batch independently and identically.

Every tensor that depends on the batch has one axis whose size contains the batch symbol. If an operator reads, reorders
or sums along that axis, the output for one sample depends on the others, or on its position; a proof for one sample
then does not extend to the network. Operators without a rule here are rejected.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_flatten

from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.capture.operator_kinds import (
    ALONG,
    AT_PLACES,
    LAST_TWO,
    MAY_RAISE,
    NUMBERING,
    ON_GRIDS,
    PERMUTING,
    POINTWISE,
    PRODUCTS,
    RANDOM,
    UNIFORM,
    VIEWS,
)
from symcheck.engine.networks.capture.places_in_range import (
    may_divide_by_zero,
    may_lie_outside,
    numbers_own_rows,
    reads_own_row,
)
from symcheck.engine.networks.capture.shared_memory import root_of, written_into
from symcheck.engine.networks.capture.sizes import multiple_of, symbols_of
from symcheck.statements.statement import Statement, state

_FULL = 2**62
"""The end of a slice that runs to the end of its axis."""


_ADDING_AN_AXIS = ("aten::stack", "aten::diag_embed", "aten::select_backward")


class _MixedError(Exception):
    def __init__(self, reason: Statement) -> None:
        self.reason = reason
        super().__init__(reason.code)


def why_samples_meet(captured: Capture) -> tuple[Statement, fx.Node] | None:
    """The first operator that mixes samples or treats them differently, or has no rule; None if there is none.

    Args:
        captured: the graph.

    Returns:
        The reason, and the node.
    """
    follower = _Follower(captured.size)
    for node in captured.graph.nodes:
        try:
            follower.follow(node)
        except _MixedError as error:
            return error.reason, node
    return None


class _Follower:
    """The batch axis, node by node, and how many entries within it lie outside the samples."""

    def __init__(self, size: Any) -> None:
        self.size = size
        # In a merged axis (t * n), samples are the inner index and t the outer one; None if all rows are identical.
        self.outside: dict[fx.Node, int | None] = {}

    def follow(self, node: fx.Node) -> None:
        if node.op in ("placeholder", "get_attr"):
            self.outside[node] = 1
            return
        if node.op != "call_function":
            return
        if node.target is operator.getitem:
            self.outside[node] = self.outside.get(node.args[0])  # type: ignore[arg-type]
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            if self._has_tensors(node):
                raise _MixedError(state("SYM154", operation=getattr(node.target, "__name__", str(node.target))))
            return
        name = node.target._schema.name.removeprefix("aten::")
        base = name.removesuffix("_")
        if name.startswith("sym_") or (not self._has_tensors(node) and not self._batched(node)):
            if name.startswith(MAY_RAISE):
                raise _MixedError(state("SYM184", operation=name))
            self.outside[node] = 1
            return
        written = written_into(node)
        if any(root_of(item).op != "call_function" for item in written):
            raise _MixedError(state("SYM183", what="a parameter or buffer"))
        if not self._batched(node) and not self._output_axes(node):
            # depends on constants only: an error is raised for every input or for none
            self._refuse_sizes(node, base, (node.args, node.kwargs))
            self.outside[node] = 1
            return
        if base == "arange" and numbers_own_rows(node):
            self.outside[node] = 1
            return
        self._refuse_sizes_as_numbers(node, base)
        if may_divide_by_zero(node):
            raise _MixedError(state("SYM184", operation=base))
        if base in AT_PLACES and may_lie_outside(node, AT_PLACES[base], self._batched(node)):
            raise _MixedError(state("SYM184", operation=base))
        self.outside[node] = self._rule(name, base, node)(node)
        for item in written:
            self._write_into(item, node)

    def _rule(self, name: str, base: str, node: fx.Node) -> Callable[[fx.Node], int | None]:
        for names, rule in (
            (VIEWS, self._view),
            (PERMUTING, self._permuting),
            (UNIFORM, self._alike),
            (PRODUCTS, self._multiplying),
            (ALONG, self._along),
            (LAST_TWO, self._spares(2)),
        ):
            if base in names:
                return rule
        if base in POINTWISE or torch.Tag.pointwise in node.target.tags:  # type: ignore[union-attr]
            return self._pointwise
        own = getattr(self, f"_{base.lstrip('_')}", None)
        if own is not None:
            return own  # type: ignore[no-any-return]
        grid = next((prefix for prefix in ON_GRIDS if base.startswith(prefix)), None)
        if grid is not None:
            return self._grid
        if base.startswith("_scaled_dot_product"):
            return self._spares(2)
        if name.startswith(MAY_RAISE):
            raise _MixedError(state("SYM184", operation=name))
        if base in NUMBERING:
            raise self._mixing(node)
        if name.startswith(RANDOM):
            raise _MixedError(state("SYM158", operation=name))
        raise _MixedError(state("SYM154", operation=name))

    # The position of the batch axis

    def axes(self, value: Any) -> list[int]:
        """The axes whose size contains the batch symbol."""
        if not isinstance(value, torch.Tensor) or self.size is None:
            return []
        return [axis for axis, size in enumerate(value.shape) if self.size in symbols_of(size)]

    def _has_tensors(self, node: fx.Node) -> bool:
        return any(isinstance(item.meta.get("val"), torch.Tensor) for item in node.all_input_nodes) or isinstance(
            node.meta.get("val"), torch.Tensor
        )

    def _batched(self, node: fx.Node) -> list[fx.Node]:
        return [item for item in node.all_input_nodes if self.axes(item.meta.get("val"))]

    def _output_axes(self, node: fx.Node) -> list[int]:
        outputs = [item for item in tree_flatten(node.meta.get("val"))[0] if isinstance(item, torch.Tensor)]
        return next((axes for item in outputs if (axes := self.axes(item))), [])

    def _write_into(self, node: fx.Node, writer: fx.Node) -> None:
        """After a write, a tensor with identical rows has rows in the order of the written values."""
        while True:
            if self.outside.get(node) is None and self.outside[writer] is not None:
                if self.outside[writer] != 1:
                    raise self._mixing(writer)
                self.outside[node] = 1
            if node is root_of(node):
                return
            node = node.all_input_nodes[0]

    def _refuse_sizes_as_numbers(self, node: fx.Node, base: str) -> None:
        if base == "slice" and (node.args[1] if len(node.args) > 1 else 0) not in self._axes_of_batch(node.args[0]):
            self._refuse_sizes(node, base, node.args)  # the batch size would select a part of each sample
        if base in ("slice_backward", "select_backward"):
            # the preceding arguments are the sizes of the tensor that was sliced
            self._refuse_sizes(node, base, node.args[2:])
        elif base in VIEWS | UNIFORM | {"expand", "repeat", "slice", "split", "unflatten", "native_group_norm"}:
            if base in ("full", "full_like", "new_full", "scalar_tensor"):
                self._refuse_sizes(node, base, node.args[1:] if base == "full" else node.args)
        else:
            self._refuse_sizes(node, base, (node.args, node.kwargs))

    def _axes_of_batch(self, source: Any) -> list[int]:
        """The axes whose size contains the batch symbol, counted from the left and from the right."""
        value = source.meta["val"]
        return [k for axis in self.axes(value) for k in (axis, axis - value.ndim)]

    def _refuse_sizes(self, node: fx.Node, base: str, arguments: Any) -> None:
        for item in tree_flatten(arguments)[0]:
            value = item.meta.get("val") if isinstance(item, fx.Node) else item
            if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
                raise _MixedError(state("SYM181", guard=f"{base} of n"))

    def _mixing(self, node: fx.Node) -> _MixedError:
        return _MixedError(state("SYM182", operation=node.target._schema.name.removeprefix("aten::")))  # type: ignore[union-attr]

    def _one_axis(self, value: Any, node: fx.Node) -> int:
        axes = self.axes(value)
        if len(axes) != 1:
            raise self._mixing(node)
        return axes[0]

    def _same_outside(self, node: fx.Node) -> int | None:
        known = {self.outside.get(item, 1) for item in self._batched(node)} - {None}
        if len(known) > 1:
            raise self._mixing(node)
        return next(iter(known), None)

    # Rules

    def _pointwise(self, node: fx.Node) -> int | None:
        result = node.meta["val"]
        result = result if isinstance(result, torch.Tensor) else result[0]
        axis = self._one_axis(result, node) - result.ndim
        for item in self._batched(node):
            value = item.meta["val"]
            if self._one_axis(value, node) - value.ndim != axis:
                raise self._mixing(node)
        return self._same_outside(node)

    def _view(self, node: fx.Node) -> int | None:
        source = node.args[0]
        before, after = source.meta["val"], node.meta["val"]  # type: ignore[union-attr]
        old, new = self._one_axis(before, node), self._one_axis(after, node)
        within = self.outside.get(source)  # type: ignore[arg-type]
        if within is None:
            return None
        outside = prod(int(size) for size in before.shape[:old]) * within
        left, rest = divmod(outside, prod(int(size) for size in after.shape[:new]))
        if rest or multiple_of(after.shape[new], self.size) % max(left, 1):
            raise self._mixing(node)
        return left

    def _permuting(self, node: fx.Node) -> int | None:
        self._one_axis(node.meta["val"], node)
        return self._same_outside(node)

    def _alike(self, node: fx.Node) -> int | None:
        self._one_axis(node.meta["val"], node)
        return None

    def _along(self, node: fx.Node) -> int | None:
        schema = node.target._schema  # type: ignore[union-attr]
        given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs
        defaults = {argument.name: argument.default_value for argument in schema.arguments}
        for item in self._batched(node):
            value = item.meta["val"]
            axis = self._one_axis(value, node)
            named = [
                given.get(key, defaults[key]) for key in defaults if key in ("dim", "dims", "dim1", "dim2", "dimension")
            ]
            axes = [k for entry in named for k in (entry if isinstance(entry, list | tuple) else [entry])]
            size = value.ndim + (schema.name in _ADDING_AN_AXIS)
            if not axes or any(k is None for k in axes):
                raise self._mixing(node)
            touched = {int(k) % size for k in axes}
            if schema.name in _ADDING_AN_AXIS:
                continue
            if axis in touched and not self._takes_all(schema.name, given, value.shape[axis]):
                return self._in_whole_batches(schema.name, given, axis, node)
        self._aligned_from_left(node)
        return self._same_outside(node)

    def _in_whole_batches(self, name: str, given: dict[str, Any], axis: int, node: fx.Node) -> int:
        """The number of consecutive batches along an axis after batches were concatenated or split off."""
        joined = given["tensors"] if name == "aten::cat" else [given.get("self")]
        pieces = [item for item in tree_flatten(node.meta["val"])[0] if isinstance(item, torch.Tensor)]
        made = {self._whole(item.shape[axis]) for item in pieces}
        known = name in ("aten::cat", "aten::split", "aten::unsafe_split")
        if name == "aten::slice":
            known = given.get("step", 1) == 1 and self._whole(given.get("start")) is not None
        if not known or len(made) > 1 or None in made or any(self._batches(item, axis) is None for item in joined):
            raise self._mixing(node)
        return made.pop() or 1

    def _batches(self, item: Any, axis: int) -> int | None:
        """The number of consecutive whole batches along an axis; None if the axis holds anything else."""
        if not isinstance(item, fx.Node) or self.axes(item.meta["val"]) != [axis]:
            return None
        count = self._whole(item.meta["val"].shape[axis])
        return count if count is not None and self.outside.get(item) == count else None

    def _whole(self, size: Any) -> int | None:
        """The k of a size k * n; None for any other size."""
        size = size.meta["val"] if isinstance(size, fx.Node) else size or 0
        if isinstance(size, int):
            return 0 if size == 0 else None
        quotient = size.node.expr / self.size
        return int(quotient) if quotient.is_integer and not quotient.free_symbols else None

    def _takes_all(self, name: str, given: dict[str, Any], size: Any) -> bool:
        if name not in ("aten::slice", "aten::slice_scatter", "aten::slice_backward"):
            return False
        end = given.get("end")
        end = end.meta["val"] if isinstance(end, fx.Node) else end
        whole = end is None or (isinstance(end, int) and end > _FULL) or str(end) == str(size)
        return whole and given.get("start") in (None, 0) and given.get("step", 1) == 1

    def _aligned_from_left(self, node: fx.Node) -> None:
        places = {self._one_axis(item.meta["val"], node) for item in self._batched(node)}
        if len(places) > 1:
            raise self._mixing(node)
        for value in tree_flatten(node.meta["val"])[0]:
            if isinstance(value, torch.Tensor):
                self._one_axis(value, node)

    def _repeat(self, node: fx.Node) -> int | None:
        value, result = node.args[0].meta["val"], node.meta["val"]  # type: ignore[union-attr]
        if not self.axes(value):
            return self._alike(node)
        axis = self._one_axis(value, node) + result.ndim - value.ndim
        repeats = node.args[1]
        if repeats[axis] != 1 or self._one_axis(result, node) != axis:  # type: ignore[index]
            raise self._mixing(node)
        return self._same_outside(node)

    def _constant_pad_nd(self, node: fx.Node) -> int | None:
        value = node.args[0].meta["val"]  # type: ignore[union-attr]
        pads = list(node.args[1])  # type: ignore[arg-type]
        padded = {value.ndim - 1 - k // 2 for k, pad in enumerate(pads) if pad != 0}
        if self._one_axis(value, node) in padded:
            raise self._mixing(node)
        return self._same_outside(node)

    def _index(self, node: fx.Node) -> int | None:
        source, indices = node.args[0], list(node.args[1])  # type: ignore[arg-type]
        own = indices[0]
        if isinstance(own, fx.Node) and str(own.target) == "aten.arange.default" and reads_own_row(node, own):
            return self._same_outside(node)
        if any(isinstance(item, fx.Node) and self.axes(item.meta["val"]) for item in indices):
            raise _MixedError(state("SYM155", operation="index", depends="indices"))
        value = source.meta["val"]  # type: ignore[union-attr]
        axis = self._one_axis(value, node)
        if axis < len(indices) and indices[axis] is not None:
            raise self._mixing(node)
        if node.target._schema.name.endswith("index"):  # type: ignore[union-attr]
            self._one_axis(node.meta["val"], node)
        return self._same_outside(node)

    _index_put = _index
    _unsafe_index = _index

    def _bucketize(self, node: fx.Node) -> int | None:
        table, x = node.args[:2][::-1] if "bucketize" in str(node.target) else node.args[:2]
        if not isinstance(x, fx.Node) or (isinstance(table, fx.Node) and self.axes(table.meta["val"])):
            raise self._mixing(node)
        return self._same_outside(node)

    _searchsorted = _bucketize

    def _trilinear(self, node: fx.Node) -> int | None:
        given: Any = node.args
        axes = [self.axes(item.meta["val"]) for item in given[:3]]
        # the batch is the first axis of every operand; the weights in between are expanded along it
        if axes != [[0], [], [0]] or 0 in (*given[3], *given[5], *given[6]) or 0 not in given[4]:
            raise self._mixing(node)
        return self._same_outside(node)

    def _embedding(self, node: fx.Node) -> int | None:
        if self.axes(node.args[0].meta["val"]):  # type: ignore[union-attr]
            raise self._mixing(node)
        return self._same_outside(node)

    def _multiplying(self, node: fx.Node) -> int | None:
        name = node.target._schema.name.removeprefix("aten::")  # type: ignore[union-attr]
        factors = node.args[1:3] if name.startswith(("addm", "badd")) else node.args[:2]
        for place, item in enumerate(factors):
            value = item.meta["val"]  # type: ignore[union-attr]
            for axis in self.axes(value):
                # the axis that is summed over: the last axis of the left factor, the second-to-last of the right one
                if axis - value.ndim == (-1 if place == 0 else -min(2, value.ndim)) and name != "linear":
                    raise self._mixing(node)
        self._one_axis(node.meta["val"], node)
        return self._same_outside(node)

    def _cdist_forward(self, node: fx.Node) -> int | None:
        for item in node.args[:2]:
            value = item.meta["val"]  # type: ignore[union-attr]
            if value.ndim - 1 in self.axes(value):
                raise self._mixing(node)
        self._one_axis(node.meta["val"], node)
        return self._same_outside(node)

    _euclidean_dist = _cdist_forward

    def _spares(self, count: int) -> Callable[[fx.Node], int | None]:
        """A rule for operators that read and mix only the last axes."""

        def rule(node: fx.Node) -> int | None:
            for item in self._batched(node):
                value = item.meta["val"]
                if self._one_axis(value, node) >= value.ndim - count:
                    raise self._mixing(node)
            self._aligned_from_left(node)
            return self._same_outside(node)

        return rule

    def _grid(self, node: fx.Node) -> int | None:
        batched = self._batched(node)
        # filters must be constant, and the batch axis must be the first
        if batched != [node.args[0]] and not str(node.target).startswith(("aten.grid_sampler", "aten.max_unpool")):
            raise self._mixing(node)
        if any(self._one_axis(item.meta["val"], node) != 0 for item in batched):
            raise self._mixing(node)
        return self._same_outside(node)

    def _native_layer_norm(self, node: fx.Node) -> int | None:
        return self._spares(len(node.args[1]))(node)  # type: ignore[arg-type]

    def _native_group_norm(self, node: fx.Node) -> int | None:
        return self._grid(node)

    def _native_batch_norm_legit_no_training(self, node: fx.Node) -> int | None:
        return self._grid(node)

    def _native_batch_norm(self, node: fx.Node) -> int | None:
        if not node.args[5]:
            return self._grid(node)
        # statistics are computed over the samples themselves, separately for each entry of the second axis
        if any(self._one_axis(item.meta["val"], node) not in (0, 1) for item in self._batched(node)):
            raise self._mixing(node)
        if self._one_axis(node.args[0].meta["val"], node) != 1:  # type: ignore[union-attr]
            raise self._mixing(node)
        return self._same_outside(node)

    _native_batch_norm_legit = _native_batch_norm
