"""PPO's update of every run by `learn.c`: the equations of `learning`, summed in a different order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.compiled.kernel import Kernel
from reference_agents.learning.adaptive_rate import AdaptiveRates, policy_divergence
from reference_agents.learning.distributions import Distribution
from reference_agents.learning.rollout import Rollout
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.parameters import StackedParameters
from reference_agents.randomness import Purpose, UniformStreams
from reference_agents.settings import Settings
from symcheck.array_types import Bools, Floats


class CompiledNetwork:
    """The same network as `ActorCritic`, evaluated by `learn.c`; it is trained only by `CompiledLearner`.

    Args:
        network: the network whose parameters are read.
        kernel: the kernel of that network.
    """

    def __init__(self, network: ActorCritic, kernel: Kernel) -> None:
        self._network, self._kernel = network, kernel
        self.parameters: StackedParameters = network.parameters
        self._stale = True

    def refresh(self) -> None:
        """Mark the matrices as outdated; they are rebuilt on the next use."""
        self._stale = True

    def forward(
        self, observations: torch.Tensor, *, keep: bool = False, wanted: Bools | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `ActorCritic.forward`.

        Args:
            observations: (runs, batch, size).
            keep: must be False.
            wanted: the inputs whose outputs are read, (runs, batch); the outputs of others are zeros.
        """
        if keep:
            raise RuntimeError("a compiled network stores nothing for a backward pass; train it with CompiledLearner")
        self._prepare()
        heads = self._kernel.answer(observations.float(), wanted)
        return self._network.with_deviations(heads[..., :-1]), heads[..., -1]

    def play_carts(
        self,
        cart: Any,
        uniforms: Floats,
        states: Floats,
        lengths: npt.NDArray[np.int64],
        running: npt.NDArray[np.uint8],
    ) -> None:
        """As `Kernel.play_carts`."""
        self._prepare()
        self._kernel.play_carts(cart, uniforms, states, lengths, running)

    def _prepare(self) -> None:
        if self._stale:
            self._kernel.prepare()
            self._stale = False

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """Not supported by this network."""
        raise RuntimeError("a compiled network has no backward pass; train it with CompiledLearner")


class CompiledLearner:
    """Updates a network's parameters from rollouts, like `learning.learner.Learner`.

    Args:
        network: the network of all runs, on the processor.
        kernel: the kernel of that network.
        learning_rates: one per run.
        seeds: one seed per run, which draws the minibatches.
        settings: the hyperparameters.
        policy: the action distribution that the network's outputs parametrise.
    """

    def __init__(
        self,
        network: CompiledNetwork,
        kernel: Kernel,
        learning_rates: Sequence[float],
        seeds: Sequence[int],
        settings: Settings,
        policy: Distribution,
    ) -> None:
        self._network, self._kernel, self._settings, self._policy = network, kernel, settings, policy
        values = network.parameters.values
        self._adaptive = AdaptiveRates(len(values), settings.target_divergence)
        self._rates = np.array(learning_rates, dtype=np.float64)
        self._remaining = 1.0
        self._moments = torch.zeros_like(values), torch.zeros_like(values)
        self._updates = 0
        # The same streams as `Learner`, so that both use the same minibatches.
        self._streams = UniformStreams(seeds, Purpose.MINIBATCHES, (settings.epochs, settings.batch), block=4)

    def state(self) -> dict[str, Any]:
        """The state of the learner, without the parameters."""
        first, second = self._moments
        optimiser = {"first": first, "second": second, "updates": self._updates}
        return {"optimiser": optimiser, "streams": self._streams.state(), "rates": self._adaptive.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state of the same runs."""
        for moment, name in zip(self._moments, ("first", "second"), strict=True):
            moment.copy_(state["optimiser"][name])
        self._updates = int(state["optimiser"]["updates"])
        self._streams.restore(state["streams"])
        self._adaptive.restore(state["rates"])

    def decay_rates(self, remaining: float) -> None:
        """As `Learner.decay_rates`."""
        if self._settings.linear_decay:
            self._remaining = remaining

    def update(self, rollout: Rollout, *, orders: torch.Tensor | None = None) -> torch.Tensor:
        """As `Learner.update`."""
        drawn = np.argsort(self._streams.next(), axis=-1) if orders is None else orders.numpy()
        steps = (
            rollout.observations.float(), rollout.actions, rollout.log_probabilities, rollout.advantages,
            rollout.returns,
        )  # fmt: skip
        finite = self._kernel.learn(
            steps,
            np.ascontiguousarray(drawn, dtype=np.int64),
            (self._rates * self._remaining * self._adaptive.factors).astype(np.float32),
            self._updates * self._kernel.steps,
            self._moments,
        )
        self._updates += 1
        self._network.refresh()
        if self._adaptive.target:
            numbers = self._network.forward(rollout.observations)[0]
            self._adaptive.follow(policy_divergence(self._policy, numbers, rollout))
        return torch.from_numpy(finite)
