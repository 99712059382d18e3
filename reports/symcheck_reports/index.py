"""The index page over a folder of reports: every verdict in one table, each linked to its page.

`read_folder` collects the JSON reports below a folder, and `render_index` converts them to a page for that folder. A
page without a JSON report is counted by its own verdict, so the index never looks better than a page below it. A file
that is not a report is ignored; a file that looks like a report but cannot be read is listed as unreadable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from symcheck.documents import UnreadableError, read_json
from symcheck.engine.published import READABLE, upgrade
from symcheck.engine.results import overall_verdict
from symcheck.verdict import Verdict
from symcheck_reports.formatting import count, one_line, plural
from symcheck_reports.page_verdict import PageFacts, read_page
from symcheck_reports.templating import PageHead, document, section

INDEX_NAME = "index.html"
_VERDICTS: tuple[Verdict, ...] = ("failed", "undecided", "passed", "proved")


@dataclass(frozen=True)
class IndexEntry:
    """One run found in a folder.

    Attributes:
        target: the environment or network.
        symmetry: the symmetry's name.
        verdict: the run's verdict.
        approximate: whether a property that did not fail holds only approximately.
        kind: "env", "net", "mirror", "policy" or "game".
        failing: the properties that failed.
        properties: number of properties.
        json_link: address of the JSON file, relative to the folder.
        page_link: address of its page; "" if there is none.
    """

    target: str
    symmetry: str
    verdict: Verdict
    approximate: bool
    kind: str
    failing: tuple[str, ...]
    properties: int
    json_link: str
    page_link: str


@dataclass(frozen=True)
class SearchEntry:
    """One search for symmetries found in a folder; a search makes no claim, so its verdict is not counted.

    Attributes:
        target: the environment.
        found: the group, or a phrase that says for which maps there is none.
        verdict: the verdict of the group found, or "undecided"; "" if nothing was found and nothing is open.
        json_link: address of the JSON file, relative to the folder.
        page_link: address of its page; "" if there is none.
    """

    target: str
    found: str
    verdict: str
    json_link: str
    page_link: str


@dataclass(frozen=True)
class PageEntry:
    """A page of a verification without a JSON report.

    Attributes:
        name: the file, relative to the folder.
        title: the title of the page.
        verdict: the verdict stated on the page.
    """

    name: str
    title: str
    verdict: Verdict


@dataclass(frozen=True)
class FolderIndex:
    """The contents of a folder.

    Attributes:
        name: the folder's name.
        entries: the runs, failed ones first.
        unreadable: (file, reason) of reports that could not be read.
        searches: the searches for symmetries.
        other_pages: (file, title) of HTML files that verify nothing, for instance learning curves.
        pages: pages of verifications without a JSON report, failed ones first.
        not_counted: the number of other pages that may contain an unreadable verdict.
    """

    name: str
    entries: tuple[IndexEntry, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    other_pages: tuple[tuple[str, str], ...] = ()
    searches: tuple[SearchEntry, ...] = ()
    pages: tuple[PageEntry, ...] = ()
    not_counted: int = 0


def read_folder(folder: Path) -> FolderIndex:
    """Collect the reports below a folder.

    Args:
        folder: searched with its sub-folders, in order of the names.

    Returns:
        The index; empty if there is no report.
    """
    entries: list[IndexEntry] = []
    searches: list[SearchEntry] = []
    unreadable: list[tuple[str, str]] = []
    pages = {path: read_page(path) for path in sorted(folder.rglob("*.html")) if path != folder / INDEX_NAME}
    for path in sorted(folder.rglob("*.json")):
        try:
            reports = _read_reports(path)
        except ValueError as error:
            unreadable.append((path.relative_to(folder).as_posix(), str(error)))
            continue
        page = path.with_suffix(".html")
        has_page = page in pages and _is_page_of(pages[page], reports)
        links = (_link(path, folder), _link(page, folder) if has_page else "")
        if has_page:
            del pages[page]
        searches += [_search(report, *links) for report in reports if report.get("kind") == "discovery"]
        entries += [_run_entry(report, *links) for report in reports if report.get("kind") != "discovery"]
    entries.sort(key=lambda entry: _VERDICTS.index(entry.verdict))
    names = {path: path.relative_to(folder).as_posix() for path in pages}
    counted = [
        PageEntry(names[path], facts.title, facts.verdict)
        for path, facts in pages.items()
        if facts.kind == "verification" and facts.verdict is not None
    ]
    counted.sort(key=lambda page: _VERDICTS.index(page.verdict))
    others = {path: facts for path, facts in pages.items() if names[path] not in {page.name for page in counted}}
    return FolderIndex(
        folder.resolve().name,
        tuple(entries),
        tuple(unreadable),
        tuple((names[path], facts.title) for path, facts in others.items()),
        tuple(searches),
        tuple(counted),
        # Among symcheck's pages, only verifications have a verdict to count.
        sum(facts.kind in (None, "verification") for facts in others.values()),
    )


def _is_page_of(page: PageFacts, reports: Sequence[dict[str, Any]]) -> bool:
    """Whether a page next to a JSON report shows that report.

    A different verdict means that it is from an older run.
    """
    if not reports:
        return False
    return page.kind != "verification" or page.verdict == overall_verdict(report["verdict"] for report in reports)


def _read_reports(path: Path) -> list[dict[str, Any]]:
    """The runs of one file; empty if it is another kind of JSON.

    Raises:
        ValueError: the file cannot be parsed, or claims to be a report and is not one.
    """
    try:
        data = read_json(path)
    except (OSError, UnreadableError) as error:
        raise ValueError(f"not readable as JSON: {error}") from error
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("symcheck/"):
        return []
    if data["schema"] not in READABLE:
        raise ValueError(f"expected schema {' or '.join(map(repr, READABLE))}, got {data['schema']!r}")
    data = upgrade(data)
    reports = data.get("reports", [data])
    for report in reports if isinstance(reports, list) else [None]:
        if not isinstance(report, dict) or report.get("verdict") not in _VERDICTS:
            raise ValueError("expected runs with a verdict, got something else")
    return list(reports)


def _run_entry(report: dict[str, Any], json_link: str, page_link: str) -> IndexEntry:
    listed = report.get("properties")
    properties = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
    return IndexEntry(
        target=str(report.get("target", "")),
        symmetry=str(report.get("symmetry", "")),
        verdict=report["verdict"],
        approximate=report.get("approximate") is True,
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
        result = f"{name} (order {order})"
    elif verdict == "undecided":
        result = "none verified, and some candidates are undecided or untried"
    elif report.get("route") == "table":
        result = "none: the table was searched completely"
    else:
        result = "none of the forms searched holds"
    shown = verdict if order != 1 or verdict == "undecided" else ""
    return SearchEntry(str(report.get("target", "")), result, shown, json_link, page_link)


def _link(path: Path, folder: Path) -> str:
    """A relative address, escaped so that no file name can introduce another scheme or host."""
    return "./" + quote(path.relative_to(folder).as_posix())


def render_index(index: FolderIndex) -> str:
    """The page.

    Args:
        index: the result of `read_folder`.

    Returns:
        A complete HTML document whose links are relative to the folder.

    Example:
        >>> render_index(FolderIndex("reports", ())).count("This folder contains no JSON report")
        1
    """
    tally = Counter([*(entry.verdict for entry in index.entries), *(page.verdict for page in index.pages)])
    counted = ", ".join(f"{count(tally[verdict])} {verdict}" for verdict in _VERDICTS if tally[verdict])
    amounts = ((len(index.entries), "run"), (len(index.pages), "page without data", "pages without data"))
    parts = " and ".join(plural(*amount) for amount in amounts if amount[0])
    name = one_line(index.name, 80)
    sentence = f"{name}: {parts}, {counted}." if tally else "No report was found."
    if not tally and (unjudged := len(index.other_pages) + len(index.searches)):
        sentence = f"{name}: {plural(unjudged, 'page')}."
    verdict = overall_verdict(tally) if tally else None
    others = [(title or name, name, "./" + quote(name)) for name, title in index.other_pages]
    pages = [(page.title or page.name, page.name, "./" + quote(page.name), page.verdict) for page in index.pages]
    body = section("index", "index", "Reports", index=index, others=others, pages=pages)
    return document(PageHead("Index of reports", sentence, _uncounted_sentence(index), verdict, kind="index"), [body])


def _uncounted_sentence(index: FolderIndex) -> str:
    """A sentence on the scope of the verdict above."""
    parts = [f"{plural(len(index.unreadable), 'file')} could not be read."] if index.unreadable else []
    if index.not_counted:
        verb, its = ("is", "its") if index.not_counted == 1 else ("are", "their")
        parts.append(f"{plural(index.not_counted, 'page')} {verb} not counted: {its} verdict cannot be read.")
    return " ".join(parts)
