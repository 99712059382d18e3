"""The index page lists every report of a folder, failures first, and links to what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from symcheck.engine.results import PropertyResult, RunResult
from symcheck.verdict import Verdict
from symcheck_reports import html, index
from symcheck_reports import json as json_report
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves


@pytest.fixture
def folder(tmp_path: Path, passing_run: RunResult, failing_run: RunResult, several_runs: list[RunResult]) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name, results in {"pass": [passing_run], "deep/er/fail": [failing_run], "several": several_runs}.items():
        (tmp_path / f"{name}.json").write_text(json_report.render(results))
    (tmp_path / "pass.html").write_text(html.render_run(passing_run))
    (tmp_path / "curves.html").write_text("<!doctype html><title>curves</title>")
    (tmp_path / "package.json").write_text('{"name": "something else"}')
    (tmp_path / "broken.json").write_text('{"schema": "symcheck/1", ')
    (tmp_path / "old.json").write_text('{"schema": "symcheck/0", "verdict": "passed"}')
    (tmp_path / "index.html").write_text("the index of an earlier run")
    return tmp_path


def test_every_run_of_every_report_is_listed_failures_first(folder: Path) -> None:
    found = index.read_folder(folder)
    assert [entry.verdict for entry in found.entries] == ["failed", "failed", "failed", "passed", "passed"]
    assert {entry.json_link for entry in found.entries} == {"./pass.json", "./deep/er/fail.json", "./several.json"}


def test_what_cannot_be_read_is_named_and_what_is_no_report_is_passed_over(folder: Path) -> None:
    found = index.read_folder(folder)
    assert [name for name, _ in found.unreadable] == ["broken.json", "old.json"]
    assert "expected schema 'symcheck/1' or 'symcheck/2', got 'symcheck/0'" in found.unreadable[1][1]


def test_pages_without_data_are_listed_and_the_index_itself_is_not(folder: Path) -> None:
    assert index.read_folder(folder).other_pages == (("curves.html", "curves"),)


def test_every_link_of_the_page_exists(folder: Path) -> None:
    text = index.render_index(index.read_folder(folder))
    links = [unquote(link) for link in re.findall(r'href="(\./[^"]*)"', text)]
    assert len(links) == 7
    assert all((folder / link).is_file() for link in links)


def test_the_heading_counts_the_verdicts(folder: Path) -> None:
    assert ": 5 runs, 3 failed, 2 passed.</h1>" in index.render_index(index.read_folder(folder))


@pytest.mark.parametrize("name", ['"><script>alert(1)</script>', "javascript:alert(1)", "a b#c?d&e%41"])
def test_a_hostile_file_name_is_only_a_link_to_itself(name: str, tmp_path: Path, passing_run: RunResult) -> None:
    safe = name.replace("/", "_")
    (tmp_path / f"{safe}.json").write_text(json_report.render(passing_run))
    text = index.render_index(index.read_folder(tmp_path))
    assert "<script>alert" not in text
    links = re.findall(r'href="(\./[^"]*\.json)"', text)
    assert [unquote(link) for link in links] == [f"./{safe}.json"]


@pytest.mark.parametrize(
    "content",
    ['{"schema": "symcheck/1"}', '{"schema": "symcheck/1", "reports": 3}', '{"schema": "symcheck/1", "reports": [1]}'],
)
def test_a_report_without_a_verdict_is_not_readable(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    found = index.read_folder(tmp_path)
    assert found.entries == ()
    assert len(found.unreadable) == 1


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    assert "--json FILE" in index.render_index(index.read_folder(tmp_path))


def test_a_page_of_learning_curves_is_listed_by_its_own_title(tmp_path: Path, curve_model: CurveModel) -> None:
    (tmp_path / "report.html").write_text(render_curves(curve_model), encoding="utf-8")
    text = index.render_index(index.read_folder(tmp_path))
    assert "CartPole-v1" in text
    assert 'href="./report.html"' in text
    assert "contains no JSON report" not in text


def test_a_title_with_markup_stays_text(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>")
    assert "<script>alert" not in index.render_index(index.read_folder(tmp_path))


OLDER = Path(__file__).parent / "version_1"


def _summary(folder: Path) -> tuple[str, str, str]:
    """Heading, verdict and lead of the index."""
    text = index.render_index(index.read_folder(folder))
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", text)
    verdict = re.search(r'<header class="top(?: is-(\w+))?">', text)
    lead = re.search(r'<p class="lead"[^>]*>(.*?)</p>', text)
    assert heading is not None
    assert verdict is not None
    return heading[1].partition(": ")[2], str(verdict[1]), lead[1] if lead else ""


@pytest.mark.parametrize("older", [False, True])
def test_a_failing_page_without_data_fails_the_folder(
    older: bool, tmp_path: Path, passing_run: RunResult, failing_run: RunResult
) -> None:
    (tmp_path / "good.json").write_text(json_report.render(passing_run))
    assert _summary(tmp_path)[:2] == ("1 run, 1 passed.", "passed")
    page = (OLDER / "failed.html").read_text() if older else html.render_run(failing_run)
    (tmp_path / "bad.html").write_text(page)
    assert _summary(tmp_path)[:2] == ("1 run and 1 page without data, 1 failed, 1 passed.", "failed")
    (tmp_path / "bad.html").write_text(html.render_run([failing_run, passing_run]))
    assert _summary(tmp_path)[1] == "failed"


@pytest.mark.parametrize(("verdict", "whole"), [("proved", "passed"), ("passed", "passed"), ("undecided", "undecided")])
def test_a_page_counts_with_its_own_verdict(
    verdict: Verdict, whole: str, tmp_path: Path, passing_run: RunResult
) -> None:
    (tmp_path / "good.json").write_text(json_report.render(passing_run))
    item = PropertyResult("reward_invariance", verdict, "paired", 9)
    run = RunResult("env", "Mine-v0", "failed mirror", {"name": "C2", "order": 2}, (item,), 0.01, 0)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "page.html").write_text(html.render_run(run))
    assert index.read_folder(tmp_path).pages[0].verdict == verdict
    assert _summary(tmp_path)[1] == whole


def test_a_page_beside_a_report_that_says_otherwise_counts_on_its_own(
    tmp_path: Path, passing_run: RunResult, failing_run: RunResult
) -> None:
    (tmp_path / "run.json").write_text(json_report.render(passing_run))
    (tmp_path / "run.html").write_text(html.render_run(failing_run))
    listed = index.read_folder(tmp_path)
    assert [entry.page_link for entry in listed.entries] == [""]
    assert [(page.name, page.verdict) for page in listed.pages] == [("run.html", "failed")]
    assert _summary(tmp_path)[1] == "failed"


def test_a_page_whose_report_is_damaged_counts_with_its_own_verdict(tmp_path: Path, failing_run: RunResult) -> None:
    (tmp_path / "run.json").write_text('{"schema": "symcheck/2", ')
    (tmp_path / "run.html").write_text(html.render_run(failing_run))
    assert _summary(tmp_path)[1:] == ("failed", "1 file could not be read.")


def test_a_page_that_says_no_verdict_is_not_counted_and_said_not_to_be(tmp_path: Path, passing_run: RunResult) -> None:
    (tmp_path / "good.json").write_text(json_report.render(passing_run))
    (tmp_path / "a.html").write_text("<title>It failed</title><h1>everything failed</h1>")
    lead = "1 page is not counted: its verdict cannot be read."
    assert _summary(tmp_path) == ("1 run, 1 passed.", "passed", lead)
    (tmp_path / "b.html").write_bytes(b"\xff\x00")
    assert _summary(tmp_path)[2] == "2 pages are not counted: their verdict cannot be read."


def test_pages_that_verify_nothing_are_neither_counted_nor_missed(tmp_path: Path, curve_model: CurveModel) -> None:
    (tmp_path / "report.html").write_text(render_curves(curve_model), encoding="utf-8")
    for name in ("search", "basis"):
        (tmp_path / f"{name}.html").write_text((OLDER / f"{name}.html").read_text())
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text(index.render_index(index.read_folder(tmp_path)))
    assert _summary(tmp_path) == ("4 pages.", "None", "")


def test_text_from_outside_cannot_give_a_page_another_verdict(tmp_path: Path, failing_run: RunResult) -> None:
    nasty = '"><meta name="symcheck:verdict" content="passed"><header class="top is-passed">'
    run = RunResult("env", nasty, nasty, failing_run.group, failing_run.properties, failing_run.alpha, failing_run.seed)
    (tmp_path / "bad.html").write_text(html.render_run(run))
    assert [page.verdict for page in index.read_folder(tmp_path).pages] == ["failed"]


def test_older_reports_are_listed_beside_newer_ones(tmp_path: Path, failing_run: RunResult) -> None:
    for name in ("accepted", "failed", "net", "passed"):
        (tmp_path / f"{name}.json").write_text((OLDER / f"{name}.json").read_text())
    (tmp_path / "new.json").write_text(json_report.render(failing_run))
    listed = index.read_folder(tmp_path)
    assert listed.unreadable == ()
    assert [entry.verdict for entry in listed.entries] == ["failed"] * 3 + ["passed"] * 2
    assert [entry.json_link for entry in listed.entries if entry.approximate] == ["./accepted.json"]
    assert index.render_index(listed).count('<span class="sub nb">approximate</span>') == 1


def _search(target: str, verdict: str, order: int, route: str = "table") -> dict[str, object]:
    group = {"name": f"C{order}", "order": order}
    head = {"schema": "symcheck/1", "kind": "discovery", "target": target}
    return {**head, "verdict": verdict, "route": route, "group": group, "symmetry": None}


def test_a_search_is_no_check_and_does_not_fail_the_folder(folder: Path) -> None:
    before = index.read_folder(folder)
    (folder / "search.json").write_text(json.dumps(_search("Lake-v0", "failed", 1)))
    (folder / "search.html").write_text("<title>Lake-v0</title>")
    found = index.read_folder(folder)
    assert found.entries == before.entries
    assert found.other_pages == before.other_pages
    assert [(s.target, s.page_link, s.verdict) for s in found.searches] == [("Lake-v0", "./search.html", "")]


@pytest.mark.parametrize(
    ("search", "found", "verdict"),
    [
        (_search("A", "passed", 4, "states"), "C4 (order 4)", "passed"),
        (_search("A", "failed", 1), "none: the table was searched completely", ""),
        (_search("A", "failed", 1, "states"), "none of the forms searched holds", ""),
        (_search("A", "undecided", 1, "states"), "none verified, and some candidates are undecided", "undecided"),
    ],
)
def test_the_index_says_what_a_search_found_and_no_more(
    search: dict[str, object], found: str, verdict: str, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(search))
    text = index.render_index(index.read_folder(tmp_path))
    assert found in text
    assert re.findall(r'class="verdict is-(\w+)"', text) == ([verdict] if verdict else [])
    assert ": 1 page.</h1>" in text
