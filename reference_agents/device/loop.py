"""Rollouts and updates of all runs on one device, as one CUDA graph if CUDA is available.

All runs share one random generator on the device, so the numbers of a run depend on the other runs, although their
distribution does not. Use `trainer.train` if the bits of a run must not depend on other runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.device import graph
from reference_agents.device.adam import DeviceAdam
from reference_agents.device.environments import (
    CartPoleDevice,
    DeviceEnvironment,
    PredatorPreyDevice,
)
from reference_agents.environments.predator_prey import all_images
from reference_agents.learning.distributions import Categorical
from reference_agents.learning.learner import Learner
from reference_agents.learning.rollout import Rollout, Steps, join_steps
from reference_agents.networks.factory import make_network
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.networks.tabulated import TabulatedNetwork
from reference_agents.trainer import Job, Progress, Training, is_due, one_thread
from reference_agents.vectorised import tabulates
from symcheck.errors import OptionError

TASKS = ("cartpole", "gridworld")
MOST_EPISODE_STEPS = 1_000  # more steps than an episode of either task
STEPS_AT_ONCE = 25  # steps of an evaluation between two tests whether an episode is still running


def runs_on_device(job: Job) -> bool:
    """Whether a job's environment and network are implemented for a device."""
    return not list(_obstacles(job))


def why_on_host(job: Job) -> str:
    """The reason why a job's environments run on the CPU; "" if they run on the device."""
    return ", ".join(_obstacles(job))


def _obstacles(job: Job) -> Iterator[str]:
    if job.task.name not in TASKS:
        yield f"the task is not {' or '.join(TASKS)}"
    # Augmentation draws group elements on the host, and a user's module may contain code that cannot be recorded.
    if job.network.views == "augmented" or job.network.basis == "user":
        yield f"the network is {job.network.name}"
    settings = job.settings
    # Decaying rates and running scales are host numbers, which a recorded graph would keep constant.
    for name in ("linear_decay", "target_divergence", "normalise_returns", "normalise_observations"):
        if getattr(settings, name):
            yield f"{name} is {str(getattr(settings, name)).lower()}"
    if settings.evaluation != "episodes":
        yield f"evaluation is {settings.evaluation}"


