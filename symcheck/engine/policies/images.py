"""Images of batches: observations and actions of a symmetry's group elements, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcheck.array_types import Floats
from symcheck.entries.forms import AffineEntry, Entry, FunctionEntry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

Batch = Floats | Mapping[Any, Floats]
_MOST_ELEMENTS = 16  # beyond it generators are tested, which suffice


def words_of(symmetry: Symmetry) -> list[tuple[int, ...]]:
    """The elements to test, as words in the generators: all but the identity of a small group, else the generators."""
    group = symmetry.group
    if group.order <= _MOST_ELEMENTS:
        return [word for g in group.elements() if (word := tuple(group.word(g)))]
    return [(letter,) for letter in range(len(group.generators))]


def image_of(entries: Sequence[Entry], word: Sequence[int], batch: Any, where: str) -> Any:
    """The image of a batch under a word of generators, the last letter applied first, as products are.

    Args:
        entries: one per generator.
        word: letters.
        batch: stacked values, or a mapping of them by key.
        where: names the part in messages.

    Returns:
        The same form.

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
            raise SpecError("is a mapping by key, and the data is one array.", where=where)
        return {
            key: _apply(entry.children[key], value, f"{where}[{key!r}]") if key in entry.children else value
            for key, value in batch.items()
        }
    if isinstance(batch, Mapping):
        raise SpecError(
            f"is one map, and the data holds {', '.join(map(str, batch))}.",
            where=where,
            remedy="Give one entry per key, or one array of observations.",
        )
    if isinstance(entry, FunctionEntry):
        return np.stack([np.asarray(entry.function(row)) for row in batch])
    if isinstance(entry, SpatialEntry):
        return entry.apply(batch)
    flat = batch.reshape(len(batch), -1)
    if flat.shape[1] != entry.dim:
        raise SpecError(f"acts on {entry.dim} numbers, and the data has {flat.shape[1]} a state.", where=where)
    return entry.apply(flat).reshape(batch.shape)


def unsigned(entries: Sequence[Entry]) -> list[Entry]:
    """The same maps without their signs, as deviations move; matrices that are no exchanges stay as they are."""
    return [
        AffineEntry(index=entry.index, sign=np.abs(entry.sign))
        if isinstance(entry, AffineEntry) and entry.index is not None and entry.sign is not None
        else entry
        for entry in entries
    ]
