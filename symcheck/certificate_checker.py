"""Check a certificate of equivariance: this one file, NumPy and the standard library.

A certificate holds a network as a list of nodes with its weights, and a claim f(L x) = K f(x) for every generator. The
nodes are computed on terms, at x and at every L x. A term is known by its function and operands; the order of summands,
factors and maxima does not count, and signs come out of odd functions. Entries that are one term are equal for every x:
if f(L x) and K f(x) are the same terms, the claim holds. Weights are compared as stored: floats are rational numbers,
and sums of weights are added as such. Where matrices move entries, values are polynomials in terms, and equal if their
coefficients are, up to the rounding of the products that made them. The arithmetic is that of real numbers. That the
nodes compute what a network computes is shown by running both: `evaluate` runs the nodes.

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
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = "symcheck-certificate/2"
Array = np.ndarray[Any, Any]
LARGEST = 1 << 31  # bytes that one array may take when it is unpacked
ULPS = 4  # float32 units in the last place by which weights may differ where the claim says that they were rounded
UNREADABLE = (OSError, IndexError, ValueError, TypeError, RecursionError, zipfile.BadZipFile)
EXACT_CLAIM, ULP_CLAIM = "weights equal", f"weights within {ULPS} float32 ulps of the larger"
PRODUCT_CLAIM = "products of weights equal up to their rounding in float64"


class RejectedError(Exception):
    """A certificate that does not hold; the message names the step."""


def _hold(fine: Any, message: str) -> None:
    if not np.all(fine):  # the first place that is wrong is named
        raise RejectedError(message.replace("{}", str(np.argmin(fine))))


# By how signs pass: "odd" f(-u) = -f(u), "even" f(-u) = f(u), "none" neither; one argument if nothing else is said.
_OF_NUMPY = {
    "odd": "tanh sin tan sinh arcsin arctan arcsinh arctanh reciprocal sign trunc rint",
    "even": "cos cosh absolute",
    "none": "exp expm1 log log1p log2 sqrt floor ceil arccos arctan2",
}
_erf = np.vectorize(math.erf, otypes=[float])
FUNCTIONS: dict[str, tuple[str, Callable[..., Array]]] = {
    **{name: (kind, getattr(np, name)) for kind, names in _OF_NUMPY.items() for name in names.split()},
    "erf": ("odd", _erf),
    "zero": ("even", lambda x: x == 0),
    "positive": ("none", lambda x: x > 0),
    "relu": ("none", lambda x: np.maximum(x, 0)),
    "sigmoid": ("none", lambda x: 0.5 * (1 + np.tanh(0.5 * x))),
    "gelu": ("none", lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    "elu": ("none", lambda x, a, s, c: np.where(x > 0, s * x, s * a * np.expm1(c * np.minimum(x, 0)))),
    "softplus": ("none", lambda x, beta, most: np.where(x * beta > most, x, np.logaddexp(0, beta * x) / beta)),
    "pow": ("pow", lambda x, n: np.power(x, int(n) if n == int(n) else n)),
    "where": ("choice", lambda c, x, y: np.asarray(np.where(c != 0, x, y))),
}
ARGUMENTS = {"where": 3, "arctan2": 2}
REDUCTIONS: dict[str, Callable[..., Array]] = {  # "place": entry k of the entries in order
    "max": lambda x: np.max(x, axis=1),
    "prod": lambda x: np.prod(x, axis=1),
    "place": lambda x, k: np.sort(x, axis=1)[:, int(k)],
}


def digest(document: dict[str, Any]) -> str:
    """The SHA-256 digest over everything in a certificate but the digest."""
    rest = json.dumps({**document, "digest": ""}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(rest.encode()).hexdigest()


def read(path: str | Path) -> dict[str, Any]:
    """A certificate from its file; raises one of `UNREADABLE` where there is none."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key stands twice in one object")
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


Term = int  # the number of a term, negative for its opposite; 0 is the number zero
Form = dict[tuple[Term, ...], tuple[float, float]]  # by product of terms: a coefficient, and the sizes added up to it


