"""`reference-agents` without an extra: one message with the install line, and no folder left behind."""

import sys

import pytest
from typer.testing import CliRunner

from reference_agents.cli.app import app


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("distributed", "distributed", ("train", "cartpole", "--executor", "dask")),
        ("distributed", "distributed", ("sweep", "cartpole", "--executor", "dask")),
        ("tensorboard", "logs", ("train", "cartpole", "--tensorboard")),
        ("wandb", "wandb", ("sweep", "cartpole", "--wandb")),
        ("mujoco", "mujoco", ("train", "--env", "Ant-v5")),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_made(tmp_path, monkeypatch, package, extra, words):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "runs")])
    assert done.exit_code == 2, done.output
    assert f"pip install 'symcheck[{extra}]'" in done.output
    assert not (tmp_path / "runs").exists()
