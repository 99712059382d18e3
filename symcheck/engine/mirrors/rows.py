"""The rows of a mirror function, read from its images and compared with the model.

A column is tested on random batches. The content of a wrong column is read afterwards: a batch of the numbers 1, 2, ...
reveals a signed permutation, and basis vectors reveal any other linear map. Anything else is reported as nonlinear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.mujoco.layouts.laid_out import LaidGroup

Images = Callable[[Floats], Floats]
"""One block of a function on one group, (rows, width) to (rows, width)."""
_WIDEST_BASIS = 2_048  # maximum number of columns; basis vectors of more would take minutes
_CHUNK = 256
_LARGEST_RAMP = 2**22  # integers up to 2^24 are exact in float32, and offsets need two bits


@dataclass(frozen=True)
class Row:
    """The content of one column.

    Attributes:
        terms: (column, coefficient) pairs.
        constant: the constant added.
        kind: "linear", "nonlinear", "absent" (no image came back) or "nan" (NaN or infinite).
    """

    terms: tuple[tuple[int, float], ...] = ()
    constant: float = 0.0
    kind: str = "linear"

    def is_only(self, column: int, coefficient: float) -> bool:
        """Whether the content is the given column times the given coefficient."""
        return (
            self.kind == "linear"
            and len(self.terms) == 1
            and self.terms[0][0] == column
            and abs(self.terms[0][1] - coefficient) < 1e-4
            and abs(self.constant) < 1e-4
        )

    @property
    def is_zero(self) -> bool:
        """Whether the content is zero."""
        return self.kind == "linear" and not self.terms and abs(self.constant) < 1e-4

    def same_as(self, other: Row) -> bool:
        """Whether two rows are the same map, up to float32 rounding."""
        mine, others = dict(self.terms), dict(other.terms)
        keys = set(mine) | set(others)
        near = all(abs(mine.get(key, 0.0) - others.get(key, 0.0)) < 1e-4 for key in keys)
        return self.kind == other.kind and near and abs(self.constant - other.constant) < 1e-4


def expected_row(group: LaidGroup, element: int, column: int) -> Row:
    """The row that the model requires for a column under a non-identity element."""
    return matrix_row(group.matrices[element], column, float(group.offsets[element][column]))


def matrix_row(matrix: object, column: int, constant: float = 0.0) -> Row:
    """One row of a sparse matrix."""
    start, stop = matrix.indptr[column], matrix.indptr[column + 1]  # type: ignore[attr-defined]
    pairs = zip(matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist(), strict=True)  # type: ignore[attr-defined]
    return Row(tuple((int(c), float(v)) for c, v in pairs if v), constant)


def describe_row(group: LaidGroup, row: Row, place: int) -> str:
    """A row in words, relative to its column: "-FL_hip", "0", "+0.71*x -0.71*y".

    Args:
        group: provides the names.
        row: the row.
        place: the column.
    """
    if row.kind != "linear":
        return {"nonlinear": "no linear map", "absent": "nothing", "nan": "no finite number"}[row.kind]
    if len(row.terms) > 4:
        return f"a mix of {len(row.terms)} columns"
    parts = [_describe_term(group, column, value, place) for column, value in row.terms]
    if abs(row.constant) > 1e-4 or not parts:
        parts.append(f"{row.constant:+.4g}" if abs(row.constant) > 1e-4 else "0")
    return " ".join(parts)


def _describe_term(group: LaidGroup, column: int, value: float, place: int) -> str:
    sign, size = "-" if value < 0 else "+", abs(value)
    factor = "" if abs(size - 1) < 1e-4 else f"{size:.4g}*"
    return f"{sign}{factor}{group.seen_from(column, place)}"


def read_rows(images: Images, width: int, columns: Sequence[int], samples: Floats) -> dict[int, Row]:
    """Read the rows of some columns.

    Args:
        images: one block of the function on one group.
        width: width of the group.
        columns: the columns to read.
        samples: random vectors on which the rows are verified.

    Returns:
        A row for each of the columns.
    """
    answers = images(samples)
    rows: dict[int, Row] = {c: Row(kind="nan") for c in columns if not np.isfinite(answers[:, c]).all()}
    constant = images(np.zeros((1, width)))[0]
    ramp = images(np.arange(1, width + 1, dtype=np.float64)[None])[0] - constant if width <= _LARGEST_RAMP else None
    unread = []
    for c in columns:
        if c in rows:
            continue
        candidate = None if ramp is None else _from_ramp(float(ramp[c]), float(constant[c]), width)
        if candidate is not None and _holds(candidate, samples, answers[:, c]):
            rows[c] = candidate
        else:
            unread.append(c)
    if unread and width <= _WIDEST_BASIS and np.isfinite(constant[unread]).all():
        rows.update(_from_basis(images, width, unread, constant, samples, answers))
    return {**{c: Row(kind="nonlinear") for c in columns}, **rows}


def _from_ramp(value: float, constant: float, width: int) -> Row | None:
    """The single column whose value is an integer of the ramp; a zero row for 0."""
    if not np.isfinite(value) or not np.isfinite(constant):
        return None
    if abs(value) < 1e-6 * width + 1e-6:
        return Row((), constant if abs(constant) > 1e-6 else 0.0)
    number = abs(round(value))
    if not 1 <= number <= width or abs(abs(value) - number) > 1e-6 * width + 1e-6:
        return None
    return Row(((number - 1, 1.0 if value > 0 else -1.0),), constant if abs(constant) > 1e-6 else 0.0)


def _from_basis(
    images: Images, width: int, columns: Sequence[int], constant: Floats, samples: Floats, answers: Floats
) -> dict[int, Row]:
    parts = []
    for start in range(0, width, _CHUNK):
        stop = min(start + _CHUNK, width)
        basis = np.zeros((stop - start, width))
        basis[np.arange(stop - start), np.arange(start, stop)] = 1.0
        parts.append(images(basis)[:, columns] - constant[list(columns)])
    coefficients = np.concatenate(parts)
    # All columns at once: compare the predictions of the coefficients with the function's values on the samples.
    said = samples @ coefficients + constant[list(columns)]
    sizes = np.maximum(1.0, np.abs(answers[:, columns]).max(axis=0, initial=0.0))
    linear = (np.abs(said - answers[:, columns]) <= 1e-4 * sizes).all(axis=0)
    rows = {}
    for k, c in enumerate(columns):
        values = coefficients[:, k]
        # float32 probes give 1e-7 of the largest value instead of 0.
        kept = np.flatnonzero(np.abs(values) > 1e-5 * max(1.0, float(np.abs(values).max(initial=0.0))))
        fixed = float(constant[c]) if abs(constant[c]) > 1e-6 else 0.0
        row = Row(tuple(zip(kept.tolist(), values[kept].tolist(), strict=True)), fixed)
        rows[c] = row if linear[k] else Row(kind="nonlinear")
    return rows


def _holds(row: Row, samples: Floats, answers: Floats) -> bool:
    said = sum((value * samples[:, column] for column, value in row.terms), np.full(len(samples), row.constant))
    scale = max(1.0, float(np.abs(answers).max(initial=0.0)))
    return bool(np.abs(said - answers).max(initial=0.0) <= 1e-4 * scale)


def columns_that_differ(expected: Floats, actual: Floats, given: Floats) -> Bools:
    """The columns in which two images of a batch differ by more than rounding.

    Values are float32: a sum of some hundred products, each rounded to 6e-8 of the largest, stays below 4e-6 of it, and
    constants written in float32 are off by 1e-7 of a column; 1e-5 of the column's own size allows for a few of both.

    Args:
        expected: shape (rows, width).
        actual: the same.
        given: the batch itself; its largest value bounds the terms of a sum.

    Returns:
        Shape (width,); NaN counts as a difference, and so does an infinity on one side only.
    """
    # An infinite size would allow every difference.
    comparable = np.isfinite(expected) & np.isfinite(actual)
    left, right = np.where(comparable, expected, 0.0), np.where(comparable, actual, 0.0)
    limit = 1e-5 * np.maximum(np.abs(left), np.abs(right)).max(axis=0) + 4e-6 * np.abs(given).max(initial=0.0)
    near = np.where(comparable, np.abs(left - right) <= limit, expected == actual)
    return np.asarray(~near.all(axis=0))
