"""Suggests a group name for a misspelled one, such as "d4", "SO2" or "Z/4Z"."""

from __future__ import annotations

import re

_WRITTEN = re.compile(r"([a-z]+)[^a-z0-9]*(\d{1,6})[^a-z0-9]*z?[^a-z0-9]*")
_WITH_PARENTHESES = ("SO", "O", "SE", "E", "T")
_MEANT = {
    "C": ("c", "z", "cyc", "cyclic", "cycle"),
    "D": ("d", "dih", "dihedral", "dihedrl"),
    "S": ("s", "sym", "symmetric"),
    "A": ("a", "alt", "alternating"),
    "B": ("b", "bc", "hyperoctahedral", "cube"),
    "V": ("v", "k", "klein", "vierergruppe"),
    "Q": ("q", "quaternion"),
    "SO": ("so", "rot", "rotation", "rotations"),
    "O": ("o", "orthogonal"),
    "SE": ("se",),
    "E": ("e", "euclidean"),
    "T": ("t", "translation", "translations"),
}
_IN_WORDS = {
    "klein": "V4",
    "kleinfour": "V4",
    "vierergruppe": "V4",
    "quaternion": "Q8",
    "quaternions": "Q8",
    "trivial": "C1",
    "cyclic": "cyclic(4)",
    "dihedral": "dihedral(4)",
    "symmetric": "symmetric(3)",
}
# Common alternative names, with another letter or number.
_SPELLED = {"rot90": "C4", "rot180": "C2", "u1": "SO(2)"}


def near_name(text: str) -> str | None:
    """The short name that the user probably intended.

    Example:
        >>> near_name("d4"), near_name("SO2"), near_name("Z/4Z"), near_name("dihedral 6"), near_name("mirror")
        ('D4', 'SO(2)', 'C4', 'D6', None)
        >>> near_name("klein four"), near_name("quaternions")
        ('V4', 'Q8')
        >>> near_name("S0(2)"), near_name("rot90"), near_name("U(1)")
        ('SO(2)', 'C4', 'SO(2)')
    """
    letters = re.sub(r"[^a-z0-9]", "", text.lower())
    if letters in _SPELLED:
        return _SPELLED[letters]
    if re.fullmatch(r"s0\(\d+\)?", text.strip().lower()):  # the digit 0 instead of the letter O
        return f"SO({letters[2:]})"
    match = _WRITTEN.fullmatch(text.strip().lower())
    if match is None:
        return _IN_WORDS.get(re.sub(r"[^a-z]", "", text.lower()))
    letter = next((key for key, words in _MEANT.items() if match is not None and match[1] in words), None)
    if letter is None:
        return None
    if letter in _WITH_PARENTHESES:
        return f"{letter}({match[2]})"
    only = {"V": "V4", "Q": "Q8"}
    return only.get(letter, f"{letter}{int(match[2])}")
