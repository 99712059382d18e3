"""Representations of a group by real matrices, given on its generators.

A representation rho maps every element to an invertible matrix, with rho(g h) = rho(g) rho(h). Two classes cover the
needs of reinforcement learning:

- `SignedPermutationRepresentation`: every basis vector maps to plus or minus a basis vector. Stored as integer arrays,
  so that everything built on it is exact and needs only the generators.
- `MatrixRepresentation`: any other real matrices, in float64.

(Representations of continuous groups are in `symcheck.representations.lie`.) The constructors check that each relator
of the group maps to the identity (von Dyck). The error names the relator that fails, and gives the residual.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from symcheck import arrays
from symcheck.array_types import Ints
from symcheck.errors import RepresentationError
from symcheck.groups.element import Element, Word
from symcheck.groups.group import Group
from symcheck.representations import validation
from symcheck.representations.signed_images import SignedImages

LISTING_LIMIT = 50_000_000
"""Largest number of entries for which the images of all elements are stored."""


class Representation(abc.ABC):
    """A homomorphism from a finite group to invertible real matrices.

    Attributes:
        group: the group G.
        dim: the dimension of the space that it acts on.
        name: the name in reports, for instance "regular(C4)".
    """

    group: Group
    dim: int
    name: str

    @abc.abstractmethod
    def matrix(self, g: Element) -> npt.NDArray[np.float64] | Ints:
        """rho(g), a dense (dim, dim) matrix: integers for signed permutations, float64 otherwise."""

    @abc.abstractmethod
    def character(self, g: Element) -> float:
        """The trace of rho(g)."""

    @abc.abstractmethod
    def characters(self) -> npt.NDArray[np.float64]:
        """The traces of all elements in the order of `group.elements()`, (order,)."""

    @property
    @abc.abstractmethod
    def is_orthogonal(self) -> bool:
        """Whether every rho(g) preserves lengths."""

    @property
    @abc.abstractmethod
    def content(self) -> bytes:
        """Sixteen bytes that identify group and matrices exactly, on this machine: a key for caches."""

    @property
    @abc.abstractmethod
    def portable_content(self) -> bytes:
        """Sixteen bytes that identify group and matrices (to nine decimals); the same on every machine."""

    @property
    def generator_matrices(self) -> list[npt.NDArray[np.float64] | Ints]:
        """The matrix of each generator, in order."""
        return [self.matrix(g) for g in self.group.generators]

    def __repr__(self) -> str:
        return f"<{self.name}: dimension {self.dim} of {self.group.name}>"


class SignedPermutationRepresentation(Representation):
    """rho(g_i) e_j = sign[j] * e_{index[j]}: basis vectors are permuted, up to sign.

    Args:
        group: the group.
        images: one `SignedImages` per generator, all of the same dimension.
        name: the name in reports.
        check: False only if the construction itself guarantees the relations.

    Raises:
        RepresentationError: a wrong number of images, or a relation of the group that fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> swap = SignedImages(np.array([1, 0]), np.array([1, 1]))
        >>> rho = SignedPermutationRepresentation(cyclic(2), [swap], name="swap")
        >>> rho.matrix(rho.group.generators[0])
        array([[0, 1],
               [1, 0]])
    """

    def __init__(self, group: Group, images: Sequence[SignedImages], *, name: str, check: bool = True) -> None:
        self.group, self.name = group, name
        self.images = tuple(images)
        validation.require_finite(group, name)
        validation.check_count(group, len(self.images), name)
        self.dim = validation.common_dimension([image.dim for image in self.images], name)
        self._cache: dict[Element, SignedImages] = {}
        if check:
            validation.check_signed_relations(group, self.images, name)

    def evaluate(self, word: Word) -> SignedImages:
        """The signed images of the element given by a word.

        Args:
            word: generator indices, the last applied first.

        Returns:
            rho(gens[w[0]] * gens[w[1]] * ...).
        """
        return validation.evaluate(word, self.images, SignedImages.identity(self.dim))

    def image(self, g: Element) -> SignedImages:
        """rho(g) as signed images; the words of small groups are cached."""
        if g not in self._cache:
            signed = self.evaluate(self.group.word(g))
            # A full cache is not emptied: the first values, along short words, are used most.
            if len(self._cache) * self.dim > LISTING_LIMIT // 8:
                return signed
            self._cache[g] = signed
        return self._cache[g]

    def matrix(self, g: Element) -> Ints:
        """The dense integer matrix of g, (dim, dim)."""
        return self.image(g).matrix()

    def character(self, g: Element) -> float:
        """The sum of the signs of the components that g fixes up to sign."""
        return float(self.image(g).trace())

    def characters(self) -> npt.NDArray[np.float64]:
        """The traces of all elements, (order,); cost |G| dim."""
        return self._characters.copy()

    @cached_property
    def _characters(self) -> npt.NDArray[np.float64]:
        return np.array([image.trace() for image in self._all_images()], dtype=np.float64)

    def _all_images(self) -> Iterator[SignedImages]:
        """The images of all elements in order; words are prefix closed, so one product each suffices."""
        known: dict[Word, SignedImages] = {(): SignedImages.identity(self.dim)}
        # Prefixes are stored only if all images fit in memory.
        keep = self.group.order * self.dim <= LISTING_LIMIT
        for g in self.group.elements():
            word = self.group.word(g)
            # Words are shortest and breadth first, so every prefix has already been computed.
            if word not in known:
                image = known[word[:-1]] @ self.images[word[-1]] if keep else self.evaluate(word)
                if not keep:
                    yield image
                    continue
                known[word] = image
            yield known[word]

    @property
    def is_orthogonal(self) -> bool:
        """True: signed permutation matrices are orthogonal."""
        return True

    @cached_property
    def is_permutation(self) -> bool:
        """Whether no generator changes a sign."""
        return all(bool((image.sign > 0).all()) for image in self.images)

    @cached_property
    def content(self) -> bytes:
        """Sixteen bytes that identify group and images, exactly."""
        # Index and sign of every generator, in generator order.
        parts = [part for image in self.images for part in (image.index, image.sign)]
        return arrays.content_hash("signed", *_group_content(self.group), *parts)

    @property
    def portable_content(self) -> bytes:
        """Sixteen bytes that identify the group and the images; integers are the same on every machine."""
        return self.content


class MatrixRepresentation(Representation):
    """A representation by float64 matrices, one per generator.

    Matrices with more than rounding error, for instance because they were stored in float32, are replaced by the
    nearest exact representation (by averaging, for small groups), so that everything built on them is accurate to
    float64 rounding.

    Args:
        group: the group.
        matrices: for each generator, an invertible matrix (dim, dim).
        name: the name in reports.
        check: False only if the construction itself guarantees the relations.

    Raises:
        RepresentationError: not square, not finite, singular, of different sizes, or a relation that fails.

    Example:
        >>> from symcheck.groups import cyclic
        >>> half_turn = MatrixRepresentation(cyclic(2), [[[-1.0, 0.0], [0.0, -1.0]]], name="half turn")
        >>> half_turn.character(half_turn.group.generators[0])
        -2.0
    """

    def __init__(self, group: Group, matrices: Sequence[npt.ArrayLike], *, name: str, check: bool = True) -> None:
        self.group, self.name = group, name
        validation.require_finite(group, name)
        validation.check_count(group, len(matrices), name)
        where = "{}, generator {}"
        read = [
            arrays.square_matrix(m, where=where.format(name, label), error=RepresentationError)
            for m, label in zip(matrices, group.generator_names, strict=True)
        ]
        self.dim = validation.common_dimension([len(m) for m in read], name)
        self.precision = max(validation.precision_of(m) for m in matrices)
        if check:
            accuracy = max(validation.accuracy_of(m) for m in matrices)
            residual = validation.check_matrix_relations(
                group, read, precision=self.precision, accuracy=accuracy, name=name
            )
            if _can_be_nearer(group, read, residual) and group.order * self.dim**2 <= LISTING_LIMIT // 8:
                read = _nearer_representation(group, read, residual)
        self.matrices = tuple(read)
        self._cache: dict[Element, npt.NDArray[np.float64]] = {}

    def evaluate(self, word: Word) -> npt.NDArray[np.float64]:
        """The matrix of the element given by a word, (dim, dim).

        Args:
            word: generator indices, the last applied first.

        Returns:
            rho(gens[w[0]]) @ rho(gens[w[1]]) @ ...
        """
        return validation.evaluate_matrices(word, self.matrices)

    def matrix(self, g: Element) -> npt.NDArray[np.float64]:
        """The matrix of g, (dim, dim)."""
        if g not in self._cache:
            dense = self.evaluate(self.group.word(g))
            if len(self._cache) * self.dim**2 > LISTING_LIMIT // 8:
                return dense
            self._cache[g] = dense
        return self._cache[g].copy()

    def character(self, g: Element) -> float:
        """The trace of the matrix of g."""
        return float(np.trace(self.matrix(g)))

    def characters(self) -> npt.NDArray[np.float64]:
        """The traces of all elements, (order,); cost |G| dim^3."""
        return self._characters.copy()

    @cached_property
    def _characters(self) -> npt.NDArray[np.float64]:
        return np.asarray(np.trace(self.all_matrices(), axis1=1, axis2=2), dtype=np.float64)

    def all_matrices(self) -> npt.NDArray[np.float64]:
        """The matrices of all elements in the order of `group.elements()`, (order, dim, dim).

        Cost: |G| matrix products; memory |G| dim^2.
        """
        return _all_matrices(self.group, self.matrices)

    @cached_property
    def is_orthogonal(self) -> bool:
        """Whether every generator preserves lengths, to 1e-10."""
        return _are_orthogonal(self.matrices)

    @cached_property
    def content(self) -> bytes:
        """Sixteen bytes that identify the group and the matrices exactly."""
        # + 0.0 turns -0.0 into 0.0, because their bytes differ.
        return arrays.content_hash("matrix", *_group_content(self.group), *(m + 0.0 for m in self.matrices))

    @cached_property
    def portable_content(self) -> bytes:
        """Sixteen bytes that identify the group and the matrices, rounded to 1e-9 of the largest entry."""
        # cos and sin differ between machines in the last place.
        scales = [float(f"{max(1.0, float(np.abs(m).max())):.6g}") for m in self.matrices]
        rounded = [np.round(m / scale, 9) + 0.0 for m, scale in zip(self.matrices, scales, strict=True)]
        return arrays.content_hash("matrix", *_group_content(self.group), *rounded, np.array(scales))


def _group_content(group: Group) -> list[npt.NDArray[np.int64]]:
    return [np.array(g.images, dtype=np.int64) for g in group.generators]


def _all_matrices(group: Group, matrices: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    dim = len(matrices[0])
    if group.order * dim**2 > LISTING_LIMIT * 4:
        raise RepresentationError(
            f"the matrices of all {group.order:,} elements of {group.name} in dimension {dim} do not fit in memory.",
            where="all_matrices",
        )
    stack = np.empty((group.order, dim, dim))
    position = {}
    for k, g in enumerate(group.elements()):
        word = group.word(g)
        position[word] = k
        stack[k] = stack[position[word[:-1]]] @ matrices[word[-1]] if word else np.eye(dim)
    return stack


def _are_orthogonal(matrices: Sequence[npt.NDArray[np.float64]]) -> bool:
    # A product of float64 entries of size at most 1 has an error of dim ulp; 1e-10 is far above it, and far below a
    # shear.
    return all(bool(np.abs(m.T @ m - np.eye(len(m))).max() <= 1e-10) for m in matrices)


def _can_be_nearer(group: Group, matrices: Sequence[npt.NDArray[np.float64]], residual: float) -> bool:
    """Whether averaging can bring matrices closer to a representation.

    Orthogonal float64 matrices satisfy relations to a few ulp; a larger residual can be reduced. Other matrices may be
    accurate to the last place and have a larger residual due to their condition number; averaging would add more
    rounding than that.
    """
    if residual <= 1e-14:
        return False
    return _are_orthogonal(matrices) or residual > validation.relation_rounding(group, matrices)


def _nearer_representation(
    group: Group, matrices: Sequence[npt.NDArray[np.float64]], residual: float
) -> list[npt.NDArray[np.float64]]:
    """Repeats rho(s) <- mean over h of rho(s h) rho(h)^-1, which converges quadratically to a representation.

    Keeps the given matrices if that does not lower the residual: strongly non-orthogonal matrices lose more to
    rounding.
    """
    current = list(matrices)
    table = group.cayley_table
    for _ in range(3):  # 1e-4 -> 1e-8 -> below rounding, and once more
        stack = _all_matrices(group, current)
        inverses = np.linalg.inv(stack)
        current = [np.mean(stack[table[:, i]] @ inverses, axis=0) for i in range(len(current))]
    return current if validation.relation_residual(group, current) < residual / 2 else list(matrices)


def require_representation(rho: object, where: str) -> None:
    """Reject an argument that is not a representation.

    Args:
        rho: the argument to check.
        where: the argument's name.

    Raises:
        RepresentationError: the message names the given type.
    """
    if not isinstance(rho, Representation):
        raise RepresentationError(
            f"expected a representation, got {rho!r} ({type(rho).__name__}).",
            where=where,
            remedy="Make a representation with symcheck.representations, for instance regular(G) or from_matrices(G, "
            "matrices).",
        )


def require_same_group(first: Representation, second: Representation, *, names: tuple[str, str]) -> None:
    """Rejects two representations of different groups.

    Args:
        first: a representation.
        second: another one.
        names: the names of both in the message.

    Raises:
        RepresentationError: the groups have different generators.
    """
    require_representation(first, names[0])
    require_representation(second, names[1])
    if first.group != second.group:
        raise RepresentationError(
            f"{names[1]} must represent the same group as {names[0]}: got {first.group.name!r} (order "
            f"{first.group.order}, generators {', '.join(first.group.generator_names)}) and {second.group.name!r} "
            f"(order {second.group.order}, generators {', '.join(second.group.generator_names)}).",
            remedy=f"Restrict {names[1]} first: restrict({names[1]}, to={names[0]}.group).",
        )


def same(first: Representation, second: Representation) -> bool:
    """Whether two representations have the same group and the same matrices, by value."""
    return first.portable_content == second.portable_content
