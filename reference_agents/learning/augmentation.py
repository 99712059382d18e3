"""Data augmentation: each pair of observation and action is moved by an element of the group drawn for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from reference_agents.learning.distributions import Distribution
from reference_agents.learning.rollout import Rollout
from reference_agents.learning.transfer import Uploads
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.networks.views import Views
from reference_agents.randomness import Purpose, UniformStreams


class Augmenter:
    """Replaces the pairs (s, a) of a rollout by (L_g s, K_g a), g uniform and independent.

    Advantages and returns stay: in a symmetric MDP they belong to the moved pair as well. Old log probabilities are
    those of the moved pairs under the same parameters.

    Args:
        views: of the task.
        seeds: one per run.
        batch: steps of one run in a rollout.
        policy: how the network's numbers are read.
    """

    def __init__(self, views: Views, seeds: Sequence[int], batch: int, policy: Distribution) -> None:
        self._views, self._policy = views, policy
        self._streams = UniformStreams(seeds, Purpose.AUGMENTATION, (batch,))
        self._uploads = Uploads(views.index.device)

    def state(self) -> dict[str, Any]:
        """Everything that later draws depend on."""
        return self._streams.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same runs."""
        self._streams.restore(state)

    @torch.no_grad()
    def augment(self, rollout: Rollout, network: StackedNetwork) -> Rollout:
        """The moved rollout."""
        drawn = (self._views.order * self._streams.next()).astype(int)
        which = self._uploads.send(drawn)
        observations = self._views.each(rollout.observations, which)
        actions = self._views.actions(rollout.actions, which)
        numbers, _ = network.forward(observations)
        log_probabilities = self._policy.log_probability(numbers, actions)
        return replace(
            rollout, observations=observations, actions=actions, log_probabilities=log_probabilities, kept=False
        )
