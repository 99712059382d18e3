"""Bounds on the distance of u_e(L x) from the claimed entry over a box of inputs, for rounded weights."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.blame.action import Action
from symcheck.engine.networks.blame.causes import operator_name
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Node, Step

_SLOPES = {
    # name: (largest slope, |f(0)|); of GELU, SiLU and Mish the maxima of their derivatives, rounded up
    "relu": (1.0, 0.0),
    "tanh": (1.0, 0.0),
    "sin": (1.0, 0.0),
    "cos": (1.0, 1.0),
    "sigmoid": (0.25, 0.5),
    "erf": (1.13, 0.0),
    "absolute": (1.0, 0.0),
    "arctan": (1.0, 0.0),
    "arcsinh": (1.0, 0.0),
}
_CALLS = {"gelu": 1.13, "silu": 1.1, "mish": 1.1}
"""Largest slopes of operators that a certificate expresses by several functions; each maps 0 to 0."""


class Bounds:
    """Bounds of every entry, for |x| <= box.

    Args:
        graph: the nodes.
        action: the action of the generators on them.
        gaps: by the start of a linear node, the largest distance of transformed rows of [W, b] from their images.
        box: the box of the inputs.

    Attributes:
        size: upper bound of |u_e(x)|.
        drift: upper bound of |u_e(L x) - sign u_e'(x)|; infinite if unknown.
    """

    def __init__(self, graph: Graph, action: Action, gaps: Mapping[int, Floats], box: float) -> None:
        self._graph = graph
        self._gaps = gaps
        # entries whose image is unknown, or was identified only up to rounding, are not exact
        self._exact = (action.where >= 0).all(axis=0) & ~action.rounded
        self.size = np.full(graph.entries, np.inf)
        self.drift = np.full(graph.entries, np.inf)
        first = graph.nodes[0]
        self.size[: first.size] = box
        self.drift[: first.size] = np.where(action.mixed[: first.size], np.inf, 0.0)
        ends = {step.last: step for step in graph.steps if step.last > step.first}
        for place, node in enumerate(graph.nodes[1:], start=1):
            with np.errstate(invalid="ignore", over="ignore"):
                size, drift = self._of_node(node)
            self._take(np.arange(node.start, node.start + node.size), size, drift)
            if place + 1 in ends:
                self._of_call(ends[place + 1])

    def of_rows(self, node: Node, units: Ints, gap: Floats) -> float:
        """Bound for the outputs of a layer with one row of arguments, from the gap of its rows."""
        size, drift = self._arguments(node)
        weights = np.abs(self._graph.numbers(node.weight))[units]
        return float((_times(weights, drift[0]) + _times(gap[:, :-1], size[0]) + gap[:, -1]).max(initial=0.0))

    def _take(self, entries: Ints, size: Floats, drift: Floats) -> None:
        known = np.isfinite(size) & np.isfinite(drift) & self._exact[entries]
        self.size[entries[known]], self.drift[entries[known]] = size[known], drift[known]

    def _arguments(self, node: Node) -> tuple[Floats, Floats]:
        fixed, places = node.x < 0, np.maximum(node.x, 0)
        size, drift = self.size[places], np.where(fixed, 0.0, self.drift[places])
        if fixed.any():
            size[fixed] = np.abs(self._graph.numbers(node.x[fixed]))
        return size, drift

    def _of_node(self, node: Node) -> tuple[Floats, Floats]:
        size, drift = self._arguments(node)
        if node.op == "linear" and node.weight is not None:
            W = np.abs(self._graph.numbers(node.weight)).reshape(len(node.weight), -1)
            b = 0.0 if node.bias is None else np.abs(self._graph.numbers(node.bias))
            moved = np.array([_times(W, row) for row in drift])
            gap = self._gaps.get(node.start)
            if gap is not None:
                # columns that were added up share one argument, so any column gives its size
                largest = size if gap.shape[1] - 1 == size.shape[1] else size.max(axis=1, keepdims=True)
                rows = np.broadcast_to(largest, (len(size), gap.shape[1] - 1))
                moved = moved + np.array([_times(gap[:, :-1], row) for row in rows]) + gap[:, -1]
            return (np.array([_times(W, row) for row in size]) + b).reshape(-1), moved.reshape(-1)
        if node.function == "place":
            fixed = (node.x < 0) & ~np.isfinite(size)  # padding that never is the maximum
            return np.where(fixed, 0.0, size).max(axis=1), drift.max(axis=1)
        if node.function == "prod":
            return size.prod(axis=1), (size + drift).prod(axis=1) - size.prod(axis=1)
        slope, start = self._slope(node, float(size.max(initial=0.0)))
        return size[:, 0] * slope + start, drift[:, 0] * slope

    def _slope(self, node: Node, size: float) -> tuple[float, float]:
        if node.function == "elu":
            alpha, scale, inner = node.parameters
            return max(abs(scale), abs(scale * alpha * inner)), 0.0
        # above the threshold it is discontinuous
        if node.function == "softplus" and node.parameters[0] * size <= node.parameters[1]:
            return 1.0, math.log(2) / node.parameters[0]
        return _SLOPES.get(node.function, (np.inf, np.inf))

    def _of_call(self, step: Step) -> None:
        """Bound for an operator of one tensor, entry by entry, from its slope."""
        slope = _CALLS.get(operator_name(step.operator), 0.0)
        if operator_name(step.operator) == "leaky_relu":
            args = step.operator.args
            slope = max(1.0, abs(float(args[1]) if len(args) > 1 else 0.01))
        if operator_name(step.operator) == "_prelu_kernel":  # f(u) is u or a u; the slope is at most 1 + |a|
            slope = 1.0 + float(np.abs(self._graph.numbers(step.given[1])).max())
        if not slope or step.given[0].shape != step.ids.shape:
            return
        before, after = (ids.reshape(-1).astype(np.int64) for ids in (step.given[0], step.ids))
        valued = (before >= 0) & (after >= 0)
        before, after = before[valued] // BATCH, after[valued] // BATCH
        self._take(after, self.size[before] * slope, self.drift[before] * slope)


def _times(weights: Floats, numbers: Floats) -> Floats:
    """A product in which zero times infinity is zero."""
    endless = ~np.isfinite(numbers)
    result = weights @ np.where(endless, 0.0, numbers)
    result[(weights[:, endless] != 0).any(axis=1)] = np.inf
    return np.asarray(result)
