"""The space of mapped observations: the smallest box that contains all images of the environment's space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from symcheck.errors import SpecError
from symcheck.symmetry.bound import BoundSymmetry
from symcheck.symmetry.tested import BoundTested
from symcheck.wrappers.lie_elements import turned_box


def image_space(bound: BoundSymmetry, words: Sequence[tuple[int, ...]]) -> gym.Space[Any]:
    """The observation space of a wrapper that returns images.

    Args:
        bound: the symmetry.
        words: the words of all its elements.

    Returns:
        The environment's space if no image leaves it; a larger box if an affine map leaves it.
    """
    if isinstance(bound, BoundTested):
        return turned_box(bound)
    space = bound.observation_space
    # Callables cannot be bounded; the space is kept as declared.
    if not isinstance(space, spaces.Box) or not bound.is_data("observation"):
        return space
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    lows, highs = [low], [high]
    for word in words:
        # An affine map attains its extremes over a box at corners; infinite bounds stay infinite.
        least, most = _extremes(bound, word, low, high)
        lows.append(least)
        highs.append(most)
    wide_low, wide_high = np.min(lows, axis=0), np.max(highs, axis=0)
    # A symmetric box is its own image.
    if (wide_low == low).all() and (wide_high == high).all():
        return space
    dtype: Any = space.dtype
    return spaces.Box(wide_low.astype(dtype), wide_high.astype(dtype), space.shape, dtype)


def _extremes(bound: BoundSymmetry, word: tuple[int, ...], low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds of the image of a box under one element, by probing its affine map along every axis."""
    size = low.size
    if size > _MOST_PROBED:  # images: operators permute pixels; bounds are uniform or permuted in the same way
        corners = [bound.observation(word, low), bound.observation(word, high)]
        return np.minimum(*corners), np.maximum(*corners)
    zero = np.zeros(low.shape)
    # The image of 0, then of each unit vector: the map's matrix and offset.
    offset = np.asarray(bound.observation(word, zero), dtype=np.float64).reshape(-1)
    units = np.eye(size).reshape(size, *low.shape)
    matrix = np.asarray(bound.observation_batch(word, units), dtype=np.float64).reshape(size, size) - offset
    ends = np.stack([low.reshape(-1), high.reshape(-1)])
    # 0 times an infinite bound is NaN in NumPy; here it must be 0.
    with np.errstate(invalid="ignore"):
        reached = np.where(matrix == 0.0, 0.0, matrix * ends[:, :, None])
    # Each component is the sum over axes of the smaller, and of the larger, end point.
    least = reached.min(axis=0).sum(axis=0) + offset
    most = reached.max(axis=0).sum(axis=0) + offset
    return least.reshape(low.shape), most.reshape(low.shape)


_MOST_PROBED = 2_000


def bind(symmetry: Any, env: Any) -> BoundSymmetry:
    """Fit a symmetry to an environment's single spaces.

    Args:
        symmetry: the symmetry.
        env: an environment or a vector environment.

    Returns:
        The symmetry as maps.

    Raises:
        SpecError: the argument is not a symmetry, or does not fit the spaces.
    """
    if not hasattr(symmetry, "bind"):
        raise SpecError(
            f"expected a Symmetry, got {type(symmetry).__name__}.",
            where="symmetry",
            remedy="symcheck.Symmetry(name, group, observation=[...], action=[...]).",
        )
    observation = getattr(env, "single_observation_space", env.observation_space)
    action = getattr(env, "single_action_space", env.action_space)
    bound: BoundSymmetry = symmetry.bind(observation, action)
    return bound
