"""Annotations: failures first, never more than GitHub keeps, and nothing from outside becomes a command."""

from __future__ import annotations

import dataclasses

import pytest

from symcheck.engine.results import RunResult
from symcheck_reports import annotations, markdown


def test_a_failure_is_an_error_and_what_is_undecided_a_warning(failing_run: RunResult) -> None:
    lines = annotations.render(failing_run).splitlines()
    assert [line.split("::")[1] for line in lines] == [
        "error title=transition_invariance failed",
        "warning title=initial_invariance undecided",
    ]
    assert "CartPole-v1 under mirror with a wrong sign: 3.1e-02 in theta" in lines[0]
    assert "(a)" in lines[0]


def test_what_holds_is_not_annotated(passing_run: RunResult) -> None:
    assert annotations.render(passing_run) == ""


def test_at_most_ten_are_written_and_the_last_counts_the_others(failing_run: RunResult) -> None:
    lines = annotations.render([failing_run] * 8).splitlines()
    assert len(lines) == annotations.LIMIT
    assert [line.startswith("::error") for line in lines] == [True] * 8 + [False] * 2
    assert "7 further properties" in lines[-1]
    many = annotations.render([failing_run] * 50).splitlines()
    assert len(many) == annotations.LIMIT
    assert many[-1].startswith("::error title=symcheck::91 further properties")


@pytest.mark.parametrize("name", ["failing_run", "failing_network", "hostile_run", "several_runs"])
def test_every_line_is_one_command(name: str, request: pytest.FixtureRequest) -> None:
    for line in annotations.render(request.getfixturevalue(name)).splitlines():
        assert line.startswith(("::error title=", "::warning title="))
        title = line.split("::", 2)[1]
        assert "," not in title


def test_percent_signs_and_line_breaks_are_encoded(failing_run: RunResult) -> None:
    run = dataclasses.replace(failing_run, target="50%\n::error::gotcha")
    lines = annotations.render(run).splitlines()
    assert len(lines) == 2
    assert "50%25 ::error::gotcha" in lines[0]


def test_a_summary_that_is_appended_to_stays_under_its_limit_too(failing_run: RunResult) -> None:
    first = markdown.render([failing_run] * 2000)
    second = markdown.render([failing_run] * 2000, budget=markdown.BUDGET_BYTES - len(first.encode()))
    assert len(second.encode()) < 1_000
    assert "left out" in second
    assert "symcheck: failed" in second
