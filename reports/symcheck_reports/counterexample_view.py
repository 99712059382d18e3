"""Builds the view of a counterexample: place, tables of numbers, and pictures if the input is a grid."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from symcheck.engine.equations import BY_NAME
from symcheck.engine.results import Counterexample, PropertyResult, to_json_value
from symcheck_reports import boards, words
from symcheck_reports.evidence import coordinates
from symcheck_reports.formatting import leaves, number, scientific, shape_of
from symcheck_reports.units import labelled
from symcheck_reports.views import CounterexampleView, NumberTable, Picture

# Maximum number of rows; the entries that differ most come first, and the JSON report contains all of them.
MAX_TABLE_ROWS = 64
# Smaller grids are easier to read as numbers than as a picture.
MIN_PICTURE_SIDE = 5
# Maximum number of entries that are listed next to a picture.
_SPELLED_OUT = 12
# Probabilities are sums of a few numbers below 1: differences of a few ulps (1e-16) are ignored.
_ROUNDING = 1e-15
# Table probabilities have at least this precision; values that sum to 1 within it are a distribution.
_TOTAL = 1e-6
# The only kind of address that a picture may have.
_PICTURE = "data:image/png;base64,"
# The names of the entries of an outcome, if the engine does not give them.
_OUTCOMES = {"transition_invariance": "next s", "observation_equivariance": "obs", "reward_invariance": "reward"}


def counterexample_view(target: str, result: PropertyResult, anchor: str, detail: str) -> CounterexampleView:
    """The view of a property's counterexample.

    Args:
        target: the environment or network, for the names of its coordinates.
        result: a property with a counterexample.
        anchor: the id that links point to.
        detail: the text next to the numbers.

    Raises:
        ValueError: the property has no counterexample.
    """
    example = result.counterexample
    if example is None:
        raise ValueError(f"expected a property with a counterexample, got {result.name!r} without one")
    claim = words.property_words(result)
    symbol = "x" if words.is_network_property(result.name) else "s"
    pictures = _pictures(example, symbol)
    renders = tuple((c, v) for c, v in example.pictures if isinstance(v, str) and v.startswith(_PICTURE))
    tables = (_input_table(example, symbol), *_outcome_tables(example, result))
    return CounterexampleView(
        anchor=anchor,
        property_name=result.name,
        equation=claim.equation,
        meaning=claim.meaning,
        place=_place(result, bool(renders) or bool(pictures), symbol),
        residual=words.residual_sentence(result, place=labelled(target, example.where)),
        tables=tuple(_name_rows_of_table(target, table) for table in tables if table.rows),
        pictures=() if renders else pictures,
        renders=renders,
        undrawn=""
        if renders or pictures or any(boards.is_board(v) for _, v in example.pictures)
        else _undrawn(result, example),
        boards=tuple((c, v) for c, v in example.pictures if boards.is_board(v)),
        next_observations=tuple(
            (c, to_json_value(v)) for c, v in example.pictures if not isinstance(v, str) and not boards.is_board(v)
        ),
        verdict=result.verdict,
        observation=to_json_value(example.observation),
        image_observation=to_json_value(example.image_observation),
        action=to_json_value(example.action),
        image_action=to_json_value(example.image_action),
        expected=to_json_value(example.expected),
        actual=to_json_value(example.actual),
        causes=tuple(words.cause_with_code(cause) for cause in result.causes),
        reproduce=example.reproduce,
        detail=detail,
        evidence=words.evidence(result),
    )


def _name_rows_of_table(target: str, table: NumberTable) -> NumberTable:
    """The same table, with the names of the environment's coordinates added to the rows."""
    rows = tuple((labelled(target, name), *cells) for name, *cells in table.rows)
    return dataclasses.replace(table, rows=rows)


def _undrawn(result: PropertyResult, example: Counterexample) -> str:
    if example.observation is None and result.p_value is not None:
        return "two distributions were compared, so no single step is shown."
    return example.undrawn


def _place(result: PropertyResult, is_drawn: bool, symbol: str) -> str:
    """The place of the violation in words; an input that is drawn below is not listed."""
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
    columns = ("entry", "given", "image under g")
    return NumberTable("The input and its image under g", columns, tuple(kept), left_out=left_out)


