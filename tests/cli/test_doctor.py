"""`symcheck doctor` sees what is there, what is missing, and what is broken."""

import importlib.metadata

import pytest
from commands import run

from symcheck.cli import doctor


@pytest.fixture(autouse=True)
def one_extra(monkeypatch):
    """One optional part for all: each is imported in a process of its own, and some load torch."""
    monkeypatch.setattr(doctor, "_EXTRAS", {"discover": doctor._EXTRAS["discover"]})


def line(output: str, name: str) -> str:
    return next(line for line in output.splitlines() if line.split()[:1] == [name])


def test_a_sound_installation_is_tried_and_works():
    code, output = run("doctor")
    assert code == 0, output
    assert line(output, "verify-env").endswith("CartPole-v1 verified: passed")
    assert "a layer proved equivariant" in line(output, "verify-net")
    assert importlib.metadata.version("gymnasium") in line(output, "gymnasium")


@pytest.mark.parametrize(
    ("module", "state"),
    [
        ("raise ModuleNotFoundError(name='igraph')", "large tabular MDPs: pip install 'symcheck[discover]'"),
        ("raise OSError('libigraph.so: wrong architecture')", "fails (OSError: libigraph.so: wrong architecture)"),
        ("import os; os.abort()", "importing it fails (the process ended with -6)"),
    ],
)
def test_an_extra_is_missing_broken_or_crashes(monkeypatch, tmp_path, module, state):
    (tmp_path / "igraph.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, output = run("doctor")
    assert code == 0, output
    assert state in line(output, "discover")


def test_a_dependency_below_its_lower_bound_makes_it_unusable(monkeypatch):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "0.1" if name == "gymnasium" else real(name))
    code, output = run("doctor")
    assert code == 2
    assert "0.1, but symcheck requires >=" in line(output, "gymnasium")


@pytest.mark.parametrize("check", ["_environment", "_network"])
def test_what_does_not_work_is_named_and_exits_2(monkeypatch, check):
    def broken():
        raise RuntimeError("the accelerator is on fire")

    name = {"_environment": "verify-env", "_network": "verify-net"}[check]
    monkeypatch.setattr(doctor, "_CHECKS", [(name, broken)])
    code, output = run("doctor")
    assert code == 2
    assert line(output, name) == f"  {name:<12} FAILS: RuntimeError: the accelerator is on fire"
