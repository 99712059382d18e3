"""Checks a certificate of equivariance with only NumPy, the standard library and this file.

A certificate contains a network as nodes with its weights, and a claim f(L x) = K f(x) for every generator. The nodes
are computed on terms, at x and at every L x. A term is identified by its function and operands, in any order in sums,
products and maxima; signs are moved out of odd functions. If f(L x) and K f(x) are equal terms, the claim holds for
every x in real arithmetic. Weights are compared as stored: floats are rational numbers. With matrices, values are
polynomials in terms, equal if their coefficients are equal up to rounding. `evaluate` runs the nodes.

Run `python certificate_checker.py FILE [--weights FILE.npz]`; exit codes: 0 accepted, 1 rejected, 2 unreadable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = "symcheck-certificate/2"
Array = np.ndarray[Any, Any]
LARGEST = 1 << 31  # maximum size of an unpacked array, in bytes
ULPS = 4  # maximum difference of weights, in float32 ulps, if the claim states that they were rounded
UNREADABLE = (OSError, IndexError, ValueError, TypeError, RecursionError, zipfile.BadZipFile)
EXACT_CLAIM, ULP_CLAIM = "weights equal", f"weights within {ULPS} float32 ulps of the larger"
UNIT = 2.0**-52  # twice the largest relative error of a float64 product or sum
HIDDEN = 1e-6  # limit of the accumulated rounding of a coefficient: a tenth of the smallest violation in samples
PRODUCT_CLAIM = "products of weights equal up to their rounding in float64"


class RejectedError(Exception):
    """A certificate that does not hold; the message names the step."""


def _hold(fine: Any, message: str) -> None:
    if not np.all(fine):  # the message names the first wrong place
        raise RejectedError(message.replace("{}", str(np.argmin(fine))))


# By parity: "odd" f(-u) = -f(u), "even" f(-u) = f(u), "none" neither; one argument unless stated otherwise.
_OF_NUMPY = {
    "odd": "tanh sin tan sinh arcsin arctan arcsinh arctanh reciprocal sign trunc rint",
    "even": "cos cosh absolute isnan",
    "none": "exp expm1 log log1p log2 sqrt floor ceil arccos arctan2",
}
FUNCTIONS: dict[str, tuple[str, Callable[..., Array]]] = {
    **{name: (kind, getattr(np, name)) for kind, names in _OF_NUMPY.items() for name in names.split()},
    "erf": ("odd", np.vectorize(math.erf, otypes=[float])),
    "zero": ("even", lambda x: x == 0),
    "positive": ("none", lambda x: x > 0),
    "relu": ("none", lambda x: np.maximum(x, 0)),
    "sigmoid": ("none", lambda x: 0.5 * (1 + np.tanh(0.5 * x))),
    "elu": ("none", lambda x, a, s, c: np.where(x > 0, s * x, s * a * np.expm1(c * np.minimum(x, 0)))),
    "softplus": ("none", lambda x, beta, most: np.where(x * beta > most, x, np.logaddexp(0, beta * x) / beta)),
    "pow": ("pow", lambda x, n: np.power(x, int(n) if n == int(n) else n)),
    "where": ("choice", lambda c, x, y: np.asarray(np.where(c != 0, x, y))),
}
ARGUMENTS = {"where": 3, "arctan2": 2}
UNKNOWN = "any "  # prefix of unknown functions; the only assumption: equal arguments give equal results
REDUCTIONS: Any = {"prod": lambda x: np.prod(x, axis=1), "place": lambda x, k: np.sort(x, axis=1)[:, int(k)]}


def digest(document: dict[str, Any]) -> str:
    """The SHA-256 digest over everything in a certificate except the digest."""
    text = json.dumps({**document, "digest": ""}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: str | Path) -> dict[str, Any]:
    """A certificate from its file; raises one of `UNREADABLE` if there is none."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key occurs twice in an object")
        return dict(pairs)

    document = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=each_once)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f'expected an object with "schema": "{SCHEMA}"')
    return document


def unpack(stored: dict[str, Any]) -> Array:
    """An array from its dtype, its shape and base64; compressed if it has the key `packed`."""
    dtype, shape = np.dtype(stored["dtype"]), tuple(stored["shape"])
    size = math.prod(shape) * dtype.itemsize
    data = base64.b64decode(stored["data"], validate=True)
    if stored.get("packed"):
        data = zlib.decompressobj().decompress(data, min(size, LARGEST) + 1)
    if dtype.kind not in "fiub" or any(type(n) is not int or n < 0 for n in shape) or len(data) != size:
        raise ValueError(f"{len(data)} bytes for dtype {dtype} and shape {shape}")
    return np.frombuffer(data, dtype).reshape(shape)


