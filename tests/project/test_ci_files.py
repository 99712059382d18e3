"""The composite action and the snippets for CI, exercised as far as they can be without the services."""

import re
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from action_runner import Outcome, run_action

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


@pytest.fixture
def checkout(tmp_path):
    """A folder with a project, and beside it a `python` that notes what pip is asked for."""
    (tmp_path / "tools").mkdir()
    python = tmp_path / "tools" / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    python.chmod(0o755)
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(checkout: Path, **given: str) -> Outcome:
    """The whole action, in a project, with inputs (`_` for `-`)."""
    tools = [checkout.parent / "tools", Path(sys.executable).parent]
    return run_action(
        ACTION, checkout, {name.replace("_", "-"): text for name, text in given.items()}, tools, "/the/action"
    )


def claim(folder: Path, symmetry: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(CHECKS.format(symmetry=symmetry))
    (folder / "wrong.toml").write_text(WRONG)


@pytest.mark.parametrize(
    ("symmetry", "code"),
    [pytest.param("cartpole/mirror", 0, marks=pytest.mark.long), ("wrong.toml", 1), ("cartpole/mirrow", 2)],
)
def test_the_action_leaves_summary_page_and_exit_code(checkout, symmetry, code):
    claim(checkout, symmetry)
    done = run(checkout, arguments="--quiet")
    assert done.code == code, done.printed
    assert done.outputs == {"exit-code": str(code)}
    written = sorted(path.name for path in (checkout / "symcheck-report").iterdir())
    assert written == ([] if code == 2 else ["junit.xml", "report.html", "report.json"])
    summary = checkout.parent / "summary.md"
    assert ("CartPole-v1" in summary.read_text()) if code < 2 else not summary.exists()
    uploaded = {"name": "symcheck-report", "path": "./symcheck-report", "if-no-files-found": "ignore"}
    assert done.called == [("actions/upload-artifact@v4", uploaded)]


@pytest.mark.long
def test_the_action_works_in_the_folder_that_it_is_told_and_uploads_nothing_without_a_name(checkout):
    claim(checkout / "robots", "wrong.toml")
    done = run(checkout, working_directory="robots", artifact="")
    assert (done.code, done.called) == (1, [])
    assert (checkout / "robots" / "symcheck-report" / "report.html").exists()


def test_arguments_are_words_in_which_nothing_is_expanded(checkout):
    claim(checkout, "cartpole/mirror")
    done = run(checkout, arguments="--fail-on failed --baseline *.toml")
    assert done.code == 2
    assert "*.toml" in done.printed


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "/the/action"),
        ({"extras": "mujoco,box2d"}, "/the/action[mujoco,box2d]"),
        ({"version": "0.1.0", "extras": "mujoco"}, "symcheck[mujoco]==0.1.0"),
        ({"version": "git+https://example.org/symcheck"}, "symcheck @ git+https://example.org/symcheck"),
    ],
)
def test_the_action_asks_pip_for_the_right_thing(checkout, given, wanted):
    run(checkout, **given)  # no check is listed there: exit 2, once installed
    assert (checkout.parent / "asked").read_text().splitlines()[-1] == f"-m pip install --quiet {wanted}"


def test_a_failed_installation_ends_the_action(checkout):
    (checkout.parent / "tools" / "python").write_text("#!/bin/sh\nexit 7\n")
    claim(checkout, "cartpole/mirror")
    done = run(checkout)
    assert (done.code, done.outputs) == (7, {"exit-code": ""})
    assert not (checkout / "symcheck-report").exists()


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
