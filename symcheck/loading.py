"""Loads objects that a user names: `pkg.mod:attr` or `path/file.py:attr`.

Environments, networks and symmetries are named in this way. A file that is imported twice in a run is one module, so
its classes and registrations are the same everywhere.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from symcheck.errors import SymcheckError, TargetError, suggestion


def is_reference(text: str) -> bool:
    """Whether a string has the form `module:attr` or `file.py:attr`.

    Example:
        >>> is_reference("envs.py:make"), is_reference("CartPole-v1")
        (True, False)
    """
    return ":" in text or text.endswith(".py")


def load_attribute(reference: str, *, where: str) -> Any:
    """Import a module or file and return one of its attributes.

    Args:
        reference: "pkg.mod:attr" or "path/file.py:attr"; dotted attributes are followed.
        where: the name of the argument in messages.

    Returns:
        The attribute.

    Raises:
        TargetError: the module or file does not exist, raises when imported, or does not define the attribute.

    Example:
        >>> load_attribute("math:pi", where="TARGET")
        3.141592653589793
    """
    source, _, attribute = reference.rpartition(":")
    if not source or not attribute or attribute.endswith(".py"):
        raise TargetError(
            f"expected module:name or file.py:name, got {reference!r}.",
            where=where,
            remedy="Add the name of the object, for instance my_file.py:make.",
        )
    module = _load_file(Path(source), where) if source.endswith(".py") else _load_module(source, where)
    value: Any = module
    # Dotted attributes: `file.py:Class.method`.
    for name in attribute.split("."):
        if not hasattr(value, name):
            known = [key for key in vars(value) if not key.startswith("_")] if hasattr(value, "__dict__") else []
            raise TargetError(f"{source} does not define {name!r}.", where=where, remedy=suggestion(name, known))
        value = getattr(value, name)
    return value


def _load_file(path: Path, where: str) -> ModuleType:
    if not path.is_file():
        raise TargetError(f"no such file: {path} (looked in {Path.cwd()}).", where=where, remedy="Check the path.")
    resolved = path.resolve()
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:12]
    # Use a digest of the path, so that two files with the same name are two modules.
    name = f"_symcheck_user_{resolved.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise TargetError(f"the file cannot be imported as Python: {path}.", where=where)
    module = importlib.util.module_from_spec(spec)
    look_in(str(resolved.parent))
    # Registered before execution, as in imports, because classes of the module look it up by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception | SystemExit):
            raise _import_failure(str(path), error, where) from error
        raise
    return module


def _load_module(name: str, where: str) -> ModuleType:
    look_in(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module itself or a parent package is missing; a missing import inside the module is a different error.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise TargetError(
                f"no module named {error.name!r} (looked in {Path.cwd()} and the Python path).",
                where=where,
                remedy="Check the name, or install the package that contains it.",
            ) from error
        raise _import_failure(name, error, where) from error
    except (Exception, SystemExit) as error:
        raise _import_failure(name, error, where) from error


def look_in(folder: str) -> None:
    """Search a folder first when modules are imported."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _import_failure(source: str, error: BaseException, where: str) -> TargetError:
    frames = traceback.extract_tb(error.__traceback__)
    # The last frame in the user's own code.
    own = [frame for frame in frames if is_users(frame.filename)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    module = Path(source).stem if source.endswith(".py") else source
    return TargetError(
        f"importing {source} raised {type(error).__name__}{place}: {str(error).rstrip('.')}.",
        where=where,
        remedy=None
        if isinstance(error, SymcheckError)  # its own message contains the remedy
        else f"Fix the module so that it can be imported on its own: python -c 'import {module}'.",
    )


def is_users(filename: str) -> bool:
    """Whether a line of a traceback belongs to the user's own code, not to a library or the start-up code."""
    return not filename.startswith(("<", *_LIBRARIES))


_LIBRARIES = tuple(
    f"{path}{os.sep}"
    for path in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).parent),
    }
)
