"""Writes a certificate: the nodes that outputs depend on, weights as stored, and the claim."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Ints
from symcheck.certificate_checker import SCHEMA, digest
from symcheck.engine.networks.graph.interpreter import Followed
from symcheck.engine.networks.graph.nodes import Graph, NoCertificateError, Node
from symcheck.engine.networks.subject.claims import InputClaim, Motion, OutputClaim
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation
from symcheck.statements.statement import state


def write_certificate(
    followed: Followed,
    inputs: InputClaim,
    outputs: Sequence[OutputClaim],
    stored: Mapping[str, Any],
    about: Mapping[str, Any],
    tolerance: str,
) -> dict[str, Any]:
    """The certificate of a followed network, for the checker.

    Args:
        followed: its nodes.
        inputs: the action on the input.
        outputs: the claimed action on each output.
        stored: parameters and buffers by name, as arrays of the deployed dtype.
        about: the names of the symmetry, the group and the generators.
        tolerance: one of the checker's, within which weights count as equal.

    Returns:
        The document, to be stored as JSON.

    Raises:
        NoCertificateError: the action is not given as data.
    """
    graph = followed.graph
    nodes = needed_nodes(followed, outputs)
    writer = _Writer(graph, nodes, stored, [followed.outputs[claim.path] for claim in outputs])
    written_outputs = [
        {
            "path": claim.path,
            "role": claim.role,
            "entries": writer.table(followed.outputs[claim.path]),
            "actions": [_packed_motion(motion) for motion in claim.motions],
        }
        for claim in outputs
    ]
    for node in nodes:
        writer.add(node, inputs)
    document = {
        "schema": SCHEMA,
        "claim": {**about, "statement": "f(L x) = K f(x) for every x and every generator", "tolerance": tolerance},
        "input": {"shape": [int(n) for n in inputs.shape]},
        "weights": writer.weights,
        "nodes": writer.nodes,
        "outputs": written_outputs,
    }
    return {**document, "digest": digest(document)}


def needed_nodes(followed: Followed, outputs: Sequence[OutputClaim]) -> list[Node]:
    """The nodes that outputs depend on, in order."""
    graph = followed.graph
    wanted = np.zeros(len(graph.nodes), dtype=bool)
    starts = np.array([node.start for node in graph.nodes])

    def mark(ids: Ints) -> None:
        wanted[np.unique(np.searchsorted(starts, ids[ids >= 0], side="right") - 1)] = True

    for claim in outputs:
        mark(followed.outputs[claim.path])
    wanted[0] = True  # the input is always part of the claim
    for place in reversed(range(len(graph.nodes))):
        if wanted[place]:
            mark(graph.nodes[place].x.reshape(-1))
    return [node for node, keep in zip(graph.nodes, wanted, strict=True) if keep]


def packed(array: Any, *, small: bool = True) -> dict[str, Any]:
    """An array as text; tables of integers are compressed, weights are not."""
    array = np.ascontiguousarray(array)
    data = zlib.compress(array.tobytes(), 6) if small else array.tobytes()
    stored = {"dtype": array.dtype.str, "shape": list(array.shape), "data": base64.b64encode(data).decode()}
    return {**stored, "packed": True} if small else stored


def _packed_motion(motion: Motion) -> dict[str, Any]:
    """The source and sign of each entry, or a matrix."""
    if isinstance(motion, AffineMap):
        return {"matrix": packed(motion.matrix, small=False), "offset": packed(motion.offset, small=False)}
    if not isinstance(motion, SignedPermutation):
        raise NoCertificateError(state("SYM195"))
    index, sign = np.empty_like(motion.index), np.empty_like(motion.sign)
    index[motion.index], sign[motion.index] = np.arange(motion.size), motion.sign
    return {"index": packed(index.astype("<i4")), "sign": packed(sign.astype("i1"))}


class _Writer:
    """Numbers the required entries, constants first."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], stored: Mapping[str, Any], outputs: Sequence[Ints]) -> None:
        self.graph = graph
        self.stored = stored
        self.weights: dict[str, Any] = {}
        self.nodes: list[dict[str, Any]] = []
        used = [np.unique(ids[ids < 0]) for ids in (*(node.x for node in nodes), *outputs)]
        self._constants = np.unique(np.concatenate(used))
        self._number = np.full(graph.entries, -1, dtype=np.int64)
        starts = np.array(sorted(start for start, _ in graph.parameters.values()), dtype=np.int64)
        # ids decrease as positions increase, so the constants of one parameter are contiguous
        owners = np.searchsorted(starts, -1 - self._constants, side="right")
        owners[-1 - self._constants >= self._end_of_parameters()] = -1
        for part in np.split(self._constants, np.flatnonzero(np.diff(owners)) + 1):
            if part.size:
                self.nodes.append({"op": "constant", "value": self.number(part)})
        count = len(self._constants)
        for node in nodes:
            self._number[node.start : node.start + node.size] = count + np.arange(node.size)
            count += node.size

    def _end_of_parameters(self) -> int:
        return max((start + int(np.prod(shape)) for start, shape in self.graph.parameters.values()), default=0)

    def table(self, ids: Ints) -> dict[str, Any]:
        """Ids as the numbers of entries in the certificate."""
        numbers = self._number[np.where(ids < 0, 0, ids)]
        if (ids < 0).any():
            places = np.searchsorted(self._constants, ids)
            numbers = np.where(ids < 0, places, numbers)
        return packed(numbers.astype("<i4"))

    def number(self, ids: Ints) -> dict[str, Any]:
        """The numbers of constants: a parameter, some of its entries, or literal numbers."""
        for name, (start, shape) in self.graph.parameters.items():
            size = int(np.prod(shape))
            places = -1 - ids - start
            outside = (places < 0) | (places >= size)
            # besides the parameter's entries there may be zeros, from filters that omit channels
            if places.size and not outside.all() and (not outside.any() or not self.graph.numbers(ids[outside]).any()):
                places = np.where(outside, size, places)
                if name not in self.weights:
                    self.weights[name] = packed(self.stored[name], small=False)
                # filters of any shape are read as rows
                whole = ids.shape == shape if ids.ndim == 1 else ids.shape[0] == shape[0] and ids.size == size
                if whole and np.array_equal(places.reshape(-1), np.arange(ids.size)):
                    return {"name": name}
                return {"name": name, "entries": packed(places.astype("<i4"))}
        return packed(self.graph.numbers(ids), small=False)

    def add(self, node: Node, inputs: InputClaim) -> None:
        """Write one node."""
        written: dict[str, Any] = {"op": node.op, "name": node.name}
        if node.op == "input":
            written |= {"size": node.size, "actions": [_packed_motion(motion) for motion in inputs.motions]}
        else:
            written["x"] = self.table(node.x)
        if node.op in ("reduce", "pointwise"):
            written |= {"function": node.function, "parameters": [_parameter(number) for number in node.parameters]}
        if node.op == "linear" and node.weight is not None:
            written["weight"] = self.number(node.weight)
            written["bias"] = None if node.bias is None else self.number(node.bias)
        self.nodes.append(written)


def _parameter(number: float) -> float | str:
    """A parameter as JSON, which has no infinities."""
    return number if np.isfinite(number) else repr(number)
