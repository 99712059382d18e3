"""The regression that removes shared covariates of a pair; every fit is pooled, so swaps do not change it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from symcheck.array_types import Bools, Floats
from symcheck.engine.clock import raise_if_overdue
from symcheck.engine.scales import FLOAT64_EPSILON, bulk
from symcheck.spaces.coordinates import finite

_MOST_VALUES = 64  # maximum number of values of an integer coordinate with separate indicators
_RIDGE = 1e-9  # relative to the squared largest singular value: covariates may be dependent
_REFINED = 3  # number of refinements of the ridge's bias, which leave a hundred units of 1 part in 1e9
_HIGHEST = 5  # degree of the polynomials that remove smooth dynamics
_MOST_TERMS = 400
_MOST_PRODUCTS = 200  # in addition to hundreds of other columns; a fit costs their square
_ROWS_PER_TERM = 20
_MOST_MASKS = 8  # maximum number of different sets of known rows: each one costs a fit


def standardise(columns: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1; constants, NaN and outliers become 0."""
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


def second_order(covariates: Floats) -> Floats:
    """Squares and products of the first covariates, as many as the number of rows supports.

    A joint dependence on two coordinates, for instance on a distance after one position is negated, may be invisible in
    each coordinate separately.

    Args:
        covariates: standardised, shape (n, k).

    Returns:
        Shape (n, terms), each of mean square 1, or 0 where it is 0 everywhere.

    Example:
        >>> second_order(np.ones((200, 9))).shape  # 20 rows a term: four covariates
        (200, 10)
    """
    n, k = covariates.shape
    most = min(_MOST_PRODUCTS, n // _ROWS_PER_TERM)
    while k * (k + 1) // 2 > most:
        k -= 1
    i, j = np.triu_indices(k)
    terms = covariates[:, i] * covariates[:, j]
    return np.asarray(terms / np.sqrt((terms**2).mean(axis=0)).clip(1e-12))


def smooth_terms(covariates: Floats) -> Floats:
    """Monomials up to the highest degree, at most 5, that the number of rows supports; at least `polynomial`.

    The better the fit of smooth dynamics, the smaller the faults that remain detectable: at degree 2 the sine of a
    pole's angle leaves 1e-3 of its range unexplained, at degree 5 one millionth.

    Args:
        covariates: standardised, shape (n, k).

    Returns:
        Shape (n, terms), each of mean square 1.
    """
    n, k = covariates.shape
    most = min(_MOST_TERMS, n // _ROWS_PER_TERM)
    degree = 1
    while degree < _HIGHEST and math.comb(k + degree + 1, k) <= most:
        degree += 1
    if degree <= 2:
        return polynomial(covariates)
    # Each monomial is one of lower degree times a covariate.
    known: dict[tuple[int, ...], Floats] = {(): np.ones(n)}
    for size in range(1, degree + 1):
        for powers in itertools.combinations_with_replacement(range(k), size):
            known[powers] = known[powers[:-1]] * covariates[:, powers[-1]]
    terms = np.stack(list(known.values()), axis=1)
    return np.asarray(terms / np.sqrt((terms**2).mean(axis=0)).clip(1e-12))


class Fit:
    """Least-squares fits on one design; a small ridge keeps dependent columns harmless.

    Args:
        design: shape (n, columns); its Gram matrix is computed and factorised once for all targets.
    """

    def __init__(self, design: Floats) -> None:
        from scipy.linalg import lu_factor  # loading scipy takes as long as a run on CartPole

        raise_if_overdue()
        self.design = design
        self._gram = design.T @ design
        ridge = _RIDGE * float(np.trace(self._gram)) * np.eye(len(self._gram))
        self._factors = lu_factor(self._gram + ridge, check_finite=False)

    def of(self, targets: Floats, known: Bools | None = None) -> Floats:
        """The fit of targets, shape (n, dim).

        Their means are removed first, so that the ridge does not bias constant targets.

        Args:
            targets: shape (n, dim).
            known: False for values that must not influence the fit (NaN, outliers), shape (n, dim). A column is fitted
                to its known rows, unless more than a few columns have different sets of known rows.
        """
        raise_if_overdue()
        # A NaN target would make every weight NaN.
        numbers = finite(targets)
        means = numbers.mean(axis=0)
        rest = numbers - means
        explained = np.asarray(means + self.design @ self._weights(rest), dtype=np.float64)
        partial = np.array([], int) if known is None else np.flatnonzero(~known.all(axis=0))
        if known is None or not len(partial):
            return explained
        masks, place = np.unique(known[:, partial], axis=1, return_inverse=True)
        for i, rows in enumerate(masks.T if masks.shape[1] <= _MOST_MASKS else ()):
            columns = partial[place.ravel() == i]
            if rows.sum() > _ROWS_PER_TERM:
                few = Fit(self.design[rows])
                some = numbers[np.ix_(rows, columns)]
                middle = some.mean(axis=0)
                explained[:, columns] = middle + self.design @ few._weights(some - middle)
        return explained

    def _weights(self, targets: Floats) -> Floats:
        """The weights of the fit of centred targets, shape (columns, dim)."""
        from scipy.linalg import lu_solve

        wanted = self.design.T @ targets
        weights = np.zeros(wanted.shape)
        # Each round fits the residual of the previous one, so the ridge affects only directions that hardly vary.
        for _ in range(_REFINED):
            weights = weights + lu_solve(self._factors, wanted - self._gram @ weights, check_finite=False)
        return weights


def told_apart(columns: Floats, names: list[str], whole: npt.NDArray[np.bool_]) -> tuple[Floats, list[str]]:
    """Add an indicator for each value of integer columns with few values, because their order may be meaningless.

    Args:
        columns: shape (n, count).
        names: the names of the columns.
        whole: shape (count,): True for columns of integers.

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
