"""Values that may be undefined or infinite, and which outputs depend on them.

A certificate is valid in real arithmetic, in which 0 * u = 0 and u - u = 0. Where u is NaN or infinite, as the root
of a negative number or an exponential that overflows, neither holds. Therefore f(L x) and K f(x) must depend on the
same such values, even if their terms cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Ints
from symcheck.certificate_checker import Checker, unpack
from symcheck.engine.networks.graph.nodes import Graph, Node
from symcheck.engine.networks.graph.ranges import is_outside_domain, ranges_of, ranges_of_arguments

_OVERFLOW = float(np.log(np.finfo(np.float32).max))
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
    sources = {place: may for place, node in enumerate(nodes) if (may := _may_be_infinite(graph, node)).any()}
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
        names |= dict.fromkeys((start + np.flatnonzero(own)).tolist(), str(node.get("function")))
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
        """Append entries that are computed from rows of earlier ones, and some of which are sources themselves."""
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
