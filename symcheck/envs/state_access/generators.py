"""Reads and restores the random generators of an environment, so that a random step can be repeated.

Generators are not part of a state: if both sides of a pair drew the same noise, biased noise would go unnoticed, and
unbiased noise would look like an asymmetry. Generators are restored to leave an environment unchanged, and to compare
stepping with setting. If a setter changes them, for instance because it copies every attribute, the change is undone:
see `without_chance`.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from symcheck.envs.state_access.record import StateAccess
from symcheck.statements.statement import Statement

_SEEDED_BY_RESET = "_np_random"  # the attribute behind Gymnasium's `np_random`
_LEFT_ALONE = Statement("inexact_generators")


class _Generator(NamedTuple):
    """One random generator of an environment: functions that read, restore, advance and seed its state."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    draw: Callable[[], Any]
    seed: Callable[[int], Any]


def random_state(env: Any, access: StateAccess | None = None) -> Any:
    """The state of an unwrapped environment's generators.

    Args:
        env: the unwrapped environment.
        access: the state access of this environment; None for NumPy's `np_random` alone.

    Returns:
        A value for `set_random_state`.
    """
    if access is not None and access.get_random is not None:
        return access.get_random(env)
    return copy.deepcopy(env.np_random.bit_generator.state)


def set_random_state(env: Any, state: Any, access: StateAccess | None = None) -> None:
    """Restore the generators of an unwrapped environment. In ALE this restores more, so set the state after it.

    Args:
        env: the unwrapped environment.
        state: what `random_state` returned.
        access: the access passed to `random_state`.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("CartPole-v1").unwrapped
        >>> before = random_state(env)
        >>> first = env.np_random.random()
        >>> set_random_state(env, before)
        >>> env.np_random.random() == first
        True
    """
    if access is not None and access.set_random is not None:
        access.set_random(env, state)
        return
    env.np_random.bit_generator.state = copy.deepcopy(state)


def without_chance(env: Any, access: StateAccess) -> StateAccess:
    """State access whose setter does not change random generators.

    A test determines whether the given setter changes generators: one state is set twice, and in between numbers are
    drawn from every generator of the environment and of the process. The states of the generators are restored at the
    end.

    Args:
        env: the unwrapped environment, reset.
        access: its state access.

    Returns:
        `access` itself if its setter does not change generators, if states cannot be read, or if the test raises;
        otherwise an access that restores the generators after setting.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("CartPole-v1").unwrapped
        >>> _ = env.reset(seed=0)
        >>> def put(env, state):
        ...     env.__dict__.update(copy.deepcopy(state))
        >>> whole = StateAccess(put, "my own", get=lambda env: copy.deepcopy(env.__dict__))
        >>> state = whole.get(env)
        >>> drawn = env.np_random.random()
        >>> without_chance(env, whole).set(env, state)
        >>> env.np_random.random() == drawn
        False
    """
    if access.get is None or access.batched or access.get_random is not None:
        return access
    # The test below draws from the generators, so restore them afterwards.
    before = {name: generator.read() for name, generator in _generators(env).items()}
    decided = _generators_set_by_state(env, access)
    for name, generator in _generators(env).items():
        if name in before:
            generator.write(before[name])
    if not decided:
        return access

    def set_state(target: Any, state: Any) -> None:
        # Identify generators by name, not by object: a setter that copies attributes replaces the object.
        held = {name: generator.read() for name, generator in _generators(target).items() if name in decided}
        access.set(target, state)
        now = _generators(target)
        for name in held.keys() & now.keys():
            now[name].write(held[name])

    return replace(access, set=set_state, inexact=(*access.inexact, _LEFT_ALONE))


