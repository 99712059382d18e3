"""Run folders of `reference-agents` that were copied badly: one message, exit 2, and never a part of a curve."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reference_agents.cli.app import app

WEIGHTS = "weights/lr0.001-seed0.pt"


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    options = ("--seeds", 2, "--steps", 160, "--evaluation-every", 80, "--evaluation-episodes", 1)
    code, _ = run("train", "cartpole", "--network", "mlp", *options, "--out", out, "--quiet")
    assert code == 0
    return out / "cartpole-mlp"


@pytest.fixture
def copied(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def test_a_whole_copy_is_read(copied):
    assert run("export", copied, "--out", copied / "policy.pt")[0] == 0
    assert run("report", copied)[0] == 0


@pytest.mark.parametrize("content", [b"", b"junk", None, "half"], ids=["empty", "junk", "gone", "half"])
@pytest.mark.parametrize("command", ["evaluate", "export"])
def test_weights_that_cannot_be_read_are_named(copied, command, content):
    file = copied / WEIGHTS
    if content is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if content == "half" else content)
    out = ("--out", copied / "policy.pt") if command == "export" else ("--episodes", 1)
    code, printed = run(command, copied, *out)
    assert code == 2
    assert f"the weights in {str(file)!r} cannot be read" in printed
    assert not (copied / "policy.pt").exists()


def test_weights_of_another_network_are_refused(copied, tmp_path):
    options = ("--seeds", 1, "--steps", 80, "--evaluation-episodes", 1)
    run("train", "cartpole", "--network", "mlp-wide", *options, "--out", tmp_path, "--quiet")
    shutil.copy(tmp_path / "cartpole-mlp-wide" / WEIGHTS, copied / WEIGHTS)
    code, printed = run("evaluate", copied, "--episodes", 1)
    assert (code, "cannot be read" in printed) == (2, True)


@pytest.mark.parametrize("lines", [0, 1, 2, 4])
def test_a_table_of_curves_that_was_cut_short_is_not_drawn(copied, lines):
    table = copied / "curves.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:lines]))
    code, printed = run("report", copied)
    assert (code, "damaged run: curves.csv ends at" in printed) == (2, True)
    assert not (copied / "report.html").exists()


def test_a_record_that_is_no_record_is_refused(copied):
    (copied / "record.json").write_text("[1, 2]")
    code, printed = run("report", copied)
    assert (code, "is not of schema" in printed) == (2, True)


def test_a_file_in_place_of_a_folder_is_said_to_be_one(copied):
    code, printed = run("report", copied / "record.json")
    assert (code, "is a file" in printed) == (2, True)


def test_an_environment_in_no_file_is_refused_before_anything_is_written(tmp_path):
    code, printed = run("train", "--env", "rover.py:make", "--out", tmp_path / "runs")
    assert (code, "no such file: " in printed, "rover.py" in printed, (tmp_path / "runs").exists()) == (
        2,
        True,
        True,
        False,
    )


@pytest.mark.parametrize("width", ["20", "40", "80", "200"])
def test_no_number_of_a_table_is_cut_on_any_terminal(trained, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    code, printed = run("evaluate", trained, "--episodes", 2)
    assert (code, "…" in printed) == (0, False)
    first = next(line for line in printed.splitlines() if line.startswith("0.001"))
    assert len([float(word) for word in first.split()]) == 6
