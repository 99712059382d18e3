"""Orbits of matrix entries under pairs of signed permutations.

For signed permutations K and L, K W = W L means that the entries (i, j) and (K i, L j) of W are equal up to sign. The
entries therefore form orbits, and each orbit is one basis matrix with one free coefficient. An orbit that contains an
entry with both signs must vanish; to detect that, every entry is doubled into a point "+" and a point "-", and such an
orbit contains both. Only the generators are needed, for a group of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Ints
from symcheck.representations.signed_images import SignedImages


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbits of `size` entries.

    Attributes:
        count: the number of orbits that are not forced to vanish: the rank.
        index: (size,), the orbit of each entry; 0 if `sign` is 0.
        sign: (size,), the entry's sign relative to its orbit's first entry; 0 if the entry must vanish.
    """

    count: int
    index: Ints
    sign: npt.NDArray[np.int8]


def entry_maps(outs: Sequence[SignedImages], ins: Sequence[SignedImages]) -> list[SignedImages]:
    """For each generator, the image of every entry of a (dim_out, dim_in) matrix, flattened row by row.

    Args:
        outs: the images K of the output representation, one per generator.
        ins: the images L of the input representation, one per generator.

    Returns:
        Signed images of dimension dim_out * dim_in.
    """
    maps = []
    for K, L in zip(outs, ins, strict=True):
        # Entry (i, j) has number i * dim_in + j; K acts on rows, L on columns.
        index = (K.index[:, None] * L.dim + L.index).ravel()
        maps.append(SignedImages(index, (K.sign[:, None] * L.sign).ravel()))
    return maps


def find(maps: Sequence[SignedImages]) -> Orbits:
    """Find the orbits of the entries under signed maps.

    Args:
        maps: for each generator, a signed permutation of the entries, all of the same size.

    Returns:
        The orbits, numbered by their first entry.

    Example:
        >>> swap = SignedImages(np.array([1, 0, 2]), np.array([1, 1, -1]))
        >>> found = find([swap])
        >>> found.count, found.index.tolist(), found.sign.tolist()
        (1, [0, 0, 0], [1, 1, 0])

    Cost: the number of entries times the number of generators, times a few rounds (logarithmic in the orbits' size).
    """
    size = maps[0].dim
    # Without signs no entry can be its own negative: one sheet suffices.
    if all(bool((m.sign > 0).all()) for m in maps):
        return _number_orbits(components([m.index for m in maps]), np.ones(size, dtype=np.int8))
    # Entry e on sheet + and on sheet -: a map that changes its sign changes its sheet.
    both = components([_on_sheets(m) for m in maps])
    plus, minus = both[:size], both[size:]
    # The smaller of the two sheets' labels identifies the orbit.
    root = np.minimum(plus, minus)
    # If a component contains both sheets, e = -e, so these entries vanish.
    sign = np.where(plus == minus, 0, np.where(plus == root, 1, -1)).astype(np.int8)
    return _number_orbits(root, sign)


def _on_sheets(m: SignedImages) -> Ints:
    """The map on 2 size points: entry e on sheet + is point e, on sheet - point size + e."""
    flip = m.sign < 0
    size = m.dim
    return np.concatenate([m.index + size * flip, m.index + size * ~flip])


def _number_orbits(root: Ints, sign: npt.NDArray[np.int8]) -> Orbits:
    kept = sign != 0
    # The first entry of an orbit is its own root.
    first = (root == np.arange(len(root))) & kept
    number = np.cumsum(first) - 1
    # Vanishing entries refer to orbit 0 and have sign 0.
    index = number[root] * kept
    return Orbits(count=int(number[-1]) + 1, index=index, sign=sign)


def components(maps: Sequence[Ints]) -> Ints:
    """The smallest point of each point's orbit under permutations.

    Every point has a label. In each round, the labels of connected points are attached to the smaller one, and chains
    of labels are halved until each points at a root.

    Args:
        maps: permutations of 0..n-1.

    Returns:
        (n,) labels.

    Example:
        >>> components([np.array([1, 0, 3, 2])]).tolist()
        [0, 0, 2, 2]

    Source: Y. Shiloach and U. Vishkin, "An O(log n) parallel connectivity algorithm", J. Algorithms 3 (1982).
    """
    # Labels decrease to the smallest connected point, one map after the other.
    label = np.arange(len(maps[0]))
    changed = True
    while changed:
        changed = False
        for target in maps:
            image = label[target]
            differ = label != image
            if differ.any():
                changed = True
                labels, image_labels = label[differ], image[differ]
                # Both labels belong to the same orbit: replace the larger by the smaller, for all pairs at once.
                np.minimum.at(label, np.maximum(labels, image_labels), np.minimum(labels, image_labels))
                label = _flatten(label)
    return label


def _flatten(label: Ints) -> Ints:
    while True:
        # Replace labels by their labels until every label is a root; this halves chains each time.
        further = label[label]
        if (further == label).all():
            return label
        label = further
