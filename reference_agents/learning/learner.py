"""One update of every run: PPO's epochs of minibatches, or A2C's single step on the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from reference_agents.learning.adaptive_rate import AdaptiveRates, policy_divergence
from reference_agents.learning.distributions import Distribution
from reference_agents.learning.losses import DERIVATIVES, Batch, LossWeights
from reference_agents.learning.optimiser import StackedAdam
from reference_agents.learning.rollout import Rollout
from reference_agents.learning.transfer import Uploads
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.randomness import Purpose, UniformStreams
from reference_agents.settings import Settings


class Optimiser(Protocol):
    """Updates the parameters of every run by their gradients."""

    def step(self) -> torch.Tensor:
        """Take one step; the 2-norms before clipping, (runs,). Gradients that are not finite are ignored."""


class Learner:
    """Updates a network's parameters from rollouts.

    Args:
        network: the network of all runs.
        learning_rates: one per run, equal ones next to each other.
        seeds: one seed per run, which draws the minibatches.
        settings: the hyperparameters.
        policy: the action distribution that the network's outputs parametrise.
        optimiser: the optimiser of the network's parameters; `StackedAdam` if None.
    """

    def __init__(
        self,
        network: StackedNetwork,
        learning_rates: Sequence[float],
        seeds: Sequence[int],
        settings: Settings,
        policy: Distribution,
        *,
        optimiser: Optimiser | None = None,
    ) -> None:
        self._policy = policy
        self._network = network
        self._settings = settings
        self._weights = LossWeights(
            settings.value_coefficient, settings.entropy_coefficient, settings.clip, settings.bound_penalty
        )
        self._adaptive = AdaptiveRates(len(network.parameters.values), settings.target_divergence)
        self._optimiser = optimiser or StackedAdam(
            network.parameters, learning_rates, settings.max_gradient_norm, separately=settings.target_divergence > 0.0
        )
        self._derivatives = DERIVATIVES[settings.algorithm]
        self._uploads = Uploads(network.parameters.values.device)
        # Permutations come from sorting uniform numbers; few steps per block, because one step contains all epochs of a
        # batch.
        self._streams = UniformStreams(seeds, Purpose.MINIBATCHES, (settings.epochs, settings.batch), block=4)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`, without the parameters.

        Raises:
            NotImplementedError: the optimiser does not expose its state.
        """
        if not isinstance(self._optimiser, StackedAdam):
            raise NotImplementedError("the state of this optimiser cannot be saved")
        return {
            "optimiser": self._optimiser.state(),
            "streams": self._streams.state(),
            "rates": self._adaptive.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        if not isinstance(self._optimiser, StackedAdam):
            raise NotImplementedError("the state of this optimiser cannot be restored")
        self._optimiser.restore(state["optimiser"])
        self._streams.restore(state["streams"])
        self._adaptive.restore(state["rates"])

    def decay_rates(self, remaining: float) -> None:
        """Set the learning rates for the next update, from the remaining share of the run and the last update."""
        if self._settings.linear_decay and isinstance(self._optimiser, StackedAdam):
            self._optimiser.scale_rates([remaining])
        if self._adaptive.target and isinstance(self._optimiser, StackedAdam):
            share = remaining if self._settings.linear_decay else 1.0
            self._optimiser.scale_rates((share * self._adaptive.factors).tolist())

    @torch.no_grad()
    def update(self, rollout: Rollout, *, orders: torch.Tensor | None = None) -> torch.Tensor:
        """Learn from one batch.

        Args:
            rollout: the batch.
            orders: for PPO, the order of the batch in each epoch of each run, (runs, epochs, batch); drawn from the
                runs' streams if None.

        Returns:
            For each run whether every gradient was finite, shape (runs,), bool.
        """
        if not self._settings.in_epochs:
            return torch.isfinite(self._step(rollout))
        # A run counts as finite if all of its minibatches were.
        finite = torch.ones(len(rollout.actions), dtype=torch.bool, device=rollout.actions.device)
        if orders is None:
            # argsort of independent uniform numbers is a uniform permutation, of shape (runs, epochs, batch).
            orders = self._uploads.send(np.argsort(self._streams.next(), axis=-1))
        size = self._settings.batch // self._settings.minibatches
        for epoch in range(self._settings.epochs):
            # Shuffled once per epoch; minibatches are then contiguous slices.
            shuffled = _shuffle(rollout, orders[:, epoch])
            for start in range(0, self._settings.batch, size):
                finite &= torch.isfinite(self._step(_slice(shuffled, start, start + size)))
        if self._adaptive.target:
            numbers = self._network.forward(rollout.observations)[0]
            self._adaptive.follow(policy_divergence(self._policy, numbers, rollout))
        return finite

    def _step(self, rollout: Rollout) -> torch.Tensor:
        advantages = rollout.advantages
        if self._settings.normalise_advantages:
            advantages = _normalise(advantages)
        batch = Batch(rollout.actions, rollout.log_probabilities, advantages, rollout.returns)
        # Reuse the forward pass of the rollout if the parameters have not changed.
        if rollout.kept and isinstance(self._network, ActorCritic):
            numbers, values = self._network.join_kept()
        else:
            numbers, values = self._network.forward(rollout.observations, keep=True)
        # Derivatives of the loss with respect to numbers and values enter the backward pass directly: no autograd graph
        # is built.
        self._network.backward(*self._derivatives(numbers, values, batch, self._weights, self._policy))
        norms = self._optimiser.step()
        self._network.refresh()
        return norms


def _normalise(advantages: torch.Tensor) -> torch.Tensor:
    """Mean 0 and deviation 1 over the batch of each run, (runs, batch)."""
    deviation, mean = torch.std_mean(advantages, dim=1, keepdim=True)
    # 1e-8, as in Stable-Baselines3: equal advantages become 0 and not NaN.
    return (advantages - mean) / (deviation + 1e-8)


def _parts(rollout: Rollout) -> tuple[torch.Tensor, ...]:
    return (
        rollout.observations,
        rollout.actions,
        rollout.log_probabilities,
        rollout.advantages,
        rollout.returns,
    )


def _shuffle(rollout: Rollout, order: torch.Tensor) -> Rollout:
    return Rollout(*(_reorder(part, order) for part in _parts(rollout)))


def _reorder(part: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Rearrange the batch axis of each run, (runs, batch, ...), by its own order (runs, batch)."""
    # The order is broadcast along the axes after the batch axis.
    return part.gather(1, order.view(*order.shape, *(1,) * (part.dim() - 2)).expand(part.shape))


def _slice(rollout: Rollout, start: int, stop: int) -> Rollout:
    return Rollout(*(part[:, start:stop] for part in _parts(rollout)))
