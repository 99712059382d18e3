"""A network as a list of nodes over numbered entries.

Every tensor of a captured graph is represented as a tensor of ids: at each position, the entry of a node's value and
the sample of the batch. Operators that rearrange entries (views, slices, concatenations, padding, in-place copies) are
torch's own, run on the ids; only operators that compute create a node. Entries with the same computation are
identified.

Ids of values are `entry * BATCH + sample`; ids of constants are `-1 - index` into the pool of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.certificate_checker import FUNCTIONS, REDUCTIONS
from symcheck.engine.networks.capture.places import Place
from symcheck.statements.statement import Statement, state

BATCH = 3
"""Number of samples in the followed batch: more than one, to detect mixing, and not a common layer width."""
LARGEST = 6_000_000
"""Maximum number of argument entries of one node that are followed: some hundred megabytes."""
MOST_SUMMANDS = 20_000
"""Maximum number of summands, over all entries of one node, for which nested sums are expanded."""


_POSITIVE = frozenset(["exp", "sigmoid", "softplus"])


class NoCertificateError(Exception):
    """The network has no certificate; carries the reason.

    Attributes:
        reason: why.
        ties: equations between input entries; apart from inputs that satisfy one of them, the claim would be certified.
        place: the call at which tracing ended; None if no single call is responsible.
    """

    def __init__(self, reason: Statement, ties: tuple[str, ...] = ()) -> None:
        self.reason = reason
        self.ties = ties
        self.place: Place | None = None
        super().__init__(reason.code)


@dataclass(eq=False)
class Node:
    """One computation on entries.

    Attributes:
        op: input, linear, reduce or pointwise.
        start: index of its first entry.
        size: number of its entries.
        x: ids of arguments, shape (rows, columns): entries, without samples; negative ones are constants.
        function: the function, for pointwise and reduce.
        parameters: the parameters of the function.
        weight: ids of constants, shape (units, columns).
        bias: ids of constants, shape (units,); None for zeros.
        signs: for a linear node that only adds and subtracts, shape (columns,); otherwise None.
        name: the name of the layer, or of the operator.
    """

    op: str
    start: int
    size: int
    x: Ints
    function: str = ""
    parameters: tuple[float, ...] = ()
    weight: Ints | None = None
    bias: Ints | None = None
    signs: Floats | None = None
    name: str = ""

    @property
    def has_weights(self) -> bool:
        """Whether the node is a layer with weights, and not a sum, mean or difference of entries."""
        return self.weight is not None and self.signs is None and self.name not in _SUMS


_SUMS = ("sum", "cumsum")


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of the captured graph.

    Attributes:
        place: the place of the call.
        operator: its node in the captured graph.
        given: ids of its input tensors.
        first: index of its first node.
        last: index after its last node.
        ids: the identifiers of its result; of the first one if there are several.
    """

    place: Place
    operator: Any
    given: tuple[Floats, ...]
    first: int
    last: int
    ids: Floats


