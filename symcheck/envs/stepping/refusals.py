"""Errors for calls that raise in an environment and for invalid return values, with the expected value and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.errors import TargetError, described
from symcheck.spaces.values import short_text

ON_ITS_OWN = "The environment must run without errors before its symmetry can be checked."
NOT_STEPPED = (
    "Setting a state must also reset what step() changed, such as a flag that the episode is over. If "
    "this state or action is not allowed, state access must not propose it."
)
_SCALAR = (
    "symcheck supports scalar rewards only. Combine the objectives with "
    "mo_gymnasium.wrappers.LinearReward(env, weight=...) or with a gymnasium.RewardWrapper of your own."
)
_SEEDED = "reset(*, seed=None, options=None) is Gymnasium's API since 0.26; wrap environments that use the older API."


def of_reset(error: BaseException, label: str) -> TargetError:
    """The error when `reset` raises."""
    seeds = isinstance(error, TypeError) and "seed" in str(error)
    return TargetError(f"reset() raised {described(error)}.", where=label, remedy=_SEEDED if seeds else ON_ITS_OWN)


def of_reset_value(returned: Any, label: str) -> TargetError:
    """The error when `reset` does not return a pair of observation and info."""
    return TargetError(
        f"expected reset() to return (observation, info), got {type(returned).__name__}.",
        where=label,
        remedy="This is Gymnasium's API since 0.26; wrap environments that use the older API.",
    )


def of_space(before: Any, now: Any, label: str) -> TargetError:
    """The error when the observation space has changed since the environment was built."""
    return TargetError(
        f"reset() changed the observation space from {before} to {now}.",
        where=label,
        remedy="A symmetry is a claim about one space. Use a separate environment for each space.",
    )


def of_state(held: str, error: BaseException, where: str, remedy: str) -> TargetError:
    """The error when the setter raises; `held` is the state as text."""
    return TargetError(f"setting the state {held} raised {described(error)}.", where=where, remedy=remedy)


def of_reading(error: BaseException, where: str) -> TargetError:
    """The error when the getter raises."""
    remedy = "State access calls get after reset() and after each step(); get must return the current state."
    return TargetError(f"reading the state raised {described(error)}.", where=where, remedy=remedy)


def shows_other(wrapped: Any, unwrapped: Any) -> str:
    """The remedy if a setter gets the wrapped observation, which differs from that of the unwrapped environment."""
    return (
        f"State access has no get, so set receives the observation of the wrapped environment ({wrapped}), but the "
        f"unwrapped environment has {unwrapped}: register get as well, and say how states transform (Symmetry(..., "
        "state=...))."
    )


def of_action(action: str, error: BaseException, label: str, number: int, remedy: str) -> TargetError:
    """The error when step number `number` of the run raises; `action` is the action as text."""
    text = f"step() number {number} of this run raised {described(error)} (action = {action})."
    return TargetError(text, where=label, remedy=remedy)


def of_observation(source: str, obs: str, space: Any, label: str) -> TargetError:
    """The error when `source` ("step()") returns a value outside the space; `obs` is the observation as text."""
    text = f"{source} returned an observation that does not fit its space: {obs}."
    return TargetError(text, where=label, remedy=f"The space is {space}.")


def of_size(source: str, size: int, dim: int, space: Any, label: str) -> TargetError:
    """The error when `source` returns another number of coordinates than the space has."""
    text = f"{source} returned an observation of {size} components, but its space has {dim}."
    return TargetError(text, where=label, remedy=f"The space is {space}.")


def of_shape(source: str, shape: tuple[int, ...], space: Any, label: str) -> TargetError:
    """The error when `source` returns an observation of the right size in the wrong shape."""
    text = f"{source} returned an observation of shape {shape}, but its space has shape {space.shape}."
    return TargetError(
        text,
        where=label,
        remedy=f"Return the observation in the shape of the space: observation.reshape({space.shape}).",
    )


def five_of(returned: Any, label: str) -> tuple[Any, Any, Any, Any, Any]:
    """Unpack the return value of `step`.

    Raises:
        TargetError: the return value is not a tuple of five.
    """
    if isinstance(returned, tuple) and len(returned) == 5:
        return returned
    count = f" of {len(returned)}" if isinstance(returned, tuple) else ""
    raise TargetError(
        f"expected step() to return (observation, reward, terminated, truncated, info), got "
        f"{type(returned).__name__}{count}.",
        where=label,
    )


def number_of(reward: Any, label: str) -> float:
    """The reward as a float; arrays with one element are accepted.

    Raises:
        TargetError: the reward is not a number.
    """
    size = np.size(reward) if isinstance(reward, np.ndarray | list | tuple) or hasattr(reward, "__array__") else 1
    if size != 1:
        raise TargetError(
            f"expected a number as the reward, got a vector of {size}: {short_text(reward)}.",
            where=label,
            remedy=_SCALAR,
        )
    number = reward.item() if isinstance(reward, np.ndarray) and reward.size == 1 else reward
    # float("1.0") would succeed, but a string is not a reward.
    if isinstance(number, str | bytes):
        raise TargetError(
            f"expected a number as the reward, got {short_text(number)} ({type(number).__name__}).", where=label
        )
    try:
        return float(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise TargetError(f"expected a number as the reward, got {short_text(reward)}.", where=label) from error


def flag_of(value: Any, name: str, label: str) -> bool:
    """The flag `name` of a step.

    Raises:
        TargetError: the flag is neither true nor false.
    """
    try:
        return bool(value)
    except (TypeError, ValueError, RuntimeError) as error:  # arrays and tensors with several entries
        raise TargetError(f"expected true or false as {name}, got {short_text(value)}.", where=label) from error
