"""Automorphism groups: against brute force, with planted symmetries, and of the worlds that are known."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mdp_makers import TAXI, counted_by_brute_force, laws, planted_mdp, random_mdp
from scipy import sparse

import symcheck as sc
from symcheck.errors import MissingExtraError, SpecError, SymcheckError
from symcheck.mdp import automorphisms, search_builtin, search_igraph
from symcheck.mdp.automorphisms import find_automorphisms
from symcheck.mdp.homomorphism import from_maps
from symcheck.mdp.structure import reduce_mdp
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase

METHODS = [
    "builtin",
    pytest.param("igraph", marks=pytest.mark.skipif(not search_igraph.is_installed(), reason="extra")),
]
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, states=st.integers(1, 5), actions=st.integers(1, 3))
def test_the_order_is_that_of_brute_force(method: str, seed: int, states: int, actions: int) -> None:
    mdp = random_mdp(np.random.default_rng(seed), states, actions)
    assume(not mdp.absorbing.any())
    group = mdp.automorphism_group(method=method)
    assert group.order == counted_by_brute_force(mdp)
    assert ("no symmetry except the identity" in group.summary()) == (group.order == 1)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, turn=st.sampled_from([2, 3, 4]))
def test_a_planted_symmetry_is_found_with_its_state_dependent_actions(method: str, seed: int, turn: int) -> None:
    mdp, state_map, action_map = planted_mdp(np.random.default_rng(seed), 9, 4, turn)
    found = mdp.automorphism_group(method=method)
    assert found.order % turn == 0
    assert (found.orbit_map[state_map] == found.orbit_map).all()
    images = found.pair_orbit_map[state_map[:, None], action_map]
    assert (images == found.pair_orbit_map).all()


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, turn=st.sampled_from([2, 3, 4]))
def test_every_generator_keeps_rewards_and_laws_pair_by_pair(seed: int, turn: int) -> None:
    mdp, _, _ = planted_mdp(np.random.default_rng(seed), 8, 3, turn)
    found = mdp.automorphism_group()
    table = laws(mdp)
    for s_map, a_map in zip(found.state_maps, found.action_maps, strict=True):
        for s in range(mdp.n_states):
            for a in range(mdp.n_actions):
                assert mdp.rewards[s_map[s], a_map[s, a]] == pytest.approx(mdp.rewards[s, a], abs=1e-12)
                np.testing.assert_allclose(table[s_map[s], a_map[s, a], s_map], table[s, a], atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_action_maps_compose_as_the_paper_asks(seed: int) -> None:
    """K_gh^s = K_g^{hs} K_h^s for the elements of an order-3 group, through the group's own words."""
    mdp, _, _ = planted_mdp(np.random.default_rng(seed), 9, 3, 3)
    found = mdp.automorphism_group()
    symmetry = found.symmetry()
    bound = symmetry.bind(*_spaces(mdp))
    turn = found.group.generators[0]
    word = found.group.word(turn * turn)
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            once = found.action_maps[0][s, a]
            assert (
                int(bound.action(word, np.int64(a), np.int64(s))) == found.action_maps[0][found.state_maps[0][s], once]
            )


def _spaces(mdp: TabularMDP) -> tuple[object, object]:
    from gymnasium import spaces

    return spaces.Discrete(mdp.n_states), spaces.Discrete(mdp.n_actions)


@pytest.mark.parametrize("method", METHODS)
def test_the_grid_world_has_the_whole_dihedral_group(method: str) -> None:
    found = torus_chase().automorphism_group(method=method)
    assert (found.name, found.order, len(found.orbits)) == ("D4", 8, 10)
    assert found.verdict == "proved"
    assert found.preserves_initial


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", TAXI])
def test_the_default_toy_texts_have_no_symmetry(name: str, method: str) -> None:
    assert TabularMDP.from_gymnasium(name).automorphism_group(method=method).order == 1


@pytest.mark.parametrize("method", METHODS)
def test_an_open_lake_is_symmetric_about_its_diagonal(method: str) -> None:
    lake = TabularMDP.from_gymnasium("FrozenLake-v1", desc=["SFFF", "FFFF", "FFFF", "FFFG"])
    found = lake.automorphism_group(method=method)
    assert (found.name, found.preserves_initial) == ("C2", True)
    transposed = np.arange(16).reshape(4, 4).T.reshape(-1)
    np.testing.assert_array_equal(found.state_maps[0], transposed)


