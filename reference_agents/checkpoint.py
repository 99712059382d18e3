"""Checkpoints from which a training run continues bit for bit.

    FOLDER/job.json          the training run, its versions, and the parts into which it is split; written first
    FOLDER/checkpoint.pt the checkpoint of a training run in one part; otherwise checkpoint-1.pt, checkpoint-2.pt, ...

A checkpoint contains the complete state: parameters, the optimiser's moments and step count, every random stream with
its current block of numbers, every environment, and the curves so far. It consists of tensors, numbers and strings
only, so reading it runs no code. A part without a checkpoint starts from the beginning, so a training run that was
killed at any moment can be resumed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from reference_agents.encoding.environment import file_stem, source_file
from reference_agents.record import JOB_FILE
from reference_agents.settings import Settings
from reference_agents.tasks import resolve_network, resolve_task
from reference_agents.trainer import Job, State
from reference_agents.vectorised import plays_games
from symcheck.errors import OptionError, TargetError
from symcheck.files import write_file

SCHEMA = "reference-agents-job/3"
# Seconds between two checkpoints of a part, so that a slow disk does not slow the training.
SECONDS = 10.0
# The key of the digest in a checkpoint, and the file that is locked while a folder is in use.
DIGEST, LOCK_FILE = "digest", ".lock"
_PACKAGES = ("symcheck", "torch", "numpy", "gymnasium")
_SOURCES = ("network_source", "environment_source", "symmetry_source")
_UNREADABLE = "Give the folder that the training run printed; it exists from the start of the run."


@dataclass(frozen=True)
class Started:
    """A training run that was started, as recorded in its folder.

    Attributes:
        job: the job.
        preset: the preset of its settings.
        command: the command line that started it.
        parts: the jobs into which the training run is split.
    """

    job: Job
    preset: str
    command: str
    parts: tuple[Job, ...]


def versions(*, games: bool = False) -> dict[str, str]:
    """The versions on which results depend; for games, also that of the emulator."""
    # ale-py is imported only for games; it need not be installed.
    packages = (*_PACKAGES, "ale-py") if games else _PACKAGES
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def checkpoint_path(folder: Path, part: int, parts: int) -> Path:
    """The checkpoint of a part, counted from 0.

    Example:
        >>> checkpoint_path(Path("run"), 0, 1).name, checkpoint_path(Path("run"), 0, 2).name
        ('checkpoint.pt', 'checkpoint-1.pt')
    """
    # The first part is checkpoint-1.
    return folder / ("checkpoint.pt" if parts == 1 else f"checkpoint-{part + 1}.pt")


def folder_name(job: Job) -> str:
    """The folder's name: task and network; for a network in a file, the names of file and factory."""
    return f"{file_stem(job.task.name)}-{file_stem(job.network.name)}"


def begin(folder: Path, started: Started) -> None:
    """Write the description of a training run before it starts.

    Args:
        folder: the run's folder.
        started: the training run and its parts.
    """
    document = {"schema": SCHEMA, **_head(started.job), "preset": started.preset, "command": started.command}
    document |= {
        "versions": versions(games=plays_games(started.job.task)),
        "parts": [list(part.seeds) for part in started.parts],
    }
    write_file(folder / JOB_FILE, (json.dumps(document, indent=2) + "\n").encode())


def _head(job: Job) -> dict[str, Any]:
    return {
        "task": job.task.name,
        "symmetry": job.task.symmetry,
        "network": job.network.name,
        "network_source": _source_digest(job.network.name) if job.network.basis == "user" else "",
        "environment_source": _source_digest(job.task.name) if job.task.own else "",
        "symmetry_source": _source_digest(job.task.symmetry),
        "seeds": list(job.seeds),
        "learning_rates": list(job.learning_rates),
        "settings": asdict(job.settings),
        "device": job.device,
        "engine": job.engine,
    }


