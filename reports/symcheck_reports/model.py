"""From results to what a page shows: small dataclasses of text and numbers, ready to be rendered.

The model decides what is said and in which order; sections and templates only decide how it looks. Building it
computes no statistics and invents no figure: everything comes from `symcheck.engine.results`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from symcheck.engine.results import Counterexample, PropertyResult, RunResult, to_json_value
from symcheck.engine.verdict import Verdict
from symcheck_reports import words
from symcheck_reports.evidence import (
    GapView,
    PrecisionView,
    coordinates,
    decisions,
    gaps,
    precisions,
    said_once,
    without_precision,
)
from symcheck_reports.formatting import leaves, number, one_line, scientific, shape_of
from symcheck_reports.units import labelled

# A table of more rows is not read; the entries that differ most come first, and JSON has all of them.
MAX_TABLE_ROWS = 64
# Smaller grids are easier to read as numbers than as a picture.
MIN_PICTURE_SIDE = 5
# Entries of an input that are still written out beside its picture.
_SPELLED_OUT = 12
# How the engine marks outcomes that are laws: lists of (value, probability).
_LAW = "(value, probability)"
# Probabilities are sums of a few numbers below 1: what differs by a few of their last digits (1e-16) does not differ.
_ROUNDING = 1e-15
# The only kind of address that a picture may have.
_PICTURE = "data:image/png;base64,"
# What the entries of an outcome belong to, where the engine does not name them.
_OUTCOMES = {"transition_invariance": "next s", "observation_equivariance": "obs", "reward_invariance": "reward"}


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers: one row per entry, in the order to show.

    Attributes:
        caption: what the table holds.
        columns: the headings, the first one for the row's name.
        rows: the cells of each row as text.
        marked: indices of rows to emphasise, for instance where expected and actual differ most.
        left_out: number of entries that the table does not show.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()
    left_out: int = 0


@dataclass(frozen=True)
class Picture:
    """A grid of values to draw as an image.

    Attributes:
        caption: what it shows.
        values: nested lists, (height, width), or (channels, height, width), or (height, width, 3).
        shape: the shape of `values`.
        low: the value drawn darkest, the same for all pictures that are compared.
        high: the value drawn brightest.
    """

    caption: str
    values: Any
    shape: tuple[int, ...]
    low: float
    high: float


@dataclass(frozen=True)
class CounterexampleView:
    """One counterexample in full.

    Attributes:
        anchor: the id that links point to.
        property_name: the property it refutes.
        equation: what the property claims.
        place: g, s and a in words.
        residual: residual, place, unit and tolerance in words.
        tables: the input and its image; what was expected and what was measured.
        pictures: the same drawn, where they are grids; empty otherwise.
        renders: drawn by the environment itself, as (caption, address); empty where it cannot.
        undrawn: why the environment drew nothing; "" where it did, or where the page draws it otherwise.
        next_observations: what the next states show, as (caption, raw observation), for drawings of known environments.
        verdict: the property's: a violation that is accepted does not fail.
        observation: the raw observation, for drawings of known environments.
        image_observation: the raw image of the observation, or None.
        action: the raw action, or None.
        image_action: the raw image of the action, or None.
        expected: the raw value that the claim asks for.
        actual: the raw value measured.
        causes: likely causes, most likely first.
        reproduce: the command that shows it again; "" where none exists.
        detail: on what evidence.
        evidence: number of checks and violations.
    """

    anchor: str
    property_name: str
    equation: str
    meaning: str
    place: str
    residual: str
    tables: tuple[NumberTable, ...]
    pictures: tuple[Picture, ...]
    renders: tuple[tuple[str, str], ...]
    undrawn: str
    next_observations: tuple[tuple[str, Any], ...]
    verdict: Verdict
    observation: Any
    image_observation: Any
    action: Any
    image_action: Any
    expected: Any
    actual: Any
    causes: tuple[str, ...]
    reproduce: str
    detail: str
    evidence: str


@dataclass(frozen=True)
class PropertyView:
    """One row of the table of properties, and its residuals.

    Attributes:
        name: the property's name.
        verdict: its verdict.
        approximate: whether it holds up to an accepted size only.
        equation: what it claims.
        meaning: the same in words.
        evidence: number of checks and violations.
        bound: what the evidence excludes; "" where nothing is stated.
        region: where the evidence was gathered; "" where nothing is stated.
        residual: the largest residual as text.
        tolerance: what it is compared with, as text.
        unit: norm, unit and place of the residual.
        detail: on what evidence, over which region, where the tolerance comes from.
        location: the layer's name, "" for environments.
        anchor: id of its counterexample; "" without one.
        residuals: (name, residual, tolerance) of the property and then of each coordinate.
    """

    name: str
    verdict: Verdict
    approximate: bool
    equation: str
    meaning: str
    evidence: str
    bound: str
    region: str
    residual: str
    tolerance: str
    unit: str
    detail: str
    location: str
    anchor: str
    causes: tuple[str, ...] = ()
    residuals: tuple[tuple[str, float | None, float | None], ...] = ()


@dataclass(frozen=True)
class LayerView:
    """One link of a network's chain of layers.

    Attributes:
        name: as in `named_modules()`.
        type: the module's class.
        representation: how the group acts on its output.
        residual: as text.
        verdict: one of the verdicts, or another word of the engine's.
        notes: where in the layer the residual is, and why it does not carry the action; empty where it does.
    """

    name: str
    type: str
    representation: str
    residual: str
    verdict: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunView:
    """One run, ready to be rendered.

    Attributes:
        anchor: the id of its article.
        kind: "env" or "net".
        target: the environment or network.
        symmetry: the symmetry's name.
        group: name and order in words.
        verdict: the run's verdict.
        sentence: the verdict in a sentence.
        claims: (part, one text per generator), for instance ("observation", ("...",)).
        properties: the rows to show.
        left_out: number of passing properties that are not shown.
        counterexamples: all of them.
        layers: the chain of layers; empty for environments.
        method_reason: why the method was chosen.
        facts: (name, value) pairs: seed, alpha, duration, versions.
        command: the command that repeats the run.
        interrupted: whether it was stopped early.
        shared: (properties, text) of evidence that several properties have in common, to be said once.
        precisions: the outputs at each precision, for networks.
        decisions: (decisions compared, decisions that flip), for networks that choose by the largest output; or None.
        gaps: bounds on the loss of value, for approximate symmetries.
    """

    anchor: str
    kind: str
    target: str
    symmetry: str
    group: str
    verdict: Verdict
    sentence: str
    claims: tuple[tuple[str, tuple[str, ...]], ...]
    properties: tuple[PropertyView, ...]
    counterexamples: tuple[CounterexampleView, ...]
    layers: tuple[LayerView, ...] = ()
    left_out: int = 0
    method_reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""
    interrupted: bool = False
    tally: dict[Verdict, int] = field(default_factory=dict)
    shared: tuple[tuple[tuple[str, ...], str], ...] = ()
    precisions: tuple[PrecisionView, ...] = ()
    decisions: tuple[int, int] | None = None
    gaps: tuple[GapView, ...] = ()


def run_view(run: RunResult, index: int = 0, *, max_passing: int | None = None) -> RunView:
    """The view of one run.

    Args:
        run: the result.
        index: its place among several, for anchors.
        max_passing: show at most this many properties that hold; the others are counted in `left_out`.

    Returns:
        The view; failed and undecided properties are always in it.
    """
    prefix = f"run{index + 1}"
    anchors = {i: f"{prefix}-counterexample{i + 1}" for i, p in enumerate(run.properties) if p.counterexample}
    shown = _shown(run.properties, max_passing)
    shared, own = said_once([(p.name, p.detail) for p in run.properties])
    own = [without_precision(text) if p.per_coordinate else text for p, text in zip(run.properties, own, strict=True)]
    return RunView(
        anchor=prefix,
        kind=run.kind,
        target=run.target,
        symmetry=run.symmetry,
        group=_group_words(run.group),
        verdict=run.verdict,
        sentence=words.verdict_sentence(run),
        claims=tuple((part, tuple(texts)) for part, texts in run.claim.items() if texts),
        properties=tuple(_property_view(run.properties[i], anchors.get(i, ""), own[i]) for i in shown),
        counterexamples=tuple(_counterexample_view(run.target, run.properties[i], anchors[i], own[i]) for i in anchors),
        layers=tuple(_layer_view(layer) for layer in run.layers),
        left_out=len(run.properties) - len(shown),
        method_reason=run.method_reason,
        facts=tuple(words.facts(run)),
        command=run.command,
        interrupted=run.interrupted,
        tally=words.count_verdicts(run.properties),
        shared=shared,
        precisions=precisions(run),
        decisions=decisions(run),
        gaps=gaps(run),
    )


def _shown(properties: Sequence[PropertyResult], max_passing: int | None) -> list[int]:
    holding = [i for i, p in enumerate(properties) if p.verdict in ("passed", "proved")]
    hidden = set(holding[max_passing:]) if max_passing is not None else set()
    return [i for i in range(len(properties)) if i not in hidden]


def _group_words(group: dict[str, Any]) -> str:
    return f"{group.get('name', '?')} (order {group.get('order', '?')})"


def _property_view(result: PropertyResult, anchor: str, detail: str) -> PropertyView:
    said = words.property_words(result.name)
    return PropertyView(
        name=result.name,
        verdict=result.verdict,
        approximate=words.is_approximate(result),
        equation=said.equation,
        meaning=said.meaning,
        evidence=words.evidence(result),
        bound=words.bound_sentence(result.bound, with_region=False),
        region=_region(result),
        residual=scientific(words.largest_residual(result)),
        tolerance=scientific(result.tolerance),
        unit=result.unit,
        detail=detail,
        location=result.location or "",
        anchor=anchor,
        causes=tuple(words.coded(cause) for cause in result.causes),
        residuals=_residuals(result),
    )


def _region(result: PropertyResult) -> str:
    """The region of the bound, where the detail does not say it already."""
    region = str((result.bound or {}).get("region", ""))
    return "" if region and region in result.detail else region


def _residuals(result: PropertyResult) -> tuple[tuple[str, float | None, float | None], ...]:
    largest = words.largest_residual(result)
    if largest is None and not result.per_coordinate:
        return ()
    listed = coordinates(result)
    named = [
        (str(entry.get("name", "")), entry.get("max_residual"), entry.get("tolerance"))
        for entry in listed
        if len(listed) > 1  # a single one repeats the property
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
    said = str(cause["text"] if isinstance(cause, dict) else cause or "")  # older reports have plain text
    notes = (said, ", ".join(part for part in (place, size) if part))
    source = str(layer.get("source") or "")
    return tuple(note for note in (*notes, f"from {source}" if ":" in source else "") if note)


def _counterexample_view(target: str, result: PropertyResult, anchor: str, detail: str) -> CounterexampleView:
    example = result.counterexample
    if example is None:
        raise ValueError(f"expected a property with a counterexample, got {result.name!r} without one")
    said = words.property_words(result.name)
    symbol = "x" if words.is_network_property(result.name) else "s"
    pictures = _pictures(example, symbol)
    renders = tuple((c, v) for c, v in example.pictures if isinstance(v, str) and v.startswith(_PICTURE))
    tables = (_input_table(example, symbol), *_outcome_tables(example, result))
    return CounterexampleView(
        anchor=anchor,
        property_name=result.name,
        equation=said.equation,
        meaning=said.meaning,
        place=_place(result, bool(renders) or bool(pictures), symbol),
        residual=words.residual_sentence(result, place=labelled(target, example.where)),
        tables=tuple(_labelled(target, table) for table in tables if table.rows),
        pictures=() if renders else pictures,
        renders=renders,
        undrawn="" if renders or pictures else _undrawn(result, example),
        next_observations=tuple((c, to_json_value(v)) for c, v in example.pictures if not isinstance(v, str)),
        verdict=result.verdict,
        observation=to_json_value(example.observation),
        image_observation=to_json_value(example.image_observation),
        action=to_json_value(example.action),
        image_action=to_json_value(example.image_action),
        expected=to_json_value(example.expected),
        actual=to_json_value(example.actual),
        causes=tuple(words.coded(cause) for cause in result.causes),
        reproduce=example.reproduce,
        detail=detail,
        evidence=words.evidence(result),
    )


def _labelled(target: str, table: NumberTable) -> NumberTable:
    """The same table, its rows with what the environment's coordinates are called."""
    rows = tuple((labelled(target, name), *cells) for name, *cells in table.rows)
    return dataclasses.replace(table, rows=rows)


