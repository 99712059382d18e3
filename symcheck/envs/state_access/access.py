"""Looks up how the state of an environment is set and read.

Three sources are tried in this order: access registered for the class (or a base class), the environment's own
`get_state`/`set_state`, and built-in access (one module per family). All of them act on the unwrapped environment;
steps still go through the whole wrapper stack that you train on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcheck.envs.state_access import (
    atari,
    box2d,
    car_racing,
    classic_control,
    functional,
    jax_slots,
    minigrid,
    mujoco,
    toy_text,
    vector,
)
from symcheck.envs.state_access.record import Origin, StateAccess
from symcheck.errors import OptionError


@dataclass(frozen=True)
class _Registration:
    set: Callable[[Any, Any], None]
    get: Callable[[Any], Any] | None
    sample: Callable[[np.random.Generator, int], Sequence[Any]] | None
    batched: bool


_FAMILIES: tuple[Callable[[Any], StateAccess | None], ...] = (
    classic_control.built_in,
    toy_text.built_in,
    mujoco.built_in,
    box2d.built_in,
    car_racing.built_in,
    minigrid.built_in,
    atari.built_in,
    functional.built_in,
    jax_slots.built_in,
)
_REGISTERED: dict[type, _Registration] = {}


def register_state_access(
    env_class: type,
    *,
    set: Callable[[Any, Any], None],  # noqa: A002 - the published name
    get: Callable[[Any], Any] | None = None,
    sample: Callable[[np.random.Generator, int], Sequence[Any]] | None = None,
    batched: bool = False,
) -> None:
    """Register how the state of a class of environments is set and read; overrides built-in access.

    Args:
        env_class: the class of the unwrapped environment; subclasses inherit the registration.
        set: `set(env, state)` puts the unwrapped environment into a state.
        get: `get(env)` reads the state. Leave it out if the observation is the state; `set` then receives the
            observation.
        sample: `sample(rng, n)` proposes n states to test, in addition to states that rollouts reach.
        batched: for environments that exist only in batched form: `set` and `get` act on the unwrapped vector
            environment with whole batches, states[i] being that of slot i. `sample` proposes n single states.

    Raises:
        OptionError: an argument has the wrong type.

    Example:
        >>> class Walk:
        ...     pass
        >>> register_state_access(Walk, set=lambda env, state: setattr(env, "x", state[0]))
        >>> find_state_access(Walk()).source.text
        'registered for Walk'

    Source: the contract of `symcheck.register_state_access`.
    """
    if not isinstance(env_class, type):
        raise OptionError(
            f"expected a class, got {env_class!r}.",
            where="register_state_access(env_class)",
            remedy="Pass type(env.unwrapped).",
        )
    for name, function in (("set", set), ("get", get), ("sample", sample)):
        if not callable(function) and (name == "set" or function is not None):
            raise OptionError(f"expected a callable, got {function!r}.", where=f"register_state_access({name}=)")
    _REGISTERED[env_class] = _Registration(set, get, sample, batched)


def find_state_access(env: Any) -> StateAccess | None:
    """The state access of an unwrapped environment, or None if there is none.

    Args:
        env: the unwrapped environment.

    Returns:
        The registered access, or the environment's own `get_state`/`set_state`, or built-in access, in this order; None
        if there is none.
    """
    return _find_registered(env) or _own_methods(env) or _built_in(env) or vector.built_in(env, find_state_access)


def _built_in(env: Any) -> StateAccess | None:
    return next(filter(None, (family(env) for family in _FAMILIES)), None)


def _find_registered(env: Any) -> StateAccess | None:
    # The nearest class wins: a registration for a subclass overrides that of its base.
    for base in type(env).__mro__:
        if base in _REGISTERED:
            entry = _REGISTERED[base]
            return StateAccess(
                entry.set,
                base.__name__,
                Origin.REGISTERED,
                get=entry.get,
                sample=entry.sample,
                batched=entry.batched,
            )
    return None


def _own_methods(env: Any) -> StateAccess | None:
    setter, getter = getattr(env, "set_state", None), getattr(env, "get_state", None)
    # Methods of these names with other parameters (MuJoCo's set_state takes two) have a different meaning.
    if not (
        callable(setter)
        and callable(getter)
        and _count_required_arguments(setter) == 1
        and _count_required_arguments(getter) == 0
    ):
        return None
    return StateAccess(
        lambda target, state: target.set_state(state),
        type(env).__name__,
        Origin.OWN_METHODS,
        get=lambda target: target.get_state(),
    )


def _count_required_arguments(method: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        # Some built-in methods have no signature: -1 matches no number of arguments, so they are not called.
        return -1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.default is parameter.empty and parameter.kind in positional for parameter in parameters)
