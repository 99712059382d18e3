"""Reduces wide observations (images) to a few hundred numbers by a fixed function, for tests of distributions.

If the claim holds, any fixed function of observations has the same distribution on both sides, so a test on the reduced
observations keeps its level; it detects only differences that remain after the reduction. Images are averaged over
blocks of pixels; other wide vectors are subsampled and summed with fixed random signs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.spaces.coordinates import Coordinates, SpaceCodec, finite

WIDEST = 1024  # maximum number of columns without reduction
_BLOCKS = 12  # number of blocks along each side of an image
_THINNED = 128  # number of kept columns, and of sums, of a wide vector that is not an image
_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Reduction:
    """A reduction of observations for tests.

    Attributes:
        coordinates: the coordinates of reduced observations.
        apply: maps flattened observations, shape (n, dim), to reduced ones, shape (n, less).
    """

    coordinates: Coordinates
    apply: Callable[[Floats], Floats]


def reduction(codec: SpaceCodec) -> Reduction:
    """The reduction of the observations of one space; up to `WIDEST` columns they are not reduced.

    Args:
        codec: the codec of the space.

    Returns:
        The reduction; the same one for the same space.

    Example:
        >>> image = SpaceCodec(spaces.Box(0, 255, (96, 96, 3), np.uint8), "observation")
        >>> less = reduction(image)
        >>> less.coordinates.dim, less.coordinates.names[0]
        (432, 'mean of observation[0:8, 0:8, 0]')
        >>> less.apply(np.ones((2, image.coordinates.dim))).shape
        (2, 432)
    """
    dim = codec.coordinates.dim
    if dim <= WIDEST:
        return Reduction(codec.coordinates, lambda flat: flat)
    shape = codec.space.shape if isinstance(codec.space, spaces.Box) else None
    if shape is not None and sum(size >= 2 * _BLOCKS for size in shape) == 2:
        return _pool_blocks(shape)
    return _thin_out(codec.coordinates)


def _pool_blocks(shape: tuple[int, ...]) -> Reduction:
    edges = [np.linspace(0, size, (_BLOCKS if size >= 2 * _BLOCKS else size) + 1).astype(int) for size in shape]
    sizes = [np.diff(edge) for edge in edges]

    def apply(flat: Floats) -> Floats:
        images = finite(flat).reshape(len(flat), *shape)
        for axis, (edge, size) in enumerate(zip(edges, sizes, strict=True), start=1):
            along = [1] * images.ndim
            along[axis] = len(size)
            # Average over blocks along one axis after the other, which gives means of rectangles.
            images = np.add.reduceat(images, edge[:-1], axis=axis) / size.reshape(along)
        return np.asarray(images.reshape(len(flat), -1))

    names = []
    for place in np.ndindex(*(len(size) for size in sizes)):
        spans = [(edge[i], edge[i + 1]) for edge, i in zip(edges, place, strict=True)]
        inside = ", ".join(str(low) if high == low + 1 else f"{low}:{high}" for low, high in spans)
        names.append(f"mean of observation[{inside}]")
    return Reduction(_free_coordinates(names), apply)


def _thin_out(coordinates: Coordinates) -> Reduction:
    rng = np.random.default_rng(0)  # a fixed seed: the function must not depend on the run
    columns = np.linspace(0, coordinates.dim - 1, _THINNED).astype(int)
    signs = rng.choice([-1.0, 1.0], size=(coordinates.dim, _THINNED)) / np.sqrt(coordinates.dim)
    names = [coordinates.names[j] for j in columns] + [f"a sum of all coordinates ({i})" for i in range(_THINNED)]

    def apply(flat: Floats) -> Floats:
        numbers = finite(flat)
        return np.concatenate([numbers[:, columns], numbers @ signs], axis=1)

    return Reduction(_free_coordinates(names), apply)


def _free_coordinates(names: list[str]) -> Coordinates:
    ones = np.ones(len(names))
    return Coordinates(tuple(names), _EPSILON * ones, 0 * ones, -np.inf * ones, np.inf * ones)
