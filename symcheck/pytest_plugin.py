"""The pytest plugin: a section for failed verifications, and a page with `--symcheck-html`.

The report is printed in that section only; the traceback names the failed properties. The result of a test is attached
to its pytest report, also in the workers of xdist. The plugin is loaded in every pytest run of an environment in which
symcheck is installed, so it imports no heavy packages.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from symcheck.api.report import Report

_FAILED = pytest.StashKey[list[tuple[str, str, str]]]()  # node id, report as text, and its results pickled for the page
_ATTRIBUTE = "symcheck"  # key in a pytest report; xdist transfers plain types only


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--symcheck-html FILE`."""
    group = parser.getgroup("symcheck")
    group.addoption(
        "--symcheck-html", metavar="FILE", type=Path, help="write the reports of failed symmetry assertions to one page"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of failed reports, and reject a page that could not be written at the end."""
    config.stash[_FAILED] = []
    config.pluginmanager.register(_Collector(config))
    page: Path | None = config.getoption("--symcheck-html")
    # Check this before the tests run, not after an hour.
    if page is not None and not page.parent.is_dir():
        raise pytest.UsageError(f"--symcheck-html: expected a file in an existing folder, got {page}.")


class _Collector:
    """Collects the reports of all tests, including those from workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the report of a failed symmetry assertion."""
        found = getattr(report, _ATTRIBUTE, None)
        if found is not None:
            self._config.stash[_FAILED].append((report.nodeid, found["text"], found["results"]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """Move the report of a failed symmetry assertion from the traceback to its section."""
    error = call.excinfo.value if call.excinfo is not None else None
    report = getattr(error, "report", None)
    # By name: importing the class would load symcheck in every test run.
    if report is None or error is None or type(error).__name__ != "SymmetryFailedError":
        return (yield)
    with _shortened(error, report):
        outcome = yield
    setattr(outcome, _ATTRIBUTE, {"text": report.to_text(), "results": _pack(report)})
    return outcome


@contextmanager
def _shortened(error: BaseException, report: Report) -> Iterator[None]:
    """While the traceback is built, reduce the error's message to one line."""
    whole = error.args
    names = [item.name for item in report.properties if item.verdict not in ("proved", "passed")]
    error.args = (f"symmetry {report.verdict}: {', '.join(names)}; see the report in section symcheck",)
    try:
        yield
    finally:
        error.args = whole


def _pack(report: Report) -> str:
    try:
        return base64.b64encode(pickle.dumps(report.results)).decode()
    except Exception:  # a user's object that cannot be pickled; the text is still available
        return ""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one section with the failures, and write the page."""
    failed = config.stash[_FAILED]
    if not failed:
        return
    terminalreporter.section("symcheck")
    for nodeid, text, _ in failed:
        terminalreporter.write_line(nodeid)
        terminalreporter.write_line(text)
    page: Path | None = config.getoption("--symcheck-html")
    packed = [results for *_, results in failed if results]
    if page is not None and packed:
        # Imported only here: assertions of symcheck have failed, so it is already loaded.
        from symcheck.api.report import Report

        # Safe to unpickle: written by this plugin, in this process or in one of its workers.
        Report([run for results in packed for run in pickle.loads(base64.b64decode(results))]).save_html(page)
        terminalreporter.write_line(f"written: {page}")
