"""`symcheck replay` shows what it runs before it runs it, and runs nothing that its reader would not expect."""

import json

import pytest
from commands import run

from symcheck.api.commands import RunCommand
from symcheck.api.replay_trust import check_trust
from symcheck.errors import SymcheckError

ENV = """
import pathlib
import gymnasium
pathlib.Path({mark!r}).write_text("imported")

class Heavier(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward + 0.1 * (self.env.unwrapped.state[0] > 0)

def make():
    return Heavier(gymnasium.make("CartPole-v1"))
"""


@pytest.fixture
def report(folder):
    """A failing report of a file in the current folder, and the mark that its import leaves."""
    mark = folder / "mark"
    (folder / "env.py").write_text(ENV.format(mark=str(mark)))
    words = ["--symmetry", "cartpole/mirror", "--samples", 300, "--json", "r.json", "--quiet"]
    code, output = run("verify-env", "env.py:make", *words)
    assert (code, output) == (1, "failed\n")
    mark.unlink()
    return mark


def edit(folder, **changes):
    data = json.loads((folder / "r.json").read_text())
    (folder / "r.json").write_text(json.dumps({**data, **changes}))
    return data


def test_the_command_is_printed_before_anything_is_imported(folder, report):
    code, output = run("replay", "r.json")
    assert code == 1, output
    assert output.startswith("replaying: symcheck verify-env env.py:make --symmetry cartpole/mirror --samples 300\n")
    (folder / "env.py").write_text("raise RuntimeError('not importable')")
    code, output = run("replay", "r.json")
    assert "replaying: symcheck verify-env env.py:make" in output


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"target": "CartPole-v1"}, "'CartPole-v1'"),
        ({"kind": "net"}, "verify-env"),
        ({"symmetry": "another"}, "'another'"),
        ({"group": {"name": "C4", "order": 4}}, "C4"),
    ],
)
def test_a_report_whose_header_and_command_disagree_is_refused(folder, report, changes, named):
    edit(folder, **changes)
    code, output = run("replay", "r.json")
    assert code == 2, output
    assert named in output
    assert "agree" in output
    if "symmetry" not in changes and "group" not in changes:
        assert not report.exists()


@pytest.mark.parametrize("target", ["{outside}/env.py:make", "env:make", "json:loads"])
def test_code_outside_the_folder_is_imported_with_trust_only(folder, report, target, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "env.py").write_text((folder / "env.py").read_text())
    (folder / "env.py").unlink()
    monkeypatch.syspath_prepend(str(outside))
    named = target.format(outside=outside)
    data = json.loads((folder / "r.json").read_text())
    edit(folder, target=named, command=data["command"].replace("env.py:make", named))
    code, output = run("replay", "r.json")
    assert code == 2, output
    assert "outside the current folder" in output
    assert not report.exists()
    if named != "json:loads":
        code, output = run("replay", "r.json", "--trust")
        assert code == 1, output
        assert report.exists()


def test_a_command_that_trusts_files_needs_trust_itself(folder, report):
    data = json.loads((folder / "r.json").read_text())
    edit(folder, command=data["command"] + " --trust")
    code, output = run("replay", "r.json")
    assert code == 2, output
    assert "--trust" in output


def test_what_a_library_makes_by_name_and_our_own_images_are_trusted(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    for name in ("gymnax", "mine"):
        (elsewhere / name).mkdir(parents=True)
        (elsewhere / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(elsewhere))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    check_trust(RunCommand("verify-env", "gymnax:CartPole-v1", {}), "r.json")
    check_trust(RunCommand("verify-game", "hex", {"symmetries": "symcheck.games.boards:half_turn"}), "r.json")
    with pytest.raises(SymcheckError, match="outside the current folder"):
        check_trust(RunCommand("verify-env", "mine:make", {}), "r.json")
