"""Checkpoints from which a training goes on as if it had never stopped, bit for bit.

A checkpoint holds everything that later numbers depend on: parameters, the optimiser's moments and step, every random
stream with the block of numbers it has drawn, every environment, and the curves so far. It is tensors, numbers and
strings only, so that reading one runs no code.
"""

from __future__ import annotations

import io
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from reference_agents.record import write_file
from reference_agents.settings import Settings
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job
from symcheck.errors import OptionError, TargetError

CHECKPOINT_FILE = "checkpoint.pt"
SCHEMA = "reference-agents-checkpoint/1"
_PACKAGES = ("symcheck", "torch", "numpy", "gymnasium")
State = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read.

    Attributes:
        job: what is being trained.
        preset: where its settings came from.
        command: the command line that started it.
        state: what the training goes on from.
    """

    job: Job
    preset: str
    command: str
    state: State


def versions() -> dict[str, str]:
    """The versions that results depend on."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


class Checkpointer:
    """Writes a checkpoint every so often.

    Args:
        folder: the run's folder.
        job: what is being trained.
        preset: where its settings came from.
        command: the command line that started it.
        seconds: least time between two checkpoints.
    """

    def __init__(self, folder: Path, job: Job, *, preset: str, command: str, seconds: float = 10.0) -> None:
        self._path = folder / CHECKPOINT_FILE
        self._head = {
            "schema": SCHEMA,
            "task": job.task.name,
            "network": job.network.name,
            "seeds": list(job.seeds),
            "learning_rates": list(job.learning_rates),
            "settings": asdict(job.settings),
            "device": job.device,
            "preset": preset,
            "command": command,
            "versions": versions(),
        }
        self._seconds = seconds
        self._last = time.monotonic()

    def offer(self, state: Callable[[], State]) -> None:
        """Write what `state` gives if the last checkpoint is old enough; a full disk leaves the last good one."""
        if time.monotonic() - self._last < self._seconds:
            return
        buffer = io.BytesIO()
        torch.save({"head": json.dumps(self._head), "state": state()}, buffer)
        write_file(self._path, buffer.getvalue())
        self._last = time.monotonic()

    def done(self) -> None:
        """The training is recorded; its checkpoint is no longer needed."""
        self._path.unlink(missing_ok=True)


def read(folder: Path) -> Checkpoint:
    """Read the checkpoint of a run folder.

    Args:
        folder: where a training was stopped.

    Returns:
        The checkpoint.

    Raises:
        TargetError: where there is none, or it cannot be read.
        OptionError: where it was written by other versions, whose numbers would not be the same; says which.
    """
    path = folder / CHECKPOINT_FILE
    try:
        content = torch.load(path, weights_only=True)
        head = json.loads(content["head"])
    except Exception as error:
        raise TargetError(
            f"expected the folder of a training that was stopped, with a readable {CHECKPOINT_FILE}, got "
            f"{str(folder)!r} ({type(error).__name__}).",
            where="--resume",
            remedy="A training that ended has no checkpoint any more, and one that just began has none yet.",
        ) from error
    _refuse_differences(head["versions"], versions(), "versions")
    task = resolve_task(head["task"])
    job = Job(
        task,
        resolve_network(task, head["network"]),
        tuple(head["seeds"]),
        tuple(head["learning_rates"]),
        Settings(**head["settings"]),
        head["device"],
    )
    return Checkpoint(job, head["preset"], head["command"], content["state"])


def refuse_other_job(checkpoint: Checkpoint, asked: Mapping[str, Any]) -> None:
    """Refuse to resume a training as another one.

    Args:
        checkpoint: what was stopped.
        asked: what the user asked for beside `--resume`, by name; None where nothing was said.

    Raises:
        OptionError: naming everything that differs.
    """
    job = checkpoint.job
    there = {
        "task": job.task.name,
        "network": job.network.name,
        "seeds": len(job.seeds),
        "learning-rate": job.learning_rates,
        "steps": job.settings.steps,
        "preset": checkpoint.preset,
        "device": job.device,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    _refuse_differences({name: there[name] for name in given}, given, "options")


def _refuse_differences(stored: Mapping[str, Any], now: Mapping[str, Any], what: str) -> None:
    different = [
        f"{name} was {stored.get(name)}, is {now.get(name)}" for name in stored if stored[name] != now.get(name)
    ]
    if different:
        raise OptionError(
            f"expected the same {what} as when the training was started: {'; '.join(different)}.",
            where="--resume",
            remedy="Resume it with those, or start a new training.",
        )
