"""TensorBoard logs: one folder a run, and one for each learning rate with quartiles over its seeds.

    FOLDER/tensorboard/lr0.001-seed0     return
    FOLDER/tensorboard/lr0.001           return/25%, return/50%, return/75%

Files are opened, written and closed at every evaluation, without threads, so that hundreds of runs are no burden. A
resumed training writes its curves anew from the start, so that nothing is there twice.
"""

from __future__ import annotations

import math
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


class TensorBoardLog:
    """Writes every evaluation of a training as it is made.

    Args:
        folder: the run's folder; an earlier log in it is replaced.
        job: what is trained.

    Raises:
        MissingExtraError: without the extra `logs`.
        OptionError: where the folder cannot be written to.
    """

    def __init__(self, folder: Path, job: Job) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer import record_writer
        except ImportError as error:
            raise MissingExtraError("logs", needed_for="--tensorboard") from error
        self._events, self._summaries, self._records = event_pb2, summary_pb2, record_writer
        self._folder, self._runs, self._last = folder / "tensorboard", job.runs, -1
        # One entry for each run, for selecting those of a rate.
        self._rates = np.array([rate for rate, _ in job.runs])
        try:
            # Logs of an earlier session would mix with those written again from the first evaluation on.
            shutil.rmtree(self._folder, ignore_errors=True)
            for name in [*(run_name(*run) for run in job.runs), *(f"lr{rate:g}" for rate in job.learning_rates)]:
                (self._folder / name).mkdir(parents=True)
                # TensorBoard reads a file only behind this version record.
                self._write(name, self._events.Event(wall_time=time.time(), file_version="brain.Event:2"))
        except OSError as error:
            raise OptionError(
                f"expected a folder that can be written to, got {str(folder)!r} ({error.strerror}).",
                where="--tensorboard",
            ) from error

    def __call__(self, progress: Progress) -> None:
        """Write the evaluation that a message brings, if it is a new one."""
        # Messages without a new evaluation repeat the last one.
        if not progress.returns.size or progress.evaluated_at <= self._last:
            return
        self._last = progress.evaluated_at
        for run, value in zip(self._runs, progress.returns, strict=True):
            self._scalars(run_name(*run), {"return": float(value)})
        for rate in np.unique(self._rates):
            # Quartiles over seeds; NaN marks runs that stopped.
            returns = progress.returns[self._rates == rate]
            if not np.isnan(returns).all():
                self._scalars(f"lr{rate:g}", {tag: float(np.nanquantile(returns, q)) for tag, q in _QUARTILES.items()})

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
        # Opened for each event: a training of many runs would hold too many files open.
        with (self._folder / name / _FILE).open("ab") as file:
            self._records.RecordWriter(file).write(event.SerializeToString())
