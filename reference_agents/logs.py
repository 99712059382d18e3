"""Logs of a training run for other programs: every evaluation, for each run and as quartiles over seeds.

TensorBoard: one folder per run, and one per learning rate.

    FOLDER/tensorboard/lr0.001-seed0     return
    FOLDER/tensorboard/lr0.001           return/25%, return/50%, return/75%

Files are opened, written and closed at every evaluation, without threads, so hundreds of runs are cheap. A resumed
training run writes its curves again from the start, so no point is logged twice.

Weights & Biases: one W&B run per training run, for any number of seeds, with `lr0.001-seed0/return` and
`lr0.001/return/50%` over `env_steps`. W&B's own environment variables (WANDB_MODE, WANDB_PROJECT, ...) apply.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reference_agents.assemble import run_name
from reference_agents.trainer import Job, Progress
from symcheck.errors import MissingExtraError, OptionError

_QUARTILES = {"return/25%": 0.25, "return/50%": 0.5, "return/75%": 0.75}
_FILE = "events.out.tfevents.0.reference-agents"


class _Evaluations:
    """The scalars of each evaluation, without repetition.

    Args:
        job: the job that is trained.
    """

    def __init__(self, job: Job) -> None:
        self._runs, self._last = job.runs, -1
        # One entry for each run, for selecting those of a rate.
        self._rates = np.array([rate for rate, _ in job.runs])

    def scalars(self, progress: Progress) -> dict[str, dict[str, float]]:
        """The scalars by run or learning rate, then by tag; empty if the message repeats an evaluation."""
        # Messages without a new evaluation repeat the previous one.
        if not progress.returns.size or progress.evaluated_at <= self._last:
            return {}
        self._last = progress.evaluated_at
        scalars = {
            run_name(*run): {"return": float(value)} for run, value in zip(self._runs, progress.returns, strict=True)
        }
        for rate in np.unique(self._rates):
            # Quartiles over seeds; NaN marks runs that stopped.
            returns = progress.returns[self._rates == rate]
            if not np.isnan(returns).all():
                scalars[f"lr{rate:g}"] = {tag: float(np.nanquantile(returns, q)) for tag, q in _QUARTILES.items()}
        return scalars


class TensorBoardLog:
    """Writes every evaluation of a training run to TensorBoard.

    Args:
        folder: the run's folder; an earlier log in it is replaced.
        job: the job that is trained.

    Raises:
        MissingExtraError: the extra `logs` is not installed.
        OptionError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, job: Job) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer import record_writer
        except ImportError as error:
            raise MissingExtraError("logs", needed_for="--tensorboard") from error
        self._events, self._summaries, self._records = event_pb2, summary_pb2, record_writer
        self._folder, self._evaluations, self._last = folder / "tensorboard", _Evaluations(job), 0
        try:
            # Remove logs of an earlier session, because evaluations are written again from the first one on.
            shutil.rmtree(self._folder, ignore_errors=True)
            for name in [*(run_name(*run) for run in job.runs), *(f"lr{rate:g}" for rate in job.learning_rates)]:
                (self._folder / name).mkdir(parents=True)
                # TensorBoard reads a file only if it begins with this version record.
                self._write(name, self._events.Event(wall_time=time.time(), file_version="brain.Event:2"))
        except OSError as error:
            raise OptionError(
                f"the folder {str(folder)!r} cannot be written to ({error.strerror}).",
                where="--tensorboard",
            ) from error

    def __call__(self, progress: Progress) -> None:
        """Write the evaluation in a message, if it is new."""
        for name, scalars in self._evaluations.scalars(progress).items():
            self._last = progress.evaluated_at
            self._scalars(name, scalars)

    def close(self) -> None:
        """Do nothing, because no file is open."""

    def _scalars(self, name: str, scalars: Mapping[str, float]) -> None:
        values = [
            self._summaries.Summary.Value(tag=tag, simple_value=value)
            for tag, value in scalars.items()
            # NaN marks a run that stopped; it has no point.
            if math.isfinite(value)
        ]
        if values:
            summary = self._summaries.Summary(value=values)
            self._write(name, self._events.Event(wall_time=time.time(), step=self._last, summary=summary))

    def _write(self, name: str, event: Any) -> None:
        # Opened for each event: otherwise a training run with many seeds would keep too many files open.
        with (self._folder / name / _FILE).open("ab") as file:
            self._records.RecordWriter(file).write(event.SerializeToString())


class WandbLog:
    """Sends every evaluation of a training run to Weights & Biases.

    Args:
        folder: the run's folder, in which W&B keeps its own files.
        job: the job that is trained.

    Raises:
        MissingExtraError: the extra `wandb` is not installed.
        OptionError: W&B does not start; the message gives its reason (no account, no network, a read-only folder).
    """

    def __init__(self, folder: Path, job: Job) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError("wandb", needed_for="--wandb") from error
        self._evaluations = _Evaluations(job)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "reference-agents"),
                name=folder.name,
                dir=str(folder),
                config={
                    "task": job.task.name,
                    "network": job.network.name,
                    "seeds": list(job.seeds),
                    "learning_rates": list(job.learning_rates),
                    **dataclasses.asdict(job.settings),
                },
            )
        except Exception as error:  # exceptions of W&B, whose types differ between versions
            message = " ".join(str(error).split())
            raise OptionError(
                f"Weights & Biases could not start a run ({type(error).__name__}: {message}).",
                where="--wandb",
                remedy="Log in with `wandb login`, or set WANDB_MODE=offline.",
            ) from error
        self._run.define_metric("env_steps")
        self._run.define_metric("*", step_metric="env_steps")

    def __call__(self, progress: Progress) -> None:
        """Send the evaluation in a message, if it is new."""
        scalars = {
            f"{name}/{tag}": value
            for name, tagged in self._evaluations.scalars(progress).items()
            for tag, value in tagged.items()
            # NaN marks a run that stopped; it has no point.
            if math.isfinite(value)
        }
        if scalars:
            self._run.log({"env_steps": progress.evaluated_at, **scalars})

    def close(self) -> None:
        """Finish the W&B run."""
        self._run.finish()
