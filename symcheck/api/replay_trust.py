"""Decides whether a report may be replayed: command and header must match, and its code must be in a trusted folder.

A report may come from an untrusted source, and replaying it imports the code that its command names.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from symcheck.api.commands import RunCommand
from symcheck.envs.jax_libraries import library_named
from symcheck.errors import SymcheckError
from symcheck.loading import is_reference
from symcheck.symmetry.symmetry import Symmetry

_VERBS = {
    "env": "verify-env",
    "net": "verify-net",
    "game": "verify-game",
    "mirror": "verify-mirror",
    "policy": "audit-policy",
}
_WITH_CODE = ("symmetry", "symmetries", "env", "checkpoint")  # options whose files may run code


def check_header(report: Mapping[str, Any], command: RunCommand, where: str) -> None:
    """Reject a report whose header and command name different runs.

    Raises:
        SymcheckError: header and command differ; the message names both.
    """
    verb = _VERBS.get(report["kind"])
    if verb != command.verb:
        raise _disagreement(f"a report of kind {report['kind']!r}", f"the command {command.verb!r}", where)
    # If only a model is checked, the model is the target.
    target = command.target or command.options.get("model", "")
    if report["target"] != target:
        raise _disagreement(f"target {report['target']!r}", f"its command runs {target!r}", where)


def check_symmetry(report: Mapping[str, Any], symmetry: Symmetry, where: str) -> None:
    """Reject a report whose symmetry differs from the one that its command now names.

    Raises:
        SymcheckError: the symmetries differ; the message names both.
    """
    check_group(report, symmetry.name, symmetry.group.name, where)


def check_group(report: Mapping[str, Any], symmetry: str, group: str, where: str) -> None:
    """Reject a report whose symmetry or group has another name than the one that its command now names.

    Raises:
        SymcheckError: the symmetries differ; the message names both.
    """
    given = (report["symmetry"], report["group"].get("name"))
    now = (symmetry, group)
    if given != now:
        raise _disagreement(f"symmetry {given[0]!r} ({given[1]})", f"its command names {now[0]!r} ({now[1]})", where)


def _disagreement(header: str, command: str, where: str) -> SymcheckError:
    return SymcheckError(
        f"header and command of the report do not agree: the header contains {header}, but {command}.",
        where=where,
        remedy="The report was edited, or the code that it names has changed. Run the command by hand if you trust it.",
    )


def check_trust(command: RunCommand, where: str) -> None:
    """Refuse to import code that is neither in the current folder nor in the report's folder.

    Args:
        command: the command of the report.
        where: the report's path.

    Raises:
        SymcheckError: there is such code; the message names the files and the option that allows them.
    """
    folders = (Path.cwd().resolve(), Path(where).resolve().parent)
    places = [place.resolve() for place in _places_of_code(command)]
    outside = [str(place) for place in places if not any(place.is_relative_to(folder) for folder in folders)]
    if outside:
        raise SymcheckError(
            f"its command runs code outside the current folder and that of the report: {', '.join(outside)}.",
            where=where,
            remedy="Replay the report in the folder that contains these files, or add --trust if you trust them.",
        )
    if "trust" in command.options:
        raise SymcheckError(
            "its command loads files that may run code (--trust).",
            where=where,
            remedy="To replay it, add --trust if you trust these files.",
        )


def _places_of_code(command: RunCommand) -> Iterator[Path]:
    """The locations of the files and modules whose code the command runs."""
    model = command.options.get("model", "")
    # A model file contains no code; an environment with a model does.
    named = (command.options.get(name, "") for name in _WITH_CODE)
    for text in (command.target, *named, model if is_reference(model) else ""):
        source, colon, _ = text.rpartition(":")
        # Libraries create these by name, like Gymnasium ids; image functions of common boards belong to symcheck.
        if library_named(text) or source == "symcheck.games.boards":
            continue
        if colon and is_reference(text) and not source.endswith(".py"):
            yield from _place_of_module(source.partition(".")[0])
        elif source.endswith(".py") or Path(text).suffix or Path(text).is_absolute():
            yield Path(source if source.endswith(".py") else text)


def _place_of_module(name: str) -> Iterator[Path]:
    """The location of a top-level module; empty if there is none, in which case its import will fail."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    if spec.origin is not None and spec.has_location:
        yield Path(spec.origin)
    elif spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)
    else:
        yield Path(f"/{spec.origin or 'built-in'}/{name}")  # not part of this interpreter