Form = dict[tuple[int, ...], tuple[float, float]]  # product of terms: coefficient, and its accumulated rounding


class _Terms:
    """Numbers of terms, negative for negated terms, 0 for zero: terms with equal numbers are equal for every x."""

    def __init__(self, rounded: bool = False) -> None:
        self.rounded = rounded
        self.known: dict[Hashable, int] = {}
        self.named: list[tuple[float, int, Form]] = []  # with the value at a point, which distinguishes most forms
        self.rows: dict[int, list[tuple[Array, int]]] = {}

    def number(self, *key: Hashable) -> int:
        return self.known.setdefault(key, len(self.known) + 1)

    def constant(self, value: float) -> Any:
        _hold(not math.isnan(value), "a constant is NaN")
        return int(np.sign(value)) * self.number("constant", abs(value)) if value else 0

    item: Any = staticmethod(int)

    def function(self, name: str, parameters: list[float], rows: Array) -> list[Any]:
        known = {row: self.apply(name, parameters, row) for row in dict.fromkeys(map(tuple, rows.tolist()))}
        return [known[tuple(row)] for row in rows.tolist()]

    def apply(self, name: str, parameters: list[float], x: tuple[int, ...]) -> int:
        """A function of terms, in a canonical form among those that its symmetries allow."""
        flipped, last = tuple(-term for term in x), parameters[-1] if parameters else 0.0
        if name == "prod":
            sign = 0 if 0 in x else -1 if sum(term < 0 for term in x) % 2 else 1
            x = tuple(sorted(abs(term) for term in x if abs(term) != self.number("constant", 1.0)))
            return sign * (x[0] if len(x) == 1 else self.number("prod", x) if x else self.number("constant", 1.0))
        if name == "place":
            ways = [(tuple(sorted(x)), last, 1), (tuple(sorted(flipped)), len(x) - 1 - last, -1)]
        else:
            power = "none" if last % 1 else "odd" if last % 2 else "even"
            kind = power if name == "pow" else FUNCTIONS.get(name, ("none",))[0]
            tells_zeros = name.startswith(("arctan2", "reciprocal", UNKNOWN)) or last < 0
            _hold(0 not in x or not tells_zeros, "the sign of zero may matter")
            _hold(not (self.rounded and name.startswith(UNKNOWN)), "rounding may make an unknown function jump")
            if (kind == "odd" and x == (0,)) or (kind == "choice" and x[1] == x[2]):
                return x[-1]
            turned = {"odd": (flipped, 0.0, -1), "even": (flipped, 0.0, 1), "choice": ((x[0], *flipped[1:]), 0.0, -1)}
            ways = [(x, 0.0, 1), *([turned[kind]] if kind in turned else [])]
        arguments, place, sign = max(ways)
        return sign * self.number(name, tuple(parameters[:-1] if name == "place" else parameters), place, arguments)

    def linear(self, x: Array, weight: Array, bias: Array, at_x: bool) -> Array:
        """W u + b of rows u of terms."""
        order = np.argsort(np.abs(x), axis=1, kind="stable")
        x = np.take_along_axis(x, order, 1)
        ids, signs = np.abs(x), np.sign(x)
        again = np.hstack([np.zeros((len(x), 1), dtype=bool), ids[:, 1:] == ids[:, :-1]])
        alike: dict[bytes, list[int]] = {}  # rows whose terms have the same sorted order
        for row, pattern in enumerate(np.hstack([order, signs, again])):
            alike.setdefault(pattern.tobytes(), []).append(row)
        result = np.zeros((len(x), len(weight)), dtype=np.int64)
        for rows in alike.values():
            W, columns = weight[:, order[rows[0]]] * signs[rows[0]], np.flatnonzero(~again[rows[0]])
            if len(columns) < len(order[0]):  # weights of the same term are added as rational numbers
                W = np.array([[Fraction(number) for number in row] for row in W.tolist()], dtype=object)
                W = np.add.reduceat(W, columns, axis=1)
            kept = ids[rows[0]][columns] != 0
            result[rows] = self._units(ids[rows][:, columns[kept]], W[:, kept], bias, at_x)
        return result

    def _units(self, ids: Array, W: Array, b: Array, at_x: bool) -> Array:
        whole = np.hstack([W, b[:, None]])
        lead = np.where(whole[np.arange(len(W)), np.argmax(whole != 0, axis=1)] < 0, -1, 1)
        W, b, result = W * lead[:, None], b * lead + 0.0, np.zeros((len(ids), len(W)), dtype=np.int64)
        rows: dict[bytes, tuple[Array, list[int]]] = {}
        for unit, used in enumerate(W != 0):  # the term of a zero weight is irrelevant
            if used.tobytes() not in rows:
                rows[used.tobytes()] = ids[:, used], [self.number("row", row.tobytes()) for row in ids[:, used]]
            (chosen, labels), weights = rows[used.tobytes()], W[unit, used]
            if not len(weights):
                result[:, unit] = self.constant(float(b[unit]))
            elif b[unit] == 0 and len(weights) == 1 == weights[0]:
                result[:, unit] = chosen[:, 0]
            else:
                code = self._row_code(np.append(weights, b[unit]), at_x)
                result[:, unit] = [self.number("linear", label, code) for label in labels]
        return result * lead

    def _row_code(self, row: Array, at_x: bool) -> int:
        """The number of a row of weights; for rounded weights at L x, that of a row at x within the tolerance."""
        key = "weights", tuple(row) if row.dtype == object else row.tobytes()
        known = self.rows.setdefault(len(row), [])
        if self.rounded and key not in self.known and row.dtype != object:
            for other, code in () if at_x else known:
                larger = np.maximum(np.abs(row), np.abs(other)).astype(np.float32)
                if abs(row[0] - other[0]) <= 1e-6 * larger[0] and (abs(row - other) <= ULPS * np.spacing(larger)).all():
                    return code
            known += [(row, self.number(*key))] if at_x else []
        return self.number(*key)


