"""Converts a network's plan to the tables that `learn.c` reads.

Every layer's weight is a sum of blocks of coefficients. One list of entries therefore describes dense layers, basis
layers and heads, and the same list read backwards collects gradients. A layer into pairs that a reflection exchanges is
computed as two products of half the size: sums of pairs depend only on the even half of the weight, differences only on
the odd half.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator, Sequence
from ctypes import c_float
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_agents.networks.parameters import ALIGNMENT, Layout
from reference_agents.networks.plans import DEVIATION, ActorCriticPlan, LinearPlan
from symcheck.array_types import Floats

MOST_LAYERS, MOST_HEADS = 16, 64
"""Limits of `Space` and `derive` in learn.c."""


class Span(ctypes.Structure):
    """A range of entries in the list."""

    _fields_ = (("at", ctypes.c_int64), ("count", ctypes.c_int64))


def _structure(name: str, *parts: tuple[str, Any]) -> type[ctypes.Structure]:
    fields = [(field, kind) for names, kind in parts for field in names.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


EntryRow = _structure(
    "EntryRow",
    ("first second to outer inner from_row from_column to_row to_column adds", ctypes.c_int64),
    ("by_first by_second", ctypes.c_float),
)
LayerRow = _structure(
    "LayerRow",
    ("split blocks direct weight inputs even odd width outputs", ctypes.c_int64),
    ("matrix offset by_matrix by_offset", Span),
)
JobRow = _structure(
    "JobRow",
    ("runs batch observation minibatch minibatches layers features heads numbers parameters", ctypes.c_int64),
    ("head head_offset deviation by_head by_head_offset by_deviation", Span),
    ("components normalise", ctypes.c_int64),
    ("clip value_coefficient entropy_coefficient max_norm bound_penalty soft_bound input_scale masked_logit", c_float),
)
CartRow = _structure(
    "CartRow",
    ("gravity mass pole_mass length moment force time_step furthest steepest", ctypes.c_double),
    ("limit", ctypes.c_int64),
)


class Block(NamedTuple):
    """A block of coefficients that is added to a matrix: the positions of both, and a factor.

    Attributes:
        coefficients: the position of the block in the parameters; rows are `columns` apart.
        matrix: the position in the matrix.
        value: the factor.
        rows: the rows of the block.
        columns: the columns of the block.
        matrix_row: the stride between rows of the matrix.
        matrix_column: the stride between columns.
    """

    coefficients: int
    matrix: int
    value: float
    rows: int
    columns: int
    matrix_row: int
    matrix_column: int = 1


@dataclass
class Description:
    """The tables of one network.

    Attributes:
        features: the number of units of the last hidden layer.
        heads: the number of outputs of the policy head, plus one for the value.
        layers: one row for each hidden layer.
        entries: the entries of all matrices and offsets.
        places: inputs of a first layer whose sign does not change, then those whose sign does.
        spans: the spans by name.
    """

    features: int
    heads: int
    layers: list[Any] = field(default_factory=list)
    entries: list[Any] = field(default_factory=list)
    places: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    spans: dict[str, Span] = field(default_factory=dict)

    def add(self, blocks: Sequence[Block]) -> tuple[Span, Span]:
        """Append the entries that build a matrix from coefficients and collect their gradients."""
        forth = self._append_entries((block.matrix, block.coefficients, block, True) for block in blocks)
        return forth, self._append_entries((block.coefficients, block.matrix, block, False) for block in blocks)

    def _append_entries(self, moves: Iterator[tuple[int, int, Block, bool]]) -> Span:
        groups: dict[int, list[tuple[int, Block, bool]]] = {}
        for to, source, block, forth in moves:
            groups.setdefault(to, []).append((source, block, forth))
        span = Span(at=len(self.entries))
        for to, group in groups.items():
            # Two sources at a time, so that each target with at most two sources is written once.
            for start in range(0, len(group), 2):
                self.entries.append(_combining_entry(to, group[start : start + 2], adds=start > 0))
        span.count = len(self.entries) - span.at
        return span


def _combining_entry(to: int, sources: Sequence[tuple[int, Block, bool]], *, adds: bool) -> Any:
    (first, block, forth), (second, other, _) = sources[0], sources[-1]
    matrix, coefficients = (block.matrix_row, block.matrix_column), (block.columns, 1)
    from_steps, to_steps = (coefficients, matrix) if forth else (matrix, coefficients)
    return EntryRow(
        first=first, second=second, to=to, outer=block.rows, inner=block.columns, from_row=from_steps[0],
        from_column=from_steps[1], to_row=to_steps[0], to_column=to_steps[1], adds=adds, by_first=block.value,
        by_second=other.value if len(sources) > 1 else 0.0,
    )  # fmt: skip


def describe(plan: ActorCriticPlan, layout: Layout) -> Description | None:
    """The tables of a network; None if `learn.c` does not support it.

    Unsupported are networks over images, with too many layers or actions, or with ordinary layers between basis layers.
    """
    trunk = [layer for layer in plan.trunk if isinstance(layer, LinearPlan)]
    # A layer after an image reads positions, which are in another order.
    vectors = len(trunk) == len(plan.trunk) and all(layer.pixels == 1 for layer in plan.layers)
    if not vectors or any(layer.components_in > 1 for layer in trunk):
        return None
    if not 0 < len(trunk) <= MOST_LAYERS or plan.policy.outputs >= MOST_HEADS:
        return None
    last = trunk[-1]
    features = int(last.weight_basis.shape[1]) * _whole_lines(last.channels_out)
    made = Description(features, plan.policy.outputs + 1)
    # The stride between the components of a row; observations have no padding.
    stride = trunk[0].channels_in
    for depth, layer in enumerate(trunk):
        stride = _add_layer(made, layer, layout, depth, stride)
    _add_heads(made, plan, layout, stride)
    return made


def _add_layer(made: Description, layer: LinearPlan, layout: Layout, depth: int, stride: int) -> int:
    """Append a hidden layer; return the stride between the components of its output."""
    weight, width = layout.offsets[f"{layer.name}.weight"], _whole_lines(layer.channels_out)
    dim_out, dim_in = layer.weight_basis.shape[1:]
    halves = _split_halves(layer, depth)
    row = LayerRow(weight=weight, inputs=dim_in * stride, outputs=dim_out * width, width=dim_out // 2 * width)
    bias = layer.bias_basis
    if halves is None:
        row.even, row.width, row.blocks = dim_in * stride, dim_out * width, _count_blocks(layer.weight_basis)
        dense = layer.weight_basis.shape == (1, 1, 1) and layer.weight_basis.item() == 1.0
        row.direct = dense and width == layer.channels_out and stride == layer.channels_in
        blocks = _matrix_blocks(layer.weight_basis, weight, layer, (stride * row.width, width), row.width)
    else:
        row.split, row.blocks = 2 if depth == 0 else 1, min(map(_count_blocks, halves.parts))
        row.even, row.odd = (stride * part.shape[2] for part in halves.parts)
        if depth == 0:
            made.places = halves.places
        blocks = [
            block
            for part, start in zip(halves.parts, (0, row.even * row.width), strict=True)
            for block in _matrix_blocks(part, weight, layer, (stride * row.width, width), row.width, start)
        ]
        # The even product adds the shared bias to both elements of a pair.
        bias = None if bias is None else bias[:, : dim_out // 2]
    row.matrix, row.by_matrix = made.add([] if row.direct else blocks)
    offsets = [] if bias is None else _bias_blocks(bias, layer, layout, width)
    row.offset, row.by_offset = made.add(offsets)
    made.layers.append(row)
    return width


def _add_heads(made: Description, plan: ActorCriticPlan, layout: Layout, stride: int) -> None:
    """Append the matrix of both heads, one row per output; the last row is the value."""
    matrix: list[Block] = []
    offset: list[Block] = []
    for layer, start in ((plan.policy, 0), (plan.value, made.heads - 1)):
        matrix += _head_blocks(layer, layout.offsets[f"{layer.name}.weight"], made.features, start, stride)
        if layer.bias_basis is not None:
            offset += _bias_blocks(layer.bias_basis, layer, layout, layer.channels_out, start)
    deviation: list[Block] = []
    if plan.deviation_basis is not None:
        one = LinearPlan(DEVIATION, 1, 1, plan.deviation_basis, None)
        deviation = _matrix_blocks(plan.deviation_basis, layout.offsets[DEVIATION], one, (0, 1), 0)
    for name, blocks in (("head", matrix), ("head_offset", offset), ("deviation", deviation)):
        made.spans[name], made.spans[f"by_{name}"] = made.add(blocks)


def _head_blocks(layer: LinearPlan, source: int, features: int, start: int, stride: int) -> list[Block]:
    """Blocks of a matrix whose rows are outputs, from row `start` on; `stride` between components of the features."""
    columns = layer.channels_out
    # A dense layer on several components has a channel for each; there is padding between the components.
    pieces, rows = layer.components_in, layer.channels_in // layer.components_in
    return [
        Block(
            source + (r * pieces + piece) * rows * columns, (start + o * columns) * features + (i + piece) * stride,
            float(layer.weight_basis[r, o, i]), rows, columns, 1, features,
        )
        for r, o, i in np.argwhere(layer.weight_basis).tolist()
        for piece in range(pieces)
    ]  # fmt: skip


def _matrix_blocks(
    basis: Floats, source: int, layer: LinearPlan, strides: tuple[int, int], matrix_row: int, start: int = 0
) -> list[Block]:
    """Blocks of a matrix whose columns are outputs; strides of an input's and an output's component."""
    rows, columns = layer.channels_in, layer.channels_out
    return [
        Block(
            source + r * rows * columns, start + i * strides[0] + o * strides[1], float(basis[r, o, i]), rows, columns,
            matrix_row,
        )
        for r, o, i in np.argwhere(basis).tolist()
    ]  # fmt: skip


def _bias_blocks(basis: Floats, layer: LinearPlan, layout: Layout, stride: int, start: int = 0) -> list[Block]:
    one = dataclasses.replace(layer, channels_in=1)
    return _matrix_blocks(basis, layout.offsets[f"{layer.name}.bias"], one, (0, stride), 0, start)


class _Halves(NamedTuple):
    """A layer with paired outputs as two products.

    Attributes:
        places: inputs of a first layer whose sign the reflection keeps, then those whose sign it changes.
        parts: bases (rank, components out, components in) of the even and the odd half of the weight.
    """

    places: npt.NDArray[np.int32]
    parts: tuple[Floats, Floats]


def _split_halves(layer: LinearPlan, depth: int) -> _Halves | None:
    """The halves of a layer that commutes with exchanging the halves of its output's components; None for others.

    The reflection keeps or changes the sign of each input of a first layer; the inputs of other layers are pairs too.
    The bias is even.
    """
    basis, bias = layer.weight_basis, layer.bias_basis
    half, odd_one = divmod(basis.shape[1], 2)
    if odd_one or (bias is not None and not np.array_equal(bias[:, :half], bias[:, half:])):
        return None
    first, second = basis[:, :half], basis[:, half:]
    if depth == 0:
        # Bases are exact, so rows are compared without a tolerance.
        even, odd = (first == second).all((0, 1)), (first == -second).all((0, 1))
        if layer.channels_in != 1 or not (even ^ odd).all():
            return None
        places = np.concatenate([np.flatnonzero(even), np.flatnonzero(odd)]).astype(np.int32)
        return _Halves(places, (first[:, :, even], first[:, :, odd]))
    if basis.shape[2] % 2 or not np.array_equal(first, np.roll(second, basis.shape[2] // 2, axis=2)):
        return None
    # x = (s + d) / 2 and x' = (s - d) / 2 of a pair (x, x') with sum s and difference d.
    ahead, behind = np.split(first, 2, axis=2)
    return _Halves(np.zeros(1, np.int32), ((ahead + behind) / 2.0, (ahead - behind) / 2.0))


def _count_blocks(basis: Floats) -> int:
    """2 if every matrix (rank, 2, 2) is diagonal, as if policy and value have separate layers; else 1."""
    return 2 if basis.shape[1:] == (2, 2) and not basis[:, [0, 1], [1, 0]].any() else 1


def _whole_lines(numbers: int) -> int:
    """The next multiple of `ALIGNMENT` (`LINE` in learn.c): rows of matrices are padded to whole cache lines."""
    return -(-numbers // ALIGNMENT) * ALIGNMENT