def _source_digest(reference: str) -> str:
    """The digest of the file from which a network, environment or symmetry comes; "" for one in a package."""
    # Only files have a digest; a module of an installed package has none.
    path = source_file(reference)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def started_in(folder: Path) -> Started:
    """Read the training run of a run folder.

    Args:
        folder: the folder of a started training run.

    Returns:
        The training run, with the parts into which it is split.

    Raises:
        TargetError: the folder is not a run, or is damaged.
        OptionError: the versions, or the file of the user's network, have changed, which would change results; the
            message names them.
    """
    try:
        document = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        schema, then = document["schema"], document["versions"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TargetError(
            f"{str(folder)!r} is not the folder of a stopped training run: {JOB_FILE} cannot be read "
            f"({type(error).__name__}).",
            where="--resume",
            remedy=_UNREADABLE,
        ) from error
    # Compare versions before building anything: other versions may be unable to read the job.
    refuse_differences({"job": schema, **then}, {"job": SCHEMA, **versions(games="ale-py" in then)}, "versions")
    try:
        job = _job(document)
        parts = tuple(replace(job, seeds=tuple(seeds)) for seeds in document["parts"])
        started = Started(job, document["preset"], document["command"], parts)
        sources = {name: document.get(name, "") for name in _SOURCES}
    except (KeyError, TypeError, ValueError) as error:
        raise TargetError(f"{str(folder / JOB_FILE)!r} is damaged: {error}.", remedy="Train it again.") from error
    # Compare the current digest of the file with the stored one.
    refuse_differences(sources, _head(job), "files")
    return started


def _job(document: Mapping[str, Any]) -> Job:
    task = resolve_task(document["task"], document["symmetry"])
    return Job(
        task,
        resolve_network(task, document["network"]).with_quirks(document["settings"]),
        tuple(document["seeds"]),
        tuple(document["learning_rates"]),
        Settings(**document["settings"]),
        document["device"],
        document["engine"],
    )


class Checkpointer:
    """Writes the checkpoint of one part at intervals.

    If a checkpoint cannot be written, for instance on a full disk, the last good one is kept and training continues.

    Args:
        path: the path of the checkpoint.
        seconds: the shortest time between two checkpoints.
        on_problem: called with the reason when a checkpoint cannot be written, and not again until one is written.
    """

    def __init__(
        self, path: Path, *, seconds: float | None = None, on_problem: Callable[[str], None] | None = None
    ) -> None:
        self._path = path
        self._seconds = SECONDS if seconds is None else seconds
        self._tell = on_problem or (lambda problem: None)
        self._told = self._begun = False
        # From the start of the training: the first checkpoint is due after a full interval.
        self._last = time.monotonic()

    def offer(self, state: Callable[[], State]) -> None:
        """Write the result of `state` if the last checkpoint is old enough."""
        # Save the first update immediately, so that a training run that ends soon afterwards can be resumed.
        if not self._begun or time.monotonic() - self._last >= self._seconds:
            self.write(state)

    def write(self, state: Callable[[], State]) -> None:
        """Write the result of `state`."""
        self._begun = True
        content = serialise(state())
        try:
            write_file(self._path, content)
            # After a successful write, a later failure is reported again.
            self._told = False
        except OSError as error:
            if not self._told:
                self._tell(f"no checkpoint could be written ({error}); the last one is kept and training continues")
            self._told = True
        # Also after a failure, so that a full disk is retried once per interval and not after every update.
        self._last = time.monotonic()


def serialise(state: State) -> bytes:
    """The content of a checkpoint: the state and a digest of all its values."""
    buffer = io.BytesIO()
    torch.save({**state, DIGEST: state_digest(state)}, buffer)
    return buffer.getvalue()


def deserialise(content: bytes) -> State:
    """Read the state from a checkpoint's content: tensors, numbers and strings; no code is run.

    Raises:
        ValueError: the values differ from those that were written.
    """
    # `weights_only` rejects pickled code: a checkpoint may come from a worker.
    state: State = torch.load(io.BytesIO(content), weights_only=True)
    if state.pop(DIGEST, None) != state_digest(state):
        raise ValueError("its digest does not match, so the file was changed after it was written")
    return state


def state_digest(value: Any) -> str:
    """SHA-256 over every tensor, number and string of a state, with their types, shapes and keys.

    Example:
        >>> state_digest({"a": [1, 2]}) == state_digest({"a": [1, 3]})
        False
    """
    sums = hashlib.sha256()
    _add_to_digest(sums, value)
    return sums.hexdigest()


def _add_to_digest(sums: Any, value: Any) -> None:
    # Prefix type and length, so that different values have different bytes.
    if isinstance(value, torch.Tensor):
        sums.update(f"tensor {value.dtype} {tuple(value.shape)};".encode())
        sums.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        sums.update(f"dict {len(value)};".encode())
        for key, item in value.items():
            _add_to_digest(sums, key)
            _add_to_digest(sums, item)
    elif isinstance(value, list | tuple):
        sums.update(f"{type(value).__name__} {len(value)};".encode())
        for item in value:
            _add_to_digest(sums, item)
    else:
        content = value if isinstance(value, bytes) else repr(value).encode()
        sums.update(f"{type(value).__name__} {len(content)};".encode() + content)


def read_state(path: Path) -> State | None:
    """The state in a checkpoint; None if there is no checkpoint yet.

    Raises:
        TargetError: the checkpoint cannot be read.
    """
    if not path.exists():
        return None
    try:
        state = deserialise(path.read_bytes())
        if "updates" not in state:
            raise ValueError("it contains no state")
    except Exception as error:
        raise TargetError(
            f"the checkpoint {str(path)!r} cannot be read ({_first_sentence(error)}).",
            where="--resume",
            remedy="Delete this file to train these runs again from the start.",
        ) from error
    return state


def _first_sentence(error: Exception) -> str:
    # torch's message is long; the class of the exception suffices.
    return str(error) if type(error) is ValueError else type(error).__name__


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a run folder against training by other processes; the system releases the lock when this process ends.

    Raises:
        OptionError: another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    try:
        file = (folder / LOCK_FILE).open("w")
    except OSError:  # the next write will report the problem with the folder
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OptionError(
                f"another process is training in the folder {str(folder)!r}.",
                where="--resume",
                remedy="Wait for that training run, or stop it.",
            ) from error
        except OSError:  # a file system without locks
            pass
        yield


def remove_checkpoints(folder: Path, parts: int) -> None:
    """Remove the checkpoints of a recorded training run."""
    for part in range(parts):
        checkpoint_path(folder, part, parts).unlink(missing_ok=True)


def refuse_other_job(started: Started, asked: Mapping[str, Any]) -> None:
    """Reject different options when a training run is resumed.

    Args:
        started: the training run that was stopped.
        asked: the options given in addition to `--resume`, by name; None for options that were not given.

    Raises:
        OptionError: the message names everything that differs.
    """
    job = started.job
    stored = {
        "task": job.task.name,
        "symmetry": job.task.symmetry,
        "network": job.network.name,
        "seeds": len(job.seeds),
        "learning-rate": job.learning_rates,
        "preset": started.preset,
        "device": job.device,
        "engine": job.engine,
        **asdict(job.settings),
    }
    # Options that were not given keep the values of the training.
    given = {name: value for name, value in asked.items() if value is not None}
    refuse_differences({name: stored[name] for name in given}, given, "options")


def refuse_differences(stored: Mapping[str, Any], now: Mapping[str, Any], what: str) -> None:
    """Refuse to resume if a stored value has changed.

    Raises:
        OptionError: the message names everything that differs.
    """
    different = [
        f"{name} was {stored.get(name)} and is now {now.get(name)}" for name in stored if stored[name] != now.get(name)
    ]
    if different:
        raise OptionError(
            f"the {what} cannot differ from those with which the training run was started: {'; '.join(different)}.",
            where="--resume",
            remedy=f"Resume with the original {what}, or start a new training run.",
        )
