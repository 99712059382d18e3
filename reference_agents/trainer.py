"""The loop: play, learn, now and then evaluate; for all seeds and learning rates of one network at once.

Runs are ordered by learning rate, then seed. Nothing that one run does reaches another: parameters, moments, clipping
and random streams are its own, and a run whose gradient is no longer finite is stopped by itself and named.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.evaluation import play
from reference_agents.learning.augmentation import Augmenter
from reference_agents.learning.learner import Learner
from reference_agents.learning.rollout import Collector
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.factory import make_network
from reference_agents.networks.views import Views
from reference_agents.settings import Settings
from reference_agents.vectorised import distribution_of, environment_class


@dataclass(frozen=True)
class Job:
    """Everything that a training depends on.

    Attributes:
        task: what to learn.
        network: the network of every run.
        seeds: the seeds, each 0 or more and different.
        learning_rates: each is trained with every seed.
        settings: the algorithm's numbers.
        device: "cpu" or "cuda".
    """

    task: Task
    network: NetworkPlan
    seeds: tuple[int, ...]
    learning_rates: tuple[float, ...]
    settings: Settings
    device: str = "cpu"

    @property
    def runs(self) -> tuple[tuple[float, int], ...]:
        """(learning rate, seed) of every run, in the order of the stack."""
        return tuple(itertools.product(self.learning_rates, self.seeds))


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes:
        env_steps: steps that each run has taken.
        total: steps that each run will have taken.
        returns: each run's latest evaluation, shape (runs,); NaN for a run that stopped.
    """

    env_steps: int
    total: int
    returns: npt.NDArray[np.float64]


@dataclass
class Training:
    """What came of a job.

    Attributes:
        job: what was asked for.
        network: the stacked network at the end.
        initial_parameters: the values it started from, shape (runs, parameters).
        env_steps: steps of each run when each evaluation was made, shape (evaluations,).
        returns: mean returns, shape (evaluations, runs); NaN from where a run stopped.
        stopped: env steps at which a run diverged, by its position in the stack.
        interrupted: whether it was stopped from outside before its end.
        training_seconds: wall time of playing and learning.
        evaluation_seconds: wall time of evaluations.
    """

    job: Job
    network: ActorCritic
    initial_parameters: torch.Tensor
    env_steps: list[int] = field(default_factory=list)
    returns: list[npt.NDArray[np.float64]] = field(default_factory=list)
    stopped: dict[int, int] = field(default_factory=dict)
    interrupted: bool = False
    training_seconds: float = 0.0
    evaluation_seconds: float = 0.0


def train(job: Job, *, on_progress: Callable[[Progress], None] | None = None) -> Training:
    """Train every run of a job.

    Args:
        job: what to train.
        on_progress: told after every update.

    Returns:
        The curves and the trained network. After an interrupt (Ctrl-C), what was finished by then.

    Raises:
        OptionError: for a device that is not there.
    """
    device = torch.device(job.device)
    seeds = [seed for _, seed in job.runs]
    with _one_thread():
        network = make_network(job.task, job.network, seeds, device)
        training = Training(job, network, network.parameters.values.clone())
        with contextlib.suppress(KeyboardInterrupt):
            training.interrupted = True
            _loop(training, seeds, device, on_progress or (lambda progress: None))
            training.interrupted = False
    return training


def _loop(
    training: Training, seeds: Sequence[int], device: torch.device, on_progress: Callable[[Progress], None]
) -> None:
    job, network, settings = training.job, training.network, training.job.settings
    make = environment_class(job.task)
    policy = distribution_of(job.task)
    learner = Learner(network, [rate for rate, _ in job.runs], seeds, settings, policy)
    collector = Collector(make(seeds, settings.environments), seeds, settings, policy, device)
    augmenter = None
    if job.network.views == "augmented":
        augmenter = Augmenter(Views(job.task).to(device), seeds, settings.batch, policy)
    _evaluate(training, seeds, device)
    for update in range(1, settings.updates + 1):
        started = time.perf_counter()
        rollout = collector.collect(network)
        finite = learner.update(rollout if augmenter is None else augmenter.augment(rollout, network))
        _note_divergence(training, finite, update * settings.batch)
        training.training_seconds += time.perf_counter() - started
        if _is_due(update, settings):
            _evaluate(training, seeds, device, env_steps=update * settings.batch)
        on_progress(Progress(update * settings.batch, settings.updates * settings.batch, training.returns[-1]))


def _is_due(update: int, settings: Settings) -> bool:
    """Whether this update is the first at or after a multiple of `evaluation_every`, or the last."""
    now, before = update * settings.batch, (update - 1) * settings.batch
    return now // settings.evaluation_every > before // settings.evaluation_every or update == settings.updates


def _note_divergence(training: Training, finite: torch.Tensor, env_steps: int) -> None:
    if not bool(finite.all()):
        for run in torch.nonzero(~finite).flatten().tolist():
            training.stopped.setdefault(run, env_steps)


def _evaluate(training: Training, seeds: Sequence[int], device: torch.device, *, env_steps: int = 0) -> None:
    started = time.perf_counter()
    network, settings = training.network, training.job.settings

    @torch.no_grad()
    def policy(observations: npt.NDArray[np.float32]) -> torch.Tensor:
        return network.forward(torch.from_numpy(observations).to(device))[0]

    returns = play(
        policy,
        distribution_of(training.job.task),
        environment_class(training.job.task),
        seeds,
        episodes=settings.evaluation_episodes,
        index=len(training.env_steps),
    ).mean(1)
    returns[list(training.stopped)] = math.nan
    training.env_steps.append(env_steps)
    training.returns.append(returns)
    training.evaluation_seconds += time.perf_counter() - started


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Small batched products gain nothing from a second thread and lose much when cores are shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
