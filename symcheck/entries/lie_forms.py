"""Parse the entry that a user writes for one Lie generator into one of four forms.

* `LieEntry`: x -> exp(t A) x + ..., from rotating planes, a shift, or the matrix A with an optional shift;
* `LieFunctionEntry`: a user's callable f(value, t), or f(action, observation, t) for actions;
* `TreeEntry`: one entry per sub-space;
* `IdentityEntry`: the identity.

    { rotate = [[0, 1], [2, 3]], frequency = [1, 2] }     e_0 rotates towards e_1 by t, e_2 towards e_3 by 2 t { shift =
    [1, 0] }                                    component 0 moves by t { algebra = [[0, -1], [1, 0]], shift = [0, 1] }
    d/dt x = A x + shift
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from symcheck.array_types import Complexes, Floats
from symcheck.entries.forms import (
    SPATIAL_OPERATORS,
    AffineEntry,
    FunctionEntry,
    IdentityEntry,
    TreeEntry,
    read_numbers,
)
from symcheck.errors import SpecError

_KEYS = {"rotate", "frequency", "shift", "algebra"}
_FORMS = (
    "{ rotate = [[0, 1]] }, { shift = [1, 0] }, { algebra = [[0, -1], [1, 0]] }, a callable f(value, t), "
    '"identity", or a mapping of these for Dict and Tuple spaces'
)
_LARGEST = 4096
"""Maximum number of components on which a Lie generator may act."""


@dataclass(frozen=True, eq=False)
class LieEntry:
    """A one-parameter group of affine maps, d/dt x = A x + b.

    Attributes:
        planes: (i, j, frequency): e_i rotates towards e_j by frequency * t; components that are not named are fixed.
        matrix: A if it was given as a matrix, (dim, dim); None otherwise.
        shift: b, (dim,); None for none.

    Example:
        >>> LieEntry(planes=((0, 1, 1.0),)).at(math.pi / 2, 3).dense().round(12).tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    planes: tuple[tuple[int, int, float], ...] = ()
    matrix: Floats | None = None
    shift: Floats | None = None

    @property
    def size(self) -> int | None:
        """The number of components if it is determined; None if any number from `least` on fits."""
        given = self.matrix if self.matrix is not None else self.shift
        return None if given is None else len(given)

    @property
    def least(self) -> int:
        """The smallest number of components on which it can act."""
        return self.size if self.size is not None else 1 + max(max(i, j) for i, j, _ in self.planes)

    def generator(self, dim: int) -> tuple[Floats, Floats]:
        """(A, b) on the given number of components."""
        matrix = np.zeros((dim, dim)) if self.matrix is None else self.matrix
        if self.planes:
            matrix = matrix.copy()
            for i, j, frequency in self.planes:
                matrix[j, i] += frequency
                matrix[i, j] -= frequency
        return matrix, np.zeros(dim) if self.shift is None else self.shift

    def homogeneous_generator(self, dim: int) -> Floats:
        """[[A, b], [0, 0]], whose exponential acts on (x, 1)."""
        whole = np.zeros((dim + 1, dim + 1))
        whole[:dim, :dim], whole[:dim, dim] = self.generator(dim)
        return whole

    def at(self, t: float, dim: int) -> AffineEntry:
        """The map at one amount, as an affine map on the given number of components."""
        return affine_of(self.homogeneous_at(t, dim))

    def homogeneous_at(self, t: float, dim: int) -> Floats:
        """The map at one amount, as a matrix on (x, 1)."""
        turning = self._turning
        if turning is not None and self.shift is None:
            whole = np.eye(dim + 1)
            for i, j, frequency in turning:
                # Computed by sine and cosine: exact to the last place.
                cos, sin = math.cos(frequency * t), math.sin(frequency * t)
                whole[i, i] = whole[j, j] = cos
                whole[j, i], whole[i, j] = sin, -sin
            return whole
        if self.matrix is None and not self.planes and self.shift is not None:
            whole = np.eye(dim + 1)
            whole[:dim, dim] = t * self.shift
            return whole
        return self._spectrum.exponential(t, dim)

    @cached_property
    def _turning(self) -> tuple[tuple[int, int, float], ...] | None:
        """The rotating planes if no two of them share a component; None for other matrices."""
        planes = self.planes
        if self.matrix is not None:
            matrix = self.matrix
            if (matrix + matrix.T).any() or ((matrix != 0).sum(axis=0) > 1).any():
                return None
            planes = tuple((int(i), int(j), float(matrix[j, i])) for j, i in np.argwhere(np.tril(matrix)))
        corners = [k for i, j, _ in planes for k in (i, j)]
        return planes if len(set(corners)) == len(corners) else None

    @cached_property
    def _spectrum(self) -> _Spectrum:
        return _Spectrum(self)

    def describe(self, symbol: str) -> str:
        """The entry as a formula in t, for instance "(o0, o1) turns by t"."""
        words = [f"({symbol}{i}, {symbol}{j}) turns by {'' if f == 1 else f'{f:g} '}t" for i, j, f in self.planes]
        if self.matrix is not None:
            words.append(f"exp(tA) with a {len(self.matrix)}x{len(self.matrix)} matrix A")
        moved = [] if self.shift is None else [(k, b) for k, b in enumerate(self.shift) if b]
        words += [f"{symbol}{k} moves by {'' if b == 1 else f'{b:g} '}t" for k, b in moved]
        return ", ".join(words) or "unchanged"


