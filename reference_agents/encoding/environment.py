"""A user's own environment, with the encoding of its spaces and of its claim.

It is named as for `verify-env`: a Gymnasium id, `module:factory` or `file.py:factory`. Environments and symmetries that
are Python objects are registered under a name in this process.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from reference_agents.encoding.actions import ActionEncoder
from reference_agents.encoding.claims import encode_claim, spatial_names
from reference_agents.encoding.observations import ObservationEncoder
from symcheck.envs.specs import resolve_symmetry
from symcheck.envs.targets import EnvTarget, resolve_environment
from symcheck.errors import TargetError, described
from symcheck.loading import is_reference
from symcheck.symmetry.symmetry import Symmetry

OBJECT = "<object "
_objects: dict[str, Any] = {}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class EncodedEnvironment:
    """The factory of an environment, and the encoding of its values.

    Attributes:
        label: the name in messages.
        make: builds the environment.
        observation: the encoding of its observations.
        action: the encoding of its actions.
        symmetry: the claim on encoded values; None if there is none.
        spatial: the spatial operator of each generator if observations are images; otherwise None.
        time_limit: its own limit of steps per episode; None if it declares none.
        remake: builds the environment with keyword arguments.
    """

    label: str
    make: Callable[[], gym.Env[Any, Any]]
    observation: ObservationEncoder
    action: ActionEncoder
    symmetry: Symmetry | None
    spatial: tuple[str, ...] | None
    time_limit: int | None
    remake: Callable[[Mapping[str, Any]], gym.Env[Any, Any]]


def keep_object(value: Any, label: str) -> str:
    """Register an object in this process, and return its name."""
    name = f"{OBJECT}{next(_numbers)}> {label}"
    _objects[name] = value
    return name


def is_object(name: str) -> bool:
    """Whether a name is that of a registered object."""
    return name.startswith(OBJECT)


def absolute(reference: str) -> str:
    """The reference with the full path of its file, which is valid in any folder.

    Example:
        >>> absolute("CartPole-v1"), absolute("/here/my.py:make")
        ('CartPole-v1', '/here/my.py:make')
    """
    if reference.endswith(".toml"):
        return str(Path(reference).resolve())
    source, _, attribute = reference.rpartition(":")
    return f"{Path(source).resolve()}:{attribute}" if source.endswith(".py") else reference


def short_label(name: str) -> str:
    """The name without the folder of its file.

    Example:
        >>> short_label("/here/my.py:make"), short_label("ALE/Pong-v5")
        ('my.py:make', 'ALE/Pong-v5')
    """
    if is_object(name):
        return name.partition("> ")[2]
    return name.rpartition("/")[2] if is_reference(name) or name.endswith(".toml") else name


def file_stem(name: str) -> str:
    """The label of a name in a form for file names.

    Example:
        >>> file_stem("/here/my.py:make")
        'my.py-make'
    """
    # Every sequence of other characters than letters, digits, dots and dashes becomes one minus sign.
    return re.sub(r"[^\w.-]+", "-", short_label(name))


def source_file(name: str) -> Path | None:
    """The file of a reference or SPEC; None for packages, ids and objects."""
    path = Path(name if name.endswith(".toml") else name.rpartition(":")[0])
    return path if path.suffix in (".py", ".toml") else None


def find_target(name: str, arguments: Mapping[str, Any] | None = None) -> EnvTarget:
    """Resolve the name of an environment, and build it once to check that it works."""
    return resolve_environment(_object_or_name(name, "--env"), env_kwargs=arguments, where="--env")


def find_symmetry(name: str) -> Symmetry:
    """Resolve a SPEC, or the name of a registered symmetry."""
    return resolve_symmetry(_object_or_name(name, "--symmetry")).symmetry


def _object_or_name(name: str, where: str) -> Any:
    if is_object(name) and name not in _objects:
        raise TargetError(
            f"{short_label(name)!r} was an object in the Python program that trained the run, so it is "
            "not available in this process.",
            where=where,
            remedy="Name environments and symmetries by file.py:name to read such a run in another process.",
        )
    return _objects.get(name, name)


@functools.lru_cache(maxsize=64)
def encoded_environment(name: str, symmetry: str, *, scaled: bool = True) -> EncodedEnvironment:
    """Encode an environment and a claim about it.

    Args:
        name: the name of the environment.
        symmetry: a SPEC; "" for none.
        scaled: whether bounded actions are drawn in units of half their range, and bytes divided by 255.

    Raises:
        SymcheckError: the environment or the symmetry cannot be used; the message gives the reason.
    """
    target = find_target(name)
    environment = _call(target.single, target.label, "built")
    try:
        space, action = environment.observation_space, ActionEncoder(environment.action_space, scaled=scaled)
        if not symmetry:
            return _bundle(name, target, environment, ObservationEncoder(space, scaled=scaled), action, None, None)
        claim = find_symmetry(symmetry)
        claim.bind(space, environment.action_space)  # rejects entries that do not fit, with both sizes in the message
        encoder = ObservationEncoder(space)
        is_image = len(encoder.shape) == 3 and not claim.is_continuous
        names = spatial_names(claim, space, last=encoder.channels_last) if is_image else None
        # An image is encoded as a vector if maps other than spatial operators act on it.
        if is_image and names is None:
            encoder = ObservationEncoder(space, as_image=False)
        encoded = encode_claim(claim, encoder, action, space)
        return _bundle(name, target, environment, encoder, action, encoded, None if names is None else tuple(names))
    finally:
        environment.close()


def _bundle(
    name: str,
    target: EnvTarget,
    environment: gym.Env[Any, Any],
    observation: ObservationEncoder,
    action: ActionEncoder,
    symmetry: Symmetry | None,
    spatial: tuple[str, ...] | None,
) -> EncodedEnvironment:
    label = short_label(target.label)

    def remake(arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
        return find_target(name, arguments).single()

    limit = _time_limit(environment)
    return EncodedEnvironment(label, target.single, observation, action, symmetry, spatial, limit, remake)


def _time_limit(environment: gym.Env[Any, Any]) -> int | None:
    """The limit of the outermost `TimeLimit`, or of the registration."""
    layer = environment
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.TimeLimit):
            return int(layer._max_episode_steps)  # Gymnasium has no public name for it
        layer = layer.env
    return environment.spec.max_episode_steps if environment.spec is not None else None


def _call(make: Callable[[], gym.Env[Any, Any]], label: str, what: str) -> gym.Env[Any, Any]:
    try:
        return make()
    except TargetError:
        raise
    except Exception as error:
        raise TargetError(f"{label} could not be {what}: {described(error)}.", where="--env") from error
