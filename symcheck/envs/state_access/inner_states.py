"""Next internal states that hold digits which observations round away, and how a group element acts on them.

A float32 observation of a float64 state hides a bias of one part in a million. Where the state can be read it is
compared as well, if it is known how the symmetry acts on it to the last digit:

* the maps are data: they act on float64 as they stand;
* a callable behaves as a signed permutation: then its rounding (it may compute in float32) is taken out. Only state
  coordinates are compared that the observation shows, rounded: what is hidden altogether may follow other rules;
* the observation determines the state (cosine and sine determine an angle), and the state that shows L_g obs is a
  signed permutation of the state that shows obs, up to twelfths of half a turn of angles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symcheck.array_types import Floats, Indices
from symcheck.spaces.probing import linear_map

Word = tuple[int, ...]
_NEAR = 1e-5  # between numbers that are the same but for float32 rounding (6e-8 of each, summed over a few)
_PART = np.pi / 12  # of a turn: angles of the symmetries of regular polygons up to the dodecagon's
_SINGLE = 1e-10  # rounding units above it are those of float32


@dataclass(frozen=True)
class SignedMap:
    """x -> sign * x[index] + offset, exact but for the sum.

    Attributes:
        index: shape (dim,).
        sign: shape (dim,), 1 or -1.
        offset: shape (dim,); not 0 for angles only.
    """

    index: Indices
    sign: Floats
    offset: Floats

    def apply(self, states: Floats) -> Floats:
        """States of shape (..., dim), mapped."""
        return np.asarray(states[..., self.index] * self.sign + self.offset, dtype=np.float64)


@dataclass(frozen=True)
class Inner:
    """What is compared of next internal states.

    Attributes:
        apply: (word, states of shape (n, dim)) -> the images' compared coordinates, shape (n, k), float64.
        columns: the state coordinates that are compared, shape (k,); None for all.
        shown: the observation coordinates that show them, shape (k,); None if that is not how they are known.
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
            states: of the left sides, shape (n, dim).
            observed: images of what they show, shape (n, observation dim).

        Returns:
            Shape (n, k); where a callable says something else than its signed permutation, what it says.
        """
        images = self.apply(word, states)
        if self.shown is None:
            return images
        rounded = observed[:, self.shown]
        return np.where(np.abs(rounded - images) <= _NEAR * (1 + np.abs(rounded)), images, rounded)


def signed_map(
    function: Callable[[Floats], Floats], example: Floats, seen: Sequence[Floats], angles: Sequence[int] = ()
) -> SignedMap | None:
    """The signed permutation that a map of vectors is, but for rounding; None if it is none.

    Args:
        function: maps vectors of shape (dim,); it may round to float32.
        example: such a vector, float64.
        seen: vectors on which the two are compared.
        angles: coordinates that live on a circle of 2 pi; they may be moved by a twelfth of half a turn.

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
    """State coordinates that the observation shows rounded to float32, with the columns that show them.

    Args:
        states: visited ones, shape (n, dim).
        observed: what they show, shape (n, observation dim).
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
            continue  # says nothing, or has no digits that could be hidden
        same = np.flatnonzero((epsilon > _SINGLE) & (observed == rounded[:, i : i + 1]).all(axis=0))
        pairs += [(i, int(j)) for j in same[:1]]
    columns = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
