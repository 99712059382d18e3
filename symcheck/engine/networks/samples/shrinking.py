"""Shrinks a failing input: sets blocks to zero, then rounds entries to small integers, all in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats

Fails: TypeAlias = Callable[[Floats], npt.NDArray[np.bool_]]
# Number of candidates per pass: the maximum, and that of the first pass.
BATCH = 256
SMALLEST_BATCH = 4
# Rounds of zeroing: each removes something or makes the blocks smaller.
ROUNDS = 40


def shrink(x: Floats, fails: Fails) -> Floats:
    """The simplest input found on which the claim still fails.

    Args:
        x: a failing input, shape (*shape,).
        fails: maps stacked inputs, shape (n, *shape), to whether each fails, shape (n,).

    Returns:
        A failing input with few non-zero entries, integers if possible; x itself if nothing simpler fails.

    Example:
        >>> shrink(np.array([3.7, -0.2, 8.1]), lambda batch: batch[:, 2] > 0.5)
        array([0., 0., 1.])

    Cost: some 40 batches of at most 256 inputs.
    """
    flat = _first_plain(x.reshape(-1), x.shape, fails)
    flat = _zero_blocks(flat, x.shape, fails)
    return _snap_entries(flat, x.shape, fails).reshape(x.shape)


def _try(candidates: list[Floats], shape: tuple[int, ...], fails: Fails) -> Floats | None:
    """The first candidate that fails; batches grow, because early candidates are the most likely."""
    start, size = 0, SMALLEST_BATCH
    while start < len(candidates):
        batch = np.stack(candidates[start : start + size])
        failing = np.flatnonzero(fails(batch.reshape(len(batch), *shape)))
        if len(failing):
            return np.asarray(batch[failing[0]])
        # Small batches first, since one of the first candidates usually fails.
        start, size = start + size, min(4 * size, BATCH)
    return None


def _first_plain(flat: Floats, shape: tuple[int, ...], fails: Fails) -> Floats:
    """The simplest candidates: unit vectors at the largest entries, a constant vector, and the rounded input."""
    order = np.argsort(-np.abs(flat))[:BATCH]
    units = []
    for size in (1.0, 2.0, 10.0):
        # Use the largest entries: a fault of one weight often shows on one of them.
        for place in order[: BATCH // 4]:
            for sign in (1.0, -1.0):
                unit = np.zeros_like(flat)
                unit[place] = size * sign
                units.append(unit)
    failing = _try([*units, np.ones_like(flat)], shape, fails)
    if failing is not None:
        return failing
    rounded = _try([np.sign(flat), np.round(flat), np.round(flat, 1)], shape, fails)
    return flat if rounded is None else rounded


def _zero_blocks(flat: Floats, shape: tuple[int, ...], fails: Fails) -> Floats:
    """Set ever smaller blocks of the remaining non-zero entries to zero, keeping at least one entry."""
    blocks = 2
    for _ in range(ROUNDS):
        support = np.flatnonzero(flat)
        if len(support) <= 1:
            break
        blocks = min(blocks, len(support))
        candidates = []
        for part in np.array_split(support, blocks):
            if len(part) < len(support):
                # Only one block, then everything except this block, as in delta debugging.
                for keep in (True, False):
                    candidate = flat.copy()
                    candidate[np.setdiff1d(support, part) if keep else part] = 0.0
                    candidates.append(candidate)
        failing = _try(candidates, shape, fails)
        if failing is not None:
            # Something was removed: large blocks are tried again.
            flat, blocks = failing, 2
        elif blocks == len(support):
            break
        else:
            blocks = min(2 * blocks, len(support))
    return flat


def _snap_entries(flat: Floats, shape: tuple[int, ...], fails: Fails) -> Floats:
    """Replace entries, largest first, by the simplest number for which the claim still fails."""
    for place in np.argsort(-np.abs(flat))[:BATCH]:
        value = flat[place]
        if value == 0.0 or value in (1.0, -1.0):
            continue
        plain = [np.sign(value), 0.5 * np.sign(value), 2.0 * np.sign(value), np.round(value), np.round(value, 1)]
        candidates = []
        for number in plain:
            # 0 is handled by the zeroing step.
            if number not in (0.0, value):
                candidate = flat.copy()
                candidate[place] = number
                candidates.append(candidate)
        failing = _try(candidates, shape, fails) if candidates else None
        flat = flat if failing is None else failing
    return flat
