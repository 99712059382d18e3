"""How the agents were trained: settings, versions, and the command that repeats it."""

from __future__ import annotations

from symcheck_reports.curve_view import CurveView
from symcheck_reports.formatting import seconds
from symcheck_reports.templating import Section, section


def build(view: CurveView) -> Section | None:
    """The section, or None if nothing is known."""
    model = view.model
    facts = [("versions", ", ".join(f"{name} {version}" for name, version in model.versions.items()))]
    if model.duration_s is not None:
        facts.insert(0, ("wall time", f"{seconds(model.duration_s)} of training and evaluation, summed over runs"))
    facts = [(name, text) for name, text in facts if text]
    if not (model.settings or facts or model.command or model.notes):
        return None
    return section("settings", "settings", "How it was trained", model=model, facts=facts)
