"""One training spread over several processes: each takes some of the seeds, with every learning rate.

Runs do not depend on their company, so neither the curves nor the weights depend on how many processes there are.
Small batched products scale with processes and hardly with threads. A process that dies takes nothing with it: its
seeds are trained again, here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.networks.factory import make_network
from reference_agents.trainer import Job, Progress, Training, train

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class ShardResult:
    """What a process sends back: plain arrays; the fields are those of `Training`."""

    values: npt.NDArray[np.float32]
    initial: npt.NDArray[np.float32]
    env_steps: list[int]
    returns: list[npt.NDArray[np.float64]]
    stopped: dict[int, int]
    interrupted: bool
    training_seconds: float
    evaluation_seconds: float


def split(job: Job, parts: int) -> list[Job]:
    """Jobs of about equally many seeds each, at most one for each seed.

    Example:
        >>> from reference_agents.catalog import find_network, find_task
        >>> from reference_agents.settings import Settings
        >>> task = find_task("cartpole")
        >>> job = Job(task, find_network(task, "mlp"), (0, 1, 2, 3, 4), (0.001,), Settings())
        >>> [part.seeds for part in split(job, 2)]
        [(0, 1, 2), (3, 4)]
    """
    groups = np.array_split(np.array(job.seeds), min(parts, len(job.seeds)))
    return [replace(job, seeds=tuple(group.tolist())) for group in groups]


def train_in_processes(job: Job, processes: int, *, on_progress: Callable[[Progress], None] | None = None) -> Training:
    """Train a job in several processes.

    Args:
        job: what to train.
        processes: how many; each runs one thread.
        on_progress: told every so often, of all runs together.

    Returns:
        What `train` would return. After an interrupt (Ctrl-C), what was finished by then: the evaluations that every
        process had made.
    """
    parts = split(job, processes)
    context = multiprocessing.get_context("spawn")
    messages, stop = context.Queue(), context.Event()
    with ProcessPoolExecutor(len(parts), context, initializer=_begin, initargs=(messages, stop)) as pool:
        futures = [pool.submit(run_shard, part, place) for place, part in enumerate(parts)]
        try:
            _watch(futures, messages, job, parts, on_progress or (lambda progress: None))
        except KeyboardInterrupt:
            stop.set()
        results = [_result(future, part) for future, part in zip(futures, parts, strict=True)]
    return merge(job, parts, results)


def _result(future: Future[ShardResult], part: Job) -> ShardResult:
    try:
        return future.result()
    except BrokenProcessPool:
        return plain(train(part))


def _watch(
    futures: Sequence[Future[ShardResult]],
    messages: Any,
    job: Job,
    parts: Sequence[Job],
    on_progress: Callable[[Progress], None],
) -> None:
    """Pass on how far the slowest process is, until all are done."""
    latest = {place: Progress(0, 1, np.empty(0)) for place in range(len(parts))}
    total = job.settings.updates * job.settings.batch
    while not all(future.done() for future in futures):
        wait(futures, timeout=POLL_SECONDS)
        with contextlib.suppress(queue.Empty):
            while True:
                place, progress = messages.get_nowait()
                latest[place] = progress
        slowest = min(progress.env_steps for progress in latest.values())
        on_progress(Progress(slowest, total, np.concatenate([progress.returns for progress in latest.values()])))


_worker: dict[str, Any] = {}


def _begin(messages: Any, stop: Any) -> None:
    """In a new process: interrupts are for the parent, which says when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker.update(messages=messages, stop=stop)


def run_shard(part: Job, place: int) -> ShardResult:
    """Train one part in this process, telling the parent how far it is."""

    def tell(progress: Progress) -> None:
        _worker["messages"].put((place, progress))
        if _worker["stop"].is_set():
            raise KeyboardInterrupt

    return plain(train(part, on_progress=tell))


def plain(training: Training) -> ShardResult:
    """What a process sends back of a training."""
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


def merge(job: Job, parts: Sequence[Job], results: Sequence[ShardResult]) -> Training:
    """One training of all parts.

    Args:
        job: the whole.
        parts: what it was split into.
        results: of each part.

    Returns:
        The training, with runs in the job's order. Where parts were stopped at different points, curves end where the
        first of them does.
    """
    where = {run: (part, row) for part, one in enumerate(parts) for row, run in enumerate(one.runs)}
    places = [where[run] for run in job.runs]
    device = torch.device(job.device)
    network = make_network(job.task, job.network, [seed for _, seed in job.runs], device)
    values = np.stack([results[part].values[row] for part, row in places])
    network.parameters.values.copy_(torch.from_numpy(values))
    network.refresh()
    initial = torch.from_numpy(np.stack([results[part].initial[row] for part, row in places])).to(device)
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
        training_seconds=max(result.training_seconds for result in results),
        evaluation_seconds=max(result.evaluation_seconds for result in results),
    )
