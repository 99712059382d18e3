"""What every generator does to the value of each node: found here, written into a certificate, and checked elsewhere.

Entry i of a value at L x is sign[i] times entry index[i] of the value at x. Nodes whose arguments move among the
arguments of the same node move with them; which unit of a linear layer goes to which is found by matching the rows of
its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.certificate_checker import ULPS, sign_rule
from symcheck.engine.networks.claims import Motion
from symcheck.engine.networks.graph.nodes import LARGEST, Graph, NoCertificateError, Node, codes_of_rows
from symcheck.engine.networks.matching import match_rows, ulp32
from symcheck.engine.networks.values import AffineMap, SignedPermutation
from symcheck.statements.statement import Statement, state

ROUNDING = 1e-13
"""Differences of products with a matrix that are worth writing down: the checker bounds their rounding itself."""


@dataclass(frozen=True, eq=False)
class Action:
    """Entry i goes to sign[i] times entry index[i]; both of the node's size."""

    index: Ints
    sign: Ints


def action_of(motion: SignedPermutation) -> Action:
    """A claimed motion, which says where entry j goes, as where entry i comes from."""
    index, sign = np.empty_like(motion.index), np.empty_like(motion.sign)
    index[motion.index], sign[motion.index] = np.arange(motion.size), motion.sign
    return Action(index, sign)


def needed(graph: Graph, outputs: Sequence[Ints]) -> list[Node]:
    """The nodes that outputs depend on, in order."""
    wanted = np.zeros(len(graph.nodes), dtype=bool)
    starts = np.array([node.start for node in graph.nodes])

    def mark(ids: Ints) -> None:
        wanted[np.unique(np.searchsorted(starts, ids[ids >= 0], side="right") - 1)] = True

    for entries in outputs:
        mark(entries)
    wanted[0] = True  # the input, which the claim is about
    for place in reversed(range(len(graph.nodes))):
        if wanted[place]:
            for ids in graph.nodes[place].x:
                mark(ids.reshape(-1))
    return [node for node, keep in zip(graph.nodes, wanted, strict=True) if keep]