def _undrawn(result: PropertyResult, example: Counterexample) -> str:
    if example.observation is None and result.p_value is not None:
        return "two distributions were compared, and no single step is at fault."
    return example.undrawn


def _place(result: PropertyResult, is_drawn: bool, symbol: str) -> str:
    """Where it fails, in words; an input that is drawn below is not spelled out."""
    example = result.counterexample
    if not is_drawn or example is None or len(list(leaves(to_json_value(example.observation)))) <= _SPELLED_OUT:
        return words.place_sentence(result)
    short = words.place_sentence(
        dataclasses.replace(result, counterexample=dataclasses.replace(example, observation=None))
    )
    return f"{short}, {symbol} as drawn below"


def _input_table(example: Counterexample, symbol: str) -> NumberTable:
    """The input and its image, entry by entry: observation, action, internal state."""
    rows: list[tuple[str, ...]] = []
    pairs = ((symbol, example.observation, example.image_observation), ("a", example.action, example.image_action))
    state = example.state if words.has_state_of_its_own(example) else None
    for name, value, image in (*pairs, ("state", state, None)):
        if value is None:
            continue
        images = dict(leaves(to_json_value(image))) if image is not None else {}
        for place, entry in leaves(to_json_value(value)):
            moved = number(images[place], 8) if place in images else "–"
            rows.append((f"{name}{place}", number(entry, 8), moved))
    kept = rows if len(rows) <= MAX_TABLE_ROWS else [row for row in rows if row[1] != "0" or row[2] not in ("0", "–")]
    kept = kept[:MAX_TABLE_ROWS]
    left_out = len(rows) - len(kept)
    if all(moved == "–" for _, _, moved in rows):
        return NumberTable("The input", ("entry", "given"), tuple(row[:2] for row in kept), left_out=left_out)
    columns = ("entry", "given", "moved by g")
    return NumberTable("The input and its image under g", columns, tuple(kept), left_out=left_out)


