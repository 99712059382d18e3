"""A training that was stopped goes on as if it had not been, bit for bit, or says why it cannot."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents import checkpoint, record
from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import (
    Checkpointer,
    Started,
    begin,
    checkpoint_path,
    read_state,
    serialise,
    started_in,
)
from reference_agents.cli.app import app
from reference_agents.settings import Evaluation, preset
from reference_agents.shards import split
from reference_agents.tasks import resolve_network
from reference_agents.trainer import Job, State, train
from symcheck.errors import OptionError, TargetError


def _job(task: str = "cartpole", network: str = "mlp") -> Job:
    settings = preset(task, "tuned").with_changes(
        steps=1_200, evaluation_every=400, evaluation_episodes=3, decorrelation_steps=20
    )
    the_task = find_task(task)
    return Job(the_task, find_network(the_task, network), (0, 1), (0.001, 0.01), settings)


def _through_a_file(state: dict) -> dict:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


@pytest.mark.parametrize(
    ("task", "network"),
    [
        ("cartpole", "mlp"),
        ("cartpole", "equivariant"),
        ("cartpole", "augmented"),
        pytest.param("gridworld", "equivariant", marks=pytest.mark.long),
    ],
)
def test_a_training_resumed_after_any_update_ends_in_the_same_bits(task: str, network: str) -> None:
    job = _job(task, network)
    states = []
    whole = train(job, on_checkpoint=lambda state: states.append(_through_a_file(state())))
    assert len(states) == job.settings.updates == 15
    for state in (states[0], states[6], states[-1]):
        resumed = train(job, resume_from=state)
        assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)
        assert np.array_equal(resumed.returns, whole.returns)
        assert resumed.env_steps == whole.env_steps
        assert torch.equal(resumed.initial_parameters, whole.initial_parameters)


def test_a_run_that_diverged_is_still_named_after_resuming() -> None:
    job, states = _job(), []

    def poison(state) -> None:  # type: ignore[no-untyped-def]
        states.append({**_through_a_file(state()), "stopped": {1: 80}})

    train(job, on_checkpoint=poison)
    resumed = train(job, resume_from=states[0])
    assert resumed.stopped == {1: 80}
    assert np.isnan(np.array(resumed.returns)[-1]).tolist() == [False, True, False, False]


PENDULUM = preset("pendulum", "tuned").with_changes(
    steps=1_200, environments=2, horizon=20, minibatches=4, epochs=1, evaluation_every=400, evaluation_episodes=1,
    decorrelation_steps=20,
)  # fmt: skip


@pytest.mark.long
def test_a_training_on_an_environment_of_gymnasium_resumes_bit_for_bit() -> None:
    task = find_task("pendulum")
    job = Job(task, find_network(task, "equivariant"), (0, 1), (0.001,), PENDULUM)
    states = []
    whole = train(job, on_checkpoint=lambda state: states.append(_through_a_file(state())))
    for state in (states[0], states[13], states[-1]):  # 13: 280 steps of an environment, so in its second episode
        resumed = train(job, resume_from=state)
        assert torch.equal(resumed.network.parameters.values, whole.network.parameters.values)
        assert np.array_equal(resumed.returns, whole.returns)


@pytest.mark.parametrize("evaluation", ["training", "window"])
def test_a_training_that_is_measured_as_the_papers_code_does_resumes_bit_for_bit(evaluation: Evaluation) -> None:
    job = _job()
    job = replace(job, settings=job.settings.with_changes(evaluation=evaluation, evaluation_window=30))
    states = []
    whole = train(job, on_checkpoint=lambda state: states.append(_through_a_file(state())))
    for state in (states[0], states[6]):
        assert np.array_equal(train(job, resume_from=state).returns, whole.returns, equal_nan=True)


def _train_script(folder: Path, processes: int) -> str:
    """A training that writes a checkpoint after every update; of 200, so that twenty kills do not reach its end."""
    return (
        "from reference_agents import checkpoint\n"
        "import sys\n"
        "checkpoint.SECONDS = 0.0\n"
        "from reference_agents.cli.app import app\n"
        "arguments = ['train', 'cartpole', '--network', 'mlp', '--seeds', '2', '--steps', '16000', '--processes',"
        f" '{processes}', '--evaluation-every', '1000', '--out', {str(folder)!r}]\n"
        "if __name__ == '__main__': app(sys.argv[1:] or arguments)\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "moments"), [(1, 20), (2, 10)])
def test_a_training_killed_at_random_moments_gives_the_same_curves(
    tmp_path: Path, processes: int, moments: int
) -> None:
    script, whole, killed = tmp_path / "script.py", tmp_path / "whole", tmp_path / "killed"
    script.write_text(_train_script(killed, processes))
    (tmp_path / "reference.py").write_text(_train_script(whole, processes))
    subprocess.run([sys.executable, str(tmp_path / "reference.py")], capture_output=True, check=True)
    rng = np.random.default_rng(processes)
    folder, arguments, kills = killed / "cartpole-mlp", list[str](), 0
    while kills < moments and not (folder / record.RECORD_FILE).exists():
        before = _newest(folder)
        process = subprocess.Popen([sys.executable, str(script), *arguments], start_new_session=True)
        while process.poll() is None and _newest(folder) == before:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.05))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        arguments, kills = ["train", "--resume", str(folder)], kills + 1
    if not (folder / record.RECORD_FILE).exists():
        subprocess.run([sys.executable, str(script), *arguments], capture_output=True, check=True)
    assert kills == moments
    for name in (record.CURVES_FILE, *(f"weights/{file.name}" for file in (folder / "weights").iterdir())):
        assert (folder / name).read_bytes() == (whole / "cartpole-mlp" / name).read_bytes()
    assert not list(folder.glob("checkpoint*"))


def _newest(folder: Path) -> int:
    """When the latest of a folder's checkpoints, or its job, was written."""
    written = [0]
    for file in [folder / record.JOB_FILE, *folder.glob("checkpoint*.pt")]:
        with contextlib.suppress(FileNotFoundError):
            written.append(file.stat().st_mtime_ns)
    return max(written)