class _Forms(_Terms):
    """Values as polynomials in terms, for actions by matrices."""

    def constant(self, value: float) -> Any:
        return {(): (value, 0.0)} if value and math.isfinite(value) else self.item(super().constant(value))

    def item(self, term: int, error: float = 0.0) -> Any:
        return {(abs(term),): (1.0 if term > 0 else -1.0, error)} if term else {}

    def name(self, item: Form) -> int:
        """The number of a polynomial; equal polynomials have the same number, and negated ones its negative."""
        terms, (number, error) = next(iter(item.items()))
        if len(item) == len(terms) == 1 and abs(abs(number) - 1) <= error + UNIT:
            return terms[0] if number > 0 else -terms[0]
        place = sum(number * math.prod(math.sin(term * term) for term in terms) for terms, (number, _) in item.items())
        near, sign = sum(1e-9 * abs(x) + 2 * error for x, error in item.values()), 1 if place > 0 else -1
        upright = self.add([sign], [item])
        for other, term, form in self.named:
            if abs(other - abs(place)) <= near and not self.add((1, -1), (form, upright)):
                return sign * term
        self.named.append((abs(place), self.number("form", len(self.named)), upright))
        return int(sign * self.named[-1][1])

    def add(self, weights: Iterable[float], forms: Iterable[Form]) -> Form:
        total: Form = {}
        pairs = [(weight, form) for weight, form in zip(weights, forms, strict=True) if weight]
        unit = UNIT * (1 + len(pairs)) if [abs(w) for w, _ in pairs] not in ([], [1]) else 0.0
        for weight, form in pairs:
            for terms, (number, error) in form.items():
                before, part = total.get(terms, (0.0, 0.0)), weight * number
                total[terms] = before[0] + part, before[1] + abs(weight) * error + unit * abs(part)
        _hold(all(error < HIDDEN for _, error in total.values()), "the rounding errors of coefficients are too large")
        return {terms: pair for terms, pair in total.items() if abs(pair[0]) > pair[1]}

    def linear(self, x: Array, weight: Array, bias: Array, at_x: bool) -> Array:
        units = np.column_stack([weight, bias]).tolist()
        rows = [[self.add(unit, [*row, self.constant(1.0)]) for unit in units] for row in x.tolist()]
        return np.array(rows, dtype=object).reshape(len(x), len(units))

    def function(self, name: str, parameters: list[float], rows: Array) -> list[Any]:
        if name == "prod":
            return [self._multiply(row) for row in rows]
        named = np.array([[self.name(form) if form else 0 for form in row] for row in rows])
        errors = [sum(error for form in row for _, error in form.values()) for row in rows]
        return [*map(self.item, super().function(name, parameters, named), errors)]

    def _multiply(self, factors: Iterable[Form]) -> Form:
        result: Form = self.constant(1.0)
        for form in factors:
            pairs = [(*one, *other) for one in result.items() for other in form.items()]
            parts = [{tuple(sorted(s + t)): (a * b, abs(a) * d + abs(b) * c + c * d)} for s, (a, c), t, (b, d) in pairs]
            result = self.add([1.0] * len(parts), parts)
        return result


