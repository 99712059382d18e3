"""The command or Python line that reproduces a counterexample."""

from __future__ import annotations

import ast
import dataclasses
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import GroupError
from symcheck.groups.catalog import named
from symcheck.symmetry.symmetry import Symmetry

_MOST_CHARACTERS = 300
"""Maximum length of a symmetry that is written out: four lines of a terminal."""


def python_call(function: str, subject: Any, symmetry: Symmetry | str | None, options: Mapping[str, Any]) -> str:
    """A line of Python that repeats a run whose target is a Python object.

    It can be pasted unchanged if it writes out all objects; otherwise the names that it uses must be defined.

    Args:
        function: "verify_env" or "verify_net".
        subject: the verified object; strings and importable objects are written out.
        symmetry: the SPEC that names the symmetry, or the symmetry itself, which is written out if it is data.
        options: the options that differ from their defaults, by command-line name.

    Example:
        >>> python_call("verify_env", "CartPole-v1", None, {"samples": 500, "seed": 3})
        "import symcheck; symcheck.verify_env('CartPole-v1', symmetry, samples=500, seed=3)"
    """
    imports, name = ["symcheck"], "net" if function == "verify_net" else "env"
    if isinstance(subject, str):
        name = repr(subject)
    elif _can_be_imported(subject):
        imports.append(subject.__module__)
        name = f"{subject.__module__}.{subject.__qualname__}"
    plain = {key.replace("-", "_"): value for key, value in options.items() if isinstance(value, int | float | str)}
    claim = repr(symmetry) if isinstance(symmetry, str) else _symmetry_as_text(symmetry) or "symmetry"
    words = [name, claim, *(f"{key}={plain[key]!r}" for key in plain)]
    return f"import {', '.join(imports)}; symcheck.{function}({', '.join(words)})"


def _symmetry_as_text(symmetry: Symmetry | None) -> str | None:
    """The call that rebuilds a symmetry; None if its entries are not plain data, or too long to be readable."""
    if symmetry is None or symmetry.agents is not None or symmetry.written["state"] is not None:
        return None
    entries = [repr(symmetry.written[part]) for part in ("observation", "action")]
    try:
        for text, part in zip(entries, ("observation", "action"), strict=True):
            if ast.literal_eval(text) != symmetry.written[part]:
                return None
        if named(symmetry.group.name) != symmetry.group:
            return None
    except (ValueError, SyntaxError, GroupError):
        return None
    words = [repr(symmetry.name), f"symcheck.groups.named({symmetry.group.name!r})", *entries]
    call = f"symcheck.Symmetry({', '.join([*words, *([] if symmetry.initial else ['initial=False'])])})"
    return call if len(call) <= _MOST_CHARACTERS else None


def _can_be_imported(subject: Any) -> bool:
    """Whether a class or function can be imported by its module and name."""
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", None)
    if module in (None, "__main__") or name is None or not name.isidentifier():
        return False
    return getattr(sys.modules.get(module), name, None) is subject


def with_reproduction(result: RunResult, json_path: Path | None = None, *, call: str = "") -> RunResult:
    """Write into every counterexample the command that reproduces it.

    Args:
        result: the result of a run.
        json_path: the path of the JSON report, if there will be one.
        call: the line of Python that repeats the run if no command does.

    Returns:
        The same result with `symcheck replay FILE` if there is a report and the run can be repeated from the command
        line; otherwise with the command of the whole run (its seed finds the same counterexample) or a line of Python.
    """
    if json_path is not None and result.command:
        line = shlex.join(["symcheck", "replay", str(json_path)])
    elif result.command:
        line = result.command
    else:
        line = call or python_call(f"verify_{result.kind}", None, None, {"seed": result.seed})
    return dataclasses.replace(result, properties=tuple(_add_command(item, line) for item in result.properties))


def _add_command(item: PropertyResult, line: str) -> PropertyResult:
    if item.counterexample is None:
        return item
    return dataclasses.replace(item, counterexample=dataclasses.replace(item.counterexample, reproduce=line))
