"""`symcheck replay` of mirror functions, models and policies: it fails while the fault is there, and passes after."""

import json
import os
import sys

import numpy as np
import pytest
from machines import BIPED
from typer.testing import CliRunner

from symcheck.cli.main import app

MIRROR = """
import torch

def augment(env, obs, actions):
    move = lambda x: x[..., [2, 3, 0, 1, 4]] * torch.tensor([{signs}])
    return (None if obs is None else torch.cat([obs, move(obs)])), (
        None if actions is None else torch.cat([actions, move(actions)]))
"""
LAYOUT = '[[observation.policy]]\nterm = "joint_pos"\n'
RIGHT, WRONG = "-1.0, 1, -1, 1, -1", "1.0, 1, 1, 1, -1"


def run(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output


def change(path, text):
    """Another text, as a fresh process sees it: modules from files are loaded once a process."""
    before = path.stat().st_mtime
    path.write_text(text)
    os.utime(path, (before + 2, before + 2))  # what was compiled is known by second and length
    for name in [name for name in sys.modules if name.startswith(f"_symcheck_user_{path.stem}_")]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text(BIPED)
    (tmp_path / "layout.toml").write_text(LAYOUT)
    (tmp_path / "wrong_mirror.py").write_text(MIRROR.format(signs=WRONG))
    return tmp_path


def test_a_mirror_function_is_replayed_until_it_is_right(folder):
    words = ("wrong_mirror.py:augment", "--model", "robot.xml", "--layout", "layout.toml", "--json", "r.json", "-q")
    assert run("verify-mirror", *words)[0] == 1
    code, output = run("replay", "r.json")
    assert code == 1
    assert "policy[0] joint_pos L_hip" in output
    assert "group_axioms" not in output  # it had passed
    change(folder / "wrong_mirror.py", MIRROR.format(signs=RIGHT))
    code, output = run("replay", "r.json")
    assert (code, "observation_columns" in output) == (0, True)


def test_a_model_is_replayed_by_itself(folder):
    (folder / "robot.xml").write_text(BIPED.replace('size=".05"', 'size=".05" pos="0 .01 0"'))
    assert run("verify-mirror", "--model", "robot.xml", "--json", "r.json", "-q")[0] == 1
    assert run("replay", "r.json")[0] == 1
    (folder / "robot.xml").write_text(BIPED)
    assert run("replay", "r.json")[0] == 0


def test_a_policy_is_replayed_until_it_is_symmetric(folder):
    policy = "import torch\ndef load():\n    net = torch.nn.Linear(2, 1)\n    net.weight.data[:] = torch.tensor({w})\n"
    policy += "    net.bias.data[:] = 0\n    return net\n"
    (folder / "trained.py").write_text(policy.format(w="[[1.0, 0.5]]"))
    (folder / "mirror.toml").write_text('name = "m"\ngroup = "C2"\nobservation = [[-1, 1]]\naction = [[-1]]\n')
    np.savez(folder / "rollout.npz", observations=np.random.default_rng(0).normal(size=(50, 2)))
    words = ("trained.py:load", "--symmetry", "mirror.toml", "--data", "rollout.npz", "--json", "r.json", "-q")
    assert run("audit-policy", *words)[0] == 1
    assert run("replay", "r.json")[0] == 1
    change(folder / "trained.py", policy.format(w="[[1.0, 0.0]]"))
    assert run("replay", "r.json")[0] == 0


@pytest.mark.parametrize(("field", "value"), [("target", "other.py:augment"), ("symmetry", "another"), ("kind", "net")])
def test_a_report_of_a_mirror_whose_header_was_edited_is_refused(folder, field, value):
    words = ("wrong_mirror.py:augment", "--model", "robot.xml", "--layout", "layout.toml", "--json", "r.json", "-q")
    run("verify-mirror", *words)
    data = json.loads((folder / "r.json").read_text())
    (folder / "r.json").write_text(json.dumps({**data, field: value}))
    code, output = run("replay", "r.json")
    assert code == 2, output


def test_a_step_summary_has_a_row_per_wrong_column(folder):
    (folder / "symcheck.toml").write_text(
        '[[checks]]\nmirror = "wrong_mirror.py:augment"\nmodel = "robot.xml"\nlayout = "layout.toml"\n'
    )
    assert run("run", "-q", "--markdown", "summary.md")[0] == 1
    rows = [line for line in (folder / "summary.md").read_text().splitlines() if "SYM222 |" in line]
    assert len(rows) == 4
    assert rows[0].replace("\\", "") == "| policy[0] | joint_pos | L_hip | -R_hip | +R_hip | SYM222 |"