class Checker:
    """One certificate. `at` contains the terms of all entries: at x in its first row, at every L x in the others."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.nodes, self.generators = document["nodes"], len(document["claim"]["generators"])
        _hold([isinstance(item, dict) for item in [*self.nodes, *document["outputs"]]], "item {} is not an object")
        self.weights = {name: unpack(stored) for name, stored in document["weights"].items()}
        inputs = [node["size"] for node in self.nodes if node["op"] == "input"]
        fine = inputs == [math.prod(document["input"]["shape"])] and document["outputs"] and self.generators
        _hold(bool(fine), "no input, no output or no generator")
        tolerance = document["claim"]["tolerance"]
        _hold(tolerance in (EXACT_CLAIM, ULP_CLAIM, PRODUCT_CLAIM), "unknown tolerance")
        self.exact = tolerance != PRODUCT_CLAIM
        self.terms: Any = _Terms(tolerance == ULP_CLAIM) if self.exact else _Forms(True)
        self.at: Array = np.zeros((1 + self.generators, 0), dtype=np.int64 if self.exact else object)

    def table(self, stored: dict[str, Any], ndim: int, size: int | None = None) -> Array:
        """A table of earlier entries, or of numbers below `size`."""
        table, limit = unpack(stored), self.at.shape[1] if size is None else size
        _hold(table.dtype.kind in "iu" and table.ndim == ndim, "expected whole numbers")
        _hold(table.size and ((table >= 0) & (table < limit)).all(), "an index is out of range, or missing")
        return table.astype(np.int64)

    def numbers(self, stored: dict[str, Any]) -> Array:
        """Weights: a parameter, some of its entries (one past the end: zero), or numbers computed from parameters."""
        numbers = (unpack(stored) if "data" in stored else self.weights[stored["name"]]).astype(np.float64)
        if "entries" in stored:
            entries = self.table(stored["entries"], len(stored["entries"]["shape"]), numbers.size + 1)
            return np.asarray(np.append(numbers.reshape(-1), 0.0)[entries])
        return numbers

    def layer(self, node: dict[str, Any]) -> tuple[Array, Array]:
        """A weight and its bias."""
        weight = (rows := self.numbers(node["weight"])).reshape(len(rows), -1)
        bias = np.zeros(len(weight)) if node["bias"] is None else self.numbers(node["bias"])
        _hold(bias.shape == (len(weight),), "expected one bias for each row")
        _hold(np.isfinite(weight).all(axis=1) & np.isfinite(bias), "the weights of unit {} are not finite")
        return weight, bias

    def move(self, action: dict[str, Any], values: Array) -> Array:
        """Apply an action to values: entry i is sign[i] times entry index[i], or the action is a matrix."""
        n = len(values)
        if "matrix" in action:
            matrix, offset = self.numbers(action["matrix"]), self.numbers(action["offset"])
            _hold(matrix.shape == (n, n) == offset.shape * 2 and not self.exact, "a matrix does not fit the entries")
        else:
            index, sign = self.table(action["index"], 1, n), unpack(action["sign"]).astype(np.int64)
            _hold(index.shape == (n,) == sign.shape and (np.abs(sign) == 1).all(), "not a signed permutation")
            if self.exact:
                return np.asarray(sign * values[index])
            matrix, offset = np.eye(n)[index] * sign[:, None], np.zeros(n)
        return np.asarray(self.terms.linear(values[None], matrix, offset, False)[0])

    def node(self, node: dict[str, Any]) -> None:
        """Compute one node, and store its entries."""
        terms, op = self.terms, node["op"]
        if op == "constant":
            rows: Any = [[*map(terms.constant, self.numbers(node["value"]).reshape(-1).tolist())]] * len(self.at)
        elif op == "input":
            start = np.array([terms.item(terms.number("input", n)) for n in range(node["size"])], dtype=self.at.dtype)
            rows = [start, *(self.move(action, start) for action in node["actions"])]
            _hold(len(rows) == len(self.at), "expected one action for each generator")
        elif op == "linear":
            (weight, bias), x = self.layer(node), self.table(node["x"], 2)
            _hold(weight.shape[1] == x.shape[1], "the weight does not fit its arguments")
            rows = [terms.linear(values[x], weight, bias, not run).reshape(-1) for run, values in enumerate(self.at)]
        else:
            x, name, parameters = self.table(node["x"], 2), node["function"], [*map(float, node["parameters"])]
            free = {name: lambda *x: x[0]} if name.startswith(UNKNOWN) else {}
            count = x.shape[1] if op == "reduce" or free else ARGUMENTS.get(name, 1)
            _hold(x.shape[1] == count and _compute(node, np.full((1, count), 0.5), free).shape == (1,), "no function")
            _hold(name != "place" or parameters[0] in range(count), "no such place")
            rows = [terms.function(name, parameters, values[x]) for values in self.at]
        self.at = np.hstack([self.at, np.array([[*row] for row in rows], dtype=self.at.dtype).reshape(len(rows), -1)])

    def output(self, output: dict[str, Any]) -> None:
        """Check that an output transforms as claimed."""
        entries = self.table(output["entries"], 1)
        _hold(len(output["actions"]) == self.generators, "expected one action for each generator")
        for generator, action in enumerate(output["actions"]):
            pairs = zip(self.move(action, self.at[0, entries]), self.at[generator + 1, entries], strict=True)
            fine = [a == b if self.exact else not self.terms.add((1, -1), (a, b)) for a, b in pairs]
            _hold(fine, f"generator {generator}: entry {{}} does not transform as claimed")


def _compute(node: dict[str, Any], x: Array, unknown: dict[str, Any]) -> Array:
    pointwise, name = {"reduce": False, "pointwise": True}[node["op"]], node["function"]
    function, arguments = (unknown.get(name) or FUNCTIONS[name][1], x.T) if pointwise else (REDUCTIONS[name], [x])
    return np.asarray(function(*arguments, *map(float, node["parameters"])), dtype=np.float64)


def evaluate(document: dict[str, Any], x: Array, unknown: dict[str, Any] | None = None) -> dict[str, Array]:
    """Evaluate the nodes at one input; returns flat values by output path. Unknown functions are given by name."""
    checker, values = Checker(document), np.zeros(0)
    with np.errstate(all="ignore"):
        for node in checker.nodes:
            if node["op"] == "constant":
                new = checker.numbers(node["value"]).reshape(-1)
            elif node["op"] == "input":
                new = np.asarray(x, dtype=np.float64).reshape(-1)
            elif node["op"] == "linear":
                weight, bias = checker.layer(node)
                new = (values[unpack(node["x"])] @ weight.T + bias).reshape(-1)
            else:
                new = _compute(node, values[unpack(node["x"])], unknown or {})
            values = np.append(values, new)
    return {output["path"]: values[unpack(output["entries"])] for output in document["outputs"]}


def check(document: dict[str, Any], weights: dict[str, Array] | None = None) -> None:
    """Check a certificate, and that its weights are the given ones; raises `RejectedError` at the first wrong step."""
    _hold(document.get("digest") == digest(document), "digest: the file was modified")
    step = "head"
    try:
        checker, step = Checker(document), "weights"
        for name, stored in checker.weights.items():
            given = stored if weights is None else weights.get(name, np.zeros(0))
            same = given.dtype == stored.dtype and given.shape == stored.shape and given.tobytes() == stored.tobytes()
            _hold(same, f"{name} differs from the given one")
        for place, node in enumerate(checker.nodes):
            step = f"node {place} ({node.get('op')} {node.get('name') or node.get('function')})"
            checker.node(node)
        for output in document["outputs"]:
            step = f"output {output.get('path')!r}"
            checker.output(output)
    except Exception as error:  # a malformed certificate proves nothing, whatever error it causes
        malformed = "" if isinstance(error, RejectedError) else f"malformed: {type(error).__name__}: "
        raise RejectedError(f"{step}: {malformed}{error}") from error


def main(arguments: list[str]) -> int:
    """Check the file that the command line names."""
    try:
        document = read(arguments[0])
        check(document, dict(np.load(arguments[2])) if arguments[1:2] == ["--weights"] else None)
        code, words = 0, f"accepted: {document['claim'].get('statement')}; {document['claim']['tolerance']}"
    except RejectedError as error:
        code, words = 1, f"rejected: {error}"
    except UNREADABLE as error:
        code, words = 2, f"unreadable: {error}"
    (sys.stderr if code == 2 else sys.stdout).write(words + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
