"""Recovers the matrix and offset of a batched function that is linear or affine.

A vector of distinct integers reveals a signed permutation in one call; other matrices are read column by column from
the basis vectors. Every result is tested on random values before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symcheck.array_types import Floats
from symcheck.entries.forms import SPATIAL_OPERATORS, AffineEntry, Entry, IdentityEntry, SpatialEntry, TreeEntry
from symcheck.errors import RepresentationError
from symcheck.groups.group import Group
from symcheck.mirror_functions.batched_function import close
from symcheck.mirror_functions.batched_values import Leaf
from symcheck.representations import constructors
from symcheck.representations.representation import Representation

Images = Callable[[Floats], Floats]
_WIDEST_BASIS = 1_024  # maximum number of columns: a basis of 1,024 vectors under 8 elements takes 64 MB
_LARGEST_RAMP = 2**23  # integers up to 2^24 are exact in float32, and signs and offsets need a bit


def recover(images: Images, group: Group, blocks: Sequence[int], samples: Floats) -> list[AffineEntry] | None:
    """The affine maps of the generators.

    Args:
        images: the batched function on one half: (n, columns) to (|G|, n, columns).
        group: the group, for the relations that the matrices obey.
        blocks: the block of each generator.
        samples: random values, shape (n, columns), on which the maps must agree with the function.

    Returns:
        One entry per generator, or None if the function is not affine on the samples.
    """
    width = samples.shape[1]
    # The image of 0 is the offset: images is (blocks, samples, columns).
    offsets = images(np.zeros((1, width)))[:, 0]
    entries = _recover_signed(images, offsets, blocks) if width <= _LARGEST_RAMP else None
    # Column by column costs `width` samples, so it is done only if the ramp shows no signed permutation.
    if entries is None and width <= _WIDEST_BASIS:
        entries = _recover_dense(images, offsets, group, blocks)
    if entries is None:
        return None
    # A function that is affine on the probes need not be affine: random samples decide.
    answers = images(samples)
    agrees = all(
        close(entry.apply(samples), answers[block]).all() for entry, block in zip(entries, blocks, strict=True)
    )
    return entries if agrees else None


def _recover_signed(images: Images, offsets: Floats, blocks: Sequence[int]) -> list[AffineEntry] | None:
    width = offsets.shape[1]
    # Distinct integers 1, 2, ...: the image shows the source and the sign of each component.
    ramp = np.arange(1, width + 1, dtype=np.float64)
    answers = images(ramp[None])[:, 0] - offsets
    entries = []
    for block in blocks:
        # Offsets are rounded to float32 relative to numbers up to `width`: an error of 1e-7 width, far below the step
        # of 1.
        if np.abs(answers[block] - np.rint(answers[block])).max() > 1e-6 * width + 1e-6:
            return None
        whole = np.rint(answers[block]).astype(np.int64)
        # In a signed permutation every number occurs once, up to sign.
        if not np.array_equal(np.sort(np.abs(whole)), np.arange(1, width + 1)):
            return None
        # The component with number k is the image of component k.
        index = np.argsort(np.abs(whole))
        offset = offsets[block] if offsets[block].any() else None
        entries.append(AffineEntry(index=index, sign=np.sign(whole[index]), offset=offset))
    return entries


def _recover_dense(images: Images, offsets: Floats, group: Group, blocks: Sequence[int]) -> list[AffineEntry] | None:
    width = offsets.shape[1]
    # Row j of each block is the image of e_j without the offset: column j of M.
    columns = images(np.eye(width)) - offsets[:, None, :]
    homogeneous = []
    for block in blocks:
        matrix = np.eye(width + 1)
        matrix[:width, :width] = columns[block].T
        matrix[:width, width] = offsets[block]
        homogeneous.append(matrix)
    # All generators together, because their relations distinguish rounding from intended entries.
    representation = _representation(group, homogeneous)
    if representation is None:
        return None
    exact = [np.asarray(representation.matrix(g), dtype=np.float64) for g in group.generators]
    shifts = [matrix[:width, width] for matrix in exact]
    return [
        # a zero offset in float32 may be a few 1e-8; below 1e-7 it counts as zero.
        AffineEntry(matrix=matrix[:width, :width], offset=shift if np.abs(shift).max() > 1e-7 else None)
        for matrix, shift in zip(exact, shifts, strict=True)
    ]


def _representation(group: Group, matrices: Sequence[Floats]) -> Representation | None:
    """The representation given by the matrices, otherwise the nearest one that float32 rounds to them."""
    # First try the given matrices; float32 entries violate relations by more than float64 rounding.
    for dtype in (np.float64, np.float32):
        try:
            return constructors.from_matrices(group, [matrix.astype(dtype) for matrix in matrices])
        except RepresentationError:
            continue
    return None


def permuted_values(images: Images, leaf: Leaf, blocks: Sequence[int]) -> list[AffineEntry] | None:
    """The permutations of the values of a Discrete space, or None if the generators do not permute them.

    Args:
        images: the batched function on one half.
        leaf: the only leaf, of a Discrete space.
        blocks: the block of each generator.
    """
    # Every value of the space once.
    values = np.arange(leaf.low[0], leaf.high[0] + 1)[:, None]
    answers = images(values)[:, :, 0] - leaf.low[0]
    entries = []
    for block in blocks:
        index = np.rint(answers[block]).astype(np.int64)
        # If two values have the same image, the map is not a permutation.
        if not np.array_equal(np.sort(answers[block]), np.arange(len(values))):
            return None
        entries.append(AffineEntry(index=index, sign=np.ones(len(index), dtype=np.int64)))
    return entries


def by_leaf(entry: AffineEntry, leaves: Sequence[Leaf]) -> Entry | None:
    """The map of a whole table as entries of a symmetry: one entry, or one per dictionary key.

    Args:
        entry: the entry on all columns.
        leaves: the arrays to which the columns belong.

    Returns:
        The entry; None if columns of one leaf map to another.
    """
    parts: dict[tuple[object, ...], Entry] = {}
    for leaf in leaves:
        # A map that mixes two entries of a dictionary has no entry per sub-space.
        own = _restrict_entry(entry, leaf.columns)
        if own is None:
            return None
        parts[leaf.path] = _spatial_form(own, leaf)
    # A single array, not a dictionary: no tree around it.
    if list(parts) == [()]:
        return parts[()]
    tree = TreeEntry()
    for path, part in parts.items():
        tree = _plant_entry(tree, path, part)
    return tree


def _restrict_entry(entry: AffineEntry, columns: slice) -> AffineEntry | None:
    offset = None if entry.offset is None or not entry.offset[columns].any() else entry.offset[columns]
    if entry.index is not None and entry.sign is not None:
        index = entry.index[columns] - columns.start
        # A component maps to a different array.
        if (index < 0).any() or (index >= columns.stop - columns.start).any():
            return None
        return AffineEntry(index=index, sign=entry.sign[columns], offset=offset)
    matrix = entry.dense()
    outside = np.ones(entry.dim, dtype=bool)
    outside[columns] = False
    # float32 errors of the probes, for a leaf that does not depend on the others
    if np.abs(matrix[columns][:, outside]).max(initial=0.0) > 1e-6:
        return None
    return AffineEntry(matrix=matrix[columns, columns], offset=offset)


def _spatial_form(entry: AffineEntry, leaf: Leaf) -> Entry:
    """The map of an image as a spatial operator if it is one; otherwise the same entry."""
    # Maps of vectors, and maps with offset or sign, are not spatial operators.
    if len(leaf.shape) < 2 or not entry.is_signed_permutation or entry.sign is None or (entry.sign < 0).any():
        return entry
    # Numbered pixels show the image of each pixel.
    places = np.arange(leaf.size)
    if np.array_equal(entry.apply(places), places):
        return IdentityEntry()
    square = leaf.shape[-1] == leaf.shape[-2]
    # rot90 and transpose on other shapes would exchange height and width.
    for name, operator in SPATIAL_OPERATORS.items():
        fits = square or name not in ("rot90", "transpose")
        if fits and np.array_equal(operator(places.reshape(leaf.shape)).reshape(-1), entry.apply(places)):
            return SpatialEntry(name)
    return entry


def _plant_entry(tree: TreeEntry, path: tuple[object, ...], part: Entry) -> TreeEntry:
    key, *rest = path
    if not rest:
        return TreeEntry({**tree.children, key: part})
    # Dictionaries inside dictionaries: one level of the tree per key of the path.
    below = tree.children.get(key, TreeEntry())
    inner = below if isinstance(below, TreeEntry) else TreeEntry()
    return TreeEntry({**tree.children, key: _plant_entry(inner, tuple(rest), part)})
