"""Builds the views of a page (`symcheck_reports.views`) from results.

The model determines content and order; sections and templates only determine the appearance. It computes no statistics:
all figures come from `symcheck.engine.results`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.statements.statement import Statement, as_paragraph, free
from symcheck_reports import words
from symcheck_reports.bounds import bound_sentence, region_parts
from symcheck_reports.counterexample_view import counterexample_view
from symcheck_reports.evidence import coordinates, decisions, gaps, is_in_a_table, precisions, share_notes
from symcheck_reports.formatting import one_line, scientific
from symcheck_reports.views import LayerView, PropertyView, RunView

_MOST_ROWS = 300  # maximum number of rows of a table; the JSON report contains all


def run_view(run: RunResult, index: int = 0, *, max_passing: int | None = None) -> RunView:
    """The view of one run.

    Args:
        run: the result.
        index: its position among several runs, for anchors.
        max_passing: the largest number of passing properties to show; the others are counted in `left_out`.

    Returns:
        The view; failed and undecided properties are always in it.
    """
    prefix = f"run{index + 1}"
    anchors = {i: f"{prefix}-counterexample{i + 1}" for i, p in enumerate(run.properties) if p.counterexample}
    shown = _indices_to_show(run.properties, max_passing)
    shared, own_notes = share_notes([(p.name, p.notes) for p in run.properties])
    details = [_own_detail(p, notes) for p, notes in zip(run.properties, own_notes, strict=True)]
    return RunView(
        anchor=prefix,
        kind=run.kind,
        target=run.target,
        symmetry=run.symmetry,
        group=_group_words(run.group),
        verdict=run.verdict,
        sentence=words.verdict_sentence(run),
        claims=tuple((part, tuple(texts)) for part, texts in run.claim.items() if texts),
        properties=tuple(_property_view(run.properties[i], anchors.get(i, ""), details[i]) for i in shown),
        counterexamples=tuple(
            counterexample_view(run.target, run.properties[i], anchor, details[i]) for i, anchor in anchors.items()
        ),
        layers=tuple(_layer_view(layer) for layer in run.layers),
        left_out=len(run.properties) - len(shown),
        method_reason=_full_stop(str(run.method_reason)),
        facts=tuple(words.facts(run)),
        command=run.command,
        interrupted=run.interrupted,
        tally=words.count_verdicts(run.properties),
        shared=shared,
        noted_regions=frozenset(_noted_regions(run.properties)),
        precisions=precisions(run),
        decisions=decisions(run),
        gaps=gaps(run),
        columns=tuple(_column_cells(column) for column in run.columns[:_MOST_ROWS]),
        columns_left_out=max(0, len(run.columns) - _MOST_ROWS),
        differences=tuple(
            (one_line(str(item["text"]), 400), scientific(item["relative"])) for item in run.differences[:_MOST_ROWS]
        ),
        poses=run.pictures,
    )


def _column_cells(column: dict[str, Any]) -> tuple[str, ...]:
    place = f"{column['group']}[{column['index']}]"
    return (place, *(one_line(str(column[key]), 120) for key in ("term", "name", "expected", "found", "code")))


def _own_detail(result: PropertyResult, notes: Sequence[Statement]) -> str:
    """The reason, which is always next to its verdict, and the notes that are shown nowhere else on the page."""
    kept = [note for note in notes if not (result.per_coordinate and is_in_a_table(note))]
    return as_paragraph([*([result.reason] if result.reason is not None else []), *kept])


def _full_stop(text: str) -> str:
    return f"{text.rstrip('.')}." if text.strip() else ""


def _indices_to_show(properties: Sequence[PropertyResult], max_passing: int | None) -> list[int]:
    holding = [i for i, p in enumerate(properties) if p.verdict in ("passed", "proved")]
    hidden = set(holding[max_passing:]) if max_passing is not None else set()
    return [i for i in range(len(properties)) if i not in hidden]


def _group_words(group: dict[str, Any]) -> str:
    return f"{group.get('name', '?')} (order {group.get('order', '?')})"


def _property_view(result: PropertyResult, anchor: str, detail: str) -> PropertyView:
    claim = words.property_words(result)
    return PropertyView(
        name=result.name,
        verdict=result.verdict,
        qualifications=tuple(words.qualifications(result)),
        equation=claim.equation,
        meaning=claim.meaning,
        evidence=words.evidence(result),
        bound=bound_sentence(result.bound, with_region=False),
        region=_region(result),
        residual=scientific(words.largest_residual(result)),
        tolerance=scientific(result.tolerance),
        unit=result.unit,
        detail=detail,
        location=result.location or "",
        anchor=anchor,
        causes=tuple(words.cause_with_code(cause) for cause in result.causes),
        residuals=_residuals(result),
    )


def _region(result: PropertyResult) -> str:
    """The region of the bound, unless a note already names it."""
    region = (result.bound or {}).get("region")
    if region is None:
        return ""
    parts = region_parts(region)
    return "; ".join(str(part) for part in parts if not any(_names(note, part) for note in result.notes))


def _noted_regions(properties: Sequence[PropertyResult]) -> list[str]:
    regions = [region for p in properties if (region := (p.bound or {}).get("region")) is not None]
    return [str(region) for region in regions if any(_names(note, region) for p in properties for note in p.notes)]


def _names(note: Statement, region: Statement | str) -> bool:
    """Whether a note is the region, or is about it."""
    given = free(region) if isinstance(region, str) else region
    return note == given or any(value in (region, given) for value in note.fields.values())


def _residuals(result: PropertyResult) -> tuple[tuple[str, float | None, float | None], ...]:
    largest = words.largest_residual(result)
    if largest is None and not result.per_coordinate:
        return ()
    listed = coordinates(result)
    named = [
        (str(entry.get("name", "")), entry.get("max_residual"), entry.get("tolerance"))
        for entry in listed
        if len(listed) > 1  # a single coordinate repeats the property
    ]
    return ((result.name, largest, result.tolerance), *named)


def _layer_view(layer: dict[str, Any]) -> LayerView:
    residual = layer.get("residual")
    return LayerView(
        name=str(layer.get("name", "")),
        type=str(layer.get("type", "")),
        representation=str(layer.get("representation") or ""),
        residual="" if residual is None else scientific(residual),
        verdict=str(layer.get("verdict") or ""),
        notes=_layer_notes(layer) if layer.get("verdict") == "failed" else (),
    )


def _layer_notes(layer: dict[str, Any]) -> tuple[str, ...]:
    ulps = layer.get("ulps")
    size = f"{ulps:.3g} float32 ulps" if isinstance(ulps, int | float) and ulps > 0 else ""
    place = str(layer.get("place") or "") if size else ""
    cause = layer.get("cause")
    notes = ("" if cause is None else str(cause), ", ".join(part for part in (place, size) if part))
    source = str(layer.get("source") or "")
    return tuple(note for note in (*notes, f"from {source}" if ":" in source else "") if note)
