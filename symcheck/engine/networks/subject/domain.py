"""The domain of a network's inputs: the observation space, if it is known.

The logarithm of a distance and the square root of a speed are defined for every observation, but not for every number.
Therefore inputs are drawn inside the space, searches stay inside, and inputs whose image lies outside are left out and
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.array_types import Bools, Floats
from symcheck.engine.networks.subject.claims import InputClaim

UNBOUNDED = 1e6
"""Bounds of at least this magnitude count as unknown, like the largest float32."""
# tolerance as a fraction of a coordinate's range: bounds are float32 numbers, and so their images are rounded
_AT_THE_EDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Domain:
    """A box of inputs.

    Attributes:
        low: shape (*shape,); -inf if there is no bound.
        high: the same; inf if there is none.
        whole: True for whole-number entries, shape (*shape,).
    """

    low: Floats
    high: Floats
    whole: Bools

    @property
    def is_bounded(self) -> bool:
        """Whether every entry has two bounds."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def draw(self, rng: np.random.Generator, count: int, scale: float = 1.0) -> Floats:
        """Inputs, shape (count, *shape): uniform between bounds, normal at a scale if there are none."""
        shape = (count, *self.low.shape)
        normal = scale * rng.normal(size=shape)
        has_low, has_high = np.isfinite(self.low), np.isfinite(self.high)
        low, high = np.where(has_low, self.low, 0.0), np.where(has_high, self.high, 0.0)
        x = np.where(has_low, low + np.abs(normal), np.where(has_high, high - np.abs(normal), normal))
        return self.clip(np.where(has_low & has_high, low + (high - low) * rng.random(shape), x))

    def corners(self, rng: np.random.Generator, count: int) -> Floats:
        """Inputs with every entry at a bound or halfway between, shape (count, *shape); near 0 if unbounded."""
        picks = rng.integers(0, 3, size=(count, *self.low.shape))
        # The edge inputs of an image space are black, white and grey images.
        picks[: min(3, count)] = np.arange(3).reshape(-1, *[1] * self.low.ndim)[:count]
        low = np.where(np.isfinite(self.low), self.low, np.where(np.isfinite(self.high), self.high - 1.0, -1.0))
        high = np.where(np.isfinite(self.high), self.high, low + 2.0)
        return self.clip(np.choose(picks, (low, high, 0.5 * (low + high))))

    def clip(self, x: Floats) -> Floats:
        """The nearest inputs inside, shape (n, *shape)."""
        inside = np.clip(x, self.low, self.high)
        return np.where(self.whole, np.round(inside), inside)

    def contains(self, x: Floats) -> Bools:
        """Whether each input lies inside, shape (n,)."""
        with np.errstate(invalid="ignore"):
            room = np.where(np.isfinite(self.high - self.low), _AT_THE_EDGE * (self.high - self.low), 0.0)
        inside = (x >= self.low - room) & (x <= self.high + room)
        return np.asarray(inside.all(axis=tuple(range(1, inside.ndim))))

    def keeps(self, claim: InputClaim, x: Floats) -> Bools:
        """Whether each input has all its images inside, shape (n,)."""
        inside = self.contains(x)
        if not len(x):  # an empty family
            return inside
        for generator in range(len(claim.motions)):
            inside &= self.contains(np.asarray(claim.apply(generator, x), dtype=np.float64))
        return inside


@dataclass(frozen=True, eq=False)
class OneHot(Domain):
    """The one-hot vectors of a given length."""

    def draw(self, rng: np.random.Generator, count: int, scale: float = 1.0) -> Floats:
        """One-hot vectors, shape (count, n), uniformly distributed."""
        return self._vectors(rng.integers(0, self.low.size, size=count))

    def corners(self, rng: np.random.Generator, count: int) -> Floats:
        """The first values in turn, shape (count, n)."""
        return self._vectors(np.arange(count) % self.low.size)

    def clip(self, x: Floats) -> Floats:
        """The value with the largest entry, shape (count, n)."""
        return self._vectors(np.argmax(x, axis=1))

    def contains(self, x: Floats) -> Bools:
        """Whether each input is one-hot, shape (count,)."""
        return np.asarray((self._vectors(np.argmax(x, axis=1)) == x).all(axis=1))

    def _vectors(self, values: Any) -> Floats:
        return np.asarray(np.eye(self.low.size)[values])


