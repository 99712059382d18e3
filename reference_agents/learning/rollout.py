"""Collects rollouts: some steps of the current policy in every environment of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.environments.vector import VectorEnvironment
from reference_agents.learning.distributions import Distribution
from reference_agents.learning.observation_scale import ObservationScale
from reference_agents.learning.returns import advantages_and_returns
from reference_agents.learning.reward_scale import RewardScale
from reference_agents.learning.transfer import Uploads
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.randomness import Purpose, UniformStreams, generator
from reference_agents.settings import Settings
from symcheck.array_types import Array


@dataclass(frozen=True)
class Rollout:
    """One batch of every run, flattened over time and environments; all arrays have shape (runs, batch, ...).

    Attributes:
        observations: the observations before the actions.
        actions: the actions taken; int64, or float32 with an axis of coordinates.
        log_probabilities: the logarithms of the probabilities of those actions when they were drawn.
        advantages: the advantage estimates of the actions.
        returns: the targets of the value function.
        kept: whether the network has kept its outputs for these observations (see `ActorCritic.join_kept`).
    """

    observations: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    kept: bool = field(default=False, kw_only=True)


class Steps(NamedTuple):
    """Consecutive steps: one step has shape (runs, environments, ...), several have shape (time, runs, ...).

    Attributes:
        observations: the observations before the actions.
        numbers: the outputs of the policy.
        v_t: the values of the observations.
        v_next_t: the values of the final observations where an episode ended; they are not read elsewhere.
        actions: the actions taken.
        r_t: rewards.
        terminated_t: whether the task ended, bool.
        ended_t: whether the episode ended, bool.
    """

    observations: torch.Tensor
    numbers: torch.Tensor
    v_t: torch.Tensor
    v_next_t: torch.Tensor
    actions: torch.Tensor
    r_t: torch.Tensor
    terminated_t: torch.Tensor
    ended_t: torch.Tensor


class FinishedEpisodes:
    """The returns of training episodes, as they end.

    Args:
        runs: the number of runs.
        environments: the number of environments of each run.
        begun: whether the first episodes have already begun; they are not counted.
    """

    def __init__(self, runs: int, environments: int, *, begun: bool = False) -> None:
        # Episodes that began before counting started have incomplete returns.
        self._partial = np.full((runs, environments), begun)
        self._running = np.zeros((runs, environments))
        self._sum, self._count, self._last = np.zeros(runs), np.zeros(runs), np.full(runs, np.nan)

    def add(self, reward: npt.NDArray[np.float32], ended: npt.NDArray[np.bool_]) -> None:
        """Add one step of every environment; both arguments have shape (runs, environments)."""
        self._running += reward
        if ended.any():
            # An ended episode counts unless it is incomplete; afterwards, all episodes of that environment count.
            whole = ended & ~self._partial
            self._sum += np.where(whole, self._running, 0.0).sum(1)
            self._count += whole.sum(1)
            self._running[ended] = 0.0
            self._partial &= ~ended

    def take(self) -> npt.NDArray[np.float64]:
        """Mean return since the last call, (runs,); the previous one if no episode ended, NaN before the first."""
        # `out` keeps the last mean where the count is 0.
        np.divide(self._sum, self._count, out=self._last, where=self._count > 0)
        self._sum[:], self._count[:] = 0.0, 0.0
        return self._last.copy()

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        parts = {"running": self._running, "sum": self._sum, "count": self._count, "last": self._last}
        parts["partial"] = self._partial
        return {name: torch.from_numpy(part.copy()) for name, part in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        names = ("running", "sum", "count", "last")
        self._running, self._sum, self._count, self._last = (state[name].numpy() for name in names)
        self._partial = state["partial"].numpy()


class Collector:
    """Steps the training environments and keeps their state.

    Args:
        environment: all environments of all runs.
        seeds: one seed per run.
        settings: the hyperparameters.
        policy: the action distribution that the network's outputs parametrise.
        device: the device of the network.
        observation_scale: normalises the network's observations; None for no normalisation.
    """

    def __init__(
        self,
        environment: VectorEnvironment,
        seeds: Sequence[int],
        settings: Settings,
        policy: Distribution,
        device: torch.device,
        observation_scale: ObservationScale | None = None,
    ) -> None:
        self._policy = policy
        self._observation_scale = observation_scale
        self._environment = environment
        self._settings = settings
        self._uploads = Uploads(device)
        self._streams = UniformStreams(seeds, Purpose.ACTIONS, policy.noise_shape(settings.environments))
        self._see(_decorrelate(environment, seeds, settings))
        # Games of Pong take hundreds of steps: a game shortened by decorrelation would have too high a score.
        begun = settings.decorrelation_steps > 0 and hasattr(environment, "restart")
        self._finished = FinishedEpisodes(len(seeds), settings.environments, begun=begun)
        self._scale = None
        if settings.normalise_returns:
            self._scale = RewardScale(len(seeds), settings.environments, settings.discount)

    def state(self) -> dict[str, Any]:
        """The complete state for `restore`."""
        return {
            "environment": self._environment.state(),
            "streams": self._streams.state(),
            "observation": torch.from_numpy(self._observation.copy()),
            "finished": self._finished.state(),
            "scale": None if self._scale is None else self._scale.state(),
            "observation_scale": None if self._observation_scale is None else self._observation_scale.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same runs."""
        self._environment.restore(state["environment"])
        self._streams.restore(state["streams"])
        if self._observation_scale is not None:
            self._observation_scale.restore(state["observation_scale"])
        self._see(state["observation"].numpy())
        self._finished.restore(state["finished"])
        if self._scale is not None:
            self._scale.restore(state["scale"])

    def finished_returns(self) -> npt.NDArray[np.float64]:
        """Mean return of the training episodes that ended since the last call, shape (runs,); see `take`."""
        return self._finished.take()

    @torch.no_grad()
    def collect(self, network: StackedNetwork) -> Rollout:
        """Take `settings.horizon` steps in every environment with the current network."""
        if self._observation_scale is not None:
            # The statistics are fixed until the next batch; the current observation is normalised by the new ones too.
            self._observation_scale.add(self._observation)
            self._observation_scale.apply()
            self._see(self._observation)
        # A2C takes one step with the parameters that it acted with, so it can reuse the outputs. With several views,
        # the order of a batch differs.
        kept = not self._settings.in_epochs and type(network) is ActorCritic
        if kept and isinstance(network, ActorCritic):
            network.start_keeping()
        asked, host_parts = zip(*(self._step(network, keep=kept) for _ in range(self._settings.horizon)), strict=True)
        on_device = (torch.stack(parts) for parts in zip(*asked, strict=True))
        # Results are not needed before the batch is complete: make one copy of each kind for all steps.
        actions, rewards, *ends = (np.stack(parts) for parts in zip(*host_parts, strict=True))
        if self._scale is not None:
            # One scale for the whole batch, from all steps up to its end.
            rewards = (rewards / self._scale.deviations()[:, None]).astype(np.float32)
        sent = (self._uploads.send(part) for part in (actions, rewards, *ends))
        # The value of the observation after the last step, for the bootstrap.
        last = network.forward(self._shown)[1]
        return join_steps(Steps(*on_device, *sent), last, self._policy, self._settings, kept=kept)

    def _step(
        self, network: StackedNetwork, *, keep: bool
    ) -> tuple[tuple[torch.Tensor, ...], tuple[npt.NDArray[Any], ...]]:
        """One step: the first four fields of `Steps` on the device, and the others on the host."""
        shown = self._shown
        numbers, values = network.forward(shown, keep=keep)
        actions = self._policy.sample(numbers, self._streams.next())  # the only time that a step waits for the device
        step = self._environment.step(actions)
        if self._observation_scale is not None:
            self._observation_scale.add(step.observation)
        self._see(step.observation)
        terminated, ended = step.terminated, step.terminated | step.truncated
        self._finished.add(
            # Environments with one episode per life report the score and the end of the whole game.
            step.reward if step.score is None else step.score,
            ended if step.game_over is None else step.game_over,
        )
        if self._scale is not None:
            self._scale.add(step.reward, ended)
        if self._settings.time_limit_is_terminal:
            terminated = ended
        # Ignored if the episode continues or terminated, so any finite number works.
        v_next = values
        # Truncated episodes bootstrap from the observation before the restart.
        if bool((ended & ~terminated).any()):
            v_next = network.forward(self._show(step.final_observation))[1]
        return (shown, numbers, values, v_next), (actions, step.reward, terminated, ended)

    def _see(self, observation: Array) -> None:
        """Send the next observations to the device; each observation is sent once."""
        self._observation, self._shown = observation, self._show(observation)

    def _show(self, observation: Array) -> torch.Tensor:
        """The input of the network, on its device."""
        scale = self._observation_scale
        return self._uploads.send(observation if scale is None else scale.normalise(observation))


