"""The coordinates of outcomes that are compared as distributions, and their form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from symcheck.engine.environments.cases.pairs import Comparison
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.features import WIDEST_PRODUCTS, distinct_columns
from symcheck.engine.regression import told_apart
from symcheck.spaces.coordinates import scalar_coordinate

_WIDEST = 512  # maximum number of tested coordinates; of more (images), every second one, third one, ... is tested


def observed_part(bench: Workbench, comparison: Comparison) -> Comparison:
    """The compared quantity: internal states if known, otherwise observations; angles as cosine and sine."""
    return indicators(on_columns(comparison, compared_columns(bench, comparison)))


def compared_columns(bench: Workbench, comparison: Comparison) -> list[int]:
    """The coordinates that are compared; for wide observations, those that vary and differ, or a selection of them."""
    total = comparison.coordinates.dim
    shown_dim = bench.pairs.stepper.codec.coordinates.dim if comparison.part == "transition" else total
    columns, inner = list(range(min(shown_dim, total))), list(range(min(shown_dim, total), total))
    if len(columns) > WIDEST_PRODUCTS:
        columns = distinct_columns(np.concatenate([comparison.expected, comparison.actual]), columns)
    if len(columns) > _WIDEST:
        columns = columns[:: -(-len(columns) // _WIDEST)]
    elif (within := bench.pairs.placement.inner) is not None and (
        bench.pairs.placement.kind == "observation" or within.shown is not None
    ):
        inner = []  # the same numbers with more digits
    return [*inner, *columns]


def on_columns(comparison: Comparison, columns: Sequence[int]) -> Comparison:
    """A comparison restricted to some coordinates, with angles as cosine and sine."""
    old, picked = comparison.coordinates, list(columns)
    some = dataclasses.replace(
        old,
        names=tuple(old.names[j] for j in picked),
        epsilon=old.epsilon[picked],
        period=old.period[picked],
        low=old.low[picked],
        high=old.high[picked],
    )
    coordinates, (expected, actual) = some.unrolled([comparison.expected[:, picked], comparison.actual[:, picked]])
    return Comparison(comparison.part, coordinates, expected, actual)


def indicators(comparison: Comparison) -> Comparison:
    """A comparison extended by indicators for the values of whole-number coordinates that take few values."""
    half = len(comparison.expected)
    both = np.concatenate([comparison.expected, comparison.actual])
    old = comparison.coordinates
    columns, names = told_apart(both, list(old.names), old.epsilon == 0)
    if len(names) == old.dim:
        return comparison
    more = scalar_coordinate("", epsilon=0.0)
    for name in names[old.dim :]:
        old = old.join(dataclasses.replace(more, names=(name,)))
    return Comparison(comparison.part, old, columns[:half], columns[half:])
