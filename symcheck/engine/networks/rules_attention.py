"""Attention: tokens, heads and channels may move as long as every query meets the keys and values that belong to it.

A score is a sum over channels of query times key, so it is known by the collection of pairs of classes that it adds up.
An output entry is a mean over keys of values, weighted by scores: it is known by the collection of pairs (score, value)
over its keys, whatever their order. The action must carry collections to collections; scores must not change sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.engine.networks.rules_pointwise import tracked
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import IntArray, SignedPermutation, Tracked, Value

LARGEST = 20_000_000
"""Products of a query and a key entry beyond which attention is not followed."""
LEFT_OUT = -1
"""Stands for a key that a query does not see."""


@rule("scaled_dot_product_attention")
def attention(
    call: Call,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Value:
    """softmax(q k^T) v over the last two axes, shapes (..., queries, d), (..., keys, d), (..., keys, e)."""
    if attn_mask is not None or dropout_p or enable_gqa:
        raise NotUnderstoodError("attention with a mask, dropout or grouped heads is not understood")
    q, k, v = (tracked(call, item) for item in (query, key, value))
    if q.shape[:-2] != k.shape[:-2] or q.shape[:-2] != v.shape[:-2]:
        raise NotUnderstoodError("attention over axes that are broadcast is not understood")
    if len(q.cls) * k.shape[-2] > LARGEST:
        raise NotUnderstoodError("attention over too many tokens to follow")
    scores = _scores(q, k)
    seen = np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool)) if is_causal else None
    return _outputs(call.shape, scores, v, seen)


def _scores(q: Tracked, k: Tracked) -> Tracked:
    """Queries times keys, shape (..., queries, keys)."""
    shape = (*q.shape[:-1], k.shape[-2])

    def pairs(of_query: IntArray, of_key: IntArray) -> tuple[IntArray, IntArray]:
        left, right = of_query.reshape(q.shape)[..., :, None, :], of_key.reshape(k.shape)[..., None, :, :]
        full = (*shape, q.shape[-1])
        return (
            np.broadcast_to(left, full).reshape(-1, q.shape[-1]),
            np.broadcast_to(right, full).reshape(-1, q.shape[-1]),
        )

    left, right = pairs(q.cls, k.cls)
    collections, images = left * k.classes + right, []
    for a, b in zip(q.images, k.images, strict=True):
        signs = a.sign[left] * b.sign[right]
        images.append((a.index[left] * k.classes + b.index[right], signs))
    return _collected(shape, collections, images, "queries and keys")


def _outputs(shape: tuple[int, ...], scores: Tracked, v: Tracked, seen: Any) -> Tracked:
    """The weighted means, shape (..., queries, e)."""
    if any((image.sign < 0).any() for image in scores.images):
        raise NotUnderstoodError("attention whose scores the action negates")
    rows = (*shape, v.shape[-2])

    def spread(of_score: IntArray, of_value: IntArray) -> tuple[IntArray, IntArray]:
        left = of_score.reshape(scores.shape)[..., :, None, :]
        right = np.swapaxes(of_value.reshape(v.shape), -2, -1)[..., None, :, :]
        return np.broadcast_to(left, rows).reshape(-1, rows[-1]), np.broadcast_to(right, rows).reshape(-1, rows[-1])

    left, right = spread(scores.cls, v.cls)
    hidden = None if seen is None else ~np.broadcast_to(seen[:, None, :], rows).reshape(-1, rows[-1])

    def collection(of_score: IntArray, of_value: IntArray) -> IntArray:
        found = of_score * v.classes + of_value
        return found if hidden is None else np.where(hidden, LEFT_OUT, found)

    images = []
    for a, b in zip(scores.images, v.images, strict=True):
        signs = b.sign[right] if hidden is None else np.where(hidden, b.sign[right[:, :1]], b.sign[right])
        images.append((collection(a.index[left], b.index[right]), signs))
    return _collected(shape, collection(left, right), images, "scores and values")


def _collected(
    shape: tuple[int, ...], collections: IntArray, images: list[tuple[IntArray, IntArray]], what: str
) -> Tracked:
    """A value whose entries are known by collections, shape (n, k), with the collections that generators make of them.

    Raises:
        NotUnderstoodError: some collection is not carried to a collection, or its members change sign differently.
    """
    unique, first, cls = np.unique(np.sort(collections, axis=1), axis=0, return_index=True, return_inverse=True)
    cls = cls.reshape(-1).astype(np.int64)
    place = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(unique))}
    found = []
    for moved, signs in images:
        if not (signs == signs[:, :1]).all():
            raise NotUnderstoodError(f"attention over {what} that the action negates differently")
        rows = np.ascontiguousarray(np.sort(moved[first], axis=1))
        index = np.array([place.get(row.tobytes(), -1) for row in rows], dtype=np.int64)
        if min(index) < 0 or len(np.unique(index)) != len(index):
            raise NotUnderstoodError(f"attention over {what} that the action does not carry into each other")
        found.append(SignedPermutation(index, signs[first, 0].astype(np.int64)))
    return Tracked(shape, cls, tuple(found))
