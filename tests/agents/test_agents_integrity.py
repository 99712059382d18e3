"""Trainings that something happens to: flipped bits, a second process, SIGTERM, divergence, an end before the end."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reference_agents.checkpoint import lock_folder, read_state, serialise, state_digest
from reference_agents.cli.app import app
from reference_agents.cli.listing import setting_meanings
from reference_agents.settings import Settings
from symcheck.errors import OptionError, TargetError

TRAIN = [sys.executable, "-c", "from reference_agents.cli import main; main()", "train", "cartpole", "--network", "mlp"]


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def _state() -> dict[str, object]:
    return {
        "updates": 3,
        "values": torch.arange(40.0).reshape(2, 20),
        "returns": [torch.tensor([np.nan, 1.0], dtype=torch.float64)],
        "stopped": {1: 400},
        "streams": ["a stream", b"\x00\x01"],
        "none": None,
    }


def _same(a: object, b: object) -> bool:
    # NaN equals itself here, and types count.
    return repr(a) == repr(b) and state_digest(a) == state_digest(b)


def test_no_flipped_bit_of_a_checkpoint_is_resumed_in_silence(tmp_path: Path) -> None:
    path, content = tmp_path / "checkpoint.pt", serialise(_state())
    path.write_bytes(content)
    good, drawn, refused = read_state(path), random.Random(0), 0
    assert _same(good, _state())
    for _ in range(300):
        damaged = bytearray(content)
        damaged[drawn.randrange(len(damaged))] ^= 1 << drawn.randrange(8)
        path.write_bytes(bytes(damaged))
        try:
            assert _same(read_state(path), good)
        except TargetError:
            refused += 1
    # The rest are bits that nothing is read from, such as padding.
    assert refused > 30


def test_one_flipped_bit_of_a_parameter_is_refused_and_the_reason_said(tmp_path: Path) -> None:
    content = bytearray(serialise(_state()))
    at = bytes(content).find(torch.arange(40.0).numpy().tobytes())
    content[at + 4 * 7 + 2] ^= 0x40
    (tmp_path / "checkpoint.pt").write_bytes(bytes(content))
    with pytest.raises(TargetError, match="its digest does not match, so the file was changed after it was written"):
        read_state(tmp_path / "checkpoint.pt")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ([1, [2]], [1, 2]),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.zeros(1), torch.zeros(1, dtype=torch.int32)),
        ("12", 12),
        (b"12", "12"),
        (True, 1),
        (None, "None"),
    ],
)
def test_states_that_differ_have_other_digests(one: object, other: object) -> None:
    assert state_digest(one) != state_digest(other)


def test_a_folder_in_use_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    taken = pytest.raises(OptionError, match="another process is training in the folder")
    with lock_folder(tmp_path), taken, lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass


@pytest.mark.long
def test_sigterm_ends_a_training_as_an_interrupt_does_and_it_is_resumed(tmp_path: Path) -> None:
    options = ["--seeds", "1", "--steps", "60000", "--evaluation-episodes", "1", "--out", str(tmp_path), "--quiet"]
    with subprocess.Popen([*TRAIN, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as training:
        folder = tmp_path / "cartpole-mlp"
        deadline = time.monotonic() + 120
        # The first update is kept at once.
        while not (folder / "checkpoint.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        code, output = _run("train", "--resume", folder, "--quiet")
        assert code == 2
        assert "another process is training" in output
        code, output = _run("list", tmp_path)
        assert code == 0
        assert "unfinished" in output
        training.send_signal(signal.SIGTERM)
        said, _ = training.communicate(timeout=120)
    assert training.returncode == 130, said
    assert "interrupted; what was finished is saved; continue with" in said
    assert json.loads((folder / "record.json").read_text())["interrupted"] is True
    assert "interrupted" in _run("list", tmp_path)[1]


def test_a_training_of_which_every_run_diverged_is_no_success(tmp_path: Path) -> None:
    # Steps of this size take the weights to infinity within a few updates.
    code, output = _run(
        "train", "cartpole", "--network", "mlp", "--seeds", 1, "--steps", 4_000, "--learning-rate", "1e30",
        "--evaluation-episodes", 1, "--evaluation-every", 4_000, "--out", tmp_path, "--quiet",
    )  # fmt: skip
    assert code == 3, output
    assert "every run diverged, the first after" in output


def test_unfinished_trainings_are_named_where_runs_are_drawn(tmp_path: Path) -> None:
    unfinished = tmp_path / "cartpole-mlp-2"
    unfinished.mkdir(parents=True)
    job = {"task": "cartpole", "network": "mlp", "seeds": [0, 1], "learning_rates": [0.001]}
    (unfinished / "job.json").write_text(json.dumps(job))
    code, output = _run("report", tmp_path)
    assert code == 2
    assert f"no training run in '{tmp_path}' is complete; unfinished: {unfinished}" in output.replace("\n", "")
    small = ["--seeds", 1, "--steps", 80, "--evaluation-episodes", 1, "--out", tmp_path, "--quiet"]
    assert _run("train", "cartpole", "--network", "mlp", *small)[0] == 0
    for command in (["report", tmp_path], ["curves", tmp_path, "--out", tmp_path / "all.csv"]):
        code, output = _run(*command)
        assert code == 0
        assert f"not shown, because it is unfinished: {unfinished}" in output.replace("\n", "")


def test_every_setting_is_listed_with_its_meaning() -> None:
    code, output = _run("list", "--settings")
    assert code == 0
    meanings = setting_meanings()
    assert set(meanings) == set(Settings.__dataclass_fields__)
    for name, meaning in meanings.items():
        assert name in output
        assert meaning.endswith(".")
