"""Homomorphisms from a claimed symmetry: exact where it holds, refused or bounded where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import symcheck as sc
from symcheck.envs import predator_prey
from symcheck.errors import SpecError
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase

IMAGES = predator_prey.images().reshape(49, 1, 21, 21)
C4 = sc.groups.cyclic(4)
D4 = sc.groups.dihedral(4)
TURN = sc.Symmetry("turn", C4, ["rot90"], [[0, 2, 3, 4, 1]])
SQUARE = sc.Symmetry("square", D4, ["rot90", "flip_ud"], [[0, 2, 3, 4, 1], [0, 3, 2, 1, 4]])


@pytest.mark.parametrize(("symmetry", "states"), [(TURN, 13), (SQUARE, 10)])
def test_the_paper_s_turn_folds_the_grid_world_through_its_images(symmetry: sc.Symmetry, states: int) -> None:
    mdp = torus_chase()
    h = mdp.homomorphism_from(symmetry, observations=IMAGES)
    assert h.is_exact
    assert h.abstract_mdp.n_states == states
    optimal = sc.mdp.policy_iteration(mdp)
    abstract = sc.mdp.policy_iteration(h.abstract_mdp)
    np.testing.assert_allclose(h.lift_values(abstract.q_values), optimal.q_values, atol=1e-10)


def test_a_lifted_policy_is_equivariant_under_the_symmetry() -> None:
    """K_g pi(s) = pi(L_g s): entry K a of the policy at L s is entry a of the policy at s; C4 has order above 2."""
    mdp = torus_chase()
    h = mdp.homomorphism_from(TURN, observations=IMAGES)
    rng = np.random.default_rng(0)
    weights = np.where(h.abstract_mdp.available, rng.random(h.abstract_mdp.available.shape), 0)
    lifted = h.lift(weights / weights.sum(axis=1, keepdims=True))
    turned = np.rot90(np.arange(49).reshape(7, 7)).reshape(-1)  # position i shows what stood at turned[i]
    images = np.argsort(turned)
    np.testing.assert_allclose(lifted[images][:, [0, 2, 3, 4, 1]], lifted, atol=1e-15)


def test_a_wrong_action_map_is_refused_and_bounded_when_asked_for() -> None:
    mdp = torus_chase()
    wrong = sc.Symmetry("wrong", C4, ["rot90"], [[0, 1, 2, 3, 4]])
    with pytest.raises(
        SpecError, match="not a symmetry of this MDP: within an orbit, rewards deviate from their average"
    ):
        mdp.homomorphism_from(wrong, observations=IMAGES)
    h = mdp.homomorphism_from(wrong, observations=IMAGES, approximate=True)
    assert not h.is_exact
    optimal = sc.mdp.policy_iteration(mdp).values
    abstract = sc.mdp.policy_iteration(h.abstract_mdp)
    loss = optimal - sc.mdp.evaluate_policy(mdp, h.lift(abstract.policy))
    assert 0.01 < loss.max() <= h.value_loss_bound()


def test_state_numbers_are_the_observations_unless_others_are_given() -> None:
    lake = TabularMDP.from_gymnasium("FrozenLake-v1", desc=["SFFF", "FFFF", "FFFF", "FFFG"])
    transposed = np.arange(16).reshape(4, 4).T.reshape(-1).tolist()
    diagonal = sc.Symmetry("diagonal", sc.groups.cyclic(2), [transposed], [[3, 2, 1, 0]])
    assert lake.homomorphism_from(diagonal).abstract_mdp.n_states == 10


def test_state_dependent_action_maps_are_followed() -> None:
    law = np.zeros((2, 2, 2))
    law[0, 0, 1] = law[0, 1, 0] = law[1, 1, 0] = law[1, 0, 1] = 1.0
    swap = sc.Symmetry("swap", sc.groups.cyclic(2), [[1, 0]], [lambda action, state: 1 - action])
    h = TabularMDP(law, [[1.0, 0.0], [0.0, 1.0]], 0.9).homomorphism_from(swap)
    assert h.abstract_mdp.n_states == 1
    assert h.action_map.tolist() == [[0, 1], [1, 0]]


def test_images_that_no_state_shows_are_refused() -> None:
    doubled = sc.Symmetry("far", sc.groups.cyclic(2), [[-1, -1]], [[0, 3, 4, 1, 2]])
    shifted = np.stack(np.divmod(np.arange(49), 7), axis=1) - 2.0
    with pytest.raises(SpecError, match=r"far maps state .* to an observation that no state has"):
        torus_chase().homomorphism_from(doubled, observations=shifted)
    with pytest.raises(SpecError, match="expected 49 distinct observations"):
        torus_chase().homomorphism_from(doubled, observations=np.zeros((49, 2)))


def test_signed_zeros_are_zeros() -> None:
    mirror = sc.Symmetry("mirror", sc.groups.cyclic(2), [[-1, -1]], [[0, 3, 4, 1, 2]])
    cells = np.stack(np.divmod(np.arange(49), 7), axis=1) - 3.0
    assert torus_chase().homomorphism_from(mirror, observations=cells).abstract_mdp.n_states == 25


def test_a_continuous_group_is_refused_on_finitely_many_states() -> None:
    turn = {"rotate": [[0, 1]]}
    symmetry = sc.Symmetry("o2", sc.groups.o(2), [turn, [[-1, 0], [0, 1]]], ["identity", "identity"])
    corners = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    mdp = TabularMDP(np.full((4, 1, 4), 0.25), np.zeros((4, 1)), discount=0.9)
    with pytest.raises(SpecError, match=r"expected a finite group, got O\(2\)"):
        mdp.homomorphism_from(symmetry, observations=corners)
