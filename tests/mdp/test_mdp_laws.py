"""Laws of tabular MDPs: Bellman's equations, limits of policies and samples, homomorphisms, names of groups."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from mdp_makers import random_mdp

from symcheck import groups
from symcheck.errors import OptionError, SpecError
from symcheck.groups.element import Element
from symcheck.mdp import solving
from symcheck.mdp.bounds import value_gap_bound
from symcheck.mdp.from_symmetry import _key, _match_states, tabulate_maps
from symcheck.mdp.group_names import named_group
from symcheck.mdp.homomorphism import EXACT_DISTRIBUTION, exact_reward_error, from_maps, ranked_in_blocks
from symcheck.mdp.minimal import minimal_homomorphism
from symcheck.mdp.reading import check_sums
from symcheck.mdp.sampled import _read_size
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.value_classes import ValueClasses
from symcheck.mdp.worlds import torus_chase
from symcheck.symmetry.symmetry import Symmetry

EPS = float(np.finfo(np.float64).eps)
C2 = groups.cyclic(2)


def dense(mdp: TabularMDP) -> np.ndarray:
    return mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


# --- values


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_iterated_values_are_within_the_bound_that_they_state(discount: float, scale: float) -> None:
    mdp = random_mdp(np.random.default_rng(1), 6, 3, discount=discount)
    scaled = TabularMDP(mdp.transitions, scale * mdp.rewards, discount, terminations=mdp.termination)
    exact = solving.policy_iteration(scaled)
    for tolerance in (1e-1, 1e-4, 1e-10):
        found = solving.value_iteration(scaled, tolerance=tolerance)
        assert 0 <= found.error_bound <= tolerance * max(1.0, 2 * scale)
        rounding = 1e-13 * max(1.0, 2 * scale) / (1 - discount)
        assert np.abs(found.values - exact.values).max() <= found.error_bound + rounding
        np.testing.assert_allclose(found.q_values, solving.q_values(scaled, found.values))
        assert found.policy.tolist() == found.q_values.argmax(axis=1).tolist()
    assert exact.error_bound <= 1e-10 * max(1.0, 2 * scale) / (1 - discount)
    bellman = (scaled.rewards + discount * dense(scaled) @ exact.values).max(axis=1)
    np.testing.assert_allclose(exact.values, bellman, atol=1e-10 * max(1.0, scale))


def test_the_sweeps_of_a_single_state_are_those_of_the_geometric_series() -> None:
    loop = TabularMDP([[[1.0]]], [[1.0]], 0.5)
    # After n sweeps the last change is 2^(1 - n), and so is the bound.
    for tolerance, sweeps in ((0.5, 2), (0.49, 3), (2.0**-9, 10)):
        found = solving.value_iteration(loop, tolerance=tolerance)
        assert (found.iterations, found.error_bound) == (sweeps, 2.0 ** (1 - sweeps))
    with pytest.raises(SpecError, match=r"values still change by 0\.125 after 4 sweeps at discount 0\.5"):
        solving.value_iteration(loop, tolerance=1e-9, max_iterations=4)
    ends = TabularMDP([[[0.0]]], [[3.0]], 1.0, terminations=[[1.0]])
    found = solving.value_iteration(ends)
    assert (found.values.tolist(), found.error_bound) == ([3.0], math.inf)
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(OptionError, match="tolerance: expected a number above 0"):
            solving.value_iteration(loop, tolerance=wrong)


@pytest.mark.parametrize(("discount", "horizon"), [(0.0, 1), (0.5, 2), (0.9, 10), (1.0, 1)])
def test_no_more_is_asked_than_rounding_allows(discount: float, horizon: float) -> None:
    assert solving._attainable(1e-3, 5.0, discount) == pytest.approx(5e-3)
    assert solving._attainable(1e-300, 5.0, discount) == pytest.approx(4 * EPS * 5 * horizon**2)


@pytest.mark.parametrize("method", ["auto", "solve", "iterate"])
@pytest.mark.parametrize("discount", [0.5, 0.95])
def test_every_method_gives_the_values_of_a_random_policy(method: Any, discount: float) -> None:
    rng = np.random.default_rng(2)
    mdp = random_mdp(rng, 5, 3, discount=discount)
    policy = rng.dirichlet(np.ones(3), size=5)
    chain = np.einsum("sa,sat->st", policy, dense(mdp))
    expected = np.linalg.solve(np.eye(5) - discount * chain, (policy * mdp.rewards).sum(axis=1))
    np.testing.assert_allclose(solving.evaluate_policy(mdp, policy, method=method), expected, atol=1e-9)


def test_a_policy_that_improves_too_long_and_one_without_discount_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_mdp(np.random.default_rng(3), 6, 3)
    rounds = solving.policy_iteration(mdp).iterations
    assert solving.policy_iteration(mdp, max_iterations=rounds).iterations == rounds
    if rounds > 1:
        with pytest.raises(SpecError, match=f"still improves after {rounds - 1} rounds"):
            solving.policy_iteration(mdp, max_iterations=rounds - 1)
    with pytest.raises(OptionError, match="discount below 1"):
        solving.policy_iteration(TabularMDP([[[0.0]]], [[3.0]], 1.0, terminations=[[1.0]]))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 2], "expected actions 0..1, got 2 in state 1"),
        ([-1, 0], "expected actions 0..1, got -1 in state 0"),
        ([0.0, 1.0], r"integers of shape \(2,\), or of probabilities of shape \(2, 2\); got shape \(2,\)"),
        ([0], "a policy is an array of actions"),
        ([[0.5, 0.5], [0.5, 0.5 + 1.2e-6]], r"differs from 1 by 1\.2e-06 in state 1"),
        ([[1.1, -0.1], [0.5, 0.5]], "expected probabilities"),
        ([[math.nan, 1], [0.5, 0.5]], "expected probabilities"),
        ([[0.5, 0.5], [1.0, 0.0]], "action 0 is not available in state 1"),
        ([0, 0], "action 0 is not available in state 1"),
    ],
)
def test_what_is_no_policy_names_its_state(policy: Any, message: str) -> None:
    law = np.full((2, 2, 2), 0.5)
    law[1, 0] = 0
    mdp = TabularMDP(law, np.zeros((2, 2)), 0.5, available=[[True, True], [False, True]])
    with pytest.raises(SpecError, match=message):
        solving.read_policy(mdp, policy)
    read = solving.read_policy(mdp, [[0.5, 0.5 + 0.9e-6], [0.0, 1.0]])
    assert read.shape == (2, 2)
    assert solving.read_policy(mdp, [1, 1]).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(("missing", "ends"), [(50 * EPS, False), (100 * EPS, True)])
def test_without_discount_a_chain_ends_where_more_than_rounding_is_missing(missing: float, ends: bool) -> None:
    from scipy import sparse

    chain = sparse.csr_array(np.array([[1.0 - missing]]))
    if ends:
        values = solving._evaluate_undiscounted(chain, np.array([1.0]))
        assert values[0] == pytest.approx(1 / missing, rel=0.1)
    else:
        with pytest.raises(SpecError, match="from state 0, the episode never ends"):
            solving._evaluate_undiscounted(chain, np.array([1.0]))
        assert solving._evaluate_undiscounted(chain, np.array([0.0])).tolist() == [0.0]


def test_without_discount_values_are_the_rewards_collected_on_the_way() -> None:
    # 0 -> 1 -> 2 -> end, and 3 <-> 4 for ever without rewards; 5 leads to 3 or 0.
    law = np.zeros((6, 1, 6))
    law[0, 0, 1] = law[1, 0, 2] = law[3, 0, 4] = law[4, 0, 3] = 1
    law[5, 0, 3] = law[5, 0, 0] = 0.5
    ends = np.array([0, 0, 1, 0, 0, 0.0]).reshape(6, 1)
    mdp = TabularMDP(law, [[1.0], [2.0], [4.0], [0.0], [0.0], [8.0]], 1.0, terminations=ends)
    assert solving.evaluate_policy(mdp, [0] * 6).tolist() == [7, 6, 4, 0, 0, 11.5]
    paid = TabularMDP(law, [[1.0], [2.0], [4.0], [0.0], [-1.0], [8.0]], 1.0, terminations=ends)
    with pytest.raises(SpecError, match="from state 4, the episode never ends"):
        solving.evaluate_policy(paid, [0] * 6)


# --- homomorphisms


@pytest.mark.parametrize("seed", range(4))
def test_the_errors_of_a_homomorphism_are_the_largest_deviations_from_the_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, ending=True)
    block = np.array([0, 0, 1, 1, 2, 2])
    actions = np.stack([rng.permutation(2) for _ in range(6)])
    made = from_maps(mdp, block, actions)
    onto = np.eye(3)[block]
    law, ends = dense(mdp) @ onto, mdp.termination
    reward_gap = law_gap = 0.0
    for b, action in itertools.product(range(3), range(2)):
        pairs = [(s, int(np.flatnonzero(actions[s] == action)[0])) for s in np.flatnonzero(block == b)]
        rewards = np.array([mdp.rewards[p] for p in pairs])
        laws, stops = np.array([law[p] for p in pairs]), np.array([ends[p] for p in pairs])
        reward_gap = max(reward_gap, float(np.abs(rewards - rewards.mean()).max()))
        gaps = np.abs(laws - laws.mean(axis=0)).sum(axis=1) + np.abs(stops - stops.mean())
        law_gap = max(law_gap, float(gaps.max()))
        np.testing.assert_allclose(made.abstract_mdp.rewards[b, action], rewards.mean())
        np.testing.assert_allclose(dense(made.abstract_mdp)[b, action], laws.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(made.abstract_mdp.termination[b, action], stops.mean(), atol=1e-12)
    assert made.reward_error == pytest.approx(reward_gap)
    assert made.transition_error == pytest.approx(law_gap)
    assert not made.is_exact
    assert [some.tolist() for some in made.blocks] == [[0, 1], [2, 3], [4, 5]]
    assert "approximate" in made.summary()
    optimal, lifted = solving.policy_iteration(mdp), made.lift(solving.policy_iteration(made.abstract_mdp).policy)
    loss = optimal.values - solving.evaluate_policy(mdp, lifted)
    assert loss.min() >= -1e-9
    assert loss.max() <= made.value_loss_bound()


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize(("off", "exact"), [(0.9e-9, True), (1.1e-9, False)])
def test_a_homomorphism_is_exact_to_a_billionth_of_the_largest_reward(size: float, off: float, exact: bool) -> None:
    law = np.zeros((2, 1, 2))
    law[:, 0, 0] = 1
    mdp = TabularMDP(law, [[size], [size * (1 - 2 * off)]], 0.5)
    made = from_maps(mdp, np.zeros(2, int), np.zeros((2, 1), int))
    assert made.reward_error == pytest.approx(size * off, rel=1e-5)
    assert made.is_exact == exact
    assert exact_reward_error(mdp) == pytest.approx(1e-9 * size)
    assert EXACT_DISTRIBUTION == 1e-9
    assert (made.value_loss_bound() == 0.0) == exact


def test_a_lift_shares_probability_among_actions_that_are_one() -> None:
    law = np.full((2, 3, 2), 0.5)
    mdp = TabularMDP(law, np.zeros((2, 3)), 0.5)
    made = from_maps(mdp, np.zeros(2, int), np.array([[0, 0, 1], [1, 0, 0]]))
    np.testing.assert_allclose(made.lift([[0.6, 0.4]]), [[0.3, 0.3, 0.4], [0.4, 0.3, 0.3]])
    assert made.lift_values([5.0]).tolist() == [5.0, 5.0]
    assert made.lift_values([[1.0, 2.0]]).tolist() == [[1, 1, 2], [2, 1, 1]]
    with pytest.raises(SpecError, match=r"expected shape \(1,\) or \(1, 2\), got \(2,\)"):
        made.lift_values([1.0, 2.0])
    for wrong in ((np.zeros(3, int), np.zeros((2, 3), int)), (np.zeros(2, int), np.zeros((2, 2), int))):
        with pytest.raises(SpecError, match="the state map must have shape"):
            from_maps(mdp, *wrong)
    with pytest.raises(SpecError, match="those of block 0 differ"):
        from_maps(mdp, np.zeros(2, int), np.array([[0, 0, 1], [0, 0, 0]]))
    with pytest.raises(SpecError, match="those of block 1 differ"):
        from_maps(mdp, np.array([0, 2]), np.zeros((2, 3), int))


def test_classes_are_ranked_by_their_first_pair_within_each_block() -> None:
    block = np.array([0, 1, 0])
    classes = np.array([[7, 3, -1], [9, 9, 4], [3, 7, 7]])
    assert ranked_in_blocks(block, classes).tolist() == [[0, 1, -1], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("tolerance", [-1e-9, math.inf, math.nan, "0"])
def test_tolerances_are_finite_and_not_negative(tolerance: Any) -> None:
    with pytest.raises(SpecError, match="tolerance: expected a finite number of at least 0"):
        minimal_homomorphism(torus_chase(3), tolerance=tolerance)


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_states_within_the_tolerance_become_one_block(tolerance: float) -> None:
    law = np.zeros((3, 1, 3))
    law[:, 0, 0] = 1
    mdp = TabularMDP(law, [[1.0], [1.04], [1.2]], 0.5)
    made = minimal_homomorphism(mdp, tolerance=tolerance)
    assert made.abstract_mdp.n_states == (3 if tolerance == 0 else 2)
    assert ("tolerance" in made.origin) == (tolerance > 0)


# --- symmetries


def test_maps_are_tabulated_generator_by_generator_and_follow_observations() -> None:
    mdp = TabularMDP(np.full((3, 2, 3), 1 / 3), np.zeros((3, 2)), 0.5)
    swap = Symmetry("swap", C2, [[2, 1, 0]], [[1, 0]])
    states, actions = tabulate_maps(mdp, swap, None)
    assert states.tolist() == [[2, 1, 0]]
    assert actions.tolist() == [[[1, 0]] * 3]
    mirror = Symmetry("mirror", C2, [[-1]], [lambda a, obs: 1 - a if obs[0] else a])
    states, actions = tabulate_maps(mdp, mirror, [[-1.0], [0.0], [1.0]])
    assert states.tolist() == [[2, 1, 0]]
    assert actions.tolist() == [[[1, 0], [0, 1], [1, 0]]]
    for wrong in ([[0.0], [0.0], [1.0]], [[0.0], [1.0]]):
        with pytest.raises(SpecError, match=r"expected 3 distinct observations, one per state; got \d of which 2"):
            tabulate_maps(mdp, mirror, wrong)
    with pytest.raises(
        SpecError, match=r"m maps state 1 to an observation that no state has \(2 states are affected\)"
    ):
        _match_states(np.array([0.0, 1.0, 2.0]), np.array([0.0, -1.0, -2.0]), "m")


@pytest.mark.parametrize(("off", "same"), [(0.4e-9, True), (0.6e-9, False)])
def test_observations_are_looked_up_to_half_a_billionth(off: float, same: bool) -> None:
    assert (_key(np.array([1.0])) == _key(np.array([1.0 + off]))) == same
    assert _key(np.float32(-0.0)) == _key(0)


CYCLE, FLIP = Element((1, 2, 3, 4, 0)), Element((0, 4, 3, 2, 1))


@pytest.mark.parametrize(
    ("generators", "order", "name"),
    [
        ([Element((0, 1, 2))], 1, "C1"),
        ([Element((1, 0, 2, 3))], 2, "C2"),
        ([CYCLE], 5, "C5"),
        ([CYCLE, FLIP], 10, "D5"),
        ([FLIP, CYCLE * FLIP], 10, "D5"),
        ([Element((1, 0, 2, 3)), Element((0, 1, 3, 2))], 4, "C2 x C2"),
        ([Element((1, 0, 2, 3, 4, 5)), Element((0, 1, 3, 2, 4, 5)), Element((0, 1, 2, 3, 5, 4))], 8, "C2^3"),
        ([Element((1, 2, 0)), Element((1, 0, 2))], 6, "D3"),
        ([Element((1, 2, 0, 3, 4)), Element((0, 1, 2, 4, 3))], 6, "C6"),
        ([Element((1, 2, 0, 3)), Element((0, 2, 3, 1))], 12, "order 12"),
        ([Element((1, 2, 3, 0, 4, 5)), Element((0, 1, 2, 3, 5, 4))], 8, "order 8"),
    ],
)
def test_groups_are_named_by_what_they_are(generators: list[Element], order: int, name: str) -> None:
    group = named_group(generators, order)
    assert (group.name, group.order) == (name, order)
    assert len(group.elements()) == order


@pytest.mark.parametrize(("points", "name"), [(500, "C500"), (501, "order 501")])
def test_groups_are_recognised_up_to_order_500(points: int, name: str) -> None:
    assert named_group([Element((*range(1, points), 0))], points).name == name


# --- sources


@pytest.mark.parametrize(("given", "largest", "size"), [(None, 4, 5), (5, 4, 5), (9, 4, 9)])
def test_sizes_are_above_the_largest_index(given: int | None, largest: int, size: int) -> None:
    assert _read_size(given, largest, "n_states") == size
    for wrong in (largest, largest - 1):
        with pytest.raises(SpecError, match=f"n_states: expected a number above the largest index .* {largest}; got"):
            _read_size(wrong, largest, "n_states")


def test_samples_are_relative_frequencies_and_means_of_each_pair() -> None:
    rng = np.random.default_rng(0)
    s, a, t = rng.integers(0, 3, 200), rng.integers(0, 2, 200), rng.integers(0, 3, 200)
    rewards, ended = rng.normal(size=200), rng.random(200) < 0.2
    mdp = TabularMDP.from_samples(s, a, rewards, t, ended, discount=0.9)
    assert mdp.counts is not None
    for i, j in itertools.product(range(3), range(2)):
        here = (s == i) & (a == j)
        assert mdp.counts[i, j] == here.sum()
        assert mdp.rewards[i, j] == pytest.approx(rewards[here].mean())
        expected = [(here & (t == k) & ~ended).sum() / here.sum() for k in range(3)]
        np.testing.assert_allclose(dense(mdp)[i, j], expected)
        assert mdp.termination[i, j] == pytest.approx((here & ended).sum() / here.sum())


def test_a_start_that_is_listed_twice_weighs_twice_and_ends_stay_where_they_are() -> None:
    def outcomes(state: int, action: int) -> list[tuple[float, int, float, bool]]:
        return [(0.25, state + 1, 4.0, state + 1 == 3), (0.75, 0, 8.0 * action, False)]

    mdp = TabularMDP.from_model([1, 1, 0], 2, outcomes, discount=0.5, initial="uniform")
    assert mdp.labels == (1, 0, 2, 3)
    np.testing.assert_allclose(mdp.initial, [2 / 3, 1 / 3, 0, 0])
    assert mdp.rewards.tolist() == [[1, 7], [1, 7], [1, 7], [0, 0]]
    assert mdp.termination.tolist() == [[0, 0], [0, 0], [0.25, 0.25], [0, 0]]
    assert dense(mdp)[3].tolist() == [[0, 0, 0, 1]] * 2
    with pytest.raises(SpecError, match=r"more than 2 states can be reached"):
        TabularMDP.from_model([1, 1, 0], 2, outcomes, discount=0.5, limit=2)
    assert TabularMDP.from_model([1, 1, 0], 2, outcomes, discount=0.5, limit=4).n_states == 4
    for start, actions in (([], 2), ([0], 0)):
        with pytest.raises(SpecError, match="expected at least one start state and one action"):
            TabularMDP.from_model(start, actions, outcomes, discount=0.5)


@pytest.mark.parametrize("moves", [0.0, 0.15, 1.0])
def test_the_chase_is_that_of_its_rules(moves: float) -> None:
    size = 3
    mdp = torus_chase(size, prey_moves=moves, discount=0.9)
    steps = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)]
    for state, action in itertools.product(range(9), range(5)):
        law, ends = np.zeros(9), 0.0
        for k, prey in enumerate(steps):
            chance = 1 - moves if k == 0 else moves / 4
            row = (state // size + steps[action][0] - prey[0]) % size
            column = (state % size + steps[action][1] - prey[1]) % size
            if (row, column) == (1, 1):
                ends += chance
            else:
                law[row * size + column] += chance
        np.testing.assert_allclose(dense(mdp)[state, action], law, atol=1e-15)
        assert mdp.termination[state, action] == pytest.approx(ends)
        assert mdp.rewards[state, action] == pytest.approx(ends * 1.0 + (1 - ends) * -0.1)
    assert mdp.initial == pytest.approx(np.full(9, 1 / 9))
    for size, wrong in ((2, 0.1), (1, 0.1), (4, 0.1), (3, -0.1), (3, 1.1)):
        with pytest.raises(OptionError):
            torus_chase(size, prey_moves=wrong)


def test_a_total_variation_is_at_most_one_and_a_distance_may_be_larger() -> None:
    assert value_gap_bound(0.5, 1.0, 0.5, value_span=2.0) == 0.5 / 0.5 + 0.5 * 2 / 0.5
    assert value_gap_bound(0.0, 3.0, 0.5, lipschitz=2.0) == 0.5 * 3 * 2 / 0.5
    assert value_gap_bound(0.0, 1.0, 0.75, reward_range=2.0) == 0.75 * (2 / 0.25) / 0.25
    assert value_gap_bound(0.0, 0.5, 0.5, reward_range=9.0, value_span=1.0) == 0.5
    for arguments, given in (((0.0, 1.001, 0.5), {"value_span": 1.0}), ((0.0, 0.5, 0.5), {})):
        with pytest.raises(OptionError):
            value_gap_bound(*arguments, **given)


@pytest.mark.parametrize("chained", [True, False])
def test_numbers_join_the_class_below_and_above_them_at_every_place(chained: bool) -> None:
    classes = ValueClasses(1.0, chained=chained)
    assert classes.of(np.array([0.0, 5.0, 9.0])).tolist() == [0, 1, 2]
    for at, number in ((0.0, 0), (5.0, 1), (9.0, 2)):
        for off in (-1.0, -0.5, 0.5, 1.0):
            assert classes.of(np.array([at + off])).tolist() == [number]
    alone = ValueClasses(1.0, chained=chained)
    alone.of(np.array([3.0]))
    assert alone.of(np.array([2.5, 3.5, 1.5])).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("unit", "longest", "least"), [(EPS, 3, 1e-12), (1e-7, 3, 64e-7), (1e-7, 64, 64e-7), (1e-7, 100, 100e-7)]
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_distributions_sum_to_one_up_to_the_rounding_of_their_dtype(
    unit: float, longest: int, least: float, sign: int
) -> None:
    available = np.array([[True, True], [False, True]])
    total = np.array([[1.0, 1.0], [0.0, 1.0]])
    total[1, 1] += 0.9 * sign * least
    check_sums(total, available, longest, unit)
    total[1, 1] = 1 + 1.1 * sign * least
    too = "large" if sign > 0 else "small"
    with pytest.raises(SpecError, match=rf"1 row does not sum to 1\. .* action 1 in state 1, .* too {too}"):
        check_sums(total, available, longest, unit)
    total[1] = 1e-3, 1.0
    total[0, 0] = 1.5
    with pytest.raises(
        SpecError, match=r"2 rows do not sum to 1\. The worst .* state 0, whose sum is 1\.5 \(0\.5 too large\)"
    ):
        check_sums(total, available, longest, unit)
    total[0] = 0.0, 1.0
    with pytest.raises(SpecError, match="action 0 has no outcome in state 0: its distribution sums to 0"):
        check_sums(total, available, longest, unit)
