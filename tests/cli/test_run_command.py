"""`symcheck run` and settings found upward: one summary, one exit code, and the command line wins."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from commands import run
from typer.testing import CliRunner

from symcheck.cli import main, settings
from symcheck.errors import OptionError

EXAMPLES = Path(__file__).parents[2] / "examples" / "cartpole_networks.py"
HEAD = "[tool.symcheck]\nsamples = 300\n"
ENV = '[[tool.symcheck.checks]]\nenv = "CartPole-v1"\nsymmetry = "cartpole/mirror"\n'
NET = '[[tool.symcheck.checks]]\nnet = "nets.py:equivariant"\nsymmetry = "cartpole/mirror"\n'
BAD_NET = '[[tool.symcheck.checks]]\nkind = "net"\ntarget = "nets.py:mlp"\nsymmetry = "cartpole/mirror"\n'


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    shutil.copy(EXAMPLES, tmp_path / "nets.py")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    return tmp_path


@pytest.mark.long
def test_every_check_runs_from_a_folder_below_and_the_worst_decides(project):
    (project / "pyproject.toml").write_text(HEAD + ENV + NET)
    code, output = run("run")
    assert code == 0, output
    (project / "pyproject.toml").write_text(HEAD + ENV + NET + BAD_NET)
    code, _ = run("run", "--json", "r.json")
    assert code == 1
    reports = json.loads((project / "deep" / "r.json").read_text())["reports"]
    assert [report["verdict"] for report in reports] == ["passed", "proved", "failed"]


def test_symcheck_toml_holds_the_same(project):
    (project / "symcheck.toml").write_text(
        (HEAD + ENV).replace("tool.symcheck.checks", "checks").replace("[tool.symcheck]", "")
    )
    assert run("run", "--quiet") == (0, "passed\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "lists none"),
        ("", "no settings were found"),
        (HEAD + ENV + 'speed = "fast"\n', "unknown setting 'speed'"),
        (HEAD + "[[tool.symcheck.checks]]\nsymmetry = 3\n", "expected env, net, mirror, policy or game = TARGET"),
        (HEAD + ENV + "samples = 0\n", "--samples"),
        ("[tool.symcheck]\nchecks = 3\n", "expected checks as a list"),
    ],
)
def test_what_cannot_be_run_exits_2(project, text, message):
    (project / "pyproject.toml").write_text(text)
    code, output = run("run")
    assert code == 2, output
    assert message in output


def test_settings_are_defaults_and_the_command_line_wins(project, monkeypatch, capsys):
    (project / "pyproject.toml").write_text('[tool.symcheck]\nsamples = 150\njson = "from_settings.json"\n')
    words = ["verify-env", "CartPole-v1", "--quiet"]
    for extra, file in (([], project / "from_settings.json"), (["--json", "own.json"], project / "deep" / "own.json")):
        monkeypatch.setattr(sys, "argv", ["symcheck", *words, *extra])
        with pytest.raises(SystemExit) as stop:
            main.main()
        assert stop.value.code == 0
        command = json.loads(file.read_text())["command"]
        assert "--samples 150" in command
    capsys.readouterr()


def test_unknown_settings_exit_2_before_anything_runs(project, monkeypatch, capsys):
    (project / "pyproject.toml").write_text("[tool.symcheck]\nsample = 150\n")
    monkeypatch.setattr(sys, "argv", ["symcheck", "verify-env", "CartPole-v1"])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    assert "Did you mean 'samples'" in capsys.readouterr().err


def test_somebody_elses_broken_pyproject_is_left_alone_but_a_broken_symcheck_toml_is_not(tmp_path):
    (tmp_path / "pyproject.toml").write_text("not toml")
    assert settings.find_settings(tmp_path).path is None
    (tmp_path / "symcheck.toml").write_text("not toml")
    with pytest.raises(OptionError, match="expected a TOML file"):
        settings.find_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[tool.symcheck.checks]\n", "pyproject.toml: expected a TOML file, got"),
        ('[[tool.symcheck.checks]]\nnet = "nets.py:mlp"\n', "checks[0]: net = TARGET also needs symmetry"),
        (HEAD + ENV + "samples = 0\n", "checks[0]: --samples"),
        (HEAD + ENV + 'env-kwargs = "{}"\n', "checks[0]: --env-kwargs: expected keyword arguments by name, got '{}'"),
        (HEAD + ENV + "env-kwargs = [1]\n", "checks[0]: --env-kwargs"),
        ("[tool.symcheck]\nbaseline = 3\n" + ENV, "expected baseline to be a path, got 3"),
    ],
)
def test_a_fault_names_its_file_and_its_check(project, text, message):
    (project / "pyproject.toml").write_text(text)
    code, output = defaulted("run")
    assert (code, message in output) == (2, True), output


def defaulted(*words: str) -> tuple[int, str]:
    """The exit code, and the message from the file's name on, of a command that takes its defaults from settings."""
    try:
        found = settings.command_defaults(settings.find_settings(Path.cwd()))
    except OptionError as error:
        return 2, str(error)
    done = CliRunner().invoke(main.app, list(words), default_map=found)
    return done.exit_code, done.output


def test_a_broken_file_that_does_not_speak_of_symcheck_is_nobodys_concern(project):
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert run("explain", "SYM001")[0] == 0
    assert settings.find_settings(project).path is None


def test_every_check_is_read_before_the_first_is_run(project):
    (project / "pyproject.toml").write_text(HEAD + ENV + "[[tool.symcheck.checks]]\nsymmetry = 3\n")
    code, output = run("run")
    assert (code, "passed" in output, "checks[1]" in output) == (2, False, True)


def test_what_was_found_before_a_check_that_cannot_be_used_is_shown(project):
    (project / "pyproject.toml").write_text(HEAD + ENV + ENV.replace("CartPole-v1", "Nope-v0"))
    code, output = run("run", "--json", "r.json")
    assert (code, (project / "deep" / "r.json").exists()) == (2, False)
    assert "CartPole-v1 is symmetric under cartpole/mirror" in output
    assert "checks[1]: TARGET: expected a Gymnasium id" in output


def test_reports_that_settings_ask_for_are_written_beside_them(project):
    (project / "pyproject.toml").write_text(HEAD + 'json = "r.json"\nquiet = true\n' + ENV)
    assert defaulted("run") == (0, "passed\n")
    assert (project / "r.json").exists()
    (project / "r.json").unlink()
    assert defaulted("verify-env", "CartPole-v1")[0] == 0
    assert [path.name for path in project.rglob("*.json")] == ["r.json"]


def test_what_exits_non_zero_may_stand_in_settings(project):
    check = "max-time = 1e-9\n"  # seconds: nothing can be decided
    (project / "pyproject.toml").write_text(HEAD + ENV + check)
    assert defaulted("run")[0] == 3
    (project / "pyproject.toml").write_text(HEAD + 'fail-on = "failed"\n' + ENV + check)
    assert defaulted("run")[0] == 0
