"""Distributes one training run over the workers of a Dask cluster; the loss of a worker costs one time slice.

Dask runs slices of the parts of a job on any free worker, and repeats the slices of a lost worker. A slice continues
from the state of the previous slice. That state is returned after every slice and is the part's checkpoint, so the loss
of a worker or of this process loses little. The cluster is your own (`dask scheduler` and `dask worker`, or
dask-jobqueue) or a temporary local one.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reference_agents.checkpoint import Checkpointer, deserialise, read_state, serialise
from reference_agents.shards import Gathered, Report, ShardResult, merge, plain
from reference_agents.trainer import Job, Progress, State, Training, train
from symcheck.errors import MissingExtraError, OptionError

# Seconds to wait for a scheduler to answer.
CONNECT_SECONDS = 10
# Seconds of a slice: the work that is lost if a worker dies.
SLICE_SECONDS = 30.0
WHERE = "--executor dask"


class _Pause(Exception):  # noqa: N818 - not an error: the end of a slice
    """A slice of a training run is over."""


def train_slice(part: Job, content: bytes | None, seconds: float) -> bytes:
    """Continue with one part for one slice, on a worker.

    Args:
        part: the part to train.
        content: the state to continue from, serialised; None to start from the beginning.
        seconds: the wall time of the slice.

    Returns:
        The new state, serialised.
    """
    started, latest = time.monotonic(), list[Callable[[], State]]()

    def offer(state: Callable[[], State]) -> None:
        # Keep only the latest function; it is called once, at the end of the slice.
        latest[:] = [state]
        if time.monotonic() - started >= seconds:
            raise _Pause

    with contextlib.suppress(_Pause):
        train(part, on_checkpoint=offer, resume_from=None if content is None else deserialise(content))
    # The part was already finished: no state was offered.
    if not latest and content is not None:
        return content
    return serialise(latest[0]())


def cluster_threads(scheduler: str) -> int:
    """The number of threads of a cluster, at least 1.

    Raises:
        MissingExtraError: the extra `distributed` is not installed.
        OptionError: the scheduler cannot be reached.
    """
    with _client(scheduler, 1) as client:
        # A cluster whose workers are still starting reports no threads.
        return max(1, sum(int(threads) for threads in client.nthreads().values()))


def train_on_dask(
    job: Job,
    parts: Sequence[Job],
    *,
    scheduler: str | None,
    workers: int,
    checkpoints: Sequence[Path] = (),
    on_progress: Report | None = None,
    slice_seconds: float = SLICE_SECONDS,
) -> Training:
    """Train a job on a Dask cluster.

    Args:
        job: the job to train.
        parts: the parts of the job; one per thread of the cluster, or more, use the whole cluster.
        scheduler: the address of a scheduler; None for a local cluster of `workers` processes.
        workers: the number of processes of the local cluster.
        checkpoints: for each part, the file to write and, if it exists, to continue from; empty for none.
        on_progress: called whenever a slice is finished.
        slice_seconds: the wall time for which a part is trained before its state is returned.

    Returns:
        The same as `train`. After an interrupt (Ctrl-C), the results returned so far.

    Raises:
        MissingExtraError: the extra `distributed` is not installed.
        OptionError: the scheduler cannot be reached, or a part's workers die repeatedly.
        TargetError: a checkpoint cannot be read.
    """
    # None for a part that starts from the beginning.
    states = [read_state(file) for file in checkpoints] or [None] * len(parts)
    board = _Board(job, parts, states, checkpoints, on_progress or (lambda progress: None))
    interrupted = False
    with _client(scheduler, workers) as client:
        try:
            _run(client, board, slice_seconds)
        except KeyboardInterrupt:
            interrupted = True
    return board.training(interrupted=interrupted)


class _Board:
    """The progress of every part, in memory and on disk."""

    def __init__(
        self,
        job: Job,
        parts: Sequence[Job],
        states: Sequence[State | None],
        checkpoints: Sequence[Path],
        on_progress: Report,
    ) -> None:
        self._job, self.parts, self._tell = job, parts, on_progress
        self._writers = [Checkpointer(file) for file in checkpoints]
        self._gathered = Gathered(job, parts)
        self._states = list(states)
        for part, state in enumerate(self._states):
            if state is not None:
                # Curves from earlier sessions are reported from the first point on.
                self._note(part, state, seen=0)

    def content(self, part: int) -> bytes | None:
        """The state from which a part continues."""
        state = self._states[part]
        return None if state is None else serialise(state)

    def is_unfinished(self, part: int) -> bool:
        """Whether a part is not finished."""
        state = self._states[part]
        return state is None or state["updates"] < self._job.settings.updates

    def take(self, part: int, reached: bytes) -> None:
        """Store the result of a slice."""
        state, before = deserialise(reached), self._states[part]
        self._states[part] = state
        if self._writers:
            self._writers[part].write(lambda: state)
        # Report only the points that this slice added.
        self._note(part, state, seen=0 if before is None else len(before["env_steps"]))
        for progress in self._gathered.news():
            self._tell(progress)

    def _note(self, part: int, state: State, *, seen: int) -> None:
        settings = self._job.settings
        done, total = state["updates"] * settings.batch, settings.updates * settings.batch
        # The last known point is repeated: it carries the number of steps done.
        for at, returns in list(zip(state["env_steps"], state["returns"], strict=True))[max(0, seen - 1) :]:
            self._gathered.add(part, Progress(done, total, returns.numpy(), at))

    def training(self, *, interrupted: bool) -> Training:
        """The current results of all parts; parts without a returned state start from the beginning."""
        results = [_result(part, state) for part, state in zip(self.parts, self._states, strict=True)]
        training = merge(self._job, self.parts, results)
        training.interrupted = interrupted
        return training


def _result(part: Job, state: State | None) -> ShardResult:
    """A state in the form of a finished part."""

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    # A training that is stopped at its first progress report returns the content of its state.
    return plain(train(part, on_progress=stop, resume_from=state))


def _run(client: Any, board: _Board, seconds: float) -> None:
    """Submit slice after slice of every part until all are finished."""
    distributed = _import_distributed()

    def submit(part: int) -> Any:
        # Not pure: Dask would otherwise reuse the result of an equal earlier call.
        future = client.submit(train_slice, board.parts[part], board.content(part), seconds, pure=False)
        of[future] = part
        return future

    of: dict[Any, int] = {}
    waiting = distributed.as_completed([submit(part) for part in range(len(board.parts)) if board.is_unfinished(part)])
    for future in waiting:
        part = of.pop(future)
        try:
            board.take(part, future.result())
        except distributed.KilledWorker as error:
            raise OptionError(
                f"the workers that trained the seeds {board.parts[part].seeds} died repeatedly.",
                where=WHERE,
                remedy=(
                    "Check the logs of the workers (the usual cause is too little memory), then continue with --resume."
                ),
            ) from error
        # The next slice continues from the returned state, on any free worker.
        if board.is_unfinished(part):
            waiting.add(submit(part))


def _import_distributed() -> Any:
    """The package `distributed`, which has no type annotations."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("distributed", needed_for=WHERE) from error


@contextlib.contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    distributed = _import_distributed()
    # States are sent with the tasks, so that Dask can repeat a slice whose worker died.
    with importlib.import_module("dask").config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        if scheduler is None:
            with (
                distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise OptionError(
                f"no Dask scheduler answers at {scheduler!r} ({error}).",
                where="--scheduler",
                remedy="Start a scheduler with: dask scheduler",
            ) from error
        with client:
            yield client
