"""The atlas: data on the symmetries of well-known environments.

One TOML file per entry, under `atlas_data/`, with the fields of a SPEC file and

| field | is |
|---|---|
| `env` | the Gymnasium ids to which it applies |
| `claim` | whether the symmetry is claimed to hold; `verify-env ID` checks claimed symmetries |
| `kind` | "exact", "approximate" (up to a size), "partial" (some equations or regions) or "apparent" (not at all) |
| `verdict` | the verdict of verification |
| `why` | one sentence: why it holds, or what breaks it |
| `fails` | the properties that fail; none by default |
| `sometimes` | properties that fail with some seeds only: near an edge, or by about the smallest detectable effect |
| `size` | the size of the violation, per failing property, in the property's own unit |
| `region` | where it holds, or where it breaks |
| `breaks` | what in the model or the code breaks it, one element per line |
| `subgroup` | the subgroup that holds if the group does not |
| `needs` | the extra that its environments need |
| `samples` | pairs per property for `atlas --check`, if the default would miss a rare region or take minutes |
| `max_time` | seconds per run of `atlas --check`, for slow environments; unfinished properties are undecided |

A symmetry that cannot be written as data (a rotation of an angle) is a reference, `symmetry = "module:function"`. To
add an entry, add a file.
"""

from __future__ import annotations

import functools
import importlib.util
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symcheck.errors import SpecError, suggestion
from symcheck.loading import load_attribute
from symcheck.symmetry.spec import symmetry_from_mapping
from symcheck.symmetry.symmetry import Symmetry

_FOLDER = Path(__file__).parent / "atlas_data"
_REQUIRED = ("env", "claim", "verdict", "why")
_OPTIONAL = (
    "kind",
    "fails",
    "sometimes",
    "size",
    "region",
    "breaks",
    "subgroup",
    "needs",
    "samples",
    "max_time",
    "symmetry",
)
KINDS = ("exact", "approximate", "partial", "apparent")
_EXTRAS = {"mujoco": "mujoco", "box2d": "Box2D", "minigrid": "minigrid"}  # extra: a module that it installs


@dataclass(frozen=True)
class AtlasEntry:
    """One known symmetry, or one that is known to be broken.

    Attributes:
        name: for instance "cartpole/mirror".
        environments: the Gymnasium ids to which it applies.
        claim: whether it is claimed to hold.
        verdict: the verdict of verification.
        why: one sentence that says why it holds, or what breaks it.
        data: the fields of a SPEC file.
        kind: "exact", "approximate", "partial" or "apparent".
        fails: the properties that fail.
        sometimes: properties that fail with some seeds only.
        size: the size of the violation, per failing property.
        region: where it holds, or where it breaks; "" if that is everywhere.
        breaks: elements of the model, or lines of the code, that break it.
        subgroup: the subgroup that holds if the group does not; "" if none is known.
        needs: the extra that its environments require; "" for none.
        samples: the number of pairs per property when it is checked again; None for the default.
        max_time: seconds for one run of checking it again; None for no limit.
        reference: "module:function" if the symmetry cannot be written as data; otherwise "".
    """

    name: str
    environments: tuple[str, ...]
    claim: bool
    verdict: str
    why: str
    data: Mapping[str, Any]
    kind: str = "exact"
    fails: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    size: Mapping[str, float] = field(default_factory=dict)
    region: str = ""
    breaks: tuple[str, ...] = ()
    subgroup: str = ""
    needs: str = ""
    samples: int | None = None
    max_time: float | None = None
    reference: str = ""

    def symmetry(self) -> Symmetry:
        """The symmetry, built again."""
        if not self.reference:
            return symmetry_from_mapping(dict(self.data), f"atlas entry {self.name}")
        # A reference names a factory, so that every call returns a new symmetry.
        made = load_attribute(self.reference, where=f"atlas entry {self.name}")()
        if not isinstance(made, Symmetry):
            raise SpecError(f"{self.reference} returned no Symmetry.", where=f"atlas entry {self.name}")
        return made

    @property
    def group(self) -> str:
        """The group's name as in the file, or that of the built symmetry."""
        return str(self.data.get("group") or self.symmetry().group.name)

    @property
    def installed(self) -> bool:
        """Whether the extra that its environments require is installed."""
        # `find_spec` looks for the module without importing it.
        return not self.needs or importlib.util.find_spec(_EXTRAS[self.needs]) is not None

    @property
    def install_line(self) -> str:
        """The command that installs the extra; "" if none is required."""
        return f"pip install 'symcheck[{self.needs}]'" if self.needs else ""


@functools.cache
def entries() -> tuple[AtlasEntry, ...]:
    """Every entry, by name.

    Example:
        >>> [entry.name for entry in entries() if "CartPole-v1" in entry.environments]
        ['cartpole/mirror']
    """
    read = (read_entry(path) for path in _FOLDER.glob("*.toml"))
    return tuple(sorted(read, key=lambda entry: entry.name))


