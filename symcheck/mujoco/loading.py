"""Loads a MuJoCo model from a file, XML text, a compiled model, an environment or its id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from symcheck.envs.targets import resolve_environment
from symcheck.errors import MissingExtraError, TargetError
from symcheck.mujoco.mjcf.model import MjcfModel
from symcheck.mujoco.urdf import UrdfModel, is_urdf

_SUFFIXES = (".xml", ".mjcf", ".mjb")


@dataclass(frozen=True)
class LoadedModel:
    """A compiled model and its origin.

    Attributes:
        model: a `mujoco.MjModel`.
        label: the name in reports.
        env: the unwrapped environment that it was taken from; None for other sources.
    """

    model: Any
    label: str
    env: Any = None


def load_model(source: Any) -> LoadedModel:
    """Load a model. MJCF is read without MuJoCo if MuJoCo is not installed; URDF never needs it.

    Args:
        source: the path of an MJCF or URDF file, its text, a `mujoco.MjModel`, a `mujoco.MjSpec`, a Gymnasium
            environment with a `model`, a factory of such an environment, or its id.

    Returns:
        The compiled model.

    Raises:
        MissingExtraError: MuJoCo is not installed, and the source is not MJCF or URDF (a file or its text).
        TargetError: there is no such file, it does not compile, or the object has no model.

    Example:
        >>> load_model("<mujoco><worldbody/></mujoco>").model.nbody
        1
    """
    urdf = _urdf(source)
    if urdf is not None:
        return urdf
    try:
        mujoco = _mujoco()
    except MissingExtraError:
        mjcf = _mjcf(source)
        if mjcf is None:
            raise
        return mjcf
    if isinstance(source, mujoco.MjModel):
        return LoadedModel(source, "model")
    if isinstance(source, mujoco.MjSpec):
        return LoadedModel(_compile_model(source.compile, "the MjSpec"), "model")
    # MJCF text rather than a path: paths do not begin with "<".
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return LoadedModel(_compile_model(lambda: mujoco.MjModel.from_xml_string(source), "the MJCF text"), "model")
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(_SUFFIXES)):
        return LoadedModel(_from_file(mujoco, Path(source)), str(source))
    return _from_environment(mujoco, source)


def _urdf(source: Any) -> LoadedModel | None:
    """A URDF from its path or text; None for everything else."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return LoadedModel(UrdfModel(source, "the URDF text"), "model") if is_urdf(source) else None
    if not isinstance(source, str | Path) or not str(source).endswith((".urdf", ".xml")):
        return None
    path = Path(source)
    if str(source).endswith(".urdf") and not path.is_file():
        raise TargetError(f"there is no file {path}.", where="model", remedy="Give the path of a URDF file.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not str(source).endswith(".urdf") and not is_urdf(text):
        return None
    return LoadedModel(UrdfModel(text, str(source)), str(source))


def _mjcf(source: Any) -> LoadedModel | None:
    """An MJCF file or its text, read without MuJoCo; None for everything else."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return LoadedModel(MjcfModel(source, "the MJCF text"), "model")
    if not isinstance(source, str | Path) or not str(source).endswith((".xml", ".mjcf")):
        return None
    path = Path(source)
    if not path.is_file():
        raise TargetError(f"there is no file {path}.", where="model", remedy="Give the path of an MJCF file.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}.", where="model") from error
    return LoadedModel(MjcfModel(text, str(source), path.parent), str(source))


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise MissingExtraError(
            "mujoco", needed_for="a compiled model or an environment (an MJCF or URDF file needs none)"
        ) from error
    return mujoco


def _compile_model(build: Any, what: str) -> Any:
    try:
        return build()
    except (ValueError, RuntimeError) as error:
        raise TargetError(f"{what} does not compile: {error}", where="model") from error


def _from_file(mujoco: Any, path: Path) -> Any:
    if not path.is_file():
        raise TargetError(f"there is no file {path}.", where="model", remedy="Give the path of an MJCF file.")
    # Compiled models have a separate binary format.
    load = mujoco.MjModel.from_binary_path if path.suffix == ".mjb" else mujoco.MjModel.from_xml_path
    return _compile_model(lambda: load(str(path)), str(path))


def _from_environment(mujoco: Any, source: Any) -> LoadedModel:
    if isinstance(source, gym.Env):
        env, label = source, source.spec.id if source.spec is not None else type(source.unwrapped).__name__
    elif isinstance(source, str) or callable(source):
        target = resolve_environment(source, where="model")
        env, label = target.single(), target.label
    else:
        raise TargetError(
            f"expected the path of an MJCF file, MJCF text, a mujoco.MjModel or an environment, got {source!r} "
            f"({type(source).__name__}).",
            where="model",
        )
    # Wrappers hide the model; the environment inside holds it.
    base: Any = env.unwrapped
    if not isinstance(getattr(base, "model", None), mujoco.MjModel):
        raise TargetError(f"{label} has no MuJoCo model (its attribute `model` is None).", where="model")
    return LoadedModel(base.model, label, base)
