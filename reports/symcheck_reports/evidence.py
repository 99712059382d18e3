"""Details of a run beyond its verdict: common evidence, precisions, decisions, and bounds on lost value."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.statements.statement import Statement, as_paragraph, free, table  # noqa: F401 (free: doctest)
from symcheck_reports.formatting import number, percent, scientific

# Maximum number of characters of a note ("no violation") that is repeated next to each property.
_WORTH_SHARING = 30


@dataclass(frozen=True)
class PrecisionView:
    """The outputs at one precision.

    Attributes:
        name: the precision, for instance "float32 as deployed".
        residual: largest residual over the output's scale, as text.
        tolerance: the tolerance, as text.
        noise: the network's own rounding noise over the output's scale, as text.
    """

    name: str
    residual: str
    tolerance: str
    noise: str


@dataclass(frozen=True)
class GapView:
    """The largest loss of value under an approximate symmetry.

    Attributes:
        names: the properties with this bound, all with the same figures.
        value: the gap, as text.
        is_exact: whether the gap is computed from known values; otherwise it is an estimate from samples.
        parts: the quantities from which it is computed, as (name, text).
    """

    names: tuple[str, ...]
    value: str
    is_exact: bool
    parts: tuple[tuple[str, str], ...]


def precisions(run: RunResult) -> tuple[PrecisionView, ...]:
    """The residuals of a network's outputs at each precision, if the engine provides them."""
    return tuple(
        PrecisionView(
            str(entry.get("name", "")),
            scientific(entry.get("max_residual")),
            scientific(entry.get("tolerance")),
            scientific(entry.get("noise")),
        )
        for entry in _entries(run, "precision")
    )


def decisions(run: RunResult) -> tuple[int, int] | None:
    """(decisions compared, decisions that flip) for the largest output; None if outputs are not decisions."""
    for entry in _entries(run, "decisions"):
        checked = entry.get("checked")
        if isinstance(checked, int) and checked > 0:
            return checked, int(entry.get("violations") or 0)
    return None


def _entries(run: RunResult, kind: str) -> list[dict[str, Any]]:
    return [entry for p in run.properties for entry in p.per_coordinate if entry.get("kind") == kind]


def coordinates(result: PropertyResult) -> list[dict[str, Any]]:
    """The entries of `per_coordinate` that are coordinates with their own residual."""
    return [entry for entry in result.per_coordinate if "kind" not in entry]


_GAP_NAMES = {
    "epsilon_reward": "largest reward difference",
    "epsilon_transition": "largest transition difference",
    "transition_distance": "measured as",
    "noise_reward": "reward difference of equal distributions, as sampled",
    "noise_transition": "transition difference of equal distributions, as sampled",
    "discount": "discount",
    "region": "region",
}
_GAP_STATED_APART = frozenset(("kind", "value", "estimate", "confidence", "exceeding_fraction"))


def gaps(run: RunResult) -> tuple[GapView, ...]:
    """Bounds on the loss of value under an approximate symmetry; equal figures are listed once."""
    by_view: dict[GapView, list[str]] = {}
    for p in run.properties:
        if p.bound is not None and p.bound.get("kind") == "value_gap" and p.bound.get("value") is not None:
            view = GapView((), _size_text(p.bound["value"]), p.bound.get("estimate") == "exact", _parts(p.bound))
            by_view.setdefault(view, []).append(p.name)
    return tuple(dataclasses.replace(view, names=tuple(names)) for view, names in by_view.items())


def _parts(bound: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    listed = ((key, value) for key, value in bound.items() if key not in _GAP_STATED_APART and value is not None)
    named = [(_GAP_NAMES.get(key, key.replace("_", " ")), _size_text(value)) for key, value in listed]
    fraction, confidence = bound.get("exceeding_fraction"), bound.get("confidence")
    if isinstance(fraction, int | float) and isinstance(confidence, int | float):
        named.append(
            ("larger differences", f"in at most {percent(fraction)} of pairs ({percent(confidence)} confidence)")
        )
    return tuple(named)


def _size_text(value: Any) -> str:
    return number(value, 3) if isinstance(value, int | float) else str(value)


def share_notes(
    noted: Sequence[tuple[str, Sequence[Statement]]],
) -> tuple[tuple[tuple[tuple[str, ...], str], ...], list[list[Statement]]]:
    """Separate notes that several properties share from the notes of each single property.

    Args:
        noted: (property, its notes) of each.

    Returns:
        The shared notes as sentences, with the properties that have them, and the other notes of each property. Short
        notes stay with each property, and so do notes about the verdict itself.

    Example:
        >>> common = free("2,000 pairs were drawn from 100 states")
        >>> shared, own = share_notes([("reward", [common]), ("end", [common, free("3 end the episode")])])
        >>> shared
        ((('reward', 'end'), '2,000 pairs were drawn from 100 states.'),)
        >>> [[note.text for note in notes] for notes in own]
        [[], ['3 end the episode']]
    """
    keyed = [[(_identity(note), note) for note in notes] for _, notes in noted]
    having: dict[tuple[str, str], list[str]] = {}
    for (name, _), notes in zip(noted, keyed, strict=True):
        for key in dict.fromkeys(key for key, _ in notes):  # a note is listed once per property
            having.setdefault(key, []).append(name)
    by_key = {key: note for notes in keyed for key, note in notes}
    common = {key: names for key, names in having.items() if len(names) > 1 and _is_worth_sharing(by_key[key])}
    by_names: dict[tuple[str, ...], list[Statement]] = {}
    for key, names in common.items():
        by_names.setdefault(tuple(names), []).append(by_key[key])
    shared = tuple((names, as_paragraph(notes)) for names, notes in by_names.items())
    return shared, [[note for key, note in notes if key not in common] for notes in keyed]


def is_in_a_table(note: Statement) -> bool:
    """Whether the page already has a table with the content of the note: the outputs at each precision."""
    return _placement(note) == "table"


def _is_worth_sharing(note: Statement) -> bool:
    return len(note.text) >= _WORTH_SHARING and _placement(note) == ""


def is_warning(note: Statement) -> bool:
    """Whether the terminal shows the note too, for any verdict."""
    return _placement(note) == "warning"


def _placement(note: Statement) -> str:
    """Where a note is shown: "beside" its property, as a "warning", in a "table"; "" for anywhere."""
    return str(table("notes").get(note.code, {}).get("shown", ""))


def _identity(note: Statement) -> tuple[str, str]:
    """A hashable key that is equal for notes with the same text; statements themselves are not hashable."""
    return note.code, note.text
