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
from reference_agents.settings import Settings


class Augmenter:
    """Replaces the pairs (s, a) of a rollout by (L_g s, K_g a), g uniform and independent.

    Advantages and returns stay: in a symmetric MDP they belong to the moved pair as well. Old log probabilities are
    those of the moved pairs under the same parameters; A2C does not read them, so there they stay as they were.

    Args:
        views: the views of the task.
        seeds: one per run.
        settings: the algorithm, and how many steps of one run a rollout has.
        policy: how the network's numbers are read.
    """

    def __init__(self, views: Views, seeds: Sequence[int], settings: Settings, policy: Distribution) -> None:
        self._views, self._policy = views, policy
        # PPO compares with the probability of the action as it is stored, so a moved pair needs a new one; A2C does
        # not.
        self._asks = settings.in_epochs
        self._streams = UniformStreams(seeds, Purpose.AUGMENTATION, (settings.batch,))
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
        # Uniform on 0 .. |G| - 1; shape (runs, batch).
        drawn = (self._views.order * self._streams.next()).astype(int)
        elements = self._uploads.send(drawn)
        observations = self._views.transform_each(rollout.observations, elements)
        actions = self._views.actions(rollout.actions, elements)
        # What the network kept of the forward pass belongs to the pairs before they were moved.
        moved = replace(rollout, observations=observations, actions=actions, kept=False)
        if not self._asks:
            return moved
        numbers, _ = network.forward(observations)
        return replace(moved, log_probabilities=self._policy.log_probability(numbers, actions))
