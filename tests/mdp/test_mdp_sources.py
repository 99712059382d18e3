"""Where MDPs come from, and what is refused on the way in: which row, by how much, and what to do."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from mdp_makers import TAXI, laws, random_mdp
from scipy import sparse

import symcheck as sc
from symcheck.envs.predator_prey import PredatorPreyEnv
from symcheck.errors import OptionError, SpecError, TargetError
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase

HALF = np.full((2, 1, 2), 0.5)
REWARDS = [[0.0], [1.0]]


def test_every_form_of_the_laws_is_the_same_mdp() -> None:
    mdp = random_mdp(np.random.default_rng(3), 4, 3, ending=False)
    table = laws(mdp)
    per_action = [sparse.csr_array(table[:, action]) for action in range(3)]
    forms = [table, table.tolist(), table.transpose(1, 0, 2), per_action, sparse.csr_array(table.reshape(12, 4))]
    for form in forms:
        np.testing.assert_array_equal(laws(TabularMDP(form, mdp.rewards, 0.9)), table)


def test_rewards_for_next_states_are_averaged_over_all_outcomes() -> None:
    ends = np.zeros((2, 1, 2))
    ends[0, 0, 1] = 0.5
    going = HALF.copy()
    going[0, 0, 1] = 0.0
    mdp = TabularMDP(going, [[[2.0, 4.0]], [[0.0, 0.0]]], 0.9, terminations=ends)
    assert mdp.rewards.tolist() == [[3.0], [0.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"transitions": [[[0.5, 0.4]], [[0.2, 0.8]]]},
            r"1 row does not sum to 1\. It is .* action 0 in state 0, .* \(0.1 too small\)",
        ),
        (
            {"transitions": [[[0.5, 0.4]], [[0.5, 0.8]]]},
            r"2 rows do not sum to 1\. The worst .* state 1, whose sum is 1.3 \(0.3 too large\)",
        ),
        (
            {"transitions": [[[1.5, -0.5]], [[0.5, 0.5]]]},
            "negative probability, -0.5, from state 0 under action 0 to state 1",
        ),
        ({"transitions": [[[np.nan, 1.0]], [[0.5, 0.5]]]}, "not finite, nan, from state 0"),
        (
            {"transitions": [[[0.0, 0.0]], [[0.5, 0.5]]]},
            "action 0 has no outcome in state 0: its distribution sums to 0",
        ),
        ({"transitions": [[0.5, 0.5]]}, r"expected shape \(states, actions, states\), got \(1, 2\)"),
        ({"rewards": [[np.nan], [0.0]]}, "rewards: expected finite rewards, got nan in state 0 under action 0"),
        ({"rewards": [0.0, 1.0]}, r"rewards: expected shape \(states, actions\) = \(2, 1\)"),
        ({"discount": 1.5}, r"discount: expected a number in \[0, 1\], got 1.5"),
        ({"discount": float("nan")}, "discount: expected"),
        ({"initial": [0.5, 0.4]}, "initial: expected probabilities that sum to 1, got a sum of 0.9"),
        ({"initial": [1.0]}, r"initial: expected one probability per state, shape \(2,\)"),
        ({"initial": 2}, r"initial: expected a state in 0..1, got 2"),
        ({"available": [[1], [1]]}, "available: expected booleans"),
        ({"terminations": [[-0.1], [0.0]]}, "terminations: expected probabilities of at least 0"),
        ({"terminations": np.zeros((3, 1, 3))}, "terminations: the transitions have"),
        ({"layout": [[0.5, 0], [0, 1]]}, "layout: expected integers"),
        ({"labels": ["a"]}, "labels: expected 2 names"),
    ],
)
def test_what_is_no_mdp_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"transitions": HALF, "rewards": REWARDS, "discount": 0.9, **change}
    with pytest.raises(SpecError, match=message):
        TabularMDP(**arguments)


def test_a_state_without_any_action_is_refused() -> None:
    with pytest.raises(SpecError, match="every state must have at least one action, but state 1 has none"):
        TabularMDP([[[1.0, 0.0]], [[0.0, 0.0]]], REWARDS, 0.9, available=np.array([[True], [False]]))


def test_sparse_laws_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(SpecError, match=r"shape \(states \* actions, states\), got \(3, 2\)"):
        TabularMDP(sparse.csr_array(np.ones((3, 2)) / 2), REWARDS, 0.9)
    with pytest.raises(SpecError, match="one square matrix per action"):
        TabularMDP([sparse.eye_array(2), sparse.eye_array(3)], REWARDS, 0.9)


def test_single_precision_laws_pass_and_half_a_percent_does_not() -> None:
    law = np.full((3, 1, 3), 1 / 3, dtype=np.float32)
    assert TabularMDP(law, np.zeros((3, 1)), 0.9).n_states == 3
    with pytest.raises(SpecError, match=r"sum is 0\.995\d* \(0\.005 too small\)"):
        TabularMDP(np.array([[[0.995]]], dtype=np.float32), [[0.0]], 0.9)


def test_reachable_and_absorbing_states_are_told() -> None:
    law = np.zeros((4, 1, 4))
    law[0, 0, 1] = law[1, 0, 1] = law[2, 0, 0] = law[3, 0, 3] = 1.0
    mdp = TabularMDP(law, [[1.0], [0.0], [0.0], [1.0]], 0.9, initial=0)
    assert mdp.reachable.tolist() == [True, True, False, False]
    assert mdp.absorbing.tolist() == [False, True, False, False]  # state 3 stays too, but is paid for it
    assert repr(mdp) == "TabularMDP(4 states, 1 action, discount 0.9; no action taken in 3)"


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", TAXI])
def test_a_table_of_gymnasium_is_read_as_its_steps_go(name: str) -> None:
    env = gym.make(name).unwrapped
    mdp = TabularMDP.from_gymnasium(env)
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            going = np.zeros(mdp.n_states)
            for probability, following, _, terminated in outcomes:
                going[following] += probability * (not terminated)
            row = mdp.transitions[[state * mdp.n_actions + action]].toarray()[0]
            np.testing.assert_allclose(row, going, atol=1e-15)
            reward = sum(outcome[0] * outcome[2] for outcome in outcomes)
            assert mdp.rewards[state, action] == pytest.approx(reward, abs=1e-12)


def test_maps_know_where_their_cells_are_and_taxi_has_no_map() -> None:
    layout = TabularMDP.from_gymnasium("CliffWalking-v1").layout
    assert layout is not None
    assert layout[36].tolist() == [3, 0]
    assert TabularMDP.from_gymnasium(TAXI).layout is None


class _Table(gym.Env[np.int64, np.int64]):
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(1)

    def __init__(self, table: Any) -> None:
        self.P = table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({0: {0: [(1.0, 0, 0.0, False)]}}, "P must contain all 2 states, but 1 is missing"),
        ({0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}, r"Missing pairs: 1, starting with \(1, 0\)"),
        (
            {0: {0: [(1.0, 5, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)]}},
            r"P\[0\]\[0\] leads to state 5, but the states are 0..1",
        ),
        (
            {0: {0: [(0.9, 0, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, True)]}},
            r"state 0, whose sum is 0.9 \(0.1 too small\)",
        ),
        ({0: {0: [(1.0, 0, np.nan, False)]}, 1: {0: [(1.0, 0, 0.0, True)]}}, "expected finite rewards"),
        ({s: {0: [(1.0, 0, 0.0, False)]} for s in range(3)}, "it also contains 2"),
        ({s: {0: [(1.0, 0, 0.0, False)]} for s in (0, 1, 2, 5)}, "it also contains 2, 5"),
        (
            {0: {0: [(1.0, 0)]}, 1: {0: [(1.0, 0, 0.0, False)]}},
            r"expected outcomes \(probability, next state, reward, terminated\), got \(1.0, 0\) in P\[0\]\[0\]",
        ),
        ({0: {0: [(1.0, 0, "x", False)]}, 1: {0: [(1.0, 0, 0.0, False)]}}, r"got \(1.0, 0, 'x', False\) in P\[0\]"),
    ],
)
def test_a_broken_table_is_refused(table: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        TabularMDP.from_gymnasium(_Table(table))


def test_an_environment_without_a_table_says_its_size_and_the_ways_out() -> None:
    with pytest.raises(TargetError, match=r"CartPole-v1 has no table P .*Box.*symcheck verify-env.*from_model"):
        TabularMDP.from_gymnasium("CartPole-v1")


def test_a_wrapper_that_changes_the_story_is_not_looked_through() -> None:
    env = gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), lambda r: 2 * r)
    with pytest.raises(TargetError, match="the wrapper TransformReward may make the table wrong"):
        TabularMDP.from_gymnasium(env)


def test_unknown_environments_are_named() -> None:
    with pytest.raises(TargetError, match=r"no environment is registered as 'FrozenLak-v1'.*Did you mean"):
        TabularMDP.from_gymnasium("FrozenLak-v1")
    with pytest.raises(TargetError, match="expected an environment, an id or a factory of one, got int"):
        TabularMDP.from_gymnasium(3)


def test_a_model_is_enumerated_breadth_first_with_its_ends() -> None:
    def outcomes(state: tuple[int, ...], action: int) -> list[tuple[float, tuple[int, ...], float, bool]]:
        (place,) = state
        step = (place + 1 + action,)
        return [(0.5, step, 1.0, step[0] >= 3), (0.5, state, 0.0, False)]

    mdp = TabularMDP.from_model([(0,)], 2, outcomes, discount=0.9)
    assert mdp.labels == ((0,), (1,), (2,), (3,), (4,))
    assert mdp.termination.tolist() == [[0, 0], [0, 0.5], [0.5, 0.5], [0, 0], [0, 0]]
    assert mdp.acted_in.tolist() == [True, True, True, False, False]
    assert mdp.initial is not None
    assert mdp.initial.tolist() == [1, 0, 0, 0, 0]


def test_a_state_met_first_as_an_end_is_still_acted_in_when_an_episode_goes_on_there() -> None:
    def outcomes(state: int, action: int) -> list[tuple[float, int, float, bool]]:
        return [(1.0, 1, 0.0, True)] if state == 0 and action == 0 else [(1.0, (state + 1) % 2, 1.0, False)]

    mdp = TabularMDP.from_model([0], 2, outcomes, discount=0.9)
    assert mdp.rewards.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_too_many_states_are_refused_with_the_way_out() -> None:
    with pytest.raises(
        SpecError, match=r"more than 100 states can be reached from the start, which is too many to enumerate.*limit="
    ):
        TabularMDP.from_model([0], 1, lambda s, a: [(1.0, s + 1, 0.0, False)], discount=0.9, limit=100)
    with pytest.raises(SpecError, match="expected hashable states, got list"):
        TabularMDP.from_model([0], 1, lambda s, a: [(1.0, [s], 0.0, False)], discount=0.9)


def test_samples_become_frequencies_and_means() -> None:
    mdp = TabularMDP.from_samples(
        [0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 1, 0, 0, 5], [0, 1, 1, 1, 2], [0, 0, 0, 1, 1], discount=0.9
    )
    assert laws(mdp)[0, 0].tolist() == [0.25, 0.5, 0.0]
    assert mdp.termination[:, 0].tolist() == [0.25, 1.0, 0.0]
    assert mdp.rewards[:, 0].tolist() == [0.5, 5.0, 0.0]
    assert mdp.counts is not None
    assert mdp.counts[:, 0].tolist() == [4, 1, 0]


def test_the_model_of_many_samples_is_near_the_truth() -> None:
    truth = torus_chase(3)
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 9, 60_000), rng.integers(0, 5, 60_000)
    every = laws(truth)
    ends = truth.termination
    outcome = np.concatenate([every, ends[..., None]], axis=2)[states, actions]
    drawn = (outcome.cumsum(axis=1) < rng.random((60_000, 1))).sum(axis=1).clip(0, 9)
    following = np.where(drawn == 9, 4, drawn)
    model = TabularMDP.from_samples(
        states, actions, truth.rewards[states, actions], following, drawn == 9, discount=0.99, n_states=9
    )
    # 60,000 / 45 = 1,333 samples a pair: standard error at most 0.014, five of them 0.07.
    np.testing.assert_allclose(laws(model), every, atol=0.07)
    tolerance = model.sampling_tolerance()
    assert np.abs(laws(model) - every).max() <= tolerance / 2 < 0.1
    folded = model.minimal_homomorphism(tolerance=tolerance)
    # The corners are alike, and so are the sides; more may be, within the tolerance.
    assert len(set(folded.state_map[[0, 2, 6, 8]])) == len(set(folded.state_map[[1, 3, 5, 7]])) == 1


def test_a_tolerance_of_sampling_needs_samples() -> None:
    with pytest.raises(SpecError, match="needs an MDP that was estimated from samples"):
        torus_chase(3).sampling_tolerance()
    few = TabularMDP.from_samples([0], [0], [0.0], [0], discount=0.9)
    assert few.sampling_tolerance() == 1.0
    with pytest.raises(SpecError, match=r"alpha: expected a number in \(0, 1\), got 0"):
        few.sampling_tolerance(alpha=0)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0], [0], [1.0], [0, 1]), {}, "expected arrays of the same length"),
        (([0], [-1], [1.0], [0]), {}, "actions: expected integers of at least 0"),
        (([0.5], [0], [1.0], [0]), {}, "states: expected integers of at least 0"),
        (([0], [0], [1.0], [1]), {}, "samples lead to 1 states from which no sample starts; the first is state 1"),
        (
            ([0, 0], [0, 0], [1.0, 1.0], [0, 0]),
            {"n_actions": 2},
            "the samples do not contain 1 of the 2 pairs; the first is action 1",
        ),
        (
            ([0], [0], [1.0], [0]),
            {"n_states": 0},
            "n_states: expected a number above the largest index in the samples, 0; got 0",
        ),
        (([0], [0], [1.0], [0]), {"unseen": "guess"}, "unseen: expected 'refuse' or 'unavailable'"),
    ],
)
def test_samples_that_leave_the_model_open_are_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        TabularMDP.from_samples(*arguments, discount=0.9, **options)


def test_unseen_pairs_can_be_left_out() -> None:
    mdp = TabularMDP.from_samples([0, 0], [0, 0], [1.0, 1.0], [0, 0], discount=0.9, n_actions=2, unseen="unavailable")
    assert mdp.available.tolist() == [[True, False]]


def test_the_grid_world_s_table_says_what_the_environment_does() -> None:
    """Every law of the table against 400 steps of the environment; means of 400 draws, six standard errors."""
    mdp, env = torus_chase(), PredatorPreyEnv()
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for state, action in zip(rng.integers(0, 49, 25), rng.integers(0, 5, 25), strict=True):
        seen = np.zeros(49)
        total = ended = 0.0
        for _ in range(400):
            env.set_state(np.array(divmod(int(state), 7)) - 3)
            _, reward, terminated, _, _ = env.step(np.int64(action))
            row, column = env.get_state() + 3
            seen[row * 7 + column] += not terminated
            total, ended = total + reward, ended + terminated
        expected = laws(mdp)[int(state), int(action)]
        assert np.abs(seen / 400 - expected).max() <= 6 * 0.5 / 20
        assert (seen[expected == 0] == 0).all()
        assert abs(ended / 400 - mdp.termination[state, action]) <= 6 * 0.5 / 20
        assert abs(total / 400 - mdp.rewards[state, action]) <= 6 * 1.1 * 0.5 / 20


@pytest.mark.parametrize("size", [2, 4, 1])
def test_an_even_torus_has_no_centre(size: int) -> None:
    with pytest.raises(OptionError, match="expected an odd number of at least 3"):
        torus_chase(size)


def test_the_package_is_an_attribute_and_stays_unloaded_until_then() -> None:
    import subprocess
    import sys

    loaded = "print([name in sys.modules for name in ('symcheck.mdp', 'gymnasium', 'torch')])"
    code = f"import symcheck, sys; {loaded}; symcheck.mdp.TabularMDP; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[False, False, False]", "[True, False, False]"]
    assert sc.mdp.TabularMDP is TabularMDP