class _Terms:
    """The terms that were met: entries that are equal for every input have the same number."""

    dtype: Any = np.int64

    def __init__(self, rounded: bool = False) -> None:
        self.rounded = rounded
        self.known: dict[Hashable, Term] = {}
        self.rows: dict[int, list[tuple[Array, Term]]] = {}

    def number(self, *key: Hashable) -> Term:
        return self.known.setdefault(key, len(self.known) + 1)

    def constant(self, value: float) -> Any:
        _hold(not math.isnan(value), "a constant is NaN")
        return int(np.sign(value)) * self.number("constant", abs(value)) if value else 0

    def item(self, term: Term) -> Any:
        return term

    def name(self, item: Any) -> Term:
        return int(item)

    def function(self, name: str, parameters: list[float], rows: Array) -> list[Any]:
        """A function of each row of arguments."""
        named = [tuple(map(self.name, row)) for row in rows.tolist()]
        known = {row: self.item(self.apply(name, parameters, row)) for row in dict.fromkeys(named)}
        return [known[row] for row in named]

    def apply(self, name: str, parameters: list[float], x: tuple[Term, ...]) -> Term:
        """A function of terms: of the ways to write it that its symmetries allow, always the same one."""
        flipped, last = tuple(-term for term in x), parameters[-1] if parameters else 0.0
        if name == "prod":
            sign = 0 if 0 in x else -1 if sum(term < 0 for term in x) % 2 else 1
            x = tuple(sorted(abs(term) for term in x if abs(term) != self.number("constant", 1.0)))
            return sign * (x[0] if len(x) == 1 else self.number("prod", x) if x else self.number("constant", 1.0))
        if name == "max":
            x = tuple(sorted(set(x)))
            return x[0] if len(x) == 1 else self.number("max", x)
        if name == "place":
            ways = [(tuple(sorted(x)), last, 1), (tuple(sorted(flipped)), len(x) - 1 - last, -1)]
        else:
            kind = FUNCTIONS[name][0]
            if kind == "pow":
                kind = "none" if last % 1 else "odd" if last % 2 else "even"
            singular = name in ("arctan2", "reciprocal") or last < 0
            _hold(0 not in x or not singular, "at zero its sign may matter")
            if (kind == "odd" and x == (0,)) or (kind == "choice" and x[1] == x[2]):
                return x[-1]
            ways = [(x, 0.0, 1)]
            if kind in ("odd", "even"):
                ways.append((flipped, 0.0, 1 if kind == "even" else -1))
            elif kind == "choice":
                ways.append(((x[0], *flipped[1:]), 0.0, -1))
        arguments, place, sign = max(ways)
        return sign * self.number(name, tuple(parameters[:-1] if name == "place" else parameters), place, arguments)

    def linear(self, x: Array, weight: Array, bias: Array, at_x: bool) -> Array:
        """W u + b of rows u of terms."""
        order = np.argsort(np.abs(x), axis=1, kind="stable")
        x = np.take_along_axis(x, order, 1)
        ids, signs = np.abs(x), np.sign(x)
        again = np.hstack([np.zeros((len(x), 1), dtype=bool), ids[:, 1:] == ids[:, :-1]])
        alike: dict[bytes, list[int]] = {}  # rows whose terms are sorted alike
        for row, pattern in enumerate(np.hstack([order, signs, again])):
            alike.setdefault(pattern.tobytes(), []).append(row)
        result = np.zeros((len(x), len(weight)), dtype=np.int64)
        for rows in alike.values():
            W, columns = weight[:, order[rows[0]]] * signs[rows[0]], np.flatnonzero(~again[rows[0]])
            if again[rows[0]].any():
                # sums of the weights of one term, as floats and what these lack
                parts = [part.tolist() for part in np.split(W, columns[1:], axis=1)]
                W = np.array([[math.fsum(row) for row in part] for part in parts])
                rest = np.array(
                    [[math.fsum([*r, -t]) for r, t in zip(*p, strict=True)] for p in zip(parts, W, strict=True)]
                )
                left = [
                    math.fsum([*r, -t, -u])
                    for p in zip(parts, W, rest, strict=True)
                    for r, t, u in zip(*p, strict=True)
                ]
                _hold(np.array(left) == 0, "a sum of weights that two floats do not hold")
                W, rest = W.T, rest.T
                W, columns = np.hstack([W, rest]), np.hstack([columns, columns])
            else:
                W = W[:, columns]
            kept = ids[rows[0]][columns] != 0
            result[rows] = self._units(ids[rows][:, columns[kept]], W[:, kept], bias, at_x)
        return result

    def _units(self, ids: Array, W: Array, b: Array, at_x: bool) -> Array:
        whole = np.hstack([W, b[:, None]])
        lead = np.where(whole[np.arange(len(W)), np.argmax(whole != 0, axis=1)] < 0, -1, 1)
        W, b, result = W * lead[:, None] + 0.0, b * lead + 0.0, np.zeros((len(ids), len(W)), dtype=np.int64)
        rows: dict[bytes, tuple[Array, list[Term]]] = {}
        for unit, used in enumerate(W != 0):  # what a weight of zero multiplies does not matter
            if used.tobytes() not in rows:
                rows[used.tobytes()] = ids[:, used], [self.number("row", row.tobytes()) for row in ids[:, used]]
            (chosen, labels), weights = rows[used.tobytes()], W[unit, used]
            if not len(weights):
                result[:, unit] = self.constant(float(b[unit]))
            elif b[unit] == 0 and len(weights) == 1 == weights[0]:
                result[:, unit] = chosen[:, 0]
            else:
                code = self._code(np.append(weights, b[unit]), at_x)
                result[:, unit] = [self.number("linear", label, code) for label in labels]
        return result * lead

    def _code(self, row: Array, at_x: bool) -> Term:
        """The number of a row of weights; of rounded weights at L x that of a row at x, if one is as near."""
        key = ("weights", row.tobytes())
        if self.rounded and key not in self.known:
            for other, code in () if at_x else self.rows.get(len(row), ()):
                if abs(row[0] - other[0]) <= 1e-6 * abs(row[0]):  # else no ulps need to be counted
                    larger = np.maximum(np.abs(row), np.abs(other)).astype(np.float32)
                    if (np.abs(row - other) <= ULPS * np.spacing(larger)).all():
                        return code
            self.rows.setdefault(len(row), []).extend([(row, self.number(*key))] if at_x else [])
        return self.number(*key)

    def equal(self, a: Any, b: Any) -> bool:
        return bool(a == b)


