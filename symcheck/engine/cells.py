"""Comparison of outcomes in cells of (s, a): every single pair if few are distinct, otherwise boxes with many steps.

A difference in one cell of a hundred hardly changes any total over all steps, and no polynomial in (s, a) describes it.
Cells are formed from both sides together, so swaps of whole episodes do not change them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.clock import raise_if_overdue
from symcheck.spaces.coordinates import finite

_FEWEST_VISITS = 8  # mean number of steps in a cell: with fewer, no difference in one cell could reach the level
_BOX_SHARE, _FEWEST_IN_BOX = 1 / 256, 64  # of the steps, in a box
_WIDEST_BOXES = 16  # number of coordinates that boxes divide
_MOST_FEATURES = 4000  # that differ in some episode
_TIE = 64  # in rounding units: the image of a repeated number may be a neighbouring float
_EXPLAINED = 1e-9  # in normal scores: rounding of a mean of equal scores
_MOST_NAMED = 4  # number of coordinates that name a cell


class Cells(NamedTuple):
    """Cells of (s, a).

    Attributes:
        label: the number of each step's cell, shape (steps,).
        single: whether every cell is one (s, a).
        names: where each cell is, to complete "mean of the reward ...".
    """

    label: npt.NDArray[np.intp]
    single: bool
    names: list[str]


def cells_of(states: Floats, actions: Floats, names: list[str], epsilon: Floats) -> Cells:
    """Divide steps into cells of (s, a).

    Args:
        states: observations before the steps, shape (steps, dim).
        actions: flat actions, shape (steps, some).
        names: the names of the coordinates of both.
        epsilon: rounding unit of each coordinate; 0 for integers.

    Returns:
        The cells: every (s, a) if each occurs eight times on average, otherwise boxes of at least 64 steps.

    Example:
        >>> states, actions = np.repeat([[0.0], [1.0]], 20, axis=0), np.tile([[0.0], [1.0]], (20, 1))
        >>> cells_of(states, actions, ["s", "a"], np.zeros(2)).names
        ['where s = 0 and a = 0', 'where s = 0 and a = 1', 'where s = 1 and a = 0', 'where s = 1 and a = 1']
    """
    columns, dim = np.concatenate([states, actions], axis=1), states.shape[1]
    first, label = _number_rows(columns, epsilon)
    if len(first) * _FEWEST_VISITS <= len(label):
        otherwise = f"one of {len(first)} cells of (s, a)"
        return Cells(label, True, [f"where {_join(columns[i], names, otherwise)}" for i in first])
    boxes = _boxes(finite(columns), dim)
    count = int(boxes.max()) + 1
    return Cells(boxes, False, [f"in one of {count} boxes of (s, a)"] * count)


def _number_rows(columns: Floats, epsilon: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """A row of each kind, and the number of every row's kind."""
    numbered = np.stack([_number_values(*each) for each in zip(columns.T, epsilon, strict=True)], axis=1)
    rows = np.ascontiguousarray(numbered).view(np.dtype((np.void, numbered.dtype.itemsize * numbered.shape[1])))
    _, first, label = np.unique(rows.ravel(), return_index=True, return_inverse=True)
    return first, label.ravel()


def _number_values(column: Floats, epsilon: float) -> npt.NDArray[np.intp]:
    """The place of every value among the distinct ones; values that differ by rounding have one place."""
    top = 1 + np.abs(finite(column)).max(initial=0.0)
    numbers = np.nan_to_num(column, nan=2 * top, posinf=3 * top, neginf=-3 * top)
    distinct, place = np.unique(numbers, return_inverse=True)
    sizes = np.abs(distinct)
    apart = np.diff(distinct) > _TIE * epsilon * np.maximum(sizes[1:], np.median(sizes))
    return np.asarray(np.concatenate([[0], np.cumsum(apart)])[place.ravel()], dtype=np.intp)


def _join(values: Floats, names: list[str], otherwise: str) -> str:
    if len(values) > _MOST_NAMED:
        return otherwise
    sides = [f"{name} = {value:.4g}" for name, value in zip(names, values, strict=True)]
    return " and ".join([", ".join(sides[:-1])] * (len(sides) > 1) + sides[-1:])


