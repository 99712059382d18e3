"""`symcheck settings`: all available settings, and those of the current project."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from symcheck.cli import settings
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.engine.option_fields import OptionField

_WIDTH = 100
_HEADINGS = {
    "env": 'One check of an environment (env = "TARGET")',
    "net": 'One check of a network (net = "TARGET")',
    "mirror": 'One check of a mirror function (mirror = "TARGET")',
    "game": 'One check of a game (game = "TARGET")',
    "policy": 'One audit of a policy (policy = "TARGET")',
}
# Settings of one check that the command line takes as arguments, so no option field describes them.
_ARGUMENTS = {
    "symmetry": "An atlas name, pkg.mod:attr, path/file.py:attr or a .toml file.",
    "model": "The robot: an MJCF or URDF file, a compiled model (.mjb), or a Gymnasium id.",
    "data": "Observations that the policy visits: an .npz file with one array, or one array per key.",
    "symmetries": "A function (board, pi) -> [(board, pi), ...]: module:attr or file.py:attr.",
}


@reports_mistakes
def command() -> None:
    """List all settings (tool.symcheck in pyproject.toml, or symcheck.toml) with their defaults and current values.

    Example: symcheck settings
    """
    table = settings.find_settings(Path.cwd())
    nowhere = "no settings in a pyproject.toml or symcheck.toml of this folder or its parents"
    typer.echo(f"Settings of this project: {table.path or nowhere}")
    for name, value in table.shared.items():
        typer.echo(f"  {name} = {_as_toml(value)}")
    if table.checks:
        typer.echo(f"  [[checks]]: {len(table.checks)}")
    typer.echo("\nFor all checks ([tool.symcheck], or the top of symcheck.toml):")
    _print_fields(settings.SHARED_FIELDS)
    typer.echo("\nFor one check, in addition ([[tool.symcheck.checks]], or [[checks]]):")
    for kind, heading in _HEADINGS.items():
        typer.echo(f"\n {heading}:")
        for name in settings.OF_A_CHECK[kind]:
            _print_setting(name, "str", _ARGUMENTS[name])
        _print_fields(field for field in settings.CHECK_FIELDS[kind] if not field.is_shared)


def _print_fields(fields: Iterable[OptionField]) -> None:
    for field in fields:
        default = "" if field.default is None or field.default is False else f" Default {_as_toml(field.default)}."
        _print_setting(field.setting, field.kind.__name__, f"{field.help}{default}")


def _print_setting(name: str, kind: str, text: str) -> None:
    lead = f"  {name:<15} {kind:<5} "
    typer.echo(textwrap.fill(text, _WIDTH, initial_indent=lead, subsequent_indent=" " * 24))


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ ... }"
    return f'"{value}"' if isinstance(value, str | Path) else str(value)
