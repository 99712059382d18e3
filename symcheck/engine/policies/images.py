"""Images of batches: group elements applied to arrays of observations and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.entries.forms import AffineEntry, Entry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.entries.lie_forms import ElementEntry
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

_MOST_ELEMENTS = 16  # maximum number of tested elements; for larger groups the generators suffice


def words_of(symmetry: Symmetry) -> list[tuple[int, ...]]:
    """The elements to test, as words in the generators.

    For a small group: all elements except the identity. Otherwise: the generators.

    For a continuous group, the generators are its tested elements (`Symmetry.at_elements`).
    """
    group = symmetry.group
    if group.order <= _MOST_ELEMENTS:
        return [word for g in group.elements() if (word := tuple(group.word(g)))]
    return [(letter,) for letter in range(len(group.generators))]


def image_of(entries: Sequence[Entry], word: Sequence[int], batch: Any, where: str) -> Any:
    """The image of a batch under a word of generators; the last letter is applied first, as in products.

    Args:
        entries: the entries, one per generator.
        word: the letters of the element.
        batch: stacked values, or a mapping of them by key.
        where: name of the part, for messages.

    Returns:
        The images, in the same form.

    Raises:
        SpecError: an entry does not fit.
    """
    for letter in reversed(word):
        batch = _apply(entries[letter], batch, where)
    return batch


def _apply(entry: Entry, batch: Any, where: str) -> Any:
    if isinstance(entry, IdentityEntry):
        return batch
    if isinstance(entry, TreeEntry):
        if not isinstance(batch, Mapping):
            raise SpecError("the entry is a mapping by key, but the data is one array.", where=where)
        return {
            key: _apply(entry.children[key], value, f"{where}[{key!r}]") if key in entry.children else value
            for key, value in batch.items()
        }
    if isinstance(batch, Mapping):
        raise SpecError(
            f"the entry is a single map, but the data has the keys {', '.join(map(str, batch))}.",
            where=where,
            remedy="Give one entry per key, or one array of observations.",
        )
    if isinstance(entry, FunctionEntry):
        return np.stack([np.asarray(entry.function(row)) for row in batch])
    if isinstance(entry, SpatialEntry):
        return entry.apply(batch)
    flat = batch.reshape(len(batch), -1)
    vectors = _sized(entry, flat.shape[1])
    if flat.shape[1] != vectors.dim:
        raise SpecError(
            f"the entry acts on {vectors.dim} components, but each state in the data has {flat.shape[1]}.", where=where
        )
    return vectors.apply(flat).reshape(batch.shape)


def image_of_deviations(entries: Sequence[Entry], word: Sequence[int], deviations: Floats, where: str) -> Floats:
    """Standard deviations of transformed actions with independent components: variances transform by squared entries.

    Args:
        entries: the entries of the action map, one per generator.
        word: the letters of the element.
        deviations: shape (N, m).
        where: name of the part, for messages.

    Returns:
        Shape (N, m). Signed permutations permute deviations without changing their sign; rotations preserve equal
        deviations.
    """
    for letter in reversed(word):
        entry = _sized(entries[letter], deviations.shape[1])
        if isinstance(entry, AffineEntry):
            deviations = np.sqrt(np.square(deviations) @ np.square(entry.dense()).T)
        else:
            deviations = _apply(entry, deviations, where)
    return deviations


def _sized(entry: Any, dim: int) -> Any:
    """The map of vectors of this length.

    For continuous groups, the tested element accepts every length that it fits.
    """
    return entry.sized(max(dim, entry.least)) if isinstance(entry, ElementEntry) else entry
