"""Advantages, returns and learning rates on scales of their own: what is normalised, and that resuming keeps it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import deserialise, serialise
from reference_agents.export import export_module
from reference_agents.learning.distributions import Categorical, Gaussian
from reference_agents.learning.learner import Learner
from reference_agents.learning.losses import Batch, LossWeights, ppo_derivatives
from reference_agents.learning.observation_scale import LEAST_DEVIATION, ObservationScale, fold_in
from reference_agents.learning.reward_scale import RewardScale
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.factory import make_network
from reference_agents.settings import Settings, default_rate, preset, preset_name
from reference_agents.symmetries import task_symmetry
from reference_agents.tasks import resolve_task
from reference_agents.trainer import Job, train
from reference_agents.vectorised import distribution_of
from reference_agents.verification import verify
from symcheck.groups import cyclic
from symcheck.representations import signed_permutation
from symcheck.representations.representation import Representation

SMALL = Settings(environments=4, horizon=10, epochs=1, minibatches=1, decorrelation_steps=0)


def _returns_by_hand(rewards: np.ndarray, ended: np.ndarray, discount: float) -> np.ndarray:
    running, seen = np.zeros(rewards.shape[1:]), []
    for reward, end in zip(rewards, ended, strict=True):
        running = discount * running + reward
        seen.append(running.copy())
        running[end] = 0.0
    return np.array(seen)


def test_the_scale_of_rewards_is_the_deviation_of_all_returns_so_far() -> None:
    drawn = np.random.default_rng(0)
    rewards, ended = 5.0 + 3.0 * drawn.standard_normal((40, 2, 3)), drawn.random((40, 2, 3)) < 0.1
    scale, (first, second) = RewardScale(2, 3, 0.9), (RewardScale(1, 3, 0.9), RewardScale(1, 3, 0.9))
    for reward, end in zip(rewards, ended, strict=True):
        scale.add(reward, end)
        first.add(reward[:1], end[:1])
    expected = _returns_by_hand(rewards, ended, 0.9).transpose(1, 0, 2).reshape(2, -1).std(1)
    # Sums of 120 numbers of order 50 in float64.
    np.testing.assert_allclose(scale.deviations(), expected, rtol=1e-12)
    # A run's scale does not depend on its company, and goes on from a state.
    assert first.deviations()[0] == scale.deviations()[0]
    second.restore(first.state())
    second.add(rewards[0, :1], ended[0, :1])
    first.add(rewards[0, :1], ended[0, :1])
    assert second.deviations() == first.deviations()


def test_rewards_that_are_all_alike_are_left_as_they_are() -> None:
    scale = RewardScale(1, 2, 0.5)
    scale.add(np.zeros((1, 2)), np.zeros((1, 2), dtype=bool))
    assert scale.deviations().tolist() == [1.0]


def _update(settings: Settings, advantages: torch.Tensor, *, remaining: float = 1.0) -> torch.Tensor:
    """The parameters of one run after one update on fixed steps."""
    task = find_task("cartpole")
    network = make_network(task, find_network(task, "mlp"), [0], torch.device("cpu"))
    drawn = torch.Generator().manual_seed(1)
    observations = torch.randn(1, settings.batch, 4, generator=drawn)
    policy, actions = Categorical(), torch.randint(2, (1, settings.batch), generator=drawn)
    with torch.no_grad():
        before = policy.log_probability(network.forward(observations)[0], actions)
    rollout = Rollout(observations, actions, before, advantages, torch.zeros(1, settings.batch))
    start = network.parameters.values.clone()
    learner = Learner(network, [0.001], [0], settings, policy)
    learner.decay_rates(remaining)
    learner.update(rollout)
    return network.parameters.values - start


def test_normalised_advantages_have_mean_0_and_deviation_1_whatever_they_are_counted_in() -> None:
    advantages = torch.randn(1, SMALL.batch, generator=torch.Generator().manual_seed(2))
    by_hand = (advantages - advantages.mean()) / advantages.std()
    normalising = replace(SMALL, normalise_advantages=True)
    expected = _update(SMALL, by_hand)
    # A step of Adam is of the size of the rate, 0.001; float32 rounding of the advantages is amplified where a
    # gradient is nearly 0.
    assert torch.allclose(_update(normalising, 1_000.0 * advantages + 7.0), expected, atol=2e-5)
    assert not torch.allclose(_update(SMALL, advantages + 7.0), expected, atol=2e-5)
    # Below the 1e-8 that are added they shrink, and keep their sign.
    share = 3e-9 * advantages.std() / (3e-9 * advantages.std() + 1e-8)
    assert torch.allclose(_update(normalising, 3e-9 * advantages), _update(SMALL, share * by_hand), atol=2e-5)
    assert torch.isfinite(_update(normalising, torch.ones(1, SMALL.batch))).all()


def test_a_rate_that_decays_is_a_share_of_the_first_and_not_of_the_last() -> None:
    advantages = torch.randn(1, SMALL.batch, generator=torch.Generator().manual_seed(2))
    whole = _update(SMALL, advantages)
    decaying = replace(SMALL, linear_decay=True)
    assert torch.equal(_update(decaying, advantages), whole)
    # Adam's first step is proportional to its rate, up to the rounding of parameters of order 1.
    assert torch.allclose(_update(decaying, advantages, remaining=0.25), 0.25 * whole, atol=1e-6)
    assert torch.equal(_update(SMALL, advantages, remaining=0.25), whole)


def test_a_training_whose_scales_move_resumes_bit_for_bit_and_alone_as_in_company() -> None:
    task = find_task("cartpole")
    settings = replace(
        SMALL, steps=400, minibatches=2, normalise_advantages=True, normalise_returns=True, linear_decay=True,
        evaluation_every=200, evaluation_episodes=2,
    )  # fmt: skip
    job, contents = Job(task, find_network(task, "equivariant"), (0, 1), (0.001, 0.01), settings), []
    whole = train(job, on_checkpoint=lambda state: contents.append(serialise(state())))
    alone = train(replace(job, seeds=(1,), learning_rates=(0.01,)))
    assert torch.equal(alone.network.parameters.values[0], whole.network.parameters.values[3])
    resumed = train(job, resume_from=deserialise(contents[4]))
    assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)


def test_statistics_of_a_symmetric_network_are_those_of_observations_and_their_images() -> None:
    rho = signed_permutation(cyclic(2), [[-1, 3, 2]])
    scale, plain = ObservationScale(2, 3, rho), ObservationScale(2, 3, None)
    seen = 2.0 + np.random.default_rng(0).standard_normal((6, 2, 4, 3)) * np.array([1.0, 2.0, 3.0])
    for step in seen:
        scale.add(step)
        plain.add(step)
    # Nothing changes before the statistics are applied.
    assert np.array_equal(scale.normalise(seen[0]), seen[0].astype(np.float32))
    scale.apply()
    plain.apply()
    images = seen[..., [0, 2, 1]] * np.array([-1.0, 1.0, 1.0])
    both = np.concatenate([seen, images]).transpose(1, 0, 2, 3).reshape(2, -1, 3)
    # Sums of 48 numbers of order 3 in float64.
    np.testing.assert_allclose(scale.shift, both.mean(1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(1.0 / scale.factor, both.std(1), rtol=1e-12)
    alone = seen.transpose(1, 0, 2, 3).reshape(2, -1, 3)
    np.testing.assert_allclose(plain.shift, alone.mean(1), rtol=1e-12)
    still = ObservationScale(1, 1, None)
    still.add(np.full((1, 4, 1), 7.0))
    still.apply()
    assert still.normalise(np.array([[[7.0 + LEAST_DEVIATION]]])).tolist() == [[[pytest.approx(1.0)]]]


@pytest.mark.parametrize("rho", [None, signed_permutation(cyclic(2), [[-1, 3, 2]])], ids=["plain", "symmetric"])
def test_statistics_in_use_do_not_move_while_observations_are_added(rho: Representation | None) -> None:
    scale, drawn = ObservationScale(1, 3, rho), np.random.default_rng(0)
    scale.add(drawn.standard_normal((1, 8, 3)))
    scale.apply()
    shown = drawn.standard_normal((1, 8, 3))
    before = scale.normalise(shown)
    scale.add(5.0 + drawn.standard_normal((1, 8, 3)))
    assert np.array_equal(scale.normalise(shown), before)
    scale.apply()
    assert not np.array_equal(scale.normalise(shown), before)


@pytest.mark.parametrize("network", ["equivariant", "nullspace", "random", "mlp", "symmetrized"])
def test_the_trained_network_reads_plain_observations_as_it_read_normalised_ones(network: str) -> None:
    task = find_task("cartpole")
    plan = dataclasses.replace(find_network(task, network), bias_gain=1.0)
    stacked = make_network(task, plan, [0, 1], torch.device("cpu"))
    symmetry = None if network == "mlp" else task_symmetry(task).observation_representation
    scale = ObservationScale(2, 4, symmetry)
    seen = np.array([1.0, -2.0, 0.5, 3.0]) + np.random.default_rng(0).standard_normal((2, 30, 4)) * [1, 2, 3, 4]
    scale.add(seen)
    scale.apply()
    shown = torch.from_numpy(scale.normalise(seen))
    expected = stacked.forward(shown)
    fold_in(scale, stacked.plan, stacked.parameters)
    stacked.refresh()
    for before, after in zip(expected, stacked.forward(torch.from_numpy(seen.astype(np.float32))), strict=True):
        # Float32 sums of numbers up to 30 in the first layer.
        assert torch.allclose(before, after, atol=1e-4)
    if network == "equivariant":
        module = export_module(task, plan, stacked.parameters.of_run(0))
        assert verify(module, plan, task).verdict == "proved"


def test_a_training_on_normalised_observations_resumes_bit_for_bit_and_is_proved() -> None:
    task = find_task("pendulum")
    settings = replace(
        preset("pendulum", "control"), steps=240, environments=2, horizon=20, epochs=1, minibatches=2,
        decorrelation_steps=5, evaluation_every=120, evaluation_episodes=1,
    )  # fmt: skip
    plan = find_network(task, "equivariant").with_quirks(dataclasses.asdict(settings))
    job, contents = Job(task, plan, (0, 1), (0.001,), settings), []
    states = []
    whole = train(job, on_checkpoint=lambda state: (contents.append(serialise(state())), states.append(state)))
    alone = train(replace(job, seeds=(1,)))
    assert torch.equal(alone.network.parameters.values[0], whole.network.parameters.values[1])
    # The last one too, asked for after the training has ended.
    for content in (contents[2], serialise(states[-1]())):
        resumed = train(job, resume_from=deserialise(content))
        assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)
    module = export_module(task, plan, whole.network.parameters.of_run(0))
    assert verify(module, plan, task).verdict == "proved"


def test_means_outside_their_bounds_are_drawn_back_and_others_left_alone() -> None:
    policy = Gaussian(3, np.array([1.0, 2.0, np.inf]))
    numbers = torch.tensor([[[3.0, -2.1, 50.0, 0.0, 0.0, 0.0]]], requires_grad=True)
    excess = (numbers[..., :2].abs() / torch.tensor([1.0, 2.0]) - 1.1).clamp(min=0.0)
    (0.5 * excess.square().sum()).backward()
    with torch.no_grad():
        assert torch.allclose(policy.bound_derivatives(numbers, 0.5), numbers.grad)
    assert numbers.grad.count_nonzero() == 1
    assert not Gaussian(3).bound_derivatives(numbers.detach(), 0.5).any()
    # In units in which a policy draws: the catalogue's Pendulum in its own, an environment outside it in the bounds'.
    assert distribution_of(find_task("pendulum")).bounds.tolist() == [2.0]
    assert distribution_of(resolve_task("MountainCarContinuous-v0")).bounds.tolist() == [1.0]


def test_the_penalty_enters_the_loss() -> None:
    numbers, values = torch.tensor([[[2.0, 0.0]]]), torch.zeros(1, 1)
    batch = Batch(torch.zeros(1, 1, 1), torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1))
    policy = Gaussian(1, np.ones(1))
    without = ppo_derivatives(numbers, values, batch, LossWeights(0.5, 0.0, 0.2), policy)[0]
    penalised = ppo_derivatives(numbers, values, batch, LossWeights(0.5, 0.0, 0.2, 0.1), policy)[0]
    assert (penalised - without).tolist() == [[[pytest.approx(2 * 0.1 * 0.9), 0.0]]]


@pytest.mark.parametrize("task", ["pendulum", "Ant-v5"])
def test_continuous_control_is_trained_on_scales_of_its_own(task: str) -> None:
    assert preset_name(task, None, continuous=True) == "control"
    for tuned in (preset(task, "control"), preset(task, "tuned")):
        assert tuned.normalise_advantages
        assert tuned.normalise_returns
        assert tuned.linear_decay
    assert preset(task, "control").normalise_observations
    assert default_rate(task, "control", "mlp", 0.5) == {"pendulum": 0.001, "Ant-v5": 0.0001}[task]
    heads = [find_network(find_task("pendulum"), "mlp").with_quirks({"policy_gain": gain}) for gain in (1.0, 0.01)]
    plain, small = (make_network(find_task("pendulum"), head, [0], torch.device("cpu")) for head in heads)
    views = [net.parameters.layout.views(net.parameters.values)["policy.weight"] for net in (plain, small)]
    assert torch.allclose(0.01 * views[0], views[1])
    # Coordinates that the symmetry ties have the same deviation.
    for name in ("mlp", "equivariant"):
        narrow = find_network(find_task("pendulum"), name).with_quirks({"initial_deviation": 0.25})
        network = make_network(find_task("pendulum"), narrow, [0], torch.device("cpu"))
        numbers, _ = network.forward(torch.zeros(1, 1, 3))
        assert numbers[..., 1:].exp().flatten().tolist() == pytest.approx([0.25])
    # The paper's settings stay what the paper states.
    assert not preset("cartpole", "paper").normalise_advantages


def test_a_learner_whose_optimiser_shows_no_state_says_so() -> None:
    learner = object.__new__(Learner)
    learner._optimiser = None
    with pytest.raises(NotImplementedError, match="saved"):
        learner.state()
    with pytest.raises(NotImplementedError, match="restored"):
        learner.restore({})
