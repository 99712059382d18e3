"""Tools of tabular MDPs by themselves: brute force, and limits from both sides."""

import itertools

import numpy as np
import pytest

from symcheck.errors import OptionError, SpecError
from symcheck.mdp.bounds import lifted_policy_loss_bound, value_gap_bound
from symcheck.mdp.refinement import _numbered_by_lowest, _unique
from symcheck.mdp.solving import evaluate_policy, policy_iteration, q_values, value_iteration
from symcheck.mdp.sparse_rows import (
    gather_rows,
    hash_pairs,
    mix_bits,
    orbit_labels,
    renumber,
    row_of_entry,
    row_sums,
)
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.value_classes import ValueClasses

RNG = np.random.default_rng(0)


def test_classes_chain_rounding_or_stay_within_their_width():
    values = np.array([0.0, 0.9, 1.8, 5.0, 6.0, 6.1])
    assert ValueClasses(1.0).of(values).tolist() == [0, 0, 0, 1, 1, 1]
    narrow = ValueClasses(1.0, chained=False)
    assert narrow.of(values).tolist() == [0, 0, 1, 2, 2, 3]
    # Numbers join the classes that are there, the older one of two.
    assert narrow.of(np.array([1.0, 1.5, 4.0, 3.9, 7.1, 7.2])).tolist() == [0, 1, 2, 4, 3, 5]
    assert narrow.of(values).tolist() == [0, 0, 1, 2, 2, 3]
    assert ValueClasses(1.0).of(np.array([3.0, 1.0, 3.5])).tolist() == [1, 0, 1]
    for off, classes in ((1.0, 1), (1.0000001, 2)):
        assert len(set(ValueClasses(1.0).of(np.array([0.0, off])).tolist())) == classes


def test_rows_are_gathered_summed_and_numbered_as_loops_do():
    lengths = np.array([2, 0, 3, 1, 0])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    positions, pointers = gather_rows(indptr, np.array([3, 2, 1, 2]))
    assert positions.tolist() == [5, 2, 3, 4, 2, 3, 4]
    assert pointers.tolist() == [0, 1, 4, 4, 7]
    assert row_of_entry(indptr).tolist() == [0, 0, 2, 2, 2, 3]
    hashes = mix_bits(np.arange(6))
    assert row_sums(hashes, indptr).tolist() == [
        sum(int(h) for h in hashes[a:b]) % 2**64 for a, b in itertools.pairwise(indptr)
    ]
    assert renumber(np.array([5, 2, 5, 9, 2])).tolist() == [0, 1, 0, 2, 1]
    assert _numbered_by_lowest(np.array([2, 0, 2, 1])).tolist() == [0, 1, 0, 2]
    for numbers in (np.array([3, 1, 3]), RNG.integers(0, 50, 40)):
        for limit in (50, 10_000):
            assert _unique(numbers, limit).tolist() == sorted(set(numbers.tolist()))


def test_hashes_tell_orders_and_salts_apart():
    a, b = np.arange(200), np.arange(200)[::-1]
    seen = {int(h) for salt in range(3) for h in mix_bits(a, salt)}
    assert len(seen) == 600
    assert not set(hash_pairs(a, a + 1).tolist()) & set(hash_pairs(a + 1, a).tolist())
    assert len({*hash_pairs(a, b, 0).tolist(), *hash_pairs(a, b, 1).tolist(), *hash_pairs(a, a, 0).tolist()}) == 600
    # splitmix64's first numbers of seed 0
    assert mix_bits(np.array([0])).tolist() == [0xE220A8397B1DCDAF]


def test_orbits_are_those_of_the_group_that_permutations_generate():
    for _ in range(10):
        images = np.stack([RNG.permutation(8) for _ in range(2)])
        labels = orbit_labels(images)
        reached = [{k} for k in range(8)]
        for _ in range(8):
            reached = [set().union(*({*s, *(int(g[k]) for g in images for k in s)} for s in [r])) for r in reached]
        for i, j in itertools.product(range(8), repeat=2):
            assert (labels[i] == labels[j]) == (j in reached[i])
    assert orbit_labels(np.array([[1, 0, 2, 4, 3]])).tolist() == [0, 0, 1, 2, 2]


def _mdp(discount, *, states=4, actions=3):
    T = RNG.random((states, actions, states)) ** 3
    T /= T.sum(-1, keepdims=True)
    return TabularMDP(T, RNG.normal(size=(states, actions)), discount)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95])