class _Spectrum:
    """Exponentials of one generator, by its eigenvectors if they are well conditioned; a run needs thousands."""

    def __init__(self, entry: LieEntry) -> None:
        self._entry = entry
        self._known: dict[int, tuple[Complexes, Complexes, Complexes] | None] = {}

    def exponential(self, t: float, dim: int) -> Floats:
        """exp(t [[A, b], [0, 0]])."""
        if dim not in self._known:
            self._known[dim] = self._decompose(dim)
        known = self._known[dim]
        if known is None:
            from scipy.linalg import expm

            return np.asarray(expm(t * self._entry.homogeneous_generator(dim)), dtype=np.float64)
        values, vectors, inverse = known
        return np.asarray(((vectors * np.exp(t * values)) @ inverse).real, dtype=np.float64)

    def _decompose(self, dim: int) -> tuple[Complexes, Complexes, Complexes] | None:
        generator = self._entry.homogeneous_generator(dim)
        values, vectors = np.linalg.eig(generator.astype(np.complex128))
        # Eigenvectors of a shear are parallel; a condition number of 1e3 costs three of sixteen digits.
        if np.linalg.cond(vectors) > 1e3:
            return None
        inverse = np.linalg.inv(vectors)
        exact = np.abs((vectors * values) @ inverse - generator).max() <= 1e-13 * max(1.0, np.abs(generator).max())
        return (values, vectors, inverse) if exact else None


@dataclass(frozen=True)
class LieFunctionEntry:
    """A user's callable on one unbatched value: f(value, t), or f(action, observation, t) for actions."""

    function: Callable[..., Any]

    def at(self, t: float, *, of_actions: bool) -> FunctionEntry:
        """The map at one amount."""
        function = self.function
        if of_actions:
            return FunctionEntry(lambda action, observation: function(action, observation, t))
        return FunctionEntry(lambda value: function(value, t))


@dataclass(frozen=True, eq=False)
class ElementEntry:
    """A product exp(t_1 A_1) exp(t_2 A_2) ... on a vector whose length is determined by the first value.

    Attributes:
        factors: one-parameter groups with their amounts, and maps of discrete generators, which have the amount 0; the
            last acts first.
    """

    factors: tuple[tuple[LieEntry | AffineEntry, float], ...]

    @property
    def sizes(self) -> set[int]:
        """The numbers of components that the factors determine; empty if any number from `least` on fits."""
        given = [entry.dim if isinstance(entry, AffineEntry) else entry.size for entry, _ in self.factors]
        return {size for size in given if size is not None}

    @property
    def least(self) -> int:
        """The smallest number of components on which it can act."""
        return max(entry.dim if isinstance(entry, AffineEntry) else entry.least for entry, _ in self.factors)

    def sized(self, dim: int) -> AffineEntry:
        """The affine map on the given number of components."""
        return _sized(self, dim)


@lru_cache(maxsize=512)
def _sized(entry: ElementEntry, dim: int) -> AffineEntry:
    whole = np.eye(dim + 1)
    for factor, t in entry.factors:
        whole = whole @ (factor.homogeneous() if isinstance(factor, AffineEntry) else factor.homogeneous_at(t, dim))
    return affine_of(whole)


def affine_of(whole: Floats) -> AffineEntry:
    """The affine map of a matrix on (x, 1)."""
    dim = len(whole) - 1
    offset = whole[:dim, dim].copy()
    return AffineEntry(matrix=whole[:dim, :dim].copy(), offset=offset if offset.any() else None)


