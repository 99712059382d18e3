"""The ranges of entries over all inputs, with no bound on the input.

Torch's distributions check their arguments: a scale must be positive, and probabilities must sum to one. A network has
one graph only if the check holds for every input, which is shown here in real arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats, Ints
from symcheck.certificate_checker import UNKNOWN
from symcheck.engine.networks.graph.nodes import BATCH, Graph, Node


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges of numbers.

    Attributes:
        low: the lower bounds.
        high: the upper bounds.
        above: whether the numbers are always larger than `low`.
        partial: whether they may be undefined, such as the root of a negative number.
    """

    low: Floats
    high: Floats
    above: Bools
    partial: Bools

    @property
    def positive(self) -> Bools:
        """Whether each entry is positive for every input."""
        return np.asarray((self.low > 0) | ((self.low == 0) & self.above))


_NONE = Ranges(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))


def hold_always(graph: Graph, ids: Floats) -> bool:
    """Whether entries differ from zero for every input."""
    whole = ids.astype(np.int64).reshape(-1)
    numbers = graph.numbers(whole[whole < 0])
    if (whole < 0).all() or not numbers.all():
        return bool(numbers.all())
    ranges = ranges_of(graph)
    entries = whole[whole >= 0] // BATCH
    return bool((ranges.low[entries] > 0).all())


def lie_between(graph: Graph, ids: Floats, low: float, high: float) -> bool:
    """Whether entries lie between two numbers, inclusive, for every input."""
    whole = ids.astype(np.int64).reshape(-1)
    entries, ranges = whole[whole >= 0] // BATCH, ranges_of(graph)
    return bool((ranges.low[entries] >= low).all() and (ranges.high[entries] <= high).all())


def are_defined(graph: Graph, ids: Floats) -> bool:
    """Whether entries are numbers for every input; constants may be NaN."""
    whole = ids.astype(np.int64).reshape(-1)
    entries, fixed = whole[whole >= 0] // BATCH, whole[whole < 0]
    return not ranges_of(graph).partial[entries].any() and not np.isnan(graph.numbers(fixed)).any()


def ranges_of(graph: Graph) -> Ranges:
    """The ranges of all entries; those of nodes that were asked for before are kept."""
    done, known = graph.ranges or (0, _NONE)
    ranges = _extend(graph, known, graph.nodes[done:], np.inf)
    graph.ranges = len(graph.nodes), ranges
    return ranges


def ranges_within(graph: Graph, size: float, least: float) -> Ranges:
    """The ranges of all entries of the deployed network, over inputs up to a size.

    Args:
        graph: the network in float64.
        size: the largest magnitude of the inputs.
        least: the smallest positive number of the deployed dtype. A smaller limit in the network, such as a float64
            epsilon below which a divisor may not fall, becomes at least this number in that dtype.
    """
    return _extend(graph, _NONE, graph.nodes, size, least)