@dataclass(frozen=True, eq=False)
class Joint(Domain):
    """The flat vectors of several leaves, each with its own domain.

    Attributes:
        parts: the domains of the leaves, in their order in the flat vector.
    """

    parts: tuple[Domain, ...]

    @classmethod
    def of(cls, parts: Sequence[Domain]) -> Joint:
        """The domain of the concatenated leaves."""
        sides = ([part.low for part in parts], [part.high for part in parts])
        low, high = (np.concatenate([bound.reshape(-1) for bound in side]) for side in sides)
        return cls(low, high, np.concatenate([part.whole.reshape(-1) for part in parts]), tuple(parts))

    def draw(self, rng: np.random.Generator, count: int, scale: float = 1.0) -> Floats:
        """Inputs, shape (count, size), each leaf from its own domain."""
        return np.concatenate([part.draw(rng, count, scale).reshape(count, -1) for part in self.parts], axis=1)

    def corners(self, rng: np.random.Generator, count: int) -> Floats:
        """Corners of every leaf, shape (count, size)."""
        return np.concatenate([part.corners(rng, count).reshape(count, -1) for part in self.parts], axis=1)

    def clip(self, x: Floats) -> Floats:
        """The nearest inputs inside, shape (n, size)."""
        parts = zip(self.parts, self._leaves(x), strict=True)
        return np.concatenate([part.clip(leaf).reshape(len(x), -1) for part, leaf in parts], axis=1)

    def contains(self, x: Floats) -> Bools:
        """Whether every leaf of each input lies inside, shape (n,)."""
        inside = [part.contains(leaf) for part, leaf in zip(self.parts, self._leaves(x), strict=True)]
        return np.asarray(np.all(inside, axis=0))

    def _leaves(self, x: Floats) -> list[Floats]:
        ends = np.cumsum([part.low.size for part in self.parts])
        blocks = np.split(x, ends[:-1], axis=1)
        return [block.reshape(-1, *part.low.shape) for block, part in zip(blocks, self.parts, strict=True)]


def domain_of(space: Any, shape: tuple[int, ...]) -> Domain | None:
    """The box of a Gymnasium space whose values are inputs of a given shape.

    Args:
        space: a Gymnasium space; the parts of a `Dict` or `Tuple` are concatenated in a flat input.
        shape: the shape of one input, without the batch axis.

    Returns:
        None if the space has another shape, or no informative bounds.

    Example:
        >>> import gymnasium as gym
        >>> domain_of(gym.spaces.Box(0.0, 1.0, (2,)), (2,)).high.tolist()
        [1.0, 1.0]
        >>> domain_of(gym.spaces.Box(-np.inf, np.inf, (2,)), (2,)) is None
        True
    """
    children = getattr(space, "spaces", None)
    if children is None:
        domain = _of_leaf(space)
    else:
        parts = [_of_leaf(child) for child in (children.values() if hasattr(children, "values") else children)]
        known = [part for part in parts if part is not None]
        domain = Joint.of(known) if len(known) == len(parts) > 0 else None
    if domain is None or domain.low.size != int(np.prod(shape)):
        return None
    if not (np.isfinite(domain.low) | np.isfinite(domain.high)).any():
        return None
    if isinstance(domain, Joint):
        return domain
    if isinstance(domain, OneHot):
        return domain if shape == domain.low.shape else None
    return Domain(domain.low.reshape(shape), domain.high.reshape(shape), domain.whole.reshape(shape))


def _of_leaf(space: Any) -> Domain | None:
    """The domain of one part, without bounds where there are none; None if its size is unknown or it has parts."""
    if hasattr(space, "n") and hasattr(space, "start"):
        # A Discrete value is the one-hot vector on which a permutation of values acts.
        size = int(space.n)
        return OneHot(np.zeros(size), np.ones(size), np.ones(size, dtype=bool))
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = np.asarray(space.low), np.asarray(space.high)
    elif hasattr(space, "nvec"):
        low = np.asarray(space.start)
        high = low + np.asarray(space.nvec) - 1
    elif hasattr(space, "n"):  # MultiBinary
        low, high = np.zeros(space.shape, dtype=np.int8), np.ones(space.shape, dtype=np.int8)
    else:
        return None
    whole = np.full(low.shape, np.issubdtype(low.dtype, np.integer))
    low, high = low.astype(np.float64), high.astype(np.float64)
    low[low <= -UNBOUNDED], high[high >= UNBOUNDED] = -np.inf, np.inf
    return Domain(low, high, whole)


def policy_space(net: Any, name: str, given: Any) -> Any:
    """A space that a policy declares, if none was given; None if it declares none.

    Args:
        net: the network; a policy loaded from a file is wrapped.
        name: `observation_space` or `action_space`.
        given: the space of the environment, which has precedence; None if unknown.
    """
    return getattr(getattr(net, "structured_input", net), name, None) if given is None else given
