"""Pairs names of left and right elements, in the conventions of robot models.

A name is split into words at underscores, dashes, dots, slashes, spaces, digits and changes of case; every word that
names a side is replaced by its counterpart: left/right, l/r, lf/rf, lh/rh, fl/fr, rl/rr, hl/hr, bl/br and similar
names.
"""

from __future__ import annotations

import re

_PAIRS = (
    ("left", "right"),
    ("l", "r"),
    ("lf", "rf"),
    ("lh", "rh"),
    ("lr", "rr"),
    ("lb", "rb"),
    ("fl", "fr"),
    ("hl", "hr"),
    ("bl", "br"),
    ("lm", "rm"),
    ("ml", "mr"),
    ("lleg", "rleg"),
    ("larm", "rarm"),
)
_OPPOSITE = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[^A-Za-z]+")
# "rl" is the rear left leg if there is "rr" (Unitree), otherwise the right counterpart of "ll"; the first meaning is
# more common.
_QUADRUPED = {"rl": "rr", "rr": "rl"}


def mirrored_names(name: str) -> tuple[str, ...]:
    """Possible names of the mirror image of an element, the most likely first; empty if the name contains no side.

    Args:
        name: the name of a body, joint, geom, actuator or tendon.

    Returns:
        Other names; never the name itself.

    Example:
        >>> mirrored_names("FL_hip_joint"), mirrored_names("left_knee"), mirrored_names("L_Foot")
        (('FR_hip_joint',), ('right_knee', 'knee'), ('R_Foot',))
        >>> mirrored_names("RR_calf"), mirrored_names("torso"), mirrored_names("thigh_l")
        (('RL_calf', 'LR_calf'), (), ('thigh_r',))
        >>> mirrored_names("thigh_left_joint")
        ('thigh_right_joint', 'thigh_joint')
    """
    words = _WORD.findall(name)
    # Quadruped names first, then the exchange of left and right, then a missing side.
    candidates = [_exchange_words(words, _QUADRUPED | {k: v for k, v in _OPPOSITE.items() if k not in _QUADRUPED})]
    candidates.append(_exchange_words(words, _OPPOSITE))
    candidates.append(_without_side(name))
    # Without repetitions, in order of likelihood.
    return tuple(dict.fromkeys(other for other in candidates if other and other != name))


def _exchange_words(words: list[str], opposite: dict[str, str]) -> str:
    return "".join(_in_case(word, opposite.get(word.lower(), word.lower())) for word in words)


def _without_side(name: str) -> str:
    """Names of models that mark only one side: `thigh_left` mirrors `thigh`."""
    lowered = name.lower()
    for side in ("left", "right"):
        for pattern in (f"_{side}", f"{side}_"):
            if pattern in lowered:
                start = lowered.index(pattern)
                return name[:start] + name[start + len(pattern) :]
    return ""


def _in_case(example: str, word: str) -> str:
    # Preserve the case of the replaced word: "Left" becomes "Right".
    if word == example.lower():
        return example
    if example.isupper():
        return word.upper()
    return word.capitalize() if example[0].isupper() else word


def are_mirrored(name: str, other: str) -> bool:
    """Whether two names are each other's mirror image.

    Example:
        >>> are_mirrored("L_elbow", "R_elbow"), are_mirrored("torso", "torso"), are_mirrored("hip_1", "hip_4")
        (True, False, False)
    """
    return other in mirrored_names(name) or name in mirrored_names(other)
