"""Orbits of observations: the representative of each orbit, and the elements that map an observation to it.

The representative is the last image in lexicographic order: the first component is as large as possible, then the
second, and so on. All observations of an orbit have the same images, hence the same representative. If some elements
leave an observation unchanged, several elements lead to its representative. All of them are found, because an
equivariant policy must not prefer one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools
from symcheck.entries.forms import AffineEntry, Entry, IdentityEntry, SpatialEntry
from symcheck.errors import SpecError
from symcheck.symmetry.bound import BoundSymmetry

Word: TypeAlias = tuple[int, ...]
MOST_ELEMENTS = 10_000
"""Maximum order of the group. Every observation is mapped by every element; at this order a step takes about a tenth of
a second."""


class Elements:
    """The elements of a symmetry's group as words, with their inverses.

    Attributes:
        words: a word of each element, the identity first.
        inverses: a word of each element's inverse.
        names: readable names.
        copies: whether images are copies of the observation's own numbers, up to signs, so that ties are exact.
    """

    def __init__(self, bound: BoundSymmetry) -> None:
        group = bound.group
        if group.order > MOST_ELEMENTS:
            raise SpecError(
                f"{group.name} has {group.order:,} elements, but at most {MOST_ELEMENTS:,} are allowed, "
                "because every observation is transformed by every element.",
                where="symmetry",
                remedy="Use a symmetry under a subgroup.",
            )
        elements = group.elements()
        self.words: tuple[Word, ...] = tuple(group.word(g) for g in elements)
        self.inverses: tuple[Word, ...] = tuple(group.word(~g) for g in elements)
        self.names: tuple[str, ...] = tuple(group.element_name(g) for g in elements)
        self.copies = all(_copies(entry) for entry in bound.symmetry.observation)

    def __len__(self) -> int:
        return len(self.words)


def _copies(entry: Entry) -> bool:
    if isinstance(entry, AffineEntry):
        return entry.index is not None and entry.offset is None
    return isinstance(entry, IdentityEntry | SpatialEntry)


_MOST_LISTED = 64


def leading_one(images: Sequence[Any], *, copies: bool) -> Bools:
    """`leading` for one observation; short vectors whose images are copies take microseconds.

    Args:
        images: the image of the observation under each element.
        copies: as in `Elements`.

    Returns:
        Shape (elements,).
    """
    first = images[0]
    if copies and isinstance(first, np.ndarray | np.generic) and first.size <= _MOST_LISTED:
        # Lists compare in lexicographic order, as the representative is defined.
        rows = [np.asarray(image).reshape(-1).tolist() for image in images]
        best = max(rows)
        if all(number == number for number in best):  # NaN does not equal itself; the general code handles it
            return np.array([row == best for row in rows])
    # A batch of one for the general code.
    single = [[image] if isinstance(image, Mapping | tuple) else np.asarray(image)[None] for image in images]
    return leading(single, 1)[:, 0]


def leading(images: Sequence[Any], count: int) -> Bools:
    """The elements that lead to the representative.

    Args:
        images: for each element the images of `count` observations, stacked, or as lists of structured values.
        count: the number of observations.

    Returns:
        Shape (elements, count): True if the image is the representative. A column contains several True values if
            elements of the group fix the observation.

    Cost: elements times components, until one image is the largest.
    """
    # (elements, count, components).
    flat = np.stack([_flatten_values(image, count) for image in images])
    tolerance = _tolerance(flat)
    alive = np.ones(flat.shape[:2], dtype=np.bool_)
    # Components that no element changes are irrelevant.
    differing = np.flatnonzero((flat != flat[0]).any(axis=(0, 1)))
    # Lexicographic order: each component keeps only the elements with the largest value.
    for component in differing:
        if (alive.sum(axis=0) == 1).all():
            break
        values = flat[:, :, component]
        largest = np.where(alive, values, -np.inf).max(axis=0)
        alive &= ~(values < largest - tolerance)  # NaN counts as largest, because it compares as not smaller
    return alive


def _flatten_values(image: Any, count: int) -> npt.NDArray[np.float64]:
    """Stacked values as rows of numbers; structured values by their leaves, sorted by key."""
    if isinstance(image, np.ndarray) and image.dtype != object:
        return image.reshape(count, math.prod(image.shape[1:])).astype(np.float64)
    return np.stack([np.concatenate(_leaves(value)) for value in image])


def _leaves(value: Any) -> list[npt.NDArray[np.float64]]:
    if isinstance(value, Mapping):
        # Sorted keys: the order must not depend on how a dictionary was built.
        return [leaf for key in sorted(value, key=str) for leaf in _leaves(value[key])]
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [np.asarray(value, dtype=np.float64).reshape(-1)]


def _tolerance(flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The tolerance within which components are equal: 64 float32 units at the observation's scale.

    Signed permutations are exact and need no tolerance; a float32 matrix product has an error of a few units.
    """
    # Images that only rearrange and negate are exact: any difference counts.
    exact = (np.sort(np.abs(flat), axis=2) == np.sort(np.abs(flat[:1]), axis=2)).all()
    # The largest finite component of each observation over all elements.
    scale = np.abs(np.where(np.isfinite(flat), flat, 0.0)).max(axis=(0, 2), initial=0.0)
    result: npt.NDArray[np.float64] = scale * (0.0 if exact else 64 * float(np.finfo(np.float32).eps))
    return result
