"""Convert a run to a command line and back, so that a report can show how to repeat it.

Only options that differ from their defaults are written, so the line stays short enough to read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symcheck.engine.option_fields import typed_fields
from symcheck.errors import SymcheckError


@dataclass(frozen=True)
class RunCommand:
    """A parsed command line.

    Attributes:
        verb: "verify-env" or "verify-net".
        target: the TARGET argument.
        options: option name without dashes to its text; flags map to "".
    """

    verb: str
    target: str
    options: Mapping[str, str]


def options_that_differ(options: Any, defaults: Any) -> dict[str, Any]:
    """The options of a dataclass that differ from their defaults, by command-line name.

    Args:
        options: an instance whose fields are options (`symcheck.engine.option_fields`).
        defaults: another of the same class.

    Returns:
        {"max-time": 3.0, ...}, in the order of the fields; fields without a command-line option are left out.
    """
    fields = typed_fields(type(options))
    pairs = ((field.setting, getattr(options, field.name), getattr(defaults, field.name)) for field in fields)
    return {name: value for name, value, default in pairs if value != default}


def to_command(verb: str, target: str | None, options: Mapping[str, Any]) -> str:
    """Write a command line.

    Args:
        verb: "verify-env", "verify-net", "verify-mirror", "verify-game" or "audit-policy".
        target: the TARGET argument; None if the command has none.
        options: option name to value; True writes a flag, False and None write nothing, tuples join with commas,
            mappings become JSON.

    Returns:
        One line for a POSIX shell.

    Example:
        >>> to_command("verify-env", "CartPole-v1", {"seed": 3, "quiet": False})
        'symcheck verify-env CartPole-v1 --seed 3'
    """
    words = ["symcheck", verb, *([] if target is None else [target])]
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(_as_text(value))
    return shlex.join(words)


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def from_command(line: str, *, where: str) -> RunCommand:
    """Parse a command line written by `to_command`.

    Args:
        line: a command line of `symcheck`.
        where: the name of the report in messages.

    Returns:
        Its parts.

    Raises:
        SymcheckError: the line is not a symcheck command.
    """
    try:
        words = shlex.split(line)
    except ValueError:  # an unclosed quotation
        words = []
    if len(words) < 3 or words[0] != "symcheck":
        raise SymcheckError(
            f"the report does not contain the command that wrote it, but {line!r}.",
            where=where,
            remedy="Reports of objects built in Python cannot be replayed from a file: call verify_env or verify_net "
            "again with the same objects and seed.",
        )
    options: dict[str, str] = {}
    # verify-mirror --model FILE has no target.
    target = "" if words[2].startswith("--") else words[2]
    rest = words[3:] if target else words[2:]
    while rest:
        name = rest.pop(0).removeprefix("--")
        options[name] = rest.pop(0) if rest and not rest[0].startswith("--") else ""
    return RunCommand(words[1], target, options)
