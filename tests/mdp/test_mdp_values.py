"""Bellman's equations: iteration against exact solves, and what has no finite value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mdp_makers import laws, random_mdp

from symcheck.errors import OptionError, SpecError
from symcheck.mdp import solving
from symcheck.mdp.solving import evaluate_policy, policy_iteration, q_values, value_iteration
from symcheck.mdp.tabular import TabularMDP

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, discount=st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_iterating_values_and_policies_agree_within_the_bound_given(seed: int, discount: float) -> None:
    mdp = random_mdp(np.random.default_rng(seed), 7, 3, discount=discount)
    by_values, by_policies = value_iteration(mdp), policy_iteration(mdp)
    assert by_values.error_bound <= 2e-10
    gap = np.abs(by_values.values - by_policies.values).max()
    assert gap <= by_values.error_bound + 1e-12 / (1 - discount)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_optimal_values_satisfy_bellman_s_equation(seed: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), 6, 3)
    optimal = policy_iteration(mdp)
    expected = mdp.rewards + 0.9 * laws(mdp) @ optimal.q_values.max(axis=1)
    np.testing.assert_allclose(optimal.q_values, expected, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, method=st.sampled_from(["solve", "iterate"]))
def test_a_policy_s_values_are_those_of_the_linear_solve(seed: int, method: str) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3)
    policy = rng.random((6, 3))
    policy /= policy.sum(axis=1, keepdims=True)
    chain = np.einsum("sa,sat->st", policy, laws(mdp))
    expected = np.linalg.solve(np.eye(6) - 0.9 * chain, (policy * mdp.rewards).sum(axis=1))
    np.testing.assert_allclose(evaluate_policy(mdp, policy, method=method), expected, atol=1e-10)  # type: ignore[arg-type]


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_no_policy_beats_the_optimal_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 5, 3)
    best = policy_iteration(mdp).values
    for _ in range(5):
        assert (evaluate_policy(mdp, rng.integers(0, 3, 5)) <= best + 1e-10).all()


def test_sparse_and_dense_solves_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_mdp(np.random.default_rng(1), 30, 2)
    dense = evaluate_policy(mdp, np.zeros(30, dtype=int))
    monkeypatch.setattr(solving, "_SOLVED_DENSE", 1)
    np.testing.assert_allclose(evaluate_policy(mdp, np.zeros(30, dtype=int)), dense, atol=1e-12)


def test_what_follows_an_end_is_worth_nothing() -> None:
    mdp = TabularMDP([[[0.5]]], [[1.0]], 1.0, terminations=[[0.5]])
    assert evaluate_policy(mdp, [0]).tolist() == [2.0]
    assert value_iteration(mdp).values[0] == pytest.approx(2.0, abs=1e-9)


def test_a_way_that_pays_may_lead_to_a_place_where_nothing_pays_forever() -> None:
    along = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])[:, None, :]
    mdp = TabularMDP(along, [[1.0], [2.0], [0.0]], 1.0)
    assert evaluate_policy(mdp, [0, 0, 0]).tolist() == [3.0, 2.0, 0.0]


def test_walking_along_the_cliff_costs_thirteen_steps() -> None:
    mdp = TabularMDP.from_gymnasium("CliffWalking-v1", discount=1.0)
    optimal = value_iteration(mdp)
    assert optimal.values[36] == -13.0
    assert optimal.error_bound == math.inf
    assert evaluate_policy(mdp, optimal.policy)[36] == -13.0


def test_without_discount_staying_for_nothing_is_worth_nothing() -> None:
    stay = np.eye(2)[:, None, :]
    assert evaluate_policy(TabularMDP(stay, [[0.0], [0.0]], 1.0), [0, 0]).tolist() == [0.0, 0.0]
    with pytest.raises(SpecError, match="no finite value: from state 1"):
        evaluate_policy(TabularMDP(stay, [[0.0], [1.0]], 1.0), [0, 0])


def test_values_that_do_not_settle_are_an_error() -> None:
    mdp = TabularMDP([[[1.0]]], [[1.0]], 1.0)
    with pytest.raises(SpecError, match="values still change by 1 after 50 sweeps at discount 1"):
        value_iteration(mdp, max_iterations=50)
    with pytest.raises(OptionError, match="policy iteration needs a discount below 1"):
        policy_iteration(mdp)
    with pytest.raises(OptionError, match="tolerance: expected a number above 0"):
        value_iteration(mdp, tolerance=0.0)


def test_unavailable_actions_are_never_taken() -> None:
    law = np.array([[[1.0], [0.0]]])
    mdp = TabularMDP(law, [[1.0, 9.0]], 0.5, available=np.array([[True, False]]))
    optimal = value_iteration(mdp)
    assert optimal.policy.tolist() == [0]
    assert optimal.q_values[0, 1] == -np.inf
    with pytest.raises(SpecError, match="action 1 is not available in state 0"):
        evaluate_policy(mdp, [1])


def test_values_of_another_length_are_refused() -> None:
    with pytest.raises(SpecError, match=r"values: expected one value per state, shape \(1,\), got \(2,\)"):
        q_values(TabularMDP([[[1.0]]], [[1.0]], 0.5), [0.0, 1.0])


def test_a_state_that_some_action_may_end_is_not_absorbing() -> None:
    """Both actions of state 0 lead nowhere else and pay nothing, but one ends half of the time; 1 has no way out."""
    law, ends = np.zeros((2, 2, 2)), np.zeros((2, 2))
    law[0, :, 0], law[1, :, 1] = (1.0, 0.5), 1.0
    ends[0, 1] = 0.5
    assert TabularMDP(law, np.zeros((2, 2)), 0.9, terminations=ends).absorbing.tolist() == [False, True]