class Graph:
    """Nodes under construction, and the constants that they use."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.steps: list[Step] = []
        self.entries = 0
        self._numbers = np.zeros(1024)
        self.places = 0
        self._codes: dict[float, int] = {}
        self.parameters: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.unknown: dict[str, Callable[..., Floats]] = {}
        """Unknown functions by name: each maps argument arrays to one array."""
        self.indicators: dict[float, list[float]] = {}
        """For the id of a position of a largest entry: the indicator ids of each candidate position."""
        # the batch symbol of the captured graph; None if the graph takes one sample only
        self.size_of_batch: Any = None
        self.ranges: Any = None  # of the entries of the first nodes, with the number of these nodes
        self.writes = False  # whether an operator writes into a tensor that may share memory

    # Constants

    def constants(self, numbers: Floats, name: str = "") -> Floats:
        """Ids of new constants, in their shape; a name identifies the parameter."""
        flat = np.asarray(numbers, dtype=np.float64).reshape(-1)
        start, self.places = self.places, self.places + len(flat)
        while self.places > len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.zeros(max(len(self._numbers), len(flat)))])
        self._numbers[start : self.places] = flat
        if name:
            self.parameters[name] = (start, np.shape(numbers))
        return (-1.0 - start - np.arange(len(flat), dtype=np.float64)).reshape(np.shape(numbers))

    def numbers(self, ids: Any) -> Floats:
        """The values of constants, by id."""
        return np.asarray(self._numbers[(-1 - np.asarray(ids)).astype(np.int64)])

    def coded(self, ids: Ints) -> Ints:
        """Ids in which equal constants share one negative number."""
        result, fixed = ids.copy(), ids < 0
        if fixed.any():
            numbers = self.numbers(ids[fixed]) + 0.0
            distinct, places = np.unique(numbers, return_inverse=True)
            codes = [self.code_of(number) for number in distinct]
            result[fixed] = np.array(codes, dtype=np.int64)[places.reshape(-1)]
        return result

    def code_of(self, number: float) -> int:
        """The negative number of a constant among coded ids."""
        return self._codes.setdefault(float(number) + 0.0, -1 - len(self._codes))

    def numbers_of(self, codes: Ints) -> Floats:
        """The constants with the given negative numbers among coded ids."""
        return np.array(list(self._codes), dtype=np.float64)[-1 - codes]

    def layer(self, ids: Any, otherwise: str) -> str:
        """The module of a parameter, from the ids of its entries; otherwise a default name."""
        place = int(-1 - np.asarray(ids).reshape(-1)[0])
        for name, (start, shape) in self.parameters.items():
            if start <= place < start + int(np.prod(shape)):
                return name.rpartition(".")[0] or name
        return otherwise

    @property
    def size(self) -> int:
        """The number of products of weights and entries."""
        return sum(node.x.size * (1 if node.weight is None else len(node.weight)) for node in self.nodes)

    # Values

    def input(self, shape: tuple[int, ...], samples: int) -> Floats:
        """Ids of a batch of inputs."""
        size = int(np.prod(shape))
        start = self._add(Node("input", self.entries, size, np.zeros((size, 0), dtype=np.int64)))
        ids = (start + np.arange(size))[None, :] * BATCH + np.arange(samples)[:, None]
        return ids.reshape(samples, *shape).astype(np.float64)

    def are_positive(self, ids: Floats) -> bool:
        """Whether entries are known to be positive for every input."""
        whole = ids.astype(np.int64).reshape(-1)
        starts = [node.start for node in self.nodes]
        owners = np.unique(np.searchsorted(starts, whole[whole >= 0] // BATCH, side="right") - 1)
        fixed = whole[whole < 0]
        return all(self.nodes[k].function in _POSITIVE for k in owners) and bool((self.numbers(fixed) > 0).all())

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        self.entries += node.size
        return node.start

    def pointwise(self, function: str, parameters: Sequence[float], arguments: Sequence[Floats], name: str) -> Floats:
        """Ids of a function of arguments of the same shape."""
        arguments = np.broadcast_arrays(*arguments)
        return self._rows_of("pointwise", function, parameters, np.stack(arguments, axis=-1), name)

    def reduce(self, function: str, x: Floats, name: str, parameters: Sequence[float] = ()) -> Floats:
        """Ids of an order-independent function of all entries along the last axis."""
        return self._rows_of("reduce", function, parameters, x, name)

    def largest(self, x: Floats, name: str) -> Floats:
        """Ids of the maximum of all entries along the last axis."""
        return self.reduce("place", x, name, (x.shape[-1] - 1.0,))

    def _rows_of(self, op: str, function: str, parameters: Sequence[float], x: Floats, name: str) -> Floats:
        entries, owner = _split(x.reshape(-1, x.shape[-1]).astype(np.int64))
        result = np.empty(len(entries), dtype=np.float64)
        fixed = owner < 0
        if fixed.any():

            def compute(rows: Floats) -> Floats:
                if op == "pointwise":
                    return np.asarray((self.unknown.get(function) or FUNCTIONS[function][1])(*rows.T, *parameters))
                return np.asarray(REDUCTIONS[function](rows, *parameters))

            with np.errstate(all="ignore"):
                values = _once_for_equal_rows(compute, self.numbers(entries[fixed]), alone=bool(fixed.all()))
            result[fixed] = self.constants(values)
        if not fixed.all():
            rows, places = self._alike(entries[~fixed], owner[~fixed], name)
            node = Node(op, self.entries, len(rows), rows, function, tuple(parameters), name=name)
            result[~fixed] = (self._add(node) + places) * BATCH + owner[~fixed]
        return result.reshape(x.shape[:-1])

    def add(self, summands: Sequence[Floats], signs: Sequence[float], name: str) -> Floats:
        """Ids of sums and differences of arguments of the same shape; nested sums are expanded."""
        columns: list[Floats] = []
        factors: list[float] = []
        for ids, sign in zip(np.broadcast_arrays(*summands), signs, strict=True):
            inner, own = self._summands(ids)
            columns += inner
            factors += [sign * factor for factor in own]
        return self.linear(np.stack(columns, axis=-1), self.constants(np.array([factors])), None, name)[..., 0]

    def _summands(self, ids: Floats) -> tuple[list[Floats], list[float]]:
        """The summands of a node's sums, one array each, with their signs; otherwise the entries themselves."""
        whole = ids.astype(np.int64)
        entries = whole // BATCH
        node = None
        if (whole >= 0).all() and whole.size:
            starts = [item.start for item in self.nodes]
            first, last = np.searchsorted(starts, [entries.min(), entries.max()], side="right") - 1
            node = self.nodes[first] if first == last else None
        if node is None or node.signs is None or len(node.signs) * whole.size > MOST_SUMMANDS:
            return [ids], [1.0]
        x = node.x[entries - node.start]
        inner = np.where(x < 0, x, x * BATCH + (whole % BATCH)[..., None]).astype(np.float64)
        return list(np.moveaxis(inner, -1, 0)), node.signs.tolist()

    def linear(self, x: Floats, weight: Floats, bias: Floats | None, name: str) -> Floats:
        """Ids of W x + b along the last axis; W and b are ids of constants, of shapes (units, columns) and (units,)."""
        W = weight.astype(np.int64)
        name = self.layer(W, name) if W.size else name
        b = None if bias is None else bias.astype(np.int64)
        numbers = self.numbers(W)
        if not np.isfinite(numbers).all() or (b is not None and not np.isfinite(self.numbers(b)).all()):
            raise NoCertificateError(state("SYM191", operation=name))
        entries, owner = _split(x.reshape(-1, x.shape[-1]).astype(np.int64))
        if entries.size > LARGEST:
            raise NoCertificateError(state("SYM192", operation=name))
        result = np.empty((len(entries), len(W)), dtype=np.float64)
        fixed = owner < 0
        if fixed.any():
            values = _once_for_equal_rows(
                lambda rows: rows @ numbers.T, self.numbers(entries[fixed]), alone=bool(fixed.all())
            )
            result[fixed] = self.constants(values if b is None else values + self.numbers(b))
        if not fixed.all():
            rows, places = self._alike(entries[~fixed], owner[~fixed], name)
            signs = numbers[0] if len(W) == 1 and b is None and (np.abs(numbers) == 1).all() else None
            node = Node("linear", self.entries, len(rows) * len(W), rows, weight=W, bias=b, signs=signs, name=name)
            here = self._add(node) + places[:, None] * len(W) + np.arange(len(W))
            result[~fixed] = here * BATCH + owner[~fixed][:, None]
        return result.reshape(*x.shape[:-1], len(W))

    def _alike(self, entries: Ints, owner: Ints, name: str) -> tuple[Ints, Ints]:
        """Distinct rows of arguments, which must be the same for every sample, and the row at each position."""
        if entries.size > LARGEST:
            raise NoCertificateError(state("SYM192", operation=name))
        (codes,) = codes_of_rows(self.coded(entries))
        first = np.flatnonzero(owner == owner.min())
        _, order = np.unique(codes[first], return_index=True)
        kept = first[np.sort(order)]
        place = np.full(int(codes.max()) + 1, -1)
        place[codes[kept]] = np.arange(len(kept))
        places = place[codes]
        counts = np.bincount(owner, minlength=BATCH)
        if (places < 0).any() or len(set(counts[counts > 0].tolist())) > 1:
            raise NoCertificateError(state("SYM193", operation=name))
        return entries[kept], places