def test_taxi_has_no_symmetry_once_its_interchangeable_actions_are_merged() -> None:
    """4e210 exchanges over all 500 states, as the raw group of the whole table has; episodes act in 400 of them."""
    taxi = TabularMDP.from_gymnasium(TAXI)
    everywhere = TabularMDP(taxi.transitions, taxi.rewards, 0.99, terminations=taxi.terminations)
    found = everywhere.automorphism_group()
    assert (found.order, int(found.counted.sum())) == (1, 500)
    assert f"{found.interchanges:.0e}" == "4e+210"
    assert taxi.automorphism_group().interchanges < found.interchanges


def test_interchangeable_actions_do_not_count() -> None:
    law = np.zeros((2, 3, 2))
    law[0, :, 1] = law[1, :, 0] = 1.0
    twins = TabularMDP(law, [[1.0, 1.0, 2.0], [0.0, 0.0, 5.0]], 0.9)
    found = twins.automorphism_group()
    assert (found.order, found.interchanges) == (1, 4)


def test_actions_are_matched_one_to_one() -> None:
    """Two copies of an action in one state and one in the other are equivalent, but no symmetry."""
    law = np.zeros((2, 3, 2))
    law[0, :, 1] = law[1, :, 0] = 1.0
    uneven = TabularMDP(law, [[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]], 0.9)
    assert uneven.automorphism_group().order == 1
    assert uneven.minimal_homomorphism().abstract_mdp.n_states == 1


def test_unreachable_and_absorbing_states_do_not_count() -> None:
    law = np.zeros((5, 1, 5))
    law[0, 0, [1, 2]] = 0.5
    law[1, 0, 3] = law[2, 0, 3] = law[3, 0, 3] = 1.0  # 3 is absorbing; 4 is never reached
    law[4, 0, 0] = 1.0
    mdp = TabularMDP(law, [[0.0], [1.0], [1.0], [0.0], [7.0]], 0.9, initial=0)
    found = mdp.automorphism_group()
    assert found.counted.tolist() == [True, True, True, False, False]
    assert (found.order, found.state_maps.tolist()) == (2, [[0, 2, 1, 3, 4]])


def test_the_start_is_kept_only_when_asked() -> None:
    law = np.zeros((2, 1, 2))
    law[0, 0, 1] = law[1, 0, 0] = 1.0
    mdp = TabularMDP(law, [[1.0], [1.0]], 0.9, initial=0)
    free = mdp.automorphism_group()
    assert (free.order, free.preserves_initial) == (2, False)
    assert mdp.automorphism_group(preserve_initial=True).order == 1


def test_final_states_move_along_where_they_can() -> None:
    lake = TabularMDP.from_gymnasium("FrozenLake-v1", desc=["SFFF", "FFHF", "FHFF", "FFFG"])
    found = lake.automorphism_group()
    assert found.moves_ends
    assert found.state_maps[0][[6, 9, 15]].tolist() == [9, 6, 15]


def test_a_claim_about_an_environment_keeps_what_the_environment_shows() -> None:
    """Values know a second symmetry of this lake, which no map of its holes can follow; the claim leaves it out."""
    lake = TabularMDP.from_gymnasium("FrozenLake-v1", desc=["SFHF", "FFFF", "HFFF", "FFFG"])
    found = lake.automorphism_group()
    assert (found.order, found.moves_ends) == (4, False)
    symmetry = found.symmetry("transpose")
    assert symmetry.group.order == 2
    import gymnasium as gym

    report = sc.verify_env(lambda: gym.make("FrozenLake-v1", desc=["SFHF", "FFFF", "HFFF", "FFFG"]), symmetry)
    verdicts = {p.name: (p.verdict, p.method) for p in report.results[0].properties}
    assert verdicts["transition_invariance"] == ("proved", "exact")
    assert report.verdict != "failed"