def test_optimal_values_are_those_of_the_best_of_all_policies(discount):
    mdp = _mdp(discount)
    T, R = mdp.transitions.toarray().reshape(4, 3, 4), mdp.rewards
    policies = list(itertools.product(range(3), repeat=4))

    def values_of(policy):
        rows = np.arange(4)
        return np.linalg.solve(np.eye(4) - discount * T[rows, policy], R[rows, policy])

    best = np.max([values_of(list(p)) for p in policies], axis=0)
    for solved in (value_iteration(mdp), policy_iteration(mdp)):
        np.testing.assert_allclose(solved.values, best, atol=1e-9)
        np.testing.assert_allclose(solved.q_values, R + discount * T @ best, atol=1e-9)
        np.testing.assert_allclose(values_of(solved.policy), best, atol=1e-9)
        assert np.abs(solved.values - best).max() <= solved.error_bound + 1e-12
        assert solved.error_bound < 1e-8
    coarse = value_iteration(mdp, tolerance=0.05)
    assert np.abs(coarse.values - best).max() <= coarse.error_bound <= 0.05 * max(1.0, np.abs(R).max())
    assert coarse.iterations <= value_iteration(mdp).iterations
    for policy in policies[::17]:
        wanted = values_of(list(policy))
        for method in ("auto", "solve", "iterate"):
            np.testing.assert_allclose(evaluate_policy(mdp, policy, method=method), wanted, atol=1e-9)
    mixed = RNG.dirichlet(np.ones(3), size=4)
    chain, reward = np.einsum("sa,sat->st", mixed, T), (mixed * R).sum(1)
    np.testing.assert_allclose(
        evaluate_policy(mdp, mixed), np.linalg.solve(np.eye(4) - discount * chain, reward), atol=1e-9
    )
    np.testing.assert_allclose(q_values(mdp, best), R + discount * T @ best)


def test_what_cannot_be_solved_is_refused():
    mdp = _mdp(0.9)
    for wrong in (np.zeros(3), np.zeros((4, 1))):
        with pytest.raises(SpecError, match=r"one value per state, shape \(4,\)"):
            q_values(mdp, wrong)
    for tolerance in (0.0, -1.0, float("nan")):
        with pytest.raises(OptionError, match="expected a number above 0"):
            value_iteration(mdp, tolerance=tolerance)
    with pytest.raises(SpecError, match=r"after 3 sweeps at discount 0\.9"):
        value_iteration(mdp, max_iterations=3)
    with pytest.raises(OptionError, match="needs a discount below 1"):
        policy_iteration(_mdp(1.0))


def test_bounds_are_those_of_their_formulas_and_their_arguments_are_checked():
    assert value_gap_bound(0.5, 0.25, 0.75, value_span=4.0) == (0.5 + 0.75 * 0.25 * 4.0) / 0.25
    assert value_gap_bound(0.5, 0.25, 0.75, reward_range=4.0) == (0.5 + 0.75 * 0.25 * 16.0) / 0.25
    assert value_gap_bound(0.5, 0.25, 0.75, reward_range=4.0, value_span=2.0) == (0.5 + 0.75 * 0.25 * 2.0) / 0.25
    assert value_gap_bound(0.5, 8.0, 0.75, lipschitz=2.0, value_span=9.0) == (0.5 + 0.75 * 8.0 * 2.0) / 0.25
    assert value_gap_bound(0.5, 1.0, 0.0, value_span=1.0) == 0.5
    assert lifted_policy_loss_bound(0.5, 0.25, 0.75, abstract_value_span=4.0) == 2 * (0.5 + 0.75 * 4.0 * 0.125) / 0.25
    for arguments in (
        (-1e-9, 0.0, 0.5), (float("inf"), 0.0, 0.5), (float("nan"), 0.0, 0.5), (0.0, -0.1, 0.5),
        (0.0, 0.0, 1.0), (0.0, 0.0, -0.1),
        (0.0, 0.1, 0.5), ("a", 0.0, 0.5),
    ):  # fmt: skip
        with pytest.raises(OptionError):
            value_gap_bound(*arguments)
    with pytest.raises(OptionError, match="half the L1 distance"):
        value_gap_bound(0.0, 1.0000001, 0.5, value_span=1.0)
    for name in ("reward_range", "value_span", "lipschitz"):
        with pytest.raises(OptionError, match=name):
            value_gap_bound(0.0, 0.1, 0.5, **{name: -1.0})
