"""Accepted approximate symmetries: the violations that a project has examined and accepts, and their largest sizes.

    [[accepted]]
    target = "CartPole-v1"
    symmetry = "cart-pole mirror"
    property = "transition_invariance"
    max_residual = 1e-3
    reason = "the track leans by a degree"

If the violation of a failed property is within the accepted size, the property becomes `passed` and approximate. It
keeps its counterexample, and a note gives both sizes and the reason. A property with a larger violation stays failed,
and a note gives the excess. Nothing is accepted silently, and the report names entries that are no longer needed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symcheck.api.commands import from_command
from symcheck.documents import UnreadableError, read_json, read_toml
from symcheck.engine import registry
from symcheck.engine.acceptance import accept_violation
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import OptionError, SymcheckError, suggestion
from symcheck.statements.statement import Statement, state
from symcheck.verdict import Acceptance

TEMPLATE = """\
[[accepted]]
target = "CartPole-v1"                 # as in the report
symmetry = "cartpole/mirror"           # its name in the report, or the SPEC
property = "transition_invariance"
max_residual = 1e-3                    # in the property's own unit
reason = "why a violation of this size is acceptable"
"""
_FIELDS = ("target", "symmetry", "property", "max_residual", "reason")


@dataclass(frozen=True)
class Accepted:
    """One accepted violation.

    Attributes:
        target: the target as reports call it.
        symmetry: the symmetry's name, or the SPEC that names it.
        property: the name of the property.
        max_residual: the accepted size, in the property's own unit; finite, 0 or more.
        reason: why the violation is acceptable.
    """

    target: str
    symmetry: str
    property: str
    max_residual: float
    reason: str


@dataclass(frozen=True)
class Baseline:
    """The accepted violations of a project.

    Attributes:
        path: the file that they come from, for messages.
        entries: the entries in the order of the file.
    """

    path: Path
    entries: tuple[Accepted, ...]

    def entry_for(self, result: RunResult, item: PropertyResult) -> Accepted | None:
        """The entry for one property of one run, or None."""
        names = (result.symmetry, _spec_of(result))
        for entry in self.entries:
            if entry.target == result.target and entry.symmetry in names and entry.property == item.name:
                return entry
        return None


def read_baseline(path: str | Path) -> Baseline:
    """Read a baseline from a TOML or JSON file.

    Args:
        path: a .toml file with [[accepted]] tables, or a .json file with the same under "accepted" (or a bare list).

    Returns:
        The baseline.

    Raises:
        OptionError: no such file, an unknown format, or entries with missing fields; the message includes a template.
    """
    file = Path(path)
    where = f"--baseline {file}"
    table = _parsed(file, where)
    listed = table.get("accepted") if isinstance(table, dict) else table
    if not isinstance(listed, list) or (isinstance(table, dict) and set(table) != {"accepted"}):
        given = f"the keys {', '.join(map(repr, table))}" if isinstance(table, dict) else type(listed).__name__
        raise _malformed(f"expected a list of tables called accepted, got {given}", where)
    entries = tuple(_entry(item, f"{where}, accepted[{i}]") for i, item in enumerate(listed))
    seen: dict[tuple[str, str, str], int] = {}
    for i, entry in enumerate(entries):
        first = seen.setdefault((entry.target, entry.symmetry, entry.property), i)
        if first != i:
            raise _malformed(f"accepted[{first}] and accepted[{i}] are about the same property; keep one", where)
    return Baseline(file, entries)


def _parsed(file: Path, where: str) -> Any:
    if file.suffix not in (".toml", ".json"):
        raise _malformed(f"expected a .toml or .json file, got {file.name!r}", where)
    try:
        return read_toml(file) if file.suffix == ".toml" else read_json(file)
    except OSError as error:
        raise _malformed(f"the file cannot be read: {error.strerror or error}", where) from error
    except UnreadableError as error:
        raise _malformed(f"expected {file.suffix[1:].upper()}, got: {error}", where) from error


def _entry(item: Any, where: str) -> Accepted:
    if not isinstance(item, dict):
        raise _malformed(f"expected a table, got {item!r}", where)
    missing = [name for name in _FIELDS if name not in item]
    unknown = [name for name in item if name not in _FIELDS]
    if missing or unknown:
        parts = [f"is missing {', '.join(missing)}"] if missing else []
        parts += [f"has unknown fields {', '.join(unknown)}"] if unknown else []
        raise _malformed("; ".join(parts), where)
    empty = [name for name in _FIELDS if name != "max_residual" and not _is_text(item[name])]
    if empty:
        raise _malformed(f"expected text for {', '.join(empty)}", where)
    size = item["max_residual"]
    if isinstance(size, bool) or not isinstance(size, int | float) or not math.isfinite(size) or size < 0:
        raise _malformed(f"expected max_residual as a finite number, 0 or more, got {size!r}", where)
    known = {entry.name for kind in ("env", "net") for entry in registry.registered_properties(kind)}
    if known and item["property"] not in known:
        raise OptionError(
            f"unknown property {item['property']!r}.", where=where, remedy=suggestion(item["property"], known)
        )
    return Accepted(**{**item, "max_residual": float(size)})


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _malformed(problem: str, where: str) -> OptionError:
    return OptionError(f"{problem}.", where=where, remedy=f"An entry reads:\n\n{TEMPLATE}")


def as_baseline(given: Baseline | str | Path | None) -> Baseline | None:
    """Convert an argument to a baseline: one already read, a file, or none.

    Raises:
        OptionError: the file cannot be used.
    """
    return read_baseline(given) if isinstance(given, str | Path) else given


def with_baseline(result: RunResult, baseline: Baseline | None) -> RunResult:
    """Apply a baseline to a result: accepted violations pass, and larger ones are compared with their accepted size.

    Args:
        result: the result of a run.
        baseline: the accepted violations; None changes nothing.

    Returns:
        The same run; properties without an entry are unchanged.

    Example:
        >>> item = PropertyResult("reward_invariance", "failed", "paired", 9, violations=9, max_residual=0.5)
        >>> run = RunResult("env", "E-v0", "m", {"name": "C2", "order": 2}, (item,), 0.01, 0)
        >>> accepted = Accepted("E-v0", "m", "reward_invariance", 1.0, "measured")
        >>> with_baseline(run, Baseline(Path("b.toml"), (accepted,))).verdict
        'passed'
    """
    if baseline is None:
        return result
    items = [(item, baseline.entry_for(result, item)) for item in result.properties]
    compared = (item if entry is None else _compare(item, entry, baseline.path.name) for item, entry in items)
    return dataclasses.replace(result, properties=tuple(compared))


def _compare(item: PropertyResult, entry: Accepted, file: str) -> PropertyResult:
    """Apply an entry to one property."""
    if item.verdict == "undecided" or item.accepted_by is not None:
        return item  # no known violation, or it is already accepted
    limit = entry.max_residual
    if item.verdict != "failed":
        return _with_note(item, state("accepted_in_vain", file=file, limit=limit))
    size = _size(item)
    if size is None:
        return _with_note(item, state("accepted_without_size", file=file))
    fields = {"size": size, "limit": limit, "file": file}
    accepted, refused = state("accepted", **fields, why=entry.reason.strip()), state("accepted_no_more", **fields)
    return accept_violation(item, Acceptance("baseline", size, limit), accepted, refused)


def _with_note(item: PropertyResult, note: Statement) -> PropertyResult:
    return dataclasses.replace(item, notes=(note, *item.notes))


def _size(item: PropertyResult) -> float | None:
    """The largest residual of the property; None if there is none, or if one is not finite."""
    example = item.counterexample
    sizes = [size for size in (item.max_residual, example.residual if example else None) if size is not None]
    if not sizes or not all(math.isfinite(size) for size in sizes):
        return None
    return max(sizes)


def _spec_of(result: RunResult) -> str | None:
    try:
        options: Mapping[str, str] = from_command(result.command, where="command").options
    except SymcheckError:
        return None
    return options.get("symmetry")
