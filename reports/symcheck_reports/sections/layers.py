"""A network's chain of layers: the action on the output of each, and where the chain breaks."""

from __future__ import annotations

from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView


def build(run: RunView) -> Section | None:
    """The section, or None for environments and for networks whose layers were not traced."""
    if not run.layers:
        return None
    broken = next((layer.name for layer in run.layers if layer.verdict == "failed"), "")
    return section("layers", f"{run.anchor}-layers", "Layer by layer", run=run, broken=broken)
