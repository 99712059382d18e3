"""Pages are self-contained, valid, safe, small, and say what the results say."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html as html_text
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pkgutil import iter_modules
from types import ModuleType

import numpy as np
import pytest

from symcheck.engine.results import Counterexample, RunResult
from symcheck_reports import curve_sections, curves, html, sections, words
from symcheck_reports.basis_model import BasisModel
from symcheck_reports.basis_page import render_basis
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves
from symcheck_reports.templating import formula

VOID = {"meta", "link", "br", "img", "wbr", "hr", "input"}


@pytest.mark.parametrize(("package", "page"), [(sections, html), (curve_sections, curves)], ids=["runs", "curves"])
def test_every_section_is_on_its_page(package: ModuleType, page: ModuleType) -> None:
    modules = {f"{package.__name__}.{info.name}" for info in iter_modules(package.__path__)}
    assert modules == {module.__name__ for module in page._SECTIONS}


class Page(HTMLParser):
    """A page taken apart: its elements, its texts, its ids and its links."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text.replace("<wbr>", ""))
        self.close()
        assert self.stack == [], f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not self.stack or self.stack[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All visible text, spaces folded; words that may break are whole."""
        return " ".join(" ".join(self.texts).split())

    def values(self, attribute: str) -> list[str]:
        return [str(attributes[attribute]) for _, attributes in self.elements if attribute in attributes]


@pytest.fixture(
    params=[
        "passing_run",
        "failing_run",
        "failing_network",
        "hostile_run",
        "several_runs",
        "curve_model",
        "basis_model",
    ]
)
def page_text(request: pytest.FixtureRequest) -> str:
    """Every kind of page."""
    value = request.getfixturevalue(request.param)
    if isinstance(value, CurveModel):
        return render_curves(value)
    return render_basis(value) if isinstance(value, BasisModel) else html.render_run(value)


def test_every_page_is_well_formed(page_text: str) -> None:
    page = Page(page_text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert sum(tag == "h1" for tag, _ in page.elements) == 1
    assert sum(tag == "main" for tag, _ in page.elements) == 1


def test_every_link_resolves_within_the_page(page_text: str) -> None:
    page = Page(page_text)
    ids = set(page.values("id"))
    assert all(link == "data:," or (link.startswith("#") and link[1:] in ids) for link in page.values("href"))
    labelled = [name for value in page.values("aria-labelledby") for name in value.split()]
    assert set(labelled) <= ids


def test_no_page_requests_anything(page_text: str) -> None:
    page = Page(page_text)
    assert all(source.startswith("data:image/png;base64,") for source in page.values("src"))
    assert not {"iframe", "object", "embed", "form", "base"} & {tag for tag, _ in page.elements}
    css = re.findall(r"<style>(.*?)</style>", page_text, flags=re.DOTALL)
    assert len(css) == 1
    assert "url(" not in css[0]
    assert "@import" not in css[0]


def test_the_security_policy_allows_exactly_the_pages_own_style_and_script(page_text: str) -> None:
    policy = html_text.unescape(str(re.search(r'Content-Security-Policy" content="([^"]*)"', page_text).group(1)))  # type: ignore[union-attr]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for kind, directive in (("style", "style-src"), ("script", "script-src")):
        inner = re.findall(rf"<{kind}>(.*?)</{kind}>", page_text, flags=re.DOTALL)
        assert len(inner) == 1
        digest = base64.b64encode(hashlib.sha256(inner[0].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_no_element_carries_inline_style_or_handlers(page_text: str) -> None:
    attributes = {name for _, attributes in Page(page_text).elements for name in attributes}
    assert "style" not in attributes
    assert not {name for name in attributes if name.startswith("on")}


def test_figures_have_a_title_a_description_and_a_table_beside_them(page_text: str) -> None:
    page = Page(page_text)
    figures = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]
    assert figures  # every page of the fixture draws something
    named = {attributes.get("id"): tag for tag, attributes in page.elements}
    for attributes in figures:
        assert [named[name] for name in str(attributes["aria-labelledby"]).split()] == ["title", "desc"]
    assert any(tag == "table" for tag, _ in page.elements)


def test_images_have_a_text_and_tables_name_their_columns(page_text: str) -> None:
    page = Page(page_text)
    assert all(attributes.get("alt") for tag, attributes in page.elements if tag == "img")
    assert all(attributes.get("scope") for tag, attributes in page.elements if tag == "th")


def test_hostile_names_stay_text(hostile_run: RunResult) -> None:
    text = html.render_run(hostile_run)
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    text.encode("utf-8")


def test_a_name_of_ten_thousand_characters_does_not_fill_the_heading(hostile_run: RunResult) -> None:
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html.render_run(hostile_run), flags=re.DOTALL)
    assert heading is not None
    assert len(heading.group(1)) < 700


def test_the_verdict_comes_first_and_in_a_sentence(failing_run: RunResult, passing_run: RunResult) -> None:
    for run in (failing_run, passing_run):
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", html.render_run(run), flags=re.DOTALL)
        assert heading is not None
        assert html_text.unescape(heading.group(1).replace("<wbr>", "")) == words.verdict_sentence(run)


def test_the_claim_is_written_with_this_environments_own_maps(passing_run: RunResult) -> None:
    page = Page(html.render_run(passing_run))
    assert "What is claimed" in page.text
    assert "→ (−o 0 , −o 1 , −o 2 , −o 3 )" in page.text
    assert "0 ↔ 1" in page.text


def test_a_counterexample_is_shown_in_full(failing_run: RunResult) -> None:
    text = Page(html.render_run(failing_run)).text
    for part in (
        "s[1] (x speed, m/s) 0.5 -0.5",
        "a 1 0",
        "theta 0.031 0 -3.1e-02",
        "theta and theta_dot carry different signs",
        "symcheck replay report.json",
        "3.1e-02 in theta",
    ):
        assert part in text


def test_each_property_shows_verdict_evidence_and_bound(passing_run: RunResult) -> None:
    text = Page(html.render_run(passing_run)).text
    assert text.count("20,000 paired checks, no violation") == 3
    assert "at most 0.03% of cases could violate the claim (99% confidence)" in text
    assert "Region tested: states of rollouts" in text
    assert "symmetry not rejected (p = 0.41)" in text


def test_the_broken_layer_stands_out(failing_network: RunResult) -> None:
    text = html.render_run(failing_network)
    assert text.count('<li class="is-failed">') == 1
    assert "The chain breaks at" in text


def test_a_page_without_claim_layers_or_residuals_leaves_those_parts_out() -> None:
    text = html.render_run(RunResult("env", "Mine-v0", "m", {"name": "C2", "order": 2}, (), 0.01, 0))
    assert "What is claimed" not in text
    assert "Layer by layer" not in text
    assert "Nothing was checked" in text


def test_an_image_observation_is_drawn_and_its_entries_are_limited(failing_run: RunResult) -> None:
    image = np.zeros((1, 21, 21))
    image[0, 3, 4] = 1.0
    example = Counterexample(
        "r", image, None, 2, image[:, ::-1], image, 1.0, "[0, 3, 4]", image_observation=image[:, ::-1]
    )
    failure = dataclasses.replace(failing_run.properties[2], counterexample=example, per_coordinate=())
    text = html.render_run(dataclasses.replace(failing_run, properties=(failure,)))
    assert text.count("data:image/png;base64,") == 4
    assert "further entries" in text
    assert len(text) < 100_000


def test_a_thousand_checks_fit_the_budget_and_no_failure_is_cut(many_runs: list[RunResult]) -> None:
    text = html.render_run(many_runs)
    assert len(text.encode("utf-8")) <= html.BUDGET_BYTES
    assert text.count('<article class="counterexample"') == 4
    shown = len(re.findall(r'<section id="run\d+"', text))
    assert f"The details of {len(many_runs) - shown} runs in which everything holds are left out" in text
    assert "JSON report has them all" in text
    Page(text)


@pytest.mark.long
def test_one_run_of_a_thousand_properties_fits_the_budget(failing_run: RunResult) -> None:
    properties = tuple(
        dataclasses.replace(failing_run.properties[1], name=f"reward_invariance_{index}") for index in range(1000)
    )
    text = html.render_run(dataclasses.replace(failing_run, properties=(*properties, failing_run.properties[2])))
    assert len(text.encode("utf-8")) <= html.BUDGET_BYTES
    assert "more properties hold and are left out" in text
    assert text.count('<article class="counterexample"') == 1


def test_failures_are_never_cut_even_beyond_the_budget(failing_run: RunResult) -> None:
    text = html.render_run([failing_run] * 100)
    assert len(text.encode("utf-8")) > html.BUDGET_BYTES
    assert text.count('<article class="counterexample"') == 100


def test_no_run_is_no_page() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        html.render_run([])


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(passing_run: RunResult) -> None:
    frame = html.notebook(passing_run)
    assert frame.startswith("<iframe")
    assert html_text.unescape(frame).count("<!doctype html>") == 1
    assert "</style>" not in frame


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_and_lines_have_enough_contrast(scheme: int, passing_run: RunResult) -> None:
    block = re.findall(r":root \{(.*?)\n\}", html.render_run(passing_run), flags=re.DOTALL)[scheme]
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    # WCAG 2.2: 4.5 for text, 3 for lines and marks of a figure.
    for name in ("ink", "soft", "link", "good", "fine", "bad", "open"):
        assert _contrast(colour[name], colour["paper"]) >= 4.5, name
    for name in ("good", "fine", "bad", "open"):
        assert _contrast(colour[name], colour[f"{name}-bg"]) >= 4.5, name
    for name in (f"s{i}" for i in range(1, 9)):
        assert _contrast(colour[name], colour["paper"]) >= 3.0, name


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("<b>", "&lt;b&gt;"),
        ("T(g s, g a) = g T(s, a)", "T(g s, g a) = g T(s, a)"),
        ("g s_0 ~ s_0", "g s<sub>0</sub> ∼ s<sub>0</sub>"),
        ("rho_out(g) W", "ρ<sub>out</sub>(g) W"),
        ("0 <-> 1", "0 ↔ 1"),
        ("(o0) -> (-o0 + 0.5)", "(o<sub>0</sub>) → (−o<sub>0</sub> + 0.5)"),
        ("rot-90 of x10", "rot-90 of x<sub>10</sub>"),
    ],
)
def test_formulas_are_set_without_trusting_their_text(text: str, markup: str) -> None:
    assert str(formula(text)) == markup


@pytest.mark.parametrize("name", ["passing_run", "failing_run", "failing_network"])
def test_pages_are_as_agreed(name: str, request: pytest.FixtureRequest, gold: Callable[[str, str], None]) -> None:
    gold(f"{name}.html", html.render_run(request.getfixturevalue(name)))


def test_a_page_can_hold_nothing_but_the_counterexamples(failing_network: RunResult, passing_run: RunResult) -> None:
    page = Page(html.render_counterexamples(failing_network))
    assert "network_equivariance fails" in page.text
    assert "Layer by layer" not in page.text
    with pytest.raises(ValueError, match="got a run without any"):
        html.render_counterexamples(passing_run)
    with pytest.raises(ValueError, match="reward_invariance"):
        html.render_counterexamples(failing_network, "reward_invariance")


def test_a_part_of_a_run_does_not_change_its_verdict(failing_run: RunResult) -> None:
    text = html.render_counterexamples(failing_run, "transition_invariance")
    assert words.verdict_sentence(failing_run) in html_text.unescape(text)
