"""The spaces on which a Lie generator may act: vectors of real numbers only.

A rotation by a generic angle maps integers to non-integers and pixels between pixels, so on integers and images a Lie
generator must be the identity. A shift leaves every bounded Box, so bounded actions may not be shifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from symcheck.entries.forms import IdentityEntry, TreeEntry
from symcheck.entries.lie_forms import LieEntry
from symcheck.errors import SpecError

if TYPE_CHECKING:
    from symcheck.symmetry.claimed_maps import ClaimedMaps

_FINITE = 'Use a finite group there, such as C4 for rotations by 90 degrees, or leave that part unchanged ("identity").'


def check_space(symmetry: ClaimedMaps, part: str, space: spaces.Space[Any]) -> None:
    """Reject entries of Lie generators that do not fit a space.

    Args:
        symmetry: a symmetry of a continuous group.
        part: "observation" or "action".
        space: the environment's space.

    Raises:
        SpecError: a different size, a space of integers, an image, or a shift of bounded actions.
    """
    for i, entry in enumerate(symmetry.algebra[part]):
        _check(entry, space, f"{part}[{i}]", of_actions=part == "action")


def _check(entry: Any, space: spaces.Space[Any] | None, where: str, *, of_actions: bool) -> None:
    if isinstance(entry, IdentityEntry) or space is None:
        return
    if isinstance(entry, TreeEntry):
        below = subspaces(space)
        for key, child in entry.children.items():
            known = below.get(key, below.get(int(key) if str(key).isdigit() else key))
            _check(child, known, f"{where}[{key!r}]", of_actions=of_actions)
        return
    if _is_still(entry):
        return
    if not isinstance(space, spaces.Box):
        if isinstance(entry, LieEntry) or isinstance(
            space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
        ):
            raise SpecError(
                f"a Lie generator acts on vectors of real numbers, got {space}.", where=where, remedy=_FINITE
            )
        return
    if not np.issubdtype(space.dtype, np.floating) or len(space.shape) >= 3:
        kind = "an image" if len(space.shape) >= 2 else "whole numbers"
        raise SpecError(
            f"a Lie generator acts on vectors of real numbers, got {kind}: {space}.", where=where, remedy=_FINITE
        )
    if not isinstance(entry, LieEntry):
        return
    size = int(np.prod(space.shape))
    if (entry.size is not None and entry.size != size) or entry.least > size:
        raise SpecError(
            f"the entry acts on {entry.size or entry.least} components, but the space has {size}: {space}.",
            where=where,
            remedy=f"Write the entry for {size} components, in the order of the space.",
        )
    if of_actions and entry.shift is not None:
        bounded = np.isfinite(space.low).reshape(-1) | np.isfinite(space.high).reshape(-1)
        moved = np.flatnonzero(bounded & (entry.shift != 0))
        if len(moved):
            raise SpecError(
                f"the entry shifts component {moved[0]}, but the space is bounded, so images may lie "
                f"outside it: {space}.",
                where=where,
                remedy="Actions in a bounded Box may rotate but not shift.",
            )


def _is_still(entry: Any) -> bool:
    """Whether an entry is the identity, as on a scalar."""
    if not isinstance(entry, LieEntry) or entry.planes:
        return False
    return not any(given is not None and given.any() for given in (entry.matrix, entry.shift))


def size_of(space: spaces.Space[Any] | None) -> int | None:
    """The number of components of a space of vectors; None for other spaces."""
    return int(np.prod(space.shape)) if isinstance(space, spaces.Box) else None


def subspaces(space: spaces.Space[Any] | None) -> Mapping[Any, spaces.Space[Any]]:
    """The sub-spaces of a Dict or Tuple by key or position."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else {}
