"""Symmetries written as data: a TOML file, or a mapping with the same fields.

    name = "cart-pole mirror"
    group = "cyclic(2)"
    observation = [[-1, -1, -1, -1]]
    action = [[1, 0]]

Long vectors are written as named blocks, `[[observation.blocks]]` (see `symcheck.symmetry.blocks`). The fields are
those of `Symmetry`; every form of entry except callables can be used. Groups are named as in `symcheck.groups`,
"dihedral(4)", "so(2)" or "product(cyclic(2), symmetric(3))", or in short, "D4", "SO(2)" or "C2 x so(2)".
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symcheck.documents import UnreadableError, read_toml
from symcheck.errors import GroupError, SpecError, suggestion
from symcheck.groups import catalog, continuous
from symcheck.groups.group import Group
from symcheck.groups.near_names import near_name
from symcheck.symmetry.symmetry import Symmetry

# Short names have a separate syntax.
_NOT_WRITTEN = ("named",)
_GROUPS: dict[str, Callable[..., Group]] = {
    name: function
    for name, function in inspect.getmembers(catalog, inspect.isfunction)
    if function.__module__ == catalog.__name__ and not name.startswith("_") and name not in _NOT_WRITTEN
}
_GROUPS |= {
    "SO": continuous.so,
    "O": continuous.o,
    "SE": continuous.se,
    "E": continuous.e,
    "T": continuous.translations,
}
_GROUPS |= {name.lower(): function for name, function in _GROUPS.items() if len(name) <= 2}
_GROUPS["translations"] = continuous.translations
_REQUIRED = ("name", "group", "observation", "action")
_OPTIONAL = ("state", "initial", "agents")


def symmetry_from_toml(path: Path) -> Symmetry:
    """Read a symmetry from a TOML file.

    Args:
        path: the file.

    Returns:
        The checked symmetry.

    Raises:
        SpecError: the file cannot be read, is not TOML, or does not describe a symmetry.
    """
    try:
        data = read_toml(path)
    except OSError as error:
        raise SpecError(f"the file cannot be read: {error.strerror or error}.", where=str(path)) from error
    except UnreadableError as error:
        raise SpecError(f"expected a TOML file, got: {error}.", where=str(path)) from error
    return symmetry_from_mapping(data, str(path))


def symmetry_from_mapping(data: Mapping[str, Any], where: str) -> Symmetry:
    """Build a symmetry from the fields of a SPEC file.

    Args:
        data: `name`, `group`, `observation`, `action`, and optionally `state`, `initial` and `agents`.
        where: the name of the file or entry in messages.

    Returns:
        The checked symmetry.

    Raises:
        SpecError: fields that are missing, unknown or of the wrong kind.
        RepresentationError: entries that violate a relation of the group.

    Example:
        >>> data = {"name": "m", "group": "cyclic(2)", "observation": [[-1, -1]], "action": [[1, 0]]}
        >>> symmetry_from_mapping(data, "example")
        Symmetry('m', group=C2)
    """
    missing = [key for key in _REQUIRED if key not in data]
    unknown = [key for key in data if key not in (*_REQUIRED, *_OPTIONAL)]
    # Report missing and unknown fields together: an unknown field is often a misspelt missing one.
    if missing or unknown:
        problem = "; ".join(
            [*([f"is missing {', '.join(missing)}"] if missing else []), *_unknown_fields(unknown)],
        )
        raise SpecError(f"{problem}.", where=where, remedy=f"Fields are {', '.join((*_REQUIRED, *_OPTIONAL))}.")
    if not isinstance(data.get("initial", True), bool):
        raise SpecError(f"expected initial = true or false, got {data['initial']!r}.", where=where)
    return Symmetry(
        data["name"],
        parse_group(data["group"], where),
        data["observation"],
        data["action"],
        state=data.get("state"),
        initial=data.get("initial", True),
        agents=data.get("agents"),
    )


def _unknown_fields(unknown: list[str]) -> list[str]:
    return [f"has unknown fields {', '.join(unknown)}"] if unknown else []


def parse_group(text: Any, where: str) -> Group:
    """Build the group that a string names; only the catalogue's constructors are called.

    Args:
        text: for instance "cyclic(4)", "product(cyclic(2), dihedral(4))", or in short "C4", "C2 x D4".
        where: how messages name the place.

    Returns:
        The group.

    Raises:
        SpecError: the string does not name a group of the catalogue.

    Example:
        >>> parse_group("product(cyclic(2), dihedral(4))", "group").order, parse_group("C2 x D4", "group").order
        (16, 16)
    """
    if not isinstance(text, str):
        raise SpecError(f"expected the name of a group such as 'cyclic(2)', got {text!r}.", where=where)
    try:
        parts = _split_product(text)
        if len(parts) > 1:
            return catalog.product(*(parse_group(part, where) for part in parts))
        # A bare name such as "C4"; with parentheses it is a call of the catalogue.
        if "(" not in text:
            return catalog.named(text)
        group = _evaluate(ast.parse(text, mode="eval").body, where)
    except GroupError as error:
        raise SpecError(error.problem, where=f"{where}, group {text!r}", remedy=error.remedy) from error
    except (SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise SpecError(
            f"expected the name of a group such as 'cyclic(2)' or 'product(cyclic(2), dihedral(4))', got {text!r}.",
            where=where,
            remedy=_hint(text),
        ) from error
    if not isinstance(group, Group):
        raise SpecError(f"expected the name of a group such as 'cyclic(2)', got {text!r}.", where=where)
    return group


def _hint(text: str) -> str:
    """The name that was probably intended, and the available names."""
    near, known = near_name(text), suggestion(text.split("(")[0].strip(), _GROUPS)
    return f"Did you mean {near!r}? Known:{known.partition('Known:')[2]}" if near else known


def _split_product(text: str) -> list[str]:
    """The factors of "C2 x so(2)"; an x within parentheses belongs to a factor.

    Example:
        >>> _split_product("C2 x product(so(2), C3 x C2)")
        ['C2', 'product(so(2), C3 x C2)']
    """
    parts, depth = [""], 0
    for piece in re.split(r"([()]|(?:(?<=[\s\d)])[x×](?=\s|[A-Za-z])))", text):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece in ("x", "×") and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def _evaluate(node: ast.expr, where: str) -> Any:
    match node:
        # A short name as an argument, "product(C2, so(2))".
        case ast.Name(id=name):
            return catalog.named(name)
        # Only catalogue functions with positional arguments; everything else must be a literal.
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in _GROUPS:
                raise SpecError(f"unknown group {name!r}.", where=where, remedy=_hint(ast.unparse(node)))
            return _GROUPS[name](*(_evaluate(argument, where) for argument in arguments))
        case _:
            return ast.literal_eval(node)