class _Forms(_Terms):
    """Values as polynomials in terms, where matrices move entries."""

    dtype = object

    def __init__(self) -> None:
        super().__init__()
        self.steps = 1
        self.named: list[tuple[float, Term, Form]] = []

    def constant(self, value: float) -> Any:
        term = super().constant(value)
        return {(): (value, abs(value))} if value and math.isfinite(value) else self.item(term)

    def item(self, term: Term) -> Any:
        return {(abs(term),): (1.0 if term > 0 else -1.0, 1.0)} if term else {}

    def name(self, item: Any) -> Term:
        """The number of a polynomial; of one that was met before, or its opposite, the same."""
        if not item:
            return 0
        (terms, (number, size)), *rest = item.items()
        if not rest and not terms:
            return int(super().constant(number))
        if not rest and len(terms) == 1 and abs(abs(number) - 1) <= self.slack(size):
            return terms[0] if number > 0 else -terms[0]
        # its value at a point, by which those that may be equal are chosen
        place = sum(number * math.prod(math.sin(term * term) for term in terms) for terms, (number, _) in item.items())
        near, sign = 1e-9 * sum(size for _, size in item.values()), 1 if place > 0 else -1
        upright = self.added([sign], [item])
        for other, term, form in self.named:
            if abs(other - abs(place)) <= near and self.equal(form, upright):
                return sign * term
        self.named.append((abs(place), self.number("form", len(self.named)), upright))
        return sign * self.named[-1][1]

    def slack(self, size: float) -> float:
        """How far a coefficient may be off: every product and sum so far rounds by half a unit, and as much again."""
        if not size < math.inf:
            raise RejectedError("a coefficient overflows")
        return self.steps * 2.0**-52 * size

    def added(self, weights: Iterable[float], forms: Iterable[Form]) -> Form:
        total: Form = {}
        for weight, form in zip(weights, forms, strict=True):
            for terms, (number, size) in form.items() if weight else ():
                before, added = total.get(terms, (0.0, 0.0))
                total[terms] = before + weight * number, added + abs(weight) * size
        return {terms: pair for terms, pair in total.items() if abs(pair[0]) > self.slack(pair[1])}

    def equal(self, a: Any, b: Any) -> bool:
        return not self.added((1, -1), (a, b))

    def linear(self, x: Array, weight: Array, bias: Array, at_x: bool) -> Array:
        self.steps += x.shape[1] + 1
        units = [[*row] for row in np.column_stack([weight, bias]).tolist()]
        rows = [[self.added(unit, [*row, self.constant(1.0)]) for unit in units] for row in x.tolist()]
        return np.array(rows, dtype=object).reshape(len(x), len(units))

    def function(self, name: str, parameters: list[float], rows: Array) -> list[Any]:
        return [self._product(row) for row in rows] if name == "prod" else super().function(name, parameters, rows)

    def _product(self, factors: Iterable[Form]) -> Form:
        result = self.constant(1.0)
        for form in factors:
            self.steps += 1
            pairs = [(s, t, result[s], form[t]) for s in result for t in form]
            parts = [{tuple(sorted(s + t)): (a * b, c * d)} for s, t, (a, c), (b, d) in pairs]
            result = self.added([1.0] * len(parts), parts)
        return result


