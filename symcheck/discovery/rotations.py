"""Continuous linear symmetries: the null space of a least-squares problem, with its residual; never claimed directly.

If x -> exp(t A) x + ... , a -> exp(t B) a is a symmetry of x' = f(x, a) for every t, its derivative at t = 0 obeys

    D_x f (A x + b) + D_a f B a = A f + b        and        D_x r . (A x + b) + D_a r . B a = 0

at every sampled (x, a): linear equations in the unknowns A, b, B. A and B are restricted to antisymmetric matrices
(rotations), which includes quaternions and pairs of axes and excludes scalings; b shifts angles. Solutions with a small
residual are reported, and each gives a finite rotation that can be verified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from symcheck.array_types import Floats
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.structure import action_middle
from symcheck.errors import TargetError

_STATES, _FEWEST_STATES = 64, 32  # number of (state, action) pairs at which the equations are evaluated
_EQUATIONS = 3.0  # number of equations for each unknown, of which a fifth is left out again
MOST_COORDINATES = 48
# relative to the spread: small compared with the range of a contact, large compared with a solver's 1e-12
_DIFFERENCE = 1e-6
# relative to the size of the terms; residuals of solutions are about 1e-5 due to contacts and differencing
_NULL = 1e-3
_NO_ROTATION = 0.1  # relative residual of a coordinate above which there is no rotation
_NO_EFFECT = 1e-6  # relative to the usual size of a term
_MOST_SOLUTIONS = 12  # with a larger null space, the visited states do not determine the solutions
_SPARSE = 1e-3  # entries of a generator below this share of its largest are differencing noise
_SHARE_KEPT = 0.8  # fraction of pairs that are used; derivatives next to discontinuities are meaningless
_PIVOT = 0.2  # smallest pivot (of 1) that separates one solution from a null space of several


@dataclass(frozen=True)
class Generator:
    """An infinitesimal rotation of states and actions.

    Attributes:
        state: A, antisymmetric, shape (dim, dim); scaled so that its fastest plane rotates once in 2 pi.
        shift: b, shape (dim,): shifts of angles.
        action: B, antisymmetric, shape (components, components).
        residual: the residual of the equations of the dynamics, relative to their size without cancellation.
        reward_residual: the same for the reward.
    """

    state: Floats
    shift: Floats
    action: Floats
    residual: float
    reward_residual: float

    def finite(self, angle: float) -> tuple[Floats, Floats, Floats]:
        """The rotation by an angle in radians: matrix and offset of states, matrix of actions.

        Args:
            angle: t.

        Returns:
            Shapes (dim, dim), (dim,) and (components, components).
        """
        dim = len(self.state)
        homogeneous = np.zeros((dim + 1, dim + 1))
        homogeneous[:dim, :dim], homogeneous[:dim, dim] = self.state, self.shift
        from scipy.linalg import expm  # loads scipy

        moved = expm(angle * homogeneous)
        return moved[:dim, :dim], moved[:dim, dim], expm(angle * self.action)

    @property
    def planes(self) -> list[tuple[int, int, float]]:
        """The rotating pairs of coordinates: (i, j, rate), from e_i towards e_j."""
        pairs = zip(*np.triu_indices(len(self.state), 1), strict=True)
        return [(int(i), int(j), float(self.state[j, i])) for i, j in pairs if self.state[j, i] != 0]


@dataclass(frozen=True)
class _Derivatives:
    states: Floats  # (k, n)
    actions: Floats  # (k, m)
    followed: Floats  # (k, n)
    by_state: Floats  # (k, n + 1, n): rows of f and the reward by columns of x
    by_action: Floats  # (k, n + 1, m)


def find_generators(lab: Laboratory) -> list[Generator]:
    """Search for continuous rotations.

    Args:
        lab: an environment with Box actions whose states are real numbers that can be set.

    Returns:
        Rotations of dynamics and reward; if there are none, rotations of the dynamics alone. Empty if the environment
        is random, discrete in states or actions, or too large.

    Cost: at most 64 (2 dim + 2 components + 1) steps and a singular value decomposition of dim^2 / 2 unknowns.
    """
    suits = lab.kind == "deterministic" and isinstance(lab.action_space, spaces.Box) and not lab.is_whole
    if not suits or not 2 <= lab.dim <= MOST_COORDINATES:
        return []
    unknowns = _unknowns(lab)
    wanted = math.ceil(_EQUATIONS * len(unknowns) / (lab.dim + 1))
    derivatives = _differentiate(lab, min(_STATES, max(_FEWEST_STATES, wanted)))
    if derivatives is None:
        return []
    terms = _smooth_terms(derivatives, unknowns)
    return _solve(*terms, unknowns, with_reward=True) or _solve(*terms, unknowns, with_reward=False)


def _differentiate(lab: Laboratory, count: int) -> _Derivatives | None:
    rows = lab.rng.choice(len(lab.states), size=count, replace=len(lab.states) < count)
    space = lab.action_space
    sizes = _DIFFERENCE * np.where(lab.spread > 0, lab.spread, 1.0)
    kept = []
    for state in lab.states[rows]:
        action = np.asarray(space.sample(), dtype=np.float64).reshape(-1)
        if not lab.in_time(0.3):
            break
        try:
            kept.append(_derivatives_at(lab, state, 0.5 * (action + action_middle(space)), sizes))  # type: ignore[arg-type]
        except TargetError:
            continue
    if len(kept) < count // 2:
        return None
    return _Derivatives(*(np.stack(parts) for parts in zip(*kept, strict=True)))


def _derivatives_at(
    lab: Laboratory, state: Floats, action: Floats, sizes: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    n, m = len(state), len(action)
    # Actions are float32: a difference of 2^-10 is exact there and its rounding error is 1e-4 of it at most.
    step = 2.0**-10
    moves = [state + s * sizes[j] * row for j, row in enumerate(np.eye(n)) for s in (1, -1)] + [state] * (2 * m + 1)
    acts = [action] * (2 * n) + [action + s * step * row for row in np.eye(m) for s in (1, -1)] + [action]
    space = lab.action_space
    typed = [act.astype(space.dtype).reshape(space.shape) for act in acts]
    outcomes = lab.outcomes(np.stack(moves), typed)
    values = np.concatenate([outcomes.states, outcomes.rewards[:, None]], axis=1)
    by_state = (values[0 : 2 * n : 2] - values[1 : 2 * n : 2]) / (2 * sizes[:, None])
    by_action = (values[2 * n : 2 * (n + m) : 2] - values[2 * n + 1 : 2 * (n + m) : 2]) / (2 * step)
    return state, action, outcomes.states[-1], by_state.T, by_action.T


def _unknowns(lab: Laboratory) -> list[tuple[Floats, Floats, Floats]]:
    """A basis of the unknowns (A, b, B), without coordinates that never change."""
    n, m = lab.dim, int(np.prod(lab.action_space.shape or (1,)))
    basis = []
    used = [int(j) for j in np.flatnonzero(lab.spread > 0)]
    for at, i in enumerate(used):
        for j in used[at + 1 :]:
            turn = np.zeros((n, n))
            turn[j, i], turn[i, j] = 1.0, -1.0
            basis.append((turn, np.zeros(n), np.zeros((m, m))))
    for i in used:
        basis.append((np.zeros((n, n)), np.eye(n)[i], np.zeros((m, m))))
    for i in range(m):
        for j in range(i + 1, m):
            turn = np.zeros((m, m))
            turn[j, i], turn[i, j] = 1.0, -1.0
            basis.append((np.zeros((n, n)), np.zeros(n), turn))
    return basis


def _terms(found: _Derivatives, unknowns: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Left and right sides for every unknown, shape (pairs, n + 1, unknowns); the last row of each is the reward's.

    The equations are written for the change f - x, which rotates like f. The terms are then no larger than the change
    in one step, so less cancels.
    """
    n = found.states.shape[1]
    by_state = found.by_state.copy()
    by_state[:, :n] -= np.eye(n)
    change = found.followed - found.states
    lefts, rights = [], []
    for turn, shift, act in unknowns:
        moved, acted = found.states @ turn.T + shift, found.actions @ act.T
        lefts.append(np.einsum("kij,kj->ki", by_state, moved) + np.einsum("kij,kj->ki", found.by_action, acted))
        rights.append(np.concatenate([change @ turn.T, np.zeros((len(change), 1))], axis=1))
    return np.stack(lefts, axis=-1), np.stack(rights, axis=-1)