ContinuousEntry: TypeAlias = LieEntry | LieFunctionEntry | TreeEntry | IdentityEntry


def parse_lie_entry(written: Any, where: str) -> ContinuousEntry:
    """Read the entry of one Lie generator, distinguished by its form.

    Args:
        written: any of the forms listed in the module's docstring.
        where: how messages name the place.

    Returns:
        The entry.

    Raises:
        SpecError: the form is not one of these, or its numbers are not finite or not of one size.

    Example:
        >>> parse_lie_entry({"rotate": [[0, 1]]}, "observation[0]").planes
        ((0, 1, 1.0),)
    """
    if isinstance(written, LieEntry | LieFunctionEntry | TreeEntry | IdentityEntry):
        return written
    if isinstance(written, str):
        if written == "identity":
            return IdentityEntry()
        remedy = (
            "For rotations of images by 90 degrees use the finite group C4." if written in SPATIAL_OPERATORS else None
        )
        raise SpecError(f"expected an entry of a Lie generator, got {written!r}.", where=where, remedy=remedy)
    if isinstance(written, Mapping):
        return _from_mapping(written, where)
    if (
        isinstance(written, tuple)
        and written
        and all(isinstance(item, Mapping | str) or callable(item) for item in written)
    ):
        return TreeEntry({i: parse_lie_entry(child, f"{where}[{i}]") for i, child in enumerate(written)})  # type: ignore[misc]
    if callable(written) and not hasattr(written, "__array__"):
        return LieFunctionEntry(written)
    raise SpecError(
        f"expected an entry of a Lie generator: {_FORMS}; got {written!r:.120}.",
        where=where,
        remedy="A matrix A of exp(tA) is written { algebra = A }.",
    )


def _from_mapping(written: Mapping[Any, Any], where: str) -> ContinuousEntry:
    if not written or not set(written) <= _KEYS:
        return TreeEntry({key: parse_lie_entry(child, f"{where}[{key!r}]") for key, child in written.items()})  # type: ignore[misc]
    if "rotate" in written and "algebra" in written:
        raise SpecError('expected "rotate" or "algebra", got both.', where=where, remedy="Leave one out.")
    if "frequency" in written and "rotate" not in written:
        raise SpecError('"frequency" belongs to "rotate".', where=where)
    matrix = read_numbers(written["algebra"], f"{where}.algebra") if "algebra" in written else None
    if matrix is not None and (matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size):
        raise SpecError(f"expected a square matrix, got shape {matrix.shape}.", where=f"{where}.algebra")
    shift = read_numbers(written["shift"], f"{where}.shift") if "shift" in written else None
    if shift is not None and (shift.ndim != 1 or not shift.size or (matrix is not None and len(shift) != len(matrix))):
        expected = "a list of numbers" if matrix is None else f"{len(matrix)} numbers"
        raise SpecError(f"expected {expected}, got shape {shift.shape}.", where=f"{where}.shift")
    planes = _planes(written, where) if "rotate" in written else ()
    if planes and shift is not None and max(max(i, j) for i, j, _ in planes) >= len(shift):
        raise SpecError(f"the entry rotates components beyond the {len(shift)} components of its shift.", where=where)
    for given in (matrix, shift):
        if given is not None and len(given) > _LARGEST:
            raise SpecError(f"the entry acts on {len(given):,} components, at most {_LARGEST:,}.", where=where)
    return LieEntry(planes, matrix, shift)


def _planes(written: Mapping[Any, Any], where: str) -> tuple[tuple[int, int, float], ...]:
    pairs = read_numbers(written["rotate"], f"{where}.rotate")
    whole = pairs.ndim == 2 and pairs.shape[1] == 2 and bool((pairs == np.rint(pairs)).all() and (pairs >= 0).all())
    if not whole or not len(pairs) or (pairs[:, 0] == pairs[:, 1]).any() or pairs.max() >= _LARGEST:
        raise SpecError(
            f"expected pairs of two different components, [[0, 1], ...], got {written['rotate']!r}.",
            where=f"{where}.rotate",
        )
    frequency = np.ones(len(pairs))
    if "frequency" in written:
        frequency = np.atleast_1d(read_numbers(written["frequency"], f"{where}.frequency"))
        if frequency.shape != (len(pairs),):
            raise SpecError(
                f"expected {len(pairs)} numbers, one per rotating pair, got shape {frequency.shape}.",
                where=f"{where}.frequency",
            )
    return tuple((int(i), int(j), float(f)) for (i, j), f in zip(pairs, frequency, strict=True))
