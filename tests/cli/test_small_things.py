"""What costs a newcomer an hour: names that are nearly right, settings that nobody lists, reports that others quote."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest
import yaml
from commands import run

import symcheck as sc
from symcheck import findings
from symcheck.cli import doctor, settings
from symcheck.discovery.search import refuse_numbered
from symcheck.envs.specs import resolve_symmetry
from symcheck.errors import GroupError, SpecError, SymcheckError
from symcheck.groups.near_names import near_name
from symcheck.symmetry.spec import parse_group

ROOT = Path(__file__).parents[2]


def test_python_m_symcheck_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "symcheck", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"symcheck {sc.__version__}\n")


def test_a_module_in_the_current_folder_registers_its_ids(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(folder))])
    (folder / "pendulums.py").write_text(
        "import gymnasium\ngymnasium.register('Swing-v0', 'gymnasium.envs.classic_control:PendulumEnv', "
        "max_episode_steps=9)\n"
    )
    words = ["--symmetry", "pendulum/mirror", "--samples", 50, "--quiet"]
    assert run("verify-env", "pendulums:Swing-v0", *words) == (0, "passed\n")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("d4", "D4"),
        ("SO2", "SO(2)"),
        ("so(2", "SO(2)"),
        ("Z/4Z", "C4"),
        ("D(4)", "D4"),
        ("cyclic 6", "C6"),
        ("k4", "V4"),
        ("S0(2)", "SO(2)"),
        ("rot90", "C4"),
        ("U(1)", "SO(2)"),
        ("cyclic", "cyclic(4)"),
    ],
)
def test_near_misses_of_groups_are_answered_with_what_exists(text, meant):
    with pytest.raises((GroupError, SpecError), match=re.escape(f"Did you mean '{meant}'?")):
        parse_group(text, "group")
    assert parse_group(meant, "group").name


@pytest.mark.parametrize("text", ["mirror", "4", "SU(2)", "V9X", ""])
def test_what_is_no_group_is_guessed_to_be_none(text):
    assert near_name(text) is None


@pytest.mark.parametrize(("text", "group"), [("SO(2)", "SO(2)"), ("d4", "D4"), ("cyclic(2)", "C2")])
def test_a_group_given_as_a_symmetry_is_answered_with_what_is_missing(text, group):
    with pytest.raises(SpecError, match=re.escape(f"{group} is a group; a symmetry also says how the group acts.")):
        resolve_symmetry(text)


@pytest.mark.parametrize(
    ("entry", "said"), [([-1, -1], "observation = [[-1, -1]]"), ("rot90", "observation = ['rot90']")]
)
def test_an_entry_without_its_brackets_is_answered_with_them(entry, said):
    with pytest.raises(SpecError, match=re.escape(f"Put the entry into a list: {said}.")):
        sc.Symmetry("m", sc.groups.cyclic(2), entry, [[1, 0]])


def test_a_misspelt_id_of_a_package_is_answered_with_the_package(folder):
    (folder / "spinners.py").write_text(
        "import gymnasium\ngymnasium.register('Spinner-v0', 'gymnasium.envs.classic_control:PendulumEnv')\n"
    )
    assert "Did you mean 'spinners:Spinner-v0'?" in run("verify-env", "spinners:Spiner-v0")[1]


@pytest.mark.parametrize(
    ("trouble", "problem"),
    [
        ("def reset(self, **arguments): raise OSError('no display')", "reset() raised OSError: no display"),
        ("def step(self, action): return super().step(action)[0], [1, 2], False, False, {}", "expected a number as"),
    ],
)
def test_a_target_that_raises_before_anything_is_checked_is_one_message(folder, trouble, problem):
    (folder / "early.py").write_text(
        f"from gymnasium.envs.classic_control import CartPoleEnv\nclass Early(CartPoleEnv):\n    {trouble}\n"
    )
    code, output = run("verify-env", "early.py:Early", "--symmetry", "cartpole/mirror", "--json", "r.json")
    assert code == 2
    written, *said = output.splitlines()
    assert written == "written: r.json"
    assert len(said) == 1
    assert said[0].startswith(f"symcheck: early.py:Early: {problem}")
    properties = json.loads((folder / "r.json").read_text())["properties"]
    assert {p["reason"]["code"] for p in properties if p["name"] != "group_axioms"} == {"interrupted"}


def test_an_unknown_code_is_answered_by_meaning():
    code, output = run("explain", "SYM999")
    assert code == 2
    assert "Did you mean" not in output
    assert "about networks" in output
    code, output = run("explain", "observation", "wrong", "sign")
    assert code == 0
    assert "SYM014" in output.splitlines()[1]
    code, output = run("explain", "time")
    assert "time_up" in output
    code, output = run("explain", "zebra")
    assert code == 2


def test_every_finding_is_found_by_its_own_title():
    for finding in findings.findings().values():
        found = [other.code for other in findings.search(finding.title)]
        assert finding.code in found, finding.title


def test_all_settings_are_listed(folder):
    (folder / "symcheck.toml").write_text('samples = 77\n[[checks]]\nenv = "CartPole-v1"\n')
    code, output = run("settings")
    assert code == 0
    assert "samples = 77" in output
    for names in (settings.SHARED, *settings.CHECK.values()):
        for name in names:
            assert re.search(rf"^  {name}\b", output, re.M), name


def env_paying(reward):
    class Env(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,), np.float64)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(2), {}

        def step(self, action):
            return np.zeros(2), reward, False, False, {}

    return Env


@pytest.mark.parametrize("reward", [np.array([1.0, 2.0]), [1.0, 2.0], (0.0, 0.0, 1.0)])
def test_a_vector_reward_names_the_wrapper_that_weighs_it(reward):
    mirror = sc.Symmetry("m", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])
    with pytest.raises(SymcheckError, match=f"a vector of {len(reward)}.*LinearReward"):
        sc.verify_env(env_paying(reward), mirror)
    assert sc.verify_env(env_paying(np.array([1.0])), mirror, samples=20).verdict == "passed"


def test_discover_says_how_numbered_states_are_searched():
    with pytest.raises(SymcheckError, match=r"the attribute P.*P\[s\]\[a\]"):
        refuse_numbered(gym.spaces.Discrete(16_000), gym.spaces.Discrete(2))


def test_doctor_says_which_build_of_torch_and_how_to_change_it(monkeypatch):
    import torch

    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None, raising=False)
    assert "CPU only; for a GPU: pip install" in doctor._torch_build()
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    built = doctor._torch_build()
    assert "built for CUDA 12.6" in built
    assert built.endswith("/cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    assert doctor._torch_build().endswith("it runs on a card")


def test_a_model_card_and_badges_say_what_the_report_says(folder):
    run("verify-env", "CartPole-v1", "--samples", 50, "--json", "good.json", "--quiet")
    (folder / "m.toml").write_text(
        'name = "a|b`c"\ngroup = "C2"\nobservation = [[-1, -1, -1, -1]]\naction = [[0, 1]]\n'
    )
    run("verify-env", "CartPole-v1", "--symmetry", "m.toml", "--samples", 50, "--json", "bad.json", "--quiet")
    code, output = run("card", "good.json", "--badge", "b.svg")
    assert code == 0, output
    assert "`CartPole-v1` under `cartpole/mirror` (C2): **passed**" in output
    assert "| group\\_axioms | proved | every input |" in output
    assert "Again: `symcheck verify-env CartPole-v1 --symmetry cartpole/mirror --samples 50`" in output
    badge = ElementTree.parse(folder / "b.svg").getroot()
    assert badge.get("aria-label") == "symmetry C2: passed"
    code, output = run("card", "bad.json", "--badge", "b.json")
    assert code == 0, output
    assert "`a\\|b'c`" in output
    assert "(C2): **failed**" in output
    assert json.loads((folder / "b.json").read_text())["message"] == "failed"


@pytest.mark.parametrize("text", ["[]", '{"schema": "other"}', '{"schema": "symcheck/2", "candidates": []}', "no JSON"])
def test_what_is_no_report_makes_no_card(folder, text):
    (folder / "r.json").write_text(text)
    code, output = run("card", "r.json", "--badge", "b.svg")
    assert code == 2, output
    assert not (folder / "b.svg").exists()


def test_errors_of_usage_are_shown_beside_the_job_on_github_only(folder, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert "::error" not in run("verify-env", "CartPole-v1", "--symmetry", "none")[1]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    code, output = run("verify-env", "CartPole-v1", "--symmetry", "none")
    assert code == 2
    assert "::error title=symcheck::symcheck: symmetry: expected an atlas name" in output


def test_the_pre_commit_hook_runs_the_checks_of_the_project():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"], hook["pass_filenames"]) == ("symcheck", "symcheck run", False)
    assert hook["language"] == "system"  # the user's environment holds what is checked