def _extend(graph: Graph, known: Ranges, nodes: Sequence[Node], size: float, least: float = 0.0) -> Ranges:
    """Ranges with those of further nodes."""
    new = graph.entries - len(known.low)
    ranges = Ranges(
        np.append(known.low, np.full(new, -np.inf)),
        np.append(known.high, np.full(new, np.inf)),
        np.append(known.above, np.zeros(new, dtype=bool)),
        np.append(known.partial, np.zeros(new, dtype=bool)),
    )
    with np.errstate(all="ignore"):
        for node in nodes:
            here = slice(node.start, node.start + node.size)
            if node.op == "input":
                ranges.low[here], ranges.high[here] = -size, size
                continue
            x = ranges_of_arguments(graph, node.x, ranges)
            low, high, above = _range(graph, node, x, ranges)
            if node.function == "place":
                low = np.where(low > 0, np.maximum(low, least), low)
            undefined = (x.partial.any(axis=1) | is_outside_domain(node, x)) & (node.function != "isnan")
            ranges.partial[here] = np.repeat(undefined, node.size // len(node.x))
            ranges.low[here] = np.where(np.isnan(low), -np.inf, low)
            ranges.high[here] = np.where(np.isnan(high), np.inf, high)
            ranges.above[here] = above
    return ranges


Range = tuple[Floats, Floats, Bools]


def is_outside_domain(node: Node, x: Ranges) -> Bools:
    """Whether the function of a node may be undefined at its arguments, for each row of them."""
    low, high = x.low[:, 0], x.high[:, 0]
    power = node.parameters[0] if node.function == "pow" else 1.0
    if node.function == "sqrt" or (power > 0 and power % 1):
        return low < 0
    if node.function in ("log", "log2") or power % 1:
        return ~x.positive[:, 0]
    if node.function == "log1p":
        return low <= -1
    if node.function == "reciprocal" or power < 0:
        return ~x.positive[:, 0] & (high >= 0)
    if node.function in ("arcsin", "arccos"):
        return (low < -1) | (high > 1)
    if node.function == "arctanh":  # infinite at both ends, which a rounded tanh reaches
        return (low <= -1) | (high >= 1)
    return np.full(len(node.x), node.function.startswith(UNKNOWN))


def _range(graph: Graph, node: Node, x: Ranges, ranges: Ranges) -> Range:
    if node.op == "linear":
        return _linear(graph, node, x, ranges)
    if node.function == "prod":
        return _product(node, x)
    if node.function == "place":
        k = int(node.parameters[0])
        # of n numbers, n - k are at least the k-th: enough of them must be positive
        above = x.positive.sum(axis=1) >= x.low.shape[1] - k
        low = np.sort(x.low, axis=1)[:, k]
        return low, np.sort(x.high, axis=1)[:, k], np.asarray((low == 0) & above)
    function = _FUNCTIONS.get(node.function)
    if function is None:
        rows = len(node.x)
        return np.full(rows, -np.inf), np.full(rows, np.inf), np.zeros(rows, dtype=bool)
    return function(node, x)


def ranges_of_arguments(graph: Graph, x: Ints, ranges: Ranges) -> Ranges:
    """The ranges of a table of entries and constants."""
    entries = np.maximum(x, 0)
    low, high, above = ranges.low[entries], ranges.high[entries], ranges.above[entries]
    fixed = x < 0
    low[fixed] = high[fixed] = graph.numbers(x[fixed])
    above[fixed] = False
    return Ranges(low, high, above, ranges.partial[entries] & ~fixed)


def _linear(graph: Graph, node: Node, x: Ranges, ranges: Ranges) -> Range:
    W = graph.numbers(node.weight)
    W = W.reshape(len(W), -1)[None]
    b = 0.0 if node.bias is None else graph.numbers(node.bias)
    low, high, whole = x.low[:, None], x.high[:, None], np.zeros((len(node.x), 1))
    if node.signs is not None:
        shares = _shares_of_one(graph, node, ranges.positive)
        W, whole = np.where(shares[:, None, :], 0.0, W), shares.any(axis=1).astype(float).reshape(-1, 1)
    used = W != 0
    least = np.where(used, np.where(W > 0, W * low, W * high), 0.0).sum(axis=2) + b + whole
    most = np.where(used, np.where(W > 0, W * high, W * low), 0.0).sum(axis=2) + b + whole
    above = np.asarray(((W > 0) & x.above[:, None, :]).any(axis=2))
    return least.reshape(-1), most.reshape(-1), above.reshape(-1)


def _shares_of_one(graph: Graph, node: Node, positive: Bools) -> Bools:
    """Which summands are e_1 / s, ..., e_n / s with s = e_1 + ... + e_n, all positive: they sum to one."""
    shares = np.zeros(node.x.shape, dtype=bool)
    starts = np.array([item.start for item in graph.nodes])

    def made_by(entry: int) -> tuple[Node, Ints]:
        maker = graph.nodes[int(np.searchsorted(starts, entry, side="right")) - 1]
        rows = 1 if maker.weight is None else len(maker.weight)
        return maker, maker.x[(entry - maker.start) // rows] if maker.op != "input" else maker.x[:0].reshape(-1)

    for row, summands in enumerate(node.x):
        parts: dict[int, list[tuple[int, int]]] = {}  # for each reciprocal: positions and numerators
        for place, entry in enumerate(summands):
            if entry < 0 or node.signs is None or node.signs[place] != 1:
                continue
            maker, factors = made_by(int(entry))
            if maker.function != "prod" or len(factors) != 2:
                continue
            for factor, other in (factors, factors[::-1]):
                if factor >= 0 and made_by(int(factor))[0].function == "reciprocal":
                    parts.setdefault(int(factor), []).append((place, int(other)))
        for reciprocal, found in parts.items():
            (denominator,) = made_by(reciprocal)[1]
            total, terms = made_by(int(denominator)) if denominator >= 0 else (node, node.x[:0].reshape(-1))
            adds = total.op == "linear" and total.signs is not None and (total.signs == 1).all()
            adds = adds and bool((terms >= 0).all() and positive[terms].all())
            if adds and sorted(terms.tolist()) == sorted(numerator for _, numerator in found):
                shares[row, [place for place, _ in found]] = True
                break  # only one such group of summands is used
    return shares


def _product(node: Node, x: Ranges) -> Range:
    low, high = x.low[:, 0], x.high[:, 0]
    for k in range(1, x.low.shape[1]):
        corners = [a * b for a in (low, high) for b in (x.low[:, k], x.high[:, k])]
        corners = [np.where(np.isnan(corner), 0.0, corner) for corner in corners]  # zero times an unbounded factor
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    if x.low.shape[1] % 2 == 0:  # squares, and products of them
        ordered = np.sort(node.x, axis=1)
        low = np.where((ordered[:, ::2] == ordered[:, 1::2]).all(axis=1), np.maximum(low, 0.0), low)
    return low, high, np.asarray((low == 0) & x.positive.all(axis=1))


def _increasing(function: Callable[[Floats], Floats]) -> Callable[[Node, Ranges], Range]:
    def compute(node: Node, x: Ranges) -> Range:
        low = function(x.low[:, 0])
        # no finite number attains the limit, even if rounding maps its image to the limit
        limit = function(np.full(1, -np.inf))
        return low, function(x.high[:, 0]), x.above[:, 0] | (low == limit)

    return compute


def _towards_zero(node: Node, x: Ranges) -> Range:
    low, high = np.trunc(x.low[:, 0]), np.trunc(x.high[:, 0])
    return low, high, np.zeros(len(low), dtype=bool)


def _positive_part(node: Node, x: Ranges) -> Range:
    low = x.low[:, 0]
    return np.maximum(low, 0.0), np.maximum(x.high[:, 0], 0.0), x.above[:, 0] & (low >= 0)


def _softplus(node: Node, x: Ranges) -> Range:
    least = np.maximum(x.low[:, 0], 0.0)  # softplus is always larger than both 0 and x
    return least, np.full(len(least), np.inf), np.ones(len(least), dtype=bool)


def _root(node: Node, x: Ranges) -> Range:
    low = x.low[:, 0]
    return np.sqrt(low), np.sqrt(x.high[:, 0]), x.above[:, 0]  # NaN below zero: no bound


def _power(node: Node, x: Ranges) -> Range:
    exponent = node.parameters[0]
    if exponent == 0.5:
        return _root(node, x)
    least = 0.0 if exponent % 2 == 0 else -np.inf
    return np.full(len(node.x), least), np.full(len(node.x), np.inf), np.zeros(len(node.x), dtype=bool)


def _absolute(node: Node, x: Ranges) -> Range:
    low, high = x.low[:, 0], x.high[:, 0]
    least = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    return least, np.maximum(np.abs(low), np.abs(high)), x.positive[:, 0] & (least == 0)


def _reciprocal(node: Node, x: Ranges) -> Range:
    positive = x.positive[:, 0]
    low, high = 1.0 / x.high[:, 0], 1.0 / x.low[:, 0]
    return np.where(positive, low, -np.inf), np.where(positive, high, np.inf), positive & (low == 0)


def _is_positive(node: Node, x: Ranges) -> Range:
    always, never = x.positive[:, 0], x.high[:, 0] <= 0
    return always.astype(float), np.where(never, 0.0, 1.0), np.zeros(len(always), dtype=bool)


def _is_zero(node: Node, x: Ranges) -> Range:
    never = x.positive[:, 0] | (x.high[:, 0] < 0)
    always = (x.low[:, 0] == 0) & (x.high[:, 0] == 0)
    return always.astype(float), np.where(never, 0.0, 1.0), np.zeros(len(always), dtype=bool)


def _is_undefined(node: Node, x: Ranges) -> Range:
    undefined = x.partial[:, 0]
    return np.zeros(len(undefined)), undefined.astype(float), np.zeros(len(undefined), dtype=bool)


def _choice(node: Node, x: Ranges) -> Range:
    low = x.low[:, 1:].min(axis=1)
    return low, x.high[:, 1:].max(axis=1), np.asarray((low == 0) & x.positive[:, 1:].all(axis=1))


def _elu(node: Node, x: Ranges) -> Range:
    a, s, c = node.parameters
    least = np.where(x.low[:, 0] > 0, s * x.low[:, 0], -s * a)
    fine = np.full(len(least), min(a, s, c) > 0)
    return np.where(fine, least, -np.inf), np.full(len(least), np.inf), fine


_FUNCTIONS: dict[str, Callable[[Node, Ranges], Range]] = {
    "exp": _increasing(np.exp),
    "sigmoid": _increasing(lambda x: 1.0 / (1.0 + np.exp(-x))),
    "tanh": _increasing(np.tanh),
    "relu": _positive_part,
    "softplus": _softplus,
    "sqrt": _root,
    "pow": _power,
    "absolute": _absolute,
    "reciprocal": _reciprocal,
    "positive": _is_positive,
    "zero": _is_zero,
    "isnan": _is_undefined,
    "where": _choice,
    "trunc": _towards_zero,
    "elu": _elu,
}
