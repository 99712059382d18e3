"""Advantages, returns and learning rates on scales of their own: what is normalised, and that resuming keeps it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import deserialise, serialise
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.learner import Learner
from reference_agents.learning.reward_scale import RewardScale
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.factory import make_network
from reference_agents.settings import Settings, preset
from reference_agents.trainer import Job, train

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


@pytest.mark.parametrize("task", ["pendulum", "Ant-v5"])
def test_continuous_control_is_trained_on_scales_of_its_own(task: str) -> None:
    tuned = preset(task, "tuned")
    assert tuned.normalise_advantages
    assert tuned.normalise_returns
    assert tuned.linear_decay
    # The paper's settings stay what the paper states.
    assert not preset("cartpole", "paper").normalise_advantages