def join_steps(
    steps: Steps, last: torch.Tensor, policy: Distribution, settings: Settings, *, kept: bool = False
) -> Rollout:
    """Join steps to one batch.

    Args:
        steps: all steps; each array has shape (time, runs, environments, ...).
        last: the values of the observations after the last step, shape (runs, environments).
        policy: the action distribution that the outputs parametrise.
        settings: the discounts.
        kept: as in `Rollout`.
    """
    # v_{t+1} of a continuing episode is the value of the next step.
    following = torch.cat([steps.v_t[1:], last.unsqueeze(0)])
    advantages, returns = advantages_and_returns(
        steps.r_t,
        steps.v_t,
        torch.where(steps.ended_t, steps.v_next_t, following),
        steps.terminated_t,
        steps.ended_t,
        discount=settings.discount,
        gae_lambda=settings.gae_lambda,
    )
    log_probabilities = policy.log_probability(steps.numbers, steps.actions)
    parts = (steps.observations, steps.actions, log_probabilities, advantages, returns)
    # (time, runs, environments, ...) to (runs, time * environments, ...).
    return Rollout(*(part.transpose(0, 1).flatten(1, 2) for part in parts), kept=kept)


def _decorrelate(environment: VectorEnvironment, seeds: Sequence[int], settings: Settings) -> Array:
    """Let each environment take its own random number of uniformly random actions; return the observations afterwards.

    If environments cannot be inactive, each one restarts when the number of remaining steps equals its drawn number of
    actions.
    """
    longest, environments = settings.decorrelation_steps, settings.environments
    observation = environment.reset()
    streams = [generator(seed, Purpose.DECORRELATION) for seed in seeds]
    lengths = np.stack([stream.integers(0, longest, environments, endpoint=True) for stream in streams])
    # Environments that cannot be inactive restart at a random time instead.
    restart = getattr(environment, "restart", None)
    for time in range(longest):
        uniforms = np.stack([stream.random((environments, environment.action_numbers)) for stream in streams])
        actions = environment.random_actions(uniforms)
        if restart is None:
            observation = environment.step(actions, active=time < lengths).observation
        else:
            # Each environment restarts `lengths` steps before the end.
            restart(lengths == longest - time)
            observation = environment.step(actions).observation
    return observation if restart is None else restart(lengths == 0)
