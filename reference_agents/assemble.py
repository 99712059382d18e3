"""Saves a finished training run to its run folder."""

from __future__ import annotations

import dataclasses
import io
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.checkpoint import versions
from reference_agents.export import export_module
from reference_agents.record import PARAMETERS_FILE, Curve, Record, RunRecord, save
from reference_agents.trainer import Job, Training
from reference_agents.vectorised import plays_games
from reference_agents.verification import DIVERGED, verify
from symcheck.files import write_file


def save_training(training: Training, folder: Path, *, preset_name: str, command: str) -> Record:
    """Verify every network, write weights, curves and record.

    Args:
        training: the result of the job.
        folder: an empty run folder, from `record.prepare_folder`.
        preset_name: the preset of the settings.
        command: the command line that repeats it.

    Returns:
        The record as saved.
    """
    # exist_ok: in a resumed training the folder already exists.
    (folder / "weights").mkdir(exist_ok=True)
    runs = [_save_run(training, run, folder) for run in range(len(training.job.runs))]
    parameters = training.network.parameters
    # Views have a first axis of runs: shape (runs, *shape of one parameter). Clones own their memory, so that each one
    # is saved without the whole buffer.
    stacked = {name: view.cpu().clone() for name, view in parameters.layout.views(parameters.values).items()}
    write_file(folder / PARAMETERS_FILE, _serialise(stacked))
    write_file(folder / "network.py", _loader_source(runs).encode())
    record = _record(training, runs, preset_name=preset_name, command=command)
    save(record, folder)
    return record


def run_name(learning_rate: float, seed: int) -> str:
    """The name of a run inside its folder.

    Example:
        >>> run_name(0.01, 3)
        'lr0.01-seed3'
    """
    return f"lr{learning_rate:g}-seed{seed}"


def _save_run(training: Training, run: int, folder: Path) -> RunRecord:
    job = training.job
    rate, seed = job.runs[run]
    # One point for each evaluation; each point has one mean return for each run.
    returns = np.array([point[run] for point in training.returns])
    stopped_at = training.stopped.get(run)
    module = export_module(job.task, job.network, training.network.parameters.of_run(run))
    weights = None
    # A stopped run has no trained network to save.
    if stopped_at is None:
        weights = f"weights/{run_name(rate, seed)}.pt"
        write_file(folder / weights, _serialise(module.state_dict()))
    return RunRecord(
        seed=seed,
        learning_rate=rate,
        weights=weights,
        stopped_at=stopped_at,
        steps_to_threshold=_steps_to(job.task.threshold, training.env_steps, returns),
        # NaN marks a stopped run, or one without a finished episode.
        final_return=float(returns[-1]) if len(returns) and np.isfinite(returns[-1]) else None,
        # Verify the initial parameters too: the network must be equivariant by construction, not only after training.
        before=verify(export_module(job.task, job.network, _initial(training, run)), job.network, job.task),
        after=DIVERGED if weights is None else verify(module, job.network, job.task),
    )


def _steps_to(threshold: float | None, env_steps: Sequence[int], returns: npt.NDArray[np.float64]) -> int | None:
    if threshold is None:
        return None
    # Comparisons with NaN are False, so a stopped run reaches no threshold.
    return next((steps for steps, return_ in zip(env_steps, returns, strict=True) if return_ >= threshold), None)


def _initial(training: Training, run: int) -> dict[str, torch.Tensor]:
    views = training.network.parameters.layout.views(training.initial_parameters)
    return {name: view[run].cpu().clone() for name, view in views.items()}


def _record(training: Training, runs: Sequence[RunRecord], *, preset_name: str, command: str) -> Record:
    job = training.job
    curves = tuple(
        Curve(seed, rate, tuple(training.env_steps), tuple(float(point[run]) for point in training.returns))
        for run, (rate, seed) in enumerate(job.runs)
    )
    return Record(
        task=job.task.name,
        environment=job.task.environment,
        symmetry=job.task.symmetry,
        network=job.network.name,
        basis=job.network.basis,
        channels=job.network.channels,
        parameters=training.network.parameters.layout.parameters,
        threshold=job.task.threshold,
        preset=preset_name,
        settings=dataclasses.asdict(job.settings),
        evaluation=describe_evaluation(job),
        device=_device_name(job),
        versions=versions(games=plays_games(job.task)),
        command=command,
        interrupted=training.interrupted,
        training_seconds=training.training_seconds,
        evaluation_seconds=training.evaluation_seconds,
        runs=tuple(runs),
        curves=curves,
    )


def describe_evaluation(job: Job) -> str:
    """A sentence on how the returns of a curve were measured."""
    settings = job.settings
    when = f"at the first update at or after every {settings.evaluation_every:,} environment steps."
    if settings.evaluation == "training":
        return f"Each point is the mean return of the training episodes that ended since the previous point, {when}"
    if settings.evaluation == "window":
        return (
            f"Each point is the mean return of the episodes that finish while {settings.evaluation_episodes} "
            f"separate environments take {settings.evaluation_window} steps, with actions sampled from the policy, "
            f"{when}"
        )
    return (
        f"Each point is the mean return of {settings.evaluation_episodes} whole episodes with actions sampled from "
        f"the policy, on separate environments, {when}"
    )


def _device_name(job: Job) -> str:
    if job.device == "cuda":
        return torch.cuda.get_device_name()
    # Results depend on the engine, bit for bit.
    return f"cpu, one thread ({platform.machine()}{', compiled' if job.engine == 'compiled' else ''})"


def _serialise(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


# The head of `network.py`, which loads the weights when it is called.
_LOADER_HEAD = '''"""The trained networks of this folder as torch modules; written by reference-agents."""

from pathlib import Path

from reference_agents.loading import load_network, load_symmetry

FOLDER = Path(__file__).parent


def network():
    """The first run."""
    return load_network(FOLDER)


def symmetry():
    """The claim on the inputs and outputs of these networks, as `symcheck verify-net` takes it."""
    return load_symmetry(FOLDER)
'''


def _loader_source(runs: Sequence[RunRecord]) -> str:
    trained = [run for run in runs if run.weights is not None]
    # The dots and minus signs of "lr0.001-seed0" are not allowed in a Python name.
    names = [run_name(run.learning_rate, run.seed).translate(str.maketrans(".-", "__")) for run in trained]
    functions = [
        f"\n\ndef {name}():\n"
        f'    """Learning rate {run.learning_rate:g}, seed {run.seed}."""\n'
        f"    return load_network(FOLDER, learning_rate={run.learning_rate!r}, seed={run.seed})\n"
        for name, run in zip(names, trained, strict=True)
    ]
    return _LOADER_HEAD + "".join(functions) + f"\n\nNETWORKS = {names!r}\n"
