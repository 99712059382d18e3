"""The pytest plugin of mutation.py: records which test runs which line, and runs chosen tests in a given order.

Under `coverage run`, every line that a test runs is stored with the id of the test as its context.
"""

from __future__ import annotations

import json
import math
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import coverage
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """A limit, and two files: one for the seconds of each test, and one with the tests to run."""
    parser.addoption(
        "--record-seconds", type=Path, default=None, help="JSON file: seconds of each passed test; modules"
    )
    parser.addoption("--record-limit", type=float, default=math.inf, help="CPU seconds after which to stop")
    parser.addoption("--run-ids", type=Path, default=None, help="JSON file: tests or files to run, in this order")


def pytest_configure(config: pytest.Config) -> None:
    """Record only if requested."""
    if config.getoption("--record-seconds") is not None:
        config.pluginmanager.register(
            Recorder(config.getoption("--record-seconds"), config.getoption("--record-limit"))
        )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the chosen tests, in the chosen order."""
    if config.getoption("--run-ids") is not None:
        chosen = {name: i for i, name in enumerate(json.loads(config.getoption("--run-ids").read_text()))}
        places = {item: chosen.get(item.nodeid, chosen.get(item.nodeid.split("::")[0])) for item in items}
        items[:] = sorted((item for item in items if places[item] is not None), key=places.__getitem__)


class Recorder:
    """Stores the context of each line and the CPU seconds of each test that passes."""

    def __init__(self, file: Path, limit: float) -> None:
        self._file = file
        self._limit = limit
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Lines run from now on belong to this test, including its fixtures."""
        measuring = coverage.Coverage.current()
        if measuring is not None:
            measuring.switch_context(item.nodeid)
        started = sum(os.times()[:4])  # CPU seconds, including children, because they do not depend on other load
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = sum(os.times()[:4]) - started
            if sum(self._seconds.values()) > self._limit:
                item.session.shouldstop = "enough tests are measured"
            if measuring is not None:
                measuring.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record failures and skips in set-up, call or tear-down."""
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Tests that fail or skip without any mutant cannot detect one. Modules outside the tree do not change."""
        passed = {name: round(seconds, 4) for name, seconds in self._seconds.items() if name not in self._failed}
        outside = [name for name, module in list(sys.modules.items()) if _is_installed(module)]
        self._file.write_text(json.dumps({"seconds": passed, "modules": outside}), encoding="utf-8")


def _is_installed(module: ModuleType) -> bool:
    """Whether a module belongs to Python or to an installed package."""
    file = str(getattr(module, "__file__", None))
    return "site-packages" in file or file.startswith(sysconfig.get_path("stdlib"))
