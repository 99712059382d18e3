"""Environments of JAX libraries as pure functions of a key, a state and an action.

gymnax, Brax, jumanji and Pgx have different interfaces, which this module converts to one. A library is imported only
when one of its environments is named.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from symcheck.errors import MissingExtraError, TargetError, described

_LAST = 2  # dm_env's step type of a step that ends an episode


@dataclass(frozen=True)
class PureEnvironment:
    """One environment, as functions that can be passed to `vmap`.

    Attributes:
        observation_space: a Gymnasium space.
        action_space: a Gymnasium space.
        reset: key -> (observation, state).
        step: (key, state, action) -> (observation, state, reward, terminated, truncated).
        parts: state -> the arrays that determine it; None for all leaves of its pytree.
        put: (state, parts) -> the state with these parts; None if `parts` is None.
        observe: state -> its observation, an array; None if the library has no such function.
    """

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    reset: Callable[[Any], tuple[Any, Any]]
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any, Any, Any]]
    parts: Callable[[Any], list[Any]] | None = None
    put: Callable[[Any, Sequence[Any]], Any] | None = None
    observe: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class _Library:
    """How a library's environments are recognised, created by name, and converted."""

    tells: Callable[[Any], bool]
    make: Callable[[Any, str], Any]
    read: Callable[[Any], PureEnvironment]


def library_of(value: Any) -> str | None:
    """The library that an environment belongs to; None for any other value. Imports nothing.

    Example:
        >>> library_of(3) is None
        True
    """
    if isinstance(value, type | gym.Env | VectorEnv):
        return None
    return next((name for name, library in _LIBRARIES.items() if library.tells(value)), None)


def library_named(text: str) -> str | None:
    """The library of a name such as "gymnax:CartPole-v1".

    Example:
        >>> library_named("brax:ant"), library_named("mine:make") is None
        ('brax', True)
    """
    prefix, colon, name = text.partition(":")
    return prefix if colon and name and prefix in _LIBRARIES else None


def make_named(text: str) -> Any:
    """Make the library's environment of that name.

    Raises:
        MissingExtraError: the library is not installed.
        TargetError: the library has no environment of that name.
    """
    library, _, name = text.partition(":")
    try:
        module = importlib.import_module("brax.envs" if library == "brax" else library)
    except ImportError as error:
        raise MissingExtraError("jax", needed_for=text) from error
    try:
        return _LIBRARIES[library].make(module, name)
    except Exception as error:
        text_of_error = described(error)[:200]
        raise TargetError(f"{library} has no environment {name!r}: {text_of_error}.", where="TARGET") from error


def read_environment(env: Any) -> PureEnvironment:
    """Convert an environment of one of the libraries to the common functional form.

    Raises:
        TargetError: its spaces or rewards cannot be compared.
    """
    library = library_of(env)
    if library is None:
        raise TargetError(f"expected an environment of {', '.join(_LIBRARIES)}, got {type(env).__name__}.")
    return _LIBRARIES[library].read(env)


def _has(value: Any, *functions: str) -> bool:
    return all(callable(getattr(value, name, None)) for name in functions)


def _is_jumanji(value: Any) -> bool:
    # dm_env's environments have specs too, but take no key.
    return (
        _has(value, "reset", "step")
        and hasattr(value, "observation_spec")
        and hasattr(value, "action_spec")
        and "key" in inspect.signature(value.reset).parameters
    )


def _read_gymnax(env: Any) -> PureEnvironment:
    params = env.default_params

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        observation, after, reward, ended, _ = env.step_env(key, state, action, params)
        cut = env.is_truncated(after, params) if hasattr(env, "is_truncated") else False
        return observation, after, reward, ended, cut

    space = _space_of(env.observation_space(params))
    # Environments differ here: observations that depend on more than the state are omitted.
    takes = set(inspect.signature(env.get_obs).parameters) if _has(env, "get_obs") else {"none"}
    shows = takes <= {"state", "params", "key"} and isinstance(space, spaces.Box)
    given = {"params": params} if "params" in takes else {}
    return PureEnvironment(
        space,
        _space_of(env.action_space(params)),
        lambda key: env.reset_env(key, params),
        step,
        observe=(lambda state: env.get_obs(state, **given)) if shows else None,
    )


def _read_brax(env: Any) -> PureEnvironment:
    size = env.observation_size
    if not isinstance(size, int):
        raise TargetError(f"expected an observation of Brax that is one vector, got {size!r}.", where="TARGET")

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        after = env.step(state, action)
        cut = after.info.get("truncation", 0.0) > 0.5
        return after.obs, after, after.reward, (after.done > 0.5) & ~_as_array(cut, after.done), cut

    def put(state: Any, parts: Sequence[Any]) -> Any:
        # All other arrays follow from the generalised coordinates; the done flag of the previous step is dropped.
        placed = env.pipeline_init(*parts)
        return state.replace(pipeline_state=placed, done=state.done * 0)

    settable = callable(getattr(env, "pipeline_init", None))
    start = env.reset
    return PureEnvironment(
        spaces.Box(-np.inf, np.inf, (size,), np.float32),
        spaces.Box(-1.0, 1.0, (int(env.action_size),), np.float32),
        lambda key: ((state := start(key)).obs, state),
        step,
        (lambda state: [state.pipeline_state.q, state.pipeline_state.qd]) if settable else None,
        put if settable else None,
    )


