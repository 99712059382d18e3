"""The values of all entries of a network at some inputs, and which entries are equal there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.certificate_checker import FUNCTIONS, REDUCTIONS
from symcheck.engine.clock import raise_if_late
from symcheck.engine.networks.graph.nodes import Graph, Node

MOST_NUMBERS = 40_000_000
"""Arguments of all nodes, times inputs, up to which a network is run entry by entry: a few seconds."""
_CHUNK = 4_000_000  # arguments times inputs in one gather
NEAR = 1e-9
"""Relative distance up to which two entries are the same function of x: the float64 rounding of deep networks."""


class Run:
    """The values of a graph's entries at inputs x and at their images.

    Args:
        graph: the nodes.
        inputs: x, shape (inputs, size).
        images: L x for each generator.
    """

    def __init__(self, graph: Graph, inputs: Floats, images: Sequence[Floats]) -> None:
        self._graph = graph
        self._inputs = inputs
        self._images = images

    @cached_property
    def is_small(self) -> bool:
        """Whether the network is small enough to be run entry by entry."""
        return sum(node.x.size for node in self._graph.nodes) * len(self._inputs) <= MOST_NUMBERS

    @cached_property
    def at_x(self) -> Floats:
        """The values of entries at x, shape (entries, inputs)."""
        return entries_at(self._graph, self._inputs)

    @cached_property
    def at_images(self) -> list[Floats]:
        """The values of entries at L x, for each generator."""
        return [entries_at(self._graph, image) for image in self._images]

    @cached_property
    def _tree(self) -> tuple[Any, Ints]:
        from scipy.spatial import cKDTree

        finite = np.flatnonzero(np.isfinite(self.at_x).all(axis=1))
        return cKDTree(self.at_x[finite]), finite

    def partners(self, generator: int, entries: Ints, near: float) -> tuple[Ints, Ints]:
        """Entries whose values at x equal those of the given entries at L x, up to sign; -1 if there is none.

        Args:
            generator: the generator.
            entries: entries at L x.
            near: the largest accepted distance, relative to their size.
        """
        tree, finite = self._tree
        wanted = self.at_images[generator][entries]
        result, sign = np.full(len(entries), -1), np.ones(len(entries), dtype=np.int64)
        usable = np.asarray(np.isfinite(wanted).all(axis=1))
        size = np.abs(np.where(usable[:, None], wanted, 0.0)).max(axis=1)
        for factor in (1, -1):
            left = np.flatnonzero(usable & (result < 0))
            if len(left):
                distance, place = tree.query(factor * wanted[left], p=np.inf)
                hit = distance <= near * np.maximum(size[left], 1e-3)
                result[left[hit]], sign[left[hit]] = finite[place[hit]], factor
        return result, sign


def entries_at(graph: Graph, inputs: Floats) -> Floats:
    """The values of all entries of a graph, shape (entries, inputs), at inputs of shape (inputs, size)."""
    values = np.zeros((graph.entries, len(inputs)))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            raise_if_late()
            if node.op == "input":
                values[node.start : node.start + node.size] = inputs.T
                continue
            step = max(1, _CHUNK // max(1, node.x.shape[1] * len(inputs)))
            parts = [
                _compute(graph, node, values_of(graph, node.x[k : k + step], values))
                for k in range(0, len(node.x), step)
            ]
            values[node.start : node.start + node.size] = np.concatenate(parts)
    return values


def values_of(graph: Graph, x: Ints, values: Floats) -> Floats:
    """Look up the values of ids; the result has the shape of x and a trailing axis of inputs."""
    result = values[np.maximum(x, 0)]
    fixed = x < 0
    if fixed.any():
        result[fixed] = graph.numbers(x[fixed])[:, None]
    return result


def _compute(graph: Graph, node: Node, x: Floats) -> Floats:
    """Entries of some rows of a node, from arguments of shape (rows, columns, inputs)."""
    if node.op == "linear" and node.weight is not None:
        y = np.einsum("uc,rcn->run", graph.numbers(node.weight), x, optimize=True)
        if node.bias is not None:
            y = y + graph.numbers(node.bias)[:, None]
        return np.asarray(y.reshape(-1, x.shape[2]))
    rows = np.moveaxis(x, 1, 2).reshape(-1, x.shape[1])
    if node.op == "pointwise":
        made = FUNCTIONS[node.function][1](*rows.T, *node.parameters)
    else:
        made = REDUCTIONS[node.function](rows, *node.parameters)
    return np.asarray(made, dtype=np.float64).reshape(len(x), x.shape[2])
