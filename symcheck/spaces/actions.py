"""Draws actions to test: uniform ones and, for Box spaces, some at the bounds, where clipping and saturation occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces


def draw_actions(space: spaces.Space[Any], count: int, rng: np.random.Generator) -> list[Any]:
    """Actions to test: uniform draws; in Box spaces, every eighth action is zero or at a finite bound.

    Args:
        space: the action space; its own generator draws (it was seeded by the run).
        count: the number of actions.
        rng: selects the actions that are moved to a bound.

    Returns:
        A list of `count` actions.
    """
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return list(space.np_random.integers(first, first + int(space.n), size=count))
    if not isinstance(space, spaces.Box):
        return [space.sample() for _ in range(count)]
    if space.is_bounded() and np.issubdtype(space.dtype, np.floating):
        uniform = space.np_random.uniform(space.low, space.high, size=(count, *space.shape))
        actions = list(uniform.astype(space.dtype))
    else:
        actions = [space.sample() for _ in range(count)]
    edges = [np.zeros(space.shape, space.dtype), np.array(space.low), np.array(space.high)]
    usable = [edge for edge in edges if np.isfinite(edge).all() and space.contains(edge)]
    for i in range(0, count, 8):
        if usable:
            actions[i] = usable[int(rng.integers(len(usable)))].copy()
    return actions


def draw_action_batch(space: spaces.Space[Any], count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Uniform actions as one array; in Box spaces, every eighth action is zero or at a bound.

    Args:
        space: Discrete, or a bounded Box.
        count: the number of actions.
        rng: the generator that draws them.

    Returns:
        Shape (count, *shape), in the space's dtype.

    Example:
        >>> draw_action_batch(spaces.Discrete(2), 3, np.random.default_rng(0)).shape
        (3,)
    """
    if isinstance(space, spaces.Discrete):
        numbers = int(space.start) + np.arange(int(space.n))
        return np.asarray(rng.choice(numbers, size=count))
    if not isinstance(space, spaces.Box):
        raise ValueError(f"actions of {space} cannot be drawn as arrays")
    drawn = rng.uniform(space.low, space.high, size=(count, *space.shape)).astype(space.dtype)
    edges = [edge for edge in (np.zeros(space.shape, space.dtype), space.low, space.high) if space.contains(edge)]
    rows = np.arange(0, count, 8)
    drawn[rows] = np.stack(edges)[rng.integers(0, len(edges), size=len(rows))]
    return drawn
