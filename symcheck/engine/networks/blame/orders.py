"""Rows of entries before and after a transformation: the image of each row, and the order of its entries."""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Ints
from symcheck.engine.networks.graph.nodes import codes_of_rows

MOST_ORDERS = 64
"""Maximum number of argument orders considered for the transformed rows of one node."""


def rows_among(rows: Ints, table: Ints) -> Ints:
    """The first position of each row in a table; -1 if the row is absent."""
    codes, known = codes_of_rows(rows, table)
    place = np.full(int(max(codes.max(initial=0), known.max(initial=0))) + 1, -1)
    place[known[::-1]] = np.arange(len(table))[::-1]
    return np.asarray(place[codes])


def partners_alike(images: Ints, values: Ints) -> Ints:
    """The position of each entry's image; the k-th of several equal entries maps to the k-th equal image."""
    if len(np.unique(values)) == len(values):
        return rows_among(images[:, None], values[:, None])
    return rows_among(_numbered(images), _numbered(values))


def _numbered(entries: Ints) -> Ints:
    order = np.argsort(entries, kind="stable")
    ordered = entries[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    within = np.empty(len(entries), dtype=np.int64)
    within[order] = np.arange(len(entries)) - np.maximum.accumulate(np.where(starts, np.arange(len(entries)), 0))
    return np.stack([entries, within], axis=1)


def orders_of_rows(images: Ints, sign: Ints, x: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """The permutation of transformed rows relative to their images: source columns, signs, and the rows.

    A row that contains an entry twice admits several orders; an order shared with other rows is preferred. Zeros, which
    have sign 0 here, are compatible with any sign.
    """
    if not len(images):
        return []
    joint = _joint_order(images, sign, x)
    if joint is not None:
        return [(*joint, np.arange(len(images)))]
    by_x, by_image = np.argsort(x, axis=1, kind="stable"), np.argsort(images, axis=1, kind="stable")
    source = np.empty_like(by_x)
    np.put_along_axis(source, by_x, by_image, 1)
    signs = np.take_along_axis(sign, source, 1)
    ordered = np.sort(images, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) | (sign == 0).any(axis=1)
    left = np.arange(len(images))
    result: list[tuple[Ints, Ints, Ints]] = []
    for chosen in (left[~twice], left[twice]):
        for place in chosen:
            if len(result) > MOST_ORDERS:
                return result
            if left[place] < 0:
                continue
            rest, signs_here = left[left >= 0], np.where(signs[place] == 0, 1, signs[place])
            fits = (images[rest][:, source[place]] == x[rest]).all(axis=1)
            own = sign[rest][:, source[place]]
            fits &= ((own == signs_here) | (own == 0)).all(axis=1)
            result.append((source[place], signs_here, rest[fits]))
            left[rest[fits]] = -1
    return result


def _joint_order(images: Ints, sign: Ints, x: Ints) -> tuple[Ints, Ints] | None:
    """The unique order that fits all rows, and its signs; None if there is none, or more than one."""
    moved, usual = codes_of_rows(images.T.copy(), x.T.copy())
    source = np.argsort(moved, kind="stable")[np.argsort(np.argsort(usual, kind="stable"), kind="stable")]
    if len(np.unique(usual)) < len(usual) or not np.array_equal(moved[source], usual):
        return None
    least, most = sign[:, source].min(axis=0), sign[:, source].max(axis=0)
    if ((least < 0) & (most > 0)).any():
        return None
    return source, np.where(least < 0, -1, 1)