def _outcome_tables(example: Counterexample, result: PropertyResult) -> list[NumberTable]:
    if example.expected is None and example.actual is None:
        return []
    if _LAW in example.where:
        return [_law_table(example)]
    expected = list(leaves(to_json_value(example.expected)))
    alone = example.where if [place for place, _ in expected] == [""] else ""
    actual = dict(leaves(to_json_value(example.actual)))
    names = _coordinate_names(result, len(expected))
    whole = example.where.partition("[")[0] if result.name == "network_equivariance" else ""  # "output" of "output[1]"
    rows, sizes = [], []
    for index, (place, wanted) in enumerate(expected):
        found = actual.get(place)
        difference = _difference(wanted, found)
        owner = _OUTCOMES.get(result.name, whole if place.startswith("[") else "")
        name = names[index] or alone or f"{owner}{place}" or "value"
        rows.append((name, number(wanted, 8), number(found, 8), scientific(difference)))
        sizes.append(_size(difference, wanted != found))
    order = sorted(range(len(rows)), key=lambda i: -sizes[i])[:MAX_TABLE_ROWS]
    order = sorted(order) if len(rows) <= MAX_TABLE_ROWS else order
    worst = max(sizes, default=0.0)
    named = [place for place, i in enumerate(order) if rows[i][0] == example.where and sizes[i] > 0]
    marked = frozenset(named or (place for place, i in enumerate(order) if sizes[i] == worst and worst > 0))
    columns = ("entry", "expected", "measured", "difference")
    table = NumberTable(
        "What the claim asks for, and what was measured" + (", on average" if result.p_value is not None else ""),
        columns,
        tuple(rows[i] for i in order),
        marked,
        len(rows) - len(order),
    )
    return [table]