def _as_array(value: Any, like: Any) -> Any:
    """A flag, traced or a Python bool, in a form that `~` negates."""
    return (like * 0 + value) > 0.5


def _read_jumanji(env: Any) -> PureEnvironment:
    observation_spec, action_spec = (
        spec() if inspect.ismethod(spec) else spec for spec in (env.observation_spec, env.action_spec)
    )

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        after, seen = env.step(state, action)
        last = seen.step_type == _LAST
        # At a time limit, the discount is 1.
        return _by_name(seen.observation), after, seen.reward, last & (seen.discount == 0), last & (seen.discount != 0)

    def reset(key: Any) -> tuple[Any, Any]:
        state, seen = env.reset(key)
        return _by_name(seen.observation), state

    return PureEnvironment(_space_of(observation_spec), _space_of(action_spec), reset, step)


def _read_pgx(env: Any) -> PureEnvironment:
    if env.num_players != 1:
        raise TargetError(
            f"expected an environment for one player, got one for {env.num_players}.",
            where="TARGET",
            remedy="For two-player games of Pgx, use verify-game.",
        )
    jax = importlib.import_module("jax")
    seen = np.asarray(jax.jit(env.init)(jax.random.PRNGKey(0)).observation)

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        after = env.step(state, action, key)
        return after.observation, after, after.rewards[..., 0], after.terminated, after.truncated

    space: spaces.Space[Any] = (
        spaces.MultiBinary(seen.shape)
        if seen.dtype.kind == "b"
        else spaces.Box(-np.inf, np.inf, seen.shape, np.float32)
    )
    return PureEnvironment(
        space,
        spaces.Discrete(int(env.num_actions)),
        lambda key: ((state := env.init(key)).observation, state),
        step,
    )


def _by_name(observation: Any) -> Any:
    """Convert named tuples to dictionaries, as a Dict space requires."""
    if not hasattr(observation, "_asdict"):
        return observation
    return {name: _by_name(value) for name, value in observation._asdict().items()}


def _space_of(space: Any) -> spaces.Space[Any]:
    """A space of gymnax, or a spec of jumanji, as a space of Gymnasium."""
    inner = getattr(space, "_specs", None) or getattr(space, "spaces", None)
    if isinstance(inner, Mapping) and inner:
        return spaces.Dict({name: _space_of(part) for name, part in inner.items()})
    number = getattr(space, "n", getattr(space, "num_values", None))
    if number is not None:
        counts = np.asarray(number)
        return spaces.Discrete(int(counts)) if counts.ndim == 0 else spaces.MultiDiscrete(counts.astype(np.int64))
    if not hasattr(space, "shape") or not hasattr(space, "dtype"):
        raise TargetError(
            f"expected a numeric space, got {type(space).__name__}.",
            where="TARGET",
            remedy="Environments with other spaces are not supported.",
        )
    dtype = np.dtype(space.dtype)
    if dtype.kind == "b":
        return spaces.MultiBinary(space.shape if space.shape else 1)
    whole = np.issubdtype(dtype, np.integer)
    outermost = (np.iinfo(dtype).min, np.iinfo(dtype).max) if whole else (-np.inf, np.inf)
    names = (("low", "minimum"), ("high", "maximum"))
    low, high = (
        np.broadcast_to(np.asarray(next((getattr(space, n) for n in pair if hasattr(space, n)), default), dtype), shape)
        for pair, default, shape in zip(names, outermost, (space.shape, space.shape), strict=True)
    )
    return spaces.Box(low, high, tuple(space.shape), dtype.type)


_LIBRARIES = {
    "gymnax": _Library(
        lambda value: hasattr(value, "default_params") and _has(value, "step_env", "reset_env", "observation_space"),
        lambda module, name: module.make(name)[0],
        _read_gymnax,
    ),
    "brax": _Library(
        lambda value: _has(value, "reset", "step") and hasattr(value, "observation_size") and hasattr(value, "backend"),
        lambda module, name: module.get_environment(name),
        _read_brax,
    ),
    "jumanji": _Library(_is_jumanji, lambda module, name: module.make(name), _read_jumanji),
    "pgx": _Library(
        lambda value: _has(value, "init", "step") and hasattr(value, "num_players") and hasattr(value, "num_actions"),
        lambda module, name: module.make(name),
        _read_pgx,
    ),
}
"""Libraries by the prefix before a colon; the extra of all of them is `jax`."""
