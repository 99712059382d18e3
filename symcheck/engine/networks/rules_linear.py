"""Linear layers: the action on their units is found by matching rows, or they wait for a layer that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.matching import Match, judge, match_rows
from symcheck.engine.networks.rules_pointwise import tracked
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import (
    Dense,
    Interval,
    Judgement,
    LayerRecord,
    Pending,
    SignedPermutation,
    Tracked,
    Value,
    distinct_rows,
    first_places,
)
from symcheck.engine.networks.weight_orbits import TiedWeights, name_weights
from symcheck.statements.statement import state

LARGEST = 40_000_000
"""Entries of a weight matrix written out over all leading axes, beyond which a layer is not followed."""
EPS = float(np.finfo(np.float64).eps)


@rule("linear")
def linear(call: Call, x: Any, weight: Any, bias: Any = None) -> Value:
    """W x + b on the last axis."""
    W = call.constant(weight)
    b = np.zeros(W.shape[0]) if bias is None else call.constant(bias)
    return on_last_axis(call, x, W, b, call.owner(weight, bias), "Linear")


def on_last_axis(call: Call, x: Any, W: Floats, b: Floats, name: str, kind: str) -> Value:
    """W x + b on the last axis of x, W of shape (out, in); as `apply_linear` otherwise."""
    lead = int(np.prod(call.shape[:-1]))
    if lead > 1:
        W, b = _written_out(W, b, lead)
    return apply_linear(call, x, W, b, name, kind)


def apply_linear(call: Call, x: Any, W: Floats, b: Floats, name: str, kind: str) -> Value:
    """W x + b over all entries of x.

    Args:
        call: the call.
        x: the tensor.
        W: shape (entries of the result, entries of x).
        b: shape (entries of the result,).
        name: of the layer.
        kind: of the layer.

    Returns:
        The value: matched, or waiting for the next layer.

    Raises:
        NotUnderstoodError: x has no permutation of its own.
    """
    value = call.value(x)
    record = LayerRecord(name, kind)
    if isinstance(value, Pending):
        # A layer without activation before it: both are one linear map, W V and W c + b.
        product = W @ value.weight
        noise = value.noise * float(np.abs(W).sum(1).max()) + _rounding(W, value.weight, value.bias)
        return match_units(call, Pending(call.shape, value.parent, product, W @ value.bias + b, noise, value.record))
    if isinstance(value, Dense):
        return match_units(call, Pending(call.shape, value, W, b, 0.0, call.record(record)))
    source = tracked(call, x)
    return match_units(
        call, Pending(call.shape, source, sum_classes(W, source), b, _sum_noise(W, source), call.record(record))
    )


def _written_out(W: Floats, b: Floats, lead: int) -> tuple[Floats, Floats]:
    if lead * lead * W.size > LARGEST:
        raise NotUnderstoodError(state("SYM169", operation="linear"))
    # Block diagonal: the same weight at every leading place.
    return np.asarray(np.kron(np.eye(lead), W), dtype=np.float64), np.tile(b, lead)


def sum_classes(W: Floats, value: Tracked) -> Floats:
    """W on classes: columns of one class added up, shape (rows, classes)."""
    if value.is_free:
        return W
    result = np.zeros((W.shape[0], value.classes))
    # Entries of one class have one value, so their columns add up.
    np.add.at(result.T, value.cls, W.T)
    return result


def _sum_noise(W: Floats, value: Tracked) -> float:
    if len(value.cls) == value.classes:
        return 0.0
    # Rounding of sums of equal columns: as many terms as the largest class has entries.
    return 4 * EPS * float(np.bincount(value.cls).max()) * float(np.abs(W).max(initial=0.0))


def _rounding(*factors: Floats) -> float:
    """Bound on the rounding of a product of matrices, entry by entry: (n + 2) eps |A| |B|, at its largest."""
    a, *rest = factors
    size = max(float(np.abs(r).max(initial=0.0)) for r in rest)
    width = float(np.abs(a).sum(1).max(initial=0.0))
    return float((a.shape[1] + 2) * EPS * width * size)


def moved_rows(pending: Pending, generator: int) -> tuple[Floats, float]:
    """[W R, b]: the layer after its input was moved by a generator; with the rounding this involves."""
    parent = pending.parent
    if isinstance(parent, Tracked):
        # W R for a signed permutation R only permutes columns, without rounding.
        W, b, noise = parent.images[generator].columns(pending.weight), pending.bias, 0.0
    else:
        affine = parent.maps[generator]
        W, b = pending.weight @ affine.matrix, pending.weight @ affine.offset + pending.bias
        noise = _rounding(pending.weight, affine.matrix, affine.offset) + EPS * float(np.abs(b).max(initial=0.0))
    return np.concatenate([W, b[:, None]], axis=1), noise + pending.noise


def own_rows(pending: Pending) -> Floats:
    """[W, b], shape (n, m + 1)."""
    return np.concatenate([pending.weight, pending.bias[:, None]], axis=1)


def match_units(call: Call, pending: Pending) -> Value:
    """The permutation of the layer's units, for every generator; the pending value itself where there is none."""
    rows = own_rows(pending) + 0.0
    # Equal rows are one class: any permutation among them would do.
    unique, cls = distinct_rows(rows)
    images, judgements, certain = [], [], True
    for generator in range(call.tracer.generators):
        moved, noise = moved_rows(pending, generator)
        first = first_places(cls, len(unique))
        # A permutation that a certificate gives is judged like one that was searched.
        match = given_match(call, pending.record, generator, len(unique)) or match_rows(moved[first], unique)
        if match is None or not match.found:
            _fill(pending, _judge_match(moved[first], unique, match, noise), first, matched=False)
            return pending
        images.append(match.permutation)
        certain = certain and bool(match.close.all())
        judgements.append(_judge_match(moved[first], unique, match, noise))
    worst = max(judgements, key=lambda j: j.rank)
    result = Tracked(call.shape, cls, tuple(images), origin=pending)
    # Rows are compared one for each class.
    result.interval, bound = _bounds(pending, unique, first_places(cls, len(unique)), images)
    details = {"images": tuple(images), "certain": certain, "representation": result.text(), "bound": bound}
    _fill(pending, worst, first_places(cls, len(unique)), matched=True, **details)
    return result


