"""Parse the entry that a user writes for one generator into one of five forms.

An entry defines how one generator acts on an observation, an action or a state, independent of any space:

* `AffineEntry`: x -> M x + offset on the flattened vector; signed permutations M are recognised;
* `SpatialEntry`: a named operator on the last two axes of an image;
* `FunctionEntry`: a user's callable;
* `TreeEntry`: one entry per sub-space of a `Dict` or `Tuple` space;
* `IdentityEntry`: the identity, on any space.

Forms are distinguished by their content alone: a permutation contains each of 0..n-1 once, signs are never 0, and
signed images are one-based strings, so each has a sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats, Ints
from symcheck.entries.numbers import number
from symcheck.errors import SpecError, suggestion

SPATIAL_OPERATORS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "rot90": lambda x: np.rot90(x, axes=(-2, -1)),
    "flip_ud": lambda x: x[..., ::-1, :],
    "flip_lr": lambda x: x[..., ::-1],
    "transpose": lambda x: np.swapaxes(x, -2, -1),
}
_SIGNED_IMAGE = re.compile(r"[+-]?\d{1,18}")  # indices with more digits exceed any possible size
_FORMS = (
    "a square matrix, a list of signs (+1 or -1), a permutation of 0..n-1, signed one-based images as strings "
    '(["-1", "+3", "+2"]), {"matrix" or "signs": ..., "offset": ...}, a named spatial operator, '
    '{"spatial": ..., "axes": [0, 1]}, a callable, '
    "or a mapping or tuple of these for Dict and Tuple spaces"
)


@dataclass(frozen=True)
class AffineEntry:
    """x -> M x + offset on the flattened vector of length `dim`.

    Attributes:
        matrix: M, shape (dim, dim), float64; None if `index` and `sign` represent it exactly.
        index: signed permutations: component j moves to index[j]; shape (dim,).
        sign: signed permutations: component j is multiplied by sign[j], +1 or -1; shape (dim,).
        offset: shape (dim,), float64; None if it is zero.
        as_signs: whether it was given as a list of signs, which does not permute values of a Discrete space.
    """

    matrix: Floats | None = None
    index: Ints | None = None
    sign: Ints | None = None
    offset: Floats | None = None
    as_signs: bool = False

    @property
    def dim(self) -> int:
        """The length of the vector on which it acts."""
        basis = self.matrix if self.index is None else self.index
        return 0 if basis is None else len(basis)

    @property
    def is_signed_permutation(self) -> bool:
        """Whether M is a signed permutation and there is no offset."""
        return self.index is not None and self.offset is None

    def permutation(self) -> Ints | None:
        """The permutation p with value a -> p[a], or None if the entry has another form."""
        if self.index is None or self.sign is None or self.offset is not None or (self.sign < 0).any():
            return None
        if self.as_signs:
            return None
        return self.index

    def dense(self) -> Floats:
        """M as a dense float64 matrix, shape (dim, dim)."""
        if self.matrix is not None:
            return self.matrix
        dense = np.zeros((self.dim, self.dim))
        # Column j has its entry in row index[j].
        dense[self.index, np.arange(self.dim)] = self.sign
        return dense

    def homogeneous(self) -> Floats:
        """The affine map as one matrix on (x, 1), shape (dim + 1, dim + 1): products of maps are products of these."""
        # [[M, b], [0, 1]] on (x, 1).
        matrix = np.eye(self.dim + 1)
        matrix[: self.dim, : self.dim] = self.dense()
        if self.offset is not None:
            matrix[: self.dim, self.dim] = self.offset
        return matrix

    def apply(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Apply to stacked vectors, shape (..., dim).

        Floats keep their dtype; so do integers if M and offset are integral.

        Computed in float64 and rounded once to the dtype given; signed permutations involve no rounding.
        """
        if self.is_signed_permutation:
            # Exact for every dtype, even if float64 would round large integers.
            return self._permute(vectors)
        exact = vectors.astype(np.float64)
        image = self._permute(exact) if self.index is not None else exact @ self.dense().T
        image = image if self.offset is None else image + self.offset
        # Round once, at the end; integers stay integers only if no image leaves their range.
        if np.issubdtype(vectors.dtype, np.floating) or self._stays_integer(image, vectors.dtype):
            return image.astype(vectors.dtype)
        return image

    def _permute(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        moved, sign = np.empty_like(vectors), cast("Ints", self.sign)
        # Without negative signs do not multiply, because that would fail for booleans and unsigned integers.
        moved[..., self.index] = vectors if (sign > 0).all() else vectors * sign.astype(vectors.dtype)
        return moved

    def _stays_integer(self, image: Floats, dtype: np.dtype[Any]) -> bool:
        """Whether images of integers have the same dtype."""
        parts = [part for part in (self.matrix, self.offset) if part is not None]
        # Integers stay integers only under an integral matrix and offset.
        if not np.issubdtype(dtype, np.integer) or not all(np.equal(part, np.rint(part)).all() for part in parts):
            return False
        limits = np.iinfo(dtype)
        return not image.size or bool(limits.min <= image.min() and image.max() <= limits.max)


@dataclass(frozen=True)
class SpatialEntry:
    """A named operator on two axes: rot90 (counter-clockwise), flip_ud, flip_lr or transpose.

    Attributes:
        operator: its name.
        channels_last: whether rows and columns are the axes before the last one, True or False if the axes were given;
            None if not, in which case they are the last two.
    """

    operator: str
    channels_last: bool | None = None

    def apply(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Apply to stacked images, shape (..., height, width) or (..., height, width, channels); made contiguous."""
        grids = np.moveaxis(images, -1, -3) if self.channels_last else images
        moved = SPATIAL_OPERATORS[self.operator](grids)
        return np.ascontiguousarray(np.moveaxis(moved, -3, -1) if self.channels_last else moved)


@dataclass(frozen=True)
class FunctionEntry:
    """A user's callable: `f(obs)`, `f(state)` or `f(action, obs)`, on one unbatched value."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class TreeEntry:
    """One entry per sub-space: keys of a Dict space, positions (as integers) of a Tuple space."""

    children: Mapping[Any, Entry] = field(default_factory=dict)


@dataclass(frozen=True)
class IdentityEntry:
    """The identity, on any space."""


Entry: TypeAlias = AffineEntry | SpatialEntry | FunctionEntry | TreeEntry | IdentityEntry


def parse_entry(written: Any, where: str) -> Entry:
    """Read one generator's entry, distinguished by its form.

    Args:
        written: any of the forms listed in the module's docstring.
        where: how messages name the place, for instance "observation[0]".

    Returns:
        The entry, its numbers in float64 or exact integers.

    Raises:
        SpecError: the form is not one of these, or its numbers are not finite.

    Example:
        >>> parse_entry([1, 0], "action[0]").permutation()
        array([1, 0])
        >>> parse_entry(["-1", "+3", "+2"], "observation[0]").apply(np.array([1.0, 2.0, 3.0]))
        array([-1.,  3.,  2.])
    """
    # Entries may be parsed twice: return a parsed one unchanged.
    if isinstance(written, AffineEntry | SpatialEntry | FunctionEntry | TreeEntry | IdentityEntry):
        return written
    if isinstance(written, str):
        return _parse_name(written, where)
    if isinstance(written, Mapping):
        return _from_mapping(written, where)
    # A tuple is structure (Tuple spaces), a list is data, unless its items differ in kind.
    if _is_tree_tuple(written):
        return TreeEntry({i: parse_entry(child, f"{where}[{i}]") for i, child in enumerate(written)})
    if _is_ragged(written):
        return parse_entry(tuple(written), where)
    # Arrays and tensors are callable in some libraries, hence the second condition.
    if callable(written) and not hasattr(written, "__array__"):
        return FunctionEntry(written)
    return _from_array(written, where)


def _parse_name(name: str, where: str) -> Entry:
    if name == "identity":
        return IdentityEntry()
    if name not in SPATIAL_OPERATORS:
        raise SpecError(
            f"expected the name of a spatial operator, got {name!r}.",
            where=where,
            remedy=suggestion(name, [*SPATIAL_OPERATORS, "identity"]),
        )
    return SpatialEntry(name)


def _from_mapping(written: Mapping[Any, Any], where: str) -> Entry:
    # A Dict space may also have a key "matrix": an affine map has exactly these keys and no others.
    if ("matrix" in written or "signs" in written) and set(written) <= {"matrix", "signs", "offset"}:
        return _affine(written, where)
    if set(written) == {"spatial", "axes"}:
        return _spatial(written, where)
    return TreeEntry({key: parse_entry(child, f"{where}[{key!r}]") for key, child in written.items()})


def _affine(written: Mapping[Any, Any], where: str) -> AffineEntry:
    if "matrix" in written and "signs" in written:
        raise SpecError('expected "matrix" or "signs", got both.', where=where, remedy="Leave one out.")
    linear = _from_array(written.get("matrix", written.get("signs")), where)
    if "offset" not in written:
        return linear
    offset = read_numbers(written["offset"], f"{where}.offset")
    if offset.shape != (linear.dim,):
        raise SpecError(
            f"the map acts on {linear.dim} components, so its offset must have {linear.dim} numbers; got "
            f"shape {offset.shape}.",
            where=where,
        )
    # A zero offset counts as none, so that the map stays exact.
    return AffineEntry(linear.matrix, linear.index, linear.sign, offset if offset.any() else None)


def _spatial(written: Mapping[Any, Any], where: str) -> Entry:
    entry, axes = _parse_name(str(written["spatial"]), where), written["axes"]
    readings = {(0, 1): True, (-3, -2): True, (1, 2): False, (-2, -1): False}
    given = tuple(axes) if isinstance(axes, list | tuple) else axes
    if not isinstance(entry, SpatialEntry) or given not in readings:
        raise SpecError(
            f"expected axes = [0, 1] (rows, columns, channels) or [1, 2] (channels, rows, columns), got {axes!r}.",
            where=where,
        )
    return SpatialEntry(entry.operator, readings[given])


def _is_tree_tuple(written: Any) -> bool:
    if not isinstance(written, tuple) or not written:
        return False
    # Signed images in a tuple are data, as in a list.
    if all(isinstance(item, str) and _SIGNED_IMAGE.fullmatch(item) for item in written):
        return False
    return not all(isinstance(item, int | float | np.number) for item in written)


def _is_ragged(written: Any) -> bool:
    """Whether a list contains entries of different kinds or lengths, as data files do for a Tuple space."""
    if not isinstance(written, list) or not all(isinstance(item, list | str | dict) for item in written):
        return False
    if all(isinstance(item, str) for item in written):
        return bool(written) and not _are_signed_images(written)
    # Lists of equal length are rows of a matrix; -1 stands for items that are not lists.
    kinds = {len(item) if isinstance(item, list) else -1 for item in written}
    return len(kinds) > 1 or kinds == {-1}


def _from_array(written: Any, where: str) -> AffineEntry:
    if _are_signed_images(written):
        return _signed_images([int(item) for item in written], where)
    values = read_numbers(written, where)
    if values.ndim == 2:
        return _matrix(values, where)
    if values.ndim != 1 or not len(values):
        given = f"an array of shape {values.shape}" if values.ndim else repr(written)
        raise SpecError(f"expected {_FORMS}; got {given}.", where=where)
    n = len(values)
    # [0] is the permutation of one value, [1] its sign.
    if np.array_equal(np.sort(values), np.arange(n)):
        return AffineEntry(index=values.astype(np.int64), sign=np.ones(n, dtype=np.int64))
    if (np.abs(values) == 1).all():
        return AffineEntry(index=np.arange(n), sign=values.astype(np.int64), as_signs=True)
    raise SpecError(
        f"expected a permutation of 0..{n - 1} or {n} signs (+1 or -1), got {_short(written)}.",
        where=where,
        remedy=(
            'A map that both permutes and negates is written as signed one-based images, for instance ["-1", "+3", '
            '"+2"].'
        ),
    )


def _are_signed_images(written: Any) -> bool:
    if not isinstance(written, Sequence) or isinstance(written, str) or not len(written):
        return False
    return all(isinstance(item, str) and _SIGNED_IMAGE.fullmatch(item) for item in written)


def _signed_images(images: list[int], where: str) -> AffineEntry:
    n = len(images)
    index = np.abs(np.array(images, dtype=np.int64)) - 1
    if not np.array_equal(np.sort(index), np.arange(n)):
        raise SpecError(
            f"expected signed images that use each of 1..{n} once, got {images}.",
            where=where,
            remedy=(
                "Signed images are one-based: entry i gives the position to which component i moves, with its sign."
            ),
        )
    return AffineEntry(index=index, sign=np.sign(np.array(images, dtype=np.int64)))


def _matrix(matrix: Floats, where: str) -> AffineEntry:
    if matrix.shape[0] != matrix.shape[1]:
        raise SpecError(f"expected a square matrix, got shape {matrix.shape}.", where=where)
    # A signed permutation in matrix form is stored as integers: exact, and products do not round.
    nonzero = matrix != 0
    if (np.abs(matrix[nonzero]) == 1).all() and (nonzero.sum(0) == 1).all() and (nonzero.sum(1) == 1).all():
        # Column j has its entry in the row that component j moves to.
        index = nonzero.argmax(axis=0)
        return AffineEntry(index=index, sign=matrix[index, np.arange(len(matrix))].astype(np.int64))
    return AffineEntry(matrix=matrix)


def read_numbers(written: Any, where: str) -> Floats:
    """Read finite numbers in any container, including sparse matrices and tensors, as float64.

    Raises:
        SpecError: something that is not a number, or not finite.
    """
    if hasattr(written, "toarray"):  # scipy.sparse
        written = written.toarray()
    if hasattr(written, "detach"):  # a tensor, on any device
        written = written.detach().cpu().numpy()
    try:
        values = np.asarray(written, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        # Items such as "-pi/3" in data files.
        values = _numbers_in_words(written, where)
    if not np.isfinite(values).all():
        raise SpecError(f"expected finite numbers, got {_short(written)}.", where=where)
    return values


def _numbers_in_words(written: Any, where: str) -> Floats:
    try:
        return np.asarray(_map_nested(written, lambda item: number(item, where)), dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SpecError(f"expected {_FORMS}; got {_short(written)} ({type(written).__name__}).", where=where) from error


def _map_nested(value: Any, convert: Callable[[Any], float]) -> Any:
    if isinstance(value, list | tuple):
        return [_map_nested(item, convert) for item in value]
    return convert(value)


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with thousands of digits, or excessive nesting
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 120 else f"{text[:117]}..."
