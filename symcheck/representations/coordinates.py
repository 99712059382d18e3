"""Finds the coordinates that a group mixes with each other; such coordinates must share one scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from symcheck.representations.lie import LieRepresentation
from symcheck.representations.representation import Representation


def mixed_coordinates(rho: Representation) -> npt.NDArray[np.int64]:
    """The block of each coordinate. Two coordinates belong to one block if some product of generators mixes them.

    Every orthogonal representation preserves a standard deviation, scale or bound that is the same for all coordinates
    of a block.

    Args:
        rho: the representation.

    Returns:
        Shape (dim,): block numbers from 0, in the order of each block's first coordinate.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import signed_permutation
        >>> mixed_coordinates(signed_permutation(cyclic(2), [[-1, 3, 2]])).tolist()
        [0, 1, 1]
    """
    matrices = [np.asarray(rho.matrix(g), dtype=float) for g in rho.group.generators]
    if isinstance(rho, LieRepresentation):
        matrices += [np.asarray(matrix, dtype=float) for matrix in rho.algebra]
    mixed = np.eye(rho.dim) + sum(np.abs(matrix) > 0 for matrix in matrices)
    labels: npt.NDArray[np.int64] = connected_components(mixed, directed=False)[1].astype(np.int64)
    return labels
