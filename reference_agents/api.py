"""Training from Python: `train` does the same as `reference-agents train` and returns the result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_agents.assemble import save_training
from reference_agents.checkpoint import (
    Checkpointer,
    Started,
    begin,
    checkpoint_path,
    folder_name,
    lock_folder,
    remove_checkpoints,
)
from reference_agents.compiled.engine import AUTO, choose_engine
from reference_agents.encoding.environment import keep_object
from reference_agents.export import TrainedNetwork, export_module
from reference_agents.networks.user import settings_of_module
from reference_agents.record import Record, prepare_folder
from reference_agents.settings import Settings, default_rate, preset_name
from reference_agents.settings import preset as find_preset
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job, Progress, Training
from reference_agents.trainer import train as run
from reference_agents.vectorised import check_environment
from reference_agents.verification import DIVERGED, verify
from symcheck.errors import OptionError, suggestion
from symcheck.symmetry.symmetry import Symmetry


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run.

    Attributes:
        training: curves and parameters of all runs.
        record: the content of `record.json`; None if nothing was written.
        folder: the run folder; None if nothing was written.
    """

    training: Training
    record: Record | None
    folder: Path | None

    @property
    def runs(self) -> tuple[tuple[float, int], ...]:
        """(learning rate, seed) of every run."""
        return self.training.job.runs

    @property
    def env_steps(self) -> npt.NDArray[np.int64]:
        """Environment steps per run at each evaluation, shape (evaluations,)."""
        return np.array(self.training.env_steps, dtype=np.int64)

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """Mean returns, shape (evaluations, runs); NaN after a run diverged."""
        return np.array(self.training.returns)

    @property
    def score(self) -> float:
        """The mean over runs of each run's mean return over the last fifth of its evaluations.

        A diverged run counts with the lowest return of all evaluations; if all diverged, the score is minus infinity.
        """
        returns = self.returns
        last = returns[-max(1, len(returns) // 5) :].mean(0)
        if np.isnan(returns).all():
            return -np.inf
        return float(np.where(np.isnan(last), np.nanmin(returns), last).mean())

    def network(self, *, seed: int | None = None, learning_rate: float | None = None) -> TrainedNetwork:
        """The trained module of one run: observations (batch, ...), encoded, to (logits or means, values).

        Args:
            seed: the seed of the run; the first one if None.
            learning_rate: the learning rate of the run; the first one if None.

        Raises:
            OptionError: there is no such run, or it diverged.
        """
        for position, (rate, of) in enumerate(self.runs):
            fits = learning_rate in (None, rate) and seed in (None, of)
            if fits and position not in self.training.stopped:
                return self._module(position)
        raise OptionError(
            f"there is no run with learning rate {learning_rate} and seed {seed}; the runs are {self.runs}.",
            where="network",
        )

    def verdicts(self) -> list[str | None]:
        """The verdict of `verify-net` on each trained network; None if it makes no claim or diverged."""
        if self.record is not None:
            return [item.after.verdict for item in self.record.runs]
        job, stopped = self.training.job, self.training.stopped
        return [
            (DIVERGED if position in stopped else verify(self._module(position), job.network, job.task)).verdict
            for position in range(len(self.runs))
        ]

    def _module(self, position: int) -> TrainedNetwork:
        job = self.training.job
        return export_module(job.task, job.network, self.training.network.parameters.of_run(position))


def train(
    env: Any,
    *,
    symmetry: Symmetry | str | None = None,
    network: str = "equivariant",
    seeds: int | Sequence[int] = 5,
    learning_rate: float | Sequence[float] | None = None,
    steps: int | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    out: str | Path | None = None,
    device: str = "cpu",
    engine: str = AUTO,
    on_progress: Callable[[Progress], None] | None = None,
) -> TrainingResult:
    """Train every seed of one network at every learning rate, as one stacked program.

    Args:
        env: a task of `reference-agents list`, a Gymnasium id, `module:factory`, `file.py:factory`, a zero-argument
            factory, or an environment that can be copied.
        symmetry: a `Symmetry` or a SPEC; if None, the task's own or the atlas's claim.
        network: a name, or `file.py:factory` of your own module. The plain networks (`mlp`, `cnn`) need no symmetry.
        seeds: the number of seeds (0, 1, ...), or a list of seeds.
        learning_rate: one or several; the network's default if None.
        steps: environment steps of each run; the preset's number if None.
        preset: "paper", "paper-code", "tuned" or "control"; by default "paper" if the paper has the task, and
            "control" for continuous actions.
        settings: further fields of `reference_agents.settings.Settings`.
        max_episode_steps: time limit of episodes; if None and the environment has no limit, 1,000.
        out: the folder in which a run folder is created; None writes nothing.
        device: "cpu" or "cuda".
        engine: "torch"; "compiled" for C code that trains PPO on vectors and needs a C compiler; "auto" for the
            compiled engine if it is available.
        on_progress: called after every update.

    Returns:
        Curves, networks and verdicts; after Ctrl-C, everything finished so far.

    Raises:
        SymcheckError: an environment, a symmetry, a network or a setting cannot be used.

    Example:
        >>> result = train("cartpole", network="mlp", seeds=2, steps=160)
        >>> result.returns.shape, result.verdicts()
        ((2, 2), [None, None])

    Cost: up to about 100 runs of a small network on one core take little longer than a single run.
    """
    job = _job(env, symmetry, network, seeds, learning_rate, steps, preset, settings, max_episode_steps, device)
    job = replace(job, engine=choose_engine(engine, job.task, job.network, job.settings, device)[0])
    if out is None:
        return TrainingResult(run(job, on_progress=on_progress), None, None)
    named = preset_name(job.task.name, preset, continuous=job.task.continuous)
    folder = prepare_folder(Path(out), folder_name(job))
    with lock_folder(folder):
        begin(folder, Started(job, named, "", (job,)))
        writer = Checkpointer(checkpoint_path(folder, 0, 1))
        training = run(job, on_progress=on_progress, on_checkpoint=writer.offer)
        record = save_training(training, folder, preset_name=named, command="")
        if not training.interrupted:
            remove_checkpoints(folder, 1)
    return TrainingResult(training, record, folder)


def _job(
    env: Any,
    symmetry: Symmetry | str | None,
    network: str,
    seeds: int | Sequence[int],
    learning_rate: float | Sequence[float] | None,
    steps: int | None,
    preset: str | None,
    settings: Mapping[str, Any] | None,
    max_episode_steps: int | None,
    device: str,
) -> Job:
    name = env if isinstance(env, str) else keep_object(env, getattr(env, "__name__", type(env).__name__))
    if not isinstance(symmetry, Symmetry | str | None):
        raise OptionError(f"expected a Symmetry, a SPEC or None, got {symmetry!r}.", where="symmetry")
    spec = symmetry if isinstance(symmetry, str | None) else keep_object(symmetry, symmetry.name)
    task = resolve_task(name, spec)
    check_environment(task)
    plan = resolve_network(task, network)
    chosen = _seed_numbers(seeds)
    named = preset_name(task.name, preset, continuous=task.continuous)
    try:
        rate = default_rate(task.name, named, plan.name, plan.learning_rate) if learning_rate is None else learning_rate
        rates = tuple(np.atleast_1d(rate).astype(float))
    except (TypeError, ValueError):
        rates = ()
    if not rates or not all(0.0 < rate < np.inf for rate in rates):
        raise OptionError(f"expected positive learning rates, got {learning_rate}.", where="learning_rate")
    if device not in ("cpu", "cuda"):
        raise OptionError(f"expected 'cpu' or 'cuda', got {device!r}.", where="device")
    known = [field.name for field in fields(Settings)]
    if unknown := [name for name in settings or {} if name not in known]:
        raise OptionError(
            f"expected fields of Settings, got {', '.join(map(repr, unknown))}.",
            where="settings",
            remedy=suggestion(unknown[0], known),
        )
    changes = {"steps": steps, "max_episode_steps": max_episode_steps, **(settings or {})}
    filled = find_preset(task.name, named).with_changes(**changes)
    if plan.basis == "user":
        filled = settings_of_module(filled, settings or {}, where="settings")
    ordered = tuple(sorted({float(rate) for rate in rates}))
    return Job(task, plan.with_quirks(asdict(filled)), chosen, ordered, filled, device)


def _seed_numbers(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Seeds 0, 1, ... for a number of seeds, or the given list."""
    try:
        # NumPy integers are accepted; fractions are not.
        if isinstance(seeds, Sequence | np.ndarray):
            chosen = tuple(operator.index(seed) for seed in seeds)
        else:
            chosen = tuple(range(operator.index(seeds)))
    except TypeError:
        chosen = ()
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise OptionError(f"expected at least one seed, all different and 0 or more, got {seeds}.", where="seeds")
    return chosen