def _start(folder: Path, *, until: int = 3, parts: int = 1) -> Started:
    """A training that was killed after some updates."""
    job = _job()
    started = Started(job, "tuned", "reference-agents train", split(job, parts))
    begin(folder, started)
    for number, part in enumerate(started.parts):
        states: list[bytes] = []
        train(part, on_checkpoint=lambda state, states=states: states.append(serialise(state())))
        checkpoint_path(folder, number, parts).write_bytes(states[until - 1])
    return started


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a training that was killed after three updates."""
    _start(tmp_path)
    return tmp_path


def _resume(folder: Path, *arguments: str, task: tuple[str, ...] = ("cartpole",)) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["train", *task, "--resume", str(folder), *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


def test_resuming_from_the_command_line_records_the_run_and_removes_its_checkpoint(stopped: Path) -> None:
    code, _ = _resume(stopped, task=())
    assert code == 0
    loaded = record.load(stopped)
    assert [run.learning_rate for run in loaded.runs] == [0.001, 0.001, 0.01, 0.01]
    assert [curve.returns[-1] for curve in loaded.curves] == list(train(_job()).returns[-1])
    assert not list(stopped.glob("checkpoint*"))


def test_a_training_that_was_killed_before_its_first_checkpoint_starts_afresh(stopped: Path) -> None:
    (stopped / "checkpoint.pt").unlink()
    assert _resume(stopped)[0] == 0
    assert [curve.returns[-1] for curve in record.load(stopped).curves] == list(train(_job()).returns[-1])


@pytest.mark.slow
def test_a_training_in_parts_goes_on_from_the_checkpoint_of_each(tmp_path: Path) -> None:
    _start(tmp_path, parts=2)
    (tmp_path / "checkpoint-2.pt").unlink()
    assert _resume(tmp_path)[0] == 0
    assert [curve.returns[-1] for curve in record.load(tmp_path).curves] == list(train(_job()).returns[-1])
    assert not list(tmp_path.glob("checkpoint*"))


def test_a_training_that_has_ended_is_not_resumed(stopped: Path) -> None:
    assert _resume(stopped)[0] == 0
    code, output = _resume(stopped)
    assert code == 2
    assert "is complete, so there is nothing to resume" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "equivariant"], "network was mlp and is now equivariant"),
        (["--seeds", "3", "--steps", "99"], "seeds was 2 and is now 3; steps was 1200 and is now 99"),
        (["--learning-rate", "0.5"], "learning-rate was (0.001, 0.01) and is now (0.5,)"),
    ],
)
def test_resuming_as_another_training_exits_2_and_says_what_differs(
    stopped: Path, arguments: list[str], message: str
) -> None:
    code, output = _resume(stopped, *arguments)
    assert code == 2
    assert message in output


def test_resuming_with_the_same_options_is_allowed(stopped: Path) -> None:
    assert _resume(stopped, "--network", "mlp", "--learning-rate", "0.01,0.001")[0] == 0


def test_a_training_of_other_versions_is_refused_and_they_are_named(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = checkpoint.versions()
    monkeypatch.setattr(checkpoint, "versions", lambda **_: {**now, "torch": "99.0", "numpy": "1.0"})
    with pytest.raises(
        OptionError, match=r"the versions cannot differ.*torch was .* and is now 99\.0; numpy was .* and is now 1\.0"
    ):
        started_in(stopped)


def test_another_file_of_a_users_network_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    source = (
        "import torch\n"
        "class Mine(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.head = torch.nn.Linear(4, 3)\n"
        "    def forward(self, x):\n"
        "        return self.head(x)[:, :2], self.head(x)[:, 2:]\n"
    )
    file.write_text(source)
    task = find_task("cartpole")
    job = Job(task, resolve_network(task, f"{file}:Mine"), (0,), (0.001,), _job().settings)
    begin(tmp_path, Started(job, "tuned", "", (job,)))
    assert started_in(tmp_path).job == job
    file.write_text(source + "\n# changed\n")
    with pytest.raises(OptionError, match="the files cannot differ from those with which the training run was started"):
        started_in(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"not a job", b"[]", b"{}"])
def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / record.JOB_FILE).write_bytes(content)
    with pytest.raises(TargetError, match="is not the folder of a stopped training run"):
        started_in(tmp_path)


def test_a_job_with_a_setting_that_is_not_known_is_refused(stopped: Path) -> None:
    document = json.loads((stopped / record.JOB_FILE).read_text())
    document["settings"]["momentum"] = 0.9
    (stopped / record.JOB_FILE).write_text(json.dumps(document))
    with pytest.raises(TargetError, match=r"job\.json' is damaged: .*momentum"):
        started_in(stopped)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_refused(stopped: Path, content: bytes) -> None:
    (stopped / "checkpoint.pt").write_bytes(content)
    code, output = _resume(stopped)
    assert code == 2
    assert "--resume: the checkpoint" in output
    assert "Delete this file to train these runs again from the start." in output


def test_a_checkpoint_of_another_form_is_refused_in_words(stopped: Path) -> None:
    state = read_state(stopped / "checkpoint.pt")
    assert state is not None
    del state["collector"]["observation"]
    (stopped / "checkpoint.pt").write_bytes(serialise(state))
    code, output = _resume(stopped)
    assert code == 2
    assert (
        "the checkpoint does not fit this training run, or was written by another version (KeyError('observation'))"
        in output
    )


def test_reading_a_checkpoint_runs_no_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return (pytest.fail, ("code ran",))

    torch.save({"updates": 1, "learner": Evil()}, tmp_path / "checkpoint.pt")
    with pytest.raises(TargetError):
        read_state(tmp_path / "checkpoint.pt")


def test_a_checkpoint_that_does_not_fit_leaves_the_last_good_one_and_is_mentioned_once(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stopped / "checkpoint.pt"
    before, said = path.read_bytes(), list[str]()
    writer = Checkpointer(path, seconds=0.0, on_problem=said.append)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        writer.offer(lambda: {"updates": 1})
        writer.offer(lambda: {"updates": 2})
    assert path.read_bytes() == before
    assert [path.name for path in stopped.iterdir() if path.name.startswith(".")] == []
    assert said == [
        "no checkpoint could be written ([Errno 28] No space left on device); the last one is kept and training "
        "continues"
    ]
    writer.offer(lambda: {"updates": 3})
    assert read_state(path) == {"updates": 3}


def test_an_environment_that_cannot_be_saved_is_an_error_and_not_a_full_disk(tmp_path: Path) -> None:
    said: list[str] = []
    writer = Checkpointer(tmp_path / "checkpoint.pt", seconds=0.0, on_problem=said.append)

    def unknown() -> State:
        raise RuntimeError("the emulator cannot be saved")

    with pytest.raises(RuntimeError, match="the emulator cannot be saved"):
        writer.offer(unknown)
    assert not said
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_at_the_end_exits_2_and_the_training_can_be_resumed(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = (stopped / "checkpoint.pt").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        code, output = _resume(stopped)
    assert code == 2
    assert "--out: could not write to" in output
    assert "No space left on device" in output
    assert "continue with: reference-agents train --resume" in output
    assert (stopped / "checkpoint.pt").read_bytes() == before
    assert _resume(stopped)[0] == 0
    assert [curve.returns[-1] for curve in record.load(stopped).curves] == list(train(_job()).returns[-1])


@pytest.mark.slow
def test_a_disk_that_is_really_full_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a small disk here")
    try:
        path, said = disk / "checkpoint.pt", list[str]()
        writer = Checkpointer(path, seconds=0.0, on_problem=said.append)
        writer.offer(lambda: {"updates": 1, "values": torch.zeros(50_000)})
        before = path.read_bytes()
        writer.offer(lambda: {"updates": 2, "values": torch.zeros(500_000)})
        assert path.read_bytes() == before
        assert "No space left on device" in said[0]
        assert [file.name for file in disk.iterdir()] == ["checkpoint.pt"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
