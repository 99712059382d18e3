"""The table of properties: what each claims, its verdict, and on how much evidence."""

from __future__ import annotations

from symcheck_reports.model import RunView
from symcheck_reports.templating import Section, section


def build(run: RunView) -> Section | None:
    """The section; with no property it says that nothing was checked."""
    regions = list(dict.fromkeys(p.region for p in run.properties if p.region))
    shared = regions[0] if len(regions) == 1 else ""
    return section("properties", f"{run.anchor}-properties", "What was found", run=run, shared_region=shared)
