"""The training loop: rollouts, updates and evaluations, for all seeds and learning rates of one network at once.

Runs are ordered by learning rate, then seed. Runs are independent: each has its own parameters, moments, clipping and
random streams. If the gradient of a run is no longer finite, only that run is stopped and reported.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.compiled.carts import play_carts
from reference_agents.compiled.kernel import Kernel
from reference_agents.compiled.learner import CompiledLearner, CompiledNetwork
from reference_agents.environments.gymnasium_vector import GymnasiumVector
from reference_agents.environments.predator_prey import all_images
from reference_agents.evaluation import play, play_window
from reference_agents.learning.augmentation import Augmenter
from reference_agents.learning.distributions import Distribution
from reference_agents.learning.learner import Learner
from reference_agents.learning.observation_scale import ObservationScale, fold_in
from reference_agents.learning.rollout import Collector
from reference_agents.learning.transfer import Download, Uploads
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.factory import make_network
from reference_agents.networks.stacked import StackedNetwork
from reference_agents.networks.tabulated import TabulatedNetwork
from reference_agents.networks.views import Views
from reference_agents.settings import Settings
from reference_agents.symmetries import task_symmetry
from reference_agents.vectorised import distribution_of, environment_class, tabulates
from symcheck.array_types import Array, Bools
from symcheck.errors import TargetError

State = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The complete description of a training run.

    Attributes:
        task: the task.
        network: the network of every run.
        seeds: the seeds, each 0 or more and different.
        learning_rates: each is trained with every seed.
        settings: the hyperparameters.
        device: "cpu" or "cuda".
        engine: "torch", or "compiled" if `compiled.engine.choose_engine` selects it.
    """

    task: Task
    network: NetworkPlan
    seeds: tuple[int, ...]
    learning_rates: tuple[float, ...]
    settings: Settings
    device: str = "cpu"
    engine: str = "torch"

    @property
    def runs(self) -> tuple[tuple[float, int], ...]:
        """(learning rate, seed) of every run, in the order of the stack."""
        return tuple(itertools.product(self.learning_rates, self.seeds))


@dataclass(frozen=True)
class Progress:
    """The progress of a training run.

    Attributes:
        env_steps: steps that each run has taken.
        total: steps that each run will have taken.
        returns: the latest evaluation of every run, in the order of the stack, NaN for a run that stopped; empty
            before the first one.
        evaluated_at: the steps of each run at that evaluation.
    """

    env_steps: int
    total: int
    returns: npt.NDArray[np.float64]
    evaluated_at: int = 0


@dataclass
class Training:
    """The result of a job.

    Attributes:
        job: the job.
        network: the stacked network at the end.
        initial_parameters: the initial values of the parameters, shape (runs, parameters).
        env_steps: steps of each run when each evaluation was made, shape (evaluations,).
        returns: mean returns, shape (evaluations, runs); NaN after a run stopped.
        stopped: the environment steps at which a run diverged, by its position in the stack.
        interrupted: whether it was interrupted before its end.
        training_seconds: wall time of playing and learning.
        evaluation_seconds: wall time of evaluations.
    """

    job: Job
    network: StackedNetwork
    initial_parameters: torch.Tensor
    env_steps: list[int] = field(default_factory=list)
    returns: list[npt.NDArray[np.float64]] = field(default_factory=list)
    stopped: dict[int, int] = field(default_factory=dict)
    interrupted: bool = False
    training_seconds: float = 0.0
    evaluation_seconds: float = 0.0


def train(
    job: Job,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_checkpoint: Callable[[Callable[[], State]], None] | None = None,
    resume_from: State | None = None,
) -> Training:
    """Train every run of a job.

    Args:
        job: the job to train.
        on_progress: called after every update, and in a resumed training run first for every earlier evaluation.
        on_checkpoint: called after every update with a function that returns the state to continue from.
        resume_from: such a state of the same job; None to start from the beginning.

    Returns:
        The curves and the trained network. After an interrupt (Ctrl-C), the results so far.

    Raises:
        TargetError: the state does not fit the job.
    """
    seeds = [seed for _, seed in job.runs]
    with one_thread():
        network = make_network(job.task, job.network, seeds, torch.device(job.device))
        # Until the loop has ended, a training run counts as interrupted.
        training = Training(job, network, network.parameters.values.clone(), interrupted=True)
        with contextlib.suppress(KeyboardInterrupt):
            loop = _Loop(training, seeds)
            if resume_from is not None:
                _restore(loop, resume_from)
            try:
                loop.run(on_progress or (lambda progress: None), on_checkpoint or (lambda state: None))
            finally:
                loop.note_divergence()
                loop.fold_scale()
                # A compiled training has changed the parameters without notifying the network.
                network.refresh()
                loop.close()
            training.interrupted = False
    return training


