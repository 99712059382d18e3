"""Every page in a real browser: no console message, no request, keyboard, sorting, dark, print, 360 pixels.

Run them with `pytest -m browser`. Debian's Chromium is driven over its debugging pipe; `SYMCHECK_BROWSER` names another
binary. axe-core comes from npm into a temporary folder, once a run; `SYMCHECK_AXE` names a copy of axe.min.js that is
there already. A browser or npm that is missing fails them.
"""

from __future__ import annotations

import re
from pathlib import Path

import browser_probes as probes
import pytest
from browser_tab import Browser
from hostile_pages import HOSTILE, write_hostile
from written_pages import WRITTEN

from symcheck.engine.results import RunResult
from symcheck_reports import html
from symcheck_reports.basis_model import BasisModel
from symcheck_reports.basis_page import render_basis
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.homomorphism_page import render_homomorphism

pytestmark = pytest.mark.browser
# Made by hand: what no command writes within seconds. `WRITTEN` are pages of real commands, `HOSTILE` of hostile names.
MADE = ("failing_run", "approximate_run", "hostile_run", "curve_model", "basis_model", "homomorphism_graph")
PHONE, SHEET, DESKTOP = 360, 718, 1280  # 718 pixels: what the margins leave of a sheet of A4


def _rendered(value: RunResult | list[RunResult] | CurveModel | BasisModel | HomomorphismModel) -> str:
    if isinstance(value, CurveModel):
        return render_curves(value)
    if isinstance(value, HomomorphismModel):
        return render_homomorphism(value)
    return render_basis(value) if isinstance(value, BasisModel) else html.render_run(value)


def _page(name: str, request: pytest.FixtureRequest, folder: Path) -> Path:
    if name in WRITTEN:
        written: dict[str, Path] = request.getfixturevalue("written")
        return written[name]
    if name in HOSTILE:
        return write_hostile(name, folder)
    path = folder / f"{name}.html"
    path.write_text(_rendered(request.getfixturevalue(name)), encoding="utf-8")
    return path


@pytest.fixture(params=[*MADE, *WRITTEN, *HOSTILE])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A page of every kind."""
    return _page(request.param, request, tmp_path)


@pytest.fixture(params=["hostile_run", *HOSTILE])
def hostile_page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A page whose names are hostile."""
    return _page(request.param, request, tmp_path)


