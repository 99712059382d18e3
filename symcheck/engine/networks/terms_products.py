"""Products of matrices and normalisations, on entries that are numbered terms.

A row of a product with constant weights is a sum of terms with coefficients, known whatever the order of the terms. So
layers whose units were reordered give the same terms, and a permutation written as a matrix moves entries.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.terms import Entry, NotComparedError, Terms, digest, each
from symcheck.engine.networks.terms_operators import Entries, Operation, make_block, operator

MOST_PRODUCTS = 50_000_000
"""Products of one operator up to which its sums are sorted: about a second. Beyond, their order counts."""
MOST_PAIRS = 1_000_000
"""The same for products of two factors that both depend on the input."""


@operator("mm", "bmm", "mv", "dot")
def multiply_matrices(operation: Operation, left: Any, right: Any) -> Any:
    """A product of matrices, or of two stacks of them."""
    if isinstance(left, Entries) and isinstance(right, Entries):
        return _pairs(operation, left, right)
    if isinstance(left, Entries):
        return _with_weights(operation, left.numbers, right)
    return _with_weights(operation, right.numbers, left, mirrored=True)


@operator("addmm", "baddbmm", "addmv")
def multiply_and_add(
    operation: Operation, bias: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """A product of matrices and a sum."""
    if beta != 1 or alpha != 1:
        raise NotComparedError(operation.name)
    if not isinstance(left, Entries) and not isinstance(right, Entries):
        product = operation.numbers(torch.matmul(left, right), operation.dtype)
    else:
        product = multiply_matrices(operation, left, right)
    return each(lambda p, q: operation.terms.add([p, q]), product, operation.numbers(bias, operation.dtype))


def _with_weights(operation: Operation, numbers: torch.Tensor, weights: torch.Tensor, mirrored: bool = False) -> Any:
    """Entries times constant weights, rows by columns; `mirrored`: weights times entries."""
    shape = operation.outputs[0][0]
    if weights.is_complex():
        raise NotComparedError(f"{operation.name} of complex numbers")
    # everything as a stack of (rows, k) times (k, columns), with the entries on the left
    rows = numbers if numbers.ndim > 1 else (numbers[:, None] if mirrored else numbers[None])
    matrix = weights if weights.ndim > 1 else (weights[None] if mirrored else weights[:, None])
    if mirrored:
        rows, matrix = rows.transpose(-2, -1), matrix.transpose(-2, -1)
    stacked = matrix if matrix.ndim == 3 else matrix[None]
    each_rows = rows if rows.ndim == 3 else rows[None]
    # the order of a sum counts where sorting would take too long
    ordered = math.prod(each_rows.shape) * stacked.shape[-1] > MOST_PRODUCTS
    alike = len(stacked) == 1 or stacked.stride(0) == 0
    made = []
    for k in range(len(each_rows)):
        part = 0 if alike else k
        product = Product(operation, weights, stacked[part], (mirrored, part), ordered=ordered)
        made.append(product.of(each_rows[k].numpy()))
    result = torch.from_numpy(np.stack(made))
    result = result.transpose(-2, -1) if mirrored else result
    return result.reshape(shape)


class Product:
    """Rows of entries times one constant matrix.

    Args:
        operation: the call.
        weights: the tensor that the matrix is part of; it names the matrix, with `part`.
        matrix: shape (k, columns).
        part: which part of the tensor it is.
        ordered: whether each row and column is a term of its own, whatever its sum.
    """

    def __init__(
        self, operation: Operation, weights: torch.Tensor, matrix: torch.Tensor, part: Any, *, ordered: bool
    ) -> None:
        self._terms = operation.terms
        self._whole = operation.once(("digest", part), weights, lambda _: digest(matrix)) if ordered else b""
        self._matrix: Floats = operation.once(
            ("matrix", part), weights, lambda _: np.array(matrix.detach().double().numpy())
        )
        self._known: dict[bytes, Ints] = operation.once(("rows", part), weights, lambda _: {})
        if np.isnan(self._matrix).any():
            raise NotComparedError("NaN")

    def of(self, rows: Ints) -> Ints:
        """The entries of the product, shape (rows, columns)."""
        made = []
        for row in rows:
            key = np.ascontiguousarray(row).tobytes()
            if key not in self._known:
                self._known[key] = self._row(row)
            made.append(self._known[key])
        return np.stack(made)

    def _row(self, row: Ints) -> Ints:
        if self._whole:
            columns = self._matrix.shape[1]
            start = self._terms.number(("ordered", self._whole, np.ascontiguousarray(row).tobytes()), columns)
            return np.arange(start, start + columns)
        used = np.flatnonzero(row)
        order = used[np.argsort(np.abs(row[used]), kind="stable")]
        numbers = np.abs(row[order])
        weights = self._matrix[order] * np.sign(row[order])[:, None]
        if len(numbers) > 1 and (numbers[1:] == numbers[:-1]).any():
            return np.array([self._sum(numbers, column) for column in weights.T], dtype=np.int64)
        # columns with few weights (permutations, blocks) one by one, full ones at once
        full = (weights != 0).all(axis=0) & (len(numbers) > 1)
        result = np.zeros(weights.shape[1], dtype=np.int64)
        for column in np.flatnonzero(~full):
            kept = np.flatnonzero(weights[:, column])
            result[column] = self._sum(numbers[kept], weights[kept, column])
        if full.any():
            label = numbers.tobytes()
            signs = np.where(weights[0] < 0, -1, 1)
            columns = np.ascontiguousarray((weights * signs).T)
            for column in np.flatnonzero(full):
                result[column] = signs[column] * self._term(label, numbers, columns[column])
        return result

    def _sum(self, numbers: Ints, weights: Floats) -> Entry:
        """A sum of terms, some perhaps alike, with coefficients."""
        terms = self._terms
        kept = np.flatnonzero(weights)
        numbers, weights = numbers[kept], weights[kept]
        if len(numbers) == 0:
            return 0
        if len(numbers) == 1 or (np.abs(weights) == 1.0).all():
            return terms.add(
                int(n) * (1 if w > 0 else -1) if abs(w) == 1.0 else terms.multiply([terms.constant(float(w)), int(n)])
                for n, w in zip(numbers, weights, strict=True)
            )
        # of terms that are alike, coefficients in order; of the sum and its opposite always the same one
        straight, turned = (np.lexsort((sign * weights, numbers)) for sign in (1, -1))
        ours, theirs = weights[straight], -weights[turned]
        sign = 1 if tuple(ours) >= tuple(theirs) else -1
        chosen = ours if sign > 0 else theirs
        return sign * self._term(numbers[straight].tobytes(), numbers[straight], chosen)

    def _term(self, label: bytes, numbers: Ints, weights: Floats) -> int:
        if (np.abs(weights) == 1.0).all():
            return self._terms.add((numbers * weights.astype(np.int64)).tolist())
        return self._terms.number(("row", self._terms.number(("terms", label)), weights.tobytes()))


def _pairs(operation: Operation, left: Entries, right: Entries) -> Any:
    """Sums of products of two entries."""
    shape = operation.outputs[0][0]
    a = left.numbers if left.numbers.ndim > 1 else left.numbers[None]
    b = right.numbers if right.numbers.ndim > 1 else right.numbers[:, None]
    if math.prod(a.shape) * b.shape[-1] > MOST_PAIRS:
        return make_block(operation, left, right)
    terms: Terms = operation.terms
    a, b = (a if a.ndim == 3 else a[None]), (b if b.ndim == 3 else b[None])
    made = [
        [
            [terms.add(terms.multiply(pair) for pair in zip(row, column, strict=True)) for column in rights]
            for row in lefts
        ]
        for lefts, rights in zip(a.tolist(), b.transpose(-2, -1).tolist(), strict=True)
    ]
    return torch.tensor(made, dtype=torch.int64).reshape(shape)


@operator("native_layer_norm")
def normalise_layer(operation: Operation, x: Entries, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Each entry against the mean and spread of all, then scaled and shifted."""
    count = math.prod(shape)
    return _normalise(operation, "layer", x.numbers.reshape(-1, count), weight, bias, eps, x.numbers.shape, len(shape))


