"""Learning rates that follow how far updates move the policy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import deserialise, serialise
from reference_agents.compiled.engine import choose_engine
from reference_agents.learning.adaptive_rate import LEAST, MOST, AdaptiveRates, policy_divergence
from reference_agents.learning.distributions import Categorical, Gaussian
from reference_agents.learning.rollout import Rollout
from reference_agents.settings import Settings
from reference_agents.trainer import Job, State, train

SHORT = Settings(
    steps=200, environments=4, horizon=5, epochs=2, minibatches=2, decorrelation_steps=0, evaluation_episodes=1,
    evaluation_every=200, target_divergence=0.01,
)  # fmt: skip


def test_rates_fall_where_the_policy_moved_too_far_and_rise_where_it_hardly_moved() -> None:
    rates = AdaptiveRates(4, 0.01)
    rates.follow(np.array([0.021, 0.015, 0.004, np.nan]))
    assert rates.factors.tolist() == [1 / 1.5, 1.0, 1.5, 1.0]
    for _ in range(30):
        rates.follow(np.array([1.0, 0.0, 0.01, 0.01]))
    assert rates.factors[:2].tolist() == [LEAST, MOST]


def _rollout(actions: torch.Tensor, log_probabilities: torch.Tensor) -> Rollout:
    nothing = torch.zeros(log_probabilities.shape)
    return Rollout(nothing, actions, log_probabilities, nothing, nothing)


def test_the_estimate_is_the_divergence_of_the_new_policy_from_the_old() -> None:
    old, new, batch = torch.tensor([0.2, 1.0, -0.5]), torch.tensor([0.5, 0.6, 0.0]), 100_000
    p, q = torch.softmax(old.double(), 0), torch.softmax(new.double(), 0)
    actions = torch.from_numpy(np.random.default_rng(0).choice(3, size=(1, batch), p=p.numpy()))
    policy = Categorical()
    before = policy.log_probability(old.expand(1, batch, 3), actions)
    estimate = policy_divergence(policy, new.expand(1, batch, 3), _rollout(actions, before))
    ratios = q / p
    terms = ratios - 1 - ratios.log()
    exact, variance = float((p * terms).sum()), float((p * terms**2).sum() - (p * terms).sum() ** 2)
    assert exact == pytest.approx(float((p * (p / q).log()).sum()))
    assert abs(estimate[0] - exact) < 5 * np.sqrt(variance / batch)  # five standard errors


def test_a_policy_that_did_not_move_has_no_divergence() -> None:
    numbers, actions = torch.randn(2, 5, 4), torch.randn(2, 5, 2)
    policy = Gaussian(2)
    same = _rollout(actions, policy.log_probability(numbers, actions))
    assert policy_divergence(policy, numbers, same).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("asked", ["torch", "auto"])
def test_each_run_follows_its_own_updates_and_a_stopped_training_goes_on_with_its_rates(asked: str) -> None:
    task = find_task("cartpole")
    network = find_network(task, "mlp")
    job = Job(task, network, (0, 1), (1e-5, 1.0), SHORT, engine=choose_engine(asked, task, network, SHORT)[0])
    states: list[State] = []
    whole = train(job, on_checkpoint=lambda state: states.append(deserialise(serialise(state()))))
    factors = states[-1]["learner"]["rates"]
    assert min(factors[:2]) > 1.0 > max(factors[2:])
    resumed = train(job, resume_from=states[4])
    assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)
    alone = train(dataclasses.replace(job, seeds=(1,), learning_rates=(1.0,)))
    assert torch.equal(alone.network.parameters.values[0], whole.network.parameters.values[3])
