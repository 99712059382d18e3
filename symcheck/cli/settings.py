"""The settings of a project: `[tool.symcheck]` in pyproject.toml, or symcheck.toml, in this folder or a parent.

    [tool.symcheck]
    samples = 20000

    [[tool.symcheck.checks]]
    env = "CartPole-v1"
    symmetry = "cartpole/mirror"

    [[tool.symcheck.checks]]
    net = "my_networks.py:policy"
    symmetry = "my_symmetries.py:mirror"

Settings are defaults for the options of the same name; the command line takes precedence. Paths are relative to the
settings file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symcheck.api.options import (
    AuditPolicyOptions,
    VerifyEnvOptions,
    VerifyGameOptions,
    VerifyMirrorOptions,
    VerifyNetOptions,
)
from symcheck.cli.derive import parameter_name
from symcheck.cli.outputs import Outputs
from symcheck.discovery.options import DiscoverOptions
from symcheck.documents import UnreadableError, read_toml
from symcheck.engine.option_fields import OptionField, option_fields, typed_fields
from symcheck.errors import OptionError, suggestion

_ENV, _NET, _REPORTS = (typed_fields(kind) for kind in (VerifyEnvOptions, VerifyNetOptions, Outputs))
SHARED_CHECK = tuple(field.setting for field in _ENV if field.is_shared)
"""Settings for all checks that control how they run."""
SHARED = (*SHARED_CHECK, *(field.setting for field in _REPORTS if field.is_shared))
"""All settings that are allowed next to `checks`."""
SHARED_FIELDS = tuple(field for field in (*_ENV, *_REPORTS) if field.is_shared)
"""The same as fields."""
_MIRROR, _POLICY, _GAME = (typed_fields(kind) for kind in (VerifyMirrorOptions, AuditPolicyOptions, VerifyGameOptions))
CHECK_FIELDS = {
    "env": _ENV,
    "net": tuple(field for field in _NET if field.name != "pytest_file"),
    "mirror": _MIRROR,
    "policy": _POLICY,
    "game": _GAME,
}
"""Options of one check, by its kind."""
OF_A_CHECK = {
    "env": ("symmetry",),
    "net": ("symmetry",),
    "mirror": ("model",),
    "policy": ("symmetry", "data"),
    "game": ("symmetries",),
}
"""Settings of one check that are not Python options, by its kind."""
CHECK = {kind: (*OF_A_CHECK[kind], *(field.setting for field in fields)) for kind, fields in CHECK_FIELDS.items()}
"""Settings of one check, by its kind."""
SHARED_BY_KIND = {
    kind: tuple(field.setting for field in fields if field.is_shared)
    for kind, fields in (("env", _ENV), ("net", _NET), ("mirror", _MIRROR), ("policy", _POLICY), ("game", _GAME))
}
"""The settings of all checks that a kind of check supports."""
_PATHS = tuple(field.setting for field in (*_ENV, *_REPORTS) if field.is_shared and field.kind is Path)


@dataclass(frozen=True)
class Settings:
    """The settings of a project.

    Attributes:
        path: the file; None if none was found.
        shared: options of both commands, by command-line name without dashes.
        checks: the entries of `checks`, as written.
    """

    path: Path | None
    shared: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...]


def find_settings(folder: Path) -> Settings:
    """Read the nearest settings from a folder upward.

    Args:
        folder: where to start.

    Returns:
        The settings; empty if there are none.

    Raises:
        OptionError: a file that is not TOML, or an unknown or misplaced setting.
    """
    for place in (folder, *folder.parents):
        # symcheck.toml has priority over pyproject.toml in the same folder, because it is specific.
        for name, keys in (("symcheck.toml", ()), ("pyproject.toml", ("tool", "symcheck"))):
            table = _load_table(place / name, keys)
            if table is not None:
                return _parse_settings(table, place / name)
    return Settings(None, {}, ())


def _load_table(path: Path, keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        table: Any = read_toml(path)
    except (OSError, UnreadableError) as error:
        if keys and not _speaks_of_us(path):  # a pyproject.toml without settings of symcheck
            return None
        raise OptionError(f"expected a TOML file, got: {error}.", where=str(path)) from error
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def _speaks_of_us(path: Path) -> bool:
    try:
        return b"tool.symcheck" in path.read_bytes()
    except OSError:
        return False


def _parse_settings(table: Mapping[str, Any], path: Path) -> Settings:
    checks = table.get("checks", [])
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        raise OptionError("expected checks as a list of tables: [[tool.symcheck.checks]].", where=str(path))
    # Both spellings are common in TOML; names of options have dashes.
    shared = {key.replace("_", "-"): value for key, value in table.items() if key != "checks"}
    check_names(shared, SHARED, str(path))
    for name in _PATHS:
        # Other types are checked when the options are built; the path is needed here.
        if not isinstance(shared.get(name, ""), str):
            raise OptionError(f"expected {name} to be a path, got {shared[name]!r}.", where=str(path))
    return Settings(path, shared, tuple(checks))


def check_names(given: Iterable[str], known: tuple[str, ...], where: str) -> None:
    """Reject settings without an option of that name.

    Args:
        given: names as written, with dashes.
        known: names of options.
        where: the name of the file or check in messages.

    Raises:
        OptionError: one is unknown; the message names the first and the nearest known one.
    """
    for name in given:
        if name not in known:
            raise OptionError(f"unknown setting {name!r}.", where=where, remedy=suggestion(name, known))


def command_defaults(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings as defaults of commands, by parameter name; each command takes those that it supports.

    Paths are relative to the settings file.

    Example:
        >>> command_defaults(Settings(None, {"samples": 5, "json": "r.json"}, ()))["verify-env"]
        {'samples': 5, 'json_path': 'r.json'}
    """
    # By setting name, because a parameter may have another name (json_path).
    fields = {field.setting: field for field in (*_ENV, *_REPORTS)}
    values = {
        parameter_name(fields[name]): _from_here(settings, name, value) for name, value in settings.shared.items()
    }
    # Report files of a check are not overwritten by a search.
    searching = {*(field.name for field in option_fields(DiscoverOptions)), "quiet"}
    running = {parameter_name(field) for field in _REPORTS}
    return {
        "verify-env": values,
        "verify-net": dict(values),
        "verify-mirror": _only(values, _MIRROR),
        "audit-policy": _only(values, _POLICY),
        "verify-game": _only(values, _GAME),
        "run": {name: value for name, value in values.items() if name in running},
        "discover": {name: value for name, value in values.items() if name in searching},
    }


def _only(values: Mapping[str, Any], fields: Iterable[OptionField]) -> dict[str, Any]:
    """The values that a command with these options supports."""
    names = {parameter_name(field) for field in fields if field.is_shared} | {parameter_name(f) for f in _REPORTS}
    return {name: value for name, value in values.items() if name in names}


def _from_here(settings: Settings, name: str, value: Any) -> Any:
    """A setting as a user would type it in the current folder."""
    # Typer reads defaults as if they were typed in the current folder.
    if name not in _PATHS or settings.path is None or Path(value).is_absolute():
        return value
    return os.path.relpath(settings.path.parent / value)
