"""What a GitHub Actions job sees: annotations, and a step summary that stays below the size that is dropped whole."""

import pytest
from typer.testing import CliRunner

from symcheck.cli import main
from symcheck_reports import annotations, markdown

CLAIM = 'import symcheck as sc\nwrong = sc.Symmetry("wrong", sc.groups.cyclic(2), [[-1] * 4], [[0, 1]])\n'


@pytest.fixture
def words(tmp_path, monkeypatch):
    (tmp_path / "claims.py").write_text(CLAIM)
    monkeypatch.chdir(tmp_path)
    return ["verify-env", "CartPole-v1", "--symmetry", "claims.py:wrong", "--samples", "200"]


def annotated(words):
    output = CliRunner().invoke(main.app, words).output
    return [line for line in output.splitlines() if line.startswith("::")]


def test_failures_are_annotated_in_a_job_and_nowhere_else(words, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert annotated(words) == []
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found = annotated(words)
    assert any("transition_invariance failed" in line for line in found)
    assert len(found) <= annotations.LIMIT
    assert annotated([*words, "--quiet"]) == []


def test_a_summary_that_is_nearly_full_is_not_pushed_over_the_limit(words, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("x" * (markdown.BUDGET_BYTES - 300))
    CliRunner().invoke(main.app, [*words, "--markdown", "summary.md"])
    assert summary.stat().st_size < markdown.BUDGET_BYTES + 1_000
    assert "symcheck: failed" in summary.read_text()
