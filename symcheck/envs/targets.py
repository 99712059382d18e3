"""Resolves environment targets: a Gymnasium id, an instance, a class or factory, `module:name` or a file.

Gymnasium's functional environments (`FuncEnv`) are made stateful, see `functional`; several agents become one
environment, see `parallel`; vector environments of Stable-Baselines3 are converted to Gymnasium's, see `vec_env`.

Every target becomes an `EnvTarget`: a label for reports, and a function that builds the environment with the wrapper
stack that you train on. An instance is never stepped itself if it can be copied.
"""

from __future__ import annotations

import copy
import difflib
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import gymnasium as gym

from symcheck.envs import registration
from symcheck.envs.functional import FunctionalEnv, is_functional
from symcheck.envs.jax_batch import JaxBatch
from symcheck.envs.jax_libraries import library_named, library_of, make_named
from symcheck.envs.parallel import ParallelEnvironment, as_one, is_parallel, remedy_of_agents
from symcheck.envs.vec_env import VecEnvBatch, is_vec_env
from symcheck.errors import MissingExtraError, TargetError, described
from symcheck.loading import is_reference, load_attribute, look_in

# A single environment or a vector environment: the given object itself is verified.
AnyEnv = gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]
# A namespace may be prefixed by a module: "package:Namespace/Id-v0".
_VERSIONED = re.compile(r"^(?:[\w.]+:)?(?:[\w./-]+/)?[\w:.-]+-v\d+$")

# Packages register ids on import: the package to import for a prefix, and the extra that installs it.
_PACKAGES = {"ALE/": ("ale_py", None), "MiniGrid-": ("minigrid", "minigrid"), "BabyAI-": ("minigrid", "minigrid")}
# Gymnasium's own environments that need a package, with the extra that installs it.
_EXTRA_OF = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}
_REMEDY_OF_BUILDING = "The factory must work without arguments, or with those of --env-kwargs."
_OLD_ATARI = re.compile(r"^\w+(?:NoFrameskip|Deterministic)?-v[04]$")


@dataclass(frozen=True)
class EnvTarget:
    """An environment to check.

    Attributes:
        label: the name in reports.
        make: builds the environment, with the user's wrappers.
        env_id: the Gymnasium id, under which the atlas is searched; None if there is none.
        several: the environment of all agents, if there are several; otherwise None.
    """

    label: str
    make: Callable[[], AnyEnv]
    env_id: str | None = None
    several: ParallelEnvironment | None = None

    def single(self) -> gym.Env[Any, Any]:
        """Build the environment, which must be a single one.

        Raises:
            TargetError: the target is a vector environment.
        """
        env = self.make()
        if isinstance(env, gym.vector.VectorEnv):
            raise TargetError(
                f"expected a single environment, but {self.label} is a vector environment of {env.num_envs} slots.",
                where="TARGET",
                remedy="Give the single environment here; verify-env takes vector environments.",
            )
        return env


def resolve_environment(
    target: Any, *, env_kwargs: Mapping[str, Any] | None = None, where: str = "TARGET"
) -> EnvTarget:
    """Resolve a target to an environment, and build it once to check that it works.

    Args:
        target: a Gymnasium id (also "module:Id-v0"), an environment or `FuncEnv`, a zero-argument factory or class of
            one, or a reference
            "pkg.mod:factory" or "path/file.py:factory" to one.
        env_kwargs: keyword arguments for ids, factories and classes.
        where: the name of the argument in messages.

    Returns:
        The target.

    Raises:
        TargetError: there is nothing under that name, it cannot be called, or it does not build an environment.

    Example:
        >>> resolve_environment("CartPole-v1").env_id
        'CartPole-v1'
    """
    if env_kwargs is not None and not isinstance(env_kwargs, Mapping):
        raise TargetError(f"expected keyword arguments by name, got {env_kwargs!r}.", where="--env-kwargs")
    arguments = dict(env_kwargs or {})
    if isinstance(target, str):
        return _resolve_text(target, arguments, where)
    if is_functional(target):
        return _instance(FunctionalEnv(target), type(target).__name__, arguments, where)
    if library_of(target):
        return _batch(JaxBatch(target), type(target).__name__, arguments, where)
    if is_parallel(target):
        return _instance(as_one(target), type(target).__name__, arguments, where)
    if is_vec_env(target):
        return _instance(VecEnvBatch(target), type(target).__name__, arguments, where)
    if isinstance(target, gym.Env | gym.vector.VectorEnv):
        # An instance is copied by `make`, since steps change it.
        return _instance(target, _label_of(target), arguments, where)
    return _factory(target, getattr(target, "__name__", type(target).__name__), arguments, where)


