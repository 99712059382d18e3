"""Compares next internal states, whose last digits are lost in observations.

A float32 observation of a float64 state hides a relative bias of 1e-6. If the state can be read, it is compared as
well, provided that the action of the symmetry on it is known exactly:

* the maps are data: they act on float64 directly;
* a callable behaves as a signed permutation: it is then replaced by the permutation, without its rounding (it may
  compute in float32). Only state coordinates that the observation shows, rounded, are compared, because hidden
  coordinates may transform in another way;
* the observation determines the state (cosine and sine determine an angle), and the state that belongs to L_g obs is a
  signed permutation of the state that belongs to obs, up to shifts of angles by multiples of pi/12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats, Indices
from symcheck.spaces.probing import linear_map

Word = tuple[int, ...]
_NEAR = 1e-5  # tolerance for numbers that are equal up to float32 rounding (6e-8 each, summed over a few)
_PART = np.pi / 12  # fraction of a turn: rotation angles of regular polygons up to the dodecagon
_SINGLE = 1e-10  # larger rounding units are those of float32


@dataclass(frozen=True)
class SignedMap:
    """x -> sign * x[index] + offset, exact up to the rounding of the sum.

    Attributes:
        index: shape (dim,).
        sign: shape (dim,), 1 or -1.
        offset: shape (dim,); nonzero for angles only.
    """

    index: Indices
    sign: Floats
    offset: Floats

    def apply(self, states: Floats) -> Floats:
        """Map states of shape (..., dim)."""
        return np.asarray(states[..., self.index] * self.sign + self.offset, dtype=np.float64)


@dataclass(frozen=True)
class Inner:
    """The comparison of next internal states.

    Attributes:
        apply: (word, states of shape (n, dim)) -> the images' compared coordinates, shape (n, k), float64.
        columns: the state coordinates that are compared, shape (k,); None for all.
        shown: the observation coordinates that show them, shape (k,); None if the map was determined in another way.
    """

    apply: Callable[[Word, Floats], Floats]
    columns: Indices | None = None
    shown: Indices | None = None

    def compared_coordinates(self, states: Floats) -> Floats:
        """The compared coordinates of states of shape (n, dim)."""
        return states if self.columns is None else states[:, self.columns]

    def expected_coordinates(self, word: Word, states: Floats, observed: Floats) -> Floats:
        """The compared coordinates of images.

        Args:
            word: the element.
            states: the states of the left sides, shape (n, dim).
            observed: the images of their observations, shape (n, observation dim).

        Returns:
            Shape (n, k); the callable's own value if it differs from its signed permutation by more than rounding.
        """
        images = self.apply(word, states)
        if self.shown is None:
            return images
        rounded = observed[:, self.shown]
        return np.where(np.abs(rounded - images) <= _NEAR * (1 + np.abs(rounded)), images, rounded)


def signed_map(
    function: Callable[[Floats], Floats], example: Floats, seen: Sequence[Floats], angles: Sequence[int] = ()
) -> SignedMap | None:
    """The signed permutation that a map of vectors equals up to rounding; None if there is none.

    Args:
        function: a map of vectors of shape (dim,); it may round to float32.
        example: a vector, float64.
        seen: vectors on which both maps are compared.
        angles: coordinates that are angles modulo 2 pi; they may be shifted by multiples of pi/12.

    Returns:
        The map.

    Example:
        >>> signed_map(lambda x: -x[::-1].astype(np.float32), np.zeros(2), [np.array([0.1, 2.0])]).sign.tolist()
        [-1.0, -1.0]
    """
    linear = linear_map(function, example)
    if linear is None:
        return None
    matrix, offset = linear
    whole = np.round(matrix)
    turns = np.zeros(len(offset))
    turns[list(angles)] = _PART * np.round(offset[list(angles)] / _PART)
    # A signed permutation has one entry of size one in each row.
    one_each = ((np.abs(whole) == 1).sum(axis=1) == 1) & ((whole != 0).sum(axis=1) == 1)
    if not one_each.all() or np.abs(matrix - whole).max() > _NEAR or np.abs(offset - turns).max() > _NEAR:
        return None
    index = np.argmax(np.abs(whole), axis=1)
    candidate = SignedMap(index, whole[np.arange(len(index)), index], turns)
    for vector in seen:
        gap = np.abs(np.asarray(function(vector), dtype=np.float64).reshape(-1) - candidate.apply(vector))
        # Angles agree up to whole turns.
        turned = np.abs(gap - 2 * np.pi * np.round(gap / (2 * np.pi)))
        gap[list(angles)] = turned[list(angles)]
        if not (gap <= _NEAR * (1 + np.abs(vector[index]))).all():
            return None
    return candidate


def shown_digits(states: Floats, observed: Floats, epsilon: Floats) -> tuple[Indices, Indices]:
    """State coordinates that the observation shows, rounded to float32, with the observation columns.

    Args:
        states: visited states, shape (n, dim).
        observed: their observations, shape (n, observation dim).
        epsilon: rounding units of the observation's coordinates.

    Returns:
        (state columns, observation columns), both of shape (k,); k may be 0.

    Example:
        >>> states = np.array([[0.1, 5.0], [0.2, 6.0]])
        >>> shown_digits(states, states[:, :1].astype(np.float32), np.full(1, 1e-7))[0].tolist()
        [0]
    """
    pairs = []
    rounded = states.astype(np.float32).astype(np.float64)
    for i in range(states.shape[1]):
        if np.ptp(states[:, i]) == 0 or (rounded[:, i] == states[:, i]).all():
            continue  # carries no information, or has no further digits
        same = np.flatnonzero((epsilon > _SINGLE) & (observed == rounded[:, i : i + 1]).all(axis=0))
        pairs += [(i, int(j)) for j in same[:1]]
    columns = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
