"""What a run's properties say beyond a verdict: common evidence, precisions, decisions, and bounds on lost value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symcheck.engine.results import PropertyResult, RunResult
from symcheck_reports.formatting import number, percent, scientific

# Shorter pieces ("No violation.") are said faster than they are looked up.
_WORTH_SHARING = 30


@dataclass(frozen=True)
class PrecisionView:
    """The outputs at one precision.

    Attributes:
        name: the precision, for instance "float32 as deployed".
        residual: largest residual over the output's scale, as text.
        tolerance: what it is compared with, as text.
        noise: the network's own rounding noise over the output's scale, as text.
    """

    name: str
    residual: str
    tolerance: str
    noise: str


@dataclass(frozen=True)
class GapView:
    """How much value an approximate symmetry can cost.

    Attributes:
        names: the properties that state it, all with the same figures.
        value: the gap, as text.
        is_exact: whether the values are known; else the gap is an estimate from what was seen.
        parts: (name, text) of what it is computed from.
    """

    names: tuple[str, ...]
    value: str
    is_exact: bool
    parts: tuple[tuple[str, str], ...]


def precisions(run: RunResult) -> tuple[PrecisionView, ...]:
    """The residuals of a network's outputs at each precision, where the engine gives them."""
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
    """(decisions compared, decisions that flip) of a network's largest output; None where it decides nothing."""
    for entry in _entries(run, "decisions"):
        checked = entry.get("checked")
        if isinstance(checked, int) and checked > 0:
            return checked, int(entry.get("violations") or 0)
    return None


def _entries(run: RunResult, kind: str) -> list[dict[str, Any]]:
    return [entry for p in run.properties for entry in p.per_coordinate if entry.get("kind") == kind]


def coordinates(result: PropertyResult) -> list[dict[str, Any]]:
    """The entries of `per_coordinate` that are coordinates, with a residual of their own."""
    return [entry for entry in result.per_coordinate if "kind" not in entry]


_GAP_NAMES = {
    "epsilon_reward": "largest reward difference",
    "epsilon_transition": "largest transition difference",
    "transition_distance": "measured as",
    "noise_reward": "reward difference of equal laws, as sampled",
    "noise_transition": "transition difference of equal laws, as sampled",
    "discount": "discount",
    "region": "region",
}
_GAP_SAID_OTHERWISE = frozenset(("kind", "value", "estimate", "confidence", "exceeding_fraction"))


def gaps(run: RunResult) -> tuple[GapView, ...]:
    """What an approximate symmetry can cost in value; empty where none is stated, the same figures stated once."""
    found: dict[GapView, list[str]] = {}
    for p in run.properties:
        if p.bound is not None and p.bound.get("kind") == "value_gap" and p.bound.get("value") is not None:
            view = GapView((), _size(p.bound["value"]), p.bound.get("estimate") == "exact", _parts(p.bound))
            found.setdefault(view, []).append(p.name)
    return tuple(dataclasses.replace(view, names=tuple(names)) for view, names in found.items())


def _parts(bound: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    listed = ((key, value) for key, value in bound.items() if key not in _GAP_SAID_OTHERWISE and value is not None)
    named = [(_GAP_NAMES.get(key, key.replace("_", " ")), _size(value)) for key, value in listed]
    fraction, confidence = bound.get("exceeding_fraction"), bound.get("confidence")
    if isinstance(fraction, int | float) and isinstance(confidence, int | float):
        named.append(
            ("larger differences", f"in at most {percent(fraction)} of such pairs ({percent(confidence)} confidence)")
        )
    return tuple(named)


def _size(value: Any) -> str:
    return number(value, 3) if isinstance(value, int | float) else str(value)


def said_once(
    details: Sequence[tuple[str, str]],
) -> tuple[tuple[tuple[tuple[str, ...], str], ...], list[str]]:
    """Split what several properties say in the same words from what each says alone.

    Args:
        details: (property, detail) of each.

    Returns:
        The common pieces, each with the properties that say it, and the rest of every detail.

    Example:
        >>> common = "2,000 pairs were drawn from 100 states"
        >>> said_once([("reward", f"{common}."), ("end", f"{common}; 3 end the episode.")])
        (((('reward', 'end'), '2,000 pairs were drawn from 100 states.'),), ['', '3 end the episode.'])
    """
    cut = [pieces(detail) for _, detail in details]
    saying: dict[str, list[str]] = {}
    for (name, _), found in zip(details, cut, strict=True):
        for piece in dict.fromkeys(found):
            saying.setdefault(piece, []).append(name)
    common = {piece: names for piece, names in saying.items() if len(names) > 1 and _is_worth_sharing(piece)}
    by_names: dict[tuple[str, ...], list[str]] = {}
    for piece, names in common.items():
        by_names.setdefault(tuple(names), []).append(piece)
    shared = tuple((names, _sentences(found)) for names, found in by_names.items())
    own = [
        detail if not any(piece in common for piece in found) else _sentences([p for p in found if p not in common])
        for (_, detail), found in zip(details, cut, strict=True)
    ]
    return shared, own


def _is_worth_sharing(piece: str) -> bool:
    """Long enough, and not the reason for the verdict itself, which stays beside it."""
    return len(piece) >= _WORTH_SHARING and not piece.lower().startswith(("undecided", "approximate"))


def without_precision(detail: str) -> str:
    """A detail without the sentence on the deployed precision, which the page has a table for.

    Example:
        >>> without_precision("No violation. As deployed (float32): residual 0; 0 of 9 argmax decisions flip.")
        'No violation.'
    """
    kept = _DEPLOYED.sub("", detail).strip()
    return kept if kept != detail.strip() else detail


_DEPLOYED = re.compile(r"As deployed \([^)]*\): [^.]*(?:\.\d[^.]*)*\.(?= |$)")
_END = re.compile(r"(?<=[.;]) +")


def pieces(detail: str) -> list[str]:
    """The sentences of a text, and the parts between its semicolons, without their last character; brackets stay whole.

    Example:
        >>> pieces("one (two; three); four. Five.")
        ['one (two; three)', 'four', 'Five']
    """
    found: list[str] = []
    for part in _END.split(detail):
        if found and found[-1].count("(") > found[-1].count(")"):
            found[-1] += " " + part
        else:
            found.append(part)
    return [piece.rstrip(".;") for piece in found if piece.strip()]


def _sentences(found: Sequence[str]) -> str:
    return " ".join(f"{piece[:1].upper()}{piece[1:]}." for piece in found)
