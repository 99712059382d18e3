"""Values that may be undefined or infinite, and which outputs depend on them.

A certificate is valid in real arithmetic, in which 0 * u = 0 and u - u = 0. Where u is NaN or infinite (the root of a
negative number, an exponential that overflows), neither holds; nor does (u / c) * c = u where u / c vanishes. Therefore
f(L x) and K f(x) must depend on the same such values, even if their terms cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Ints
from symcheck.certificate_checker import Checker, unpack
from symcheck.engine.networks.graph.nodes import Graph, Node
from symcheck.engine.networks.graph.ranges import (
    Ranges,
    is_outside_domain,
    ranges_of,
    ranges_of_arguments,
    ranges_within,
)

_LARGEST, _SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
_LEAST = float(np.finfo(np.float32).smallest_subnormal)
_OVERFLOW = float(np.log(_LARGEST))
_INPUTS = 1e6
"""Size of the inputs up to which sums and products must stay in the range of float32: larger than any in use."""
_GROWING = frozenset(["exp", "expm1", "sinh", "cosh"])


def uneven_dependence(document: Mapping[str, Any], graph: Graph, nodes: Sequence[Node]) -> str:
    """The operator of a value that may be undefined or infinite, on which only one of f(L x) and K f(x) depends.

    Args:
        document: a certificate that the checker accepts.
        graph: the network as nodes.
        nodes: those of its nodes that the certificate lists, in order.

    Returns:
        Its name; "" if there is none.
    """
    within = ranges_within(graph, _INPUTS, _LEAST)
    may = [_may_be_infinite(graph, node) | _leaves_float32(graph, node, within) for node in nodes]
    sources = {place: entries for place, entries in enumerate(may) if entries.any()}
    if not sources:
        return ""
    checker = Checker(dict(document))
    cones = _Cones()
    names: dict[int, str] = {}
    before = len(checker.nodes) - len(nodes)
    for place, node in enumerate(checker.nodes):
        start = checker.at.shape[1]
        checker.node(node)
        size = checker.at.shape[1] - start
        own = np.zeros(size, dtype=bool) if place - before not in sources else sources[place - before]
        x = unpack(node["x"]).astype(np.int64) if "x" in node else np.zeros((size, 0), dtype=np.int64)
        cones.add(x, start + np.flatnonzero(own), size)
        names |= dict.fromkeys(
            (start + np.flatnonzero(own)).tolist(), str(node.get("function") or node.get("name") or node["op"])
        )
    for output in document["outputs"]:
        entries = unpack(output["entries"]).astype(np.int64)
        for generator, action in enumerate(output["actions"]):
            for unit, entry in enumerate(entries):
                images = entries[_read_by(action, unit, len(entries), checker)]
                here = _terms(checker, generator + 1, cones.of(int(entry)))
                there = _terms(checker, 0, frozenset().union(*(cones.of(int(image)) for image in images)))
                if stray := set(here) ^ set(there):
                    return names[{**here, **there}[min(stray, key=str)]]
    return ""


def _may_be_infinite(graph: Graph, node: Node) -> Bools:
    if node.op != "pointwise":
        return np.zeros(node.size, dtype=bool)
    x = ranges_of_arguments(graph, node.x, ranges_of(graph))
    overflows = (x.high[:, 0] > _OVERFLOW) | ((node.function in ("sinh", "cosh")) & (x.low[:, 0] < -_OVERFLOW))
    return np.asarray(is_outside_domain(node, x) | (overflows & (node.function in _GROWING)))


def _leaves_float32(graph: Graph, node: Node, within: Ranges) -> Bools:
    """Which sums and products of finite numbers may overflow in float32, or always vanish."""
    if node.op != "linear" and node.function != "prod":
        return np.zeros(node.size, dtype=bool)
    x = ranges_of_arguments(graph, node.x, within)
    finite = np.isfinite(x.low).all(axis=1) & np.isfinite(x.high).all(axis=1)
    here = slice(node.start, node.start + node.size)
    size = np.maximum(np.abs(within.low[here]), np.abs(within.high[here]))
    return np.asarray(
        np.repeat(finite, node.size // len(node.x)) & ((size > _LARGEST) | ((size > 0) & (size < _SMALLEST)))
    )


def _read_by(action: Mapping[str, Any], unit: int, count: int, checker: Checker) -> Ints:
    """The entries that an action combines into one entry."""
    if "index" in action:
        return np.asarray(unpack(action["index"])[[unit]], dtype=np.int64)
    return np.flatnonzero(checker.numbers(action["matrix"]).reshape(count, count)[unit])


def _terms(checker: Checker, row: int, cone: frozenset[int]) -> dict[Any, int]:
    """The terms of entries, each with one of its entries."""
    terms = {entry: checker.at[row, entry] for entry in cone}
    if checker.exact:
        return {abs(int(term)): entry for entry, term in terms.items()}
    return {frozenset(term): entry for entry, term in terms.items()}


class _Cones:
    """For each entry the sources on which it depends; entries with the same sources share one set."""

    def __init__(self) -> None:
        self._sets: list[frozenset[int]] = [frozenset()]
        self._places = {frozenset[int](): 0}
        self._of: Ints = np.zeros(0, dtype=np.int64)

    def of(self, entry: int) -> frozenset[int]:
        """The sources of an entry."""
        return self._sets[int(self._of[entry])]

    def add(self, x: Ints, sources: Ints, size: int) -> None:
        """Append entries that are computed from rows of earlier ones; some of the entries may be sources themselves."""
        start = len(self._of)
        rows = np.sort(self._of[x], axis=1) if x.size else np.zeros((size, 1), dtype=np.int64)
        distinct, owner = np.unique(rows, axis=0, return_inverse=True)
        joint = [self._number(frozenset().union(*(self._sets[k] for k in set(row)))) for row in distinct.tolist()]
        made = np.repeat(np.array(joint, dtype=np.int64)[owner.reshape(-1)], size // len(rows))
        for source in sources.tolist():
            made[source - start] = self._number(self._sets[made[source - start]] | {source})
        self._of = np.append(self._of, made)

    def _number(self, sources: frozenset[int]) -> int:
        if sources not in self._places:
            self._places[sources] = len(self._sets)
            self._sets.append(sources)
        return self._places[sources]