def test_a_claim_that_no_end_can_follow_is_refused() -> None:
    law = np.zeros((4, 1, 4))
    ends = np.zeros((4, 1, 4))
    law[0, 0, [1, 2]] = 0.5
    ends[1, 0, 3] = 1.0
    ends[2, 0, 3] = 0.5
    ends[2, 0, 0] = 0.5  # 1 and 2 are worth the same, but 2 also ends in state 0
    law[3, 0, 3] = 1.0
    mdp = TabularMDP(law, [[0.0], [1.0], [1.0], [0.0]], 0.9, 0, terminations=ends)
    found = mdp.automorphism_group()
    assert (found.order, found.moves_ends) == (2, False)
    with pytest.raises(SpecError, match="does not extend to the states"):
        found.symmetry()
    assert found.homomorphism().is_exact


@pytest.mark.parametrize("method", METHODS)
def test_states_that_have_other_actions_by_number_are_matched(method: str) -> None:
    """States 0 and 1 have two actions each: 0 and 1 here, 1 and 2 there, with the same rewards."""
    law, available = np.zeros((2, 3, 2)), np.array([[True, True, False], [False, True, True]])
    law[0, :2, 1] = law[1, 1:, 0] = 1.0
    mdp = TabularMDP(law, [[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]], 0.9, available=available)
    found = mdp.automorphism_group(method=method)
    assert (found.order, found.state_maps.tolist()) == (2, [[1, 0]])
    assert found.action_maps[0].tolist() == [[1, 2, 0], [2, 0, 1]]
    assert found.homomorphism().abstract_mdp.available.sum() == 2


def test_one_permutation_of_the_actions_is_preferred_so_that_the_claim_is_data() -> None:
    """Beside a hole two actions are interchangeable; a map that takes them in their order would differ there."""
    lake = TabularMDP.from_gymnasium("FrozenLake-v1", desc=["SFFF", "FFHF", "FHFF", "FFFG"])
    found = lake.automorphism_group()
    assert (found.action_maps == np.array([3, 2, 1, 0])).all()
    import gymnasium as gym

    make = lambda: gym.make("FrozenLake-v1", desc=["SFFF", "FFHF", "FHFF", "FFFG"])  # noqa: E731
    assert sc.verify_env(make, found.symmetry()).verdict == "proved"


def test_actions_that_are_the_same_everywhere_keep_their_order_in_a_group_of_order_three() -> None:
    ring = np.zeros((3, 3, 3))
    ring[np.arange(3), :2, (np.arange(3) + 1) % 3] = 1.0  # actions 0 and 1 are twins
    ring[np.arange(3), 2, np.arange(3)] = 1.0
    found = TabularMDP(ring, np.ones((3, 3)), 0.9).automorphism_group()
    assert found.name == "C3"
    assert (found.action_maps == np.arange(3)).all()
    assert found.symmetry().group.order == 3


def test_interchangeable_actions_follow_the_ends_they_lead_to() -> None:
    """Both actions of state 0 end the episode for the same reward, in different states: K must swap them with those."""
    law, ends = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    ends[0, 0, 3] = ends[0, 1, 4] = 1.0
    ends[1, :, 3] = ends[2, :, 4] = 1.0
    law[3, :, 3] = law[4, :, 4] = 1.0
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    mdp = TabularMDP(law, rewards, 0.9, [0.5, 0.25, 0.25, 0, 0], terminations=ends)
    found = mdp.automorphism_group()
    assert found.moves_ends
    assert found.state_maps.tolist() == [[0, 2, 1, 4, 3]]
    assert found.action_maps[0][0].tolist() == [1, 0]


@pytest.mark.parametrize("method", METHODS)
def test_a_torus_without_a_goal_has_translations_too(method: str) -> None:
    found = _free_torus(7).automorphism_group(method=method)
    assert found.order == 7 * 7 * 8
    assert [len(orbit) for orbit in found.orbits] == [49]


