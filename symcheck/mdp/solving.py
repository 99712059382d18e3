"""Bellman's equations: values of a policy, and optimal values.

    V_pi(s) = sum_a pi(a | s) Q_pi(s, a),    Q_pi(s, a) = R(s, a) + discount sum_s' T(s' | s, a) V_pi(s'),
    V*(s)   = max_a Q*(s, a),                Q*(s, a)   = R(s, a) + discount sum_s' T(s' | s, a) V*(s').

T contains only the outcomes after which the episode continues; the value after termination is 0.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from symcheck import arrays
from symcheck.array_types import Floats, Ints
from symcheck.errors import OptionError, SpecError
from symcheck.mdp.finite import FiniteMDP

_SOLVED_DENSE = 1_500
"""Maximum number of states for a dense solve, which then takes under a second."""
_SOLVED_DIRECTLY = 20_000
"""Maximum number of states for a sparse factorisation; the fill-in of random distributions is quadratic."""


class Solution(NamedTuple):
    """Optimal values and a policy that is greedy for them.

    Attributes:
        values: V*, (S,), in units of return.
        q_values: Q*, (S, A); -inf for actions that are not available.
        policy: the first greedy action of each state, (S,).
        iterations: the number of sweeps, or of rounds of policy improvement.
        error_bound: a bound on the max-norm distance between `values` and V*, in exact arithmetic; infinite for
            discount 1.
    """

    values: Floats
    q_values: Floats
    policy: Ints
    iterations: int
    error_bound: float


def q_values(mdp: FiniteMDP, values: npt.ArrayLike) -> Floats:
    """One backup: R(s, a) + discount sum_s' T(s' | s, a) V(s').

    Args:
        mdp: the MDP.
        values: V, (S,).

    Returns:
        Shape (S, A); -inf for actions that are not available.

    Raises:
        SpecError: another number of values.

    Example:
        >>> from symcheck.mdp.tabular import TabularMDP
        >>> q_values(TabularMDP([[[1.0]]], [[1.0]], 0.5), [2.0]).tolist()
        [[2.0]]
    """
    v = np.asarray(values, dtype=np.float64)
    if v.shape != (mdp.n_states,):
        raise SpecError(f"expected one value per state, shape ({mdp.n_states},), got {v.shape}.", where="values")
    backed = mdp.rewards + mdp.discount * (mdp.transitions @ v).reshape(mdp.rewards.shape)
    # Unavailable actions are never the maximum.
    return np.where(mdp.available, backed, -np.inf)


def value_iteration(mdp: FiniteMDP, *, tolerance: float = 1e-10, max_iterations: int = 1_000_000) -> Solution:
    """Optimal values by repeated backups.

    After a sweep that changes no value by more than d, the distance to V* is at most d discount / (1 - discount).

    Args:
        mdp: the MDP.
        tolerance: stop when that distance, in units of return, is below `tolerance` times max(1, largest reward); with
            discount 1, stop when a sweep changes no value by more than that.
        max_iterations: the largest number of sweeps.

    Returns:
        Values, Q-values, a greedy policy, the number of sweeps and the error bound.

    Raises:
        SpecError: the values have not converged within `max_iterations`, for instance with discount 1 and unbounded
            returns.

    Example:
        >>> from symcheck.mdp.tabular import TabularMDP
        >>> value_iteration(TabularMDP([[[1.0]]], [[1.0]], 0.5)).values.round(9).tolist()
        [2.0]

    Source: van der Pol et al. 2020, appendix (Bellman equations); Puterman, "Markov Decision Processes", theorem 6.3.1.
        Cost: the entries of T times log(1 / tolerance) / (1 - discount).
    """
    scale = max(1.0, float(np.abs(mdp.rewards).max()))
    # The bound on the distance: |V - V*| <= discount / (1 - discount) times the last change.
    target = _attainable(tolerance, scale, mdp.discount)
    values = np.zeros(mdp.n_states)
    factor = mdp.discount / (1.0 - mdp.discount) if mdp.discount < 1.0 else 1.0
    for sweep in range(1, max_iterations + 1):
        backed = q_values(mdp, values)
        improved = backed.max(axis=1)
        change = float(np.abs(improved - values).max())
        values = improved
        if change * factor <= target:
            # Without discounting, a small change gives no bound.
            bound = change * factor if mdp.discount < 1.0 else math.inf
            final = q_values(mdp, values)
            return Solution(values, final, final.argmax(axis=1), sweep, bound)
    raise SpecError(
        f"values still change by {change:.3g} after {max_iterations:,} sweeps at discount {mdp.discount:g}.",
        where="value_iteration",
        remedy="With discount 1, every optimal policy must end its episodes; use a discount below 1, or more sweeps.",
    )


def _attainable(tolerance: float, scale: float, discount: float) -> float:
    """The requested distance, but at least the rounding error of values of this size (four units over the horizon)."""
    if not tolerance > 0:
        raise OptionError(f"expected a number above 0, got {tolerance!r}.", where="tolerance")
    horizon = 1.0 / (1.0 - discount) if discount < 1.0 else 1.0
    # Rounding of a backup, accumulated over the horizon, and once more for the residual.
    return max(tolerance * scale, 4 * float(np.finfo(np.float64).eps) * scale * horizon * horizon)


def evaluate_policy(
    mdp: FiniteMDP, policy: npt.ArrayLike, *, method: Literal["auto", "solve", "iterate"] = "auto"
) -> Floats:
    """The values of a policy, by a linear solve if the MDP is small enough.

    Args:
        mdp: the MDP.
        policy: an action for each state, integers (S,); or probabilities (S, A).
        method: "solve" solves the linear equations, "iterate" repeats backups until values change only by rounding, and
            "auto" solves if there are at most 20,000 states.

    Returns:
        V_pi, (S,), in units of return.

    Raises:
        SpecError: not a policy, an unavailable action, or, with discount 1, a policy that collects rewards forever.

    Example:
        >>> from symcheck.mdp.tabular import TabularMDP
        >>> evaluate_policy(TabularMDP([[[1.0]]], [[1.0]], 0.5), [0]).tolist()
        [2.0]
    """
    probabilities = read_policy(mdp, policy)
    distribution, rewards = _chain(mdp, probabilities)
    if mdp.discount == 1.0:
        return _evaluate_undiscounted(distribution, rewards)
    if method == "iterate" or (method == "auto" and mdp.n_states > _SOLVED_DIRECTLY):
        return _iterate_values(distribution, rewards, mdp.discount)
    return _solve_linear(distribution, rewards, mdp.discount)


def policy_iteration(mdp: FiniteMDP, *, max_iterations: int = 1_000) -> Solution:
    """Optimal values by evaluating and improving a policy until no action is better.

    Args:
        mdp: the MDP, with a discount below 1.
        max_iterations: the largest number of rounds; a few dozen are typical.

    Returns:
        As for `value_iteration`; exact up to the rounding of the linear solve.

    Raises:
        OptionError: discount 1, for which the first policy may never end.
        SpecError: no convergence within `max_iterations`.

    Example:
        >>> from symcheck.mdp.tabular import TabularMDP
        >>> policy_iteration(TabularMDP([[[1.0], [1.0]]], [[1.0, 2.0]], 0.5)).policy.tolist()
        [1]

    Source: Puterman, "Markov Decision Processes", section 6.4.
    """
    if mdp.discount == 1.0:
        raise OptionError("policy iteration needs a discount below 1.", where="discount", remedy="Use value_iteration.")
    # Start with the policy that is greedy for the immediate rewards.
    policy = q_values(mdp, np.zeros(mdp.n_states)).argmax(axis=1)
    states = np.arange(mdp.n_states)
    for rounds in range(1, max_iterations + 1):
        values = evaluate_policy(mdp, policy)
        backed = q_values(mdp, values)
        # An action is better only if the gain exceeds the rounding of the solve; otherwise ties would cycle forever.
        margin = 1e-12 * max(1.0, float(np.abs(values).max()))
        better = backed.max(axis=1) > backed[states, policy] + margin
        if not better.any():
            # The residual of Bellman's equation bounds the distance over the horizon.
            gap = float((backed.max(axis=1) - values).max())
            return Solution(values, backed, policy, rounds, max(gap, 0.0) / (1.0 - mdp.discount))
        policy = np.where(better, backed.argmax(axis=1), policy)
    raise SpecError(f"the policy still improves after {max_iterations} rounds.", where="policy_iteration")


def read_policy(mdp: FiniteMDP, policy: npt.ArrayLike, *, where: str = "policy") -> Floats:
    """A policy as probabilities.

    Args:
        mdp: the MDP.
        policy: an action for each state, integers (S,); or probabilities (S, A).
        where: the argument's name, for messages.

    Returns:
        Shape (S, A), rows summing to one.

    Raises:
        SpecError: the wrong shape, actions out of range or not available, or rows that do not sum to one.
    """
    array = arrays.to_numpy(policy, where=where, error=SpecError)
    states, actions = mdp.n_states, mdp.n_actions
    if array.shape == (states,) and array.dtype.kind in "iu":
        # A deterministic policy as probabilities.
        chosen = array.astype(np.int64)
        wrong = np.flatnonzero((chosen < 0) | (chosen >= actions))
        if len(wrong):
            raise SpecError(
                f"expected actions 0..{actions - 1}, got {chosen[wrong[0]]} in state {wrong[0]}.", where=where
            )
        array = np.eye(actions)[chosen]
    if array.shape != (states, actions):
        raise SpecError(
            f"a policy is an array of actions, integers of shape ({states},), or of probabilities of "
            f"shape ({states}, {actions}); got shape {array.shape} ({array.dtype}).",
            where=where,
        )
    probabilities = array.astype(np.float64)
    # A float32 softmax has an error of a few rounding units (1.2e-7) per action.
    off = np.abs(probabilities.sum(axis=1) - 1.0)
    if not (off <= 1e-6).all() or not (probabilities >= 0).all():
        raise SpecError(
            f"expected probabilities that sum to 1 in every state; the sum differs from 1 by "
            f"{np.nanmax(off):.3g} in state {int(np.nanargmax(off))}.",
            where=where,
        )
    stray = np.argwhere((probabilities > 0) & ~mdp.available)
    if len(stray):
        raise SpecError(f"action {stray[0][1]} is not available in state {stray[0][0]}.", where=where)
    return probabilities


def _chain(mdp: FiniteMDP, probabilities: Floats) -> tuple[Any, Floats]:
    """The Markov chain under a policy, (S, S), and its expected rewards, (S,)."""
    flat = probabilities.reshape(-1)
    rows = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    # choose[s, (s, a)] = pi(a | s): rows of the distribution are averaged over actions.
    choose = sparse.csr_array((flat, (rows, np.arange(len(flat)))), shape=(mdp.n_states, len(flat)))
    return sparse.csr_array(choose @ mdp.transitions), (probabilities * mdp.rewards).sum(axis=1)


def _solve_linear(distribution: Any, rewards: Floats, discount: float) -> Floats:
    states = len(rewards)
    # (I - discount T) V = R.
    system = sparse.eye_array(states, format="csc") - discount * distribution.tocsc()
    if states <= _SOLVED_DENSE:
        return np.asarray(np.linalg.solve(system.toarray(), rewards), dtype=np.float64)
    return np.asarray(sparse_linalg.spsolve(sparse.csc_array(system), rewards), dtype=np.float64)


def _iterate_values(distribution: Any, rewards: Floats, discount: float) -> Floats:
    values = np.zeros_like(rewards)
    scale = max(1.0, float(np.abs(rewards).max()))
    # A residual of this size gives the requested distance to V.
    target = _attainable(1e-12, scale, discount) * (1.0 - discount)
    while True:
        following: Floats = rewards + discount * (distribution @ values)
        if float(np.abs(following - values).max()) <= target:
            return following
        values = following


def _evaluate_undiscounted(distribution: Any, rewards: Floats) -> Floats:
    """Total rewards. Recurrent classes must have reward 0; the values of all other states are solved for."""
    # Strongly connected classes: an episode leaves a class by an edge to another class, or by termination.
    count, label = csgraph.connected_components(distribution, directed=True, connection="strong")
    edges = distribution.tocoo()
    leaves = np.zeros(count, dtype=np.bool_)
    crossing = label[edges.row] != label[edges.col]
    leaves[label[edges.row[crossing]]] = True
    # A row that sums to less than one terminates with the missing probability; 64 units as for the distributions
    # themselves.
    ends = np.asarray(distribution.sum(axis=1)).reshape(-1) < 1.0 - 64 * np.finfo(np.float64).eps
    leaves[label[ends]] = True
    # States from which the episode never ends have a finite total only if all rewards are 0.
    held = ~leaves[label]
    if (rewards[held] != 0.0).any():
        state = int(np.flatnonzero(held & (rewards != 0.0))[0])
        raise SpecError(
            f"with discount 1, this policy has no finite value: from state {state}, the episode never "
            "ends, and rewards are not 0.",
            where="evaluate_policy",
            remedy="Use a discount below 1.",
        )
    values = np.zeros_like(rewards)
    free = np.flatnonzero(~held)
    if len(free):
        # If the chain ends almost surely, the system with discount 1 is regular.
        values[free] = _solve_linear(sparse.csr_array(distribution[free][:, free]), rewards[free], 1.0)
    return values
