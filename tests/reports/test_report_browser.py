"""Every page in a real browser: no console message, no request, keyboard, sorting, dark, print, 360 pixels.

Run them with `pytest -m browser`. Debian's Chromium is driven over its debugging pipe, so that nothing but the browser
itself is needed; `SYMCHECK_BROWSER` names another binary. axe-core comes from npm into a temporary folder, once a run;
`SYMCHECK_AXE` names a copy of axe.min.js that is there already. A browser or npm that is missing fails them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symcheck.engine.results import RunResult
from symcheck_reports import html
from symcheck_reports.basis_model import BasisModel
from symcheck_reports.basis_page import render_basis
from symcheck_reports.curve_model import CurveModel
from symcheck_reports.curves import render_curves
from symcheck_reports.homomorphism_model import HomomorphismModel
from symcheck_reports.homomorphism_page import render_homomorphism

NPM = shutil.which("npm")
AXE_VERSION = "4.14.1"
BROWSER = os.environ.get("SYMCHECK_BROWSER") or shutil.which("chromium")
pytestmark = pytest.mark.browser
PAGES = (
    "passing_run",
    "failing_run",
    "approximate_run",
    "failing_network",
    "hostile_run",
    "several_runs",
    "curve_model",
    "basis_model",
    "homomorphism_model",
    "homomorphism_graph",
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


def _high(descriptor: int) -> int:
    """The same pipe end under a number that 3 and 4 cannot collide with."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(descriptor)
    return moved


class Browser:
    """One headless Chromium with one tab; commands of the Chrome DevTools Protocol over file descriptors 3 and 4."""

    def __init__(self, profile: Path) -> None:
        commands_in, self._commands = (_high(end) for end in os.pipe())
        self._answers, answers_out = (_high(end) for end in os.pipe())
        script = f'exec "$0" "$@" 3<&{commands_in} 4>&{answers_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands_in, answers_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._session = ""
        self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser closed its pipe"
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path) -> float:
        """Load a file; returns the milliseconds until its load event, as the page itself measured them."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 30
        while self.js("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return float(self.js("performance.timing.loadEventEnd - performance.timing.navigationStart"))

    def js(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, media: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def key(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


def _rendered(value: RunResult | list[RunResult] | CurveModel | BasisModel | HomomorphismModel) -> str:
    if isinstance(value, CurveModel):
        return render_curves(value)
    if isinstance(value, HomomorphismModel):
        return render_homomorphism(value)
    return render_basis(value) if isinstance(value, BasisModel) else html.render_run(value)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.fail("no page was opened: chromium is not installed; install it, or name it in SYMCHECK_BROWSER.")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def desktop(browser: Browser) -> Browser:
    browser.size(1280, 900)
    browser.media()
    return browser


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.html"
    path.write_text(_rendered(request.getfixturevalue(request.param)), encoding="utf-8")
    return path


def test_a_page_opens_without_a_console_message_or_a_request(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    desktop.js("1")
    noise = [
        e
        for e in desktop.events
        if e["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
    ]
    assert noise == []
    requested = {e["params"]["request"]["url"] for e in desktop.events if e["method"] == "Network.requestWillBeSent"}
    assert all(url == page.as_uri() or url.startswith("data:") for url in requested)


def test_the_style_is_applied_and_the_policy_refuses_foreign_scripts(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    assert desktop.js("getComputedStyle(document.querySelector('h1')).fontWeight") == "640"
    desktop.js(
        "window.hit = 0; const s = document.createElement('script'); "
        "s.textContent = 'window.hit = 1'; document.body.append(s)"
    )
    assert desktop.js("window.hit") == 0


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_sideways(browser: Browser, page: Path, width: int) -> None:
    browser.size(width, 800)
    browser.media()
    browser.open(page)
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.js("document.documentElement.scrollWidth") <= width
    # No column is squeezed to a character a line; the hostile page of 10,000-character names needs 60,000 pixels.
    assert browser.js("document.documentElement.scrollHeight") < 80_000


def test_figure_text_is_large_enough_on_a_phone(browser: Browser, page: Path) -> None:
    browser.size(360, 800)
    browser.media()
    browser.open(page)
    sizes = browser.js(
        "[...document.querySelectorAll('svg.figure')].map((s) => [s, s.getBoundingClientRect().width])"
        ".filter(([s, width]) => width > 0)"
        ".map(([s, width]) => parseFloat(getComputedStyle(s).fontSize) * width / s.viewBox.baseVal.width)"
    )
    assert all(size >= 9 for size in sizes)


def test_dark_and_print_change_the_colours(browser: Browser, page: Path) -> None:
    browser.size(1280, 900)
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.media(scheme="dark")
    browser.open(page)
    assert browser.js(paper) == "rgb(19, 21, 24)"
    browser.media(media="print", scheme="dark")
    assert browser.js(paper) == "rgb(255, 255, 255)"
    assert (
        browser.js("document.querySelector('nav') ? getComputedStyle(document.querySelector('nav')).display : 'none'")
        == "none"
    )


def test_a_keyboard_reaches_every_link_and_control(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    wanted = desktop.js("document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]').length")
    hidden = desktop.js(
        "[...document.querySelectorAll('details:not([open]) [tabindex=\"0\"], details:not([open]) button')].length"
    )
    reached = set()
    for _ in range(wanted + 3):
        desktop.key("Tab", 9)
        reached.add(desktop.js("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(reached) >= wanted - hidden
    assert desktop.js("document.querySelector('a.skip') !== null")


def test_a_table_sorts_by_a_click_and_back(desktop: Browser, failing_run: RunResult, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(html.render_run(failing_run), encoding="utf-8")
    desktop.open(path)
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


def test_two_thousand_checks_open_fast(desktop: Browser, many_runs: list[RunResult], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(html.render_run(many_runs * 2), encoding="utf-8")
    # The target is 1.5 s on two idle cores; measured 0.2 to 0.4 s there.
    assert desktop.open(path) < 1500


def test_every_page_prints(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    assert len(desktop.call("Page.printToPDF", printBackground=True)["data"]) > 10_000


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core; a run that cannot get it fails and says what to do."""
    given = os.environ.get("SYMCHECK_AXE")
    if given is not None:
        return Path(given).read_text(encoding="utf-8")
    remedy = "install npm, or name a copy of axe.min.js in SYMCHECK_AXE"
    if NPM is None:
        pytest.fail(f"accessibility was not checked: axe-core comes from npm, which is not installed; {remedy}.")
    folder = tmp_path_factory.mktemp("axe")
    command = [NPM, "install", f"axe-core@{AXE_VERSION}", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        pytest.fail(f"accessibility was not checked: npm could not fetch axe-core: {done.stderr[-400:]}; {remedy}.")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(desktop: Browser, page: Path, axe: str, scheme: str) -> None:
    desktop.media(scheme=scheme)
    desktop.open(page)
    desktop.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    desktop.js(axe + "; 0")
    desktop.js("axe.run().then((result) => { window.result = result; })")
    assert desktop.js("result.passes.length") > 10
    assert desktop.js("result.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))])") == []