def _smooth_terms(found: _Derivatives, unknowns: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """The terms with every equation scaled to its typical size, at the pairs that are not next to discontinuities."""
    left, right = _terms(found, unknowns)
    rows = _typical(np.abs(left).max(axis=-1) + np.abs(right).max(axis=-1))
    left, right = left / rows[None, :, None], right / rows[None, :, None]
    # Derivatives next to discontinuities (contacts) are meaningless: drop the pairs with the largest terms.
    size = np.abs(left).max(axis=(1, 2))
    smooth = np.argsort(size, kind="stable")[: int(_SHARE_KEPT * len(size))]
    return left[smooth], right[smooth]


def _solve(
    left: Floats, right: Floats, unknowns: list[tuple[Floats, Floats, Floats]], *, with_reward: bool
) -> list[Generator]:
    used = slice(None) if with_reward else slice(0, -1)
    columns = np.sqrt((left[:, used] ** 2 + right[:, used] ** 2).mean(axis=(0, 1)))
    # An unknown without any effect (a translation) has only differencing noise, which must not be scaled up.
    usual = float(np.median(columns)) or 1.0
    columns = np.where(columns > _NO_EFFECT * usual, columns, usual)
    matrix = ((left - right)[:, used] / columns).reshape(-1, len(unknowns))
    # The eigenvectors of the Gram matrix are the right singular vectors, at a tenth of the cost. Rounding of singular
    # values, 1e-8 of the largest of about 20, is far below the limit.
    squares, vectors = np.linalg.eigh(matrix.T @ matrix / len(matrix))
    null = vectors[:, squares <= _NULL**2].T
    if not 0 < len(null) <= _MOST_SOLUTIONS:
        return []
    made = []
    for row in _sparse_rows(null / columns):
        turn, shift, act = _combine_unknowns(row, unknowns)
        residuals = _relative(left, right, row)
        # Without an effect on the state there are no terms to compare: this is not a rotation of the dynamics.
        if np.abs(turn).max() > 0 and residuals[:-1].max() <= _NO_ROTATION:
            made.append(_scale_to_unit_rate(turn, shift, act, residuals))
    return made


def _typical(values: Floats) -> Floats:
    """The upper quartile over pairs, or 1 if it is zero."""
    typical = np.quantile(values, 0.75, axis=0)
    return np.asarray(np.where(typical > 0, typical, 1.0))


def _relative(left: Floats, right: Floats, row: Floats) -> Floats:
    """Root mean square misfit of every equation, relative to its terms without cancellation."""
    size = np.sqrt(np.mean(((left**2 + right**2) * row**2).sum(axis=-1), axis=0))
    misfit = np.sqrt(np.mean(((left - right) @ row) ** 2, axis=0))
    return np.asarray(misfit / np.where(size > _NO_EFFECT * size.max(), size, 1.0))


def _sparse_rows(null: Floats) -> Floats:
    """Sparse solutions: the reduced row echelon form of the null space."""
    reduced = null.copy()
    for row in range(len(reduced)):  # the largest remaining entry is the pivot
        at = int(np.argmax(np.abs(reduced[row:]).max(axis=0)))
        best = row + int(np.argmax(np.abs(reduced[row:, at])))
        if abs(reduced[best, at]) < _PIVOT * np.abs(reduced[best]).max():
            break
        reduced[[row, best]] = reduced[[best, row]]
        reduced[row] /= reduced[row, at]
        for other in range(len(reduced)):
            if other != row:
                reduced[other] -= reduced[other, at] * reduced[row]
    reduced[np.abs(reduced) < _SPARSE * np.abs(reduced).max(axis=1, keepdims=True)] = 0.0
    return reduced


def _combine_unknowns(row: Floats, unknowns: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
    turn = sum((x * unknown[0] for x, unknown in zip(row, unknowns, strict=True)), np.zeros_like(unknowns[0][0]))
    shift = sum((x * unknown[1] for x, unknown in zip(row, unknowns, strict=True)), np.zeros_like(unknowns[0][1]))
    act = sum((x * unknown[2] for x, unknown in zip(row, unknowns, strict=True)), np.zeros_like(unknowns[0][2]))
    return np.asarray(turn), np.asarray(shift), np.asarray(act)


def _scale_to_unit_rate(turn: Floats, shift: Floats, act: Floats, residuals: Floats) -> Generator:
    """Scale so that the fastest plane rotates by one radian in unit time, and round rates near halves and wholes."""
    rate = float(np.abs(np.linalg.eigvals(turn).imag).max())
    simple = [_round_to_halves(part / rate) for part in (turn, shift, act)]
    return Generator(simple[0], simple[1], simple[2], float(residuals[:-1].max()), float(residuals[-1]))


def _round_to_halves(values: Floats) -> Floats:
    halves = np.round(2 * values) / 2
    return np.asarray(np.where(np.abs(values - halves) < 5e-3, halves, values) + 0.0)
