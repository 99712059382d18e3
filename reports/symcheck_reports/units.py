"""Names and units of the coordinates of well-known environments.

Tables show them, so a reader sees, for instance, that the third component is an angle in radians. The names and units
are those of Gymnasium's documentation. To add an environment: list the pattern of its ids with one (name, unit) per
coordinate, "" if the number has no unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_Labels = Sequence[tuple[str, str]]
_CART_POLE = (("x", "m"), ("x speed", "m/s"), ("theta", "rad"), ("theta speed", "rad/s"))
_CAR = (("position", ""), ("velocity", ""))
_PENDULUM = (("cos theta", ""), ("sin theta", ""), ("theta speed", "rad/s"))
_ACROBOT = (
    ("cos theta1", ""),
    ("sin theta1", ""),
    ("cos theta2", ""),
    ("sin theta2", ""),
    ("theta1 speed", "rad/s"),
    ("theta2 speed", "rad/s"),
)
_LANDER = (
    ("x", ""),
    ("y", ""),
    ("x speed", ""),
    ("y speed", ""),
    ("angle", "rad"),
    ("spin", ""),
    ("left leg on ground", ""),
    ("right leg on ground", ""),
)
_KNOWN: Sequence[tuple[re.Pattern[str], _Labels]] = (
    (re.compile(r"\bCartPole-v\d"), _CART_POLE),
    (re.compile(r"\bMountainCar(Continuous)?-v\d"), _CAR),
    (re.compile(r"\bPendulum-v\d"), _PENDULUM),
    (re.compile(r"\bAcrobot-v\d"), _ACROBOT),
    (re.compile(r"\bLunarLander(Continuous)?-v\d"), _LANDER),
)
_PLACE = re.compile(r"(?:s|obs|observation|next s)\[(\d+)\]")


def label(target: str, place: str) -> str:
    """The name of a coordinate, with its unit.

    Args:
        target: the environment's id.
        place: the coordinate as in reports, for instance "observation[2]" or "s[2]".

    Returns:
        Name and unit; "" for an unknown environment or place.

    Example:
        >>> label("CartPole-v1", "observation[2]"), label("CartPole-v1", "reward"), label("Mine-v0", "s[0]")
        ('theta, rad', '', '')
    """
    match = _PLACE.fullmatch(place)
    labels = next((labels for pattern, labels in _KNOWN if pattern.search(target)), ())
    if match is None or int(match[1]) >= len(labels):
        return ""
    name, unit = labels[int(match[1])]
    return f"{name}, {unit}" if unit else name


def labelled(target: str, place: str) -> str:
    """The coordinate with its name in brackets, if that is known.

    Example:
        >>> labelled("CartPole-v1", "s[0]"), labelled("CartPole-v1", "a")
        ('s[0] (x, m)', 'a')
    """
    name = label(target, place)
    return f"{place} ({name})" if name else place
