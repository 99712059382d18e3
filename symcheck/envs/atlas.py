"""The atlas: what is known about the symmetries of known environments, as data.

One TOML file an entry, under `atlas_data/`: the fields of a SPEC file and, beside them, `env` (the ids it is about),
`claim` (whether it is claimed to hold, so that `verify-env ID` checks it), `verdict` (what verification finds) and
`why` (one sentence). Adding an entry is adding a file.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symcheck.errors import SpecError, suggestion
from symcheck.symmetry.spec import symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry

_FOLDER = Path(__file__).parent / "atlas_data"
_OWN_FIELDS = ("env", "claim", "verdict", "why")


@dataclass(frozen=True)
class AtlasEntry:
    """One known symmetry, or one that is known to be broken.

    Attributes:
        name: for instance "cartpole/mirror".
        environments: the Gymnasium ids it is about.
        claim: whether it is claimed to hold.
        verdict: the verdict that verification reaches.
        why: one sentence that says why it holds, or what breaks it.
        data: the fields of a SPEC file.
    """

    name: str
    environments: tuple[str, ...]
    claim: bool
    verdict: str
    why: str
    data: Mapping[str, Any]

    def symmetry(self) -> Symmetry:
        """The symmetry, built anew."""
        return symmetry_from_mapping(dict(self.data), f"atlas entry {self.name}")


@functools.cache
def entries() -> tuple[AtlasEntry, ...]:
    """Every entry, by name.

    Example:
        >>> [entry.name for entry in entries() if "CartPole-v1" in entry.environments]
        ['cartpole/mirror']
    """
    found = (_read(path) for path in _FOLDER.glob("*.toml"))
    return tuple(sorted(found, key=lambda entry: entry.name))


def entry(name: str) -> AtlasEntry:
    """The entry of that name.

    Args:
        name: for instance "cartpole/mirror".

    Returns:
        The entry.

    Raises:
        SpecError: there is none; the nearest name is suggested.

    Example:
        >>> entry("pendulum/mirror").environments
        ('Pendulum-v1',)
    """
    for found in entries():
        if found.name == name:
            return found
    raise SpecError(
        f"no atlas entry is called {name!r}.",
        where="symmetry",
        remedy=suggestion(name, (known.name for known in entries())),
    )


def entries_for(env_id: str) -> tuple[AtlasEntry, ...]:
    """The entries about one Gymnasium id, claimed or not.

    Args:
        env_id: for instance "CartPole-v1".

    Returns:
        The entries, by name; empty where the atlas knows nothing.

    Example:
        >>> [(found.name, found.claim) for found in entries_for("MountainCar-v0")]
        [('mountaincar/valley', False)]
    """
    return tuple(found for found in entries() if env_id in found.environments)


def _read(path: Path) -> AtlasEntry:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in ("name", *_OWN_FIELDS) if key not in data]
    if missing:
        raise SpecError(f"is missing {', '.join(missing)}.", where=f"atlas file {path.name}")
    return AtlasEntry(
        data["name"],
        tuple(data["env"]),
        bool(data["claim"]),
        data["verdict"],
        data["why"],
        {key: value for key, value in data.items() if key not in _OWN_FIELDS},
    )
