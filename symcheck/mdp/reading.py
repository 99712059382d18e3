"""Reads and checks the arrays of a user's MDP: transitions, rewards, terminations, start distribution.

Every check reports all offending rows at once: their number, the worst row, and its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from symcheck import arrays
from symcheck.array_types import Bools, Floats
from symcheck.errors import SpecError
from symcheck.mdp.sparse_rows import Csr, row_of_entry

_EPS = {"f2": 2.0**-10, "f4": 2.0**-23}


def read_distributions(value: Any, where: str) -> tuple[Csr, int, int, float]:
    """Read distributions of next states as one sparse matrix with a row per pair.

    Args:
        value: an array (states, actions, states); a list of one (states, states) matrix per action, dense or sparse;
            or a sparse matrix (states * actions, states) whose row s * actions + a is the distribution of (s, a).
        where: the argument's name, for messages.

    Returns:
        The matrix (states * actions, states) in float64, the number of states, the number of actions, and one rounding
        unit of the dtype given.

    Raises:
        SpecError: another shape; NaN, infinite or negative entries.
    """
    if sparse.issparse(value):
        rows = _stacked_sparse(value, where)
    elif isinstance(value, list | tuple) and value and all(sparse.issparse(item) for item in value):
        # One matrix per action, the format of many toolboxes.
        rows = _one_per_action(value, where)
    else:
        rows = _dense(value, where)
    matrix, states, actions, unit = rows
    matrix = sparse.csr_array(matrix, dtype=np.float64)
    # Add duplicates first: two entries at the same position form one probability.
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    _check_entries(matrix, actions, where)
    return matrix, states, actions, unit


def _stacked_sparse(value: Any, where: str) -> tuple[Any, int, int, float]:
    rows, states = value.shape
    if not rows or not states or rows % states:
        raise SpecError(
            f"expected a sparse matrix of shape (states * actions, states), got {value.shape}.",
            where=where,
            remedy="Row s * actions + a is the distribution of next states after action a in state s.",
        )
    return value, states, rows // states, _unit(value.dtype)


def _one_per_action(value: Sequence[Any], where: str) -> tuple[Any, int, int, float]:
    shapes = sorted({distribution.shape for distribution in value})
    if len(shapes) > 1 or shapes[0][0] != shapes[0][1]:
        raise SpecError(f"expected one square matrix per action, got shapes {shapes}.", where=where)
    states, actions = shapes[0][0], len(value)
    stacked = sparse.vstack([sparse.csr_array(distribution) for distribution in value]).tocsr()
    # Reorder rows from action-major to state-major: row s * actions + a.
    by_state = np.arange(states * actions).reshape(actions, states).T.reshape(-1)
    return stacked[by_state], states, actions, max(_unit(distribution.dtype) for distribution in value)


def _dense(value: Any, where: str) -> tuple[Any, int, int, float]:
    array = arrays.to_numpy(value, where=where, error=SpecError)
    # (actions, states, states) is recognised if the shape is unambiguous.
    if array.ndim == 3 and array.shape[1] == array.shape[2] != array.shape[0]:  # one square matrix per action
        array = array.transpose(1, 0, 2)
    if array.ndim != 3 or array.shape[0] != array.shape[2] or array.size == 0:
        raise SpecError(
            f"expected shape (states, actions, states), got {array.shape}.",
            where=where,
            remedy="transitions[s][a] is the distribution of next states. For a large model, give a scipy.sparse "
            "matrix of shape (states * actions, states).",
        )
    states, actions, _ = array.shape
    return array.reshape(states * actions, states), states, actions, _unit(array.dtype)


def _unit(dtype: Any) -> float:
    # bfloat16 and float64 use the unit of float64.
    return _EPS.get(np.dtype(dtype).str[1:], float(np.finfo(np.float64).eps))


def _check_entries(matrix: Csr, actions: int, where: str) -> None:
    bad = np.flatnonzero(~np.isfinite(matrix.data) | (matrix.data < 0))
    if not len(bad):
        return
    row = int(row_of_entry(matrix.indptr)[bad[0]])
    state, action = divmod(row, actions)
    value = matrix.data[bad[0]]
    kind = "negative probability" if value < 0 else "probability that is not finite"
    raise SpecError(
        f"expected probabilities of at least 0, got a {kind}, {value:.6g}, from state {state} under action {action} to "
        f"state {int(matrix.indices[bad[0]])}{_count_others(len(bad))}.",
        where=where,
    )


def _count_others(count: int) -> str:
    return "" if count == 1 else f" ({count:,} such entries)"


def check_sums(total: Floats, available: Bools, longest: int, unit: float) -> None:
    """Reject distributions that do not sum to one.

    Args:
        total: probability of each pair's outcomes, terminations included, shape (states, actions).
        available: pairs that can be chosen; the others must sum to zero.
        longest: outcomes in the longest row.
        unit: one rounding unit of the dtype that was given.

    Raises:
        SpecError: some rows do not sum to one; the message gives their number, the worst row and its error.
    """
    missing = available & (total == 0.0)
    if missing.any():
        state, action = np.argwhere(missing)[0]
        raise SpecError(
            f"action {action} has no outcome in state {state}{_count_others(int(missing.sum()))}: "
            "its distribution sums to 0.",
            where="transitions",
            remedy="Give the pair a distribution, or say which actions exist where: available=array of booleans "
            "(states, actions).",
        )
    # Each probability is rounded once, and the sum once per term. The tolerance is at least 64 units, for decimal
    # input, and at least 1e-12, for probabilities that are sums themselves, such as those from thousands of samples.
    # Unavailable pairs must sum to 0.
    off = np.abs(total - available)
    wrong = ~(off <= max(unit * max(64, longest), 1e-12))
    if not wrong.any():
        return
    # The message names the worst row.
    state, action = np.unravel_index(int(np.argmax(np.where(wrong, off, -1.0))), off.shape)
    excess = float(total[state, action] - available[state, action])
    expected = 1 if available[state, action] else 0
    rows = "1 row does" if wrong.sum() == 1 else f"{int(wrong.sum()):,} rows do"
    raise SpecError(
        f"{rows} not sum to {expected}. {'The worst' if wrong.sum() > 1 else 'It'} is the distribution of action "
        f"{action} in state {state}, whose sum is {float(total[state, action]):.9g} "
        f"({abs(excess):.3g} too {'large' if excess > 0 else 'small'}).",
        where="transitions",
        remedy="Divide each row by its sum, or give the missing probability to the outcome that was left out.",
    )


def read_rewards(value: Any, distribution: Csr, states: int, actions: int) -> Floats:
    """Expected rewards.

    Args:
        value: an array (states, actions), or (states, actions, states) with a reward for each next state.
        distribution: distributions of all outcomes, terminations included, (states * actions, states).
        states: the number of states.
        actions: the number of actions.

    Returns:
        Shape (states, actions), float64.

    Raises:
        SpecError: another shape, or NaN or infinite rewards; the message names the first.
    """
    array = arrays.to_numpy(value, where="rewards", error=SpecError).astype(np.float64)
    if array.shape not in ((states, actions), (states, actions, states)):
        raise SpecError(
            f"expected shape (states, actions) = ({states}, {actions}), or one more axis for the next state; got "
            f"{array.shape}.",
            where="rewards",
            remedy="If rewards depend on the state only, give rewards[:, None] * numpy.ones(actions).",
        )
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        count = int((~np.isfinite(array)).sum())
        raise SpecError(
            f"expected finite rewards, got {array[tuple(place)]} in state {place[0]} under action {place[1]}"
            f"{_count_others(count)}.",
            where="rewards",
        )
    if array.ndim == 2:
        return array
    # R(s, a) = sum over s' of T(s' | s, a) R(s, a, s').
    flat = array.reshape(states * actions, states)
    expected = np.asarray(sparse.csr_array(distribution.multiply(flat)).sum(axis=1)).reshape(states, actions)
    return expected.astype(np.float64)


def read_initial(value: Any, states: int) -> Floats | None:
    """A start distribution.

    Args:
        value: a state, an array of probabilities (states,), or None.
        states: the number of states.

    Returns:
        Shape (states,), or None.

    Raises:
        SpecError: another shape, negative numbers, or a sum that is not one.
    """
    if value is None:
        return None
    # A single start state.
    if np.ndim(value) == 0:
        state = int(value)
        if not 0 <= state < states:
            raise SpecError(f"expected a state in 0..{states - 1}, got {state}.", where="initial")
        alone: Floats = np.zeros(states)
        alone[state] = 1.0
        return alone
    array = arrays.to_numpy(value, where="initial", error=SpecError).astype(np.float64)
    if array.shape != (states,):
        raise SpecError(f"expected one probability per state, shape ({states},), got {array.shape}.", where="initial")
    total = float(array.sum())
    # As for the distributions: 64 rounding units, or one for each state. Gymnasium's start distributions are float64.
    if not (array >= 0).all() or not abs(total - 1.0) <= max(64, states) * np.finfo(np.float64).eps:
        raise SpecError(
            f"expected probabilities that sum to 1, got a sum of {total:.9g} and a smallest of {array.min():.3g}.",
            where="initial",
        )
    return array


def read_discount(value: Any) -> float:
    """A discount in [0, 1].

    Raises:
        SpecError: anything else.
    """
    if isinstance(value, bool) or not hasattr(value, "__float__") or not 0.0 <= float(value) <= 1.0:
        raise SpecError(f"expected a number in [0, 1], got {value!r}.", where="discount")
    return float(value)
