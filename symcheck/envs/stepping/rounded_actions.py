"""Actions that a chain of wrappers computes in float32: steps with these actions changed by a few rounding units.

A wrapper that divides an interval into bins, or rescales it, passes on sums of numbers as large as the bounds, rounded
to the dtype of the inner action space: the middle one of five bins of [-2, 2] is 6e-8, not 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def are_computed(env: Any) -> bool:
    """Whether wrappers compute the float32 actions of a bounded innermost environment from other actions.

    Example:
        >>> inner = gym.make("Pendulum-v1")
        >>> are_computed(inner), are_computed(gym.wrappers.DiscretizeAction(inner, 5))
        (False, True)
    """
    if not isinstance(env, gym.Env):
        return False
    inner = env.unwrapped.action_space
    narrow = isinstance(inner, spaces.Box) and inner.dtype == np.float32 and inner.is_bounded()
    return bool(narrow and env.action_space != inner)


@contextlib.contextmanager
def moved_actions(env: gym.Env[Any, Any], units: int) -> Iterator[None]:
    """Within the block, actions reach the innermost environment changed by a number of rounding units.

    Args:
        env: an environment whose actions are computed; see `are_computed`.
        units: of the rounding of a number as large as the larger bound of the innermost action space.
    """
    base, box = env.unwrapped, env.unwrapped.action_space
    assert isinstance(box, spaces.Box)
    step, own = base.step, "step" in vars(base)
    unit = np.spacing(np.maximum(np.abs(box.low), np.abs(box.high)))

    def step_moved(action: Any) -> Any:
        moved = np.clip(np.asarray(action, np.float32) + units * unit, box.low, box.high)
        return step(moved.astype(np.float32))

    base.step = step_moved  # type: ignore[method-assign]
    try:
        yield
    finally:
        if own:
            base.step = step  # type: ignore[method-assign]
        else:
            del base.step
