"""Checks that the blocks of a mirror function are the elements of a group, and names the wrong block.

Block i is a map B_i of pairs (s, a). For the listed elements g_0 = e, g_1, ... the claim is B_i(B_j(x)) = B_k(x) with
g_k = g_i g_j, for every i and j; with state-dependent actions that is K_gh^s = K_g^{hs} K_h^s. A call on the images of
block j gives the composition of every block with block j.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.errors import RepresentationError, SpecError
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.mirror_functions.batched_function import WHERE, BatchedFunction, close, columns_where

_ORDER_TRIED = 64  # largest order for which other orders of the blocks are searched for: |G|^3 comparisons
_ASSIGNMENTS = 20_000


@dataclass(frozen=True)
class Samples:
    """The random pairs on which functions are tested.

    Attributes:
        observations: shape (n, observation columns).
        actions: shape (n, action columns).
    """

    observations: Floats
    actions: Floats

    def side_by_side(self) -> Floats:
        """Observations and actions joined, shape (n, columns)."""
        return np.concatenate([self.observations, self.actions], axis=1)


def joint_images(function: BatchedFunction, samples: Samples) -> Floats:
    """The images of pairs under every block, observations and actions joined, shape (|G|, n, columns)."""
    observed, acted = function.blocks(samples.observations, samples.actions)
    if observed is None or acted is None:  # pragma: no cover  (blocks returns the halves that it was given)
        raise SpecError("expected observations and actions.", where=WHERE)
    return np.concatenate([observed, acted], axis=2)


def words(function: BatchedFunction, mask: Bools) -> str:
    """Describe columns of the joined table in words."""
    # Columns of observations come first in the joined table.
    split = function.observation.width
    halves = (function.observation.words(mask[:split]), function.action.words(mask[split:]))
    return " and ".join(half for half in halves if half)


def check_identity_first(function: BatchedFunction, samples: Samples) -> None:
    """Check that block 0 returns its input.

    Raises:
        RepresentationError: the identity does not come first; the message names the identity block, the columns that
            differ, or an interleaved order.
    """
    images, given = joint_images(function, samples), samples.side_by_side()
    if close(images[0], given).all():
        return
    n, width = given.shape
    # The interleaved layout (repeat_interleave): all images of sample 0, then those of sample 1.
    interleaved = images.reshape(n, function.order, width)[:, 0]
    if close(interleaved, given).all():
        raise RepresentationError(
            "the images of each sample are next to each other. They must be returned in blocks: the "
            "whole batch under one element, then under the next.",
            where=WHERE,
            remedy="Concatenate whole batches (torch.cat, repeat), not rows (repeat_interleave, stack and flatten).",
        )
    # If another block is the identity, the list is in the wrong order.
    where_identity = [k for k in range(1, function.order) if close(images[k], given).all()]
    differs = words(function, columns_where(~close(images[0], given)))
    if where_identity:
        raise RepresentationError(
            f"the identity must come first: block {where_identity[0]} is the identity, but block 0 changes {differs}.",
            where=WHERE,
            remedy="Put the batch itself first, then the images in the order of group.elements().",
        )
    raise RepresentationError(
        f"the identity must come first: block 0 changes {differs}, and no other block is the identity.",
        where=WHERE,
        remedy="Put the batch itself first, unchanged.",
    )


def check_something_moves(function: BatchedFunction, samples: Samples) -> None:
    """Check that some block changes its input if the group has more than one element.

    Raises:
        RepresentationError: every block returns its input.
    """
    images = joint_images(function, samples)
    # The identity in every block satisfies every relation, but makes no claim.
    if function.order > 1 and close(images, images[:1]).all():
        raise RepresentationError(
            f"all {function.order} blocks contain unchanged observations and actions, so the function "
            "describes no symmetry.",
            where=WHERE,
            remedy="Check that the images are written into the blocks, and that this is the right function.",
        )


def check_agreement(function: BatchedFunction, samples: Samples, group: Group, elements: Sequence[Element]) -> None:
    """Check that block k is the k-th listed element: blocks must compose as the group elements do.

    Args:
        function: the mirror function.
        samples: the pairs on which the function is tested.
        group: the group.
        elements: its elements in the order of the blocks.

    Raises:
        RepresentationError: the blocks are not those of the group; the message names the misplaced blocks, or the
            failing composition and its columns.

    Cost: |G|^2 n rows of the function; for large groups only compositions with generators, which suffice.
    """
    size = len(elements)
    images = joint_images(function, samples)
    position = {g: k for k, g in enumerate(elements)}
    # All pairs for small groups; for larger ones, products with generators suffice.
    inner = range(size) if size <= _ORDER_TRIED else sorted({position[g] for g in group.generators})
    failing: dict[tuple[int, int, int], Bools] = {}
    composed: dict[int, Floats] = {}
    # B_i after B_j for all i in one call: the images under block j are the new samples.
    for j in inner:
        composed[j] = _apply_blocks(function, images[j], samples)
        for i in range(size):
            # B_i(B_j(x)) must be B_k(x) with g_k = g_i g_j.
            k = position[elements[i] * elements[j]]
            equal = close(composed[j][i], images[k])
            if not equal.all():
                failing[i, j, k] = columns_where(~equal)
    if not failing:
        return
    # Another order of the blocks can be searched for only if the table is complete.
    table = _multiplication_table(composed, images) if size <= _ORDER_TRIED else None
    if table is not None and (table >= 0).all():
        _refuse_order(group, elements, table)
    raise _disagreement(function, group, elements, failing, composed, images, table)


def _apply_blocks(function: BatchedFunction, pairs: Floats, samples: Samples) -> Floats:
    split = samples.observations.shape[1]
    return joint_images(function, Samples(pairs[:, :split], pairs[:, split:]))


def _multiplication_table(composed: dict[int, Floats], images: Floats) -> npt.NDArray[np.int64]:
    """Entry (i, j): the block that equals block i after block j; -1 if there is none, -2 if there are several."""
    size = len(images)
    products = np.full((size, size), -1)
    # |G|^3 comparisons, hence the limit on the order.
    for i, j in itertools.product(range(size), range(size)):
        same = [k for k in range(size) if close(composed[j][i], images[k]).all()]
        products[i, j] = same[0] if len(same) == 1 else -1 if not same else -2
    return products


def _refuse_order(group: Group, elements: Sequence[Element], table: npt.NDArray[np.int64]) -> None:
    """Raise with the actual order of the blocks, if they form the group in another order."""
    orders = [[sigma[g] for g in elements] for sigma in _assignments(group, table)]
    if not orders:
        return
    # The most likely intended order differs from the listed one in the fewest places.
    nearest = max(orders, key=lambda order: sum(k == b for k, b in enumerate(order)))
    held = dict(zip(nearest, elements, strict=True))
    moved = [
        f"block {k} is {group.element_name(held[k])} where {group.element_name(g)} was expected"
        for k, g in enumerate(elements)
        if held[k] != g
    ]
    expected = ", ".join(group.element_name(g) for g in elements)
    raise RepresentationError(
        f"the blocks are the elements of {group.name} in another order: {'; '.join(moved)}.",
        where=WHERE,
        remedy=f"Stack them in the order {expected}, or list their order: elements=[...].",
    )


def _assignments(group: Group, table: npt.NDArray[np.int64]) -> Iterator[dict[Element, int]]:
    """Every assignment of elements to blocks under which the blocks multiply like the group."""
    letters = range(len(group.generators))
    choices = itertools.product(range(len(table)), repeat=len(group.generators))
    for blocks in itertools.islice(choices, _ASSIGNMENTS):
        sigma = {}
        for g in group.elements():
            block = 0
            for letter in reversed(group.word(g)):
                block = int(table[blocks[letter], block])
            sigma[g] = block
        if len(set(sigma.values())) != len(table):
            continue
        if all(sigma[g * group.generators[i]] == table[sigma[g], blocks[i]] for g in sigma for i in letters):
            yield sigma


def _disagreement(
    function: BatchedFunction,
    group: Group,
    elements: Sequence[Element],
    failing: dict[tuple[int, int, int], Bools],
    composed: dict[int, Floats],
    images: Floats,
    table: npt.NDArray[np.int64] | None,
) -> RepresentationError:
    shared = set.intersection(*(set(triple) for triple in failing)) - {0}
    suspect = shared.pop() if len(shared) == 1 else None
    i, j, k = min(failing, key=lambda t: (t[2] != suspect, t[2] == 0, max(t[0], t[1]), t))
    names = [f"block {b} ({group.element_name(elements[b])})" for b in (i, j, k)]
    largest = float(np.abs(composed[j][i] - images[k]).max())
    head = (
        f"block {k} differs from block {i} composed with block {j} in {words(function, failing[i, j, k])} "
        f"(by up to {largest:.3g}); {group.name} requires that {names[0]} after {names[1]} is {names[2]}"
    )
    total = len(composed) * len(images)
    tail = f"{len(failing)} of {total} compositions disagree"
    if suspect is not None and len(failing) > 1 and len(images) > 2:
        tail += f", all of them with block {suspect}"
    if table is not None and (strays := int((table == -1).sum())):
        tail += f"; {strays} are not among the blocks, so the blocks are not closed"
    elif table is not None and (table >= 0).all():
        tail += "; the blocks are closed but form another group"
    return RepresentationError(
        f"{head}. {tail}.",
        where=WHERE,
        remedy="Check the signs and the order of these columns in that block, or name the group that the blocks form.",
    )
