"""Reads the title, kind and verdict of an HTML page without running it.

Pages carry kind and verdict as `<meta name="symcheck:kind">` and `<meta name="symcheck:verdict">` in their head. In
older pages the verdict is a class of the header, below the words that give the kind of page.
"""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal, get_args

from symcheck.verdict import Verdict

PageKind = Literal["verification", "discovery", "index", "page"]
# Number of bytes to read: the style sheet precedes the header, and pictures of counterexamples follow long after it.
_READ_CHARACTERS = 200_000
_CHUNK = 8_192
_VERDICTS: tuple[str, ...] = get_args(Verdict)
# The first words of older pages, whose head does not state the kind.
_KIND_BY_EYEBROW: dict[str, PageKind] = {
    "Symmetry of an environment": "verification",
    "Equivariance of a network": "verification",
    "Symmetry checks": "verification",
    "Discovery of symmetries": "discovery",
    "Index of reports": "index",
    "Intertwiner bases": "page",
    "MDP homomorphism": "page",
    "Learning curves": "page",
}


@dataclass(frozen=True)
class PageFacts:
    """The facts that a page states.

    Attributes:
        title: "" if it has none.
        kind: the kind of symcheck page; None for other pages.
        verdict: the verdict of a verification, a search or an index; None if the page has none.
    """

    title: str = ""
    kind: PageKind | None = None
    verdict: Verdict | None = None


def read_page(path: Path) -> PageFacts:
    """Read the beginning of a page.

    Args:
        path: an HTML file, written by symcheck or not.

    Returns:
        Its facts; empty if it cannot be opened.
    """
    parser = _HeadParser()
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for _ in range(_READ_CHARACTERS // _CHUNK):
                chunk = stream.read(_CHUNK)
                if not chunk or parser.is_past_header:
                    break
                parser.feed(chunk)
    except OSError:
        return PageFacts()
    return parser.facts()


class _HeadParser(HTMLParser):
    """Collects title, metas, the header's classes and its first words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.is_past_header = False
        self._metas: dict[str, str] = {}
        self._classes: list[str] = []
        self._texts = {"title": "", "eyebrow": ""}
        self._reading = ""  # the text that is being collected

    def facts(self) -> PageFacts:
        title, eyebrow = (" ".join(self._texts[name].split()) for name in ("title", "eyebrow"))
        kind = self._metas.get("symcheck:kind")
        if kind in get_args(PageKind):
            return PageFacts(title, kind, _as_verdict(self._metas.get("symcheck:verdict")))  # type: ignore[arg-type]
        older = _KIND_BY_EYEBROW.get(eyebrow)
        if older is None:
            return PageFacts(title)
        marked = (name.removeprefix("is-") for name in self._classes if name.startswith("is-"))
        return PageFacts(title, older, _as_verdict(next(marked, None)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "meta":
            # Only the first one counts: a later one may be part of external text.
            self._metas.setdefault(values.get("name", ""), values.get("content", ""))
        elif tag == "title":
            self._reading = "" if self._texts["title"] else "title"
        elif tag == "header":
            self._classes = values.get("class", "").split()
        elif tag == "p" and "eyebrow" in values.get("class", "").split():
            self._reading = "eyebrow"
        else:
            self._reading = ""  # the verdict's word inside the eyebrow is not part of its text

    def handle_endtag(self, tag: str) -> None:
        self._reading = ""
        self.is_past_header = self.is_past_header or tag == "header"

    def handle_data(self, data: str) -> None:
        if self._reading:
            self._texts[self._reading] += data


def _as_verdict(word: str | None) -> Verdict | None:
    return word if word in _VERDICTS else None  # type: ignore[return-value]
