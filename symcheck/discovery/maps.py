"""Signed permutations with an offset: the maps that the search considers, as values that compose and compare.

One class serves states, observations and actions: a permutation of n discrete actions is a signed permutation without
signs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.entries.forms import SPATIAL_OPERATORS

_DECIMALS = 12  # decimals to which offsets are compared; products of maps round in the sixteenth digit


@dataclass(frozen=True)
class SignedMap:
    """x -> P x + offset: component j goes to component index[j], times sign[j].

    Attributes:
        index: shape (dim,), a permutation of 0..dim-1.
        sign: shape (dim,), +1 or -1.
        offset: shape (dim,), in the units of the image's components.

    Example:
        >>> quarter = SignedMap.of([1, 0], [1, -1])
        >>> quarter.apply(np.array([[1.0, 2.0]])).tolist(), quarter.order
        ([[-2.0, 1.0]], 4)
    """

    index: tuple[int, ...]
    sign: tuple[int, ...]
    offset: tuple[float, ...]

    @staticmethod
    def of(
        index: Sequence[int] | npt.NDArray[Any],
        sign: Sequence[int] | npt.NDArray[Any] | None = None,
        offset: Sequence[float] | Floats | None = None,
    ) -> SignedMap:
        """The map with the given images; no signs and no offset by default."""
        n = len(index)
        signs = (1,) * n if sign is None else tuple(int(s) for s in sign)
        shift = (0.0,) * n if offset is None else tuple(round(float(x), _DECIMALS) + 0.0 for x in offset)
        return SignedMap(tuple(int(i) for i in index), signs, shift)

    @staticmethod
    def about(
        index: Sequence[int] | npt.NDArray[Any], sign: Sequence[int] | npt.NDArray[Any], centre: Floats
    ) -> SignedMap:
        """The map that fixes a centre: x -> centre + P (x - centre)."""
        linear = SignedMap.of(index, sign)
        return SignedMap.of(index, sign, centre - linear.apply(centre[None])[0])

    @staticmethod
    def identity(dim: int) -> SignedMap:
        """The identity map."""
        return SignedMap.of(range(dim))

    @property
    def dim(self) -> int:
        """Number of components."""
        return len(self.index)

    @property
    def is_identity(self) -> bool:
        """Whether the map is the identity."""
        return self == SignedMap.identity(self.dim)

    @property
    def cost(self) -> int:
        """Length of the map's description: a moved component counts three, a negated one two, an offset five."""
        moved = sum(i != j for j, i in enumerate(self.index))
        return 3 * moved + 2 * sum(s < 0 for s in self.sign) + 5 * sum(x != 0 for x in self.offset)

    @property
    def order(self) -> int:
        """The smallest n >= 1 whose power is the identity; 0 if there is none, as for a translation.

        Example:
            >>> SignedMap.of([1, 2, 0], [1, 1, -1]).order, SignedMap.of([0], [1], [0.5]).order
            (6, 0)
        """
        order, waiting = 1, set(range(self.dim))
        while waiting:
            first = waiting.pop()
            at, sign, length = self.index[first], self.sign[first], 1
            while at != first:
                waiting.discard(at)
                at, sign, length = self.index[at], sign * self.sign[at], length + 1
            # A cycle with sign -1 has twice the order of its length.
            order = math.lcm(order, length if sign > 0 else 2 * length)
        if not any(self.offset):
            return order
        shifted = np.zeros((1, self.dim))
        for _ in range(order):
            shifted = self.apply(shifted)
        return order if not np.round(shifted, _DECIMALS - 2).any() else 0

    def inverse(self) -> SignedMap:
        """The inverse map.

        Example:
            >>> quarter = SignedMap.of([1, 0], [1, -1], [0.5, 0.0])
            >>> (quarter * quarter.inverse()).is_identity
            True
        """
        index, sign = [0] * self.dim, [1] * self.dim
        for j, i in enumerate(self.index):
            index[i], sign[i] = j, self.sign[j]
        linear = SignedMap.of(index, sign)
        return SignedMap.of(index, sign, -linear.apply(np.array([self.offset]))[0])

    def apply(self, vectors: npt.NDArray[Any]) -> Floats:
        """The images of stacked vectors, shape (..., dim), float64."""
        moved = np.empty(vectors.shape, dtype=np.float64)
        moved[..., list(self.index)] = vectors * np.array(self.sign, dtype=np.float64)
        return np.asarray(moved + np.array(self.offset))

    def restrict(self, at: Sequence[int]) -> SignedMap:
        """The map of some components, which it maps to each other.

        Example:
            >>> SignedMap.of([0, 3, 2, 1], [1, -1, 1, 1], [0, 5, 0, 0]).restrict([1, 3])
            SignedMap(index=(1, 0), sign=(-1, 1), offset=(5.0, 0.0))
        """
        place = {j: k for k, j in enumerate(at)}
        images = [place[self.index[j]] for j in at]
        return SignedMap.of(images, [self.sign[j] for j in at], [self.offset[j] for j in at])

    def __mul__(self, other: SignedMap) -> SignedMap:
        """The composition that applies `other` first."""
        index = [self.index[i] for i in other.index]
        sign = [s * self.sign[i] for i, s in zip(other.index, other.sign, strict=True)]
        return SignedMap.of(index, sign, self.apply(np.array([other.offset]))[0])

    def spec_entry(self) -> Any:
        """The entry of a SPEC file: signs, a permutation, signed images, or a mapping with an offset.

        Example:
            >>> SignedMap.of([0, 1], [-1, 1]).spec_entry(), SignedMap.of([1, 0]).spec_entry()
            ([-1, 1], [1, 0])
            >>> SignedMap.of([1, 0], [1, -1]).spec_entry()
            ['+2', '-1']
        """
        linear = self._written_linear()
        if not any(self.offset):
            return linear
        if all(i == j for j, i in enumerate(self.index)):
            return {"signs": list(self.sign), "offset": list(self.offset)}
        matrix = SignedMap(self.index, self.sign, (0.0,) * self.dim).apply(np.eye(self.dim)).T
        return {"matrix": matrix.astype(int).tolist(), "offset": list(self.offset)}

    def _written_linear(self) -> list[Any]:
        kept = all(i == j for j, i in enumerate(self.index))
        if kept:
            return list(self.sign)
        if min(self.sign) > 0:
            return list(self.index)
        return [f"{'+' if s > 0 else '-'}{i + 1}" for i, s in zip(self.index, self.sign, strict=True)]


