"""Read a SPEC into symmetries.

A SPEC is an atlas name, `pkg.mod:attr`, `path/file.py:attr` or a `.toml` file; in Python also a `Symmetry` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symcheck.envs import atlas
from symcheck.errors import SpecError, SymcheckError, described, suggestion
from symcheck.groups.near_names import near_name
from symcheck.loading import is_reference, load_attribute
from symcheck.symmetry import spec as spec_files
from symcheck.symmetry.symmetry import Symmetry

THREE_WAYS = (
    "Give a symmetry in one of three ways: (1) write a .toml file or a Python file and pass --symmetry "
    "my_symmetry.toml or --symmetry my_file.py:mirror; (2) name an entry of the atlas, --symmetry cartpole/mirror "
    "(`symcheck atlas` lists them); (3) in Python, pass a symcheck.Symmetry to verify_env. `symcheck discover` "
    "looks for one."
)


@dataclass(frozen=True)
class NamedSymmetry:
    """A symmetry and its SPEC; `spec` is None for an object built in Python."""

    symmetry: Symmetry
    spec: str | None


def resolve_symmetry(given: Symmetry | str, *, where: str = "--symmetry") -> NamedSymmetry:
    """Turn a SPEC into a symmetry.

    Args:
        given: a SPEC or a `Symmetry`.
        where: the name of the option in messages.

    Returns:
        The symmetry with its SPEC.

    Raises:
        SpecError: the SPEC does not name a symmetry.
    """
    if isinstance(given, Symmetry):
        return NamedSymmetry(given, None)
    if not isinstance(given, str):
        raise SpecError(f"expected a Symmetry or the name of one, got {given!r} ({type(given).__name__}).", where=where)
    if given.endswith(".toml"):
        return NamedSymmetry(spec_files.symmetry_from_toml(Path(given)), given)
    if is_reference(given):
        return NamedSymmetry(_from_reference(given, where), given)
    return NamedSymmetry(_from_atlas(given, where), given)


def _from_atlas(name: str, where: str) -> Symmetry:
    known = [entry.name for entry in atlas.entries()]
    if name not in known:
        raise SpecError(
            f"expected an atlas name, a .toml file, module:name or file.py:name; got {name!r}.",
            where=where,
            remedy=_about_group(name) or suggestion(name, known),
        )
    return atlas.entry(name).symmetry()


def _about_group(name: str) -> str:
    """The remedy if only the name of a group was given, which does not define an action; "" for other names."""
    try:
        group = spec_files.parse_group(name, "group").name
    except SymcheckError:
        group = near_name(name) or ""
    if not group:
        return ""
    return (
        f"{group} is a group; a symmetry also says how the group acts. Write a .toml file with name, "
        f'group = "{group}", observation and action (docs/symmetries.md).'
    )


def _from_reference(reference: str, where: str) -> Symmetry:
    value = load_attribute(reference, where=where)
    # A factory: any callable that is not itself a Symmetry.
    if not isinstance(value, Symmetry) and callable(value):
        value = _call_factory(value, reference, where)
    if not isinstance(value, Symmetry):
        raise SpecError(
            f"expected {reference} to be a symcheck.Symmetry or a function that returns one, "
            f"got {type(value).__name__}.",
            where=where,
        )
    return value


def _call_factory(factory: Callable[[], Any], reference: str, where: str) -> Any:
    try:
        return factory()
    except SymcheckError:
        raise
    except Exception as error:
        raise SpecError(
            f"calling {reference} raised {described(error)}.",
            where=where,
            remedy="The function must work without arguments and return a symcheck.Symmetry.",
        ) from error


def claimed_symmetries(env_id: str) -> list[NamedSymmetry]:
    """The symmetries that the atlas claims for an environment.

    Args:
        env_id: a Gymnasium id.

    Returns:
        At least one.

    Raises:
        SpecError: the atlas claims none; the message lists the three ways to provide one.
    """
    entries = atlas.entries_for(env_id)
    claimed = [NamedSymmetry(entry.symmetry(), entry.name) for entry in entries if entry.claim]
    if claimed:
        return claimed
    broken = ", ".join(entry.name for entry in entries)
    known = f"records only symmetries that do not hold exactly ({broken})" if broken else "has none"
    raise SpecError(
        f"no symmetry was given, and the atlas {known} for {env_id!r}.",
        where="--symmetry",
        remedy=THREE_WAYS,
    )
