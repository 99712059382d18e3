"""Distributes one training run over several processes; each trains some of the seeds at every learning rate.

Runs do not depend on each other, so neither curves nor weights depend on the number of processes. Small batched
products scale with processes but hardly with threads. Each process writes checkpoints of its part; if a process dies,
its part continues from its last checkpoint.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.checkpoint import Checkpointer, read_state
from reference_agents.networks.factory import make_network
from reference_agents.trainer import Job, Progress, State, Training, train

# Seconds between two polls of messages and processes.
POLL_SECONDS = 0.2
# a process that dies breaks its pool; after this number of pools, the remaining parts are trained in this process
ATTEMPTS = 3
Report = Callable[[Progress], None]


@dataclass(frozen=True)
class ShardResult:
    """The result of a process as plain arrays; the fields are those of `Training`."""

    values: npt.NDArray[np.float32]
    initial: npt.NDArray[np.float32]
    env_steps: list[int]
    returns: list[npt.NDArray[np.float64]]
    stopped: dict[int, int]
    interrupted: bool
    training_seconds: float
    evaluation_seconds: float


def split(job: Job, parts: int) -> tuple[Job, ...]:
    """Split a job by seeds into parts of about equal size, each with every learning rate.

    Example:
        >>> from reference_agents.catalog import find_network, find_task
        >>> from reference_agents.settings import Settings
        >>> task = find_task("cartpole")
        >>> job = Job(task, find_network(task, "mlp"), (0, 1, 2, 3, 4), (0.001,), Settings())
        >>> [part.seeds for part in split(job, 2)]
        [(0, 1, 2), (3, 4)]
    """
    # Never more parts than seeds: an empty part has nothing to train.
    groups = np.array_split(np.array(job.seeds), min(parts, len(job.seeds)))
    return tuple(replace(job, seeds=tuple(group.tolist())) for group in groups)


def train_in_processes(
    job: Job,
    parts: Sequence[Job],
    *,
    processes: int,
    checkpoints: Sequence[Path] = (),
    on_progress: Report | None = None,
) -> Training:
    """Train a job in several processes.

    Args:
        job: the job to train.
        parts: the parts of the job, from `split`.
        processes: the number of parts trained at once; each process runs one thread.
        checkpoints: for each part, the file to write and, if it exists, to continue from; empty for none.
        on_progress: called at intervals with the progress of all runs.

    Returns:
        The same as `train`. After an interrupt (Ctrl-C), the evaluations that every process had finished.

    Raises:
        TargetError: a checkpoint cannot be read.
    """
    files: list[Path | None] = list(checkpoints) or [None] * len(parts)
    gathered, stopped = Gathered(job, parts), False
    results: dict[int, ShardResult] = {}
    for _ in range(ATTEMPTS):
        left = [place for place in range(len(parts)) if place not in results]
        if not left or stopped:
            break
        with _worker_pool(min(processes, len(left))) as (pool, messages, stop):
            futures = {place: pool.submit(run_shard, parts[place], place, files[place]) for place in left}
            try:
                _watch(list(futures.values()), messages, gathered, on_progress or (lambda progress: None))
            except KeyboardInterrupt:
                stop.set()
                stopped = True
            for place, future in futures.items():
                # A process was killed: its parts are repeated in the next pool.
                with contextlib.suppress(BrokenProcessPool):
                    results[place] = future.result()
    for place, (part, file) in enumerate(zip(parts, files, strict=True)):
        if place not in results:
            # After an interrupt, a part is only converted from its checkpoint to a result.
            results[place] = _train_part(part, file, on_progress=_interrupt if stopped else None)
    return merge(job, parts, [results[place] for place in range(len(parts))])


@contextlib.contextmanager
def _worker_pool(processes: int) -> Iterator[tuple[ProcessPoolExecutor, Any, Any]]:
    """Processes, their message queue, and the event that stops them."""
    # Forked processes would inherit torch's threads and CUDA's state.
    context = multiprocessing.get_context("spawn")
    messages, stop = context.Queue(), context.Event()
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(messages, stop)) as pool:
        yield pool, messages, stop


def _interrupt(progress: Progress) -> None:
    """A progress callback that stops a training run immediately, at its checkpoint."""
    raise KeyboardInterrupt


def _watch(futures: Sequence[Future[ShardResult]], messages: Any, gathered: Gathered, on_progress: Report) -> None:
    """Report the progress of the slowest process until all are finished."""
    done = False
    while not done:
        # Tested before reading messages, so that messages that arrived before the end are forwarded.
        done = all(future.done() for future in futures)
        wait(futures, timeout=POLL_SECONDS)
        with contextlib.suppress(queue.Empty):
            while True:
                gathered.add(*messages.get_nowait())
        for progress in gathered.news():
            on_progress(progress)


class Gathered:
    """Combines the progress of a job's parts: that of the slowest, and the evaluations that all have completed.

    Args:
        job: the whole job.
        parts: the parts of the job.
    """

    def __init__(self, job: Job, parts: Sequence[Job]) -> None:
        self._places, self._total = _places(job, parts), job.settings.updates * job.settings.batch
        self._env_steps = [0] * len(parts)
        self._waiting: dict[int, dict[int, npt.NDArray[np.float64]]] = {}
        self._latest = (np.empty(0), 0)
        self._new: list[tuple[npt.NDArray[np.float64], int]] = []

    def add(self, part: int, progress: Progress) -> None:
        """Add the progress of a part."""
        self._env_steps[part] = progress.env_steps
        at = progress.evaluated_at
        # A restarted part repeats known points.
        if at <= self._latest[1] and self._latest[0].size:
            return
        points = self._waiting.setdefault(at, {})
        points[part] = progress.returns
        # All parts have completed this evaluation: one array in the order of the job's runs.
        if len(points) == len(self._env_steps):
            returns = np.array([points[part][row] for part, row in self._places])
            self._new.append((returns, at))
            self._latest = (returns, at)
            del self._waiting[at]

    def news(self) -> Iterator[Progress]:
        """One message for each evaluation completed since the last call, but at least one."""
        # Without a new evaluation, repeat the last one with the new number of steps.
        new, self._new = self._new or [self._latest], []
        for returns, at in new:
            yield Progress(min(self._env_steps), self._total, returns, at)


_worker: dict[str, Any] = {}


def _begin(messages: Any, stop: Any) -> None:
    """Set up a new process: the parent handles interrupts and signals when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker.update(messages=messages, stop=stop)


