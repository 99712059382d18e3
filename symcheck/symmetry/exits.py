"""Points that an element of a continuous group carries out of a bounded Box, and actions that no turn does.

A turn carries the corner of a square outside it. Pairs whose image lies there say nothing about the claim: they are
left out and counted. Whole episodes need a policy that the group leaves as it is: actions uniform in balls.
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
"""Relative to the bound: bounds and images are rounded to float32 once each."""


def stay_inside(coordinates: Coordinates, values: Floats, images: Floats) -> npt.NDArray[np.bool_]:
    """Which images are inside the bounds of their space, or belong to values that are outside themselves.

    Args:
        coordinates: of the space, with its bounds.
        values: the originals, (n, dim).
        images: (n, dim).

    Returns:
        (n,).
    """
    slack = np.where(coordinates.epsilon > 0, _ROUNDING * np.maximum(1.0, np.abs(images)), 0.0)
    low, high = coordinates.low - slack, coordinates.high + slack
    # NaN is no number outside.
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
        """On which side of the bound the value lies, "below" or "above"."""
        return "below" if self.value < self.bound else "above"

    def __str__(self) -> str:
        return f"{self.coordinate} = {self.value:.6g} is {self.side} {self.bound:.6g}"


def find_excess(obs: Any, codec: SpaceCodec) -> Excess | None:
    """Where an observation leaves the bounds of its space.

    Args:
        obs: usually an image.
        codec: of the observation space.

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
    """A Box whose samples are uniform in balls of the components that turns mix: no turn changes their distribution.

    Args:
        box: the space.
        blocks: components of one ball each, with its radius.
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
    """The space with samples that turns leave in distribution; None if nothing turns, or it is not known how."""
    group, entries = symmetry.group, symmetry.algebra.get("action", ())
    size = size_of(space)
    if not isinstance(space, spaces.Box) or not isinstance(group, ContinuousGroup) or size is None:
        return None
    turning = [entry for i, entry in enumerate(entries) if group.turns(i) and isinstance(entry, LieEntry)]
    mixed = np.zeros((size, size), dtype=bool)
    for entry in turning:
        matrix = entry.generator(size)[0]
        if np.abs(matrix + matrix.T).max(initial=0) > 1e-9:  # no length is preserved
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
    """The sets of components that turns mix, of two and more."""
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
    """Let the environment's action space draw actions whose distribution the claim's turns leave as it is.

    Args:
        env: whose `action_space` is asked for samples.
        symmetry: the claim; of finite groups nothing changes.
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
