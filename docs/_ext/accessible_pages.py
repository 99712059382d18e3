"""Mend what axe finds in the theme: headings without a level, asides without a name, boxes that no key can scroll."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

MENDED = (
    # Captions of the sidebar are headings without a level.
    (re.compile(r'<p class="caption" role="heading">'), '<p class="caption" role="heading" aria-level="2">'),
    # Two asides on a page are told apart by their names alone.
    (re.compile(r'<aside class="sidebar-drawer">'), '<aside class="sidebar-drawer" aria-label="Pages">'),
    (re.compile(r'<aside class="toc-drawer">'), '<aside class="toc-drawer" aria-label="This page">'),
    # What scrolls sideways must be reached by keyboard.
    (re.compile(r"<pre>"), '<pre tabindex="0">'),
    (re.compile(r'<div class="table-wrapper([^"]*)">'), r'<div class="table-wrapper\1" tabindex="0">'),
    (re.compile(r'<div id="search-results"></div>'), '<h1>Search</h1>\n<div id="search-results"></div>'),
)


def mend_pages(app: Any, failure: Exception | None) -> None:
    """Rewrite the pages of a finished HTML build in place."""
    if failure is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        mended = text
        for pattern, replacement in MENDED:
            mended = pattern.sub(replacement, mended)
        if mended != text:
            path.write_text(mended, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Run once everything is written."""
    app.connect("build-finished", mend_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
