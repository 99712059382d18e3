"""Every single run, in a section that opens on demand: one figure per network, all on the same scales."""

from __future__ import annotations

from symcheck_reports import curve_figures
from symcheck_reports.curve_view import CurveView
from symcheck_reports.templating import Section, section


def build(view: CurveView) -> Section | None:
    """The section, or None if no run was evaluated."""
    networks = [n for n in view.networks if len(n.drawn.curve.env_steps)]
    if not networks:
        return None
    frame_of = [n.drawn.curve for n in networks]
    figures = [
        (
            n.network.name,
            curve_figures.runs(
                [c.env_steps for c in n.network.curves],
                [c.returns for c in n.network.curves],
                n.drawn,
                frame_of,
                view.model.threshold,
                f"seeds-{index}",
            ),
        )
        for index, n in enumerate(networks)
    ]
    return section("seeds", "seeds", "Single runs", figures=figures)
