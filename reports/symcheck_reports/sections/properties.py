"""The table of properties: each claim, its verdict and the amount of evidence."""

from __future__ import annotations

from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView


def build(run: RunView) -> Section | None:
    """The section; without properties it says that nothing was checked."""
    regions = list(dict.fromkeys(p.region for p in run.properties if p.region and p.region not in run.noted_regions))
    title = "What was found"
    return section("properties", f"{run.anchor}-properties", title, run=run, regions=regions)
