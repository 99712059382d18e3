"""The Python interface, the assertions and the pytest plugin."""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import pytest
from torch import nn

import symcheck as sc
from symcheck.api.report import Report, SymmetryFailedError
from symcheck.api.reproduce import python_call

C2 = sc.groups.cyclic(2)
MIRROR = sc.Symmetry("mirror", C2, observation=[[-1, -1, -1, -1]], action=[[1, 0]])
NO_ACTION = sc.Symmetry("no action map", C2, observation=[[-1, -1, -1, -1]], action=[[0, 1]])

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("env", ["CartPole-v1", gym.make("CartPole-v1"), lambda: gym.make("CartPole-v1")])
def test_an_id_an_instance_and_a_factory_all_work(env):
    report = sc.verify_env(env, MIRROR, samples=300)
    assert report.verdict == "passed"
    assert report["group_axioms"].verdict == "proved"


def test_a_wrapper_that_clips_one_side_is_part_of_what_is_verified():
    class OneSided(gym.ActionWrapper):
        def action(self, action):
            return 1 if self.env.unwrapped.state[0] > 0 else action

    report = sc.verify_env(lambda: OneSided(gym.make("CartPole-v1")), MIRROR, samples=300)
    assert report["transition_invariance"].verdict == "failed"


def test_a_report_saves_and_shows_itself(tmp_path):
    report = sc.verify_env("CartPole-v1", NO_ACTION, samples=300)
    assert report.verdict == "failed"
    assert report.to_dict()["verdict"] == "failed"
    assert report.save_html(tmp_path / "r.html").read_text()
    assert "transition_invariance" in report.save_json(tmp_path / "r.json").read_text()
    assert "iframe" in report._repr_html_()
    with pytest.raises(SymmetryFailedError, match="transition_invariance FAILED"):
        report.raise_if_failed()
    with pytest.raises(sc.errors.SymcheckError, match="nowhere does not exist"):
        report.save_html(tmp_path / "nowhere" / "r.html")
    with pytest.raises(KeyError, match="the run checked"):
        report["no such property"]


def test_a_report_needs_a_result():
    with pytest.raises(sc.errors.SymcheckError, match="nothing was tested"):
        Report([])


def test_assertions_pass_and_fail_as_they_should():
    assert sc.testing.assert_env_symmetric("CartPole-v1", MIRROR, samples=300).verdict == "passed"
    with pytest.raises(AssertionError, match="transition_invariance"):
        sc.testing.assert_env_symmetric("CartPole-v1", NO_ACTION, samples=300)
    with pytest.raises(AssertionError, match="network_equivariance"):
        sc.testing.assert_net_equivariant(nn.Linear(4, 2), MIRROR)


def test_nothing_to_check_is_an_error_that_gives_the_three_ways():
    with pytest.raises(sc.errors.SpecError, match="three ways"):
        sc.verify_env("MountainCarContinuous-v0")


def test_gymnasium_finds_the_grid_world_by_its_id():
    code = "import gymnasium; print(gymnasium.make('symcheck:symcheck/PredatorPrey-v0').observation_space.shape)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "(1, 21, 21)"


def test_public_names_are_there():
    for name in sc.__all__:
        assert getattr(sc, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = sc.nothing


@pytest.mark.parametrize(
    ("words", "in_ci"),
    [
        pytest.param((), True, id="one process in CI"),
        pytest.param(("-n", "2"), False, id="workers", marks=pytest.mark.long),
    ],
)
def test_the_plugin_adds_a_section_and_a_page(pytester, monkeypatch, words, in_ci):
    monkeypatch.delenv("CI", raising=False)
    if in_ci:  # pytest then shows the whole message in its short summary
        monkeypatch.setenv("CI", "true")
    pytester.makepyfile(
        """
        import symcheck as sc

        def test_mirror():
            claim = sc.Symmetry("m", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
            sc.testing.assert_env_symmetric("CartPole-v1", claim, samples=100)
        """
    )
    result = pytester.runpytest_subprocess("--symcheck-html", "page.html", *words)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*= symcheck =*", "*transition_invariance FAILED*", "*written: *page.html"])
    assert result.stdout.str().count("transition_invariance FAILED") == 1
    assert result.stdout.str().count("  expected  ") == 1
    assert "transition_invariance" in (pytester.path / "page.html").read_text()


def test_the_error_keeps_its_report_outside_of_pytest():
    claim = sc.Symmetry("m", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
    with pytest.raises(SymmetryFailedError, match="transition_invariance FAILED"):
        sc.testing.assert_env_symmetric("CartPole-v1", claim, samples=100)


def test_a_printed_report_is_the_terminal_report():
    report = sc.verify_env("CartPole-v1", samples=50)
    shown = str(report)
    assert shown == report.to_text()
    assert "passed     CartPole-v1 is symmetric under cartpole/mirror" in shown
    assert repr(report) == "<Report passed: CartPole-v1 under cartpole/mirror>"


def test_the_line_that_repeats_a_run_of_objects_can_be_pasted():
    symmetry = sc.Symmetry("m", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
    report = sc.verify_env("CartPole-v1", symmetry, samples=100)
    line = report["transition_invariance"].counterexample.reproduce
    claim = "symcheck.Symmetry('m', symcheck.groups.named('C2'), [[-1, -1, -1, -1]], [[0, 1]])"
    assert line == f"import symcheck; symcheck.verify_env('CartPole-v1', {claim}, samples=100, seed=0)"
    names: dict[str, Any] = {}
    exec(line.replace("symcheck.verify_env(", "again = symcheck.verify_env("), names)
    assert names["again"].to_dict()["properties"] == report.to_dict()["properties"]
    env = gym.make("CartPole-v1")
    twin = sc.groups.from_permutations([[1, 0]])
    twin.name = "C4"  # the name of another group, so that it is not written out
    for unwritten in (
        sc.Symmetry("m", sc.groups.cyclic(2), [lambda obs: -obs], [[1, 0]]),
        sc.Symmetry("m", twin, [[-1]], [[1, 0]]),
    ):
        assert "symcheck.verify_env(env, symmetry, " in python_call("verify_env", env, unwritten, {"seed": 0})
    called = python_call("verify_env", gym.Wrapper, "cartpole/mirror", {"env-kwargs": {"x": 1}, "alpha": 0.1})
    assert called == (
        "import symcheck, gymnasium.core; symcheck.verify_env(gymnasium.core.Wrapper, 'cartpole/mirror', alpha=0.1)"
    )


def test_the_plugin_refuses_a_page_in_no_folder(pytester):
    result = pytester.runpytest_subprocess("--symcheck-html", "nowhere/page.html")
    assert result.ret == 4
