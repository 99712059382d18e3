import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from reference_agents.record import load

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "pong_sweep.py"


@pytest.fixture(scope="module")
def sweep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pong_sweep", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pong_sweep"] = module
    spec.loader.exec_module(module)
    return module


def test_sixteen_cores_are_shared_out_once_each(sweep: ModuleType):
    shares = sweep.share_out(range(16), 7)
    assert sorted(core for share in shares for core in share) == list(range(16))
    assert {len(share) for share in shares} == {2, 3}


def test_fewer_cores_than_networks_are_used_in_turn(sweep: ModuleType):
    assert sweep.share_out([4, 6], 3) == [[4], [6], [4]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--networks", "cnn,mlp"], "pong_sweep: --network: task 'pong' has no network 'mlp'"),
        (["--task", "ponk"], "unknown task 'ponk'. Did you mean 'pong'?"),
        (["--frames", "0"], "--frames: expected 1 or more, got 0"),
        (["--seeds", "0"], "--seeds: expected 1 or more seeds, got 0"),
        (["--set", "horizon=0"], "horizon to be 1 or more"),
        (["--device", "cuda"], "--device: expected a CUDA device"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    arguments: list[str],
    message: str,
    sweep: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert sweep.main(["--device", "cpu", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_missing_rom_is_said_once_before_anything_is_written(
    sweep: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ale_py.roms.get_rom_path", lambda name: None)
    assert sweep.main(["--device", "cpu", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("the ROM pong.bin, which is part of ale-py, is missing") == 1
    assert not (tmp_path / "out").exists()


TINY = ["--frames", "320", "--seeds", "1", "--device", "cpu", "--set", "decorrelation_steps=2"]


@pytest.mark.slow
def test_a_tiny_budget_trains_every_network_and_writes_the_page(
    sweep: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = [*TINY, "--networks", "extractor,cnn", "--out", str(tmp_path)]
    assert sweep.main(arguments) == 0
    page = (tmp_path / "report.html").read_text()
    assert "extractor" in page
    assert "cnn" in page
    assert sweep.main(arguments) == 0  # nothing is left to do
    assert "0 networks" in capsys.readouterr().out
    assert sweep.main([*arguments, "--frames", "640"]) == 2
    assert "320 frames and 1 seeds, got 640 and 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_that_is_stopped_is_gone_on_with_by_the_same_command(tmp_path: Path):
    command = [sys.executable, str(SCRIPT), *TINY, "--networks", "cnn", "--set", "evaluation_every=40"]
    command[command.index("320")] = "160000"  # it must not be over when the first checkpoint is written
    started = subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE)
    _until((tmp_path / "pong-cnn" / "checkpoint.pt").exists)
    started.send_signal(signal.SIGTERM)  # as batch systems do, or Ctrl-C
    assert b"go on with the same command" in started.communicate(timeout=120)[1]
    assert started.returncode == 130
    stopped = load(tmp_path / "pong-cnn")
    assert stopped.interrupted
    assert 0 < len(stopped.curves[0].env_steps) < 1_000
    assert subprocess.run([*command, "--out", str(tmp_path)], check=False).returncode == 0
    ended = load(tmp_path / "pong-cnn")
    assert not ended.interrupted
    assert ended.curves[0].env_steps[-1] == 40_000


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if holds():
            return
        time.sleep(0.1)
    raise TimeoutError


def test_a_training_that_was_killed_is_named_and_the_page_shows_the_others(
    sweep: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweep, "command", lambda *_: [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    monkeypatch.setattr(sweep, "PROGRAM", (sys.executable, "-c", "print('page')"))
    assert sweep.main([*TINY, "--networks", "cnn", "--out", str(tmp_path)]) == 1
    assert f"cnn ended with code -9; see {tmp_path}{os.sep}pong-cnn.log" in capsys.readouterr().out


def test_a_training_that_was_begun_is_resumed_with_the_budget_that_was_asked_for(sweep: ModuleType, tmp_path: Path):
    given = argparse.Namespace(frames=400, seeds=2, device="cpu", set=["horizon=4"])
    fresh = sweep.command("pong", "cnn", given, tmp_path)
    assert fresh[-2:] == ["--out", str(tmp_path)]
    (tmp_path / "pong-cnn").mkdir()
    (tmp_path / "pong-cnn" / "job.json").touch()
    resumed = sweep.command("pong", "cnn", given, tmp_path)
    assert resumed[-2:] == ["--resume", str(tmp_path / "pong-cnn")]
    assert resumed[:-2] == fresh[:-2]
    assert fresh[fresh.index("--steps") + 1] == "100"
