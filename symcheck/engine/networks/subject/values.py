"""Data on parts of a network: signed permutations, records of layers, and where tracing ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats, Ints
from symcheck.statements.statement import Statement

Level: TypeAlias = Literal["exact", "rounded", "failed"]


@dataclass(frozen=True, eq=False)
class SignedPermutation:
    """Entry j moves to index[j] and is multiplied by sign[j].

    Attributes:
        index: the image of each entry, shape (n,), int64.
        sign: +1 or -1, shape (n,), int64.

    Example:
        >>> SignedPermutation(np.array([1, 0]), np.array([1, -1])).apply(np.array([5.0, 7.0]))
        array([-7.,  5.])
    """

    index: Ints
    sign: Ints

    @staticmethod
    def identity(n: int) -> SignedPermutation:
        """The identity permutation of n entries."""
        return SignedPermutation(np.arange(n), np.ones(n, dtype=np.int64))

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.index)

    @property
    def is_permutation(self) -> bool:
        """Whether every entry occurs exactly once, with a sign; external data may violate this."""
        return np.array_equal(np.sort(self.index), np.arange(self.size)) and bool((np.abs(self.sign) == 1).all())

    @property
    def is_identity(self) -> bool:
        """Whether the motion is the identity."""
        return bool((self.index == np.arange(self.size)).all() and (self.sign == 1).all())

    def apply(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The image of vectors, shape (..., n)."""
        moved = np.empty_like(vectors)
        moved[..., self.index] = vectors * self.sign
        return moved

    def columns(self, matrix: Floats) -> Floats:
        """The matrix times this signed permutation: W for a transformed input; shape (rows, n)."""
        # (W R)[:, j] = sign[j] W[:, index[j]].
        return np.asarray(matrix[:, self.index] * self.sign)

    def signed_images(self) -> list[int]:
        """One-based images with their signs: entry j is the image of j.

        Example:
            >>> SignedPermutation(np.array([1, 0]), np.array([1, -1])).signed_images()
            [2, -1]
        """
        return [int(image) for image in self.sign * (self.index + 1)]

    @staticmethod
    def from_signed_images(images: Sequence[int]) -> SignedPermutation:
        """The inverse of `signed_images`."""
        signed = np.asarray(images, dtype=np.int64)
        return SignedPermutation(np.abs(signed) - 1, np.sign(signed))

    def text(self) -> str:
        """A short description for reports: how many entries move, and how many change sign."""
        moved = int((self.index != np.arange(self.size)).sum())
        negated = int((self.sign < 0).sum())
        if not moved and not negated:
            return f"identity on {self.size}"
        return f"moves {moved} of {self.size}" + (f", negates {negated}" if negated else "")


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x -> matrix @ x + offset; `matrix` of shape (n, n), `offset` of shape (n,), both float64."""

    matrix: Floats
    offset: Floats


@dataclass(frozen=True)
class Judgement:
    """The difference of two weight arrays.

    Attributes:
        level: exact, rounded or failed, by the published levels.
        residual: largest absolute difference.
        ulps: largest difference in float32 units in the last place of the larger weight.
        relative: residual over the largest weight.
        place: (row, column) of the worst entry.
        values: the required and the actual value of that entry.
        rows: the first rows with an entry that differs by more than rounding.
        columns: the first such columns.
        pattern: a known pattern in the differences if they failed; None if there is none.
    """

    level: Level
    residual: float
    ulps: float
    relative: float
    place: tuple[int, int]
    values: tuple[float, float]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    pattern: Statement | None = None

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key, from best to worst."""
        return ("exact", "rounded", "failed").index(self.level), self.residual


