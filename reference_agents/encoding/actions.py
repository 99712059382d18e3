"""Encodes actions of any space for a policy: choices among values, or real numbers.

Discrete                     one choice
MultiDiscrete, MultiBinary   one choice for each component
Box real numbers; if they are scaled, -1 and 1 are the bounds
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from symcheck.array_types import Array, Floats
from symcheck.errors import TargetError


class ActionEncoder:
    """Converts the actions that a policy draws to actions of the environment.

    Args:
        space: the space of the actions.
        scaled: whether bounded numbers are drawn in units of half their range around its centre; otherwise unscaled.

    Attributes:
        continuous: whether actions are real numbers.
        choices: the number of values of each component; () for real numbers.
        numbers: the number of logits of all choices, or of coordinates.
        action_numbers: the number of uniform numbers that draw one action.
        centre: the action for 0, shape (coordinates,).
        scale: the distance from the centre for 1, shape (coordinates,).

    Raises:
        TargetError: the space is not supported.

    Example:
        >>> ActionEncoder(spaces.Box(0, 4, (1,))).decode(np.array([0.5])).tolist()
        [3.0]
        >>> ActionEncoder(spaces.MultiDiscrete([2, 3])).choices
        (2, 3)
    """

    def __init__(self, space: spaces.Space[Any], *, scaled: bool = True) -> None:
        self.space = space
        self.choices = _choices(space)
        self.continuous = isinstance(space, spaces.Box) and bool(np.prod(space.shape))
        if not (self.continuous or self.choices):
            raise TargetError(
                f"expected a Discrete, MultiDiscrete, MultiBinary or non-empty Box action space, got {space}.",
                where="--env",
                remedy="Wrap the environment so that it takes one of these.",
            )
        size = int(np.prod(space.shape or ())) if self.continuous else 0
        self.numbers = size or sum(self.choices)
        self.action_numbers = size or len(self.choices)
        self.centre, self.scale = np.zeros(size), np.ones(size)
        if isinstance(space, spaces.Box):
            self._low, self._high = space.low.reshape(-1).astype(float), space.high.reshape(-1).astype(float)
            bounded = np.isfinite(self._low) & np.isfinite(self._high) & (self._high > self._low)
            if scaled:
                with np.errstate(invalid="ignore", over="ignore"):
                    self.centre = np.where(bounded, (self._low + self._high) / 2.0, 0.0)
                    self.scale = np.where(bounded, (self._high - self._low) / 2.0, 1.0)

    @property
    def bounds(self) -> Floats:
        """The bound of each real number that a policy draws, shape (coordinates,); infinity if unbounded."""
        with np.errstate(invalid="ignore"):
            bounds = np.maximum(np.abs(self._low - self.centre), np.abs(self._high - self.centre)) / self.scale
        # A coordinate with a single possible value keeps it, whatever the policy draws.
        unbounded: Floats = np.where(self._high > self._low, bounds, np.inf)
        return unbounded

    def decode(self, action: Any) -> Any:
        """The action of the environment, clipped to its bounds."""
        space = self.space
        if isinstance(space, spaces.Box):
            # A Gaussian policy samples beyond the bounds.
            numbers = np.clip(np.asarray(action) * self.scale + self.centre, self._low, self._high)
            whole = np.issubdtype(space.dtype, np.integer)
            return (np.rint(numbers) if whole else numbers).astype(space.dtype).reshape(space.shape)
        if isinstance(space, spaces.Discrete):
            return int(np.asarray(action).reshape(())) + int(space.start)
        chosen = np.asarray(action, dtype=np.int64).reshape(space.shape or ())
        if isinstance(space, spaces.MultiDiscrete):
            return (chosen + space.start).astype(space.dtype)
        return chosen.astype(space.dtype)

    def random(self, uniforms: Floats) -> Array:
        """Uniformly random actions, from numbers (..., action_numbers) in [0, 1).

        Unbounded coordinates are uniform between -1 and 1.
        """
        if self.continuous:
            finite = np.isfinite(self._low) & np.isfinite(self._high)
            low = np.where(finite, self._low, -1.0)
            high = np.where(finite, self._high, 1.0)
            drawn: Array = ((low + uniforms * (high - low) - self.centre) / self.scale).astype(np.float32)
            return drawn
        chosen: npt.NDArray[np.int64] = (np.array(self.choices) * uniforms).astype(np.int64)
        return chosen[..., 0] if isinstance(self.space, spaces.Discrete) else chosen


def _choices(space: spaces.Space[Any]) -> tuple[int, ...]:
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec.reshape(-1))
    if isinstance(space, spaces.MultiBinary):
        return (2,) * int(np.prod(space.shape))
    return ()
