"""Representations of continuous groups: one matrix per Lie generator, one per discrete generator.

`rho.matrix(g)` writes g as exponentials and a word, g = exp(c_0 . A) exp(c_1 . A) ... h, and substitutes the
representation's matrices for the group's. Sums and tensor products keep their operands: characters and bases of large
representations are computed from them, and dense matrices are built only on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.array_types import Floats
from symcheck.errors import RepresentationError
from symcheck.groups.continuous import ContinuousGroup
from symcheck.groups.element import Element
from symcheck.groups.lie_element import LieElement
from symcheck.representations import validation
from symcheck.representations.lie_checks import check_lie_relations
from symcheck.representations.representation import Representation

Form = Literal["matrices", "sum", "tensor"]


class LieRepresentation(Representation):
    """A homomorphism from a continuous group to invertible real matrices.

    Args:
        group: the group.
        algebra: for each Lie generator, a matrix A (dim, dim) such that exp(t A) is the image of its one-parameter
            group.
        matrices: for each discrete generator, an invertible matrix (dim, dim).
        name: the name in reports.
        check: False only if the construction itself guarantees a representation.

    Attributes:
        form: "matrices", or the operation that built it from `operands`.
        operands: the operands of sums and tensor products.

    Raises:
        RepresentationError: wrong numbers or sizes of matrices, or a bracket, frequency or relation that fails.

    Example:
        >>> from symcheck.groups import so
        >>> rho = LieRepresentation(so(2), [[[0, -2], [2, 0]]], [], name="frequency 2")
        >>> rho.matrix(so(2).exp(0, np.pi / 2)).round(9).tolist()
        [[-1.0, -0.0], [0.0, -1.0]]
    """

    group: ContinuousGroup

    def __init__(
        self,
        group: ContinuousGroup,
        algebra: Sequence[npt.ArrayLike],
        matrices: Sequence[npt.ArrayLike],
        *,
        name: str,
        check: bool = True,
    ) -> None:
        self.group, self.name = group, name
        self.form: Form = "matrices"
        self.operands: tuple[LieRepresentation, ...] = ()
        given = [*arrays.entries(algebra, where=name, error=RepresentationError), *matrices]
        if len(given) - len(matrices) != len(group.algebra) or len(matrices) != len(group.generators):
            raise RepresentationError(
                f"expected {len(group.algebra)} matrices of Lie generators ({', '.join(group.algebra)}) and "
                f"{len(group.generators)} of discrete ones, got {len(given) - len(matrices)} and {len(matrices)}.",
                where=name,
            )
        read = [
            arrays.square_matrix(m, where=f"{name}, {label}", error=RepresentationError)
            for m, label in zip(given, group.entry_names, strict=True)
        ]
        self.dim = validation.common_dimension([len(m) for m in read], name)
        self._algebra = tuple(read[: len(group.algebra)])
        self._matrices = tuple(read[len(group.algebra) :])
        if check:
            accuracy = max(validation.accuracy_of(m) for m in given)
            check_lie_relations(group, self._algebra, self._matrices, accuracy=accuracy, name=name)

    @staticmethod
    def composed(form: Form, operands: Sequence[LieRepresentation], name: str) -> LieRepresentation:
        """A sum or tensor product; its matrices are built on request."""
        made = object.__new__(LieRepresentation)
        made.group, made.name, made.form = operands[0].group, name, form
        made.operands = tuple(operands)
        sizes = [part.dim for part in operands]
        made.dim = sum(sizes) if form == "sum" else int(np.prod(sizes))
        return made

    @cached_property
    def algebra(self) -> tuple[Floats, ...]:
        """The matrices of the Lie generators, (dim, dim) each."""
        if self.form == "matrices":
            return self._algebra
        rows = zip(*(part.algebra for part in self.operands), strict=True)
        return tuple(_block_diagonal(row) if self.form == "sum" else _leibniz(row) for row in rows)

    @cached_property
    def matrices(self) -> tuple[Floats, ...]:
        """The matrices of the discrete generators, (dim, dim) each."""
        if self.form == "matrices":
            return self._matrices
        rows = zip(*(part.matrices for part in self.operands), strict=True)
        return tuple(_block_diagonal(row) if self.form == "sum" else _kronecker(row) for row in rows)

    @property
    def generator_matrices(self) -> list[Any]:
        """The matrix of each discrete generator, in order."""
        return list(self.matrices)

    def matrix(self, g: Element) -> Floats:
        """rho(g), a dense (dim, dim) matrix.

        Raises:
            GroupError: g is not in the group.
        """
        if self.form == "sum":
            return _block_diagonal([part.matrix(g) for part in self.operands])
        if self.form == "tensor":
            return _kronecker([part.matrix(g) for part in self.operands])
        from scipy.linalg import expm

        if not isinstance(g, LieElement):
            raise RepresentationError(f"expected an element of {self.group.name}, got {g!r}.", where=self.name)
        vectors, word = self.group.decompose(g)
        result = np.eye(self.dim)
        for coefficients in vectors:
            generator = np.zeros((self.dim, self.dim))
            for k in np.flatnonzero(coefficients):
                generator += coefficients[k] * self._algebra[k]
            result = result @ expm(generator)
        for letter in word:
            result = result @ self._matrices[letter]
        return result

    def character(self, g: Element) -> float:
        """The trace of rho(g)."""
        return float(np.trace(self.matrix(g)))

    def characters(self) -> npt.NDArray[np.float64]:
        """Always raises: the group has infinitely many elements.

        Raises:
            RepresentationError: always.
        """
        raise RepresentationError(f"{self.group.name} has infinitely many elements.", where="characters")

    @property
    def parts(self) -> tuple[LieRepresentation, ...]:
        """The summands, in order, of a direct sum; the representation itself otherwise."""
        return self.operands if self.form == "sum" else (self,)

    @cached_property
    def is_orthogonal(self) -> bool:
        """Whether every rho(g) preserves lengths."""
        if self.form != "matrices":
            return all(part.is_orthogonal for part in self.operands)
        # Rounding of entries up to 1 gives an error of dim ulp; 1e-10 is far above it, and far below a shear.
        skew = all(bool(np.abs(a + a.T).max(initial=0) <= 1e-10) for a in self._algebra)
        return skew and all(bool(np.abs(m.T @ m - np.eye(self.dim)).max() <= 1e-10) for m in self._matrices)

    @cached_property
    def content(self) -> bytes:
        """Sixteen bytes that identify the group and the matrices exactly."""
        if self.form != "matrices":
            parts = [np.frombuffer(part.content, dtype=np.uint8) for part in self.operands]
            return arrays.content_hash(self.form, *parts)
        return arrays.content_hash(f"lie {self.group!r}", *(m + 0.0 for m in (*self._algebra, *self._matrices)))

    @cached_property
    def portable_content(self) -> bytes:
        """Sixteen bytes that identify group and matrices (to nine decimals); the same on every machine."""
        if self.form != "matrices":
            parts = [np.frombuffer(part.portable_content, dtype=np.uint8) for part in self.operands]
            return arrays.content_hash(self.form, *parts)
        rounded = [np.round(m, 9) + 0.0 for m in (*self._algebra, *self._matrices)]
        return arrays.content_hash(f"lie {self.group!r}", *rounded)


def lie_sum(parts: Sequence[LieRepresentation]) -> LieRepresentation:
    """The direct sum; nested sums are flattened."""
    flat = [each for part in parts for each in part.parts]
    return flat[0] if len(flat) == 1 else LieRepresentation.composed("sum", flat, " + ".join(p.name for p in parts))


def lie_tensor(parts: Sequence[LieRepresentation]) -> LieRepresentation:
    """The tensor product: component (i, j) is number i * dim_second + j."""
    if len(parts) == 1:
        return parts[0]
    return LieRepresentation.composed("tensor", parts, " x ".join(part.name for part in parts))


def lie_dual(rho: LieRepresentation) -> LieRepresentation:
    """The dual: -A^T for Lie generators, H^-T for discrete ones; an orthogonal representation is its own dual."""
    if rho.is_orthogonal:
        return rho
    algebra = [-a.T for a in rho.algebra]
    matrices = [np.linalg.inv(m).T for m in rho.matrices]
    return LieRepresentation(rho.group, algebra, matrices, name=f"dual of {rho.name}", check=False)


def _block_diagonal(blocks: Sequence[Floats]) -> Floats:
    ends = np.cumsum([0, *(len(block) for block in blocks)])
    whole = np.zeros((ends[-1], ends[-1]))
    for block, start, end in zip(blocks, ends[:-1], ends[1:], strict=True):
        whole[start:end, start:end] = block
    return whole


def _kronecker(factors: Sequence[Floats]) -> Floats:
    return reduce(lambda a, b: np.asarray(np.kron(a, b), dtype=np.float64), factors)


def _leibniz(factors: Sequence[Floats]) -> Floats:
    """d(rho_1 x rho_2 x ...): the sum over factors of each matrix tensored with identities."""
    return np.asarray(
        reduce(lambda a, b: np.kron(a, np.eye(len(b))) + np.kron(np.eye(len(a)), b), factors), dtype=np.float64
    )
