"""Whether the images under a symmetry involve no rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcheck.entries.forms import AffineEntry, IdentityEntry
from symcheck.groups.element import Word
from symcheck.spaces.probing import linear_map
from symcheck.symmetry.bound import BoundSymmetry


def images_are_exact(bound: BoundSymmetry, word: Word, observation: Callable[[], Any]) -> bool:
    """Whether images involve no rounding: the maps are signed permutations, given as data or found by evaluation.

    Args:
        bound: the symmetry.
        word: the element.
        observation: returns an observation at which maps that are not data are evaluated.
    """
    entries: list[Any] = [*bound.symmetry.observation, *(bound.symmetry.state or ())]
    if all(
        isinstance(entry, IdentityEntry) or (isinstance(entry, AffineEntry) and entry.is_signed_permutation)
        for entry in entries
    ):
        return True
    if bound.has_state:
        return False
    linear = linear_map(lambda obs: bound.observation(word, obs), observation())
    if linear is None or linear[1].any():
        return False
    return bool((np.isin(linear[0], (-1.0, 0.0, 1.0))).all() and ((linear[0] != 0).sum(axis=1) == 1).all())
