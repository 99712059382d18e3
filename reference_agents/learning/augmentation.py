"""Data augmentation: each pair of observation and action is transformed by a random element of the group."""

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

    Advantages and returns do not change, because in a symmetric MDP they are the same for the transformed pair. Old log
    probabilities are recomputed for the transformed pairs under the same parameters; A2C does not use them, so they are
    not recomputed there.

    Args:
        views: the views of the task.
        seeds: one seed per run.
        settings: the algorithm, and the number of steps per run in a rollout.
        policy: the action distribution that the network's outputs parametrise.
    """

    def __init__(self, views: Views, seeds: Sequence[int], settings: Settings, policy: Distribution) -> None:
        self._views, self._policy = views, policy
        # PPO uses the old probability of the action, which must be recomputed for a transformed pair; A2C does not use
        # it.
        self._asks = settings.in_epochs
        self._streams = UniformStreams(seeds, Purpose.AUGMENTATION, (settings.batch,))
        self._uploads = Uploads(views.index.device)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        return self._streams.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        self._streams.restore(state)

    @torch.no_grad()
    def augment(self, rollout: Rollout, network: StackedNetwork) -> Rollout:
        """The transformed rollout."""
        # Uniform on 0 .. |G| - 1; shape (runs, batch).
        drawn = (self._views.order * self._streams.next()).astype(int)
        elements = self._uploads.send(drawn)
        observations = self._views.transform_each(rollout.observations, elements)
        actions = self._views.actions(rollout.actions, elements)
        # The network's stored forward pass belongs to the original pairs.
        moved = replace(rollout, observations=observations, actions=actions, kept=False)
        if not self._asks:
            return moved
        numbers, _ = network.forward(observations)
        return replace(moved, log_probabilities=self._policy.log_probability(numbers, actions))
