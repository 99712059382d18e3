"""What a command writes is the old file or the new one, whole: after kill -9, on a full disk, where it may not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SYMCHECK = Path(sys.executable).with_name("symcheck")
OLD = "<!doctype html><p>the report of yesterday</p></html>"
COMMANDS = {
    "verify-env": ["verify-env", "CartPole-v1", "--samples", "300", "--html", "report.html", "--json", "report.json"],
    "basis": ["basis", "cartpole/mirror", "--html", "report.html"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("report.html").write_text(OLD)
    Path("report.json").write_text("{}")
    return tmp_path


def is_whole(folder: Path) -> bool:
    page = (folder / "report.html").read_text()
    json.loads((folder / "report.json").read_text())
    return page == OLD or page.rstrip().endswith("</html>")


def test_a_file_that_is_too_large_for_the_disk_leaves_the_old_one(folder):
    words = f"ulimit -f 4; exec {SYMCHECK} verify-env CartPole-v1 --samples 300 --quiet --html report.html"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot write report.html: File too large" in done.stderr
    assert (folder / "report.html").read_text() == OLD
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]


def test_a_place_that_cannot_be_written_is_exit_2_and_one_message(folder):
    words = [SYMCHECK, "verify-env", "CartPole-v1", "--samples", "300", "--quiet", "--html", "/proc/report.html"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("symcheck: ") == 1
    assert "/proc/report.html" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_at_any_moment_leaves_whole_files(folder, command):
    words = [str(SYMCHECK), *COMMANDS[command]]
    started = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    duration = time.monotonic() - started
    killed = 0
    for moment in range(20):
        Path("report.html").write_text(OLD)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(duration * (0.5 + moment / 40))  # imports come first; files are written in the second half
        os.kill(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert is_whole(folder)
    assert killed > 5
