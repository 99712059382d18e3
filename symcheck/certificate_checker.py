"""Check a certificate of equivariance: this one file, NumPy and the standard library.

A certificate holds a network as a list of nodes with its weights, a claim f(L x) = K f(x) for every generator, and what
each generator does to the value of each node: entry i of the value at L x is sign[i] times entry index[i] of the value
at x. Of each node one law is computed again from its operator, its parameters and the weights. If all hold, the claim
holds for every input. What is compared is what is stored: a float is a rational number, and sums of weights are added
as such. That the nodes compute what a network computes is shown by running both: `evaluate` runs the nodes.

Run it as `python certificate_checker.py FILE [--weights FILE.npz]`. Exit codes: 0 accepted, 1 rejected, 2 unreadable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = "symcheck-certificate/1"
Arr = np.ndarray[Any, Any]
LARGEST = 1 << 31
"""Bytes that one array may take when it is unpacked."""
ULPS = 4
"""Float32 units in the last place by which weights may differ where the claim says that they were rounded."""
ULP_CLAIM = f"weights within {ULPS} float32 ulps of the larger"
EXACT_CLAIM = "weights equal"


class UnreadableError(Exception):
    """The file is no certificate."""


class RejectedError(Exception):
    """A certificate that does not hold; the message names the step."""


def _vector(function: Callable[[float], float]) -> Callable[[Arr], Arr]:
    return np.vectorize(function, otypes=[float])


_erf = _vector(math.erf)


def _gelu(x: Arr, tanh: float) -> Arr:
    inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) if tanh else _erf(x / math.sqrt(2))
    return 0.5 * x * (1 + inner)


def _sigmoid(x: Arr) -> Arr:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _power(x: Arr, exponent: float) -> Arr:
    return np.power(x, int(exponent) if exponent == int(exponent) else exponent)


def _elu(x: Arr, alpha: float, scale: float, inner: float) -> Arr:
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(inner * np.minimum(x, 0)))


def _softplus(x: Arr, beta: float, threshold: float) -> Arr:
    return np.where(x * beta > threshold, x, np.logaddexp(0, beta * x) / beta)


# How signs pass: "odd" f(-u) = -f(u), "even" f(-u) = f(u), "same" f(-u, -v) = -f(u, v), "product" signs multiply,
# "choice" as "same" in all but the first argument, "none" no signs at all.
FUNCTIONS: dict[str, tuple[str, Callable[..., Arr]]] = {
    **{name: ("odd", getattr(np, name)) for name in ("tanh", "sin", "tan", "sinh", "sign", "trunc")},
    **{name: ("odd", getattr(np, "arc" + name[1:])) for name in ("asin", "atan", "asinh", "atanh")},
    "neg": ("odd", np.negative),
    "erf": ("odd", _erf),
    "reciprocal": ("odd", lambda x: 1 / x),
    "round": ("odd", np.rint),
    "hardshrink": ("odd", lambda x, bound: np.where(np.abs(x) > bound, x, 0.0)),
    "softshrink": ("odd", lambda x, bound: np.sign(x) * np.maximum(np.abs(x) - bound, 0)),
    **{name: ("even", getattr(np, name)) for name in ("cos", "cosh")},
    "abs": ("even", np.abs),
    **{name: ("none", getattr(np, name)) for name in ("exp", "log", "sqrt", "floor", "ceil", "log1p", "expm1", "log2")},
    "relu": ("none", lambda x: np.maximum(x, 0)),
    "sigmoid": ("none", _sigmoid),
    "rsqrt": ("none", lambda x: 1 / np.sqrt(x)),
    "silu": ("none", lambda x: x * _sigmoid(x)),
    "acos": ("none", np.arccos),
    "erfc": ("none", lambda x: 1 - _erf(x)),
    "log_sigmoid": ("none", lambda x: -np.logaddexp(0, -x)),
    "hardsigmoid": ("none", lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": ("none", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "mish": ("none", lambda x: x * np.tanh(np.logaddexp(0, x))),
    "gelu": ("none", _gelu),
    "leaky_relu": ("none", lambda x, slope: np.where(x > 0, x, slope * x)),
    "elu": ("none", _elu),
    "softplus": ("none", _softplus),
    "threshold": ("none", lambda x, bound, value: np.where(x > bound, x, value)),
    "clamp": ("clamp", np.clip),
    "pow": ("pow", _power),
    "add": ("same", np.add),
    "sub": ("same", np.subtract),
    "mul": ("product", np.multiply),
    "div": ("product", np.divide),
    "maximum": ("none", np.maximum),
    "minimum": ("none", np.minimum),
    "power": ("none", np.power),
    "atan2": ("none", np.arctan2),
    "where": ("choice", lambda c, x, y: np.where(c != 0, x, y)),
    **{name: ("none", getattr(np, name)) for name in ("greater", "less", "greater_equal", "less_equal", "equal")},
    **{name: ("none", getattr(np, name)) for name in ("not_equal", "logical_and", "logical_or", "logical_not")},
}
REDUCTIONS: dict[str, Callable[..., Arr]] = {"max": np.max, "min": np.min, "prod": np.prod}


def digest(document: dict[str, Any]) -> str:
    """The SHA-256 digest over everything in a certificate but the digest."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read(path: str) -> dict[str, Any]:
    """A certificate from its file.

    Raises:
        UnreadableError: there is none.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}: expected a certificate as JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UnreadableError(f'{path}: expected an object with "schema": "{SCHEMA}"')
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def unpack(stored: dict[str, Any]) -> Arr:
    """An array from its dtype, shape and base64."""
    dtype, shape = np.dtype(stored["dtype"]), tuple(stored["shape"])
    if dtype.kind not in "fiub" or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"no array of dtype {dtype} and shape {shape}")
    size = math.prod(shape) * dtype.itemsize
    data = base64.b64decode(stored["data"], validate=True)
    if stored.get("packed"):
        if size > LARGEST:
            raise ValueError("too large")
        data = zlib.decompressobj().decompress(data, size + 1)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes for dtype {dtype} and shape {shape}")
    return np.frombuffer(data, dtype).reshape(shape)


class Checker:
    """One certificate, with the entries of all values numbered through.

    Attributes:
        image, sign: what each generator does: entry e of the value at L x is sign[e] times entry image[e] of that at x;
            image is -1 where a matrix says it. Shape (generators, entries).
        number: what an entry is where it is a constant, else NaN. Shape (entries,).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.generators = len(document["claim"]["generators"])
        self.weights = {name: unpack(stored) for name, stored in document["weights"].items()}
        tolerance = document["claim"]["tolerance"]
        if tolerance not in (EXACT_CLAIM, ULP_CLAIM):
            raise ValueError(f"unknown tolerance {tolerance!r}")
        self.rounded = tolerance == ULP_CLAIM
        self.image = np.zeros((self.generators, 0), dtype=np.int64)
        self.sign = np.zeros((self.generators, 0), dtype=np.int64)
        self.number = np.zeros(0)
        self.constant = np.zeros(0, dtype=bool)
        self.matrices: dict[tuple[int, int], tuple[Arr, Arr]] = {}
        self.owner = np.zeros(0, dtype=np.int64)

    # Reading

    def table(self, stored: dict[str, Any], size: int | None = None) -> Arr:
        """An array of numbers of earlier entries, or of entries below `size`."""
        table = unpack(stored)
        limit = len(self.number) if size is None else size
        if table.dtype.kind not in "iu" or ((table < 0) | (table >= limit)).any():
            raise ValueError("an index points at nothing")
        return table.astype(np.int64)

    def numbers(self, stored: dict[str, Any]) -> Arr:
        """Weights: a parameter, entries of one (~i: minus entry i; one past the end: 0), or numbers made from some."""
        if "data" in stored:
            return unpack(stored).astype(np.float64)
        numbers = self.weights[stored["name"]].astype(np.float64)
        if "entries" not in stored:
            return numbers
        entries = unpack(stored["entries"]).astype(np.int64)
        flat = np.append(numbers.reshape(-1), 0.0)
        taken: Arr = np.where(entries < 0, -flat[np.where(entries < 0, ~entries, 0)], flat[np.maximum(entries, 0)])
        return taken

    def action(self, stored: dict[str, Any], size: int) -> tuple[Arr, Arr]:
        """Index and sign of an action on `size` entries."""
        index, sign = self.table(stored["index"], size), unpack(stored["sign"]).astype(np.int64)
        if index.shape != (size,) or sign.shape != (size,) or (np.abs(sign) != 1).any():
            raise ValueError(f"no signed index of {size} entries")
        return index, sign

    # The laws

    def check(self) -> None:
        """Check every node and every output.

        Raises:
            RejectedError: naming the first step that does not hold.
        """
        for place, node in enumerate(self.document["nodes"]):
            step = f"node {place} ({node.get('op')} {node.get('function', '')} {node.get('name', '')}".rstrip() + ")"
            _named(step, lambda node=node, place=place: self._node(place, node))  # type: ignore[misc]
        if not self.document["outputs"]:
            raise RejectedError("outputs: none is claimed")
        for output in self.document["outputs"]:
            _named(f"output {output.get('path')!r}", lambda output=output: self._output(output))  # type: ignore[misc]

    def _node(self, place: int, node: dict[str, Any]) -> None:
        op = node["op"]
        if op == "constant":
            numbers = self.numbers(node["value"]).reshape(-1)
            here = len(self.number) + np.arange(len(numbers))
            self._append(place, [(here, np.ones_like(here))] * self.generators, numbers)
            return
        size = {"input": self._size, "pointwise": self._pointwise_size}.get(op, self._rows_size)(node)
        if len(node["actions"]) != self.generators:
            raise ValueError("expected one action for each generator")
        actions = []
        for generator, stored in enumerate(node["actions"]):
            if "matrix" in stored:
                self._matrix(node, generator, stored, size)
                actions.append((np.full(size, -1), np.ones(size, dtype=np.int64)))
                continue
            index, sign = self.action(stored, size)
            law = {"input": self._input, "pointwise": self._pointwise, "linear": self._linear, "reduce": self._reduce}
            law[op](node, generator, index, sign)
            actions.append((index + len(self.number), sign))
        self._append(place, actions, np.full(size, np.nan), constant=False)

    def _append(self, place: int, actions: list[tuple[Arr, Arr]], numbers: Arr, *, constant: bool = True) -> None:
        images, signs = (np.array([a[i] for a in actions], dtype=np.int64) for i in (0, 1))
        self.image = np.concatenate([self.image, images], axis=1)
        self.sign = np.concatenate([self.sign, signs], axis=1)
        self.number = np.concatenate([self.number, numbers])
        self.constant = np.concatenate([self.constant, np.full(len(numbers), constant)])
        self.owner = np.concatenate([self.owner, np.full(len(numbers), place)])

    def _size(self, node: dict[str, Any]) -> int:
        return int(node["size"])

    def _pointwise_size(self, node: dict[str, Any]) -> int:
        sizes = {self.table(x).shape for x in node["x"]}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise ValueError("arguments of different sizes")
        return int(next(iter(sizes))[0])

    def _rows_size(self, node: dict[str, Any]) -> int:
        rows = len(self.table(node["x"]))
        return rows if node["op"] == "reduce" else rows * len(self._units(node)[0])

    def _input(self, node: dict[str, Any], generator: int, index: Arr, sign: Arr) -> None:
        if len(np.unique(index)) != len(index):
            raise RejectedError("the action on the input is no permutation")

    def _moved(self, x: Arr, index: Arr, generator: int) -> tuple[Arr, Arr]:
        """Signs u with x_i at L x equal to u_i times x_index[i] at x, and where both are the constant 0."""
        target = x[index]
        both = self.constant[x] & self.constant[target]
        a, b = self.number[x], self.number[target]
        alike = np.where(both, np.abs(a) == np.abs(b), self.image[generator][x] == target)
        if not alike.all():
            raise RejectedError(f"generator {generator}: the argument of entry {np.argmin(alike)} moves elsewhere")
        # zeros of both signs are told apart: functions may
        signs = np.where(both, np.where(np.signbit(a) == np.signbit(b), 1, -1), self.sign[generator][x])
        return signs, both & (a == 0)

    def _pointwise(self, node: dict[str, Any], generator: int, index: Arr, sign: Arr) -> None:
        name, parameters = node["function"], [float(number) for number in node["parameters"]]
        kind = FUNCTIONS[name][0]
        if kind == "clamp":
            kind = "odd" if parameters[0] == -parameters[1] else "none"
        if kind == "pow":
            whole = parameters[0] == int(parameters[0])
            kind = "none" if not whole else "odd" if int(parameters[0]) % 2 else "even"
        moved = [self._moved(self.table(x), index, generator) for x in node["x"]]
        wanted = np.ones_like(sign)
        if kind in ("same", "choice", "odd"):
            first = moved[:1] if kind == "choice" else []
            good = [(signs == 1) for signs, _ in first]
            good += [(signs == sign) | (zero & (kind != "odd")) for signs, zero in moved[len(first) :]]
        elif kind == "product":
            zero = np.zeros(len(sign), dtype=bool)
            for place, (signs, none) in enumerate(moved):
                wanted = wanted * signs
                zero |= none & ((place == 0) | (name != "div"))
            good = [(wanted == sign) | zero]
        else:
            good = [(signs == 1) | (kind == "even") for signs, _ in moved] + [sign == 1]
        for fine in good:
            if not fine.all():
                raise RejectedError(f"generator {generator}: {name} does not carry the sign of entry {np.argmin(fine)}")

    def _units(self, node: dict[str, Any]) -> tuple[Arr, Arr]:
        """Distinct rows of a weight (as (rows, columns)) and of its bias; rows said to be equal are compared."""
        weight = self.numbers(node["weight"])
        weight = weight.reshape(len(weight), -1)
        bias = np.zeros(len(weight)) if node["bias"] is None else self.numbers(node["bias"])
        if bias.shape != (len(weight),) or not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ValueError("expected finite weights and one bias for each row")
        if node["units"] is None:
            return weight, bias
        units = self.table(node["units"], len(weight))
        classes, first, same = np.unique(units, return_index=True, return_inverse=True)
        if not np.array_equal(classes, np.arange(len(classes))) or units.shape != bias.shape:
            raise ValueError("units are not numbered through")
        if not np.array_equal(weight, weight[first][same]) or not np.array_equal(bias, bias[first][same]):
            raise RejectedError("rows that are said to be equal differ")
        return weight[first], bias[first]

    def _row_images(self, node: dict[str, Any], generator: int, index: Arr, count: int) -> Any:
        """Where rows of arguments go: how both are sorted, their signs, which are 0, and the rows in place of them."""
        x = self.table(node["x"])
        place = index.reshape(len(x), count) // count
        if (place != place[:, :1]).any():
            raise RejectedError(f"generator {generator}: entries of one row go to several")
        # equal constants are one entry
        constants = np.flatnonzero(self.constant)
        _, first, same = np.unique(self.number[constants], return_index=True, return_inverse=True)
        canonical = np.arange(len(self.number))
        canonical[constants] = constants[first][same]
        here, there = canonical[self.image[generator][x]], canonical[x[place[:, 0]]]
        if (self.image[generator][x] < 0).any():
            raise RejectedError(f"generator {generator}: a matrix moves what is followed entry by entry")
        orders = np.argsort(here, axis=1, kind="stable"), np.argsort(there, axis=1, kind="stable")
        a, b = np.take_along_axis(here, orders[0], 1), np.take_along_axis(there, orders[1], 1)
        if (a != b).any():
            raise RejectedError(f"generator {generator}: row {np.argmax((a != b).any(axis=1))} goes to no row")
        signs = np.take_along_axis(self.sign[generator][x], orders[0], 1)
        zero = self.constant[a] & (self.number[a] == 0)
        again = np.concatenate([np.zeros((len(a), 1), dtype=bool), a[:, 1:] == a[:, :-1]], axis=1)
        return orders[0], orders[1], signs, zero, again

    def _linear(self, node: dict[str, Any], generator: int, index: Arr, sign: Arr) -> None:
        weight, bias = self._units(node)
        count = len(weight)
        if (self.image[generator][self.table(node["x"])] < 0).any():
            matrix = np.zeros((len(index), len(index)))
            matrix[np.arange(len(index)), index] = sign
            return self._mixed(node, generator, matrix, np.zeros(len(index)))
        parts = self._row_images(node, generator, index, count)
        if parts[0].shape[1] != weight.shape[1]:
            raise ValueError("the weight does not fit its arguments")
        units, signs = index.reshape(-1, count) % count, sign.reshape(-1, count)
        patterns = {tuple(part[row].tobytes() for part in (*parts, units, signs)): row for row in range(len(units))}
        for row in patterns.values():
            here, there, flips, zero, again = (part[row] for part in parts)
            t, image = signs[row][:, None], units[row]
            left = np.where(zero, 0.0, weight[:, here] * flips)
            right = np.where(zero, 0.0, weight[image][:, there] * t)
            if again.any():
                left, right = (_summed(side, np.flatnonzero(~again)) for side in (left, right))
            fine = self._equal(left, right).all(axis=1) & self._equal(bias, t[:, 0] * bias[image])
            if not fine.all():
                raise RejectedError(f"generator {generator}: the weights of unit {np.argmin(fine)} are not its image's")

    def _equal(self, a: Arr, b: Arr) -> Arr:
        if not self.rounded:
            return np.asarray(a == b, dtype=bool)
        a, b = a.astype(np.float64), b.astype(np.float64)
        unit = np.spacing(np.maximum(np.abs(a), np.abs(b)).astype(np.float32)).astype(np.float64)
        return np.asarray(np.abs(a - b) <= ULPS * unit, dtype=bool)

    def _reduce(self, node: dict[str, Any], generator: int, index: Arr, sign: Arr) -> None:
        _ = REDUCTIONS[node["function"]]
        _, _, signs, _, _ = self._row_images(node, generator, index, 1)
        if (signs != 1).any() or (sign != 1).any():
            raise RejectedError(f"generator {generator}: {node['function']} takes no signs")

    # Matrices: what depends linearly on an input that no permutation moves

    def _matrix(self, node: dict[str, Any], generator: int, stored: dict[str, Any], size: int) -> None:
        matrix, offset = self.numbers(stored["matrix"]), self.numbers(stored["offset"])
        if matrix.shape != (size, size) or offset.shape != (size,) or not np.isfinite(matrix).all():
            raise ValueError(f"expected a matrix of {size} rows and an offset")
        if node["op"] == "linear":
            self._mixed(node, generator, matrix, offset)
        elif node["op"] != "input":
            raise RejectedError("a matrix moves the argument of a function")
        self.matrices[generator, len(self.number)] = matrix, offset

    def _mixed(self, node: dict[str, Any], generator: int, matrix: Arr, offset: Arr) -> None:
        """A M = K A, up to the rounding of these products in float64: A the weights on the entries of one value."""
        (weight, bias), x = self._units(node), self.table(node["x"])
        fixed = self.constant[x]
        entries, of_value, of_number = self._moved_entries(np.unique(x[~fixed]), generator)
        local = np.searchsorted(entries, np.where(fixed, entries[0], x))
        A, b = np.zeros((len(x), len(weight), len(of_number))), np.tile(bias, (len(x), 1))
        for column in range(x.shape[1]):
            part = np.where(fixed[:, column, None], 0.0, weight[None, :, column])
            A[np.arange(len(x)), :, local[:, column]] += part
            b += np.where(fixed[:, column, None], self.number[x[:, column]][:, None] * weight[None, :, column], 0.0)
        A, b = A.reshape(-1, len(of_number)), b.reshape(-1)
        left = np.column_stack([A @ of_value, A @ of_number + b])
        right = np.column_stack([matrix @ A, matrix @ b + offset])
        size = np.abs(A) @ np.abs(of_value) + np.abs(matrix) @ np.abs(A)
        sums = np.abs(A) @ np.abs(of_number) + np.abs(b) + np.abs(matrix) @ np.abs(b) + np.abs(offset)
        slack = 4 * (len(b) + len(of_number) + 2) * 2.0**-52 * np.column_stack([size, sums])
        fine = (np.abs(left - right) <= slack).all(axis=1)
        if not fine.all():
            raise RejectedError(f"generator {generator}: unit {np.argmin(fine)} is not moved as its matrix says")

    def _moved_entries(self, entries: Arr, generator: int) -> tuple[Arr, Arr, Arr]:
        """Entries that move among each other, the matrix that moves them, and its offset."""
        for (g, start), (matrix, offset) in self.matrices.items():
            if g == generator and (entries >= start).all() and (entries < start + len(offset)).all():
                return start + np.arange(len(offset)), matrix, offset
        image = self.image[generator][entries]
        if not np.isin(image, entries).all():
            raise RejectedError(f"generator {generator}: arguments do not move among each other")
        matrix = np.zeros((len(entries), len(entries)))
        matrix[np.arange(len(entries)), np.searchsorted(entries, image)] = self.sign[generator][entries]
        return entries, matrix, np.zeros(len(entries))

    def _output(self, output: dict[str, Any]) -> None:
        entries = self.table(output["entries"])
        if len(output["actions"]) != self.generators:
            raise ValueError("expected one action for each generator")
        for generator, stored in enumerate(output["actions"]):
            if "matrix" in stored:
                whole, matrix, offset = self._moved_entries(entries, generator)
                local = entries - whole[0]
                claimed = self.numbers(stored["matrix"]), self.numbers(stored["offset"])
                same = np.array_equal(matrix[np.ix_(local, local)], claimed[0]) and np.array_equal(offset[local], claimed[1])
                if not same or len(np.unique(local)) != len(offset):
                    raise RejectedError(f"generator {generator}: another matrix than is claimed")
                continue
            index, sign = self.action(stored, len(entries))
            signs, zero = self._moved(entries, index, generator)
            fine = (signs == sign) | zero
            if not fine.all():
                raise RejectedError(f"generator {generator}: entry {np.argmin(fine)} has another sign than is claimed")


