"""One training spread over the workers of a Dask cluster; a worker that dies costs its seeds' time and nothing else.

Dask runs the parts of a job wherever there is a worker and runs them again where one is lost. The cluster is yours
(`dask scheduler` and `dask worker`, or dask-jobqueue), or a local one made for the occasion.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from reference_agents.shards import ShardResult, merge, plain, split
from reference_agents.trainer import Job, Progress, Training, train
from symcheck.errors import MissingExtraError, OptionError

CONNECT_SECONDS = 10


def train_part(part: Job) -> ShardResult:
    """Train one part on a worker."""
    return plain(train(part))


def train_on_dask(
    job: Job,
    *,
    scheduler: str | None,
    workers: int,
    on_progress: Callable[[Progress], None] | None = None,
) -> Training:
    """Train a job on a Dask cluster.

    Args:
        job: what to train.
        scheduler: the address of a scheduler; None for a local cluster of `workers` processes.
        workers: parts to split the seeds into; with a scheduler, at least its number of threads.
        on_progress: told whenever a part is finished.

    Returns:
        What `train` would return. After an interrupt (Ctrl-C), KeyboardInterrupt is raised: parts are all or nothing.

    Raises:
        MissingExtraError: without the extra `distributed`.
        OptionError: where the scheduler cannot be reached.
    """
    with _client(scheduler, workers) as client:
        from distributed import as_completed

        count = max(workers, sum(client.nthreads().values()))
        parts = split(job, count)
        futures = client.map(train_part, parts, pure=False)
        total = job.settings.updates * job.settings.batch
        for done, _ in enumerate(as_completed(futures), start=1):
            if on_progress is not None:
                on_progress(Progress(total * done // len(parts), total, np.empty(0)))
        results = client.gather(futures)
    return merge(job, parts, results)


@contextlib.contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError("distributed", needed_for="--executor dask") from error
    if scheduler is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise OptionError(
            f"expected the address of a Dask scheduler that answers, got {scheduler!r} ({error}).",
            where="--scheduler",
            remedy="Start one with: dask scheduler",
        ) from error
    with client:
        yield client