def _free_torus(size: int) -> TabularMDP:
    r, c = np.divmod(np.arange(size * size), size)
    moves = [((r + dr) % size) * size + (c + dc) % size for dr, dc in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    rows = np.concatenate([np.arange(size * size) * 4 + action for action in range(4)])
    ones = np.ones(4 * size * size)
    law = sparse.csr_array((ones, (rows, np.concatenate(moves))), shape=(4 * size * size, size * size))
    return TabularMDP(law, np.ones((size * size, 4)), 0.9)


@pytest.mark.parametrize("method", METHODS)
def test_many_interchangeable_states_give_a_huge_group(method: str) -> None:
    """30 states that end at once, reached alike: S_30, of order 2.7e32, beyond what igraph counts exactly."""
    law = np.zeros((31, 1, 31))
    law[0, 0, 1:] = 1 / 30
    ending = np.ones((31, 1))
    ending[0] = 0.0
    mdp = TabularMDP(law, np.ones((31, 1)), 0.9, 0, terminations=ending)
    assert mdp.automorphism_group(method=method).order == sc.groups.symmetric(30).order


def test_known_groups_carry_their_usual_generators() -> None:
    turn, flip = torus_chase().automorphism_group().group.generators
    assert (turn.order, flip.order, (flip * turn) ** 2) == (4, 2, turn**4)


@pytest.mark.parametrize(("turn", "name"), [(3, "C3"), (5, "C5")])
def test_rings_with_a_direction_are_cyclic(turn: int, name: str) -> None:
    law = np.zeros((turn, 1, turn))
    law[np.arange(turn), 0, (np.arange(turn) + 1) % turn] = 1.0
    assert TabularMDP(law, np.ones((turn, 1)), 0.9).automorphism_group().name == name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_single_state_has_the_identity(reward: float, method: str) -> None:
    """With no reward it is absorbing, and no state counts at all."""
    found = TabularMDP([[[1.0]]], [[reward]], 0.9).automorphism_group(method=method)
    assert (found.order, found.state_maps.tolist(), found.counted.tolist()) == (1, [[0]], [reward > 0])
    assert found.homomorphism().is_exact
    assert found.symmetry().group.order == 1


def test_a_wrong_permutation_is_no_symmetry_of_the_structure() -> None:
    structure = reduce_mdp(torus_chase())
    shifted = np.roll(np.arange(49), 1)
    assert structure.action_images(shifted) is None
    assert structure.action_images(np.arange(49)) is not None


def test_the_built_in_search_says_when_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_builtin, "BUDGET", 3)
    with pytest.raises(SymcheckError, match=r"tried 3 partial maps of 49 states.*symcheck\[discover\]"):
        torus_chase().automorphism_group(method="builtin")


def test_igraph_asked_for_and_missing_is_an_error_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'symcheck\[discover\]'"):
        torus_chase().automorphism_group(method="igraph")


def test_without_igraph_the_built_in_search_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_igraph, "is_installed", lambda: False)
    monkeypatch.setattr(search_igraph, "search", lambda structure: pytest.fail("igraph was used"))
    assert torus_chase().automorphism_group().order == 8


@pytest.mark.parametrize(("option", "value"), [("method", "nauty"), ("ends", "dropped")])
def test_unknown_options_are_refused(option: str, value: str) -> None:
    with pytest.raises(SpecError, match=f"{option}: expected"):
        find_automorphisms(torus_chase(3), **{option: value})


def test_orbits_make_an_exact_homomorphism_with_optimal_values() -> None:
    mdp = torus_chase()
    found = mdp.automorphism_group().homomorphism()
    assert found.is_exact
    optimal = sc.mdp.value_iteration(mdp).q_values
    abstract = sc.mdp.value_iteration(found.abstract_mdp).q_values
    np.testing.assert_allclose(found.lift_values(abstract), optimal, atol=1e-9)


def _with_ends_of_their_own(law: np.ndarray, ends: np.ndarray, rewards: list[list[float]], start: list[float]) -> None:
    mdp = TabularMDP(law, rewards, 0.9, start, terminations=ends)
    found = mdp.automorphism_group()
    assert found.order == 2
    h = found.homomorphism()
    assert h.is_exact
    assert h.value_loss_bound() == 0.0
    optimal = sc.mdp.policy_iteration(mdp).q_values
    abstract = sc.mdp.policy_iteration(h.abstract_mdp).q_values
    np.testing.assert_allclose(h.lift_values(abstract), optimal, atol=1e-10)
    assert len({int(h.state_map[s]) for s in np.flatnonzero(found.counted)}) < found.counted.sum()


def test_orbits_are_exact_although_final_states_have_rewards_of_their_own() -> None:
    """1 and 2 are only ended in; what the table says of steps from there, 5 and 7, must not be averaged."""
    law, ends = np.zeros((4, 1, 4)), np.zeros((4, 1, 4))
    ends[0, 0, 1] = ends[3, 0, 2] = law[1, 0, 1] = law[2, 0, 2] = 1.0
    _with_ends_of_their_own(law, ends, [[1.0], [5.0], [7.0], [1.0]], [0.5, 0, 0, 0.5])