def _generators_set_by_state(env: Any, access: StateAccess) -> frozenset[str]:
    """The generators whose next numbers depend on the set state; empty if reading or setting raises."""
    if access.get is None:
        return frozenset()
    try:
        state = copy.deepcopy(access.get(env))
        access.set(env, copy.deepcopy(state))
        first = _generators(env)
        # Compare as bytes: states are nested tuples and dicts of arrays, which == cannot compare.
        held = {name: pickle.dumps(generator.read()) for name, generator in first.items()}
        for generator in first.values():
            # Advance the generators: one that setting does not change then has a different state.
            generator.draw()
        access.set(env, state)
        return frozenset(
            name for name, generator in _generators(env).items() if pickle.dumps(generator.read()) == held.get(name)
        )
    except Exception:  # errors of a user's setter are reported when a state is set during the run
        return frozenset()


def reset_seeded(env: Any, seed: int, reset: Callable[[], Any]) -> Any:
    """Reset with a seed for every generator, including those of the process and those in attributes of any wrapper.

    Many environments construct their own generator, once or at each reset, and ignore `reset(seed=...)` for it.
    Generators that `reset` seeds keep that seed.

    Args:
        env: the environment with its wrappers.
        seed: the seed for all of them.
        reset: resets `env` under the same seed.

    Returns:
        The return value of `reset`.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("CartPole-v1")
        >>> env.unwrapped.wind = np.random.default_rng(0)
        >>> _ = reset_seeded(env, 7, lambda: env.reset(seed=7))
        >>> first = env.unwrapped.wind.random()
        >>> _ = reset_seeded(env, 7, lambda: env.reset(seed=7))
        >>> env.unwrapped.wind.random() == first
        True
    """
    # Generator objects before the reset, to recognise those that it creates.
    before = [held for layer in _layers(env) for held in vars(layer).values()]
    for layer in _layers(env):
        for generator in _generators(layer).values():
            generator.seed(seed)
    returned = reset()
    for layer in _layers(env):
        made = {
            name: held
            for name, held in vars(layer).items()
            if name != _SEEDED_BY_RESET and not any(held is old for old in before)
        }
        for generator in filter(None, map(_as_generator, made.values())):
            generator.seed(seed)
    return returned


@contextmanager
def global_generators() -> Iterator[None]:
    """Restore the process-wide random generators on exit."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


@contextmanager
def generators_kept(env: Any) -> Iterator[None]:
    """Restore the generators of an environment, its wrappers and the process on exit.

    Args:
        env: the environment with its wrappers.
    """
    held = [{name: generator.read() for name, generator in _generators(layer).items()} for layer in _layers(env)]
    try:
        yield
    finally:
        for layer, states in zip(_layers(env), held, strict=True):
            now = _generators(layer)  # a reset may have created new ones
            for name in states.keys() & now.keys():
                now[name].write(states[name])


def _layers(env: Any) -> list[Any]:
    """An environment with its wrappers, outermost first."""
    layers: list[Any] = []
    layer = env
    # Some wrappers refer to themselves: stop at a layer that was already visited.
    while layer is not None and not any(layer is known for known in layers):
        layers += [layer] if hasattr(layer, "__dict__") else []
        layer = getattr(layer, "env", None)
    return layers


def _generators(env: Any) -> dict[str, _Generator]:
    """The generators among the attributes of an environment, by name, and those of the process."""
    generators = {
        name: known
        for name, value in getattr(env, "__dict__", {}).items()
        if (known := _as_generator(value)) is not None
    }
    generators["numpy.random"] = _Generator(np.random.get_state, np.random.set_state, np.random.random, np.random.seed)
    generators["random"] = _Generator(random.getstate, random.setstate, random.random, random.seed)
    return generators


def _as_generator(value: Any) -> _Generator | None:
    if isinstance(value, np.random.Generator):
        bits = value.bit_generator
        return _Generator(
            lambda: copy.deepcopy(bits.state),
            lambda state: setattr(bits, "state", copy.deepcopy(state)),
            lambda: bits.random_raw(),
            lambda seed: setattr(bits, "state", type(bits)(seed).state),
        )
    if isinstance(value, np.random.RandomState):
        return _Generator(value.get_state, value.set_state, value.random_sample, value.seed)
    if isinstance(value, random.Random):
        return _Generator(value.getstate, value.setstate, value.random, value.seed)
    return None
