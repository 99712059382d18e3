"""The scales of coordinates, and the sizes of probes: equal for coordinates that a symmetry may exchange."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats

PROBE = 0.1  # relative to the spread: small compared with visited states, large compared with rounding
_SAME_SCALE = 2.0  # spreads within this factor share a scale, so that exchanged coordinates get the same probe
# The same for spreads of start states, which are independent: those of visited states may come from a single episode.
_SAME_START = 1.4
_FEWEST_STARTS = 50


def probe_sizes(spread: Floats, whole: bool, starts: Floats | None = None) -> Floats:
    """The size of the probe along every coordinate; equal for coordinates of similar scale.

    Args:
        spread: half widths, shape (dim,); 0 if a coordinate never changes.
        whole: whether states are integers.
        starts: start states, shape (n, dim); None if there are none.

    Returns:
        Shape (dim,).

    Example:
        >>> probe_sizes(np.array([1.0, 1.5, 100.0, 0.0]), whole=False).round(3).tolist()
        [0.122, 0.122, 10.0, 0.0]
    """
    if whole:
        return np.asarray(np.where(spread > 0, 1.0, 0.0))
    sizes = np.zeros(len(spread))
    for group in group_by_scale(spread, starts):
        sizes[group] = PROBE * float(np.exp(np.log(spread[group]).mean()))
    return sizes


def group_by_scale(spread: Floats, starts: Floats | None = None) -> list[npt.NDArray[np.intp]]:
    """Coordinates that may be exchanged, according to their spread in visited states or in start states.

    Args:
        spread: half widths, shape (dim,); coordinates with 0 are in no group.
        starts: start states, shape (n, dim); None if there are none.

    Returns:
        The groups, each as the numbers of its coordinates.

    Example:
        >>> [group.tolist() for group in group_by_scale(np.array([1.0, 1.5, 100.0, 0.0]))]
        [[0, 1], [2]]
        >>> alike = np.linspace(-1.0, 1.0, 50)[:, None] * np.array([1.0, 2.0, 1.0, 1.0])
        >>> [group.tolist() for group in group_by_scale(np.array([1.0, 10.0, 100.0, 0.0]), alike)]
        [[0, 2], [1]]
    """
    used = np.flatnonzero(spread > 0)
    owner = np.zeros(len(spread), dtype=np.intp)
    owner[used] = _number_by_scale(spread[used], _SAME_SCALE)
    if starts is not None and len(starts) >= _FEWEST_STARTS:
        widths = half_widths(starts)
        moving = used[widths[used] > 0]
        for own in _split_by_number(moving, _number_by_scale(widths[moving], _SAME_START)):
            joined = np.isin(owner, owner[own])
            owner[joined] = owner[own].min()
    return _split_by_number(used, owner[used])


def _split_by_number(items: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    return [items[numbers == number] for number in np.unique(numbers)]


def _number_by_scale(widths: Floats, factor: float) -> npt.NDArray[np.intp]:
    """A number for each width, equal where a chain of widths connects two, each within a factor of the next."""
    order = np.argsort(widths, kind="stable")
    numbers = np.zeros(len(widths), dtype=np.intp)
    numbers[order] = np.cumsum(widths[order] > factor * np.append(np.inf, widths[order][:-1]))
    return numbers


def half_widths(states: Floats) -> Floats:
    """Half the width of the middle 90% of each coordinate, or of all of it if that is 0.

    Example:
        >>> half_widths(np.array([[0.0, 1.0], [10.0, 1.0]])).tolist()
        [4.5, 0.0]
    """
    if not states.size:
        return np.zeros(states.shape[1])
    low, high = np.quantile(states, [0.05, 0.95], axis=0)
    wide = (high - low) / 2
    return np.asarray(np.where(wide > 0, wide, np.ptp(states, axis=0) / 2))
