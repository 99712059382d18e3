"""Several processes give what one gives, and lose nothing when one of them dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from reference_agents import record, shards
from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import read_state, serialise
from reference_agents.settings import preset
from reference_agents.shards import merge, split, train_in_processes
from reference_agents.trainer import Job, Progress, Training, train

SETTINGS = preset("cartpole", "tuned").with_changes(
    steps=800, evaluation_every=400, evaluation_episodes=2, decorrelation_steps=10
)


def _job(seeds: tuple[int, ...] = (0, 1, 2)) -> Job:
    task = find_task("cartpole")
    return Job(task, find_network(task, "mlp"), seeds, (0.001, 0.01), SETTINGS)


def _same(one: Training, other: Training) -> None:
    assert torch.equal(one.network.parameters.values, other.network.parameters.values)
    assert torch.equal(one.initial_parameters, other.initial_parameters)
    assert np.array_equal(one.returns, other.returns)
    assert one.env_steps == other.env_steps


@pytest.fixture(scope="module")
def whole() -> Training:
    return train(_job())


@pytest.mark.long
def test_two_processes_give_the_bits_that_one_gives(whole: Training) -> None:
    seen: list[Progress] = []
    training = train_in_processes(_job(), split(_job(), 2), processes=2, on_progress=seen.append)
    _same(training, whole)
    assert not training.interrupted
    assert seen[-1].total == SETTINGS.updates * SETTINGS.batch
    told = {progress.evaluated_at: progress.returns for progress in seen if progress.returns.size}
    assert list(told) == whole.env_steps
    assert np.array_equal(list(told.values()), whole.returns)


def test_parts_trained_one_by_one_merge_into_the_whole(whole: Training) -> None:
    parts = split(_job(), 3)
    _same(merge(_job(), parts, [shards.plain(train(part)) for part in parts]), whole)


def test_there_are_no_more_parts_than_seeds() -> None:
    assert [part.seeds for part in split(_job((5, 7)), 8)] == [(5,), (7,)]


def test_a_run_that_diverged_is_named_after_merging() -> None:
    parts = split(_job(), 3)
    results = [shards.plain(train(part)) for part in parts]
    results[1].stopped[1] = 400
    assert merge(_job(), parts, results).stopped == {_job().runs.index((0.01, 1)): 400}


def test_a_finished_part_is_taken_from_its_checkpoint_and_another_goes_on_from_its_own(
    whole: Training, tmp_path: Path
) -> None:
    parts, files = split(_job(), 3), [tmp_path / f"{part}.pt" for part in range(3)]
    states: list[bytes] = []
    for part in parts[:2]:
        train(part, on_checkpoint=lambda state: states.append(serialise(state())))
    files[0].write_bytes(states[SETTINGS.updates - 1])
    files[1].write_bytes(states[SETTINGS.updates + 3])
    results = [shards._train_part(part, file, on_progress=None) for part, file in zip(parts, files, strict=True)]
    _same(merge(_job(), parts, results), whole)
    assert [read_state(file)["updates"] for file in files] == [SETTINGS.updates] * 3
    assert files[0].read_bytes() == states[SETTINGS.updates - 1]


class _Done:
    """What stands for a process that was given a part: it trained it, or it died."""

    def __init__(self, part: Job, *, dies: bool) -> None:
        self._part, self._dies = part, dies

    def result(self) -> shards.ShardResult:
        if self._dies:
            raise shards.BrokenProcessPool
        return shards.plain(train(self._part))


@pytest.mark.parametrize("deaths", [1, 10])
def test_the_seeds_of_a_process_that_dies_are_trained_again(
    whole: Training, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    submitted: list[int] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def submit(self, function: object, part: Job, place: int, file: Path | None) -> _Done:
            submitted.append(place)
            return _Done(part, dies=place == 1 and submitted.count(1) <= deaths)

    monkeypatch.setattr(shards, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(shards, "_watch", lambda *_: None)
    _same(train_in_processes(_job(), split(_job(), 2), processes=2), whole)
    assert submitted == [0, *[1] * min(deaths + 1, shards.ATTEMPTS)]


@pytest.mark.slow
def test_a_process_killed_midway_costs_its_time_alone(whole: Training, tmp_path: Path) -> None:
    job = replace(_job(), settings=SETTINGS.with_changes(steps=16_000, evaluation_every=8_000))
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.env_steps > 2_000 and not killed:
            killed.append(multiprocessing.active_children()[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    files = [tmp_path / "0.pt", tmp_path / "1.pt"]
    training = train_in_processes(job, split(job, 2), processes=2, checkpoints=files, on_progress=kill_one)
    assert killed
    _same(training, train(job))


@pytest.mark.slow
def test_ctrl_c_stops_every_process_and_saves_what_was_finished(tmp_path: Path) -> None:
    arguments = ["reference-agents", "train", "cartpole", "--network", "mlp", "--seeds", "2", "--processes", "2"]
    script = (
        "import os, signal, threading, sys\n"
        "from reference_agents import shards\n"
        "watch = shards._watch\n"
        "def watching(futures, messages, gathered, on_progress):\n"
        "    def tell(progress):\n"
        "        on_progress(progress)\n"
        "        if progress.env_steps >= 1_000: os.kill(os.getpid(), signal.SIGINT)\n"
        "    watch(futures, messages, gathered, tell)\n"
        "shards._watch = watching\n"
        f"sys.argv = {[*arguments, '--out', str(tmp_path)]!r}\n"
        "from reference_agents.cli import main\n"
        "if __name__ == '__main__': main()\n"
    )
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    saved = record.load(tmp_path / "cartpole-mlp")
    assert saved.interrupted
    assert len(saved.curves[0].env_steps) >= 2
