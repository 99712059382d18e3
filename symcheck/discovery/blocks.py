"""The parts of an observation: each leaf of a Dict or Tuple space, as a contiguous range of the flattened observation.

A map of the flattened observation that preserves the parts is written part by part: signs or images of vectors,
operators on images, a permutation of the values of a Discrete space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.maps import SQUARE, SignedMap, apply_square
from symcheck.entries.forms import SPATIAL_OPERATORS
from symcheck.errors import SpecError, TargetError
from symcheck.symmetry.space_maps import has_channels_last

_UNBOUNDED = 1e30  # bounds beyond this stand for none, such as the largest float32
_PICTURE = 3  # minimum number of pixels along each axis of an image


Layout = Literal["first", "last"]
"""Position of the channel axis: before height and width, or after them."""


def layout_of(space: spaces.Space[Any]) -> Layout | None:
    """The position of the height and width axes in a space's values; None if they are not an image.

    Example:
        >>> [layout_of(spaces.Box(0, 1, shape)) for shape in ((3, 8, 8), (8, 8, 3), (8, 8), (8, 2))]
        ['first', 'last', 'first', None]
    """
    shape = () if isinstance(space, spaces.Dict | spaces.Tuple) else space.shape or ()
    if len(shape) > 2 and has_channels_last(*shape[-3:]) and (len(shape) == 3 or shape[-1] <= shape[0]):
        return "last" if min(shape[-3:-1]) >= _PICTURE else None
    return "first" if len(shape) >= 2 and min(shape[-2:]) >= _PICTURE else None


def sides_of(space: spaces.Space[Any]) -> tuple[int, int]:
    """Height and width of the images in a space.

    Example:
        >>> sides_of(spaces.Box(0, 1, (8, 9, 3))), sides_of(spaces.Box(0, 1, (8, 9)))
        ((8, 9), (8, 9))
    """
    return sides_in(space.shape or (1, 1), layout_of(space))


def sides_in(shape: tuple[int, ...], layout: Layout | None) -> tuple[int, int]:
    """Height and width of images of a shape and a layout."""
    height, width = shape[-3:-1] if layout == "last" else shape[-2:]
    return height, width


def upright(pictures: npt.NDArray[Any], layout: Layout) -> npt.NDArray[Any]:
    """Images with height and width as their last axes.

    Example:
        >>> upright(np.zeros((5, 8, 9, 3)), "last").shape
        (5, 3, 8, 9)
    """
    return np.moveaxis(pictures, -1, -3) if layout == "last" else pictures


def lay_out(pictures: npt.NDArray[Any], layout: Layout) -> npt.NDArray[Any]:
    """The inverse of `upright`."""
    return np.moveaxis(pictures, -3, -1) if layout == "last" else pictures


@dataclass(frozen=True)
class Block:
    """One leaf of an observation space.

    Attributes:
        path: keys and positions that lead to it; () if the space has no parts.
        space: its own space.
        first: its first index in the flattened observation.
        size: number of its components there.
    """

    path: tuple[Any, ...]
    space: spaces.Space[Any]
    first: int
    size: int

    @property
    def at(self) -> slice:
        """The indices of its components."""
        return slice(self.first, self.first + self.size)

    @property
    def layout(self) -> Layout | None:
        """The position of the image's height and width; None if it is not an image."""
        return layout_of(self.space)

    @property
    def middle(self) -> Floats:
        """The point about which components are negated: zero, or the middle of integers and of boxes off zero."""
        if isinstance(self.space, spaces.Discrete):
            return np.array([float(self.space.start) + (float(self.space.n) - 1) / 2])
        if isinstance(self.space, spaces.MultiDiscrete):
            start, count = np.asarray(self.space.start, dtype=np.float64), np.asarray(self.space.nvec)
            return np.asarray((start + (count - 1) / 2).reshape(-1))
        if isinstance(self.space, spaces.MultiBinary):
            return np.full(self.size, 0.5)
        if isinstance(self.space, spaces.Box):
            low, high = (np.asarray(end, dtype=np.float64).reshape(-1) for end in (self.space.low, self.space.high))
            # Where zero is not inside, a map about zero would leave the box.
            beside = (np.maximum(np.abs(low), np.abs(high)) < _UNBOUNDED) & ((low >= 0) | (high <= 0))
            return np.asarray(np.where(beside, low, 0.0) + np.where(beside, high, 0.0)) / 2
        return np.zeros(self.size)


def blocks_of(space: spaces.Space[Any]) -> list[Block]:
    """The leaves of a space, in the order in which observations are flattened.

    Args:
        space: Box, Discrete, MultiDiscrete, MultiBinary, or Dict and Tuple of these.

    Returns:
        At least one.

    Raises:
        TargetError: a leaf is of another kind.

    Example:
        >>> two = spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Discrete(3))
        >>> [(block.path, block.first, block.size) for block in blocks_of(two)]
        [(('a',), 0, 2), (('b',), 2, 1)]
    """
    made: list[Block] = []
    for path, leaf in _list_parts(space, ()):
        first = made[-1].first + made[-1].size if made else 0
        made.append(Block(path, leaf, first, int(np.prod(leaf.shape or (1,)))))
    return made


