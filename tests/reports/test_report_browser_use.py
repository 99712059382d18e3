"""Pages as they are used in a browser: sorting, the keyboard, notebooks, many checks; and probes that find faults."""

from __future__ import annotations

from pathlib import Path

import browser_probes as probes
import pytest
from browser_tab import Browser

from symcheck.engine.results import RunResult
from symcheck_reports import html
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves

pytestmark = pytest.mark.browser


@pytest.fixture
def failing_page(failing_run: RunResult, tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(html.render_run(failing_run), encoding="utf-8")
    return path


def test_a_table_sorts_by_a_click_and_back(desktop: Browser, failing_page: Path) -> None:
    desktop.open(failing_page)
    cells = "[...document.querySelectorAll('table.sortable tbody tr')].map((r) => r.cells[1].textContent.trim())"
    button = "document.querySelectorAll('table.sortable thead button')[1]"
    desktop.js(f"{button}.click()")
    assert desktop.js(cells) == ["failed", "passed", "passed", "proved", "undecided"]
    desktop.js(f"{button}.click()")
    assert desktop.js(cells)[0] == "undecided"
    assert desktop.js(f"{button}.closest('th').getAttribute('aria-sort')") == "descending"


def test_numbers_sort_as_numbers(desktop: Browser, curve_model: CurveModel, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_curves(curve_model), encoding="utf-8")
    desktop.open(path)
    desktop.js("document.querySelectorAll('table.sortable thead button')[2].click()")
    first = "document.querySelector('table.sortable tbody th').textContent"
    assert "equivariant" in desktop.js(first)
    desktop.js("document.querySelectorAll('table.sortable thead button')[2].click()")
    assert "mlp" in desktop.js(first)


def test_a_legend_hides_one_curve_with_its_band_and_shows_it_again(
    desktop: Browser, curve_model: CurveModel, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_curves(curve_model), encoding="utf-8")
    desktop.open(path)
    shown = (
        "[0, 1].map((i) => [...document.querySelectorAll(`svg [data-curve='${i}']`)]"
        ".filter((part) => getComputedStyle(part).display !== 'none').length)"
    )
    first, second = desktop.js(shown)
    assert min(first, second) >= 2
    button = "document.querySelectorAll('.legend button')[0]"
    desktop.js(f"{button}.click()")
    assert desktop.js(shown) == [0, second]
    assert desktop.js(f"{button}.getAttribute('aria-pressed')") == "false"
    desktop.js(f"{button}.click()")
    assert desktop.js(shown) == [first, second]


def test_a_keyboard_alone_skips_sorts_and_unfolds(desktop: Browser, failing_page: Path) -> None:
    desktop.open(failing_page)
    desktop.key("Tab", 9)
    assert desktop.js("document.activeElement.textContent") == "Skip to the findings"
    assert desktop.js("document.activeElement.getBoundingClientRect().left") >= 0
    desktop.key("Enter", 13)
    assert desktop.js("location.hash") == "#main"
    desktop.js("document.querySelector('thead button').focus()")
    desktop.key("Enter", 13)
    assert desktop.js("document.querySelector('thead th').getAttribute('aria-sort')") == "ascending"
    desktop.js("document.querySelector('summary').focus()")
    desktop.key("Enter", 13)
    assert desktop.js("document.querySelector('details').open")


def test_a_wide_table_is_scrolled_by_the_keyboard(browser: Browser, written: dict[str, Path]) -> None:
    browser.size(240, 800)
    browser.media()
    browser.open(written["homomorphism"])
    wide = "[...document.querySelectorAll('.scroll')].find((e) => e.scrollWidth > e.clientWidth + 1)"
    browser.js(f"{wide}.focus()")
    for _ in range(3):
        browser.key("ArrowRight", 39)
    browser.js("new Promise((done) => setTimeout(done, 300))")
    assert browser.js(f"{wide}.scrollLeft") > 0


def test_two_thousand_checks_open_fast(desktop: Browser, many_runs: list[RunResult], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(html.render_run(many_runs * 2), encoding="utf-8")
    # The target is 1.5 s on two idle cores; measured 0.2 to 0.4 s there.
    assert desktop.open(path) < 1500
    assert desktop.noise() == []
    assert desktop.js(probes.DEAD_ANCHORS) == []
    assert "left out" in desktop.js("document.querySelector('footer').textContent")


def test_a_notebook_shows_a_page_in_its_frame(desktop: Browser, failing_run: RunResult, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>n</title><h1>n</h1>{html.notebook(failing_run)}", encoding="utf-8")
    desktop.open(path)
    assert desktop.noise() == []
    assert desktop.requests() <= {path.as_uri(), "about:srcdoc", "data:,", path.parent.as_uri() + "/favicon.ico"}
    assert desktop.js("document.querySelector('iframe').getBoundingClientRect().height") == 720


# Defects to be planted in a page, and the probe that has to find each.
DEFECTS = {
    "a link to nowhere": (probes.DEAD_ANCHORS, "<a href='#nowhere'>x</a>"),
    "a wide table": (probes.STICKS_OUT, f"<table><tr><td class='num'>{'9' * 90}</td></tr></table>"),
    "a wide box without a name": (
        probes.UNREACHABLE_BOXES,
        f"<div class='scroll'><pre class='num'>{'9' * 90}</pre></div>",
    ),
    "a broken word": (
        probes.BROKEN_WORDS,
        f"<table class='numbers'><tr><th>equivariant</th><td class='num'>{'9' * 36}</td></tr></table>",
    ),
    "faint figure text": (
        probes.FAINT_FIGURE_TEXT,
        "<svg class='figure' viewBox='0 0 99 99'><text y='20' fill='#999'>x</text></svg>",
    ),
    "small figure text": (
        probes.SMALL_FIGURE_TEXT,
        "<svg class='figure' viewBox='0 0 2000 99'><text y='50'>x</text></svg>",
    ),
    "labels on each other": (
        probes.COLLIDING_FIGURE_TEXT,
        "<svg class='figure' viewBox='0 0 99 99'><text y='50'>one</text><text y='52' x='2'>two</text></svg>",
    ),
    "a clipped label": (
        probes.COLLIDING_FIGURE_TEXT,
        "<svg class='figure' viewBox='0 0 99 99'><text y='50' x='80'>longer than this</text></svg>",
    ),
    "a figure without a name": (
        probes.UNNAMED_FIGURES,
        "<svg role='img' aria-labelledby='gone' viewBox='0 0 9 9' width='9'></svg>",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(browser: Browser, failing_page: Path, defect: str) -> None:
    probe, markup = DEFECTS[defect]
    browser.size(360, 800)
    browser.media()
    browser.open(failing_page)
    assert browser.js(probe) == []
    browser.js(f"document.querySelector('main section').insertAdjacentHTML('beforeend', {markup!r})")
    assert browser.js(probe) != []