@dataclass
class LayerRecord:
    """The certificate of one layer, or the reason why there is none, as plain data.

    Attributes:
        name: as in `named_modules()`, or the operation and its source line if no module is involved.
        kind: the operation ("Linear", "Conv2d", "max_pool2d").
        level: exact (zero, or float64 rounding of a dense action), rounded (float32 ulps) or failed.
        residual: largest |R' W - W R| over entries of weights and bias; None for rules about geometry alone.
        ulps: the same in float32 units in the last place of the larger weight; None if residual is None.
        relative: residual over the layer's largest weight.
        place: the entry, in words.
        source: file and line of the call.
        representation: the action of the generators on the output, in words.
        cause: why it fails; None otherwise.
        bound: for vectors: largest |v(Lx) - R v(x)| over the box of inputs that the proof states; None if unknown.
        matched: whether a permutation was found, so that later layers were tested too.
        certain: whether every unit has a close image; only then is a difference a wrong weight. If units have none
            (rescaled units, coincidental symmetry), the outputs decide.
        values: the required and the actual value of the worst entry; None if residual is None.
        units: the first units (or channels) with an entry that differs by more than rounding.
        inputs: the first such inputs (or input channels).
        sizes: number of inputs and outputs (or channels); (0, 0) if that is irrelevant.
        pattern: a known pattern in its differences if they failed; None otherwise.
        images: the permutation of its distinct units (or channels) for each generator, with which the certificate can
            be checked again without a search. Empty if none was found.
        settled: whether a use of the layer's units made the record final. Until then, a later use may still show its
            action.
    """

    name: str
    kind: str
    level: Level = "exact"
    residual: float | None = None
    ulps: float | None = None
    relative: float | None = None
    place: str = ""
    source: str = ""
    representation: str = ""
    cause: Statement | None = None
    bound: float | None = None
    matched: bool = True
    certain: bool = True
    values: tuple[float, float] | None = None
    units: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    sizes: tuple[int, int] = (0, 0)
    pattern: Statement | None = None
    images: tuple[SignedPermutation, ...] = ()
    settled: bool = False

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key, from best to worst."""
        return ("exact", "rounded", "failed").index(self.level), self.residual or 0.0

    def settle(self, found: LayerRecord) -> None:
        """Adopt the result for one use of the layer's units, unless another use was worse."""
        # The worse of two uses stays in the record.
        if not self.settled or found.rank > self.rank:
            self.adopt(found)
        self.settled = True

    def adopt(self, found: LayerRecord) -> None:
        """Copy the content of another record."""
        for item in fields(found):
            setattr(self, item.name, getattr(found, item.name))

    def take(self, judgement: Judgement, units: Ints | None = None) -> None:
        """Copy a judgement of the layer's weights into the record; `units` are the units of its rows."""
        self.level = judgement.level
        self.residual, self.ulps, self.relative = judgement.residual, judgement.ulps, judgement.relative
        self.values, self.pattern = judgement.values, judgement.pattern
        self.units = tuple(row if units is None else int(units[row]) for row in judgement.rows)


@dataclass(eq=False)
class Opaque:
    """A value that cannot be traced.

    Attributes:
        reason: the operation that is not supported, and why.
        module: the module that ran; "" for the network's own forward.
        source: file and line of the call; "" if no single call is responsible.
        output: the path of the output, if the end of the network is responsible, and no call in it.
        record: the record of the layer that failed, if a failure is the reason.
    """

    reason: Statement
    module: str = ""
    source: str = ""
    output: str = ""
    record: LayerRecord | None = None

    @property
    def where(self) -> str:
        """The place, in words: "tail (net.py:3)", "forward", "output[1]"."""
        place = self.output or self.module or "forward"
        return f"{place} ({self.source})" if self.source else place

    @property
    def location(self) -> str:
        """The name of the module or output; the place if it is in neither."""
        return self.output or self.module or self.where


def distinct_rows(rows: Floats) -> tuple[Floats, Ints]:
    """Distinct rows in order of appearance, and the class of each row."""
    place: dict[bytes, int] = {}
    cls = np.array([place.setdefault(row.tobytes(), len(place)) for row in rows], dtype=np.int64)
    return rows[first_places(cls, len(place))], cls


def first_places(cls: Ints, count: int) -> Ints:
    """The first position of each of `count` classes; shape (count,)."""
    first = np.empty(count, dtype=np.int64)
    # Assign from the end, so that the first position of each class remains.
    first[cls[::-1]] = np.arange(len(cls))[::-1]
    return first
