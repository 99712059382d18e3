"""Check a certificate of equivariance: this one file, NumPy and the standard library.

A certificate holds a network as a list of nodes with its weights, a claim f(L x) = K f(x) for every generator, and what
each generator does to the value of each node: entry i of the value at L x is sign[i] times entry index[i] of the value
at x. Of each node one law is computed again from its operator, its parameters and the weights. If all hold, the claim
holds for every input. Weights are compared as stored: floats are rational numbers, and sums of weights are added as
such. That the nodes compute what a network computes is shown by running both: `evaluate` runs the nodes.

Run it as `python certificate_checker.py FILE [--weights FILE.npz]`. Exit codes: 0 accepted, 1 rejected, 2 unreadable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = "symcheck-certificate/1"
Array = np.ndarray[Any, Any]
LARGEST = 1 << 31  # bytes that one array may take when it is unpacked
ULPS = 4  # float32 units in the last place by which weights may differ where the claim says that they were rounded
UNREADABLE = (OSError, IndexError, ValueError, TypeError, RecursionError, zipfile.BadZipFile)
EXACT_CLAIM, ULP_CLAIM = "weights equal", f"weights within {ULPS} float32 ulps of the larger"


class RejectedError(Exception):
    """A certificate that does not hold; the message names the step."""


def _hold(fine: Any, message: str) -> None:
    if not np.all(fine):  # the first place that is wrong is named
        raise RejectedError(message.replace("{}", str(np.argmin(fine))))


# How signs pass: "odd" f(-u) = -f(u), "even" f(-u) = f(u), "same" f(-u, -v) = -f(u, v), "product" signs multiply,
# "choice" like "same" in all but the first argument, "none" and "pair" (of two arguments) no signs.
_OF_NUMPY = {
    "odd": "tanh sin tan sinh arcsin arctan arcsinh arctanh negative sign trunc rint",
    "even": "cos cosh absolute",
    "none": "exp expm1 log log1p log2 sqrt floor ceil arccos logical_not",
    "same": "add subtract",
    "product": "multiply divide",
    "pair": "maximum minimum arctan2 equal not_equal greater greater_equal less less_equal logical_or logical_and",
}
_erf = np.vectorize(math.erf, otypes=[float])
FUNCTIONS: dict[str, tuple[str, Callable[..., Array]]] = {
    **{name: (kind, getattr(np, name)) for kind, names in _OF_NUMPY.items() for name in names.split()},
    "erf": ("odd", _erf),
    "relu": ("none", lambda x: np.maximum(x, 0)),
    "sigmoid": ("none", lambda x: 0.5 * (1 + np.tanh(0.5 * x))),
    "gelu": ("none", lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    "elu": ("none", lambda x, a, s, c: np.where(x > 0, s * x, s * a * np.expm1(c * np.minimum(x, 0)))),
    "softplus": ("none", lambda x, beta, most: np.where(x * beta > most, x, np.logaddexp(0, beta * x) / beta)),
    "clamp": ("clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "pow": ("pow", lambda x, n: np.power(x, int(n) if n == int(n) else n)),
    "where": ("choice", lambda c, x, y: np.asarray(np.where(c != 0, x, y))),
}
ARGUMENTS = {"same": 2, "product": 2, "pair": 2, "choice": 3}
REDUCTIONS: dict[str, Callable[..., Array]] = {"max": np.max, "min": np.min, "prod": np.prod}


def sign_rule(function: str, parameters: list[float]) -> str:
    """How signs pass through a function with these parameters."""
    kind = FUNCTIONS[function][0]
    if kind == "clamp":
        return "odd" if parameters[0] == -parameters[1] <= 0 else "none"
    if kind == "pow":
        return "none" if parameters[0] % 1 else "odd" if parameters[0] % 2 else "even"
    return kind


def digest(document: dict[str, Any]) -> str:
    """The SHA-256 digest over everything in a certificate but the digest."""
    rest = json.dumps({**document, "digest": ""}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(rest.encode()).hexdigest()


def read(path: str | Path) -> dict[str, Any]:
    """A certificate from its file; raises one of `UNREADABLE` where there is none."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("an object has a key twice")
        return dict(pairs)

    document = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=each_once)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f'expected an object with "schema": "{SCHEMA}"')
    return document


