"""Recognises environments that have a batched form: known source code, and wrappers that change nothing.

A subclass, a wrapper that changes anything, a method replaced on the instance or in the class, or a release of
Gymnasium with different code has no batched form and is stepped one state at a time. A run therefore always verifies
your own environment.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from symcheck.envs.models import acrobot, cartpole, mountain_car, pendulum
from symcheck.envs.models.model import BatchModel
from symcheck.envs.transparent import KEEPS_STEPS, defined_at, wrappers

_PACKAGE = "gymnasium.envs.classic_control"


@dataclass(frozen=True)
class _Known:
    """One class whose code was transcribed.

    Attributes:
        build: maps an instance to its batched form; None if the form does not support its parameters.
        code: names of the functions that a step runs: methods of the class, or functions of its module.
        digest: the digest of their source text.
    """

    build: Callable[[Any], BatchModel | None]
    code: tuple[str, ...]
    digest: str


# For each class: the builder of its batched form, the transcribed functions, and the digest of their source text. A
# version of Gymnasium with a different digest has no batched form.
_KNOWN: dict[str, _Known] = {
    f"{_PACKAGE}.cartpole:CartPoleEnv": _Known(cartpole.build, ("step",), "36d99482f4772b6c"),
    f"{_PACKAGE}.pendulum:PendulumEnv": _Known(
        pendulum.build, ("step", "_get_obs", "angle_normalize"), "f11954e188602c13"
    ),
    f"{_PACKAGE}.mountain_car:MountainCarEnv": _Known(mountain_car.build, ("step",), "d542dda464772e84"),
    f"{_PACKAGE}.continuous_mountain_car:Continuous_MountainCarEnv": _Known(
        mountain_car.build_continuous, ("step",), "405213fb980f17ab"
    ),
    f"{_PACKAGE}.acrobot:AcrobotEnv": _Known(
        acrobot.build, ("step", "_get_ob", "_terminal", "_dsdt", "wrap", "bound", "rk4"), "857a2fcd6de22ae5"
    ),
}


def find_model(env: gym.Env[Any, Any]) -> BatchModel | None:
    """The batched form of an environment, or None if it has none.

    Args:
        env: the environment with the user's wrappers.

    Returns:
        The form, with the instance's own parameters. It is valid for the whole stack, because no wrapper changes
        observations, actions, rewards or terminations.

    Example:
        >>> find_model(gym.make("CartPole-v1")).source
        'the batched form of CartPoleEnv'
        >>> find_model(gym.wrappers.ClipReward(gym.make("CartPole-v1"), -1, 0)) is None
        True
    """
    pure = getattr(env, "batched_form", None)
    if callable(pure):  # one slot of a batch of pure functions
        form: BatchModel | None = pure()
        return form
    # A `step` that was replaced on an instance (a monkey patch) has unknown behaviour.
    if any(defined_at(layer) not in KEEPS_STEPS or "step" in vars(layer) for layer in wrappers(env)):
        return None
    base: Any = env.unwrapped
    known = _KNOWN.get(defined_at(base))
    # Rendering in `step` has side effects that a batch would omit.
    if known is None or base.render_mode is not None:
        return None
    # Also reject functions replaced on the instance, and subclasses or versions with different code.
    if any(name in vars(base) for name in known.code) or code_digest(type(base), known.code) != known.digest:
        return None
    return known.build(base)


def code_digest(env_class: type, names: tuple[str, ...]) -> str:
    """A digest of the source text of functions; "" if the source cannot be read.

    Args:
        env_class: methods are looked up here, functions in its module.
        names: the names of the functions.

    Returns:
        The first 16 hexadecimal digits of a SHA-256.

    Example:
        >>> code_digest(int, ("step",))
        ''
    """
    module = sys.modules[env_class.__module__]
    # Methods of the class, or functions of its module that the methods call.
    functions = [getattr(env_class, name, None) or getattr(module, name, None) for name in names]
    if not all(inspect.isfunction(function) for function in functions):
        return ""
    return _digest(tuple(functions))


@functools.lru_cache(maxsize=32)
def _digest(functions: tuple[Any, ...]) -> str:
    try:
        text = "\n".join(inspect.getsource(function) for function in functions)
    except (OSError, TypeError):
        return ""
    # 64 bits distinguish versions, and are short enough for the table above.
    return hashlib.sha256(text.encode()).hexdigest()[:16]
