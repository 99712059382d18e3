"""What becomes of a program whose output nobody reads, that has none, or whose disk is full."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
PROGRAM = """
import sys
from symcheck.streams import run_program

def main():
    for _ in range(3):
        print("x" * 70_000)  # more than a pipe holds
    print("y" * 70_000, file=sys.stderr)
    open("work", "w").write("done")
    sys.exit({code})

run_program("it", main)
"""


def unread(words, folder: Path, stream: str = "stdout") -> subprocess.CompletedProcess[str]:
    """Run a program whose output (or stderr) is a pipe that was closed before its first print."""
    reader, writer = os.pipe()
    os.close(reader)
    others = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
    try:
        return subprocess.run(words, cwd=folder, text=True, check=False, **others)
    finally:
        os.close(writer)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("flags", [[], ["-u"]])
@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_program_that_nobody_reads_does_its_work_and_ends_with_its_own_code(tmp_path, code, flags, stream):
    done = unread([sys.executable, *flags, "-c", PROGRAM.format(code=code)], tmp_path, stream)
    assert (done.returncode, (tmp_path / "work").read_text()) == (code, "done")
    assert "Error" not in (done.stderr or "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_program_without_streams_does_its_work(tmp_path, closed):
    (tmp_path / "it.py").write_text(PROGRAM.format(code=3))
    done = subprocess.run(["bash", "-c", f"{sys.executable} it.py {closed}"], cwd=tmp_path, capture_output=True)
    assert (done.returncode, (tmp_path / "work").read_text()) == (3, "done")
    assert b"Error" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
def test_output_that_meets_a_full_disk_is_one_message_and_code_2(tmp_path):
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-c", PROGRAM.format(code=1)]
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, (tmp_path / "work").read_text()) == (2, "done")
    said = done.stderr.splitlines()[-1]
    assert said == f"it: the output could not be written: {os.strerror(errno.ENOSPC)}; the run itself ended with 1."


def test_what_is_printed_arrives_unchanged(tmp_path):
    program = "from symcheck.streams import run_program\nrun_program('it', lambda: print('größer \\u2192 x'))"
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert done.stdout.decode() == f"größer → x{os.linesep}"


def test_an_interrupt_ends_with_130(tmp_path):
    program = "from symcheck.streams import run_program\ndef main(): raise KeyboardInterrupt\nrun_program('it', main)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_reports_are_written_though_nobody_reads_the_terminal(tmp_path):
    words = [BIN / "symcheck", "verify-env", "CartPole-v1", "--samples", "100", "--json", "report.json"]
    done = unread(words, tmp_path)
    assert (done.returncode, (tmp_path / "report.json").exists(), done.stderr) == (0, True, "")


def test_a_list_that_is_cut_short_is_no_failure(tmp_path):
    assert unread([BIN / "reference-agents", "list"], tmp_path).returncode == 0