def _outcome_tables(example: Counterexample, result: PropertyResult) -> list[NumberTable]:
    if example.expected is None and example.actual is None:
        return []
    if result.method == "exact" and _is_distribution(example.expected) and _is_distribution(example.actual):
        return [_distribution_table(example, result)]
    expected = list(leaves(to_json_value(example.expected)))
    alone = example.where if [place for place, _ in expected] == [""] else ""
    actual = dict(leaves(to_json_value(example.actual)))
    names = _coordinate_names(result, len(expected))
    whole = example.where.partition("[")[0] if result.name == "network_equivariance" else ""  # "output" of "output[1]"
    rows, sizes = [], []
    for index, (place, wanted) in enumerate(expected):
        measured = actual.get(place)
        difference = _difference(wanted, measured)
        owner = _OUTCOMES.get(result.name, whole if place.startswith("[") else "")
        name = names[index] or alone or f"{owner}{place}" or "value"
        rows.append((name, number(wanted, 8), number(measured, 8), scientific(difference)))
        sizes.append(_prominence(difference, wanted != measured))
    order = sorted(range(len(rows)), key=lambda i: -sizes[i])[:MAX_TABLE_ROWS]
    order = sorted(order) if len(rows) <= MAX_TABLE_ROWS else order
    worst = max(sizes, default=0.0)
    named = [place for place, i in enumerate(order) if rows[i][0] == example.where and sizes[i] > 0]
    marked = frozenset(named or (place for place, i in enumerate(order) if sizes[i] == worst and worst > 0))
    columns = ("entry", "expected", "measured", "difference")
    table = NumberTable(
        "What the claim requires, and what was measured" + (", on average" if result.p_value is not None else ""),
        columns,
        tuple(rows[i] for i in order),
        marked,
        len(rows) - len(order),
    )
    return [table]


def _is_distribution(side: Any) -> bool:
    """Whether a side is a list of (value, probability): probabilities that sum to 1."""
    pairs = to_json_value(side)
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return False
    probabilities = [p for _, p in pairs]
    return all(isinstance(p, int | float) and 0 <= p <= 1 for p in probabilities) and math.isclose(
        sum(probabilities), 1.0, abs_tol=_TOTAL
    )


def _distribution_table(example: Counterexample, result: PropertyResult) -> NumberTable:
    """Probabilities side by side, value by value: both sides are lists of (value, probability)."""
    sides = [{number(v, 8): p for v, p in to_json_value(side)} for side in (example.expected, example.actual)]
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
    noun = BY_NAME[result.name].noun if result.name in BY_NAME else "outcome"
    caption = f"The distribution of the {noun}: probabilities"
    columns = ("value", "expected", "measured", "difference")
    return NumberTable(caption, columns, rows[:MAX_TABLE_ROWS], marked, max(0, len(rows) - MAX_TABLE_ROWS))


def _coordinate_names(result: PropertyResult, size: int) -> list[str]:
    named = [str(entry.get("name", "")) for entry in coordinates(result)]
    return named if len(named) == size else [""] * size


def _difference(wanted: Any, measured: Any) -> float | None:
    if isinstance(wanted, bool) or isinstance(measured, bool):
        return None
    if not isinstance(wanted, int | float) or not isinstance(measured, int | float):
        return None
    return float(measured) - float(wanted)


def _prominence(difference: float | None, differs: bool) -> float:
    """The sort key of a row: the difference; 1 for different values that cannot be subtracted (NaN, text, booleans)."""
    if difference is None:
        return 1.0 if differs else 0.0
    return abs(difference)


def _pictures(example: Counterexample, symbol: str) -> tuple[Picture, ...]:
    given = to_json_value(example.observation)
    named = (
        (f"{symbol}, given", given),
        (f"g {symbol}, the image under g", to_json_value(example.image_observation)),
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
    """A side in the shape of the observation, if it has the same number of entries."""
    plain = to_json_value(side)
    if not shape or 0 in shape or shape_of(plain) != (math.prod(shape),):
        return plain
    for size in reversed(shape[1:]):
        plain = [plain[at : at + size] for at in range(0, len(plain), size)]
    return plain


def _is_grid(shape: tuple[int, ...]) -> bool:
    sides = shape if len(shape) == 2 else (shape[1:] if len(shape) == 3 and shape[0] <= 4 else shape[:2])
    return len(shape) in (2, 3) and min(sides) >= MIN_PICTURE_SIDE