def unpack(stored: dict[str, Any]) -> Array:
    """An array from its dtype, its shape and base64; compressed where it says `packed`."""
    dtype, shape = np.dtype(stored["dtype"]), tuple(stored["shape"])
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "fiub" or any(type(n) is not int or n < 0 for n in shape) or size > LARGEST:
        raise ValueError(f"no array of dtype {dtype} and shape {shape}")
    data = base64.b64decode(stored["data"], validate=True)
    if stored.get("packed"):
        data = zlib.decompressobj().decompress(data, size + 1)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes for dtype {dtype} and shape {shape}")
    return np.frombuffer(data, dtype).reshape(shape)


class Checker:
    """One certificate, with the entries of all values numbered through.

    Entry e at L x is sign[g, e] times entry image[g, e] at x, or number[e] if constant[e]; where image is -1 one of
    `matrices` (by generator and first entry, with offsets) says it.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.nodes, self.generators = document["nodes"], len(document["claim"]["generators"])
        _hold([isinstance(item, dict) for item in [*self.nodes, *document["outputs"]]], "item {} is no object")
        self.weights = {name: unpack(stored) for name, stored in document["weights"].items()}
        inputs = [node["size"] for node in self.nodes if node["op"] == "input"]
        _hold(inputs == [math.prod(document["input"]["shape"])], "expected one input, of the given shape")
        _hold(len(document["outputs"]) > 0, "no output is claimed")
        self.rounded = document["claim"]["tolerance"] == ULP_CLAIM
        _hold(self.rounded or document["claim"]["tolerance"] == EXACT_CLAIM, "unknown tolerance")
        self.image, self.sign = np.zeros((2, self.generators, 0), dtype=np.int64)
        self.number, self.constant = np.zeros(0), np.zeros(0, dtype=bool)
        self.matrices: dict[tuple[int, int], tuple[Array, Array]] = {}

    def table(self, stored: dict[str, Any], ndim: int, size: int | None = None) -> Array:
        """A table of earlier entries, or of numbers below `size`."""
        table, limit = unpack(stored), len(self.number) if size is None else size
        _hold(table.dtype.kind in "iu" and table.ndim == ndim, "expected whole numbers")
        _hold((table >= 0) & (table < limit), "an index points at nothing")
        return table.astype(np.int64)

    def numbers(self, stored: dict[str, Any]) -> Array:
        """Weights: a parameter, some of its entries (one past the last: zero), or numbers made from parameters."""
        numbers = (unpack(stored) if "data" in stored else self.weights[stored["name"]]).astype(np.float64)
        if "entries" not in stored:
            return numbers
        entries = self.table(stored["entries"], len(stored["entries"]["shape"]), numbers.size + 1)
        return np.asarray(np.append(numbers.reshape(-1), 0.0)[entries])

    def _action(self, stored: dict[str, Any], size: int) -> tuple[Array, Array]:
        index, sign = self.table(stored["index"], 1, size), unpack(stored["sign"]).astype(np.int64)
        _hold(index.shape == (size,) == sign.shape and (np.abs(sign) == 1).all(), "no signed index of all entries")
        return index, sign

    def node(self, node: dict[str, Any]) -> None:
        """Check the law of one node and take over its entries."""
        start, op, actions = len(self.number), node["op"], []
        if op == "constant":
            numbers = self.numbers(node["value"]).reshape(-1)
            actions = [(np.arange(len(numbers)) + start, np.ones(len(numbers), dtype=np.int64))] * self.generators
        else:
            size = self._size(node)
            numbers = np.full(size, np.nan)
            _hold(len(node["actions"]) == self.generators, "expected one action for each generator")
        for generator, stored in enumerate([] if op == "constant" else node["actions"]):
            if "matrix" in stored:
                matrix, offset = self.numbers(stored["matrix"]), self.numbers(stored["offset"])
                _hold(
                    op in ("input", "linear") and matrix.shape == (size, size) == offset.shape * 2, "no matrix for it"
                )
                if op == "linear":
                    self._check_mixed_units(node, generator, matrix, offset)
                self.matrices[generator, start] = matrix, offset
                actions.append((np.full(size, -1), np.ones(size, dtype=np.int64)))
            else:
                index, sign = self._action(stored, size)
                if op != "input":
                    getattr(self, f"_{op}")(node, generator, index, sign)
                actions.append((index + start, sign))
        images, signs = (np.array([action[i] for action in actions], dtype=np.int64) for i in (0, 1))
        self.image, self.sign = np.hstack([self.image, images]), np.hstack([self.sign, signs])
        self.number = np.append(self.number, numbers)
        self.constant = np.append(self.constant, np.full(len(numbers), op == "constant"))

    def _size(self, node: dict[str, Any]) -> int:
        if node["op"] == "input":
            return int(node["size"])
        if node["op"] == "pointwise":
            sizes = [len(self.table(x, 1)) for x in node["x"]]
            count = ARGUMENTS.get(FUNCTIONS[node["function"]][0], 1)
            _hold(sizes == sizes[:1] * count, "another number of arguments, or arguments of different sizes")
            return sizes[0]
        rows = self.table(node["x"], 2)
        weight = self.units(node)[0] if node["op"] == "linear" else np.zeros((1, rows.shape[1]))
        _hold(weight.shape[1] == rows.shape[1], "the weight does not fit its arguments")
        return len(rows) * len(weight)

    def _argument_signs(self, x: Array, index: Array, generator: int) -> tuple[Array, Array]:
        """Signs u with x_i at L x equal to u_i times x_index[i] at x, and where both are the constant 0."""
        target = x[index]
        fixed, a, b = self.constant[x] & self.constant[target], self.number[x], self.number[target]
        alike = np.where(fixed, np.abs(a) == np.abs(b), self.image[generator][x] == target)
        _hold(alike, f"generator {generator}: an argument of entry {{}} moves elsewhere")
        # the zeros of both signs are told apart, as some functions do
        signs = np.where(fixed, np.where(np.signbit(a) == np.signbit(b), 1, -1), self.sign[generator][x])
        return signs, fixed & (a == 0)

    def _pointwise(self, node: dict[str, Any], generator: int, index: Array, sign: Array) -> None:
        kind = sign_rule(node["function"], [float(number) for number in node["parameters"]])
        moved = [self._argument_signs(self.table(x, 1), index, generator) for x in node["x"]]
        if kind == "odd":
            fine = moved[0][0] == sign
        elif kind == "product":
            zero = moved[0][1] | (moved[1][1] & (node["function"] == "multiply"))
            fine = (moved[0][0] * moved[1][0] == sign) | zero
        elif kind in ("same", "choice"):
            fine = moved[0][0] == 1 if kind == "choice" else np.ones(len(sign), dtype=bool)
            fine = np.all([fine, *((signs == sign) | zero for signs, zero in moved[kind == "choice" :])], axis=0)
        else:
            fine = np.all([sign == 1, *((signs == 1) | (kind == "even") for signs, _ in moved)], axis=0)
        _hold(fine, f"generator {generator}: {node['function']} does not carry the sign of entry {{}}")

    def units(self, node: dict[str, Any]) -> tuple[Array, Array]:
        """Distinct rows of a weight, with their biases; rows that are said to be equal are compared."""
        weight = self.numbers(node["weight"])
        weight = weight.reshape(len(weight), -1)
        bias = np.zeros(len(weight)) if node["bias"] is None else self.numbers(node["bias"])
        _hold(bias.shape == (len(weight),), "expected one bias for each row")
        _hold(np.isfinite(weight).all(axis=1) & np.isfinite(bias), "the weights of unit {} are not finite")
        if node["units"] is None:
            return weight, bias
        units = self.table(node["units"], 1, len(weight))
        classes, first, same = np.unique(units, return_index=True, return_inverse=True)
        _hold(units.shape == bias.shape and np.array_equal(classes, np.arange(len(classes))), "units are not numbered")
        alike = (weight == weight[first][same]).all(axis=1) & (bias == bias[first][same])
        _hold(alike, "the weights of unit {} differ from those that they are said to equal")
        return weight[first], bias[first]

    def _moved_rows(self, node: dict[str, Any], generator: int, index: Array, count: int) -> tuple[Array, ...]:
        """How the arguments of moved rows and of those in place of them are sorted, their signs, zeros, repetitions."""
        x, place = self.table(node["x"], 2), index.reshape(-1, count) // count
        _hold((place == place[:, :1]).all(axis=1), f"generator {generator}: entries of row {{}} go to several rows")
        constants, same = np.flatnonzero(self.constant), np.arange(len(self.number))
        _, first, which = np.unique(self.number[constants], return_index=True, return_inverse=True)
        same[constants] = constants[first][which]  # equal constants are one entry
        image = self.image[generator][x]
        _hold((image >= 0).all(axis=1), f"generator {generator}: a matrix moves row {{}}")
        here, there = same[image], same[x[place[:, 0]]]
        orders = np.argsort(here, axis=1, kind="stable"), np.argsort(there, axis=1, kind="stable")
        a, b = (np.take_along_axis(rows, order, 1) for rows, order in zip((here, there), orders, strict=True))
        _hold((a == b).all(axis=1), f"generator {generator}: the arguments of row {{}} are those of no row")
        signs = np.take_along_axis(self.sign[generator][x], orders[0], 1)
        again = np.hstack([np.zeros((len(a), 1), dtype=bool), a[:, 1:] == a[:, :-1]])
        return *orders, signs, self.constant[a] & (self.number[a] == 0), again

    def _linear(self, node: dict[str, Any], generator: int, index: Array, sign: Array) -> None:
        (weight, bias), x = self.units(node), self.table(node["x"], 2)
        if (self.image[generator][x] < 0).any():
            self._check_mixed_units(node, generator, np.eye(len(index))[index] * sign[:, None], np.zeros(len(index)))
            return
        moved = self._moved_rows(node, generator, index, len(weight))
        parts = *moved, index.reshape(len(x), -1) % len(weight), sign.reshape(len(x), -1)
        # rows that move alike are compared once
        for row in {tuple(part[row].tobytes() for part in parts): row for row in range(len(x))}.values():
            here, there, flips, zero, again, image, t = (part[row] for part in parts)
            left = np.where(zero, 0.0, weight[:, here] * flips)
            right = np.where(zero, 0.0, weight[image][:, there] * t[:, None])
            if again.any():
                # sums of the weights of one argument, as rational numbers
                exact = (np.array([[Fraction(n) for n in row] for row in side.tolist()]) for side in (left, right))
                left, right = (np.add.reduceat(side, np.flatnonzero(~again), axis=1) for side in exact)
            fine = self._equal(left, right).all(axis=1) & self._equal(bias, t * bias[image])
            _hold(fine, f"generator {generator}: the weights of unit {{}} are not those of its image")

    def _equal(self, a: Array, b: Array) -> Array:
        if not self.rounded:
            return np.asarray(a == b, dtype=bool)
        a, b = a.astype(np.float64), b.astype(np.float64)
        larger = np.maximum(np.abs(a), np.abs(b)).astype(np.float32)
        return np.asarray(np.abs(a - b) <= ULPS * np.spacing(larger), dtype=bool)

    def _reduce(self, node: dict[str, Any], generator: int, index: Array, sign: Array) -> None:
        signs = self._moved_rows(node, generator, index, 1)[2]
        fine = (signs == 1).all(axis=1) & (sign == 1) & (node["function"] in REDUCTIONS)
        _hold(fine, f"generator {generator}: signs in row {{}}, or an unknown function")

    def _moved_entries(self, entries: Array, generator: int) -> tuple[Array, Array, Array]:
        """Entries that move among each other and hold the given ones, sorted; the matrix that moves them; offsets."""
        for (g, start), (matrix, offset) in self.matrices.items():
            if g == generator and (entries >= start).all() and (entries < start + len(offset)).all():
                return start + np.arange(len(offset)), matrix, offset
        entries = np.unique(entries)
        image = self.image[generator][entries]
        _hold(np.isin(image, entries), f"generator {generator}: arguments do not move among each other")
        matrix = np.eye(len(entries))[np.searchsorted(entries, image)] * self.sign[generator][entries][:, None]
        return entries, matrix, np.zeros(len(entries))

    def _check_mixed_units(self, node: dict[str, Any], generator: int, matrix: Array, offset: Array) -> None:
        """A M = K A, up to the rounding of these products in float64: A the weights on entries that a matrix moves."""
        (weight, bias), x = self.units(node), self.table(node["x"], 2)
        fixed, rows = self.constant[x], np.arange(len(x))
        entries, of_value, of_number = self._moved_entries(x[~fixed], generator)
        local = np.searchsorted(entries, np.where(fixed, entries[0], x))
        A: Array = np.zeros((len(x), len(weight), len(entries)))
        b: Array = np.tile(bias, (len(x), 1))
        for column in range(x.shape[1]):
            A[rows, :, local[:, column]] += np.where(fixed[:, column, None], 0.0, weight[:, column])
            number = np.where(fixed[:, column], self.number[x[:, column]], 0.0)
            b += number[:, None] * weight[:, column]
        A, b = A.reshape(-1, len(entries)), b.reshape(-1)
        left = np.column_stack([A @ of_value, A @ of_number + b])
        right = np.column_stack([matrix @ A, matrix @ b + offset])
        size = np.abs(A) @ np.abs(of_value) + np.abs(matrix) @ np.abs(A)
        sums = np.abs(A) @ np.abs(of_number) + np.abs(b) + np.abs(matrix) @ np.abs(b) + np.abs(offset)
        slack = 4 * (len(b) + len(entries) + 2) * 2.0**-52 * np.column_stack([size, sums])
        fine = (np.abs(left - right) <= slack).all(axis=1)  # NaN is not
        _hold(fine, f"generator {generator}: unit {{}} is not moved as its matrix says")

    def output(self, output: dict[str, Any]) -> None:
        """Check that an output moves as claimed."""
        entries = self.table(output["entries"], 1)
        _hold(len(output["actions"]) == self.generators, "expected one action for each generator")
        for generator, stored in enumerate(output["actions"]):
            if "matrix" in stored:
                whole, matrix, offset = self._moved_entries(entries, generator)
                local = np.searchsorted(whole, entries)
                same = np.array_equal(matrix[np.ix_(local, local)], self.numbers(stored["matrix"]))
                same &= np.array_equal(offset[local], self.numbers(stored["offset"]))
                _hold(same and len(np.unique(local)) == len(whole), f"generator {generator}: moved by another matrix")
            else:
                index, sign = self._action(stored, len(entries))
                signs, zero = self._argument_signs(entries, index, generator)
                _hold((signs == sign) | zero, f"generator {generator}: entry {{}} has another sign than is claimed")


def _apply_law(step: str, law: Callable[[], None]) -> None:
    try:
        law()
    except Exception as error:  # what is not as it should be is no proof, whatever breaks
        malformed = "" if isinstance(error, RejectedError) else f"malformed: {type(error).__name__}: "
        raise RejectedError(f"{step}: {malformed}{error}") from error


def evaluate(document: dict[str, Any], x: Array) -> dict[str, Array]:
    """What the nodes of a certificate compute at one input; flat outputs by their paths."""
    checker, values = Checker(document), np.zeros(0)
    with np.errstate(all="ignore"):
        for node in checker.nodes:
            if node["op"] == "constant":
                new = checker.numbers(node["value"]).reshape(-1)
            elif node["op"] == "input":
                new = np.asarray(x, dtype=np.float64).reshape(-1)
            elif node["op"] == "pointwise":
                arguments = [values[unpack(table)] for table in node["x"]]
                new = FUNCTIONS[node["function"]][1](*arguments, *map(float, node["parameters"])).astype(np.float64)
            elif node["op"] == "reduce":
                new = REDUCTIONS[node["function"]](values[unpack(node["x"])], axis=1)
            else:
                weight, bias = checker.units(node)
                new = (values[unpack(node["x"])] @ weight.T + bias).reshape(-1)
            values = np.append(values, new)
    return {output["path"]: values[unpack(output["entries"])] for output in document["outputs"]}


def check(document: dict[str, Any], weights: dict[str, Array] | None = None) -> None:
    """Check a certificate, and that its weights are the given ones; raises `RejectedError` at the first wrong step."""
    _hold(document.get("digest") == digest(document), "digest: the file is not as it was written")
    made: list[Checker] = []
    _apply_law("head", lambda: made.append(Checker(document)))
    for name, stored in made[0].weights.items():
        given = stored if weights is None else weights.get(name, np.zeros(0))
        same = given.dtype == stored.dtype and given.shape == stored.shape and given.tobytes() == stored.tobytes()
        _hold(same, f"weights: {name} differs from the given one")
    for place, node in enumerate(document["nodes"]):
        words = " ".join(filter(None, [str(node.get(key, "")) for key in ("op", "function", "name")]))
        _apply_law(f"node {place} ({words})", partial(made[0].node, node))
    for output in document["outputs"]:
        _apply_law(f"output {output.get('path')!r}", partial(made[0].output, output))


def main(arguments: list[str]) -> int:
    """Check the file that the command line names."""
    try:
        document = read(arguments[0])
        check(document, dict(np.load(arguments[2])) if arguments[1:2] == ["--weights"] else None)
    except UNREADABLE as error:
        sys.stderr.write(f"unreadable: {error}\n")
        return 2
    except RejectedError as error:
        sys.stdout.write(f"rejected: {error}\n")
        return 1
    sys.stdout.write(f"accepted: {document['claim'].get('statement')}; {document['claim']['tolerance']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