def counts_by_cell(
    outcomes: Floats, names: list[str], epsilon: Floats, cells: Cells, starts: npt.NDArray[np.intp]
) -> tuple[Floats, list[str]]:
    """How often each outcome of a single (s, a) occurs in each episode, minus its frequency in all of them.

    Integers may be mere labels, so a mean may not reveal that one next state replaces another.

    Args:
        outcomes: the outcomes of the steps, shape (steps, dim).
        names: the names of the coordinates of outcomes.
        epsilon: rounding unit of each coordinate; 0 for integers.
        cells: the cells of the steps; boxes have no columns.
        starts: row at which each episode begins.

    Returns:
        Shape (episodes, some), about 4,000 columns at most, and their names.

    Example:
        >>> cells = Cells(np.zeros(4, int), True, ["where s = 0"])
        >>> following = np.array([[1.0], [1.0], [1.0], [2.0]])
        >>> counts, names = counts_by_cell(following, ["next s"], np.zeros(1), cells, np.arange(4))
        >>> counts[:, 0].tolist(), names
        ([0.25, 0.25, 0.25, -0.75], ['frequency of next s = 1 where s = 0', 'frequency of next s = 2 where s = 0'])
    """
    if not cells.single:
        return np.zeros((len(starts), 0)), []
    first, outcome = _number_rows(outcomes, epsilon)
    triples, place, often = np.unique(cells.label * len(first) + outcome, return_inverse=True, return_counts=True)
    cell, outcome = np.divmod(triples, len(first))
    visits = np.bincount(cells.label)[cell]
    open_ = np.flatnonzero(often < visits)
    if len(open_) > _MOST_FEATURES:
        return np.zeros((len(starts), 0)), []
    episode = np.repeat(np.arange(len(starts)), np.diff([*starts, len(cells.label)]))
    by_cell, seen = _count(episode, cells.label), _count(episode, place.ravel())
    counts = seen[:, open_] - often[open_] / visits[open_] * by_cell[:, cell[open_]]
    shown = [_join(outcomes[i], names, "one outcome") for i in first]
    described = [f"frequency of {shown[outcome[i]]} {cells.names[cell[i]]}" for i in open_]
    return counts, described


def _count(episode: npt.NDArray[np.intp], label: npt.NDArray[np.intp]) -> Floats:
    """How often each label occurs in each episode, shape (episodes, labels)."""
    shape = int(episode[-1]) + 1, int(label.max()) + 1
    return np.bincount(episode * shape[1] + label, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _boxes(values: Floats, dim: int) -> npt.NDArray[np.intp]:
    """Halve boxes at the median of the coordinate that varies most in them, until they hold few steps."""
    # Actions first, because every action may have its own fault.
    columns = np.concatenate([values[:, dim:], values[:, :dim]], axis=1)[:, :_WIDEST_BOXES]
    ranks = np.argsort(np.argsort(columns, axis=0, kind="stable"), axis=0) / len(columns)
    least = max(_FEWEST_IN_BOX, int(_BOX_SHARE * len(values)))
    label = np.zeros(len(values), np.intp)
    waiting, count = [np.arange(len(values))], 0
    while waiting:
        inside = waiting.pop()
        spread = np.ptp(ranks[inside], axis=0) * (np.ptp(columns[inside], axis=0) > 0)
        column = columns[inside, int(np.argmax(spread))]
        middle = np.median(column)
        upper = column > middle if (column > middle).any() else column >= middle
        if len(inside) >= 2 * least and least <= upper.sum() <= len(inside) - least:
            waiting += [inside[upper], inside[~upper]]
        else:
            label[inside], count = count, count + 1
    return label


def totals_by_cell(
    scores: Floats, names: list[str], cells: Cells, starts: npt.NDArray[np.intp]
) -> tuple[Floats, list[str]]:
    """Totals over each episode of the difference from the mean of a cell, for every cell in which outcomes differ.

    Args:
        scores: normal scores of the outcomes, shape (steps, targets).
        names: the names of the targets.
        cells: the cells of the steps.
        starts: row at which each episode begins.

    Returns:
        Shape (episodes, some), about 4,000 columns at most, and their names.

    Example:
        >>> cells = Cells(np.array([0, 0, 1, 1]), True, ["here", "there"])
        >>> totals_by_cell(np.array([[1.0], [3.0], [5.0], [5.0]]), ["x"], cells, np.array([0, 1, 2, 3]))[1]
        ['mean of x here']
    """
    label, episodes, count = cells.label, len(starts), len(cells.names)
    steps = np.bincount(label, minlength=count)
    lengths = np.diff([*starts, len(label)])
    place = np.repeat(np.arange(episodes), lengths) * count + label
    columns: list[Floats] = []
    described: list[str] = []
    for name, score in zip(names, scores.T, strict=True):
        raise_if_overdue()
        rest = score - (np.bincount(label, score, count) / steps)[label]
        rest[np.abs(rest) < _EXPLAINED] = 0.0
        live = np.flatnonzero(np.bincount(label, rest != 0, count))
        if len(described) + len(live) > _MOST_FEATURES:
            break
        by_cell = np.bincount(place, rest, episodes * count).astype(np.float64)
        columns.append(by_cell.reshape(episodes, count)[:, live])
        described += [f"mean of {name} {cells.names[i]}" for i in live]
    return np.concatenate([np.zeros((episodes, 0)), *columns], axis=1), described
