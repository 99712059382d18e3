"""Data augmentation, on CartPole: the mirror negates observations and swaps the two actions."""

from __future__ import annotations

import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.learning.augmentation import Augmenter
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.build import build_plan
from reference_agents.networks.views import Views
from reference_agents.settings import preset

TASK = find_task("cartpole")
BATCH = 400


def _rollout() -> Rollout:
    draw = torch.Generator().manual_seed(0)
    observations = torch.randn(2, BATCH, 4, generator=draw)
    actions = torch.randint(2, (2, BATCH), generator=draw)
    return Rollout(observations, actions, *torch.randn(3, 2, BATCH, generator=draw), kept=True)


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_pairs_are_moved_together_about_half_of_them_and_only_ppo_asks_the_network_again(algorithm: str) -> None:
    settings = preset("cartpole", "paper").with_changes(algorithm=algorithm, environments=1, horizon=BATCH)
    network = ActorCritic(build_plan(TASK, find_network(TASK, "mlp")), [0, 1], torch.device("cpu"))
    before = _rollout()
    asked: list[torch.Tensor] = []
    forward = network.forward
    network.forward = lambda x: asked.append(x) or forward(x)  # type: ignore[assignment,method-assign,func-returns-value]
    after = Augmenter(Views(TASK), [0, 1], settings, Categorical()).augment(before, network)
    moved = after.actions != before.actions
    signs = torch.where(moved, -1.0, 1.0).unsqueeze(-1)
    assert torch.equal(after.observations, before.observations * signs)
    # of 400 fair draws, 200 +- 10 (one standard deviation): 140 to 260 is six of them
    assert moved.sum(1).tolist() == pytest.approx([200, 200], abs=60)
    assert not torch.equal(moved[0], moved[1])
    assert torch.equal(after.advantages, before.advantages)
    assert torch.equal(after.returns, before.returns)
    assert not after.kept
    if algorithm == "a2c":
        assert not asked
        assert torch.equal(after.log_probabilities, before.log_probabilities)
    else:
        numbers, _ = forward(after.observations)
        expected = torch.log_softmax(numbers, -1).gather(-1, after.actions.unsqueeze(-1)).squeeze(-1)
        assert torch.equal(after.log_probabilities, expected)
