"""HTML pages: one self-contained file per report, verdict first.

`render_run` builds views of the results (`symcheck_reports.model`), builds each section, and combines them into the
page. A page with many checks has a size budget: failures and undecided properties are always shown in full; passes
beyond the budget are counted, and the page refers to the JSON report for them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup, escape

from symcheck.engine.results import Kind, RunResult, overall_verdict
from symcheck_reports import words
from symcheck_reports.formatting import count, plural
from symcheck_reports.model import run_view
from symcheck_reports.sections import (
    claim,
    counterexamples,
    layers,
    method,
    mirror,
    precision,
    properties,
    residuals,
    value_gap,
)
from symcheck_reports.templating import PageHead, Section, document, section
from symcheck_reports.views import RunView

# Half a megabyte: mail clients, CI previews and phones open such a page without delay.
BUDGET_BYTES = 500_000
# With many checks, this many passing properties of one run are shown together with its failures.
PASSING_WHEN_SHORT = 12
# Upper bounds for names of ordinary length: a row of the overview, and an article's heading with its links.
_ROW_BYTES = 420
_HEADING_BYTES = 400
_EYEBROWS: dict[Kind, str] = {
    "env": "Symmetry of an environment",
    "net": "Equivariance of a network",
    "mirror": "Mirror of a robot",
    "policy": "Equivariance of a policy",
    "game": "Symmetries of a game",
}
_NO_PICTURES = "Pictures are left out to keep this page small; a report of a single run has them."
_SECTIONS = (claim, properties, mirror, value_gap, counterexamples, layers, precision, residuals, method)


def render_run(results: Sequence[RunResult] | RunResult) -> str:
    """The page for one or more runs.

    Args:
        results: the runs, in order.

    Returns:
        A complete HTML document, at most `BUDGET_BYTES` long unless failures alone are longer.

    Raises:
        ValueError: `results` is empty.

    Example:
        >>> run = RunResult("env", "CartPole-v1", "mirror", {"name": "C2", "order": 2}, (), 0.01, 0)
        >>> render_run(run).startswith("<!doctype html>")
        True
    """
    runs = [results] if isinstance(results, RunResult) else list(results)
    if not runs:
        raise ValueError("expected at least one run to report, got none")
    return _single(runs[0]) if len(runs) == 1 else _several(runs)


def render_counterexamples(run: RunResult, name: str | None = None) -> str:
    """A page with the counterexamples only: state and image side by side, with expected and measured values.

    Args:
        run: the run.
        name: the property to show; None shows all failed properties with a counterexample.

    Returns:
        A complete HTML document.

    Raises:
        ValueError: there is no such counterexample.
    """
    chosen = [p for p in run.properties if p.counterexample is not None and name in (None, p.name)]
    if not chosen:
        given = "a run without any" if name is None else repr(name)
        raise ValueError(f"expected a property with a counterexample, got {given}")
    view = run_view(dataclasses.replace(run, properties=tuple(chosen)))
    head = PageHead(_EYEBROWS[run.kind], words.verdict_sentence(run), verdict=run.verdict, kind="verification")
    sections = [built for module in (claim, counterexamples) if (built := module.build(view)) is not None]
    return document(head, sections)


def notebook(results: Sequence[RunResult] | RunResult, height: int = 720) -> str:
    """The page inside a frame, for `_repr_html_`; its style does not affect the notebook.

    Args:
        results: the runs.
        height: the height of the frame, in pixels.

    Returns:
        One `iframe` element.
    """
    return frame(render_run(results), height)


def frame(page: str, height: int = 720) -> str:
    """A symcheck page inside a sandboxed frame, in which only its own script may run.

    Args:
        page: a complete HTML document.
        height: the height of the frame, in pixels.
    """
    return (
        f'<iframe title="symcheck report" sandbox="allow-scripts" width="100%" height="{int(height)}" '
        f'style="border:0" srcdoc="{escape(page)}"></iframe>'
    )


def _single(run: RunResult) -> str:
    for limit in (None, 400, PASSING_WHEN_SHORT):
        view = run_view(run, max_passing=limit)
        facts = _head_facts(view)
        head = PageHead(_EYEBROWS[run.kind], view.sentence, _tally_sentence(view), view.verdict, facts, "verification")
        page = document(head, _sections(view))
        if len(page.encode("utf-8")) <= BUDGET_BYTES:
            break
    return page


def _sections(view: RunView) -> list[Section]:
    return [built for module in _SECTIONS if (built := module.build(view)) is not None]


def _tally_sentence(view: RunView) -> str:
    parts = [f"{count(number)} {verdict}" for verdict, number in view.tally.items() if number]
    return f"{plural(sum(view.tally.values()), 'property', 'properties')}: {', '.join(parts)}." if parts else ""


def _head_facts(view: RunView) -> list[tuple[str, str]]:
    return [("target", view.target), ("symmetry", view.symmetry), ("group", view.group), *view.facts[:3]]


def _several(runs: Sequence[RunResult]) -> str:
    verdict = overall_verdict(run.verdict for run in runs)
    checks = sum(len(run.properties) for run in runs)
    lead = f"{plural(checks, 'property', 'properties')} in all."
    head = PageHead("Symmetry checks", words.summary_sentence(runs), lead, verdict, kind="verification")
    every = range(len(runs))
    for shown, footer in ((runs, ""), ([_without_pictures(run) for run in runs], _NO_PICTURES)):
        articles = [_article(run_view(run, index)) for index, run in enumerate(shown)]
        page = document(head, [_overview(runs, every, every), *articles], footer)
        if len(page.encode("utf-8")) <= BUDGET_BYTES:
            return page
        if not any(_has_pictures(run) for run in runs):
            break
    return _within_budget(shown, head, articles, footer)


def _has_pictures(run: RunResult) -> bool:
    return any(p.counterexample is not None and p.counterexample.pictures for p in run.properties)


def _without_pictures(run: RunResult) -> RunResult:
    kept = tuple(
        p
        if p.counterexample is None
        else dataclasses.replace(p, counterexample=dataclasses.replace(p.counterexample, pictures=()))
        for p in run.properties
    )
    return dataclasses.replace(run, properties=kept)


def _within_budget(runs: Sequence[RunResult], head: PageHead, articles: list[Section], note: str) -> str:
    """Failures in full with a few passing properties, then a row and an article per passing run within the budget."""
    holding = [i for i, run in enumerate(runs) if run.verdict in ("passed", "proved")]
    in_full = [i for i in range(len(runs)) if i not in set(holding)]
    for i in in_full:
        articles[i] = _article(run_view(runs[i], i, max_passing=PASSING_WHEN_SHORT))
    used = len(document(head, [_overview(runs, in_full, in_full), *(articles[i] for i in in_full)]).encode("utf-8"))
    listed = set(in_full) | _fitting(holding, [_ROW_BYTES] * len(runs), BUDGET_BYTES - used)
    used += _ROW_BYTES * (len(listed) - len(in_full))
    sizes = [len(article.body.encode("utf-8")) + _HEADING_BYTES for article in articles]
    shown = sorted(set(in_full) | _fitting([i for i in holding if i in listed], sizes, BUDGET_BYTES - used))
    left_out = len(runs) - len(shown)
    what = f"The details of {plural(left_out, 'run')} in which everything holds are left out to keep this page small"
    footer = f"{what}; the JSON report has them all. {note}".rstrip() if left_out else note
    return document(head, [_overview(runs, sorted(listed), shown), *(articles[i] for i in shown)], footer)


def _fitting(candidates: Sequence[int], sizes: Sequence[int], room: int) -> set[int]:
    """The first candidates whose sizes together fit into `room`."""
    kept: set[int] = set()
    for i in candidates:
        room -= sizes[i]
        if room < 0:
            break
        kept.add(i)
    return kept


def _overview(runs: Sequence[RunResult], listed: Sequence[int], linked: Sequence[int]) -> Section:
    links = set(linked)
    rows = [(f"run{i + 1}" if i in links else "", runs[i], words.count_verdicts(runs[i].properties)) for i in listed]
    return section("overview", "overview", "All runs", rows=rows, left_out=len(runs) - len(rows))


def _article(view: RunView) -> Section:
    body = section("article", view.anchor, "", view=view, lead=_tally_sentence(view), parts=_sections(view)).body
    return Section(view.anchor, f"{view.target} under {view.symmetry}", Markup(body))