class DeviceLoop:
    """The state and operations of training on a device.

    Args:
        job: the job to train.
        generator: the generator of all random numbers except the initial parameters, on the job's device.

    Raises:
        OptionError: the job is not supported on a device.
    """

    def __init__(self, job: Job, generator: torch.Generator) -> None:
        if not runs_on_device(job):
            raise OptionError(
                f"expected one of {', '.join(TASKS)} with a built-in network, got {job.task.name} {job.network.name}.",
                where="--device",
                remedy="Use --device cpu.",
            )
        self.job, self._generator, self._device = job, generator, torch.device(job.device)
        seeds = [seed for _, seed in job.runs]
        self.network = make_network(job.task, job.network, seeds, self._device)
        # The source of actions: the network, or a table of its outputs for all 49 images.
        self._asked: StackedNetwork = self.network
        if tabulates(job.network, job.settings, job.task):
            self._asked = TabulatedNetwork(self.network, all_images(), self._device)
        rates = [rate for rate, _ in job.runs]
        adam = DeviceAdam(self.network.parameters, rates, job.settings.max_gradient_norm)
        self._learner = Learner(self._asked, rates, seeds, job.settings, Categorical(), optimiser=adam)
        self._environment = self._make(job.settings.environments)
        self._environment.reset(self._uniforms(job.settings.environments))
        self.finite = torch.ones(len(seeds), dtype=torch.bool, device=self._device)
        self._update = graph.Repeated(self._one_update, generator, self._device)
        # Evaluation has separate environments and buffers of fixed size, for a separate graph.
        self._played = self._make(job.settings.evaluation_episodes)
        self._returns = torch.zeros(
            len(seeds), job.settings.evaluation_episodes, dtype=torch.float64, device=self._device
        )
        self._running = torch.ones_like(self._returns, dtype=torch.bool)
        self._play_on = graph.Repeated(self._play_a_few_steps, generator, self._device)

    def _make(self, environments: int) -> DeviceEnvironment:
        runs = len(self.job.runs)
        if self.job.task.name == "cartpole":
            return CartPoleDevice(runs, environments, self._device)
        return PredatorPreyDevice(runs, environments, self._device, coded=self._asked is not self.network)

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.rand(
            len(self.job.runs), *shape, dtype=torch.float64, device=self._device, generator=self._generator
        )

    def _uniforms(self, environments: int) -> torch.Tensor:
        return self._random(environments, CartPoleDevice.uniforms if self.job.task.name == "cartpole" else 6)

    @torch.no_grad()
    def decorrelate(self) -> None:
        """Take a random number of uniformly random actions in each environment."""
        environments, longest = self.job.settings.environments, self.job.settings.decorrelation_steps
        lengths = (self._random(environments) * (longest + 1)).long()
        for step in range(longest):
            actions = (self._random(environments) * self._environment.actions).long()
            self._environment.step(actions, self._uniforms(environments), active=step < lengths)

    @torch.no_grad()
    def update(self) -> None:
        """Collect one batch of every run and learn from it."""
        self._update()

    def _one_update(self) -> None:
        # First rebuild everything derived from the parameters: a graph may not read values from before it.
        self._asked.refresh()
        settings = self.job.settings
        # A random permutation of the batch for each epoch, by sorting uniform numbers.
        orders = self._random(settings.epochs, settings.batch).argsort(-1) if settings.in_epochs else None
        self.finite &= self._learner.update(self._collect(), orders=orders)

    def _collect(self) -> Rollout:
        steps = [self._step() for _ in range(self.job.settings.horizon)]
        # The value after the last step bootstraps the rollout.
        last = self._asked.forward(self._environment.observe())[1]
        return join_steps(Steps(*map(torch.stack, zip(*steps, strict=True))), last, Categorical(), self.job.settings)

    def _step(self) -> Steps:
        settings, observation = self.job.settings, self._environment.observe()
        numbers, values = self._asked.forward(observation)
        actions = draw(numbers, self._random(settings.environments))
        step = self._environment.step(actions, self._uniforms(settings.environments))
        ended = step.terminated | step.truncated
        # If a time limit counts as termination, the value of the next state is never used.
        terminated, v_next = (ended, values) if settings.time_limit_is_terminal else (step.terminated, None)
        if v_next is None:
            v_next = self._asked.forward(step.final_observation)[1]
        return Steps(observation, numbers, values, v_next, actions, step.reward, terminated, ended)

    @torch.no_grad()
    def evaluate(self) -> npt.NDArray[np.float64]:
        """Mean return of whole episodes with sampled actions, on separate environments, shape (runs,)."""
        self._played.reset(self._uniforms(self._returns.shape[1]))
        self._returns.zero_()
        self._running.fill_(True)
        # Each replay has a fixed number of steps; reading the flag in between waits for the device.
        for _ in range(MOST_EPISODE_STEPS // STEPS_AT_ONCE):
            self._play_on()
            if not bool(self._running.any()):
                break
        return np.asarray(self._returns.mean(1).cpu().numpy())

    def _play_a_few_steps(self) -> None:
        self._asked.refresh()
        episodes = self._returns.shape[1]
        for _ in range(STEPS_AT_ONCE):
            numbers = self._asked.forward(self._played.observe())[0]
            step = self._played.step(draw(numbers, self._random(episodes)), self._uniforms(episodes))
            # Only first episodes count: an environment restarts when its episode ends.
            self._returns += torch.where(self._running, step.reward.double(), 0.0)
            self._running &= ~(step.terminated | step.truncated)


def draw(numbers: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Sample actions from logits (..., k) by inverting the cumulative distribution; uniforms in [0, 1) of shape (...).

    Example:
        >>> draw(torch.zeros(1, 2, 2), torch.tensor([[0.2, 0.7]])).tolist()
        [[0, 1]]
    """
    # The last cumulative value is 1 up to rounding; omitting it bounds the action by k - 1.
    cumulative = torch.softmax(numbers, dim=-1).cumsum(-1)[..., :-1]
    return (uniforms.unsqueeze(-1) >= cumulative).sum(-1)


def train_on_device(job: Job, *, on_progress: Callable[[Progress], None] | None = None, seed: int = 0) -> Training:
    """Train every run of a job on its device.

    Args:
        job: the job to train; see `runs_on_device`.
        on_progress: called after every evaluation.
        seed: the seed of the generator that all runs share.

    Returns:
        As `trainer.train`, but without checkpoints. After an interrupt (Ctrl-C), the results so far.

    Raises:
        OptionError: the job is not supported on a device.
    """
    with one_thread():
        loop = DeviceLoop(job, graph.seeded_generator(job.device, seed))
        training = Training(job, loop.network, loop.network.parameters.values.clone(), interrupted=True)
        with contextlib.suppress(KeyboardInterrupt):
            loop.decorrelate()
            _run(loop, training, on_progress or (lambda progress: None))
            training.interrupted = False
        loop.network.refresh()
    return training


def _run(loop: DeviceLoop, training: Training, on_progress: Callable[[Progress], None]) -> None:
    settings = loop.job.settings
    total = settings.updates * settings.batch
    # Update 0 is the evaluation of the initial network.
    for update in range(settings.updates + 1):
        started = time.perf_counter()
        if update:
            loop.update()
        if update and not is_due(update, settings):
            training.training_seconds += time.perf_counter() - started
            continue
        finite = loop.finite.cpu().numpy()  # waits for the device, so that the training time is measured correctly
        training.training_seconds += time.perf_counter() - started
        started = time.perf_counter()
        returns = loop.evaluate()
        for run in np.flatnonzero(~finite).tolist():
            # The first update at which a run was not finite.
            training.stopped.setdefault(run, update * settings.batch)
        returns[~finite] = np.nan
        training.env_steps.append(update * settings.batch)
        training.returns.append(returns)
        training.evaluation_seconds += time.perf_counter() - started
        on_progress(Progress(update * settings.batch, total, returns, update * settings.batch))
