"""The pytest plugin: failed verifications get a section of their own, and a page with `--symcheck-html`.

Loaded in every pytest run of an environment that has symcheck installed, so it imports nothing heavy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from symcheck.api.report import Report

_FAILED_REPORTS = pytest.StashKey[list[tuple[str, "Report"]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--symcheck-html FILE`."""
    group = parser.getgroup("symcheck")
    group.addoption(
        "--symcheck-html", metavar="FILE", type=Path, help="write the reports of failed symmetry assertions to one page"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of failed reports, and refuse a page that could not be written at the end."""
    config.stash[_FAILED_REPORTS] = []
    page: Path | None = config.getoption("--symcheck-html")
    # Before the tests run, not after an hour.
    if page is not None and not page.parent.is_dir():
        raise pytest.UsageError(f"--symcheck-html: expected a file in a folder that exists, got {page}.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """Keep the report of a failed symmetry assertion."""
    outcome = yield
    report = getattr(call.excinfo.value, "report", None) if call.excinfo is not None else None
    # By name: importing the class would load symcheck in every test run.
    if report is not None and type(call.excinfo.value).__name__ == "SymmetryFailedError":  # type: ignore[union-attr]
        item.config.stash[_FAILED_REPORTS].append((item.nodeid, report))
    return outcome


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one section with what failed, and write the page."""
    failed = config.stash[_FAILED_REPORTS]
    if not failed:
        return
    terminalreporter.section("symcheck")
    for nodeid, report in failed:
        terminalreporter.write_line(nodeid)
        terminalreporter.write_line(report.to_text())
    page: Path | None = config.getoption("--symcheck-html")
    if page is not None:
        # Only here: the run has failed assertions of symcheck, so it is loaded already.
        from symcheck.api.report import Report

        Report([result for _, report in failed for result in report.results]).save_html(page)
        terminalreporter.write_line(f"written: {page}")
