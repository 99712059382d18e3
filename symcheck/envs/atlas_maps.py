"""Symmetries of the atlas that cannot be written as data, because a rotation shifts an angle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcheck.groups import catalog, continuous
from symcheck.symmetry.symmetry import Symmetry


def reacher_quarter_turn() -> Symmetry:
    """Reacher rotated by a quarter turn about its root: joint0 advances by pi/2, the target rotates, torques are fixed.

    Returns:
        The symmetry, under C4.

    Example:
        >>> reacher_quarter_turn().group.name
        'C4'
    """
    # cos maps to the position of sin, sin to that of -cos; the second joint is fixed; target and fingertip rotate.
    images = ["+3", "+2", "-1", "+4", "+6", "-5", "+7", "+8", "+10", "-9"]
    return Symmetry(
        "reacher/quarter-turn",
        catalog.cyclic(4),
        observation=[images],
        action=[["+1", "+2"]],
        state=[_quarter_turn],
    )


def reacher_turn() -> Symmetry:
    """Reacher rotated about its root by any angle: joint0 advances, target and fingertip rotate, torques are fixed.

    Returns:
        The symmetry, under SO(2).

    Example:
        >>> reacher_turn().group.name
        'SO(2)'
    """
    # (cos, sin) of joint0 rotate like the target and the vector to the fingertip; joint1 and velocities are fixed.
    return Symmetry(
        "reacher/turn",
        continuous.so(2),
        observation=[{"rotate": [[0, 2], [4, 5], [8, 9]]}],
        action=["identity"],
        state=[_turn],
    )


def _turn(state: Any, t: float) -> Any:
    """The state (joint0, joint1, target x, target y and their velocities) rotated by t.

    Joint0 stays in the same full turn.
    """
    image = np.array(state, dtype=np.float64)
    full = 2 * math.pi
    turns = math.floor((image[0] + math.pi) / full)
    image[0] = full * turns - math.pi + (image[0] + math.pi - full * turns + t) % full
    cos, sin = math.cos(t), math.sin(t)
    for x, y in ((2, 3), (6, 7)):
        image[x], image[y] = cos * state[x] - sin * state[y], sin * state[x] + cos * state[y]
    return image


def _quarter_turn(state: Any) -> Any:
    """The state (joint0, joint1, target x, target y and velocities) after a quarter turn.

    Four turns are exactly the identity.

    Angles move cyclically within a full turn, so that the map has order 4 on the real line too.
    """
    image = np.array(state, dtype=np.float64)
    # floor, not rounding: the angles of one full turn share one value, -pi included.
    full = 2 * math.pi
    turns = math.floor((image[0] + math.pi) / full)
    within = image[0] + math.pi - full * turns
    image[0] = full * turns - math.pi + (within + math.pi / 2) % full
    # Indices of (x, y) of the target's position and velocity; both rotate by 90 degrees, (x, y) -> (-y, x).
    for x, y in ((2, 3), (6, 7)):
        image[x], image[y] = -state[y], state[x]
    return image