def _list_parts(space: spaces.Space[Any], path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], spaces.Space[Any]]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        children = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, child in children:
            yield from _list_parts(child, (*path, key))
    elif isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        yield path, space
    else:
        raise TargetError(
            f"expected numeric observations of fixed size, got {space}.",
            where="observation space",
            remedy="Wrap the environment so that it returns arrays, or write the symmetry down for verify-env.",
        )


def write_map(observed: SignedMap, space: spaces.Space[Any]) -> Any:
    """The SPEC entry of a map of the flattened observation.

    Args:
        observed: the map, which preserves the parts.
        space: the observation space.

    Returns:
        The entry; a mapping of entries if the space has parts.

    Raises:
        SpecError: the map mixes parts, or no entry can express its action on a part.

    Example:
        >>> two = spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Discrete(3))
        >>> write_map(SignedMap.of([1, 0, 2], [1, 1, -1], [0, 0, 2]), two)
        {'a': [1, 0], 'b': [2, 1, 0]}
    """
    made: dict[Any, Any] = {}
    for block in blocks_of(space):
        entry = _write_block(_restrict_to_part(observed, block), block)
        if not block.path:
            return entry
        inner = made
        for key in block.path[:-1]:
            inner = inner.setdefault(_write_key(key), {})
        inner[_write_key(block.path[-1])] = entry
    return made


def _write_key(key: Any) -> str:
    return str(key)


def _restrict_to_part(observed: SignedMap, block: Block) -> SignedMap:
    index = [i - block.first for i in observed.index[block.at]]
    if sorted(index) != list(range(block.size)):
        raise SpecError(
            "the map mixes parts of the observation; no entry can express such a map.", where=str(block.path)
        )
    return SignedMap.of(index, observed.sign[block.at], observed.offset[block.at])


def _write_block(own: SignedMap, block: Block) -> Any:
    if isinstance(block.space, spaces.Discrete):
        return _write_values(own, block.space)
    if own.is_identity and block.path:
        return "identity"
    shape, layout = block.space.shape or (), block.layout
    if layout == "first" and min(own.sign) > 0 and not any(own.offset):
        for name in SPATIAL_OPERATORS if shape[-1] == shape[-2] else ("flip_ud", "flip_lr"):
            if list(own.index) == turn_picture(name, shape, layout):
                return name
    return own.spec_entry()


def _write_values(own: SignedMap, space: spaces.Discrete) -> list[int]:
    values = np.arange(int(space.n)) + int(space.start)
    images = own.apply(values[:, None].astype(np.float64))[:, 0] - int(space.start)
    if sorted(images.tolist()) != list(range(int(space.n))):
        raise SpecError(f"the map takes values outside {space}.", where="observation")
    return [int(image) for image in images]


def turn_picture(name: str, shape: tuple[int, ...], layout: Layout) -> list[int]:
    """The image of every component of a flattened image under an element of the symmetry group of the square.

    Example:
        >>> turn_picture("flip_lr", (1, 3), "first")
        [2, 1, 0]
    """
    numbers = upright(np.arange(int(np.prod(shape))).reshape(shape), layout)
    turned = lay_out(apply_square(name, numbers), layout)
    # Rotating an array of indices shows where each component comes from; a map lists where each goes.
    return [int(i) for i in np.argsort(turned.reshape(-1))]


def lift_picture(name: str, block: Block, size: int) -> SignedMap:
    """An element of the symmetry group of the square on one image, as a map of the whole flattened observation.

    Args:
        name: the name of the element.
        block: the image.
        size: the size of the flattened observation.

    Returns:
        A permutation; other components are unchanged.

    Example:
        >>> block = Block((), spaces.Box(0, 1, (3, 3)), 0, 9)
        >>> lift_picture("flip_lr", block, 9).index
        (2, 1, 0, 5, 4, 3, 8, 7, 6)
    """
    index = np.arange(size)
    index[block.at] = block.first + np.array(turn_picture(name, block.space.shape or (1, 1), block.layout or "first"))
    return SignedMap.of(index)


def picture_elements(space: spaces.Space[Any]) -> list[str]:
    """The elements of the symmetry group of the square that preserve the shape of images, the identity first.

    Example:
        >>> picture_elements(spaces.Box(0, 1, (3, 5)))
        ['identity', 'rot180', 'flip_ud', 'flip_lr']
    """
    height, width = sides_of(space)
    return list(SQUARE) if height == width else ["identity", "rot180", "flip_ud", "flip_lr"]
