"""Limits of the reference agents, from both sides: where a rule changes, and how large its constants are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from scipy.stats import norm

from reference_agents.catalog import find_network, find_task
from reference_agents.encoding.environment import EncodedEnvironment, encoded_environment, keep_object
from reference_agents.environments.cartpole import ANGLE_LIMIT, CartPoleVector, start_states
from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.environments.predator_prey import PredatorPreyVector
from reference_agents.learning.adaptive_rate import AdaptiveRates
from reference_agents.learning.distributions import Categorical, Gaussian
from reference_agents.learning.learner import Learner
from reference_agents.learning.observation_scale import ObservationScale
from reference_agents.learning.optimiser import StackedAdam
from reference_agents.learning.reward_scale import RewardScale
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.factory import make_network
from reference_agents.networks.parameters import Layout, StackedParameters
from reference_agents.settings import Settings
from symcheck.envs.predator_prey import MOVES, wrap
from symcheck.errors import TargetError


def test_a_rate_stays_at_twice_and_at_half_the_target_and_between_a_hundredth_and_ten() -> None:
    rates = AdaptiveRates(4, 0.25)
    rates.follow(np.array([0.5, 0.125, np.nextafter(0.5, 1), np.nextafter(0.125, 0)]))
    assert rates.factors.tolist() == [1.0, 1.0, 1 / 1.5, 1.5]
    for _ in range(30):
        rates.follow(np.array([1.0, 0.0, 0.25, 0.25]))
    assert rates.factors[:2].tolist() == [0.01, 10.0]


def _parameters(*gradients: float) -> StackedParameters:
    layout = Layout()
    layout.add("weight", (1, 1))
    parameters = StackedParameters(layout, len(gradients), torch.device("cpu"))
    parameters.gradients[:, 0] = torch.tensor(gradients)
    return parameters


def test_the_first_step_of_adam_is_the_rate_times_a_gradient_over_its_size_and_a_hundred_millionth() -> None:
    parameters = _parameters(1e-8, -3e-8, 1.0)
    before = parameters.values.clone()
    StackedAdam(parameters, [0.1, 0.1, 0.2], 10.0).step()
    moved = (parameters.values - before)[:, 0].tolist()
    assert moved == pytest.approx([-0.1 / 2, 0.1 * 3 / 4, -0.2], rel=1e-5)  # float32


def test_a_gradient_is_scaled_down_to_the_largest_norm_and_a_millionth_is_added_to_its_own() -> None:
    parameters = _parameters(1e-6, 0.25e-6, -3e-6, 1.0)
    norms = StackedAdam(parameters, [0.1] * 4, 1e-6).step()
    assert norms.tolist() == pytest.approx([1e-6, 0.25e-6, 3e-6, 1.0])
    expected = [0.5e-6, 0.25e-6 * min(1.0, 1 / 1.25), -3e-6 / 4, 1e-6 / (1 + 1e-6)]
    assert parameters.gradients[:, 0].tolist() == pytest.approx(expected, rel=1e-5)
    small = _parameters(0.5, -0.25)
    StackedAdam(small, [0.1, 0.1], 1.0).step()
    assert small.gradients[:, 0].tolist() == [0.5, -0.25]


def test_runs_of_one_rate_are_one_group_unless_their_rates_part_and_factors_multiply_first_rates() -> None:
    rates = [0.5, 0.5, 0.25]

    def groups(adam: StackedAdam) -> list[float]:
        return [group["lr"] for group in adam.state()["param_groups"]]

    joint = StackedAdam(_parameters(1.0, 1.0, 1.0), rates, 1.0)
    assert groups(joint) == [0.5, 0.25]
    for _ in range(2):
        joint.scale_rates([0.5])
    assert groups(joint) == [0.25, 0.125]
    joint.scale_rates([0.5, 2.0])
    assert groups(joint) == [0.25, 0.5]
    separate = StackedAdam(_parameters(1.0, 1.0, 1.0), rates, 1.0, separately=True)
    assert groups(separate) == rates
    separate.scale_rates([1.0, 2.0, 3.0])
    assert groups(separate) == [0.5, 1.0, 0.75]


def test_an_action_is_drawn_where_the_sum_of_probabilities_is_reached_whatever_the_size_of_logits() -> None:
    uniforms = np.array([[0.0, np.nextafter(0.25, 0), 0.25, 0.5, np.nextafter(0.75, 0), 0.75, np.nextafter(1, 0)]])
    for shift in (0.0, 500.0, -900.0):
        logits = torch.full((1, 7, 4), shift, dtype=torch.float64)
        assert Categorical().sample(logits, uniforms).tolist() == [[0, 0, 1, 2, 2, 3, 3]]
    assert Categorical().noise_shape(5) == (5,)
    assert Gaussian(3).noise_shape(5) == (5, 3)


def test_a_gaussian_draws_the_quantile_and_for_zero_that_of_half_the_smallest_step() -> None:
    numbers = torch.tensor([[[1.0, np.log(2.0)]]])
    for uniform, quantile in ((0.0, norm.ppf(2.0**-54)), (2.0**-53, norm.ppf(2.0**-53)), (0.9, norm.ppf(0.9))):
        drawn = Gaussian(1).sample(numbers, np.array([[[uniform]]]))
        assert drawn.tolist() == [[[pytest.approx(1.0 + 2.0 * quantile, rel=1e-6)]]]


def test_rewards_that_differ_by_less_than_a_hundred_millionth_are_not_scaled() -> None:
    for size, expected in ((1.9e-8, 1.9e-8), (1.1e-8, 1.1e-8), (0.9e-8, 1.0), (0.0, 1.0)):
        scale = RewardScale(1, 2, 0.5)
        assert scale.deviations().tolist() == [1.0]
        scale.add(np.array([[size, -size]]), np.zeros((1, 2), dtype=bool))
        assert scale.deviations().tolist() == [pytest.approx(expected)]


def test_deviations_of_observations_below_three_hundredths_count_as_these() -> None:
    for size, factor in ((0.059, 1 / 0.059), (0.031, 1 / 0.031), (0.029, 1 / 0.03), (0.0, 1 / 0.03)):
        scale = ObservationScale(1, 1, None)
        scale.add(np.array([[[size], [-size]]]))
        scale.apply()
        assert scale.factor.tolist() == [[pytest.approx(factor)]]


def test_a_cart_on_its_limits_goes_on_and_beyond_them_ends_as_in_gymnasium() -> None:
    states = [[2.4, 0.0, 0.0, 0.0], [-2.4, 0.0, 0.0, 0.0], [0.0, 0.0, ANGLE_LIMIT, 0.0], [0.0, 0.0, -ANGLE_LIMIT, 0.0]]
    states += [[np.nextafter(x, np.inf * np.sign(x)) if x else x for x in state] for state in states]
    vector = CartPoleVector([0], 8)
    vector.reset()
    vector.states[0] = states
    scalar = gym.make("CartPole-v1")
    expected = []
    for state in states:
        scalar.reset(seed=0)
        scalar.unwrapped.state = tuple(state)  # type: ignore[attr-defined]
        expected.append(bool(scalar.step(1)[2]))
    scalar.close()
    assert expected == [False] * 4 + [True] * 4
    assert vector.step(np.ones((1, 8), dtype=np.int64)).terminated[0].tolist() == expected


def test_carts_start_within_a_twentieth_and_are_pushed_either_way_half_of_the_time() -> None:
    assert start_states(np.array([0.0, 0.5, 0.75, 1.0])).tolist() == [-0.05, 0.0, 0.025, 0.05]
    uniforms = np.array([[[0.0], [np.nextafter(0.5, 0)], [0.5], [np.nextafter(1, 0)]]])
    assert CartPoleVector([0], 4).random_actions(uniforms).tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize("make", [CartPoleVector, PredatorPreyVector])
def test_the_stream_of_a_training_is_the_first_of_its_purpose(make: Any) -> None:
    assert np.array_equal(make([5], 40).reset(), make([5], 40, index=0).reset())
    assert not np.array_equal(make([5], 40).reset(), make([5], 40, index=1).reset())


def _grid(*uniforms: list[float]) -> PredatorPreyVector:
    """A grid world whose next numbers are these: one row an environment."""
    grid = PredatorPreyVector([0], len(uniforms), coded=True)
    grid._streams = SimpleNamespace(next=lambda: np.array([uniforms]))  # type: ignore[assignment]
    grid.displacements[:] = 2
    return grid


def test_the_prey_moves_below_its_probability_and_each_way_for_a_quarter_of_the_numbers() -> None:
    quarters = [0.0, np.nextafter(0.25, 0), 0.25, 0.5, 0.75, np.nextafter(1, 0)]
    moved = [[np.nextafter(0.15, 0), quarter, 0.0, 0.0, 0.0, 0.0] for quarter in quarters]
    grid = _grid(*moved, *([0.15, quarter, 0.0, 0.0, 0.0, 0.0] for quarter in quarters))
    grid.step(np.zeros((1, 12), dtype=np.int64))
    expected = [wrap(np.array([2, 2]) - MOVES[k]).tolist() for k in (1, 1, 2, 3, 4, 4)]
    assert grid.displacements[0].tolist() == expected + [[2, 2]] * 6
    uniforms = np.array([[[0.0], [np.nextafter(0.2, 0)], [0.2], [0.4], [0.6], [0.8], [np.nextafter(1, 0)]]])
    assert grid.random_actions(uniforms).tolist() == [[0, 0, 1, 2, 3, 4, 4]]


def test_an_episode_of_the_grid_has_a_hundred_steps_and_then_begins_where_the_last_four_numbers_say() -> None:
    row = [0.9, 0.0, 0.0, 6.5 / 7, 3.5 / 7, 5.5 / 7]
    grid = _grid(row, row)
    grid.elapsed[0] = [97, 98]
    for cut in ([False, False], [False, True], [True, False]):
        step = grid.step(np.zeros((1, 2), dtype=np.int64))
        assert step.truncated.tolist() == [cut]
        assert not step.terminated.any()
    start = wrap(np.array([0 - 3, 6 - 5]))
    assert grid.displacements[0].tolist() == [start.tolist()] * 2
    assert grid.elapsed[0].tolist() == [0, 1]
    assert step.final_observation.tolist() == [[(2 + 3) * 7 + 5, (start[0] + 3) * 7 + start[1] + 3]]


class Late(gym.Env[Any, Any]):
    """Shows its clock; its third episode returns no number as reward of action 2 in its second step."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self) -> None:
        self.episode = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time, self.start, self.episode = 0, self.np_random.random(), self.episode + 1
        return self._shown(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        reward = np.nan if (self.episode, self.time, int(action)) == (3, 2, 2) else float(action)
        return self._shown(), reward, False, False, {}

    def _shown(self) -> Any:
        return np.array([self.time, self.start], np.float32)


def _late() -> EncodedEnvironment:
    return encoded_environment(keep_object(Late, "Late"), "", scaled=False)


def test_a_limit_cuts_episodes_at_its_step_and_a_fault_names_seed_environment_episode_and_step() -> None:
    vector = GymnasiumVector(_late(), [4, 7], 3, limit=2)
    vector.reset()
    actions = np.zeros((2, 3), dtype=np.int64)
    for cut in (False, True, False, True, False):
        step = vector.step(actions)
        assert (step.truncated == cut).all()
        assert not step.terminated.any()
    actions[1, 2] = 2
    with pytest.raises(TargetError, match=r"reward nan at step 2 of episode 3 \(environment 3 of seed 7\)"):
        vector.step(actions)
    endless = GymnasiumVector(_late(), [4], 1)
    endless.reset()
    assert not any(endless.step(np.zeros((1, 1), dtype=np.int64)).truncated.any() for _ in range(5))


def test_a_saved_state_goes_on_within_an_episode_and_before_the_first_step() -> None:
    for steps in (0, 3):
        vector, other = (GymnasiumVector(_late(), [4, 7], 2, limit=2) for _ in range(2))
        vector.reset()
        actions = np.array([[0, 1], [1, 0]])
        for _ in range(steps):
            vector.step(actions)
        state = vector.state()
        assert state["lengths"] == [steps % 2] * 4
        other.restore(state)
        for _ in range(3):
            one, again = vector.step(actions), other.step(actions)
            for name in ("observation", "final_observation", "reward", "truncated"):
                assert np.array_equal(getattr(one, name), getattr(again, name)), name


SHORT = Settings(environments=4, horizon=3, epochs=2, minibatches=3, decorrelation_steps=0)


def _learner(settings: Settings) -> tuple[Learner, Any]:
    task = find_task("cartpole")
    network = make_network(task, find_network(task, "mlp"), [0, 1], torch.device("cpu"))
    return Learner(network, [0.001, 0.001], [0, 1], settings, Categorical()), network


def _rollout(size: int) -> Rollout:
    drawn = torch.Generator().manual_seed(1)
    numbers = [torch.randn(2, size, generator=drawn) for _ in range(3)]
    return Rollout(torch.randn(2, size, 4, generator=drawn), torch.randint(2, (2, size), generator=drawn), *numbers)


@pytest.mark.parametrize("target", [0.0, 0.01])
def test_epochs_take_minibatches_in_the_given_order_and_rates_part_only_where_they_adapt(target: float) -> None:
    settings = SHORT.with_changes(target_divergence=target)
    learner, network = _learner(settings)
    assert len(learner.state()["optimiser"]["param_groups"]) == (2 if target else 1)
    asked: list[torch.Tensor] = []
    forward = network.forward
    network.forward = lambda x, **more: asked.append(x) or forward(x, **more)
    rollout = _rollout(12)
    orders = torch.stack([torch.stack([torch.randperm(12) for _ in range(2)]) for _ in range(2)])
    assert learner.update(rollout, orders=orders).tolist() == [True, True]
    expected = [
        torch.stack([rollout.observations[run, orders[run, epoch, start : start + 4]] for run in range(2)])
        for epoch in range(2)
        for start in (0, 4, 8)
    ]
    expected += [rollout.observations] if target else []
    assert len(asked) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(asked, expected, strict=True))


def test_a_run_is_not_finite_if_one_of_its_minibatches_is_not() -> None:
    learner, _ = _learner(SHORT)
    rollout = _rollout(12)
    rollout.advantages[1, 0] = torch.nan
    assert learner.update(rollout).tolist() == [True, False]
