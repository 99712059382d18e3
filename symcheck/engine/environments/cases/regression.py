"""The one regression that takes out what both members of a pair share; every fit is pooled, so that swaps keep it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Floats
from symcheck.engine.environments.cases.workbench import Workbench
from symcheck.engine.scales import FLOAT64_EPSILON, bulk
from symcheck.spaces.coordinates import finite

_MOST_VALUES = 64  # of a whole-number coordinate, told apart one by one
_RIDGE = 1e-9  # of the largest singular value squared: covariates may depend on each other


def action_columns(bench: Workbench, actions: Sequence[object]) -> tuple[Floats, list[str]]:
    """Actions as columns: one indicator per discrete action, else the flattened vector."""
    codec = bench.pairs.stepper.action_codec
    flat = codec.flatten_batch(actions)
    n = getattr(codec.space, "n", None)
    if flat.shape[1] == 1 and isinstance(n, int | np.integer) and n <= 18:
        start = int(getattr(codec.space, "start", 0))
        indicators = (flat == np.arange(start, start + int(n))[None, :]).astype(np.float64)
        return indicators[:, 1:], [f"action {start + i}" for i in range(1, int(n))]
    return flat, list(codec.coordinates.names)


def standardise(columns: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1; constants, NaN and values that are far off become 0."""
    numbers = bulk(columns, np.full(columns.shape[1], FLOAT64_EPSILON)).filled
    spread = numbers.std(axis=0)
    return np.asarray((numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0), dtype=np.float64)


def polynomial(covariates: Floats) -> Floats:
    """Constant, linear and (for up to 16 covariates) quadratic terms."""
    n, k = covariates.shape
    columns = [np.ones((n, 1)), covariates]
    if k <= 16:
        columns += [covariates[:, [i]] * covariates[:, i:] for i in range(k)]
    return np.concatenate(columns, axis=1)


def fitted(design: Floats, targets: Floats) -> Floats:
    """Least-squares fit of the targets, shape (n, dim); a small ridge keeps dependent columns harmless.

    The targets' means are taken out first: of what never changes nothing is left that the ridge could bend.
    """
    gram = design.T @ design
    ridge = _RIDGE * float(np.trace(gram)) * np.eye(len(gram))
    # A NaN target would make every weight NaN.
    numbers = finite(targets)
    means = numbers.mean(axis=0)
    weights = np.linalg.solve(gram + ridge, design.T @ (numbers - means))
    return np.asarray(design @ weights + means, dtype=np.float64)


def told_apart(columns: Floats, names: list[str], whole: npt.NDArray[np.bool_]) -> tuple[Floats, list[str]]:
    """Beside whole-number columns with a few values one indicator a value: their order may mean nothing.

    Args:
        columns: shape (n, count).
        names: of the columns.
        whole: shape (count,): which columns hold whole numbers.

    Returns:
        The columns followed by the indicators, with names.
    """
    extra: list[Floats] = []
    extra_names: list[str] = []
    for j in np.flatnonzero(whole):
        values = np.unique(columns[~np.isnan(columns[:, j]), j])
        if 2 < len(values) <= _MOST_VALUES:
            extra += [(columns[:, j] == value).astype(np.float64) for value in values]
            extra_names += [f"[{names[j]} = {value:g}]" for value in values]
    if not extra:
        return columns, names
    return np.concatenate([columns, np.stack(extra, axis=1)], axis=1), [*names, *extra_names]
