"""One entry fitted to one space: a map of values and of stacked values, with its size checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Array
from symcheck.entries.forms import AffineEntry, Entry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry
from symcheck.errors import SpecError


class SpaceMap(Protocol):
    """A map of one space to itself; `context` is the original observation, for action maps that depend on it."""

    def image(self, value: Any, context: Any = None) -> Any:
        """The image of one unbatched value."""

    def batch(self, values: Any, contexts: Any = None) -> Any:
        """The images of stacked values, shape (n, *shape); a list where values are structured."""


def fit(entry: Entry | ElementEntry, space: spaces.Space[Any] | None, where: str) -> SpaceMap:
    """Fit an entry to a space.

    Args:
        entry: how one generator acts.
        space: the space it acts on; None for internal states, which have no declared space.
        where: how messages name the place.

    Returns:
        The fitted map.

    Raises:
        SpecError: the entry does not fit; the message gives both sizes.
    """
    match entry:
        case IdentityEntry():
            return _Identity()
        case FunctionEntry(function):
            return _Function(function, space, where)
        case SpatialEntry():
            return _fit_spatial(entry, space, where)
        case TreeEntry(children):
            return _fit_tree(children, space, where)
        case AffineEntry():
            return _fit_affine(entry, space, where)
        case ElementEntry():
            return _AnyVector(entry, where)


class _Identity:
    def image(self, value: Any, context: Any = None) -> Any:
        return value

    def batch(self, values: Any, contexts: Any = None) -> Any:
        return values


class _Vector:
    """An affine map on the flattened value; the shape is kept."""

    def __init__(self, entry: AffineEntry, where: str) -> None:
        self._entry = entry
        self._where = where

    def image(self, value: Any, context: Any = None) -> Array:
        array = np.asarray(value)
        # Images of any shape are mapped as flat vectors and keep their shape.
        self._check(array, array.size)
        return self._entry.apply(array.reshape(-1)).reshape(array.shape)

    def batch(self, values: Any, contexts: Any = None) -> Array:
        array = np.asarray(values)
        # An empty batch has no first value to check.
        if not len(array):
            return array
        self._check(array[0], array[0].size)
        return self._entry.apply(array.reshape(len(array), -1)).reshape(array.shape)

    def _check(self, array: Array, size: int) -> None:
        if size != self._entry.dim:
            raise SpecError(
                f"expected a vector of {self._entry.dim} components, got shape {array.shape} ({array.dtype}).",
                where=self._where,
            )


class _AnyVector:
    """An element of a continuous group on vectors whose length is taken from the first value."""

    def __init__(self, entry: ElementEntry, where: str) -> None:
        self._entry = entry
        self._where = where

    def image(self, value: Any, context: Any = None) -> Array:
        return self._fitted(np.asarray(value).size).image(value)

    def batch(self, values: Any, contexts: Any = None) -> Array:
        array = np.asarray(values)
        return self._fitted(array[0].size).batch(array) if len(array) else array

    def _fitted(self, size: int) -> _Vector:
        least = self._entry.least
        if size < least or not self._entry.sizes <= {size}:
            raise SpecError(f"expected a vector of {least} components, got {size}.", where=self._where)
        return _Vector(self._entry.sized(size), self._where)


class _Spatial:
    def __init__(self, entry: SpatialEntry) -> None:
        self._entry = entry

    def image(self, value: Any, context: Any = None) -> Array:
        return self._entry.apply(np.asarray(value))

    def batch(self, values: Any, contexts: Any = None) -> Array:
        return self._entry.apply(np.asarray(values))


class _Values:
    """A permutation of the values of a Discrete space."""

    def __init__(self, images: npt.NDArray[np.int64], start: int) -> None:
        self._images = images
        self._start = start

    def image(self, value: Any, context: Any = None) -> np.int64:
        # Values of a Discrete space may begin at any number.
        return np.int64(self._images[int(value) - self._start] + self._start)

    def batch(self, values: Any, contexts: Any = None) -> Array:
        return np.asarray(self._images[np.asarray(values, dtype=np.int64) - self._start] + self._start)


class _Function:
    """A user's callable, applied to one value at a time.

    Its argument is a copy, and the shape of its result is checked.
    """

    def __init__(self, function: Callable[..., Any], space: spaces.Space[Any] | None, where: str) -> None:
        self._function = function
        self._space = space
        self._where = where

    def image(self, value: Any, context: Any = None) -> Any:
        # Copies: a callable that writes into its argument must not change the caller's value.
        arguments = (_copy_value(value),) if context is None else (_copy_value(value), _copy_value(context))
        try:
            image = self._function(*arguments)
        except SpecError:
            raise  # from the entry of a part, which names itself
        except Exception as error:
            raise SpecError(
                f"the callable raised {type(error).__name__}: {error} (given {_shorten(value)}).",
                where=self._where,
                remedy="A callable takes one unbatched value: observation(obs), state(state) or action(action, obs).",
            ) from error
        return _check_image(image, value, self._space, self._where)

    def batch(self, values: Any, contexts: Any = None) -> Any:
        # If the map of actions depends on the observation, both are passed.
        pairs = [(v, None) for v in values] if contexts is None else list(zip(values, contexts, strict=True))
        images = [self.image(value, context) for value, context in pairs]
        # Plain numbers and arrays are stacked; structured images stay a list.
        return np.stack(images) if images and isinstance(images[0], np.ndarray | np.generic) else images


def _check_image(image: Any, value: Any, space: spaces.Space[Any] | None, where: str) -> Any:
    """The image that a callable returned for a value, if it has the value's form.

    Raises:
        SpecError: the image has different parts or a different shape, or is not a number.
    """
    if isinstance(space, spaces.Discrete):
        return _whole_number(image, where)
    if isinstance(space, spaces.Dict):
        _expect_parts(image, list(image) if isinstance(image, Mapping) else [], list(space.spaces), where)
        return {
            key: _check_image(image[key], value[key], part, f"{where}[{key!r}]") for key, part in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        held = range(len(image)) if isinstance(image, tuple | list) else ()
        _expect_parts(image, held, range(len(space.spaces)), where)
        parts = enumerate(zip(image, value, space.spaces, strict=True))
        return tuple(_check_image(*part, f"{where}[{i}]") for i, part in parts)
    if not hasattr(value, "shape"):
        return image
    try:
        array = np.asarray(image)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.shape != np.shape(value) or array.dtype.kind not in "biuf":
        raise SpecError(
            f"the callable returned an array of shape {array.shape} ({array.dtype}) for a value of shape "
            f"{np.shape(value)}.",
            where=where,
            remedy="Return the image in the same shape as the value.",
        )
    return array


def _expect_parts(image: Any, held: Collection[Any], parts: Collection[Any], where: str) -> None:
    if set(held) != set(parts):
        raise SpecError(
            f"the callable must return the parts {', '.join(repr(part) for part in parts)}, but "
            f"returned {_shorten(image)}.",
            where=where,
            remedy="Return a mapping with the keys of a Dict space, or a tuple as long as a Tuple space.",
        )


def _whole_number(image: Any, where: str) -> np.int64:
    array = np.asarray(image)
    # Integers in any numeric dtype; 0.5 is not an action.
    if array.dtype.kind not in "iufb" or array.size != 1 or not np.equal(np.mod(array, 1), 0).all():
        raise SpecError(f"the callable must return one whole number, but returned {_shorten(image)}.", where=where)
    return np.int64(array.reshape(-1)[0])


class _Tree:
    """One map per sub-space of a Dict or Tuple; values keep their container type."""

    def __init__(self, children: Mapping[Any, SpaceMap]) -> None:
        self._children = children

    def image(self, value: Any, context: Any = None) -> Any:
        if isinstance(value, Mapping):
            return {key: self._child(key, item, context) for key, item in value.items()}
        return tuple(self._child(i, item, context) for i, item in enumerate(value))

    def batch(self, values: Any, contexts: Any = None) -> list[Any]:
        if contexts is None:
            return [self.image(value) for value in values]
        return [self.image(value, context) for value, context in zip(values, contexts, strict=True)]

    def _child(self, key: Any, item: Any, context: Any) -> Any:
        # Sub-spaces without an entry stay unchanged.
        return self._children[key].image(item, context) if key in self._children else item


def _parts_in_toml(space: spaces.Space[Any]) -> str:
    """The TOML form for the parts of a space, with their names."""
    keys = list(space.spaces) if isinstance(space, spaces.Dict) else ["0", "1"]
    return f"{{ {', '.join(f'{key} = ...' for key in keys)} }}"


def _fit_affine(entry: AffineEntry, space: spaces.Space[Any] | None, where: str) -> SpaceMap:
    if space is None:
        return _Vector(entry, where)
    if isinstance(space, spaces.Discrete):
        return _fit_discrete(entry, space, where)
    # Errors name the sub-space.
    if not isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        raise SpecError(
            f"a vector map of size {entry.dim} cannot act on the space {space}.",
            where=where,
            remedy=f"Give one entry per sub-space (in TOML {_parts_in_toml(space)}; in Python a mapping or tuple), "
            "or a callable.",
        )
    size = int(np.prod(space.shape))
    if size != entry.dim:
        raise SpecError(
            f"the entry acts on {entry.dim} components, but the space has {size}: {space}.",
            where=where,
            remedy=f"Write {size} signs, {size} images or a {size}x{size} matrix.",
        )
    # An unsigned space cannot contain a negated component.
    if entry.offset is None and entry.sign is not None and (entry.sign < 0).any() and not _holds_negatives(space):
        raise SpecError(
            f"the entry negates components, but the space contains no negative numbers: {space}.",
            where=where,
            remedy='Write the map as {"signs": ..., "offset": ...}, or permute the components.',
        )
    if isinstance(space, spaces.MultiBinary | spaces.MultiDiscrete):
        _check_values(entry, space, where)
    return _Vector(entry, where)


def _check_values(entry: AffineEntry, space: spaces.MultiBinary | spaces.MultiDiscrete, where: str) -> None:
    """Reject a map under which the end points of an integer space leave the space.

    Raises:
        SpecError: the image of a value is not in the space; the message gives both.
    """
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    # Values run from `start` to `start + nvec - 1`.
    if isinstance(space, spaces.MultiDiscrete):
        low, high = np.asarray(space.start), np.asarray(space.start) + np.asarray(space.nvec) - 1
    else:
        low, high = np.zeros(space.shape), np.ones(space.shape)
    # Affine maps of single components attain their extremes at the end points.
    for end in (low, high):
        image = entry.apply(end.reshape(-1).astype(np.float64)).reshape(end.shape)
        if (image < low).any() or (image > high).any():
            raise SpecError(
                f"the entry maps {end.astype(int).tolist()} to {image.tolist()}, which is not in {space}.",
                where=where,
                remedy="Exchange only components with the same number of values; to reverse 0, ..., n-1, give "
                "the sign -1 and the offset n-1.",
            )


def _fit_discrete(entry: AffineEntry, space: spaces.Discrete, where: str) -> SpaceMap:
    images = entry.permutation()
    # The size fits, so the form of the entry is wrong.
    if images is None and entry.dim == space.n:
        raise SpecError(
            f"the entry must be a permutation of the {space.n} values of {space}, not signs, a matrix or an offset.",
            where=where,
            remedy=f"Write a permutation of 0..{space.n - 1}: entry a is the image of value a.",
        )
    if images is None or len(images) != space.n:
        raise SpecError(
            f"the entry acts on {entry.dim} value{'s' if entry.dim != 1 else ''}, but the space has {space.n}: "
            f"{space}.",
            where=where,
            remedy=f"Write a permutation of 0..{space.n - 1}: entry a is the image of value a.",
        )
    return _Values(images, int(space.start))


def _holds_negatives(space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Box):
        return bool(np.issubdtype(space.dtype, np.signedinteger) or np.issubdtype(space.dtype, np.floating))
    return False


def has_channels_last(first: int, second: int, last: int) -> bool:
    """Whether the last of three axes looks like channels: it is the shortest, or only the first two are equal.

    Example:
        >>> [has_channels_last(*shape) for shape in ((84, 84, 3), (8, 8, 17), (3, 84, 84), (17, 8, 8))]
        [True, True, False, False]
    """
    return last < min(first, second) or 1 < first == second != last


def _fit_spatial(entry: SpatialEntry, space: spaces.Space[Any] | None, where: str) -> SpaceMap:
    if space is None:
        return _Spatial(entry)
    shape = space.shape
    if not isinstance(space, spaces.Box | spaces.MultiBinary) or shape is None or len(shape) < 2:
        raise SpecError(
            f"{entry.operator!r} acts on the last two axes of an image, but the space is {space}.", where=where
        )
    if entry.channels_last is not None and len(shape) != 3:
        raise SpecError(f"axes can be given only for images with channels, but the space is {space}.", where=where)
    if entry.channels_last is None and len(shape) == 3 and has_channels_last(*shape):
        raise SpecError(
            f"{entry.operator!r} acts on the last two axes, {shape[-2]}x{shape[-1]}, and the last one looks like "
            f"channels: {space}.",
            where=where,
            remedy=(
                f'Write {{ spatial = "{entry.operator}", axes = [0, 1] }} if the channels are last, and '
                "axes = [1, 2] if they are first."
            ),
        )
    height, width = shape[-3:-1] if entry.channels_last else shape[-2:]
    # These two operators exchange height and width.
    if entry.operator in ("rot90", "transpose") and height != width:
        raise SpecError(
            f"{entry.operator!r} needs square images, but the space has {height}x{width}: {space}.",
            where=where,
            remedy="Crop or pad the image to a square, or use flip_ud and flip_lr only.",
        )
    return _Spatial(entry)


def _fit_tree(children: Mapping[Any, Entry], space: spaces.Space[Any] | None, where: str) -> SpaceMap:
    if space is None:
        return _Tree({key: fit(child, None, f"{where}[{key!r}]") for key, child in children.items()})
    if isinstance(space, spaces.Dict):
        subspaces: dict[Any, spaces.Space[Any]] = dict(space.spaces)
    elif isinstance(space, spaces.Tuple):
        subspaces = dict(enumerate(space.spaces))
        # TOML keys are strings; positions of a Tuple are numbers.
        children = {int(key) if str(key).isdigit() else key: child for key, child in children.items()}
    else:
        raise SpecError(
            f"a mapping or tuple of entries needs a Dict or Tuple space, got {space}.",
            where=where,
            remedy=(
                "A permutation is a list ([1, 0]). An affine map has the keys signs or matrix, and "
                "offset. A spatial operator has the keys spatial and axes."
            ),
        )
    unknown = [key for key in children if key not in subspaces]
    if unknown:
        raise SpecError(
            f"the entry names sub-spaces {unknown} that do not exist; the space has {list(subspaces)}.", where=where
        )
    return _Tree({key: fit(child, subspaces[key], f"{where}[{key!r}]") for key, child in children.items()})


def _copy_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: _copy_value(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple, as graphs are
        return type(value)(*(_copy_value(item) for item in value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        # The container's own type: a list stays a list.
        return type(value)(_copy_value(item) for item in value)  # type: ignore[call-arg]
    return value


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
