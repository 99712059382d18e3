"""Rejects maps under which the image of an action lies outside a bounded action space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Array, Floats
from symcheck.errors import SpecError
from symcheck.spaces.coordinates import Coordinates, SpaceCodec
from symcheck.spaces.values import short_text

_SLACK = 4 * float(np.finfo(np.float32).eps)
"""Relative tolerance: exceeding the bound by a float32 rounding unit is a rounding error of the map, not a
violation."""


def refuse_exits(
    space: spaces.Space[Any], coordinates: Coordinates, actions: Any, images: Any, flat: Floats, where: str = "action"
) -> None:
    """Reject a map under which the image of a given action leaves the space.

    Args:
        space: the space of the actions, for the message.
        coordinates: the coordinates of the space, with their bounds.
        actions: the originals, for the message.
        images: the images of the actions, a list or stacked, for the message.
        flat: the images as vectors, (n, dim).
        where: the place of the map in messages.

    Raises:
        SpecError: the image of an action is not an action; the message names the first one.
    """
    slack = np.where(coordinates.epsilon > 0, _SLACK * np.maximum(1.0, np.abs(flat)), 0.0)
    inside = ((flat >= coordinates.low - slack) & (flat <= coordinates.high + slack)).all(axis=1)
    if inside.all():
        return
    first = int(np.argmin(inside))
    raise SpecError(
        f"the action map leaves the action space: the image of a = {short_text(actions[first])} is "
        f"{short_text(images[first])}, which is not in {space}.",
        where=where,
        remedy="The image of every action must be an action. If the bounds are not symmetric, add an offset.",
    )


def check_corners(act: Callable[[Array], Array], space: spaces.Space[Any], where: str) -> None:
    """Reject an affine map of a Box of actions that leaves the Box; testing corners suffices.

    Args:
        act: the map of stacked actions, float64.
        space: the space of the actions; spaces other than a Box are not checked.
        where: the place of the map in messages.

    Raises:
        SpecError: a corner goes outside; the message names it.

    Example:
        >>> check_corners(lambda actions: -actions, spaces.Box(-1, 2, (1,)), "action[0]")
        Traceback (most recent call last):
        symcheck.errors.SpecError: action[0]: the action map leaves the action space: the image of a = [2.0] is ...
    """
    if not isinstance(space, spaces.Box):
        return
    coordinates = SpaceCodec(space, "action").coordinates
    size = coordinates.dim
    probes = np.concatenate([np.zeros((1, size)), np.eye(size)])
    images = np.asarray(act(probes.reshape(-1, *space.shape)), dtype=np.float64).reshape(size + 1, size)
    # An unbounded coordinate is represented by a number that is larger than all bounds and offsets.
    known = np.concatenate([coordinates.low, coordinates.high, images[0]])
    far = 2.0 + 2.0 * np.abs(known[np.isfinite(known)]).max(initial=0.0)
    low, high = np.maximum(coordinates.low, -far), np.minimum(coordinates.high, far)
    # Row i: the signs of the actions that maximise coordinate i of the image.
    grows = (images[1:] - images[0]).T > 0
    corners = np.concatenate([np.where(grows, high, low), np.where(grows, low, high)])
    moved = np.asarray(act(corners.reshape(-1, *space.shape)), dtype=np.float64)
    refuse_exits(space, coordinates, corners.reshape(moved.shape), moved, moved.reshape(len(corners), size), where)
