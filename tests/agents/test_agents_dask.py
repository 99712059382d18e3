"""Training on a Dask cluster: the same bits, also when a worker is killed, and plain words where there is none."""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import deserialise, read_state, serialise
from reference_agents.cli.app import app
from reference_agents.dask_executor import cluster_threads, train_on_dask, train_slice
from reference_agents.settings import preset
from reference_agents.shards import split
from reference_agents.trainer import Job, Progress, Training, train
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
        train_on_dask(_job(), split(_job(), 2), scheduler=None, workers=2)


def test_slices_of_a_part_one_after_the_other_are_the_part_trained_in_one_go() -> None:
    part, content, slices = split(_job(), 2)[1], None, 0
    while content is None or deserialise(content)["updates"] < part.settings.updates:
        content = train_slice(part, content, seconds=0.0)
        assert isinstance(content, bytes)
        slices += 1
    state, whole = deserialise(content), train(part)
    assert slices == part.settings.updates
    assert torch.equal(state["values"], whole.network.parameters.values)
    assert np.array_equal([point.numpy() for point in state["returns"]], whole.returns)
    assert train_slice(part, content, seconds=0.0) == content


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bits_and_so_does_one_that_loses_a_worker(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    job = _job(steps=8_000)
    whole, parts = train(job), split(job, 2)
    files = [tmp_path / f"{part}.pt" for part in range(2)]
    seen: list[Progress] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert cluster_threads(cluster.scheduler_address) == 2
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())

        def kill_one() -> None:
            time.sleep(1.0)
            os.kill(pids[0], signal.SIGKILL)

        threading.Thread(target=kill_one).start()
        training = train_on_dask(
            job,
            parts,
            scheduler=cluster.scheduler_address,
            workers=2,
            checkpoints=files,
            on_progress=seen.append,
            slice_seconds=0.3,
        )
    _same(training, whole)
    told = {progress.evaluated_at: progress.returns for progress in seen if progress.returns.size}
    assert list(told) == whole.env_steps
    assert np.array_equal(list(told.values()), whole.returns)
    assert [read_state(file)["updates"] for file in files] == [job.settings.updates] * 2


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_training_on_a_cluster_goes_on_from_its_checkpoints(tmp_path: Path) -> None:
    job = _job(steps=1_600)
    parts, files = split(job, 2), [tmp_path / "0.pt", tmp_path / "1.pt"]
    states: list[bytes] = []
    train(parts[0], on_checkpoint=lambda state: states.append(serialise(state())))
    files[0].write_bytes(states[7])
    training = train_on_dask(job, parts, scheduler=None, workers=2, checkpoints=files)
    _same(training, train(job))


def _same(one: Training, other: Training) -> None:
    assert torch.equal(one.network.parameters.values, other.network.parameters.values)
    assert np.array_equal(one.returns, other.returns)
    assert one.env_steps == other.env_steps
    assert one.interrupted == other.interrupted


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense"])
def test_a_scheduler_that_does_not_answer_is_refused(address: str) -> None:
    with pytest.raises(OptionError, match="--scheduler: no Dask scheduler answers at"):
        cluster_threads(address)


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer_leaves_no_folder(tmp_path: Path) -> None:
    arguments = ["train", "cartpole", "--executor", "dask", "--scheduler", "nonsense", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, arguments).exit_code == 2
    assert not list(tmp_path.iterdir())