def test_a_page_opens_without_a_console_message_or_a_request(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    assert desktop.noise() == []
    assert {url for url in desktop.requests() if not url.startswith("data:")} == {page.as_uri()}


def test_the_policy_lets_no_foreign_script_and_no_image_in(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    assert desktop.js("getComputedStyle(document.querySelector('h1')).fontWeight") == "640"
    desktop.js(
        "window.hit = 0; window.refused = new Promise((done) => document.addEventListener("
        "'securitypolicyviolation', (e) => e.blockedURI !== 'inline' && done(e.blockedURI)));"
        "const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
        "const i = new Image(); i.src = 'https://example.invalid/x.png'; document.body.append(s, i); 0"
    )
    assert desktop.js("refused") == "https://example.invalid/x.png"
    assert desktop.js("window.hit") == 0


def test_every_link_leads_somewhere(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    assert desktop.js(probes.DEAD_ANCHORS) == []
    assert [link for link in desktop.js(probes.FILE_LINKS) if not (page.parent / link).is_file()] == []


@pytest.mark.parametrize(("width", "media"), [(PHONE, ""), (SHEET, "print"), (DESKTOP, "")])
def test_nothing_sticks_out_sideways_or_collides(browser: Browser, page: Path, width: int, media: str) -> None:
    browser.size(width, 800)
    browser.media(media)
    browser.open(page)
    browser.unfold()
    assert browser.js("document.documentElement.scrollWidth") <= width
    assert browser.js(probes.STICKS_OUT) == []
    assert browser.js(probes.COLLIDING_FIGURE_TEXT) == []
    # No column is squeezed to a character a line; the hostile page of 10,000-character names needs 60,000 pixels.
    assert browser.js("document.documentElement.scrollHeight") < 80_000
    if "hostile" not in page.name:
        assert browser.js(probes.BROKEN_WORDS) == []


def test_figures_and_wide_boxes_can_be_used_on_a_phone(browser: Browser, page: Path) -> None:
    browser.size(PHONE, 800)
    browser.media()
    browser.open(page)
    browser.unfold()
    assert browser.js(probes.SMALL_FIGURE_TEXT) == []
    assert browser.js(probes.UNREACHABLE_BOXES) == []


def test_figures_are_named_and_their_text_is_dark_enough_everywhere(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    desktop.unfold()
    assert desktop.js(probes.UNNAMED_FIGURES) == []
    for media, scheme in (("", "light"), ("", "dark"), ("print", "dark")):
        desktop.media(media, scheme)
        assert desktop.js(probes.FAINT_FIGURE_TEXT) == [], (media, scheme)


def test_dark_and_print_change_the_colours(desktop: Browser, page: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    desktop.media(scheme="dark")
    desktop.open(page)
    assert desktop.js(paper) == "rgb(19, 21, 24)"
    desktop.media(media="print", scheme="dark")
    assert desktop.js(paper) == "rgb(255, 255, 255)"
    nav = "document.querySelector('nav')"
    assert desktop.js(f"{nav} ? getComputedStyle({nav}).display : 'none'") == "none"


def test_what_is_folded_is_printed(desktop: Browser, page: Path) -> None:
    desktop.media(media="print")
    desktop.open(page)
    folded = "[...document.querySelectorAll('details > :not(summary)')]"
    hidden = f"{folded}.filter((e) => e.getBoundingClientRect().height === 0)"
    assert desktop.js(f"{hidden}.map((e) => e.outerHTML.slice(0, 100))") == []
    assert len(desktop.call("Page.printToPDF", printBackground=True)["data"]) > 10_000


def test_a_keyboard_reaches_every_link_and_control_and_shows_where_it_is(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    stops = 'a[href], button, summary, [tabindex="0"]'
    visible = f"[...document.querySelectorAll('{stops}')].filter((e) => e.checkVisibility())"
    # On pages of hundreds of links the first hundred stand for all.
    wanted = min(desktop.js(f"{visible}.length"), 100)
    where = f"(({visible}).indexOf(document.activeElement))"
    shown = "['none', ''].includes(getComputedStyle(document.activeElement).outlineStyle) ? 'nothing' : 'outline'"
    reached = []
    for _ in range(wanted):
        desktop.key("Tab", 9)
        reached.append((desktop.js(where), desktop.js(shown)))
    assert reached == [(place, "outline") for place in range(wanted)]
    assert desktop.js("document.querySelector('a.skip') !== null")


def _number(text: str) -> float:
    """What a numeric cell is worth: written anew here, so that the page's own reading is checked."""
    found = re.match(r"([<>]?) ?([-−]?)(∞|inf|[\d,]*\.?\d+(?:e[-+]?\d+)?)", text)
    if found is None:
        return float("-inf")
    size = 1e308 if found[3] in ("∞", "inf") else float(found[3].replace(",", ""))
    return (-size if found[2] else size) + {">": 1e-6, "<": -1e-6, "": 0.0}[found[1]]


def test_every_table_sorts_by_every_column_and_back(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    for table in range(desktop.js("document.querySelectorAll('table.sortable').length")):
        here = f"document.querySelectorAll('table.sortable')[{table}]"
        before = desktop.js(f"[...{here}.tBodies[0].rows].map((r) => r.textContent)")
        for column in range(desktop.js(f"{here}.tHead.rows[0].cells.length")):
            head = f"{here}.tHead.rows[0].cells[{column}]"
            text = f"r.cells[{column}].dataset.k ?? r.cells[{column}].textContent.trim()"
            cells = f"[...{here}.tBodies[0].rows].map((r) => {text})"
            for direction in ("ascending", "descending"):
                desktop.js(f"{head}.querySelector('button').click()")
                assert desktop.js(f"{head}.getAttribute('aria-sort')") == direction
                if desktop.js(f"{head}.classList.contains('num')"):
                    values = [_number(text) for text in desktop.js(cells)]
                    assert values == sorted(values, reverse=direction == "descending"), (table, column)
        assert sorted(desktop.js(f"[...{here}.tBodies[0].rows].map((r) => r.textContent)")) == sorted(before)


def test_hostile_names_are_text_and_nothing_else(desktop: Browser, hostile_page: Path) -> None:
    desktop.open(hostile_page)
    assert desktop.js("document.scripts.length") == 1
    assert desktop.js("[...document.images].filter((image) => !image.src.startsWith('data:')).length") == 0
    assert desktop.js("document.body.textContent.includes('<script>alert(1)</script>')")
    assert (
        desktop.js("/[\\u0000-\\u0008\\u001b\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent)") is False
    )
    assert desktop.noise() == []


# What a phone and bright colours may change; every rule is run on the wide and dark page.
_PHONE_RULES = "{runOnly: ['color-contrast', 'scrollable-region-focusable', 'target-size', 'page-has-heading-one']}"


@pytest.mark.parametrize(("width", "scheme", "rules"), [(PHONE, "light", _PHONE_RULES), (DESKTOP, "dark", "{}")])
def test_axe_finds_no_violation(browser: Browser, page: Path, axe: str, width: int, scheme: str, rules: str) -> None:
    browser.size(width, 900)
    browser.media(scheme=scheme)
    browser.open(page)
    browser.unfold()
    browser.js(axe + "; 0")
    browser.js(f"axe.run({rules}).then((result) => {{ window.result = result; }})")
    assert browser.js("result.passes.length") > (10 if rules == "{}" else 1)
    assert browser.js("result.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))])") == []