def _split(ids: Ints) -> tuple[Ints, Ints]:
    """Entries of rows of ids, and the sample of each row; -1 for rows of constants.

    Raises:
        NoCertificateError: a row mixes samples.
    """
    sample = np.where(ids < 0, -1, ids % BATCH)
    owner = sample.max(axis=1)
    if ((sample >= 0) & (sample != owner[:, None])).any():
        raise NoCertificateError(state("SYM193", operation="rows"))
    return np.where(ids < 0, ids, ids // BATCH), owner


def _once_for_equal_rows(compute: Callable[[Floats], Floats], rows: Floats, *, alone: bool) -> Floats:
    """The results for rows of constants; beside rows of values (not `alone`) equal rows have the same bits.

    The rows of the samples in a batch are equal, but products may round differently by their position in the table.
    """
    if alone:  # `_make_alike` in the interpreter compares whole tensors of constants
        return compute(rows)
    (codes,) = codes_of_rows(rows)
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    return compute(rows[first])[places.reshape(-1)]


def codes_of_rows(*tables: Any) -> list[Ints]:
    """Integer codes for rows, equal for equal rows of all the tables."""
    joint = np.ascontiguousarray(np.concatenate(tables)).view(np.int64).reshape(sum(map(len, tables)), -1)
    if joint.shape[1] == 1:
        codes = np.unique(joint[:, 0], return_inverse=True)[1]
    else:
        mix = np.random.default_rng(0).integers(-(2**62), 2**62, size=joint.shape[1]) | 1
        with np.errstate(over="ignore"):
            keys = ((joint ^ (joint >> 29)) * mix).sum(axis=1)
        _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        if not np.array_equal(joint[first][codes], joint):  # key collision; does not happen by chance
            _, codes = np.unique(joint, axis=0, return_inverse=True)
    return np.split(codes.reshape(-1), np.cumsum([len(table) for table in tables])[:-1])
