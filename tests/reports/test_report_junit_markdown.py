"""JUnit and Markdown: the same verdicts for machines that read only those."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from collections.abc import Callable

from symcheck.engine.results import RunResult
from symcheck_reports import junit, markdown, words


def test_every_property_is_one_test_case(several_runs: list[RunResult]) -> None:
    root = ET.fromstring(junit.render(several_runs))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    expected = [(f"symcheck.{run.target} under {run.symmetry}", p.name) for run in several_runs for p in run.properties]
    assert names == expected


def test_failed_is_a_failure_and_undecided_an_error(failing_run: RunResult) -> None:
    root = ET.fromstring(junit.render(failing_run))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "1")
    assert [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None] == [
        "transition_invariance"
    ]
    assert [case.get("name") for case in root.iter("testcase") if case.find("error") is not None] == [
        "initial_invariance"
    ]


def test_every_field_that_readers_of_junit_ask_for_is_there_and_adds_up(several_runs: list[RunResult]) -> None:
    root = ET.fromstring(junit.render(several_runs))
    suites = list(root.iter("testsuite"))
    for field in ("tests", "failures", "errors", "skipped"):
        assert int(root.get(field, "-1")) == sum(int(suite.get(field, "-1")) for suite in suites)
    for suite in suites:
        cases = list(suite.iter("testcase"))
        assert suite.get("name")
        assert float(suite.get("time", "-1")) >= 0
        assert int(suite.get("tests", "-1")) == len(cases)
        assert int(suite.get("failures", "-1")) == sum(case.find("failure") is not None for case in cases)
        assert int(suite.get("errors", "-1")) == sum(case.find("error") is not None for case in cases)
        assert {p.get("name") for p in suite.iter("property")} >= {"group", "seed", "false-alarm rate"}
        for case in cases:
            assert case.get("name")
            assert case.get("classname")
            assert float(case.get("time", "-1")) >= 0
            assert all(
                found.get("message") and found.get("type") for found in case if found.tag in ("failure", "error")
            )


def test_a_failure_says_the_block_of_the_terminal(failing_run: RunResult) -> None:
    failure = next(ET.fromstring(junit.render(failing_run)).iter("failure"))
    assert failure.text == "\n".join(words.property_lines(failing_run.properties[2], failing_run))
    assert "3.1e-02 in theta" in (failure.get("message") or "")


def test_hostile_text_stays_well_formed_xml(hostile_run: RunResult) -> None:
    root = ET.fromstring(junit.render(hostile_run))
    assert root.find(".//script") is None
    assert "\\x1b" in ET.tostring(root, encoding="unicode")


def test_markdown_starts_with_the_verdict_and_lists_every_property(failing_run: RunResult) -> None:
    text = markdown.render(failing_run)
    assert text.startswith("## symcheck: failed\n\nCartPole\\-v1 is not symmetric")
    for result in failing_run.properties:
        assert f"| `{result.name}` |" in text
    assert "| **failed** |" in text


def test_failures_and_undecided_properties_follow_in_full(failing_run: RunResult) -> None:
    text = markdown.render(failing_run)
    assert "\n".join(words.property_lines(failing_run.properties[2], failing_run)) in text
    assert "--max-time 10 would decide it" in text


def test_failing_runs_come_first(several_runs: list[RunResult]) -> None:
    text = markdown.render(several_runs)
    assert text.index("is not symmetric") < text.index("is symmetric under")


def test_markdown_of_many_failures_stays_under_its_limit(failing_run: RunResult) -> None:
    text = markdown.render([failing_run] * 2000)
    assert len(text.encode("utf-8")) <= markdown.BUDGET_BYTES
    assert "left out to keep this summary small" in text


def test_one_enormous_failure_is_cut_and_said_to_be(failing_run: RunResult) -> None:
    failure = dataclasses.replace(failing_run.properties[2], causes=("because " * 200,) * 1000)
    text = markdown.render(dataclasses.replace(failing_run, properties=(failure,)))
    assert len(text.encode("utf-8")) <= markdown.BUDGET_BYTES
    assert "The rest is left out" in text


def test_outside_text_cannot_close_a_fence_or_mention_anybody(passing_run: RunResult) -> None:
    run = dataclasses.replace(passing_run, target="```\n# @everyone <img src=x>", command="echo '````'")
    text = markdown.render(run)
    assert "\\@everyone \\<img" in text
    assert "`````text\necho '````'\n`````" in text


def test_both_are_as_agreed(several_runs: list[RunResult], gold: Callable[[str, str], None]) -> None:
    gold("several.xml", junit.render(several_runs))
    gold("several.md", markdown.render(several_runs))
