"""Minimal homomorphisms: coarsest, exact, optimal when lifted; approximate ones within their bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mdp_makers import TAXI, coarsest_by_brute_force, laws, planted_mdp, random_mdp
from scipy import sparse

from symcheck import mdp as finite
from symcheck.errors import SpecError, SymcheckError
from symcheck.mdp import minimal
from symcheck.mdp.homomorphism import Homomorphism, from_maps
from symcheck.mdp.refinement import Partition, coarsest_partition
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase

SEEDS = st.integers(0, 2**32 - 1)
WORLDS = {
    "lake": lambda: TabularMDP.from_gymnasium("FrozenLake-v1"),
    "dry lake": lambda: TabularMDP.from_gymnasium("FrozenLake-v1", is_slippery=False),
    "cliff": lambda: TabularMDP.from_gymnasium("CliffWalking-v1"),
    "slippery cliff": lambda: TabularMDP.from_gymnasium("CliffWalkingSlippery-v1"),
    "taxi": lambda: TabularMDP.from_gymnasium(TAXI),
    "chase": torus_chase,
}


def _assert_optimal_values_agree(h: Homomorphism) -> None:
    """Q*(s, a) = Q*_abstract(h(s, a)) on every pair, and the lifted optimal policy is optimal."""
    original, abstract = finite.policy_iteration(h.mdp), finite.policy_iteration(h.abstract_mdp)
    # Both are linear solves; their rounding grows with the horizon 1 / (1 - discount) = 100 and values up to 100.
    np.testing.assert_allclose(h.lift_values(abstract.q_values), original.q_values, atol=1e-9)
    np.testing.assert_allclose(h.lift_values(abstract.values), original.values, atol=1e-9)
    lifted = finite.evaluate_policy(h.mdp, h.lift(abstract.policy))
    np.testing.assert_allclose(lifted, original.values, atol=1e-9)


@pytest.mark.parametrize("world", WORLDS)
def test_abstract_optimal_values_are_the_original_ones(world: str) -> None:
    h = WORLDS[world]().minimal_homomorphism()
    assert h.is_exact
    _assert_optimal_values_agree(h)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, turn=st.sampled_from([2, 3, 4]))
def test_a_planted_symmetry_is_folded_away(seed: int, turn: int) -> None:
    mdp, state_map, action_map = planted_mdp(np.random.default_rng(seed), 9, 4, turn)
    h = mdp.minimal_homomorphism()
    assert (h.state_map[state_map] == h.state_map).all()
    assert (h.action_map[state_map[:, None], action_map] == h.action_map).all()
    _assert_optimal_values_agree(h)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, turn=st.sampled_from([2, 3, 4]))
def test_lifted_policies_are_invariant_under_the_planted_symmetry(seed: int, turn: int) -> None:
    rng = np.random.default_rng(seed)
    mdp, state_map, action_map = planted_mdp(rng, 9, 4, turn)
    h = mdp.minimal_homomorphism()
    abstract = np.where(h.abstract_mdp.available, rng.random((h.abstract_mdp.n_states, h.abstract_mdp.n_actions)), 0)
    lifted = h.lift(abstract / abstract.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(lifted[state_map[:, None], action_map], lifted, atol=1e-15)
    np.testing.assert_allclose(lifted.sum(axis=1), 1.0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, states=st.integers(1, 5), actions=st.integers(1, 2))
def test_no_partition_is_coarser(seed: int, states: int, actions: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), states, actions)
    assert mdp.minimal_homomorphism().abstract_mdp.n_states == coarsest_by_brute_force(mdp)


def test_lifting_divides_mass_over_the_actions_that_are_one() -> None:
    law = np.zeros((1, 3, 1))
    law[0, :, 0] = 1.0
    h = TabularMDP(law, [[1.0, 1.0, 2.0]], 0.5).minimal_homomorphism()
    assert h.action_map.tolist() == [[0, 0, 1]]
    assert h.lift([[0.5, 0.5]]).tolist() == [[0.25, 0.25, 0.5]]


def test_the_grid_world_folds_to_an_eighth() -> None:
    h = torus_chase().minimal_homomorphism()
    assert h.abstract_mdp.n_states == 10
    rows, columns = np.divmod(np.arange(49), 7)
    folded = np.sort(np.abs(np.stack([rows - 3, columns - 3])), axis=0)
    key = folded[0] * 10 + folded[1]
    assert all(len(np.unique(key[block])) == 1 for block in h.blocks)


def test_the_largest_piece_does_not_move_the_others() -> None:
    """A chain with a reward at its end splits one state a round, and 2,000 rounds stay exact."""
    chain = _chain(2_000)
    h = chain.minimal_homomorphism()
    assert h.abstract_mdp.n_states == 2_000
    assert h.is_exact


def _chain(count: int) -> TabularMDP:
    rows = np.arange(2 * count)
    following = np.clip(rows // 2 + np.where(rows % 2 == 0, 1, -1), 0, count - 1)
    rewards = np.zeros((count, 2))
    rewards[-1, 0] = 1.0
    law = sparse.csr_array((np.ones(2 * count), (rows, following)), shape=(2 * count, count))
    return TabularMDP(law, rewards, 0.99)


def test_sums_of_thirds_and_two_thirds_are_one_probability() -> None:
    law = np.zeros((4, 1, 4))
    law[0, 0, [2, 3]] = [1 / 3 + 1 / 3, 1 / 3]
    law[1, 0, [2, 3]] = [2 / 3, 1 - 2 / 3]
    law[2, 0, 2] = law[3, 0, 3] = 1.0
    mdp = TabularMDP(law, [[0.1 + 0.2], [0.3], [1.0], [0.0]], 0.9)
    assert mdp.minimal_homomorphism().state_map.tolist() == [0, 0, 1, 2]


def test_a_probability_off_by_a_billionth_of_one_is_told_apart() -> None:
    law = np.zeros((4, 1, 4))
    law[0, 0, [2, 3]] = [0.5, 0.5]
    law[1, 0, [2, 3]] = [0.5 + 1e-9, 0.5 - 1e-9]
    law[2, 0, 2] = law[3, 0, 3] = 1.0
    mdp = TabularMDP(law, [[0.0], [0.0], [1.0], [0.0]], 0.9)
    assert mdp.minimal_homomorphism().abstract_mdp.n_states == 4


def test_states_with_the_same_set_of_actions_need_not_have_as_many() -> None:
    law = np.ones((2, 2, 1)) * [0.5, 0.5]
    available = np.array([[True, True], [True, False]])
    mdp = TabularMDP(law * available[:, :, None], [[1.0, 1.0], [1.0, 0.0]], 0.9, available=available)
    h = mdp.minimal_homomorphism()
    assert h.state_map.tolist() == [0, 0]
    assert h.action_map.tolist() == [[0, 0], [0, -1]]
    assert h.lift([0]).tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_a_collision_of_hashes_is_noticed_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = coarsest_partition
    salts = []

    def colliding(mdp: TabularMDP, *, tolerance: float, salt: int) -> Partition:
        salts.append(salt)
        found = honest(mdp, tolerance=tolerance, salt=salt)
        return Partition(np.zeros_like(found.state), np.zeros_like(found.pair), 1) if len(salts) == 1 else found

    monkeypatch.setattr(minimal, "coarsest_partition", colliding)
    assert torus_chase().minimal_homomorphism().abstract_mdp.n_states == 10
    assert len(salts) == 2


def test_a_partition_that_is_never_right_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Partition(np.zeros(49, dtype=np.int64), np.zeros(245, dtype=np.uint64), 1)
    monkeypatch.setattr(minimal, "coarsest_partition", lambda mdp, **options: wrong)
    with pytest.raises(SymcheckError, match="the resulting partition is not a homomorphism"):
        torus_chase().minimal_homomorphism()


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, noise=st.sampled_from([1e-3, 1e-2, 0.05]), discount=st.sampled_from([0.5, 0.9, 0.99]))
def test_an_approximate_homomorphism_loses_no_more_than_its_bound(seed: int, noise: float, discount: float) -> None:
    rng = np.random.default_rng(seed)
    clean, _, _ = planted_mdp(rng, 8, 3, 2, discount=discount)
    law = laws(clean) * rng.uniform(1 - noise, 1 + noise, (8, 3, 8))
    noisy = TabularMDP(
        law / law.sum(axis=2, keepdims=True), clean.rewards + rng.uniform(-noise, noise, (8, 3)), discount
    )
    h = noisy.minimal_homomorphism(tolerance=4 * noise)
    optimal = finite.policy_iteration(noisy).values
    abstract = finite.policy_iteration(h.abstract_mdp)
    loss = (optimal - finite.evaluate_policy(noisy, h.lift(abstract.policy))).max()
    assert loss <= h.value_loss_bound() + 1e-9
    gap = np.abs(h.lift_values(abstract.values) - optimal).max()
    assert gap <= h.value_loss_bound() / 2 + 1e-9


def test_noise_below_the_tolerance_keeps_the_fold() -> None:
    rng = np.random.default_rng(0)
    clean = torus_chase()
    noisy = TabularMDP(
        clean.transitions,
        clean.rewards + rng.uniform(-1e-3, 1e-3, clean.rewards.shape),
        0.99,
        terminations=clean.terminations,
    )
    assert noisy.minimal_homomorphism().abstract_mdp.n_states == 49
    folded = noisy.minimal_homomorphism(tolerance=0.01)
    assert folded.abstract_mdp.n_states == 10
    assert not folded.is_exact
    assert 0 < folded.reward_error < 2e-3
    assert "approximate" in folded.summary()


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(SpecError, match="tolerance: expected a finite number"):
        torus_chase(3).minimal_homomorphism(tolerance=tolerance)


def test_maps_that_tear_a_block_are_refused() -> None:
    with pytest.raises(SpecError, match="those of block 0 differ"):
        from_maps(torus_chase(3), np.zeros(9, dtype=int), np.arange(45).reshape(9, 5))
    with pytest.raises(SpecError, match="the state map must have shape"):
        from_maps(torus_chase(3), np.zeros(8, dtype=int), np.zeros((9, 5), dtype=int))


def test_the_start_distribution_is_added_up_over_blocks() -> None:
    h = torus_chase().minimal_homomorphism()
    assert h.abstract_mdp.initial is not None
    np.testing.assert_allclose(h.abstract_mdp.initial, [len(block) / 49 for block in h.blocks], atol=1e-15)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0] * 9, "a policy is an array of actions"),
        ([7] * 10, "expected actions 0..4, got 7 in state 0"),
        (np.full((10, 5), 0.1), "sum to 1 in every state"),
    ],
)
def test_a_policy_that_is_none_cannot_be_lifted(policy: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        torus_chase().minimal_homomorphism().lift(policy)  # type: ignore[arg-type]


def test_an_abstract_action_that_a_block_does_not_have_cannot_be_lifted() -> None:
    h = torus_chase().minimal_homomorphism()
    block, action = np.argwhere(~h.abstract_mdp.available)[0]
    policy = np.zeros(10, dtype=int)
    policy[block] = action
    with pytest.raises(SpecError, match=f"action {action} is not available in state {block}"):
        h.lift(policy)


def test_values_of_another_shape_cannot_be_lifted() -> None:
    with pytest.raises(SpecError, match="values: expected shape"):
        torus_chase().minimal_homomorphism().lift_values(np.zeros(49))


@pytest.mark.slow
def test_a_hundred_thousand_states_fold_within_memory() -> None:
    h = torus_chase(317).minimal_homomorphism()
    assert h.abstract_mdp.n_states == 159 * 160 // 2  # 0 <= column <= row <= 158
    assert h.is_exact
