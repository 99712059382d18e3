"""What --emit writes passes the check that it was written for."""

import tomllib

import pytest
from machines import QUADRUPED
from typer.testing import CliRunner

import symcheck as sc
from symcheck.api.verify_mirror import mirror_text
from symcheck.cli.main import app

TERMS = [{"term": t} for t in ("base_ang_vel", "gravity", "command", "last_action", "contacts")]
TERMS += [
    {"term": "joint_pos", "history": 3},
    {"term": "scan", "rows": 3, "cols": 4},
    {"term": "clock", "shift": "half"},
]
LAYOUT = {"joints": "breadth_first", "group": "K4", "observation": {"policy": TERMS, "critic": TERMS[:3]}}


@pytest.mark.parametrize("form", ["rsl_rl", "isaaclab"])
@pytest.mark.parametrize("group", ["C2", "K4"])
def test_the_written_function_passes(form, group):
    layout = {**LAYOUT, "group": group}
    space: dict = {}
    exec(mirror_text(QUADRUPED, layout, form), space)
    name = "data_augmentation_func" if form == "rsl_rl" else "compute_symmetric_states"
    report = sc.verify_mirror(space[name], model=QUADRUPED, layout=layout)
    assert report.verdict == "passed", report.to_text()
    assert not [note for note in report["group_axioms"].notes if note.code == "mirror_half_refused"]


def test_the_written_spec_is_the_symmetry_of_the_layout():
    layout = {"observation": {"policy": TERMS[:4]}}
    table = tomllib.loads(mirror_text(QUADRUPED, layout, "spec"))
    symmetry = sc.Symmetry(table["name"], sc.groups.cyclic(2), table["observation"], table["action"])
    derived = sc.mujoco.mirror(QUADRUPED, layout=layout)
    g = symmetry.group.generators[0]
    assert (symmetry.observation_representation.matrix(g) == derived.observation_representation.matrix(g)).all()
    assert (symmetry.action_representation.matrix(g) == derived.action_representation.matrix(g)).all()


def test_the_command_line_prints_the_function_alone(tmp_path):
    (tmp_path / "robot.xml").write_text(QUADRUPED)
    (tmp_path / "layout.toml").write_text('[[observation.policy]]\nterm = "joint_pos"\n')
    line = ["verify-mirror", "--model", str(tmp_path / "robot.xml"), "--layout", str(tmp_path / "layout.toml")]
    result = CliRunner().invoke(app, [*line, "--emit", "rsl_rl"])
    assert result.exit_code == 0
    compile(result.stdout, "emitted", "exec")
    assert "model_symmetry" in result.stderr
    assert CliRunner().invoke(app, [*line, "--emit", "other"]).exit_code == 2