def test_an_end_and_an_absorbing_state_are_one_end_to_a_homomorphism() -> None:
    """1 goes to the absorbing state 3, 2 ends half of the time and goes there otherwise: a symmetry swaps them."""
    law, ends = np.zeros((4, 1, 4)), np.zeros((4, 1, 4))
    law[0, 0, [1, 2]] = law[2, 0, 3] = ends[2, 0, 0] = 0.5
    law[1, 0, 3] = law[3, 0, 3] = 1.0
    _with_ends_of_their_own(law, ends, [[0.0], [1.0], [1.0], [0.0]], [1, 0, 0, 0])


def test_a_block_with_more_than_absorbing_states_is_no_end() -> None:
    """3 absorbs, 4 pays for ever; in one block they are worth 10 / 2 on average, and 1 and 2 are not the same."""
    law, ends = np.zeros((5, 1, 5)), np.zeros((5, 1, 5))
    law[0, 0, [1, 2]] = 0.5
    law[1, 0, 3] = ends[2, 0, 0] = law[3, 0, 3] = law[4, 0, 4] = 1.0
    mdp = TabularMDP(law, [[0.0], [1.0], [1.0], [0.0], [1.0]], 0.9, terminations=ends)
    h = from_maps(mdp, np.array([0, 1, 1, 2, 2]), np.zeros((5, 1), dtype=int))
    assert h.transition_error == pytest.approx(1.0)  # half to the block and half to the end, against either alone
    optimal = sc.mdp.policy_iteration(mdp).values
    lifted = h.lift_values(sc.mdp.policy_iteration(h.abstract_mdp).values)
    assert 0.1 < np.abs(lifted - optimal).max() <= h.value_loss_bound() / 2


def test_orbits_are_exact_although_absorbing_states_cannot_move_along() -> None:
    """1 and 2 change places, and 5, which stays, ends where 1 does: so 3 and 4 stay, though 1 goes to 3 and 2 to 4."""
    law = np.zeros((6, 1, 6))
    law[0, 0, [1, 2, 5]] = [0.25, 0.25, 0.5]
    law[1, 0, 3] = law[2, 0, 4] = law[5, 0, 3] = law[3, 0, 3] = law[4, 0, 4] = 1.0
    _with_ends_of_their_own(law, np.zeros((6, 1, 6)), [[0.0], [1.0], [1.0], [0.0], [0.0], [2.0]], [1, 0, 0, 0, 0, 0])


def test_different_actions_of_final_states_are_not_averaged() -> None:
    """0 and 3 change places; they end in 1 and 2, whose two actions pay differently and are never taken."""
    law, ends = np.zeros((4, 2, 4)), np.zeros((4, 2, 4))
    ends[0, :, 1] = ends[3, :, 2] = law[1, :, 1] = law[2, :, 2] = 1.0
    rewards = [[1.0, 2.0], [5.0, 6.0], [7.0, 9.0], [1.0, 2.0]]
    _with_ends_of_their_own(law, ends, rewards, [0.5, 0, 0, 0.5])


def test_a_group_whose_maps_leave_a_residual_is_not_proved():
    found = torus_chase().automorphism_group()
    assert found.verdict == "proved"
    assert dataclasses.replace(found, reward_residual=1e-3).verdict == "failed"
    assert dataclasses.replace(found, transition_residual=1e-3).verdict == "failed"


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_both_equations_are_checked_whatever_the_search_says(monkeypatch: pytest.MonkeyPatch, gap: float) -> None:
    law = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    mdp = TabularMDP(law, np.array([[1.0], [1.0 + gap]]), 0.9)
    exchange = SimpleNamespace(states=np.array([1, 0]), actions=np.zeros((2, 1), dtype=np.int64), moves_ends=True)
    monkeypatch.setattr(search_builtin, "search", lambda structure: ([np.array([1, 0])], 2))
    monkeypatch.setattr(automorphisms, "extend_symmetry", lambda *_: exchange)
    if gap:
        with pytest.raises(SymcheckError, match=r"not a symmetry: rewards differ by 0\.5"):
            find_automorphisms(mdp, method="builtin")
    else:
        assert find_automorphisms(mdp, method="builtin").order == 2