def _law_table(example: Counterexample) -> NumberTable:
    """Probabilities side by side, value by value: both sides are lists of (value, probability)."""
    sides = [{number(v, 8): p for v, p in _law_pairs(side)} for side in (example.expected, example.actual)]
    values = list(dict.fromkeys([*sides[0], *sides[1]]))
    gaps = [float(sides[1].get(v, 0.0)) - float(sides[0].get(v, 0.0)) for v in values]
    rows = tuple(
        (
            v,
            number(sides[0].get(v, 0.0), 8),
            number(sides[1].get(v, 0.0), 8),
            scientific(gap if abs(gap) > _ROUNDING else 0.0),
        )
        for v, gap in zip(values, gaps, strict=True)
    )
    marked = frozenset(i for i, gap in enumerate(gaps) if abs(gap) > _ROUNDING)
    caption = f"The {example.where.split(',')[0]}: probabilities"
    columns = ("value", "expected", "measured", "difference")
    return NumberTable(caption, columns, rows[:MAX_TABLE_ROWS], marked, max(0, len(rows) - MAX_TABLE_ROWS))


def _law_pairs(side: Any) -> list[tuple[Any, Any]]:
    plain = to_json_value(side)
    listed = plain if isinstance(plain, list) else []
    return [(pair[0], pair[1]) for pair in listed if isinstance(pair, list) and len(pair) == 2]