def _named(step: str, law: Callable[[], None]) -> None:
    try:
        law()
    except RejectedError as error:
        raise RejectedError(f"{step}: {error}") from error
    except Exception as error:  # what is not as it should be is no proof, whatever breaks
        raise RejectedError(f"{step}: malformed: {type(error).__name__}: {error}") from error


def _summed(rows: Arr, starts: Arr) -> Arr:
    """Sums of neighbours, as rational numbers."""
    exact = np.array([[Fraction(number) for number in row] for row in rows.tolist()], dtype=object)
    return np.asarray(np.add.reduceat(exact, starts, axis=1))


def evaluate(document: dict[str, Any], x: Arr) -> dict[str, Arr]:
    """What the nodes of a certificate compute at one input; flat outputs by their paths."""
    checker, values = Checker(document), np.zeros(0)
    with np.errstate(all="ignore"):
        for node in document["nodes"]:
            if node["op"] == "constant":
                new = checker.numbers(node["value"]).reshape(-1)
            elif node["op"] == "input":
                new = np.asarray(x, dtype=np.float64).reshape(-1)
            elif node["op"] == "pointwise":
                function = FUNCTIONS[node["function"]][1]
                given = [values[unpack(table)] for table in node["x"]]
                new = function(*given, *map(float, node["parameters"])).astype(np.float64)
            elif node["op"] == "reduce":
                new = REDUCTIONS[node["function"]](values[unpack(node["x"])], axis=1)
            else:
                weight, bias = checker._units(node)
                new = (values[unpack(node["x"])] @ weight.T + bias).reshape(-1)
            values = np.concatenate([values, new])
    return {output["path"]: values[unpack(output["entries"])] for output in document["outputs"]}


def check(document: dict[str, Any], weights: dict[str, Arr] | None = None) -> None:
    """Check a certificate, and that its weights are given ones.

    Raises:
        RejectedError: naming the first step that does not hold.
    """
    if document.get("digest") != digest(document):
        raise RejectedError("digest: the file is not as it was written")
    made: list[Checker] = []
    _named("head", lambda: made.append(Checker(document)))
    for name, stored in made[0].weights.items():
        given = stored if weights is None else weights.get(name)
        if given is None or given.shape != stored.shape or not np.array_equal(given, stored, equal_nan=True):
            raise RejectedError(f"weights: {name} differs from the given one")
    made[0].check()


def main(arguments: list[str]) -> int:
    """Check the file that the command line names."""
    try:
        document = read(arguments[0])
        weights = dict(np.load(arguments[2])) if arguments[1:2] == ["--weights"] else None
        check(document, weights)
    except (UnreadableError, OSError, IndexError) as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    except RejectedError as error:
        print(f"rejected: {error}")
        return 1
    claim = document["claim"]
    print(f"accepted: {claim.get('statement')} ({claim.get('symmetry')}), {claim['tolerance']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