def entry(name: str) -> AtlasEntry:
    """The entry of that name.

    Args:
        name: for instance "cartpole/mirror".

    Returns:
        The entry.

    Raises:
        SpecError: there is no such entry; the message suggests the nearest name.

    Example:
        >>> entry("pendulum/mirror").environments
        ('Pendulum-v1',)
    """
    for candidate in entries():
        if candidate.name == name:
            return candidate
    raise SpecError(
        f"no atlas entry is called {name!r}.",
        where="symmetry",
        remedy=suggestion(name, (known.name for known in entries())),
    )


def entries_for(env_id: str) -> tuple[AtlasEntry, ...]:
    """The entries for one Gymnasium id, claimed or not.

    Args:
        env_id: for instance "CartPole-v1".

    Returns:
        The entries, by name; empty if the atlas has none.

    Example:
        >>> [(found.name, found.claim) for found in entries_for("MountainCar-v0")]
        [('mountaincar/valley', False)]
    """
    return tuple(item for item in entries() if env_id in item.environments)


def select_entries(names: tuple[str, ...]) -> tuple[AtlasEntry, ...]:
    """The entries with the given environment ids or entry names; all entries if no name is given.

    Args:
        names: for instance ("CartPole-v1", "ant/mirror").

    Returns:
        The entries, by name.

    Raises:
        SpecError: a name that is neither; the message suggests the nearest one.

    Example:
        >>> [found.name for found in select_entries(("Acrobot-v1", "pendulum/mirror"))]
        ['acrobot/mirror', 'pendulum/mirror']
    """
    known = {env_id for item in entries() for env_id in item.environments} | {item.name for item in entries()}
    for name in names:
        if name not in known:
            raise SpecError(f"the atlas has no entry for {name!r}.", where="ID", remedy=suggestion(name, known))
    return tuple(item for item in entries() if not names or item.name in names or set(names) & set(item.environments))


def read_entry(path: Path) -> AtlasEntry:
    """Read one file of the atlas and check its own fields.

    Args:
        path: a TOML file.

    Returns:
        The entry; its symmetry is built when it is requested.

    Raises:
        SpecError: a field is missing or has an invalid value.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    where = f"atlas file {path.name}"
    # `name` is a SPEC field as well, so it is checked here and kept in `data`.
    missing = [key for key in ("name", *_REQUIRED) if key not in data]
    if missing:
        raise SpecError(f"the file is missing {', '.join(missing)}.", where=where)
    # Remove the atlas's own fields: the remaining fields must form a SPEC file.
    own = {key: data.pop(key) for key in (*_REQUIRED, *_OPTIONAL) if key in data}
    _check(own, where)
    return AtlasEntry(
        data["name"],
        tuple(own["env"]),
        bool(own["claim"]),
        own["verdict"],
        own["why"],
        data,
        own.get("kind", "exact"),
        tuple(own.get("fails", ())),
        tuple(own.get("sometimes", ())),
        own.get("size", {}),
        own.get("region", ""),
        tuple(own.get("breaks", ())),
        own.get("subgroup", ""),
        own.get("needs", ""),
        own.get("samples"),
        own.get("max_time"),
        own.get("symmetry", ""),
    )


def _check(own: Mapping[str, Any], where: str) -> None:
    kind, verdict = own.get("kind", "exact"), own["verdict"]
    if kind not in KINDS:
        raise SpecError(f"expected a kind, one of {', '.join(KINDS)}; got {kind!r}.", where=where)
    if own.get("needs", "") not in ("", *_EXTRAS):
        raise SpecError(f"the file needs an extra that does not exist: {own['needs']!r}.", where=where)
    # Both verdicts say that no violation was found.
    holds = verdict in ("passed", "proved")
    if own["claim"] and not (holds and kind == "exact"):
        raise SpecError(
            f"the file has a claim that is {kind} and {verdict}; only exact symmetries are claimed.", where=where
        )
    if holds and own.get("fails"):
        raise SpecError(f"the file has the verdict {verdict}, but fails {', '.join(own['fails'])}.", where=where)
    if verdict == "failed" and not own.get("fails"):
        raise SpecError("the file has the verdict failed, but names no property that fails.", where=where)
    # An exact symmetry cannot fail for a different seed.
    if holds and own.get("sometimes") and kind != "approximate":
        raise SpecError(
            f"the claim is {kind} and {verdict}, but fails with some seeds, so it must be recorded as approximate.",
            where=where,
        )
    unknown = [name for name in own.get("size", {}) if name not in own.get("fails", ())]
    if unknown:
        raise SpecError(f"the file gives a size for properties that do not fail: {', '.join(unknown)}.", where=where)
