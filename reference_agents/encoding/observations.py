"""Encodes observations of any space of fixed size as float32 arrays: one vector, or one image with channels first.

    Box            its numbers, row by row; bytes from 0 to 255 are divided by 255
    MultiBinary    -1 and 1, so that the exchange of 0 and 1 changes the sign
    Discrete       one-hot; for MultiDiscrete, one component after the other
    Dict, Tuple    their parts, one after the other

An observation that consists of one image stays an image if both of its sides have at least `LEAST_SIDE` pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Array, Floats
from symcheck.errors import TargetError
from symcheck.symmetry.choices import counts_of, one_hot

LEAST_SIDE = 8
# An image has its channels last if only its last axis is this short.
_MOST_CHANNELS = 4
Path = tuple[Any, ...]


@dataclass(frozen=True)
class Leaf:
    """A part of an observation without sub-parts.

    Attributes:
        path: the keys and positions that lead to it.
        space: Box, MultiBinary, Discrete or MultiDiscrete.
        size: the length of its encoding.
        scale: the factor of its encoding.
    """

    path: Path
    space: spaces.Space[Any]
    size: int
    scale: float = 1.0

    def encode(self, value: Any) -> Floats:
        """Encode a value, shape (size,)."""
        space = self.space
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            return one_hot(np.asarray(value), space)
        flat = np.asarray(value, dtype=np.float64).reshape(-1)
        return 2.0 * flat - 1.0 if isinstance(space, spaces.MultiBinary) else flat * self.scale


def scale_of(space: spaces.Space[Any]) -> float:
    """The factor for a space: bytes become numbers from 0 to 1."""
    is_bytes = isinstance(space, spaces.Box) and space.dtype == np.uint8 and bool((space.high == 255).all())
    return 1.0 / 255.0 if is_bytes else 1.0


def find_leaves(space: spaces.Space[Any], path: Path = ()) -> Iterator[Leaf]:
    """The parts of a space without sub-parts, in the order of its keys.

    Raises:
        TargetError: a part without a fixed size, such as a string or a sequence.
    """
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from find_leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for position, part in enumerate(space.spaces):
            yield from find_leaves(part, (*path, position))
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        yield Leaf(path, space, sum(counts_of(space)[0]))
    elif isinstance(space, spaces.Box | spaces.MultiBinary):
        yield Leaf(path, space, int(np.prod(space.shape)), scale_of(space))
    else:
        place = "".join(f"[{key!r}]" for key in path)
        raise TargetError(
            f"expected numeric observations of fixed size, got {space}.",
            where=f"--env: observation{place}" if place else "--env",
            remedy="Wrap the environment so that it returns a Box, MultiBinary, Discrete, MultiDiscrete, or a Dict or "
            "Tuple of these.",
        )


class ObservationEncoder:
    """Encodes observations as arrays for a network.

    Args:
        space: the space of the observations.
        as_image: whether an image stays an image; None decides by the space.
        scaled: whether bytes are divided by 255.

    Attributes:
        leaves: the parts of an observation.
        shape: the shape of an encoded observation: (size,) or (channels, height, width).
        channels_last: whether the environment's images have their channels last.
        centre: the fixed point of a claimed symmetry, which is subtracted from encoded vectors.

    Raises:
        TargetError: a space without a fixed size.

    Example:
        >>> encoder = ObservationEncoder(spaces.Dict({"at": spaces.Discrete(3), "v": spaces.Box(-1, 1, (2,))}))
        >>> encoder.encode({"at": 1, "v": [0.5, -0.5]}).tolist()
        [0.0, 1.0, 0.0, 0.5, -0.5]
    """

    def __init__(self, space: spaces.Space[Any], *, as_image: bool | None = None, scaled: bool = True) -> None:
        self.leaves = tuple(leaf if scaled else replace(leaf, scale=1.0) for leaf in find_leaves(space))
        size = sum(leaf.size for leaf in self.leaves)
        if not size:
            raise TargetError(f"expected observations with at least one number, got {space}.", where="--env")
        image = image_shape(space) if as_image is not False else None
        self.channels_last = image is not None and channels_last(space)
        self.shape: tuple[int, ...] = (size,) if image is None else image
        self.centre: Floats | None = None
        first = self.leaves[0]
        self._plain = isinstance(space, spaces.Box) and first.scale == 1.0

    def encode(self, observation: Any) -> npt.NDArray[np.float32]:
        """Encode one observation."""
        # The most common observation, a vector of numbers, is only copied.
        if self._plain and len(self.shape) == 1:
            flat: Array = np.array(observation, dtype=np.float32).reshape(-1)
        else:
            flat = np.concatenate([leaf.encode(_part_of(observation, leaf.path)) for leaf in self.leaves])
        if len(self.shape) == 3:
            channels, height, width = self.shape
            if self.channels_last:
                return np.ascontiguousarray(flat.reshape(height, width, channels).transpose(2, 0, 1), dtype=np.float32)
            return flat.reshape(self.shape).astype(np.float32)
        return np.asarray(flat if self.centre is None else flat - self.centre, dtype=np.float32)


def image_shape(space: spaces.Space[Any]) -> tuple[int, int, int] | None:
    """(channels, height, width) of a space of images with sides of at least `LEAST_SIDE`; None for any other.

    Example:
        >>> image_shape(spaces.Box(0, 255, (64, 48, 3), np.uint8)), image_shape(spaces.Box(-1, 1, (4, 5)))
        ((3, 64, 48), None)
    """
    if not isinstance(space, spaces.Box | spaces.MultiBinary) or space.shape is None or len(space.shape) < 2:
        return None
    shape = space.shape
    if channels_last(space):
        return (shape[2], shape[0], shape[1]) if min(shape[:2]) >= LEAST_SIDE else None
    return (int(np.prod(shape[:-2])), shape[-2], shape[-1]) if min(shape[-2:]) >= LEAST_SIDE else None


def channels_last(space: spaces.Space[Any]) -> bool:
    """Whether the images of a space have their channels last."""
    shape = space.shape or ()
    return len(shape) == 3 and shape[2] <= _MOST_CHANNELS < shape[0]


def _part_of(observation: Any, path: Path) -> Any:
    for key in path:
        observation = observation[key] if isinstance(observation, Mapping) else observation[int(key)]
    return observation
