"""The largest loss from violations: the difference between the optimal values of a step and its image."""

from __future__ import annotations

from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView


def build(run: RunView) -> Section | None:
    """The section, or None if no property states such a bound."""
    if not run.gaps:
        return None
    return section("value_gap", f"{run.anchor}-gap", "What the violations can cost", gaps=run.gaps)