def given_match(call: Call, record: LayerRecord, generator: int, size: int) -> Match | None:
    """The permutation that a certificate to be checked gives for a layer; None where it gives none of this size."""
    given = call.tracer.given.get(call.tracer.records.index(record), ())
    if generator >= len(given) or given[generator].size != size or not given[generator].is_permutation:
        return None
    return Match(given[generator], np.ones(size, dtype=bool))


def _judge_match(moved: Floats, rows: Floats, match: Match | None, noise: float) -> Judgement:
    if match is None:
        size = float(np.abs(rows).max(initial=0.0))
        return Judgement("failed", size, float("inf"), 1.0, (0, 0), (0.0, size), (), ())
    image = match.permutation
    return judge(moved[image.index], image.sign[:, None] * rows, noise)


def _fill(pending: Pending, judgement: Judgement, units: Ints, *, matched: bool, **details: Any) -> None:
    """Say what was found for these rows, to be final where something uses them as they are."""
    record = replace(pending.record, matched=matched, certain=details.pop("certain", False), settled=False, **details)
    record.take(judgement, units)
    name_inputs(record, pending, judgement)
    record.level = judgement.level if matched else "failed"
    row, column = judgement.place
    places = [(row, column)]
    if matched and isinstance(pending.parent, Tracked) and pending.parent.is_free and judgement.level == "failed":
        tied = TiedWeights(own_rows(pending)[units], record.images, pending.parent.images)
        places = tied.blame(row, column) or places
    record.place = name_weights("unit", [(int(units[i]), j) for i, j in places], pending.weight.shape[1])
    if not matched:
        entries = {"units": list(record.units), "inputs": list(record.inputs)}
        record.cause = state("SYM130", **entries, **flattened_before(pending))
    pending.own = record
    if not pending.record.settled:
        pending.record.adopt(record)


def flattened_before(pending: Pending) -> dict[str, list[int]]:
    """The shape of the images that the layer reads flattened while the action still moves them, as a field; or none."""
    if not isinstance(pending.parent, Tracked) or not pending.parent.flattened:
        return {}
    return {"flattened": [int(n) for n in pending.parent.flattened]}


def name_inputs(record: LayerRecord, pending: Pending, judgement: Judgement) -> None:
    """Say in a record which of the layer's inputs carry a wrong weight, and the layer's sizes."""
    outputs, inputs = pending.weight.shape
    record.inputs = tuple(column for column in judgement.columns if column < inputs)
    record.sizes = (inputs, outputs)


def _bounds(
    pending: Pending, rows: Floats, first: Ints, images: list[SignedPermutation]
) -> tuple[Interval | None, float | None]:
    """d_next <= |R' W - W R| m + |W| d + |R' b - b|, with m an interval bound of |u|; and the largest of d_next."""
    interval = pending.parent.interval
    if interval is None:
        return None, None
    W = np.abs(rows[:, :-1])
    size = W @ interval.size + np.abs(rows[:, -1])
    drift = np.zeros(len(rows))
    for generator, image in enumerate(images):
        moved, noise = moved_rows(pending, generator)
        # Row i of the layer goes to row index[i], with its sign.
        gap = np.abs(moved[first][image.index] - image.sign[:, None] * rows)
        gap[gap <= noise] = 0.0
        own_drift = np.empty(len(rows))
        own_drift[image.index] = gap[:, :-1] @ interval.size + gap[:, -1]
        drift = np.maximum(drift, own_drift + W @ interval.drift)
    return Interval(size, drift), float(drift.max(initial=0.0))