class Checker:
    """One certificate, with the entries of all values numbered through.

    `at` holds what all entries are, at x in its first row, at every L x in the others.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.nodes, self.generators = document["nodes"], len(document["claim"]["generators"])
        _hold([isinstance(item, dict) for item in [*self.nodes, *document["outputs"]]], "item {} is no object")
        self.weights = {name: unpack(stored) for name, stored in document["weights"].items()}
        inputs = [node["size"] for node in self.nodes if node["op"] == "input"]
        _hold(inputs == [math.prod(document["input"]["shape"])], "expected one input, of the given shape")
        _hold(len(document["outputs"]) > 0, "no output is claimed")
        tolerance = document["claim"]["tolerance"]
        _hold(tolerance in (EXACT_CLAIM, ULP_CLAIM, PRODUCT_CLAIM), "unknown tolerance")
        self.terms = _Forms() if tolerance == PRODUCT_CLAIM else _Terms(tolerance == ULP_CLAIM)
        self.at: Array = np.zeros((1 + self.generators, 0), dtype=self.terms.dtype)

    def table(self, stored: dict[str, Any], ndim: int, size: int | None = None) -> Array:
        """A table of earlier entries, or of numbers below `size`."""
        table, limit = unpack(stored), self.at.shape[1] if size is None else size
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

    def layer(self, node: dict[str, Any]) -> tuple[Array, Array]:
        """A weight and its bias."""
        weight = self.numbers(node["weight"])
        weight = weight.reshape(len(weight), -1)
        bias = np.zeros(len(weight)) if node["bias"] is None else self.numbers(node["bias"])
        _hold(bias.shape == (len(weight),), "expected one bias for each row")
        _hold(np.isfinite(weight).all(axis=1) & np.isfinite(bias), "the weights of unit {} are not finite")
        return weight, bias

    def moved(self, action: dict[str, Any], values: Array) -> Array:
        """What an action makes of values: entry i is sign[i] times entry index[i], or a matrix says it."""
        n, exact = len(values), not isinstance(self.terms, _Forms)
        if "matrix" in action:
            matrix, offset = self.numbers(action["matrix"]), self.numbers(action["offset"])
            _hold(matrix.shape == (n, n) == offset.shape * 2 and not exact, "no matrix for it")
        else:
            index, sign = self.table(action["index"], 1, n), unpack(action["sign"]).astype(np.int64)
            _hold(index.shape == (n,) == sign.shape and (np.abs(sign) == 1).all(), "no signed index of all entries")
            if exact:
                return np.asarray(sign * values[index])
            matrix, offset = np.eye(n)[index] * sign[:, None], np.zeros(n)
        return self.terms.linear(values[None], matrix, offset, False)[0]

    def node(self, node: dict[str, Any]) -> None:
        """Compute one node, and take over its entries."""
        terms, op = self.terms, node["op"]
        if op == "constant":
            rows: list[Any] = [[terms.constant(n) for n in self.numbers(node["value"]).reshape(-1).tolist()]]
            rows *= len(self.at)
        elif op == "input":
            start = np.array([terms.item(terms.number("input", n)) for n in range(node["size"])], dtype=terms.dtype)
            rows = [start, *(self.moved(action, start) for action in node["actions"])]
            _hold(len(rows) == len(self.at), "expected one action for each generator")
        elif op == "linear":
            (weight, bias), x = self.layer(node), self.table(node["x"], 2)
            _hold(weight.shape[1] == x.shape[1], "the weight does not fit its arguments")
            rows = [terms.linear(values[x], weight, bias, not run).reshape(-1) for run, values in enumerate(self.at)]
        else:
            x, name, parameters = self.table(node["x"], 2), node["function"], [*map(float, node["parameters"])]
            known = {"pointwise": FUNCTIONS, "reduce": REDUCTIONS}[op]
            _hold(
                name in known and x.shape[1] in (x.shape[1] * (op == "reduce"), ARGUMENTS.get(name, 1)), "no function"
            )
            _hold(name != "place" or 0 <= parameters[0] < x.shape[1], "no such place")
            rows = [terms.function(name, parameters, values[x]) for values in self.at]
        self.at = np.hstack([self.at, np.array([[*row] for row in rows], dtype=terms.dtype).reshape(len(rows), -1)])

    def output(self, output: dict[str, Any]) -> None:
        """Check that an output moves as claimed."""
        entries = self.table(output["entries"], 1)
        _hold(len(output["actions"]) == self.generators, "expected one action for each generator")
        for generator, action in enumerate(output["actions"]):
            pairs = zip(self.moved(action, self.at[0, entries]), self.at[generator + 1, entries], strict=True)
            fine = [self.terms.equal(wanted, given) for wanted, given in pairs]
            _hold(fine, f"generator {generator}: entry {{}} is not moved as claimed")


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
            elif node["op"] != "linear":
                x, parameters = values[unpack(node["x"])], [*map(float, node["parameters"])]
                if node["op"] == "reduce":
                    new = REDUCTIONS[node["function"]](x, *parameters)
                else:
                    new = FUNCTIONS[node["function"]][1](*x.T, *parameters).astype(np.float64)
            else:
                weight, bias = checker.layer(node)
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
