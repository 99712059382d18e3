"""`symcheck verify-env` as a user types it: verdicts, exit codes, files, and messages for what cannot be used."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from commands import run

WRONG_SIGN = 'name = "wrong sign"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, 1, -1]]\naction = [[1, 0]]\n'
NO_ACTION = 'name = "no action map"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, -1, -1]]\naction = [[0, 1]]\n'


def verdicts(path: Path) -> dict[str, str]:
    return {item["name"]: item["verdict"] for item in json.loads(path.read_text())["properties"]}


def test_cartpole_passes_and_every_report_is_written(folder):
    reports = ["--html", "r.html", "--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"]
    code, output = run("verify-env", "CartPole-v1", "--samples", "1000", *reports)
    assert code == 0, output
    data = json.loads((folder / "r.json").read_text())
    assert data["schema"] == "symcheck/2"
    assert data["kind"] == "env"
    assert data["target"] == "CartPole-v1"
    assert data["group"] == {"name": "C2", "order": 2}
    assert data["command"].startswith("symcheck verify-env CartPole-v1 --symmetry cartpole/mirror")
    names = {"group_axioms", "reward_invariance", "transition_invariance", "termination_invariance"}
    assert names | {"initial_invariance"} <= verdicts(folder / "r.json").keys()
    assert set(verdicts(folder / "r.json").values()) <= {"proved", "passed"}
    assert (folder / "r.html").read_text().lower().startswith("<!doctype html>")
    assert ET.parse(folder / "r.xml").getroot().tag == "testsuites"
    assert "CartPole-v1" in (folder / "r.md").read_text()


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "Acrobot-v1"])
def test_mirrors_pass_where_observation_and_state_differ(folder, env_id):
    code, output = run("verify-env", env_id, "--samples", "1000", "--json", "r.json")
    assert code == 0, output
    assert "observation_equivariance" in verdicts(folder / "r.json")


def test_mountain_car_fails_in_transition_termination_and_start_but_not_in_reward(folder):
    code, _ = run("verify-env", "MountainCar-v0", "--symmetry", "mountaincar/valley", "--json", "r.json")
    assert code == 1
    found = verdicts(folder / "r.json")
    assert found["reward_invariance"] == "passed"
    for name in ("transition_invariance", "termination_invariance", "initial_invariance"):
        assert found[name] == "failed", found


@pytest.mark.parametrize(("text", "cause"), [(WRONG_SIGN, "observation[2]"), (NO_ACTION, "action")])
def test_a_wrong_claim_fails_with_a_shrunk_counterexample_that_replays(folder, text, cause):
    (folder / "claim.toml").write_text(text)
    code, output = run("verify-env", "CartPole-v1", "--symmetry", "claim.toml", "--samples", "1000", "--json", "r.json")
    assert code == 1, output
    failed = [item for item in json.loads((folder / "r.json").read_text())["properties"] if item["verdict"] == "failed"]
    transition = next(item for item in failed if item["name"] == "transition_invariance")
    example = transition["counterexample"]
    assert example["residual"] > transition["tolerance"]
    assert sum(value != 0 for value in example["observation"]) <= 1, "the counterexample was not shrunk"
    assert example["reproduce"] == "symcheck replay r.json"
    assert any(cause in item["text"] for item in transition["causes"]), transition["causes"]
    code, again = run("replay", "r.json")
    assert code == 1
    assert "transition_invariance" in again


def test_without_json_the_counterexample_names_the_command_of_the_run(folder):
    (folder / "claim.toml").write_text(NO_ACTION)
    _, output = run("verify-env", "CartPole-v1", "--symmetry", "claim.toml", "--samples", "500", "--seed", "3")
    assert "symcheck verify-env CartPole-v1 --symmetry claim.toml --samples 500 --seed 3" in " ".join(output.split())


def test_the_same_seed_gives_the_same_report(folder):
    for name in ("a.json", "b.json"):
        run("verify-env", "CartPole-v1", "--samples", "500", "--json", name, "--quiet")
    first, second = (json.loads((folder / name).read_text()) for name in ("a.json", "b.json"))
    first.pop("duration_s"), second.pop("duration_s")
    assert first == second


def test_quiet_prints_the_verdict_only(folder):
    assert run("verify-env", "CartPole-v1", "--samples", "200", "--quiet") == (0, "passed\n")


def test_markdown_is_appended_to(folder):
    (folder / "r.md").write_text("before\n")
    run("verify-env", "CartPole-v1", "--samples", "200", "--quiet", "--markdown", "r.md")
    assert (folder / "r.md").read_text().startswith("before\n")


def test_fail_on_decides_what_exits_non_zero(folder):
    (folder / "claim.toml").write_text(NO_ACTION)
    words = ["verify-env", "CartPole-v1", "--symmetry", "claim.toml", "--samples", "200", "--quiet"]
    assert run(*words, "--fail-on", "undecided")[0] == 0
    assert run(*words, "--fail-on", "failed")[0] == 1
    assert run(*words, "--fail-on", "passed")[0] == 2


BAD = {
    "unknown id": (["CartPol-v1"], ["CartPol-v1", "CartPole"]),
    "no file": (["nowhere.py:make"], ["no such file", "nowhere.py"]),
    "no module": (["nowhere_at_all:make"], ["nowhere_at_all"]),
    "no name": (["good.py:mak"], ["does not define", "make"]),
    "no env": (["good.py:number"], ["good.py:number"]),
    "broken file": (["broken.py:make"], ["ZeroDivisionError", "broken.py:1"]),
    "no atlas entry": (["Blackjack-v1"], ["--symmetry", "three ways"]),
    "no symmetry for a file": (["good.py:own"], ["good.py:own", "three ways", "symcheck discover"]),
    "unknown atlas name": (["CartPole-v1", "--symmetry", "cartpole/miror"], ["cartpole/mirror"]),
    "no spec file": (["CartPole-v1", "--symmetry", "none.toml"], ["none.toml"]),
    "not toml": (["CartPole-v1", "--symmetry", "text.toml"], ["TOML"]),
    "size": (["CartPole-v1", "--symmetry", "short.toml"], ["acts on 3 components", "has 4"]),
    "not a representation": (["CartPole-v1", "--symmetry", "order4.toml"], ["action", "C2"]),
    "no permutation": (["CartPole-v1", "--symmetry", "double.toml"], ["permutation of 0..1", "[0, 0]"]),
    "spec that raises": (["CartPole-v1", "--symmetry", "good.py:raises"], ["good.py:raises", "ZeroDivisionError"]),
    "signs on actions": (
        ["CartPole-v1", "--symmetry", "signs.toml"],
        ["action[0]", "a permutation of the 2 values"],
    ),
    "not a symmetry": (["CartPole-v1", "--symmetry", "good.py:number"], ["symcheck.Symmetry", "int"]),
    "html folder": (["CartPole-v1", "--html", "nowhere/r.html"], ["--html", "nowhere", "mkdir"]),
    "json folder": (["CartPole-v1", "--json", "nowhere/r.json"], ["--json"]),
    "samples": (["CartPole-v1", "--samples", "0"], ["--samples", "1 or more", "0"]),
    "alpha": (["CartPole-v1", "--alpha", "1.5"], ["--alpha", "1.5"]),
    "method": (["CartPole-v1", "--method", "pared"], ["--method", "paired"]),
    "kwargs": (["CartPole-v1", "--env-kwargs", "{x}"], ["--env-kwargs", "JSON"]),
    "kwargs the env refuses": (["CartPole-v1", "--env-kwargs", '{"wings": 2}'], ["wings"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_exits_2_with_one_message_and_no_report(folder, case):
    (folder / "good.py").write_text(
        "import gymnasium\nnumber = 3\ndef make(): return gymnasium.make('CartPole-v1')\ndef raises(): return 1 / 0\n"
        "from gymnasium.envs.classic_control import CartPoleEnv as own\n"
    )
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "text.toml").write_text("this is no TOML")
    head = 'name = "m"\ngroup = "cyclic(2)"\n'
    (folder / "short.toml").write_text(f"{head}observation = [[-1, -1, -1]]\naction = [[1, 0]]\n")
    (folder / "order4.toml").write_text(f'{head}observation = [[-1, -1, -1, -1]]\naction = [["+2", "-1"]]\n')
    (folder / "signs.toml").write_text(f"{head}observation = [[-1, -1, -1, -1]]\naction = [[1, 1]]\n")
    (folder / "double.toml").write_text(f"{head}observation = [[-1, -1, -1, -1]]\naction = [[0, 0]]\n")
    words, expected = BAD[case]
    if "--json" not in words:
        words = [*words, "--json", "r.json"]
    code, output = run("verify-env", *words)
    assert code == 2, output
    assert output.count("symcheck: ") == 1, output
    for text in expected:
        assert text in output
    assert not (folder / "r.json").exists()


def test_an_interrupt_exits_130_and_reports_what_was_finished(folder):
    (folder / "slow.py").write_text(
        "import gymnasium, pathlib, time\n"
        "class Slow(gymnasium.Wrapper):\n"
        "    steps = 0\n"
        "    def step(self, action):\n"
        "        self.steps += 1\n"
        "        if self.steps == 200: pathlib.Path('stepping').touch()\n"
        "        time.sleep(0.002)\n"
        "        return self.env.step(action)\n"
        "def make(): return Slow(gymnasium.make('CartPole-v1'))\n"
    )
    words = ["verify-env", "slow.py:make", "--symmetry", "cartpole/mirror", "--samples", "100000", "--json", "r.json"]
    process = subprocess.Popen([Path(sys.executable).parent / "symcheck", *words], stdout=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not (folder / "stepping").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    data = json.loads((folder / "r.json").read_text())
    assert data["interrupted"]
    assert data["verdict"] == "undecided"
    assert verdicts(folder / "r.json")["group_axioms"] == "proved"


def test_help_imports_neither_torch_nor_gymnasium():
    code = "import sys, symcheck.cli.main; print({'torch', 'gymnasium', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_importing_symcheck_loads_none_of_the_heavy_packages():
    code = (
        "import sys, symcheck; symcheck.groups.cyclic(2); symcheck.representations;"
        "print({'torch', 'gymnasium', 'hypothesis', 'typer'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_verifying_an_environment_does_not_load_torch(folder):
    code = (
        "import sys, symcheck; assert symcheck.verify_env('CartPole-v1', samples=50).verdict == 'passed';"
        "print('torch' in sys.modules)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.strip() == "False"