@operator("native_group_norm")
def normalise_groups(
    operation: Operation, x: Entries, weight: Any, bias: Any, n: int, c: int, places: int, groups: int, eps: float
) -> Any:
    """Each entry against those of its group of channels, then scaled and shifted by channel."""
    rows = x.numbers.reshape(n * groups, -1)
    spread = [1, c] + [1] * (x.numbers.ndim - 2)
    weight, bias = (None if item is None else item.reshape(spread) for item in (weight, bias))
    return _normalise(operation, "group", rows, weight, bias, eps, x.numbers.shape, 0)


def _normalise(
    operation: Operation, name: str, rows: torch.Tensor, weight: Any, bias: Any, eps: float, shape: Any, last: int
) -> Any:
    terms = operation.terms
    made = []
    for row in rows.tolist():
        whole = terms.number(("multiset", tuple(sorted(row))))
        made.append([terms.number((name, float(eps), whole, entry)) for entry in row])
    result = torch.tensor(made, dtype=torch.int64).reshape(shape)
    if weight is not None:
        result = each(lambda p, q: terms.multiply([p, q]), result, operation.numbers(weight))
    if bias is not None:
        result = each(lambda p, q: terms.add([p, q]), result, operation.numbers(bias))
    return [result, *[None] * (len(operation.outputs) - 1)]


@operator("native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def normalise_batch(operation: Operation, x: Entries, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    """Each entry by the numbers of its channel; never by the statistics of a batch."""
    training = operation.name != "_native_batch_norm_legit_no_training" and bool(rest[0])
    if training or isinstance(mean, Entries) or isinstance(var, Entries):
        raise NotComparedError(operation.name)
    terms, eps = operation.terms, float(rest[-1] if isinstance(rest[-1], float) else 0.0)
    given = [torch.zeros_like(mean) if item is None else item for item in (weight, bias, mean, var)]
    if weight is None:
        given[0] = torch.ones_like(mean)
    spread = [1, -1] + [1] * (x.numbers.ndim - 2)
    columns = [operation.numbers(item.reshape(spread)) for item in given]
    rest_label = tuple(item if isinstance(item, int | float) else str(item) for item in rest)
    label = ("batch", eps, rest_label)
    result = each(lambda *entries: terms.number((label, entries)), x.numbers, *columns)
    return [result, *[None] * (len(operation.outputs) - 1)]
