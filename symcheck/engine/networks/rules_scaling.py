"""Scales and shifts by constants, entry by entry: the constants must be carried along by the action.

Batch normalisation with statistics that differ between images of one channel does not; neither does a PReLU whose
slopes differ between channels that the action exchanges.
"""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Floats
from symcheck.engine.networks.matching import CLOSE, judge
from symcheck.engine.networks.tracing import Call, NotUnderstoodError
from symcheck.engine.networks.values import (
    Interval,
    Keyed,
    LayerRecord,
    SignedPermutation,
    Tracked,
    first_places,
    regroup,
)
from symcheck.statements.statement import state


def scaled(call: Call, value: Tracked, scale: Floats, shift: Floats, name: str, kind: str) -> Tracked:
    """Scale * v + shift entry by entry, with a record of how far the constants are from being carried along.

    Args:
        call: the call.
        value: what is scaled.
        scale: one number per entry, shape (n,).
        shift: the same.
        name: of the layer.
        kind: of the layer.

    Returns:
        The value with the action of its input; classes split where their constants differ.
    """
    shape = value.shape
    # One constant for each class: classes stay what they are.
    if value.is_free or _kinds(value, scale, shift) == value.classes:
        # Constants by class.
        first = first_places(value.cls, value.classes)
        a, b = scale[first], shift[first]
        images = (
            tuple(_action_after_scale(image, a, b) for image in value.images) if kind == "constant" else value.images
        )
        _record_scale(call, Tracked(shape, value.cls, images), value.images, a, b, name, kind)
        interval = None
        if value.interval is not None:
            size = np.abs(a) * value.interval.size + np.abs(b)
            gaps = [_scale_gap(*pair, a, b, value.interval.size) for pair in zip(value.images, images, strict=True)]
            interval = Interval(size, np.abs(a) * value.interval.drift + np.max(gaps, axis=0))
        return Tracked(shape, value.cls, images, interval=interval)
    # Several constants in a class: it splits, and the parts must be carried along.
    keyed = Keyed(
        [value.cls, scale, shift],
        [
            ([image.index[value.cls], scale, shift * image.sign[value.cls]], image.sign[value.cls])
            for image in value.images
        ],
    )
    groups = regroup(keyed)
    if groups is not None:
        return Tracked(shape, *groups)
    apart = _separate_entries(value)
    if apart is None or not _nearly_carried(apart, scale):
        raise NotUnderstoodError(state("SYM116", kind=kind, layer=name))
    return scaled(call, apart, scale, shift, name, kind)


def _separate_entries(value: Tracked) -> Tracked | None:
    """Every entry as a class of its own: the k-th of a class goes to the k-th of its image, as in broadcast tensors.

    None where a class and its image have not the same number of entries.
    """
    counts = np.bincount(value.cls, minlength=value.classes)
    # An entry of a class must have a partner in the class's image.
    if any((counts[image.index] != counts).any() for image in value.images):
        return None
    start = np.cumsum(counts) - counts
    order = np.argsort(value.cls, kind="stable")
    within = np.empty(len(value.cls), dtype=np.int64)
    # The number of each entry within its class.
    within[order] = np.arange(len(value.cls)) - start[value.cls[order]]
    of_class = value.cls[order]
    images = tuple(
        SignedPermutation(start[image.index[of_class]] + within[order], image.sign[of_class]) for image in value.images
    )
    return Tracked(value.shape, start[value.cls] + within, images)


def _nearly_carried(value: Tracked, scale: Floats) -> bool:
    """Whether the scale of most entries is about that of their images: only then is another one a wrong constant."""
    a = scale[first_places(value.cls, value.classes)]
    off = [np.abs(np.abs(a[image.index]) - np.abs(a)) > CLOSE * np.abs(a).max(initial=0.0) for image in value.images]
    return bool(np.mean(off) < 0.5)


def _action_after_scale(image: SignedPermutation, a: Floats, b: Floats) -> SignedPermutation:
    """The action after a scale and shift: where the image of a scale is its negative, as of coordinates under a flip.

    What is zero everywhere (the middle of such coordinates) has no sign of its own and takes that of the others.
    """
    # Whether a[image] is nearer to -a than to a.
    flips = np.where(np.abs(a[image.index] + a) < np.abs(a[image.index] - a), -1, 1)
    zero = (a == 0) & (b == 0) & (a[image.index] == 0) & (b[image.index] == 0)
    if not zero.all() and (flips[~zero] == -1).all():
        flips[zero] = -1
    return SignedPermutation(image.index, image.sign * flips)


def _kinds(value: Tracked, scale: Floats, shift: Floats) -> int:
    # Distinct (class, scale, shift).
    """How many classes there are when entries with other constants count as others."""
    return len(np.unique(np.stack([value.cls.astype(np.float64), scale, shift], axis=1), axis=0))


def _scale_gap(before: SignedPermutation, image: SignedPermutation, a: Floats, b: Floats, size: Floats) -> Floats:
    gap = np.empty_like(a)
    # |a[g i] - sign a[i]| |u| + |b[g i] - sign b[i]|: by how much the constants break the action.
    off = np.abs(a[image.index] - image.sign * before.sign * a)
    gap[image.index] = off * size + np.abs(b[image.index] - image.sign * b)
    return gap


def _record_scale(
    call: Call,
    value: Tracked,
    before: tuple[SignedPermutation, ...],
    a: Floats,
    b: Floats,
    name: str,
    kind: str,
) -> None:
    """Record how far a scale a and shift b are from carrying the action `before` on to that of `value`."""
    worst = None
    for earlier, image in zip(before, value.images, strict=True):
        left = np.stack([a[image.index], b[image.index]], axis=1)
        right = np.stack([image.sign * earlier.sign * a, image.sign * b], axis=1)
        judgement = judge(left, right)
        if worst is None or judgement.rank > worst.rank:
            worst = judgement
    if worst is None or (kind == "constant" and worst.level == "exact"):
        return
    constant_name = "scale" if worst.place[1] == 0 else "shift"
    record = LayerRecord(name, kind, representation=value.text())
    record.take(worst)
    record.place = f"{constant_name} of class {worst.place[0]}"
    if worst.level == "failed" and kind in ("batch_norm", "instance_norm"):
        record.cause = state("SYM110", kind=kind, constant=constant_name, units=list(record.units))
    elif worst.level == "failed":
        record.cause = state("SYM111", kind=kind, constant=constant_name, units=list(record.units))
    call.record(record)
