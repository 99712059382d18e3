"""The examples do what they say, at a size that suits a test suite."""

import importlib.util
import sys
from pathlib import Path

import pytest

import symcheck as sc

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Load an example as the module that its file is."""

    def load(name: str):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_policy_of_stable_baselines_is_proved_before_and_after_training(example, tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra 'sb3' is not installed")
    verdicts = example("sb3_equivariant_policy").main(steps=256, out=str(tmp_path / "policy.zip"))
    assert verdicts == {"equivariant": ("proved", "proved"), "mlp": ("failed", "failed")}
    assert (tmp_path / "policy.zip").exists()


def test_an_agent_is_proved_inside_its_own_training_loop(example):
    verdicts = example("single_file_loop").train(steps=1024)
    assert verdicts == ["proved"] * 2


def test_the_planted_bug_is_found_in_the_transition(example):
    rail = example("planted_bug")
    assert sc.verify_env(rail.fixed, rail.mirror).verdict == "passed"
    failed = [item.name for item in sc.verify_env(rail.faulty, rail.mirror).properties if item.verdict == "failed"]
    # a cart at the end of its rail may leave it on one side alone, so termination can fail too
    assert set(failed) - {"termination_invariance"} == {"transition_invariance"}


def test_a_forgotten_last_action_is_named(example, capsys):
    example("batched_mirror").main()
    right, wrong = capsys.readouterr().out.splitlines()
    assert right == "augment: a symmetry of C2, usable by layers and by verify-net"
    assert "the last action, observation columns 11 to 18, does not transform like the action" in wrong


def test_a_worn_knee_is_found_in_the_model_and_in_simulation(example):
    pytest.importorskip("mujoco", reason="the extra 'mujoco' is not installed")
    assert example("robot_mirror").main(samples=300) == {"walker": (0, "passed"), "worn walker": (1, "failed")}