def run_shard(part: Job, place: int, checkpoint: Path | None) -> ShardResult:
    """Train one part in this process, and report its progress to the parent."""

    def tell(progress: Progress) -> None:
        _worker["messages"].put((place, progress))
        # Raised inside `train`, which handles it like Ctrl-C.
        if _worker["stop"].is_set():
            raise KeyboardInterrupt

    return _train_part(part, checkpoint, on_progress=tell)


def _train_part(part: Job, checkpoint: Path | None, *, on_progress: Report | None) -> ShardResult:
    """Train a part from its checkpoint; the final checkpoint is kept, so that a finished part is not trained again."""
    if checkpoint is None:
        return plain(train(part, on_progress=on_progress))
    writer = Checkpointer(checkpoint)
    latest: list[Callable[[], State]] = []

    def offer(state: Callable[[], State]) -> None:
        latest[:] = [state]
        writer.offer(state)

    training = train(part, on_progress=on_progress, on_checkpoint=offer, resume_from=read_state(checkpoint))
    if latest:
        writer.write(latest[0])
    return plain(training)


def plain(training: Training) -> ShardResult:
    """Convert a training run to the result that a process returns."""
    return ShardResult(
        training.network.parameters.values.cpu().numpy(),
        training.initial_parameters.cpu().numpy(),
        training.env_steps,
        training.returns,
        training.stopped,
        training.interrupted,
        training.training_seconds,
        training.evaluation_seconds,
    )


def _places(job: Job, parts: Sequence[Job]) -> list[tuple[int, int]]:
    """The part of every run of a job, and the position in it."""
    # Job.runs is ordered by learning rate, so the runs of a part are not contiguous.
    where = {run: (part, row) for part, part_job in enumerate(parts) for row, run in enumerate(part_job.runs)}
    return [where[run] for run in job.runs]


def merge(job: Job, parts: Sequence[Job], results: Sequence[ShardResult]) -> Training:
    """Merge the parts into one training run.

    Args:
        job: the whole job.
        parts: the parts of the job.
        results: the results of each part.

    Returns:
        The training run, with runs in the job's order. If parts stopped at different points, all curves end at the
        earliest.
    """
    places = _places(job, parts)
    device = torch.device(job.device)
    network = make_network(job.task, job.network, [seed for _, seed in job.runs], device)
    values = np.stack([results[part].values[row] for part, row in places])
    network.parameters.values.copy_(torch.from_numpy(values))
    network.refresh()
    initial = torch.from_numpy(np.stack([results[part].initial[row] for part, row in places])).to(device)
    # The number of evaluations that every part has completed.
    evaluations = min(len(result.returns) for result in results)
    return Training(
        job,
        network,
        initial,
        env_steps=min((result.env_steps for result in results), key=len),
        returns=[np.array([results[part].returns[at][row] for part, row in places]) for at in range(evaluations)],
        stopped={
            run: results[part].stopped[row] for run, (part, row) in enumerate(places) if row in results[part].stopped
        },
        interrupted=any(result.interrupted for result in results),
        # Parts run in parallel: the elapsed time is that of the longest.
        training_seconds=max(result.training_seconds for result in results),
        evaluation_seconds=max(result.evaluation_seconds for result in results),
    )
