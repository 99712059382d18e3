"""What every run of the tests shares: threads, garbage collection, compiled modules, and no deadline for examples."""

from __future__ import annotations

import compileall
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
PACKAGES = ("symcheck", "properties", "reports", "reference_agents")


def pytest_configure(config: pytest.Config) -> None:
    """Share the processor among workers, and compile the packages once for all processes that tests start."""
    # A busy machine takes longer than Hypothesis's 200 ms for an example, and nothing here is about time.
    settings.register_profile("symcheck", deadline=None)
    settings.load_profile("symcheck")
    if hasattr(config, "workerinput"):
        return
    workers = config.getoption("numprocesses", None)
    if isinstance(workers, int) and workers > 1:
        # Two workers with a thread for every core each would wait for each other most of the time.
        threads = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    if sys.dont_write_bytecode:
        # Python itself would compile every module again in every process.
        for package in PACKAGES:
            compileall.compile_dir(ROOT / package, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without looking for garbage: thousands of tests are made, and all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
