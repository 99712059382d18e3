"""The index page over a folder of reports: every verdict in one table, each linked to its page.

`read_folder` collects the JSON reports below a folder, `render_index` turns them into a page to be written into that
folder. A file that is not a report is passed over; one that looks like a report and cannot be read is listed as such.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from symcheck.engine.results import SCHEMA, overall_verdict
from symcheck.engine.verdict import Verdict
from symcheck_reports.formatting import count, one_line, plural
from symcheck_reports.templating import PageHead, document, section

INDEX_NAME = "index.html"
_TITLE = re.compile(r"<title>([^<]*)</title>")
_HEAD_CHARACTERS = 4000
_VERDICTS: tuple[Verdict, ...] = ("failed", "undecided", "passed", "proved")


@dataclass(frozen=True)
class IndexEntry:
    """One run found in a folder.

    Attributes:
        target: the environment or network.
        symmetry: the symmetry's name.
        verdict: the run's verdict.
        kind: "env" or "net".
        failing: the properties that failed.
        properties: number of properties.
        json_link: address of the JSON file, relative to the folder.
        page_link: address of its page; "" where there is none.
    """

    target: str
    symmetry: str
    verdict: Verdict
    kind: str
    failing: tuple[str, ...]
    properties: int
    json_link: str
    page_link: str


@dataclass(frozen=True)
class SearchEntry:
    """One search for symmetries found in a folder: it claims nothing, so it is counted with no verdict.

    Attributes:
        target: the environment.
        found: the group, or how far the search says that there is none.
        verdict: of the group found, or "undecided"; "" where nothing was found and nothing is open.
        json_link: address of the JSON file, relative to the folder.
        page_link: address of its page; "" where there is none.
    """

    target: str
    found: str
    verdict: str
    json_link: str
    page_link: str


@dataclass(frozen=True)
class FolderIndex:
    """What a folder holds.

    Attributes:
        name: the folder's name.
        entries: the runs, failed ones first.
        unreadable: (file, reason) of reports that could not be read.
        searches: the searches for symmetries.
        other_pages: (file, title) of HTML files without a JSON report, for instance learning curves.
    """

    name: str
    entries: tuple[IndexEntry, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    other_pages: tuple[tuple[str, str], ...] = ()
    searches: tuple[SearchEntry, ...] = ()


def read_folder(folder: Path) -> FolderIndex:
    """Collect the reports below a folder.

    Args:
        folder: searched with its sub-folders, in order of the names.

    Returns:
        The index; empty where there is no report.
    """
    entries: list[IndexEntry] = []
    searches: list[SearchEntry] = []
    unreadable: list[tuple[str, str]] = []
    paged: set[Path] = set()
    for path in sorted(folder.rglob("*.json")):
        try:
            reports = _reports(path)
        except ValueError as error:
            unreadable.append((path.relative_to(folder).as_posix(), str(error)))
            continue
        page = path.with_suffix(".html")
        if reports and page.is_file():
            paged.add(page)
        links = (_link(path, folder), _link(page, folder) if page in paged else "")
        searches += [_search(report, *links) for report in reports if report.get("kind") == "discovery"]
        entries += [_entry(report, *links) for report in reports if report.get("kind") != "discovery"]
    entries.sort(key=lambda entry: _VERDICTS.index(entry.verdict))
    pages = (p for p in sorted(folder.rglob("*.html")) if p not in paged and p != folder / INDEX_NAME)
    others = tuple((p.relative_to(folder).as_posix(), _title(p)) for p in pages)
    return FolderIndex(folder.resolve().name, tuple(entries), tuple(unreadable), others, tuple(searches))


def _title(page: Path) -> str:
    """The title that a page gives itself; "" where it has none near its beginning."""
    try:
        with page.open(encoding="utf-8", errors="replace") as stream:
            found = _TITLE.search(stream.read(_HEAD_CHARACTERS))
    except OSError:
        return ""
    return html.unescape(found.group(1)) if found else ""


def _reports(path: Path) -> list[dict[str, Any]]:
    """The runs of one file; none where it is another kind of JSON.

    Raises:
        ValueError: it says it is a report, or cannot be parsed, and is not one.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"not readable as JSON: {error}") from error
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("symcheck/"):
        return []
    if data["schema"] != SCHEMA:
        raise ValueError(f"expected schema {SCHEMA!r}, got {data['schema']!r}")
    reports = data.get("reports", [data])
    for report in reports if isinstance(reports, list) else [None]:
        if not isinstance(report, dict) or report.get("verdict") not in _VERDICTS:
            raise ValueError("expected runs with a verdict, got something else")
    return list(reports)


def _entry(report: dict[str, Any], json_link: str, page_link: str) -> IndexEntry:
    listed = report.get("properties")
    properties = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
    return IndexEntry(
        target=str(report.get("target", "")),
        symmetry=str(report.get("symmetry", "")),
        verdict=report["verdict"],
        kind=str(report.get("kind", "")),
        failing=tuple(str(p.get("name", "")) for p in properties if p.get("verdict") == "failed"),
        properties=len(properties),
        json_link=json_link,
        page_link=page_link,
    )


def _search(report: dict[str, Any], json_link: str, page_link: str) -> SearchEntry:
    group = report.get("group")
    name, order = (group.get("name", ""), group.get("order", 1)) if isinstance(group, dict) else ("", 1)
    verdict = str(report["verdict"])
    if order != 1:
        found = f"{name} (order {order})"
    elif verdict == "undecided":
        found = "none verified, and some candidates are undecided or untried"
    elif report.get("route") == "table":
        found = "none: the table was searched completely"
    else:
        found = "none of the forms searched holds"
    shown = verdict if order != 1 or verdict == "undecided" else ""
    return SearchEntry(str(report.get("target", "")), found, shown, json_link, page_link)


def _link(path: Path, folder: Path) -> str:
    """A relative address that no name can turn into another scheme or host."""
    return "./" + quote(path.relative_to(folder).as_posix())


def render_index(index: FolderIndex) -> str:
    """The page.

    Args:
        index: what `read_folder` found.

    Returns:
        A complete HTML document whose links are relative to the folder.

    Example:
        >>> render_index(FolderIndex("reports", ())).count("No JSON report lies in this folder")
        1
    """
    tally = Counter(entry.verdict for entry in index.entries)
    counted = ", ".join(f"{count(tally[verdict])} {verdict}" for verdict in _VERDICTS if tally[verdict])
    entries = plural(len(index.entries), "run")
    sentence = f"{one_line(index.name, 80)}: {entries}, {counted}." if index.entries else "No report was found."
    if not index.entries and (pages := len(index.other_pages) + len(index.searches)):
        sentence = f"{one_line(index.name, 80)}: {plural(pages, 'page')}."
    verdict = overall_verdict(tally) if index.entries else None
    lead = f"{plural(len(index.unreadable), 'file')} could not be read." if index.unreadable else ""
    others = [(title or name, name, "./" + quote(name)) for name, title in index.other_pages]
    body = section("index", "index", "Reports", index=index, others=others)
    return document(PageHead("Index of reports", sentence, lead, verdict), [body])
