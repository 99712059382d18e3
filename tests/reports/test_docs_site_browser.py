"""The documentation as a site in a real browser: every page without an accessibility violation or a console message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from browser_tab import Browser

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as CI builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    return folder


@pytest.mark.timeout(300)
def test_axe_finds_no_violation_on_any_page_of_the_site(browser: Browser, site: Path, axe: str) -> None:
    pages = sorted(path for path in site.rglob("*.html") if not {"_static", "_modules"} & set(path.parts))
    assert len(pages) > 40
    browser.size(360, 900)  # the narrowest screen: what scrolls sideways anywhere scrolls here
    browser.media()
    violations = {}
    for page in pages:
        browser.open(page)
        browser.js(axe + "; 0")
        browser.js("axe.run().then((result) => { window.result = result; })")
        details = browser.js("result.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 120))])")
        if details:
            violations[page.relative_to(site).as_posix()] = details
    assert violations == {}
