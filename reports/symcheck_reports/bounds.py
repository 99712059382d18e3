"""The sentence for `bound` that all writers use: the excluded violations, or the cost of a violation."""

from __future__ import annotations

from typing import Any

from symcheck.statements.statement import Statement
from symcheck_reports.formatting import number, one_line, percent

_APART = 1.2  # multiple of the detectable shift above which other changes of the mean are reported separately


def bound_sentence(bound: dict[str, Any] | None, *, with_region: bool = True) -> str:
    """A sentence, without its full stop, on the violations that the evidence excludes; "" if no bound is stated.

    Args:
        bound: the value of `PropertyResult.bound`.
        with_region: whether to name the region; False if the region is given once for several properties.

    Example:
        >>> bound_sentence({"kind": "violation_fraction", "value": 3e-4, "confidence": 0.99, "region": "rollouts"})
        'at most 0.03% of cases could violate the claim (99% confidence; region: rollouts)'
    """
    if not bound or bound.get("value") is None:
        return ""
    kind = str(bound.get("kind", "effect"))
    lead, notes = _BOUNDS.get(kind, _other_bound)(bound)
    if with_region and bound.get("region"):
        notes.append(f"region: {one_line(str(bound['region']), 300)}")
    return f"{lead} ({'; '.join(notes)})" if notes else lead


def region_parts(region: Statement | str) -> list[Statement | str]:
    """The parts of a region: the region that several properties share, then the additions of this property.

    Example:
        >>> [str(part) for part in region_parts("rollouts")]
        ['rollouts']
    """
    inner = region.fields.get("region") if isinstance(region, Statement) else None
    if not isinstance(region, Statement) or not isinstance(inner, Statement):
        return [region]
    return [inner, *(value for value in region.fields.values() if isinstance(value, Statement) and value != inner)]


def _fraction_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    value = bound["value"]
    if not isinstance(value, int | float):
        return _other_bound(bound)
    return f"at most {percent(float(value))} of cases could violate the claim", _confidence(bound)


def _shift_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    """The change of a mean that the test detects with this power; smaller changes may exist."""
    power = bound.get("confidence")
    by_power = f" with {percent(float(power))} power" if isinstance(power, int | float) else ""
    unit = f" {one_line(str(bound['unit']), 120)}" if bound.get("unit") else ""
    size, shift = _format_size(bound["value"]), bound.get("shift")
    if shift is None:  # stated for shifts only
        return f"a shift of every outcome by {size}{unit} would be detected{by_power}", []
    # Rare outcomes and heavy tails: other changes of the mean are harder to find than a shift.
    alike = f" ({_format_size(shift)} if all outcomes shift equally)" if bound["value"] > _APART * shift else ""
    return f"a change of the mean by {size}{unit}{alike} would be detected{by_power}", []


def _gap_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    size = _format_size(bound["value"], 3)
    if bound.get("estimate") == "exact":
        return f"optimal values differ by at most {size}", []
    return f"optimal values differ by at most about {size}", ["an estimate from the largest observed differences"]


def _other_bound(bound: dict[str, Any]) -> tuple[str, list[str]]:
    kind = one_line(str(bound.get("kind", "effect")), 80).replace("_", " ")
    return f"{kind} at most {_format_size(bound['value'])}", _confidence(bound)


def _format_size(value: Any, digits: int = 2) -> str:
    return number(float(value), digits) if isinstance(value, int | float) else one_line(str(value), 80)


def _confidence(bound: dict[str, Any]) -> list[str]:
    confidence = bound.get("confidence")
    return [f"{percent(float(confidence))} confidence"] if isinstance(confidence, int | float) else []


_BOUNDS = {"violation_fraction": _fraction_bound, "mean_shift": _shift_bound, "value_gap": _gap_bound}
