"""The composite action and the snippets for CI, exercised as far as they can be without the services."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text()

CHECKS = """
[[tool.symcheck.checks]]
env = "CartPole-v1"
symmetry = "{symmetry}"
samples = 500
"""
WRONG = 'name = "wrong"\ngroup = "C2"\nobservation = [[-1, -1, -1, -1]]\naction = [[0, 1]]\n'


def step(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step's script as the runner does: bash -e, with its files for output and summary."""
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    script = STEPS[name]["run"]
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("symmetry", "code"), [("cartpole/mirror", 0), ("wrong.toml", 1), ("cartpole/mirrow", 2)])
def test_the_check_step_leaves_summary_page_and_exit_code(tmp_path, symmetry, code):
    (tmp_path / "pyproject.toml").write_text(CHECKS.format(symmetry=symmetry))
    (tmp_path / "wrong.toml").write_text(WRONG)
    done = step("Check", tmp_path, ARGUMENTS="--quiet")
    assert done.returncode == code, done.stderr
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    written = sorted(path.name for path in (tmp_path / "symcheck-report").iterdir())
    assert written == ([] if code == 2 else ["junit.xml", "report.html", "report.json"])
    if code < 2:
        assert "CartPole-v1" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    ("version", "extras", "wanted"),
    [
        ("", "", "/the/action"),
        ("", "mujoco,box2d", "/the/action[mujoco,box2d]"),
        ("0.1.0", "mujoco", "symcheck[mujoco]==0.1.0"),
        ("git+https://example.org/symcheck", "", "symcheck @ git+https://example.org/symcheck"),
    ],
)
def test_the_install_step_asks_pip_for_the_right_thing(tmp_path, version, extras, wanted):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@" >> calls\n')
    python.chmod(0o755)
    done = step(
        "Install a CPU build of torch, and symcheck", tmp_path, VERSION=version, EXTRAS=extras, ACTION="/the/action"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines()[-1] == f"-m pip install --quiet {wanted}"


def test_every_input_is_declared_and_every_declared_input_is_used():
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])


def test_inputs_reach_scripts_through_the_environment_only():
    assert not [name for name, item in STEPS.items() if "${{" in item.get("run", "")]


def snippet(name: str) -> dict[str, object]:
    return yaml.safe_load(re.search(rf"<!-- file: {re.escape(name)} -->\n```yaml\n(.*?)```", PAGE, flags=re.S)[1])


def test_the_github_snippet_uses_the_action_with_inputs_that_it_has():
    steps = snippet(".github/workflows/symmetry.yml")["jobs"]["symcheck"]["steps"]
    ours = [item for item in steps if "symcheck" in item.get("uses", "")]
    assert len(ours) == 1
    assert set(ours[0]["with"]) <= set(ACTION["inputs"])


def test_the_gitlab_snippet_publishes_what_it_writes():
    job = snippet(".gitlab-ci.yml")["symmetry"]
    command = job["script"][-1]
    assert f"--junit {job['artifacts']['reports']['junit']}" in command
    assert f"--html {job['artifacts']['paths'][0]}" in command