def _restore(loop: _Loop, state: State) -> None:
    try:
        loop.restore(state)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise TargetError(
            f"the checkpoint does not fit this training run, or was written by another version ({error!r}).",
            where="--resume",
            remedy="Resume the run with the version of symcheck that wrote the checkpoint, or delete the checkpoint "
            "to start again.",
        ) from error


class _Loop:
    """The loop of rollout, update and evaluation, with the state of a running training."""

    def __init__(self, training: Training, seeds: Sequence[int]) -> None:
        job = training.job
        self._training, self._seeds, self._device = training, seeds, torch.device(job.device)
        settings, policy = job.settings, distribution_of(job.task)
        self._network: StackedNetwork = training.network
        self._make = environment_class(job.task, settings.max_episode_steps)
        # If there are few different observations, the network is evaluated once for each of them between two updates.
        if tabulates(job.network, settings, job.task):
            self._network = TabulatedNetwork(training.network, all_images(), self._device)
            self._make = functools.partial(self._make, coded=True)
        self._environment = self._make(seeds, settings.environments)
        self._compiled: CompiledNetwork | None = None
        self._learner = self._make_learner(policy)
        self._observation_scale = _observation_scale(job)
        # The parameters for normalised observations, after the network has received those for raw ones.
        self._unfolded: torch.Tensor | None = None
        self._collector = Collector(self._environment, seeds, settings, policy, self._device, self._observation_scale)
        self._augmenter = None
        if job.network.views == "augmented":
            self._augmenter = Augmenter(Views(job.task).to(self._device), seeds, settings, policy)
        self._uploads = Uploads(self._device)
        self._updates = 0
        # Whether the last update was finite, as a pending copy from the device.
        self._finite: Download | None = None

    def _make_learner(self, policy: Distribution) -> Learner | CompiledLearner:
        """Create the learner; with the compiled engine, its network replaces torch's."""
        job, network = self._training.job, self._network
        rates = [rate for rate, _ in job.runs]
        if job.engine == "torch" or not isinstance(network, ActorCritic):
            return Learner(network, rates, self._seeds, job.settings, policy)
        kernel = Kernel(network, job.settings, policy)
        self._network = self._compiled = CompiledNetwork(network, kernel)
        return CompiledLearner(self._compiled, kernel, rates, self._seeds, job.settings, policy)

    def run(
        self, on_progress: Callable[[Progress], None], on_checkpoint: Callable[[Callable[[], State]], None]
    ) -> None:
        """Continue up to the last update."""
        training, settings = self._training, self._training.job.settings
        # A resumed training already has its initial evaluation.
        if not training.env_steps:
            self._evaluate()
        # Report the evaluations before the interruption too.
        for evaluation in range(len(training.env_steps)):
            on_progress(self._progress(evaluation))
        while self._updates < settings.updates:
            started = time.perf_counter()
            self._update()
            training.training_seconds += time.perf_counter() - started
            if is_due(self._updates, settings):
                self._evaluate()
            on_progress(self._progress(-1))
            on_checkpoint(self.state)

    def _progress(self, evaluation: int) -> Progress:
        training, settings = self._training, self._training.job.settings
        return Progress(
            self._updates * settings.batch,
            settings.updates * settings.batch,
            training.returns[evaluation],
            training.env_steps[evaluation],
        )

    def _update(self) -> None:
        rollout = self._collector.collect(self._network)
        self.note_divergence()  # of the previous update; the rollout has already waited for it
        if self._augmenter is not None:
            rollout = self._augmenter.augment(rollout, self._network)
        self._learner.decay_rates(1.0 - self._updates / self._training.job.settings.updates)
        finite = self._learner.update(rollout)
        self._updates += 1
        self._finite = Download(finite)

    def note_divergence(self) -> None:
        """Record which runs were stopped by the last update."""
        download, self._finite = self._finite, None
        if download is None or bool((finite := download.get()).all()):
            return
        # `setdefault`: the first update at which a run stopped.
        for run in torch.nonzero(~finite).flatten().tolist():
            self._training.stopped.setdefault(run, self._updates * self._training.job.settings.batch)

    def _evaluate(self) -> None:
        self.note_divergence()
        started = time.perf_counter()
        training = self._training
        returns = self._measure()
        # A stopped run has no further returns.
        returns[list(training.stopped)] = math.nan
        training.env_steps.append(self._updates * training.job.settings.batch)
        training.returns.append(returns)
        training.evaluation_seconds += time.perf_counter() - started

    def _measure(self) -> npt.NDArray[np.float64]:
        """One point of every run's curve."""
        settings, distribution = self._training.job.settings, distribution_of(self._training.job.task)
        # The number of the evaluation selects its random streams.
        index, environments = len(self._training.env_steps), settings.evaluation_episodes

        @torch.no_grad()
        def policy(observations: Array, running: Bools | None = None) -> torch.Tensor:
            scale = self._observation_scale
            shown = self._uploads.send(observations if scale is None else scale.normalise(observations))
            if self._compiled is not None:
                return self._compiled.forward(shown, wanted=running)[0]
            return self._network.forward(shown)[0]

        if settings.evaluation == "training":
            return self._collector.finished_returns()
        # The compiled loop supports only CartPole, with raw observations.
        carts = self._training.job.task.name == "cartpole" and self._observation_scale is None
        if settings.evaluation == "episodes" and carts and self._compiled is not None:
            played = play_carts(self._compiled, self._seeds, episodes=environments, index=index)
            return np.asarray(played.mean(1))
        if settings.evaluation == "window":
            return play_window(
                policy,
                distribution,
                self._make,
                self._seeds,
                environments=environments,
                steps=settings.evaluation_window,
                index=index,
            )
        returns = play(policy, distribution, self._make, self._seeds, episodes=environments, index=index)
        return np.asarray(returns.mean(1))

    def close(self) -> None:
        """Close users' environments; the built-in ones hold no resources."""
        if isinstance(self._environment, GymnasiumVector):
            self._environment.close()

    def fold_scale(self) -> None:
        """Make the network accept raw observations: fold the normalisation into its first layer."""
        network, scale = self._training.network, self._observation_scale
        if scale is None or not isinstance(network, ActorCritic):
            return
        self._unfolded = network.parameters.values.clone()
        fold_in(scale, network.plan, network.parameters)
        network.refresh()

    def state(self) -> State:
        """The complete state on which the rest of the training run depends."""
        self.note_divergence()
        training = self._training
        return {
            "updates": self._updates,
            "learner": self._learner.state(),
            "collector": self._collector.state(),
            "augmenter": None if self._augmenter is None else self._augmenter.state(),
            # The buffer itself, because serialising copies it.
            "values": training.network.parameters.values if self._unfolded is None else self._unfolded,
            "initial": training.initial_parameters,
            "env_steps": list(training.env_steps),
            "returns": [torch.from_numpy(point) for point in training.returns],
            "stopped": dict(training.stopped),
            "seconds": [training.training_seconds, training.evaluation_seconds],
        }

    def restore(self, state: State) -> None:
        """Restore a state of the same job."""
        training = self._training
        self._updates = state["updates"]
        self._learner.restore(state["learner"])
        self._collector.restore(state["collector"])
        if self._augmenter is not None:
            self._augmenter.restore(state["augmenter"])
        training.network.parameters.values.copy_(state["values"])
        # Matrices are derived from the parameters, which have just been replaced.
        self._network.refresh()
        training.initial_parameters = state["initial"]
        training.env_steps = list(state["env_steps"])
        training.returns = [point.numpy() for point in state["returns"]]
        training.stopped = dict(state["stopped"])
        training.training_seconds, training.evaluation_seconds = state["seconds"]


def _observation_scale(job: Job) -> ObservationScale | None:
    """The statistics of a job's observations; None if observations are not normalised."""
    task, network = job.task, job.network
    vectors = len(task.observation_shape) == 1 and network.basis != "user"
    if not (job.settings.normalise_observations and vectors):
        return None
    # A plain network has no symmetry to preserve.
    symmetric = network.basis != "dense" or bool(network.views)
    rho = task_symmetry(task).observation_representation if symmetric else None
    return ObservationScale(len(job.runs), task.observation_shape[0], rho)


def is_due(update: int, settings: Settings) -> bool:
    """Whether this update is the first at or after a multiple of `evaluation_every`, or the last."""
    now, before = update * settings.batch, (update - 1) * settings.batch
    # The integer quotient increases if a multiple lies between the updates.
    return now // settings.evaluation_every > before // settings.evaluation_every or update == settings.updates


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: more do not speed up small batched products, and slow them down on shared cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