def _resolve_text(text: str, arguments: dict[str, Any], where: str) -> EnvTarget:
    if library_named(text):
        return _batch(JaxBatch(make_named(text)), text, arguments, where)
    # "file-v1.py" would match as an id.
    if _VERSIONED.match(text) and not text.endswith(".py"):
        return _identifier(text, arguments, where)
    if not is_reference(text):
        raise _unknown_id(text, where)
    loaded = load_attribute(text, where=where)
    if is_functional(loaded):
        loaded = FunctionalEnv(loaded)
    if library_of(loaded):
        return _batch(JaxBatch(loaded), text, arguments, where)
    if is_parallel(loaded):
        loaded = as_one(loaded)
    if is_vec_env(loaded):
        loaded = VecEnvBatch(loaded)
    if isinstance(loaded, gym.Env | gym.vector.VectorEnv):
        return _instance(loaded, text, arguments, where)
    return _factory(loaded, text, arguments, where)


def _identifier(env_id: str, arguments: dict[str, Any], where: str) -> EnvTarget:
    registration.register()
    if ":" in env_id:  # the module that registers it may be in the current folder, as for module:factory
        look_in(str(Path.cwd()))
    _import_package_of(env_id)

    def make() -> AnyEnv:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suppress warnings about outdated versions: the user requested this id
            made = gym.make(env_id, disable_env_checker=True, **arguments)
            return as_one(made) if is_parallel(made) else made

    try:
        # Build it once here, so that errors occur before the first property runs.
        env = make()
        env.close()
    except (gym.error.NameNotFound, gym.error.VersionNotFound, gym.error.NamespaceNotFound) as error:
        raise _unknown_id(env_id, where) from error
    except gym.error.DependencyNotInstalled as error:
        for package, extra in _EXTRA_OF.items():
            if package in str(gym.spec(env_id).entry_point):
                raise MissingExtraError(extra, needed_for=env_id) from error
        raise TargetError(f"{env_id} needs a package that is not installed: {error}", where=where) from error
    except Exception as error:
        raise _build_failure(env_id, error, where) from error
    # The id without the module prefix, as in the atlas and in reports.
    return EnvTarget(env_id, make, env_id.rpartition(":")[2], env if isinstance(env, ParallelEnvironment) else None)


def _import_package_of(env_id: str) -> None:
    """Import the package that registers an id, if the id determines the package and is not registered yet."""
    if env_id in gym.registry or ":" in env_id:
        return
    # The first matching prefix; values are (package, extra).
    package, extra = next((known for prefix, known in _PACKAGES.items() if env_id.startswith(prefix)), (None, None))
    if package is None and _OLD_ATARI.match(env_id):
        package = "ale_py"
    if package is None:
        return
    try:
        gym.register_envs(importlib.import_module(package))
    except ImportError as error:
        if extra is not None:
            raise MissingExtraError(extra, needed_for=env_id) from error


def _unknown_id(text: str, where: str) -> TargetError:
    # A package registers its ids without the package's name.
    package, colon, name = text.rpartition(":")
    near = difflib.get_close_matches(name, list(gym.registry), n=1)
    shown = f"Did you mean '{package}{colon}{near[0]}'? " if near else ""
    return TargetError(
        f"expected a Gymnasium id, module:factory or file.py:factory, got {text!r}; no such id is registered.",
        where=where,
        remedy=f"{shown}If a package registers the id, write package:Id-v0.",
    )


