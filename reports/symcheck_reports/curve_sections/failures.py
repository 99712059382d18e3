"""Lists every run that stopped early."""

from __future__ import annotations

from symcheck_reports.curve_view import CurveView
from symcheck_reports.formatting import count, rate_text
from symcheck_reports.templating import Section, section


def build(view: CurveView) -> Section | None:
    """The section, or None if every run was finished."""
    rows = [
        (network.name, rate_text(network.learning_rate), failed.seed, count(failed.env_steps), failed.reason)
        for network in view.model.networks
        for failed in network.failed_runs
    ]
    return section("failed_runs", "failed-runs", "Runs that stopped early", rows=rows) if rows else None
