"""The table of properties: what each claims, its verdict, and on how much evidence."""

from __future__ import annotations

from symcheck_reports.model import RunView
from symcheck_reports.templating import Section, section


def build(run: RunView) -> Section | None:
    """The section; with no property it says that nothing was checked."""
    said = [text for _, text in run.shared]
    found = dict.fromkeys(p.region for p in run.properties if p.region)
    regions = [region for region in found if not any(region in text for text in said)]
    title = "What was found"
    return section("properties", f"{run.anchor}-properties", title, run=run, regions=regions)
