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


def computed_box(env: Any) -> spaces.Box | None:
    """The bounded float32 action space of the innermost environment if wrappers compute its actions from other actions.

    Example:
        >>> inner = gym.make("Pendulum-v1")
        >>> computed_box(gym.wrappers.DiscretizeAction(inner, 5))
        Box(-2.0, 2.0, (1,), float32)
        >>> computed_box(inner) is None
        True
    """
    inner = env.unwrapped.action_space if isinstance(env, gym.Env) else None
    if not isinstance(inner, spaces.Box) or inner.dtype != np.float32 or not inner.is_bounded():
        return None
    return inner if env.action_space != inner else None


@contextlib.contextmanager
def moved_actions(env: gym.Env[Any, Any], box: spaces.Box, units: int) -> Iterator[None]:
    """Within the block, actions reach the innermost environment changed by a number of rounding units.

    Args:
        env: an environment whose actions are computed.
        box: the innermost action space; see `computed_box`.
        units: the number of rounding units, each that of the larger bound of the innermost action space.
    """
    base = env.unwrapped
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
