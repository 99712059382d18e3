"""The bounds on values: never below the true gap, tight where they can be, and clear about what they need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mdp_makers import laws, planted_mdp

from symcheck import mdp as finite
from symcheck.errors import OptionError
from symcheck.mdp.bounds import lifted_policy_loss_bound, value_gap_bound
from symcheck.mdp.tabular import TabularMDP


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    noise=st.sampled_from([0.0, 1e-3, 0.03, 0.3]),
    discount=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    turn=st.sampled_from([2, 3]),
    ending=st.booleans(),
)
def test_the_gap_of_optimal_values_is_never_above_its_bound(
    seed: int, noise: float, discount: float, turn: int, ending: bool
) -> None:
    rng = np.random.default_rng(seed)
    clean, state_map, action_map = planted_mdp(rng, 8, 3, turn, discount=discount)
    law = laws(clean) * rng.uniform(1 - noise, 1 + noise, (8, 3, 8))
    end = rng.uniform(0, 0.3, (8, 3)) * ending
    law *= ((1 - end) / law.sum(axis=2))[..., None]
    noisy = TabularMDP(law, clean.rewards + rng.uniform(-noise, noise, (8, 3)), discount, terminations=end)
    optimal = finite.policy_iteration(noisy)
    images = np.arange(8)[:, None] * 0 + state_map[:, None], action_map
    gap = np.abs(optimal.q_values - optimal.q_values[images]).max()
    moved = np.empty_like(law)
    moved[:, :, state_map] = law
    epsilon_reward = np.abs(noisy.rewards - noisy.rewards[images]).max()
    distance = np.abs(moved - law[images]).sum(axis=2) + np.abs(end - end[images])
    epsilon_transition = distance.max() / 2
    values = np.append(optimal.values, 0.0) if ending else optimal.values
    rewards = np.append(noisy.rewards, 0.0) if ending else noisy.rewards
    by_span = value_gap_bound(epsilon_reward, epsilon_transition, discount, value_span=float(np.ptp(values)))
    by_range = value_gap_bound(epsilon_reward, epsilon_transition, discount, reward_range=float(np.ptp(rewards)))
    assert gap <= by_span + 1e-12
    assert by_span <= by_range * (1 + 1e-12) + 1e-12


def test_the_bound_is_reached_by_a_reward_that_is_wrong_for_ever() -> None:
    law = np.zeros((2, 1, 2))
    law[0, 0, 0] = law[1, 0, 1] = 1.0
    values = finite.policy_iteration(TabularMDP(law, [[0.0], [0.1]], 0.9)).values
    assert values[1] - values[0] == pytest.approx(value_gap_bound(0.1, 0.0, 0.9), rel=1e-12)


def test_the_bound_is_reached_by_a_law_that_is_wrong_at_once() -> None:
    """States 0 and 1 lead to the best and the worst state; the bound counts that error again in every later step."""
    law = np.zeros((4, 1, 4))
    law[0, 0, 2] = law[1, 0, 3] = law[2, 0, 2] = law[3, 0, 3] = 1.0
    values = finite.policy_iteration(TabularMDP(law, [[0.0], [0.0], [1.0], [0.0]], 0.5)).values
    gap = values[0] - values[1]
    assert gap == pytest.approx(0.5 * 1.0 * 2.0)
    assert gap <= value_gap_bound(0.0, 1.0, 0.5, value_span=2.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shift=st.integers(1, 3))
def test_the_lipschitz_form_bounds_deterministic_dynamics(seed: int, shift: int) -> None:
    """A walk on a line with steps of size 2 whose mirror is off by `shift` cells; distance is in cells."""
    rng = np.random.default_rng(seed)
    count = 21
    position = np.arange(count)
    following = np.stack([np.clip(position + 2, 0, count - 1), np.clip(position - 2 - shift, 0, count - 1)], axis=1)
    law = np.eye(count)[following]
    rewards = np.repeat(np.cos(rng.uniform(0, 3) + position / 7)[:, None], 2, axis=1)
    rewards = (rewards + rewards[::-1]) / 2
    optimal = finite.policy_iteration(TabularMDP(law, rewards, 0.8))
    mirror = position[::-1]
    gap = np.abs(optimal.q_values - optimal.q_values[mirror][:, ::-1]).max()
    distance = np.abs(mirror[following] - following[mirror][:, ::-1]).max()
    lipschitz = np.abs(np.diff(optimal.values)).max()
    assert gap <= value_gap_bound(0.0, float(distance), 0.8, lipschitz=float(lipschitz)) + 1e-12


def test_an_exact_symmetry_costs_nothing() -> None:
    assert value_gap_bound(0.0, 0.0, 0.99) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 0.0, 0.9), "epsilon_reward: expected a finite number of at least 0, got -0.1"),
        ((float("nan"), 0.0, 0.9), "epsilon_reward: expected a finite number"),
        ((0.1, "x", 0.9), "epsilon_transition: expected a finite number of at least 0, got 'x'"),
        ((0.1, 1.5, 0.9), "epsilon_transition: expected a total variation"),
        ((0.1, 0.5, 0.9), "requires the scale of the values"),
        ((0.1, 0.0, 1.0), r"discount: expected a discount in \[0, 1\), got 1.0"),
    ],
)
def test_numbers_out_of_range_are_named(arguments: tuple[float, float, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        value_gap_bound(*arguments)


def test_the_loss_bound_counts_both_halves_of_the_argument() -> None:
    assert lifted_policy_loss_bound(1.0, 0.5, 0.5, abstract_value_span=2.0) == pytest.approx(2 * (1 + 0.25) / 0.5)
    with pytest.raises(OptionError, match="abstract_value_span"):
        lifted_policy_loss_bound(1.0, 0.5, 0.5, abstract_value_span=-1.0)
