"""Products of two tensors, summed over an axis: attention, mixing networks, ensembles of layers.

Of two values, every entry of the result is a sum over pairs of entries, so it is known by the collection of pairs of
classes that it adds up, whatever their order. The action must carry collections to collections, and the members of one
must change sign together. With a constant on one side the product is a linear layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.array_types import Floats, Ints
from symcheck.engine.networks.rules_linear import LARGEST, apply_linear, on_last_axis
from symcheck.engine.networks.rules_pointwise import tracked
from symcheck.engine.networks.tracing import Call, NotUnderstoodError, rule
from symcheck.engine.networks.values import SignedPermutation, Tracked, Value
from symcheck.statements.statement import state

MOST_PAIRS = 10_000_000
"""Products of two entries beyond which a product of two values is not followed: some 600 MB of class numbers."""


@rule("matmul", "__matmul__", "mm", "bmm")
def matmul(call: Call, x: Any, y: Any) -> Value:
    """Products over the last two axes, shapes (..., n, d) and (..., d, m); vectors are left out."""
    return _product(call, x, y, 0.0)


@rule("addmm", "baddbmm")
def shifted_matmul(call: Call, shift: Any, x: Any, y: Any, **kwargs: Any) -> Value:
    """Products with a constant shift."""
    if kwargs:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument=", ".join(kwargs)))
    return _product(call, x, y, shift)


def _product(call: Call, x: Any, y: Any, shift: Any) -> Value:
    shifts = call.constant(shift)
    # A fixed matrix on the right is a linear layer.
    if call.value(x) is not None and call.value(y) is None and y.dim() == 2 and shifts.ndim < 2:
        W = np.ascontiguousarray(call.constant(y).T)
        return on_last_axis(call, x, W, np.array(np.broadcast_to(shifts, len(W))), call.owner(y, shift), call.name)
    if min(x.dim(), y.dim()) < 2:
        raise NotUnderstoodError(state("SYM154", operation=call.name, argument="a vector"))
    if call.value(x) is not None and call.value(y) is not None:
        if shifts.any():
            raise NotUnderstoodError(state("SYM154", operation=call.name, argument="two values and a shift"))
        return _of_two_values(call, tracked(call, x), tracked(call, y))
    return _written_out(call, x, y, shifts)


def _pairs(left: Any, right: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """What each entry of `left @ right` adds up, shape (entries, d) each, for arrays (..., n, d) and (..., d, m)."""
    full = (*shape, left.shape[-1])
    # Row i of the left and column j of the right for entry (i, j).
    a = np.broadcast_to(left[..., :, None, :], full).reshape(-1, full[-1])
    b = np.broadcast_to(np.swapaxes(right, -2, -1)[..., None, :, :], full).reshape(-1, full[-1])
    return a, b


def _of_two_values(call: Call, x: Tracked, y: Tracked) -> Tracked:
    if int(np.prod(call.shape)) * x.shape[-1] > MOST_PAIRS:
        raise NotUnderstoodError(state("SYM169", operation=call.name))
    left, right = _pairs(x.cls.reshape(x.shape), y.cls.reshape(y.shape), call.shape)
    # A pair of classes as one number.
    images = [
        (a.index[left] * y.classes + b.index[right], a.sign[left] * b.sign[right])
        for a, b in zip(x.images, y.images, strict=True)
    ]
    return collect_products(call, left * y.classes + right, images)


def collect_products(call: Call, collections: Ints, images: list[tuple[Ints, Ints]]) -> Tracked:
    """A value whose entries are known by collections.

    Args:
        call: the call.
        collections: the members of each entry's collection by number, shape (n, k).
        images: per generator the members of each image, shape (n, k), and their signs, of the same shape.

    Returns:
        The value, of the call's shape.

    Raises:
        NotUnderstoodError: some collection is not carried to a collection, or its members change sign differently.
    """
    # An entry is known by the collection of its products, in any order.
    unique, first, cls = np.unique(np.sort(collections, axis=1), axis=0, return_index=True, return_inverse=True)
    place = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(unique))}
    permutations = []
    for moved, signs in images:
        # All products of an entry have one sign, which is the entry's.
        if not (signs == signs[:, :1]).all():
            raise NotUnderstoodError(state("SYM115", operation=call.name))
        rows = np.ascontiguousarray(np.sort(moved[first], axis=1))
        index = np.array([place.get(row.tobytes(), -1) for row in rows], dtype=np.int64)
        if min(index, default=0) < 0 or len(np.unique(index)) != len(index):
            raise NotUnderstoodError(state("SYM112", operation=call.name))
        permutations.append(SignedPermutation(index, signs[first, 0].astype(np.int64)))
    return Tracked(call.shape, cls.reshape(-1).astype(np.int64), tuple(permutations))


def _written_out(call: Call, x: Any, y: Any, shifts: Floats) -> Value:
    """A value times an array of matrices, or conversely, as one linear layer over all its entries."""
    on_the_left = call.value(x) is not None
    value, constant = (x, y) if on_the_left else (y, x)
    entries, terms = int(np.prod(call.shape)), int(x.shape[-1])
    if entries * max(int(value.numel()), terms) > LARGEST:
        raise NotUnderstoodError(state("SYM169", operation=call.name))
    places = np.arange(int(value.numel())).reshape(tuple(value.shape))
    numbers = call.constant(constant)
    if on_the_left:
        columns, factors = _pairs(places, numbers, call.shape)
    else:
        factors, columns = _pairs(numbers, places, call.shape)
    W = np.zeros((entries, int(value.numel())))
    # A term that reads a place several times adds up its factors.
    np.add.at(W, (np.arange(entries)[:, None], columns), factors)
    bias = np.array(np.broadcast_to(shifts, call.shape)).reshape(-1)
    return apply_linear(call, value, W, bias, call.owner(constant), call.name)