# Each element of the square's group as a product of the four named operators; the last one is applied first.
SQUARE: dict[str, tuple[str, ...]] = {
    "identity": (),
    "rot90": ("rot90",),
    "rot180": ("rot90", "rot90"),
    "rot270": ("rot90", "rot90", "rot90"),
    "flip_ud": ("flip_ud",),
    "flip_lr": ("flip_lr",),
    "transpose": ("transpose",),
    "antitranspose": ("transpose", "rot90", "rot90"),
}


def apply_square(name: str, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An element of the square's group on stacked images, shape (..., height, width).

    Example:
        >>> apply_square("rot180", np.array([[1, 2], [3, 4]])).tolist()
        [[4, 3], [2, 1]]
    """
    for operator in reversed(SQUARE[name]):
        images = SPATIAL_OPERATORS[operator](images)
    return images


@dataclass(frozen=True)
class Candidate:
    """One possible symmetry: its maps of states, actions and observations.

    Attributes:
        state: the map of state vectors, or of the flattened observation if there are none.
        action: the map of action vectors, or of the values of a discrete action space.
        observation: the map of the flattened observation.
        residual: median misfit of its transitions on the screening states, relative to a typical step.
        reward_agrees: whether rewards agreed on the screening states.
        reward_gap: median difference of rewards there.
        label: its common name, if it has one.
        form: the form of maps that it belongs to, in words.
        refuted: counterexamples found during the search, in words; "" if there are none.
        others: further possible action maps, most likely first.
        guessed: whether other action maps may be correct, because the given one was fitted to few or noisy steps.
        missed: fraction of the screening states at which the outcome differs, even slightly.
        unseen: whether some component of the observation never changed, so that its image is a guess.
    """

    state: SignedMap
    action: SignedMap
    observation: SignedMap
    residual: float = 0.0
    reward_agrees: bool = True
    reward_gap: float = 0.0
    label: str = ""
    form: str = ""
    refuted: str = ""
    others: tuple[SignedMap, ...] = ()
    guessed: bool = False
    missed: float = 0.0
    unseen: bool = False

    @property
    def key(self) -> tuple[SignedMap, SignedMap]:
        """The key for comparisons: the maps of states and actions, which determine that of observations."""
        return self.state, self.action

    @property
    def is_identity(self) -> bool:
        """Whether the candidate changes neither states nor actions."""
        return self.state.is_identity and self.action.is_identity

    @property
    def cost(self) -> int:
        """Length of the candidate's description; among several generators, the simplest is preferred."""
        return 4 * self.state.cost + self.action.cost

    @property
    def order(self) -> int:
        """The order of the element; 0 if it is not finite."""
        orders = (self.state.order, self.action.order)
        return 0 if 0 in orders else int(np.lcm(*orders))

    def inverse(self) -> Candidate:
        """The inverse map."""
        return replace(
            self,
            state=self.state.inverse(),
            action=self.action.inverse(),
            observation=self.observation.inverse(),
            label="",
        )

    def __mul__(self, other: Candidate) -> Candidate:
        """The composition that applies `other` first; its residual is the larger of both."""
        return Candidate(
            self.state * other.state,
            self.action * other.action,
            self.observation * other.observation,
            max(self.residual, other.residual),
            self.reward_agrees and other.reward_agrees,
            max(self.reward_gap, other.reward_gap),
            missed=max(self.missed, other.missed),
        )
