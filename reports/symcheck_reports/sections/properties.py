"""The table of properties: what each claims, its verdict, and on how much evidence."""

from __future__ import annotations

from symcheck_reports.model import RunView
from symcheck_reports.templating import Section, section


def build(run: RunView) -> Section | None:
    """The section; with no property it says that nothing was checked."""
    return section("properties", f"{run.anchor}-properties", "What was found", run=run)
