"""Report files: what cannot be written is refused before the work, and one that fails takes no other with it."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from commands import run

import symcheck as sc
from symcheck import files
from symcheck.errors import SymcheckError, TargetError


@pytest.mark.parametrize(("first", "second"), [("--html", "--json"), ("--json", "--junit"), ("--junit", "--markdown")])
def test_two_reports_in_one_file_are_refused_before_anything_is_written(folder, first, second):
    code, printed = run("verify-env", "CartPole-v1", first, "report", second, folder / "report")
    assert code == 2
    assert f"{second}: {first} is already written to" in printed
    assert not (folder / "report").exists()


def test_discover_refuses_two_files_in_one(folder):
    code, printed = run("discover", "CartPole-v1", "--out", "found.toml", "--json", "found.toml")
    assert (code, "--out is already written to" in printed, (folder / "found.toml").exists()) == (2, True, False)


@pytest.mark.parametrize(
    ("option", "name"),
    [("--html", "report.html"), ("--json", "report.json"), ("--junit", "junit.xml"), ("--markdown", "summary.md")],
)
def test_a_folder_in_place_of_a_file_names_a_file_of_that_kind(folder, option, name):
    (folder / "reports").mkdir()
    code, printed = run("verify-env", "CartPole-v1", option, "reports")
    assert code == 2
    assert f"Try {os.path.join('reports', name)}" in printed  # noqa: PTH118 as a user would type it


def test_a_read_only_folder_is_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)  # whoever runs the tests may write anywhere
    code, printed = run("verify-env", "CartPole-v1", "--html", "report.html")
    assert code == 2
    assert "--html: report.html cannot be written" in printed
    assert "passed" not in printed


def test_a_report_that_cannot_be_written_leaves_the_verdict_and_the_others(folder, monkeypatch):
    def full(path, content, write=files.write_file):
        if path.suffix == ".html":
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(files, "write_file", full)
    words = ("--samples", "100", "--html", "a.html", "--json", "a.json", "--junit", "a.xml")
    code, printed = run("verify-env", "CartPole-v1", *words)
    assert code == 2
    assert "CartPole-v1 is symmetric under cartpole/mirror" in printed
    assert "cannot write a.html: No space left on device." in printed
    assert sorted(path.name for path in folder.iterdir()) == ["a.json", "a.xml"]


@pytest.mark.parametrize("missing", ["observation_space", "action_space"])
def test_an_environment_without_a_space_is_told_which_one(missing):
    class Bare(gym.Env):
        def reset(self, *, seed=None, options=None):
            return 0, {}

    other = {"observation_space", "action_space"} - {missing}
    setattr(Bare, other.pop(), gym.spaces.Discrete(2))
    claim = sc.Symmetry("swap", sc.groups.cyclic(2), [[1, 0]], [[1, 0]])
    for target in (Bare, Bare()):
        with pytest.raises(TargetError, match=f"does not set {missing}\\."):
            sc.verify_env(target, claim)


def test_what_others_raise_is_one_line_with_one_full_stop():
    def broken():
        raise RuntimeError("no engine.\n  Check the socket.")

    claim = sc.Symmetry("swap", sc.groups.cyclic(2), [[1, 0]], [[1, 0]])
    with pytest.raises(SymcheckError, match=r"RuntimeError: no engine\. Check the socket\.$"):
        sc.verify_env(broken, claim)


def test_a_device_stays_a_device(folder):
    before = Path(os.devnull).stat()
    assert run("verify-env", "CartPole-v1", "--samples", 100, "--json", os.devnull, "--quiet") == (0, "passed\n")
    assert Path(os.devnull).stat().st_rdev == before.st_rdev
    assert not Path(os.devnull).is_file()


def test_a_link_stays_a_link_to_the_new_content(folder):
    (folder / "real").mkdir()
    (folder / "real" / "r.json").write_text("old")
    (folder / "latest.json").symlink_to(folder / "real" / "r.json")
    assert run("verify-env", "CartPole-v1", "--samples", 100, "--json", "latest.json", "--quiet")[0] == 0
    assert (folder / "latest.json").is_symlink()
    assert (folder / "real" / "r.json").read_text().startswith("{")


def test_a_report_may_go_where_the_terminal_prints(folder):
    if not Path("/dev/stdout").exists():
        pytest.skip("no /dev/stdout here")
    program = "from symcheck.files import write_file; from pathlib import Path; write_file(Path('/dev/stdout'), b'two')"
    with (folder / "out").open("wb") as out:
        out.write(b"one ")
        out.flush()
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (folder / "out").read_bytes() == b"one two"
