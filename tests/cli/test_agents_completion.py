"""TAB after `reference-agents`: tasks, and what the task that is typed takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reference_agents.catalog import TASKS, find_task
from reference_agents.cli import completion
from reference_agents.cli.app import app
from reference_agents.settings import PRESETS, parse_changes
from symcheck.envs import atlas


def asking(*words: str) -> dict[str, str]:
    """What bash sets when it asks about the last word."""
    return {
        "_REFERENCE_AGENTS_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["reference-agents", *words]),
        "COMP_CWORD": str(len(words)),
    }


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    return CliRunner().invoke(app, [], env=asking(*words), prog_name="reference-agents").stdout.split()


def test_the_program_offers_tasks():
    program = Path(sys.executable).parent / "reference-agents"
    asked = os.environ | asking("train", "grid")
    done = subprocess.run([program], env=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gridworld"]


def test_completing_loads_no_torch():
    code = """
import sys
from typer.testing import CliRunner
from reference_agents.cli.app import app
for words in ("train ca", "train cartpole --network e", "train cartpole --preset p", "train --set h", "train --env A"):
    asked = {"_REFERENCE_AGENTS_COMPLETE": "complete_bash", "COMP_WORDS": "reference-agents " + words}
    asked["COMP_CWORD"] = str(len(words.split()))
    assert CliRunner().invoke(app, [], env=asked, prog_name="reference-agents").stdout, words
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", ["train", "sweep"])
@pytest.mark.parametrize("task", TASKS)
def test_networks_are_those_of_the_task_that_is_typed(command, task):
    assert offered(command, task, "--network", "") == sorted(find_task(task).networks)


def test_networks_of_every_task_are_offered_before_one_is_typed():
    assert {"cnn", "mlp"} <= set(offered("train", "--network", ""))


def test_a_task_is_known_by_the_id_of_its_environment_too():
    assert offered("train", "--env", "symcheck/PredatorPrey-v0", "--network", "cnn") == ["cnn", "cnn-code"]


def test_an_id_outside_the_catalogue_takes_the_networks_of_vectors():
    found = offered("train", "--env", "Ant-v5", "--network", "")
    assert "mlp" in found
    assert "cnn" not in found
    assert offered("train", "--env", "Ant-v5", "--preset", "") == ["control", "tuned"]


def test_a_list_of_networks_goes_on_after_the_comma_with_those_that_are_not_in_it():
    assert offered("sweep", "cartpole", "--network", "mlp,eq") == ["mlp,equivariant", "mlp,equivariant-deep"]
    assert "equivariant,equivariant" not in offered("sweep", "cartpole", "--network", "equivariant,eq")


def test_symmetries_are_those_of_the_environment():
    assert offered("train", "cartpole", "--symmetry", "") == ["cartpole/mirror"]
    assert set(offered("train", "--env", "Ant-v5", "--symmetry", "")) == {e.name for e in atlas.entries_for("Ant-v5")}
    assert len(offered("train", "--symmetry", "")) == len(atlas.entries())


@pytest.mark.parametrize("task", TASKS)
def test_the_presets_of_a_task_are_offered_and_no_other(task):
    assert offered("train", task, "--preset", "") == list(PRESETS[task])


def test_every_setting_offered_is_one_that_set_takes():
    names = [text.rstrip("=") for text in completion.changes("")]
    assert {"horizon", "time_limit_is_terminal"} <= set(names)
    for name in names:
        assert name in parse_changes([f"{name}=1"])


def test_every_environment_offered_has_a_claimed_symmetry():
    found = completion.environments("")
    assert {"CartPole-v1", "Ant-v5"} <= set(found)
    assert all(any(entry.claim for entry in atlas.entries_for(id_)) for id_ in found)


def test_nothing_is_offered_where_a_file_is_meant():
    assert offered("train", "cartpole", "--network", "./my_policy.py:") == []
    assert completion.tasks("runs/") == []
