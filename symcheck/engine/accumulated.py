"""Accumulated reward differences along the worst path through the known steps.

If next states and terminations satisfy the claim, Q*(s, a) and Q*(g s, g a) differ by at most D(s, a) = d(s, a) +
discount * max_b D(s', b). Here d is the difference of the two rewards. The reason: each side can follow the other's
optimal policy. A difference that occurs once per episode therefore counts once, instead of being divided by 1 -
discount.
"""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Bools, Floats

_DIGITS = 9  # number of decimals to which states are compared
_MOST_STATES = 2000
_SMALLEST = 1e-9  # relative error at which the iteration stops


def accumulated_difference(
    before: Floats, actions: Floats, after: Floats, ended: Bools, differences: Floats, discount: float
) -> float | None:
    """The largest D(s, a) over the observed steps.

    Args:
        before: states, shape (n, dim).
        actions: shape (n, more).
        after: next states, shape (n, dim).
        ended: whether the episode ended there, shape (n,).
        differences: d(s, a), at least 0, shape (n,).
        discount: in [0, 1).

    Returns:
        The largest D; None if states rarely recur or do not determine the outcome. Steps that were not observed count
        as the worst one, repeated forever.

    Example:
        >>> x = np.array([[2.0], [1.0]])
        >>> ended = np.array([False, True])
        >>> accumulated_difference(x, 0 * x, x - 1, ended, np.array([0.0, 0.1]), 0.5)
        0.1
    """
    states, place = np.unique(np.round(np.concatenate([before, after]), _DIGITS), axis=0, return_inverse=True)
    if len(states) > _MOST_STATES:
        return None
    place = place.reshape(-1)
    here, there = place[: len(before)], place[len(before) :]
    kinds, act = np.unique(np.round(actions, _DIGITS), axis=0, return_inverse=True)
    act = act.reshape(-1)
    shape = (len(states), len(kinds))
    if np.prod(shape) > 50 * _MOST_STATES:
        return None
    following, over = np.full(shape, -1), np.zeros(shape, dtype=np.bool_)
    following[here, act], over[here, act] = there, ended
    # The last write counts: all other steps of the same (s, a) must agree with it.
    if (following[here, act] != there).any() or (over[here, act] != ended).any():
        return None
    worst = float(differences.max()) / (1 - discount)
    gaps = np.zeros(shape)
    np.maximum.at(gaps, (here, act), differences)
    known = following >= 0
    values = np.where(known, 0.0, worst)
    for _ in range(int(np.ceil(np.log(_SMALLEST) / np.log(max(discount, 1e-3)))) + 1):
        later = np.where(over, 0.0, values.max(axis=1)[following])
        values = np.where(known, gaps + discount * later, worst)
    return float(values[here, act].max())
