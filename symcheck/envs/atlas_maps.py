"""Symmetries of the atlas that cannot be written as data, because a rotation shifts an angle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcheck.groups import catalog, continuous
from symcheck.symmetry.symmetry import Symmetry


def reacher_quarter_turn() -> Symmetry:
    """Reacher turned by a quarter about its root: joint0 advances by pi/2, the target turns, torques stay.

    Returns:
        The symmetry, under C4.

    Example:
        >>> reacher_quarter_turn().group.name
        'C4'
    """
    # cos goes to the place of sin, sin to that of -cos; the second joint stays; target and fingertip turn.
    images = ["+3", "+2", "-1", "+4", "+6", "-5", "+7", "+8", "+10", "-9"]
    return Symmetry(
        "reacher/quarter-turn",
        catalog.cyclic(4),
        observation=[images],
        action=[["+1", "+2"]],
        state=[_quarter_turn],
    )


def reacher_turn() -> Symmetry:
    """Reacher turned about its root by any angle: joint0 advances, target and fingertip turn, torques stay.

    Returns:
        The symmetry, under SO(2).

    Example:
        >>> reacher_turn().group.name
        'SO(2)'
    """
    # (cos, sin) of joint0 turn as the target and the vector to the fingertip do; joint1 and velocities stay.
    return Symmetry(
        "reacher/turn",
        continuous.so(2),
        observation=[{"rotate": [[0, 2], [4, 5], [8, 9]]}],
        action=["identity"],
        state=[_turn],
    )


def _turn(state: Any, t: float) -> Any:
    """(joint0, joint1, target x, target y and their velocities), turned by t; joint0 stays within its full turn."""
    image = np.array(state, dtype=np.float64)
    full = 2 * math.pi
    turns = math.floor((image[0] + math.pi) / full)
    image[0] = full * turns - math.pi + (image[0] + math.pi - full * turns + t) % full
    cos, sin = math.cos(t), math.sin(t)
    for x, y in ((2, 3), (6, 7)):
        image[x], image[y] = cos * state[x] - sin * state[y], sin * state[x] + cos * state[y]
    return image


def _quarter_turn(state: Any) -> Any:
    """(joint0, joint1, target x, target y and their velocities) -> turned; four quarters return every angle exactly.

    Angles within a full turn are moved on cyclically, so that the map is of order 4 on the real line too.
    """
    image = np.array(state, dtype=np.float64)
    # floor, not rounding: the angles of one full turn share one value, -pi included.
    full = 2 * math.pi
    turns = math.floor((image[0] + math.pi) / full)
    within = image[0] + math.pi - full * turns
    image[0] = full * turns - math.pi + (within + math.pi / 2) % full
    # Places of (x, y): the target's position and its velocity; both turn by 90 degrees, (x, y) -> (-y, x).
    for x, y in ((2, 3), (6, 7)):
        image[x], image[y] = -state[y], state[x]
    return image
