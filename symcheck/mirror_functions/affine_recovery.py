"""Reading a map off its values: the matrix and offset of a batched function that is linear or affine.

A vector of distinct whole numbers shows a signed permutation in one call; other matrices are read column by column from
the basis vectors. Whatever is read is tried on random values before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symcheck.entries.forms import SPATIAL_OPERATORS, AffineEntry, Entry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.errors import RepresentationError
from symcheck.groups.group import Group
from symcheck.mirror_functions.batched_function import close
from symcheck.mirror_functions.batched_values import Leaf, Table
from symcheck.representations import constructors
from symcheck.representations.representation import Representation

Images = Callable[[Table], Table]
_WIDEST_BASIS = 1_024  # columns: a basis of 1,024 vectors under 8 elements is 64 MB
_LARGEST_RAMP = 2**23  # whole numbers up to 2^24 are exact in float32, and signs and offsets need a bit


def recover(images: Images, group: Group, blocks: Sequence[int], samples: Table) -> list[AffineEntry] | None:
    """The affine maps that generators act by.

    Args:
        images: the batched function on one half: (n, columns) to (|G|, n, columns).
        group: the group, for the relations that the matrices obey.
        blocks: which block each generator is.
        samples: random values, shape (n, columns), on which the maps must say what the function says.

    Returns:
        One entry per generator, or None where the function is not affine on the samples.
    """
    width = samples.shape[1]
    offsets = images(np.zeros((1, width)))[:, 0]
    entries = _signed(images, offsets, blocks) if width <= _LARGEST_RAMP else None
    if entries is None and width <= _WIDEST_BASIS:
        entries = _dense(images, offsets, group, blocks)
    if entries is None:
        return None
    seen = images(samples)
    agrees = all(close(entry.apply(samples), seen[block]).all() for entry, block in zip(entries, blocks, strict=True))
    return entries if agrees else None


def _signed(images: Images, offsets: Table, blocks: Sequence[int]) -> list[AffineEntry] | None:
    width = offsets.shape[1]
    ramp = np.arange(1, width + 1, dtype=np.float64)
    seen = images(ramp[None])[:, 0] - offsets
    entries = []
    for block in blocks:
        # Offsets are rounded to float32 beside numbers of up to `width`: 1e-7 of it, far below the step of 1.
        if np.abs(seen[block] - np.rint(seen[block])).max() > 1e-6 * width + 1e-6:
            return None
        whole = np.rint(seen[block]).astype(np.int64)
        if not np.array_equal(np.sort(np.abs(whole)), np.arange(1, width + 1)):
            return None
        index = np.argsort(np.abs(whole))
        offset = offsets[block] if offsets[block].any() else None
        entries.append(AffineEntry(index=index, sign=np.sign(whole[index]), offset=offset))
    return entries


def _dense(images: Images, offsets: Table, group: Group, blocks: Sequence[int]) -> list[AffineEntry] | None:
    width = offsets.shape[1]
    seen = images(np.eye(width)) - offsets[:, None, :]
    homogeneous = []
    for block in blocks:
        matrix = np.eye(width + 1)
        matrix[:width, :width] = seen[block].T
        matrix[:width, width] = offsets[block]
        homogeneous.append(matrix)
    found = _representation(group, homogeneous)
    if found is None:
        return None
    exact = [np.asarray(found.matrix(g), dtype=np.float64) for g in group.generators]
    shifts = [matrix[:width, width] for matrix in exact]
    return [
        AffineEntry(matrix=matrix[:width, :width], offset=shift if np.abs(shift).max() > 1e-7 else None)
        for matrix, shift in zip(exact, shifts, strict=True)
    ]


def _representation(group: Group, matrices: Sequence[Table]) -> Representation | None:
    """The representation that the matrices are, else the nearest one that float32 rounds to them."""
    for dtype in (np.float64, np.float32):
        try:
            return constructors.from_matrices(group, [matrix.astype(dtype) for matrix in matrices])
        except RepresentationError:
            continue
    return None


def permuted_values(images: Images, leaf: Leaf, blocks: Sequence[int]) -> list[AffineEntry] | None:
    """How generators permute the values of a Discrete space, or None where they do not.

    Args:
        images: the batched function on one half.
        leaf: the only leaf, of a Discrete space.
        blocks: which block each generator is.
    """
    values = np.arange(leaf.low[0], leaf.high[0] + 1)[:, None]
    seen = images(values)[:, :, 0] - leaf.low[0]
    entries = []
    for block in blocks:
        index = np.rint(seen[block]).astype(np.int64)
        if not np.array_equal(np.sort(seen[block]), np.arange(len(values))):
            return None
        entries.append(AffineEntry(index=index, sign=np.ones(len(index), dtype=np.int64)))
    return entries


def by_leaf(entry: AffineEntry, leaves: Sequence[Leaf]) -> Entry | None:
    """The map of a whole table as entries of a symmetry: one, or one per dictionary entry.

    Args:
        entry: acts on all columns.
        leaves: where the columns belong.

    Returns:
        The entry; None where columns of one leaf move into another.
    """
    parts: dict[tuple[object, ...], Entry] = {}
    for leaf in leaves:
        own = _restricted(entry, leaf.columns)
        if own is None:
            return None
        parts[leaf.path] = _named(own, leaf)
    if list(parts) == [()]:
        return parts[()]
    tree = TreeEntry()
    for path, part in parts.items():
        tree = _planted(tree, path, part)
    return tree


def _restricted(entry: AffineEntry, columns: slice) -> AffineEntry | None:
    offset = None if entry.offset is None or not entry.offset[columns].any() else entry.offset[columns]
    if entry.index is not None and entry.sign is not None:
        index = entry.index[columns] - columns.start
        if (index < 0).any() or (index >= columns.stop - columns.start).any():
            return None
        return AffineEntry(index=index, sign=entry.sign[columns], offset=offset)
    matrix = entry.dense()
    outside = np.ones(entry.dim, dtype=bool)
    outside[columns] = False
    if np.abs(matrix[columns][:, outside]).max(initial=0.0) > 1e-6:  # float32 probes of a leaf that ignores the others
        return None
    return AffineEntry(matrix=matrix[columns, columns], offset=offset)


def _named(entry: AffineEntry, leaf: Leaf) -> Entry:
    """The spatial operator that an image's map is, where it is one; the same entry else."""
    if len(leaf.shape) < 2 or not entry.is_signed_permutation or entry.sign is None or (entry.sign < 0).any():
        return entry
    places = np.arange(leaf.size)
    if np.array_equal(entry.apply(places), places):
        return IdentityEntry()
    square = leaf.shape[-1] == leaf.shape[-2]
    for name, operator in SPATIAL_OPERATORS.items():
        fits = square or name not in ("rot90", "transpose")
        if fits and np.array_equal(operator(places.reshape(leaf.shape)).reshape(-1), entry.apply(places)):
            return SpatialEntry(name)
    return entry


def _planted(tree: TreeEntry, path: tuple[object, ...], part: Entry) -> TreeEntry:
    key, *rest = path
    if not rest:
        return TreeEntry({**tree.children, key: part})
    below = tree.children.get(key, TreeEntry())
    inner = below if isinstance(below, TreeEntry) else TreeEntry()
    return TreeEntry({**tree.children, key: _planted(inner, tuple(rest), part)})