def _instance(env: AnyEnv, label: str, arguments: dict[str, Any], where: str) -> EnvTarget:
    if arguments:
        raise TargetError(
            "an environment that is already built takes no keyword arguments.",
            where=where,
            remedy="Give a factory instead, or build the environment with them.",
        )

    _check_spaces(env, label, where)

    def make() -> AnyEnv:
        if _holds_functions_of_itself(env):
            return env
        try:
            return copy.deepcopy(env)
        except Exception:  # an instance may contain anything; if it cannot be copied, it is stepped itself
            return env

    return EnvTarget(label, make, _id_of(env), env if isinstance(env, ParallelEnvironment) else None)


def _holds_functions_of_itself(env: AnyEnv) -> bool:
    """Whether an instance has functions that refer to it, such as `env.get_state = lambda: env.x`.

    Copies would share them.
    """
    layers: list[Any] = [env]
    while (inner := getattr(layers[-1], "env", None)) is not None and not any(inner is layer for layer in layers):
        layers.append(inner)
    held = (value for layer in layers for value in getattr(layer, "__dict__", {}).values())
    named = (value for function in held if isinstance(function, FunctionType) for value in _values_named(function))
    return any(value is layer for value in named for layer in layers)


def _values_named(function: FunctionType) -> list[Any]:
    """The objects to which a function refers: its globals, closure variables and defaults."""
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # a closure variable without a value
        return []
    return [*names.globals.values(), *names.nonlocals.values(), *(function.__defaults__ or ())]


def _batch(env: JaxBatch, label: str, arguments: dict[str, Any], where: str) -> EnvTarget:
    """A batch of a pure environment: its compiled functions are shared by all copies."""
    if arguments:
        raise TargetError(
            "JAX environments take no keyword arguments here.", where=where, remedy="Give a factory instead."
        )
    _check_spaces(env, label, where)
    return EnvTarget(label, lambda: copy.copy(env))


def _factory(factory: Any, label: str, arguments: dict[str, Any], where: str) -> EnvTarget:
    if not callable(factory):
        raise TargetError(
            f"expected an environment, or a factory without arguments that returns one; {label} is "
            f"{factory!r} ({type(factory).__name__}).",
            where=where,
        )

    def make() -> AnyEnv:
        made = factory(**arguments)
        if library_of(made):
            return JaxBatch(made)
        if is_parallel(made):
            return as_one(made)
        if is_vec_env(made):
            return VecEnvBatch(made)
        return FunctionalEnv(made) if is_functional(made) else made

    try:
        env = make()
    except Exception as error:
        raise _build_failure(label, error, where) from error
    if not isinstance(env, gym.Env | gym.vector.VectorEnv):
        raise TargetError(
            f"expected {label} to return a gymnasium.Env or a gymnasium.vector.VectorEnv, got "
            f"{type(env).__module__}.{type(env).__name__}.",
            where=where,
            remedy=remedy_of_agents(env) or "Wrap environments of other libraries as one of the two.",
        )
    _check_spaces(env, label, where)
    return EnvTarget(label, make, _id_of(env), env if isinstance(env, ParallelEnvironment) else None)


def _check_spaces(env: AnyEnv, label: str, where: str) -> None:
    """Reject an environment without observation or action space."""
    prefix = "single_" if isinstance(env, gym.vector.VectorEnv) else ""
    names = (f"{prefix}observation_space", f"{prefix}action_space")
    missing = [name for name in names if not isinstance(getattr(env, name, None), gym.Space)]
    if missing:
        raise TargetError(
            f"an environment must set {' and '.join(names)}, but {label} does not set {' and '.join(missing)}.",
            where=where,
            remedy="Each is a gymnasium.spaces.Space, set in __init__.",
        )


def _build_failure(label: str, error: Exception, where: str) -> TargetError:
    return TargetError(
        f"building {label} raised {described(error)}.",
        where=where,
        remedy=_REMEDY_OF_BUILDING if isinstance(error, TypeError) else None,
    )


def _id_of(env: AnyEnv) -> str | None:
    return env.spec.id if env.spec is not None else None


def _label_of(env: AnyEnv) -> str:
    return _id_of(env) or type(env.unwrapped).__name__
