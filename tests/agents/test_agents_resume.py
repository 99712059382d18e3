"""A training that was stopped goes on as if it had not been, bit for bit, or says why it cannot."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents import checkpoint, record
from reference_agents.catalog import find_network, find_task
from reference_agents.checkpoint import Checkpointer, read
from reference_agents.cli.app import app
from reference_agents.settings import preset
from reference_agents.trainer import Job, train
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
    [("cartpole", "mlp"), ("cartpole", "equivariant"), ("cartpole", "augmented"), ("gridworld", "equivariant")],
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


def _train_script(folder: Path) -> str:
    return (
        "from reference_agents.checkpoint import Checkpointer\n"
        "Checkpointer.__init__.__kwdefaults__['seconds'] = 0.0\n"
        "import sys\n"
        "from reference_agents.cli.app import app\n"
        f"app(['train', 'cartpole', '--network', 'mlp', '--seeds', '2', '--steps', '6000', '--out', {str(folder)!r}]"
        " + sys.argv[1:])\n"
    )


@pytest.mark.slow
def test_a_training_killed_at_random_moments_gives_the_same_curves(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([sys.executable, "-c", _train_script(whole)], capture_output=True, check=True)
    rng = np.random.default_rng(0)
    arguments: list[str] = []
    folder = killed / "cartpole-mlp"
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _train_script(killed), *arguments], stderr=subprocess.PIPE)
        before = (folder / checkpoint.CHECKPOINT_FILE).stat().st_mtime_ns if arguments else 0
        while process.poll() is None:
            path = folder / checkpoint.CHECKPOINT_FILE
            if path.exists() and path.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (folder / record.RECORD_FILE).exists():
            break
        arguments = ["--resume", str(folder)]
    if not (folder / record.RECORD_FILE).exists():
        subprocess.run([sys.executable, "-c", _train_script(killed), *arguments], capture_output=True, check=True)
    assert (folder / record.CURVES_FILE).read_bytes() == (whole / "cartpole-mlp" / record.CURVES_FILE).read_bytes()
    assert not (folder / checkpoint.CHECKPOINT_FILE).exists()


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a training that was stopped after one update."""
    job = _job()
    checkpointer = Checkpointer(tmp_path, job, preset="tuned", command="reference-agents train", seconds=0.0)
    train(job, on_checkpoint=checkpointer.offer)
    return tmp_path


def _resume(folder: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["train", "cartpole", "--resume", str(folder), *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


def test_resuming_from_the_command_line_records_the_run_and_removes_its_checkpoint(stopped: Path) -> None:
    code, _ = _resume(stopped)
    assert code == 0
    assert [run.learning_rate for run in record.load(stopped).runs] == [0.001, 0.001, 0.01, 0.01]
    assert not (stopped / checkpoint.CHECKPOINT_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "equivariant"], "network was mlp, is equivariant"),
        (["--seeds", "3", "--steps", "99"], "seeds was 2, is 3; steps was 1200, is 99"),
        (["--learning-rate", "0.5"], "learning-rate was (0.001, 0.01), is (0.5,)"),
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


def test_a_checkpoint_of_other_versions_is_refused_and_they_are_named(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = checkpoint.versions()
    monkeypatch.setattr(checkpoint, "versions", lambda: {**now, "torch": "99.0"})
    with pytest.raises(OptionError, match=r"expected the same versions.*torch was .*, is 99\.0"):
        read(stopped)


@pytest.mark.parametrize("content", [None, b"", b"not a checkpoint"])
def test_a_folder_without_a_readable_checkpoint_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / checkpoint.CHECKPOINT_FILE).write_bytes(content)
    with pytest.raises(TargetError, match="--resume: expected the folder of a training that was stopped"):
        read(tmp_path)


def test_a_full_disk_leaves_the_last_good_checkpoint(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (stopped / checkpoint.CHECKPOINT_FILE).read_bytes()
    checkpointer = Checkpointer(stopped, _job(), preset="tuned", command="", seconds=0.0)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpointer.offer(lambda: {"updates": 1})
    assert (stopped / checkpoint.CHECKPOINT_FILE).read_bytes() == before


def test_reading_a_checkpoint_runs_no_code(stopped: Path) -> None:
    class Evil:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return (pytest.fail, ("code ran",))

    torch.save({"head": json.dumps({}), "state": Evil()}, stopped / checkpoint.CHECKPOINT_FILE)
    with pytest.raises(TargetError):
        read(stopped)
