"""Training on a Dask cluster: the same bits, also when a worker is killed, and plain words where there is none."""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch

from reference_agents.catalog import find_network, find_task
from reference_agents.dask_executor import train_on_dask, train_part
from reference_agents.settings import preset
from reference_agents.shards import split
from reference_agents.trainer import Job, train
from symcheck.errors import MissingExtraError, OptionError

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs the extra distributed")
SETTINGS = preset("cartpole", "tuned").with_changes(
    steps=800, evaluation_every=400, evaluation_episodes=2, decorrelation_steps=10
)


def _job(steps: int = 800) -> Job:
    task = find_task("cartpole")
    return Job(task, find_network(task, "mlp"), (0, 1, 2, 3), (0.001, 0.01), SETTINGS.with_changes(steps=steps))


def test_without_the_extra_the_message_carries_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return original(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'symcheck\[distributed\]'"):
        train_on_dask(_job(), scheduler=None, workers=2)


def test_a_part_trained_on_a_worker_is_the_part_trained_here() -> None:
    part = split(_job(), 2)[1]
    assert np.array_equal(train_part(part).values, train(part).network.parameters.values.numpy())


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bits_and_so_does_one_that_loses_a_worker() -> None:
    from distributed import Client, LocalCluster

    job = _job(steps=8_000)
    whole = train(job)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())

        def kill_one() -> None:
            time.sleep(1.0)
            os.kill(pids[0], signal.SIGKILL)

        threading.Thread(target=kill_one).start()
        training = train_on_dask(job, scheduler=cluster.scheduler_address, workers=2)
    assert torch.equal(training.network.parameters.values, whole.network.parameters.values)
    assert np.array_equal(training.returns, whole.returns)


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer_is_refused() -> None:
    with pytest.raises(OptionError, match="--scheduler: expected the address of a Dask scheduler that answers"):
        train_on_dask(_job(), scheduler="tcp://127.0.0.1:9", workers=2)
