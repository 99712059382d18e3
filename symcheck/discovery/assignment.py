"""The linear assignment problem: rows to columns at the least total cost."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats

_FEW = 6  # up to this number of rows, all (at most 720) permutations are tried


def assign(cost: Floats) -> npt.NDArray[np.intp]:
    """The permutation with the smallest total cost.

    Args:
        cost: the cost of assigning each row to each column, shape (n, n).

    Returns:
        The column of each row.

    Example:
        >>> assign(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [1, 0]
    """
    n = len(cost)
    if n <= _FEW:
        every = np.array(list(itertools.permutations(range(n))), dtype=np.intp)
        best: npt.NDArray[np.intp] = every[np.argmin(cost[np.arange(n), every].sum(axis=1))]
        return best
    from scipy.optimize import linear_sum_assignment  # loading scipy takes as long as a search of CartPole

    columns: npt.NDArray[np.intp] = linear_sum_assignment(cost)[1]
    return columns
