"""Kernel ridge regression of the outcomes of steps, with errors in robust units."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from symcheck.array_types import Bools, Floats

# ridge penalties, and widths of the Gaussian kernel in squares of a typical distance
_RIDGES, _WIDTHS = (1e-4, 1e-2, 1.0), (0.5, 0.1, 0.02)
_CHOOSING = 200  # number of steps on which both are selected
_CHOOSING_AGAIN = 600  # the same, once features are left out: with more steps, narrower kernels are better
_LEFT_OUT = 500  # maximum number of steps with leave-one-out errors
_TYPICAL = 0.75  # quantile of errors used as their unit, so that a few unpredictable steps do not determine it
_MOST_DROPPED = 40  # maximum number of features that are left out one by one; pixels are too many
_ROUNDING = 1e-5  # relative to the spread of a target: rounding of float32 observations and images is not an error


class KernelModel:
    """Kernel ridge regression with a quadratic kernel plus a Gaussian kernel.

    Args:
        inputs: shape (n, features).
        targets: shape (n, outputs).
        choices: sets of features, the best of which is used; shape (features,) each.
        drops: whether features that do not help are left out. Not if targets mark rare steps: too few of these are
            among the steps on which features are selected.
    """

    def __init__(self, inputs: Floats, targets: Floats, choices: Sequence[Bools], *, drops: bool = False) -> None:
        varies = inputs.std(axis=0) > 1e-9 * np.maximum(1.0, np.abs(inputs).max(axis=0, initial=0.0))
        self._level = targets.mean(axis=0)
        plain = targets - self._level
        usable = [each & varies for each in choices]
        columns, width, ridge = self._choose(inputs, plain, usable)
        if drops:
            few = [each for each in usable if 1 < each.sum() <= _MOST_DROPPED]
            needed = [self._drop_useless(inputs, plain, each, width, ridge) for each in few]
            several = list(np.unique([columns, *needed], axis=0))
            columns, width, ridge = self._choose(inputs, plain, several, _CHOOSING_AGAIN)
        self._use(inputs, columns, width)
        self._weights, errors = _fit_ridge(self._kernel(self._taught, self._taught), plain, ridge)
        # If the fit is exact up to rounding, errors are measured in units of rounding.
        least = np.maximum(_ROUNDING * np.sqrt((targets**2).mean(axis=0)), 1e-150)
        self._unit = np.maximum(np.quantile(np.abs(errors), _TYPICAL, axis=0), least)

    def errors(self, inputs: Floats, targets: Floats) -> Floats:
        """The residuals of the targets in units of a typical error; shape (n, outputs)."""
        foretold = self._level + self._kernel(self._standard(inputs), self._taught) @ self._weights
        return np.asarray((targets - foretold) / self._unit)

    def _choose(
        self, inputs: Floats, plain: Floats, choices: Sequence[Bools], steps: int = _CHOOSING
    ) -> tuple[Bools, float, float]:
        """The features, the width and the ridge with the smallest leave-one-out error."""
        options = list(itertools.product(choices, _WIDTHS, _RIDGES))
        return options[int(np.argmin([self._leave_out(inputs, plain, *each, steps) for each in options]))]

    def _leave_out(
        self, inputs: Floats, plain: Floats, columns: Bools, width: float, ridge: float, steps: int = _CHOOSING
    ) -> float:
        """The leave-one-out error on the first steps."""
        self._use(inputs, columns, width)
        some = self._taught[:steps]
        size = float((_fit_ridge(self._kernel(some, some), plain[:steps], ridge)[1] ** 2).sum())
        return size if np.isfinite(size) else np.inf

    def _drop_useless(self, inputs: Floats, plain: Floats, columns: Bools, width: float, ridge: float) -> Bools:
        """The features without those that increase the leave-one-out error.

        A reward often depends on few numbers; with all of them, distances between steps mean little, and errors are
        large enough to hide a fault.
        """
        best = self._leave_out(inputs, plain, columns, width, ridge)
        others = {j: columns & (np.arange(len(columns)) != j) for j in np.flatnonzero(columns)}
        alone = {j: self._leave_out(inputs, plain, left, width, ridge) for j, left in others.items()}
        for j in sorted(alone, key=lambda j: alone[j]):
            left = columns & others[j]
            if left.any() and (size := self._leave_out(inputs, plain, left, width, ridge)) <= best:
                columns, best = left, size
        return columns

    def _use(self, inputs: Floats, columns: Bools, width: float) -> None:
        self._used = columns
        self._mean, self._deviation = inputs[:, columns].mean(axis=0), inputs[:, columns].std(axis=0)
        self._taught = self._standard(inputs)
        some = self._taught[:_CHOOSING]
        self._width = width * (float(np.median(_squared_distances(some, some, some @ some.T))) or 1.0)

    def _standard(self, inputs: Floats) -> Floats:
        return np.asarray((inputs[:, self._used] - self._mean) / self._deviation)

    def _kernel(self, rows: Floats, others: Floats) -> Floats:
        products = rows @ others.T
        bumps = _squared_distances(rows, others, products)
        bumps /= -self._width
        np.exp(bumps, out=bumps)
        products /= max(1, rows.shape[1])
        products += 1.0
        products *= products
        products += bumps
        return products


def _fit_ridge(kernel: Floats, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Weights, and the leave-one-out errors of each output at up to 500 steps."""
    factor = scipy.linalg.cholesky(kernel + ridge * np.eye(len(kernel)), lower=True, check_finite=False)
    weights = scipy.linalg.cho_solve((factor, True), targets, check_finite=False)
    some = np.unique(np.linspace(0, len(kernel) - 1, num=min(len(kernel), _LEFT_OUT)).astype(int))
    units = np.zeros((len(kernel), len(some)))
    units[some, np.arange(len(some))] = 1.0
    # Closed form: a leave-one-out error is the weight over the diagonal entry of the inverse kernel matrix.
    columns = scipy.linalg.solve_triangular(factor, units, lower=True, check_finite=False)
    return weights, weights[some] / (columns**2).sum(axis=0)[:, None]


def _squared_distances(rows: Floats, others: Floats, products: Floats) -> Floats:
    """Squared distances between rows and others, from their inner products."""
    squares: Floats = products * -2.0
    squares += (rows**2).sum(axis=1)[:, None]
    squares += (others**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)