class Finder:
    """Finds the action of one generator on one node after the other."""

    def __init__(self, graph: Graph, motion: Motion) -> None:
        if callable(motion):
            raise NoCertificateError(state("SYM195"))
        self.claimed: dict[int, AffineMap] = {}
        self.matrices: dict[int, AffineMap] = {}
        self.graph = graph
        self.motion = motion
        self.image = np.full(graph.entries, -1, dtype=np.int64)
        self.sign = np.ones(graph.entries, dtype=np.int64)
        self.rounded = False

    def claim(self, output: Ints, motion: Motion, nodes: Sequence[Node]) -> None:
        """Say that the entries of a node are an output which a matrix moves."""
        if not isinstance(motion, AffineMap):
            return
        for node in nodes:
            local = output - node.start
            if node.op == "linear" and np.array_equal(np.sort(local), np.arange(node.size)):
                order = np.argsort(local)
                self.claimed[node.start] = AffineMap(motion.matrix[np.ix_(order, order)], motion.offset[order])
                return
        raise NoCertificateError(state("SYM195"))

    def find(self, node: Node) -> Action | AffineMap:
        """The action on a node whose arguments were found before.

        Raises:
            NoCertificateError: none was found.
        """
        if node.op == "input" and isinstance(self.motion, AffineMap):
            self.matrices[node.start] = self.motion
            return self.motion
        if node.start in self.claimed:
            return self.claimed[node.start]
        if node.op == "input" and isinstance(self.motion, SignedPermutation):
            action = action_of(self.motion)
        elif node.op == "linear" and self._is_mixed(node):
            action = self._mixed(node)
        elif node.op == "pointwise":
            action = self._pointwise(node)
        elif node.op == "reduce":
            action = self._reduce(node)
        else:
            action = self._linear(node)
        here = slice(node.start, node.start + node.size)
        self.image[here], self.sign[here] = action.index + node.start, action.sign
        return action

    def _is_mixed(self, node: Node) -> bool:
        ids = node.x[0]
        return any(((ids >= start) & (ids < start + len(m.offset))).any() for start, m in self.matrices.items())

    def _mixed(self, node: Node) -> Action:
        """The units of a layer on entries that a matrix moves: [A M, A c + b] in the order of [A, b]."""
        ids = node.x[0]
        start, motion = next(
            (start, m) for start, m in self.matrices.items() if ((ids >= start) & (ids < start + len(m.offset))).any()
        )
        n, (weight, bias) = len(motion.offset), distinct_units(self.graph, node)
        fixed = ids < 0
        if ((ids >= start + n) | (~fixed & (ids < start))).any() or len(ids) * len(weight) * n > LARGEST:
            raise NoCertificateError(_elsewhere(node))
        A, b = np.zeros((len(ids), len(weight), n)), np.tile(bias, (len(ids), 1))
        numbers = np.where(fixed, self.graph.numbers(np.where(fixed, ids, -1)), 0.0)
        for column in range(ids.shape[1]):
            local = np.where(fixed[:, column], 0, ids[:, column] - start)
            A[np.arange(len(ids)), :, local] += np.where(fixed[:, column, None], 0.0, weight[None, :, column])
            b += numbers[:, column, None] * weight[None, :, column]
        flat, bias = A.reshape(-1, n), b.reshape(-1)
        moved = np.column_stack([flat @ motion.matrix, flat @ motion.offset + bias])
        own = np.column_stack([flat, bias])
        match = match_rows(moved, own)
        if match is None or not match.close.all():
            raise NoCertificateError(state("SYM194", layer=node.name))
        units = action_of(match.permutation)
        difference = np.abs(moved - units.sign[:, None] * own[units.index])
        if (difference > ROUNDING * (1 + np.abs(own).max())).any():
            raise NoCertificateError(state("SYM194", layer=node.name))
        return units

    def moved(self, ids: Ints) -> tuple[Ints, Ints]:
        """Where arguments go, constants to themselves, and their signs."""
        fixed = ids < 0
        image = np.where(fixed, ids, self.image[np.where(fixed, 0, ids)])
        return image, np.where(fixed, 1, self.sign[np.where(fixed, 0, ids)])

    def _pointwise(self, node: Node) -> Action:
        kind = sign_rule(node.function, list(node.parameters))
        moved = [self.moved(ids) for ids in node.x]
        fixed = [ids < 0 for ids in node.x]
        sign = np.ones(node.size, dtype=np.int64)
        first = 1 if kind == "choice" else 0
        if kind in ("same", "choice", "odd"):
            for ids, (_, signs) in list(zip(fixed, moved, strict=True))[first:]:
                sign = np.where(ids, sign, signs)
        elif kind == "product":
            for _, signs in moved:
                sign = sign * signs
        for place, (ids, (_, signs)) in enumerate(zip(fixed, moved, strict=True)):
            wanted = sign if kind in ("same", "choice", "odd") and place >= first else signs
            # in a product any signs go, an even function drops them, no other takes any
            if (
                kind not in ("product", "even")
                and (~ids & (signs != (wanted if kind not in ("none", "pair") else 1))).any()
            ):
                raise NoCertificateError(_no_signs(node))
            if kind == "choice" and place == 0 and (signs != 1).any():
                raise NoCertificateError(_no_signs(node))
        if kind == "even":
            sign = np.ones_like(sign)
        keyed = kind in ("same", "choice")
        wanted_keys = np.stack(
            [
                self.graph.coded(image, sign if keyed and place >= first else 1)
                for place, (image, _) in enumerate(moved)
            ],
            axis=1,
        )
        keys = np.stack([self.graph.coded(ids) for ids in node.x], axis=1)
        index = _looked_up(wanted_keys, keys)
        missing = index < 0
        if missing.any() and kind == "product":
            # a constant factor whose sign changes
            opposite = np.stack([self.graph.coded(image, np.where(image < 0, -1, 1)) for image, _ in moved], axis=1)
            index[missing] = _looked_up(opposite[missing], keys)
            sign = np.where(missing, -sign, sign)
            missing = index < 0
        if missing.any():
            raise NoCertificateError(_elsewhere(node))
        return Action(index, sign)

    def _rows(self, node: Node) -> tuple[Ints, Ints, Ints, Ints]:
        """Moved rows, their signs, the rows themselves, and which row each goes to."""
        image, signs = self.moved(node.x[0])
        here, there = self.graph.coded(image), self.graph.coded(node.x[0])
        place = _looked_up(here, there)
        missing = place < 0
        if missing.any():
            place[missing] = _looked_up(np.sort(here[missing], axis=1), np.sort(there, axis=1))
        if (place < 0).any():
            raise NoCertificateError(_elsewhere(node))
        return here, signs, there, place

    def _reduce(self, node: Node) -> Action:
        _, signs, _, place = self._rows(node)
        if (signs != 1).any():
            raise NoCertificateError(_no_signs(node))
        return Action(place, np.ones_like(place))

    def _linear(self, node: Node) -> Action:
        here, signs, there, place = self._rows(node)
        weight, bias = distinct_units(self.graph, node)
        zero = self.graph.code_of(0.0)
        # where most entries are variables and differ, the weights say most
        target = there[place]
        weights_shown = np.array([len(np.unique(row[row != zero])) for row in here[:: max(1, len(here) // 400)]])
        row = int(np.argmax(weights_shown)) * max(1, len(here) // 400)
        orders = np.argsort(here[row], kind="stable"), np.argsort(target[row], kind="stable")
        moved, own = weight[:, orders[0]] * signs[row][orders[0]], weight[:, orders[1]]
        ids = here[row][orders[0]]
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        if len(starts) < len(ids):
            moved, own = np.add.reduceat(moved, starts, axis=1), np.add.reduceat(own, starts, axis=1)
            ids = ids[starts]
        moved[:, ids == zero], own[:, ids == zero] = 0.0, 0.0
        moved, own = (np.concatenate([side, bias[:, None]], axis=1) for side in (moved, own))
        match = match_rows(moved, own)
        if match is None or not match.close.all():
            raise NoCertificateError(state("SYM194", layer=node.name))
        units = action_of(match.permutation)
        self._judge(node, moved, units.sign[:, None] * own[units.index])
        # row i of the moved weight is sign times row units[i] of the weight
        index = (place[:, None] * len(weight) + units.index[None, :]).reshape(-1)
        return Action(index, np.tile(units.sign, len(place)))

    def _judge(self, node: Node, moved: Floats, wanted: Floats) -> None:
        if np.array_equal(moved, wanted):
            return
        self.rounded = True
        if (np.abs(moved - wanted) > ULPS * ulp32(np.maximum(np.abs(moved), np.abs(wanted)))).any():
            raise NoCertificateError(state("SYM194", layer=node.name))


def distinct_units(graph: Graph, node: Node) -> tuple[Floats, Floats]:
    """The rows of a linear node's weight that differ, and their biases."""
    if node.weight is None:
        raise ValueError(f"expected a linear node, which has a weight, got one of operator {node.op!r}")
    weight = graph.numbers(node.weight)
    bias = np.zeros(len(weight)) if node.bias is None else graph.numbers(node.bias)
    if node.units is None:
        return weight, bias
    first = np.unique(node.units, return_index=True)[1]
    return weight[first], bias[first]


def _looked_up(rows: Ints, table: Ints) -> Ints:
    """Where each row stands in a table; -1 where it does not."""
    codes, known = codes_of_rows(rows, table)
    place = np.full(int(max(codes.max(initial=0), known.max(initial=0))) + 1, -1)
    place[known[::-1]] = np.arange(len(known))[::-1]
    return place[codes]


def _no_signs(node: Node) -> Statement:
    return state("SYM196", operation=node.name or node.function)


def _elsewhere(node: Node) -> Statement:
    return state("SYM197", operation=node.name or node.function or node.op)