def _coordinate_names(result: PropertyResult, size: int) -> list[str]:
    named = [str(entry.get("name", "")) for entry in coordinates(result)]
    return named if len(named) == size else [""] * size


def _difference(wanted: Any, found: Any) -> float | None:
    if isinstance(wanted, bool) or isinstance(found, bool):
        return None
    if not isinstance(wanted, int | float) or not isinstance(found, int | float):
        return None
    return float(found) - float(wanted)


def _size(difference: float | None, differs: bool) -> float:
    """How prominent a row is; what cannot be subtracted (NaN, texts, truth values) counts as 1 where it differs."""
    if difference is None:
        return 1.0 if differs else 0.0
    return abs(difference)


def _pictures(example: Counterexample, symbol: str) -> tuple[Picture, ...]:
    given = to_json_value(example.observation)
    named = (
        (f"{symbol}, given", given),
        (f"g {symbol}, moved by g", to_json_value(example.image_observation)),
        ("expected", _as_shaped(example.expected, shape_of(given))),
        ("measured", _as_shaped(example.actual, shape_of(given))),
    )
    pictures = []
    for caption, plain in named:
        shape = shape_of(plain)
        if shape is not None and _is_grid(shape):
            entries = [float(v) for _, v in leaves(plain) if isinstance(v, int | float)]
            pictures.append(Picture(caption, plain, shape, min(entries, default=0.0), max(entries, default=1.0)))
    low, high = min((p.low for p in pictures), default=0.0), max((p.high for p in pictures), default=1.0)
    return tuple(Picture(p.caption, p.values, p.shape, low, high) for p in pictures)


def _as_shaped(side: Any, shape: tuple[int, ...] | None) -> Any:
    """A side in the shape of the observation, where it has as many numbers: next states are compared as vectors."""
    plain = to_json_value(side)
    if not shape or 0 in shape or shape_of(plain) != (math.prod(shape),):
        return plain
    for size in reversed(shape[1:]):
        plain = [plain[at : at + size] for at in range(0, len(plain), size)]
    return plain


def _is_grid(shape: tuple[int, ...]) -> bool:
    sides = shape if len(shape) == 2 else (shape[1:] if len(shape) == 3 and shape[0] <= 4 else shape[:2])
    return len(shape) in (2, 3) and min(sides) >= MIN_PICTURE_SIDE


def short_name(view: RunView) -> str:
    """Target and symmetry on one line, for tables and titles."""
    return f"{one_line(view.target, 80)} under {one_line(view.symmetry, 80)}"
