"""Environments that end the process, block it, leave threads or move it: none turns a verdict into silence."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.cli.channel import Tag
from symcheck.cli.outputs import Outputs
from symcheck.cli.salvage import report_end
from symcheck.engine.events import PropertyFinished
from symcheck.engine.options import EnvOptions
from symcheck.engine.registry import registered_properties
from symcheck.engine.results import PropertyResult
from symcheck.engine.unfinished import run_started
from symcheck.verdict import Facts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are supervised on Linux")
SYMCHECK = Path(sys.executable).parent / "symcheck"
ENV = """
import os, sys, threading, time
import gymnasium as gym, numpy as np

class Line(gym.Env):
    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)
    steps = 0
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 2)
        return self.x.copy(), {{}}
    def step(self, action):
        self.steps += 1
        {trouble}
        self.x = 0.9 * self.x + (0.1 if action else -0.1)
        return self.x.copy(), 1.0, False, False, {{}}
    def get_state(self):
        return self.x.copy()
    def set_state(self, state):
        self.x = np.array(state, dtype=float)
"""
SPEC = 'name = "m"\ngroup = "cyclic(2)"\nobservation = [[-1, -1]]\naction = [[1, 0]]\n'
LIMIT = "8"  # seconds, of which a busy machine needs some to start
BLOCK = """
        while self.steps > 300:
            try:
                time.sleep(1000)
            except BaseException:
                pass"""


@pytest.fixture
def start(tmp_path):
    """Starts `symcheck verify-env` on a line whose step does something in its 301st call."""
    (tmp_path / "m.toml").write_text(SPEC)

    def begin(trouble: str, *words: str) -> subprocess.Popen[str]:
        (tmp_path / "line.py").write_text(ENV.format(trouble=trouble))
        command = [SYMCHECK, "verify-env", "line.py:Line", "--symmetry", "m.toml", "--json", "r.json", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=tmp_path, **pipes)

    return begin


def ended(process: subprocess.Popen[str], folder: Path) -> tuple[int, str, dict]:
    """Exit code, what standard error said, and the JSON report."""
    _, said = process.communicate(timeout=60)
    return process.returncode, said, json.loads((folder / "r.json").read_text())


def by_name(report: dict) -> dict[str, tuple[str, str | None]]:
    return {p["name"]: (p["verdict"], p["reason"] and p["reason"]["code"]) for p in report["properties"]}


@pytest.mark.parametrize(
    ("trouble", "named"),
    [
        ("if self.steps > 300: os._exit(0)", "exit status 0"),
        ("if self.steps > 300: os.kill(os.getpid(), 11)", "SIGSEGV"),
    ],
)
def test_a_target_that_ends_the_process_is_code_4_with_what_was_finished(start, tmp_path, trouble, named):
    code, said, report = ended(start(trouble, "--samples", "400"), tmp_path)
    assert code == 4
    assert f"the target ended the process ({named})" in said
    assert report["verdict"] == "undecided"
    assert by_name(report)["group_axioms"] == ("proved", None)
    assert by_name(report)["transition_invariance"] == ("undecided", "interrupted")


@pytest.mark.parametrize(
    "trouble", ["if self.steps > 300: raise ValueError('no fuel')", "if self.steps > 300: sys.exit(0)"]
)
def test_a_target_that_raises_is_code_2_with_what_was_finished(start, tmp_path, trouble):
    code, said, report = ended(start(trouble, "--samples", "400"), tmp_path)
    assert code == 2
    assert "raised" in said
    assert by_name(report)["group_axioms"] == ("proved", None)
    assert by_name(report)["reward_invariance"] == ("undecided", "interrupted")


def test_a_step_that_blocks_is_stopped_when_time_is_up(start, tmp_path):
    begun = time.monotonic()
    code, said, report = ended(start(BLOCK, "--max-time", LIMIT), tmp_path)
    assert code == 4
    assert "time budget ran out" in said
    assert time.monotonic() - begun < 50  # a thousand seconds are asked for
    assert by_name(report)["group_axioms"] == ("proved", None)
    assert by_name(report)["transition_invariance"] == ("undecided", "time_up")


def test_a_step_that_takes_long_is_ended_when_time_is_up(start, tmp_path):
    trouble = "time.sleep(1000 if self.steps > 300 else 0)"
    code, said, report = ended(start(trouble, "--max-time", LIMIT), tmp_path)
    assert (code, said) == (3, "")
    assert by_name(report)["transition_invariance"] == ("undecided", "time_up")
    assert not report["interrupted"]


def test_threads_that_a_target_leaves_do_not_keep_the_verdict(start, tmp_path):
    trouble = "if self.steps == 1: threading.Thread(target=time.sleep, args=(1000,)).start()"
    code, said, report = ended(start(trouble, "--samples", "50"), tmp_path)
    assert (code, said, report["verdict"]) == (0, "", "passed")


def test_reports_are_written_where_the_command_was_started(start, tmp_path):
    code, said, report = ended(start("os.chdir('/'); sys.stdout = None", "--samples", "50"), tmp_path)
    assert (code, said, report["verdict"]) == (0, "", "passed")


def test_a_second_interrupt_stops_a_blocked_run_and_reports_what_was_finished(start, tmp_path):
    process = start(f"open('blocked', 'w').close() if self.steps > 300 else None{BLOCK}")
    limit = time.monotonic() + 60
    while not (tmp_path / "blocked").exists() and time.monotonic() < limit:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, said, report = ended(process, tmp_path)
    assert code == 130
    assert "interrupted" in said
    assert by_name(report)["group_axioms"] == ("proved", None)


def test_what_is_salvaged_keeps_to_the_baseline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("b.toml").write_text(
        '[[accepted]]\ntarget = "E-v0"\nsymmetry = "m"\nproperty = "reward_invariance"\n'
        'max_residual = 1.0\nreason = "measured"\n'
    )
    facts = Facts(checked=9, violations=9)
    finished = PropertyResult("reward_invariance", "failed", "paired", 9, violations=9, max_residual=0.5, facts=facts)
    begun = run_started("env", "E-v0", "m", {"name": "C2", "order": 2}, registered_properties("env"), EnvOptions(), "")
    events = [Tag.EVENT + pickle.dumps(event) for event in (begun, PropertyFinished(finished))]
    for baseline, verdict in ((None, "failed"), (Path("b.toml"), "passed")):
        said = Tag.OUTPUTS + pickle.dumps((Outputs(json=Path("r.json"), quiet=True), True, baseline))
        report_end([said, *events], 9, progress="", was_late=False, interrupted=False)
        assert by_name(json.loads(Path("r.json").read_text()))["reward_invariance"][0] == verdict


def test_killing_the_command_ends_its_child_too(start, tmp_path):
    process = start(f"open('pid', 'w').write(str(os.getpid())) if self.steps == 301 else None{BLOCK}")
    limit = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < limit:
        time.sleep(0.1)
    time.sleep(0.1)
    child = int((tmp_path / "pid").read_text())
    assert child != process.pid
    process.kill()
    process.stdout.close()
    process.stderr.close()
    process.wait()
    for _ in range(50):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child outlived its parent")
