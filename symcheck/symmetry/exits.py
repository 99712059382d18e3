"""Points that an element of a continuous group maps out of a bounded Box, and action samples that stay inside.

A rotation maps the corner of a square outside it. Pairs whose image lies outside give no evidence about the claim; they
are skipped and counted. Whole episodes need a policy that is invariant under the group: actions uniform in balls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.entries.lie_forms import LieEntry
from symcheck.groups.continuous import ContinuousGroup
from symcheck.spaces.coordinates import Coordinates, SpaceCodec
from symcheck.symmetry.claimed_maps import ClaimedMaps
from symcheck.symmetry.lie_spaces import size_of

_ROUNDING = 4 * float(np.finfo(np.float32).eps)
"""Tolerance relative to the bound: bounds and images are each rounded to float32 once."""


def stay_inside(coordinates: Coordinates, values: Floats, images: Floats) -> npt.NDArray[np.bool_]:
    """Whether each image is inside the bounds of its space, or its original is already outside.

    Args:
        coordinates: the coordinates of the space, with its bounds.
        values: the originals, (n, dim).
        images: (n, dim).

    Returns:
        (n,).
    """
    slack = np.where(coordinates.epsilon > 0, _ROUNDING * np.maximum(1.0, np.abs(images)), 0.0)
    low, high = coordinates.low - slack, coordinates.high + slack
    # NaN does not count as outside.
    outside = ((images < low) | (images > high)).any(axis=1)
    begun_outside = ((values < low) | (values > high)).any(axis=1)
    return np.asarray(~outside | begun_outside)


class Excess(NamedTuple):
    """A coordinate that lies outside the bounds of its space."""

    coordinate: str
    value: float
    bound: float

    @property
    def side(self) -> str:
        """The side of the bound on which the value lies, "below" or "above"."""
        return "below" if self.value < self.bound else "above"

    def __str__(self) -> str:
        return f"{self.coordinate} = {self.value:.6g} is {self.side} {self.bound:.6g}"


def find_excess(obs: Any, codec: SpaceCodec) -> Excess | None:
    """Find a coordinate of an observation that is outside the bounds of its space.

    Args:
        obs: the observation, usually an image under an element.
        codec: the codec of the observation space.

    Returns:
        The first coordinate out of bounds; None if all are within.
    """
    coordinates = codec.coordinates
    flat = codec.flatten(obs)
    slack = 1e-5 * np.maximum(1.0, np.abs(flat))  # bounds are declared in float32: 1e-5 is 80 of its units
    beyond = (flat < coordinates.low - slack) | (flat > coordinates.high + slack)
    if not beyond.any():
        return None
    j = int(np.argmax(beyond))
    bound = coordinates.low[j] if flat[j] < coordinates.low[j] else coordinates.high[j]
    return Excess(coordinates.names[j], float(flat[j]), float(bound))


class InvariantBox(spaces.Box):
    """A Box whose samples are uniform in balls of the components that rotations mix, hence rotation-invariant.

    Args:
        box: the space.
        blocks: the components of each ball, with its radius.
    """

    def __init__(self, box: spaces.Box, blocks: list[tuple[npt.NDArray[np.intp], float]]) -> None:
        super().__init__(box.low, box.high, dtype=box.dtype)
        self._np_random = box.np_random
        self._blocks = blocks

    def sample(self, mask: None = None, probability: None = None) -> Any:
        """One action, uniform within its balls and its other bounds."""
        drawn = super().sample()
        flat = drawn.reshape(-1)
        for components, radius in self._blocks:
            direction = self.np_random.normal(size=len(components))
            length = radius * self.np_random.uniform() ** (1 / len(components))
            flat[components] = direction / np.linalg.norm(direction) * length
        return drawn


def invariant_box(symmetry: ClaimedMaps, space: spaces.Space[Any]) -> InvariantBox | None:
    """The space with rotation-invariant samples; None if nothing rotates, or if the rotation is not known."""
    group, entries = symmetry.group, symmetry.algebra.get("action", ())
    size = size_of(space)
    if not isinstance(space, spaces.Box) or not isinstance(group, ContinuousGroup) or size is None:
        return None
    turning = [entry for i, entry in enumerate(entries) if group.turns(i) and isinstance(entry, LieEntry)]
    mixed = np.zeros((size, size), dtype=bool)
    for entry in turning:
        matrix = entry.generator(size)[0]
        if np.abs(matrix + matrix.T).max(initial=0) > 1e-9:  # the rotation preserves no norm
            return None
        mixed |= matrix != 0
    blocks = []
    limits = np.minimum(-space.low.reshape(-1), space.high.reshape(-1))
    for components in connected(mixed):
        radius = float(limits[components].min())
        if np.isfinite(radius) and radius > 0:
            blocks.append((components, radius))
    return InvariantBox(space, blocks) if blocks else None


def connected(mixed: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.intp]]:
    """The sets of two or more components that rotations mix."""
    left, found = {int(i) for i in np.flatnonzero(mixed.any(axis=0))}, []
    while left:
        reached, waiting = set(), [left.pop()]
        while waiting:
            i = waiting.pop()
            reached.add(i)
            waiting += [int(j) for j in np.flatnonzero(mixed[i]) if int(j) not in reached]
        left -= reached
        found.append(np.array(sorted(reached), dtype=np.intp))
    return found


@contextmanager
def invariant_actions(env: Any, symmetry: Any) -> Iterator[None]:
    """Make the environment's action space sample from a distribution that is invariant under the claim's rotations.

    Args:
        env: the environment whose `action_space` is sampled.
        symmetry: the claim; for finite groups nothing changes.
    """
    space = getattr(env, "action_space", None)
    box = invariant_box(symmetry, space) if isinstance(symmetry, ClaimedMaps) and space is not None else None
    if box is None:
        yield
        return
    env.action_space = box
    try:
        yield
    finally:
        env.action_space = space
