"""Vectorised tools for sparse rows: gathering, summing, and hashing independently of the order of entries.

Sums of 64-bit hashes do not depend on the order of their terms, so a row (or the set of actions of a state) is
represented by one number. Two rows have the same number if and only if their entries agree, up to a collision of
probability 2^-64 per pair. Every conclusion drawn from hashes is verified on the arrays afterwards.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from symcheck.array_types import Hashes, Ints

Csr: TypeAlias = "sparse.csr_array[np.float64]"

# Sebastiano Vigna's constants of splitmix64; the first one is 2^64 over the golden ratio.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix_bits(values: npt.NDArray[np.generic], salt: int = 0) -> Hashes:
    """A bijection of 64-bit integers in which every input bit affects all output bits (splitmix64's finalizer).

    Args:
        values: integers of any width.
        salt: selects the bijection.

    Returns:
        Hashes of the same shape.

    Example:
        >>> len(set(mix_bits(np.arange(1000)).tolist()))
        1000
    """
    # Odd multiples of the constant keep the streams of different salts disjoint.
    x: Hashes = values.astype(np.uint64) + np.uint64(_GOLDEN * (2 * salt + 1) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def hash_pairs(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic], salt: int = 0) -> Hashes:
    """One hash for each ordered pair of integers."""
    # Not symmetric: (1, 2) and (2, 1) have different hashes.
    return mix_bits(mix_bits(first, salt) + second.astype(np.uint64), salt + 1)


def row_sums(hashes: Hashes, indptr: Ints) -> Hashes:
    """The sums, modulo 2^64, of the entries between consecutive pointers; 0 for an empty row.

    Args:
        hashes: one per entry.
        indptr: row pointers as in a CSR matrix, shape (rows + 1,).

    Returns:
        Shape (rows,).

    Example:
        >>> row_sums(np.array([1, 2, 3], dtype=np.uint64), np.array([0, 2, 2, 3])).tolist()
        [3, 0, 3]
    """
    running = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.cumsum(hashes, out=running[1:])
    # Differences of running sums are exact modulo 2^64.
    return running[indptr[1:]] - running[indptr[:-1]]


def gather_rows(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The positions of the entries of some rows.

    Args:
        indptr: row pointers as in a CSR matrix.
        rows: the requested rows.

    Returns:
        The positions of their entries, row after row, and the pointers of the gathered rows, shape (len(rows) + 1,).

    Example:
        >>> [part.tolist() for part in gather_rows(np.array([0, 2, 2, 3]), np.array([2, 0]))]
        [[2, 0, 1], [0, 1, 3]]
    """
    lengths = indptr[rows + 1] - indptr[rows]
    pointers = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=pointers[1:])
    # The offset of each row's entries after the rows are concatenated.
    shift = np.repeat(indptr[rows] - pointers[:-1], lengths)
    return np.arange(pointers[-1], dtype=np.int64) + shift, pointers


def row_of_entry(indptr: npt.NDArray[np.signedinteger]) -> Ints:
    """The row of every entry."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def renumber(labels: npt.NDArray[np.generic]) -> Ints:
    """Renumber labels 0, 1, ... in the order of their first appearance.

    Example:
        >>> renumber(np.array([7, 3, 7, 9])).tolist()
        [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    # Labels ranked by first appearance, not by size.
    rank[np.argsort(first)] = np.arange(len(first))
    result: Ints = rank[inverse.reshape(-1)]
    return result


def orbit_labels(images: npt.NDArray[np.int64]) -> Ints:
    """The orbits of a permutation group, numbered by their lowest point.

    Args:
        images: the images of every point under each generator, (generators, points).

    Returns:
        The orbit of each point, (points,).

    Example:
        >>> orbit_labels(np.array([[2, 1, 0, 3]])).tolist()
        [0, 1, 0, 2]
    """
    count = images.shape[1]
    points = np.tile(np.arange(count), len(images))
    # Edges x - g x for all generators: components are orbits.
    graph = sparse.csr_array((np.ones(len(points), dtype=np.int8), (points, images.reshape(-1))), shape=(count, count))
    return renumber(csgraph.connected_components(graph, directed=False)[1])
