"""The learning curves: medians with their bands, and the numbers behind them."""

from __future__ import annotations

import math

from symcheck_reports import curve_figures
from symcheck_reports.curve_view import CurveView
from symcheck_reports.formatting import count, number, plural, rate_text
from symcheck_reports.templating import Section, section

# Rows of the table of numbers: enough to redraw the figure by hand.
MAX_ROWS = 16


def build(view: CurveView) -> Section | None:
    """The section, or None if no run was evaluated."""
    networks = [n for n in view.networks if len(n.drawn.curve.env_steps)]
    if not networks:
        return None
    drawn = [n.drawn for n in networks]
    legend = [
        (
            curve_figures.legend_mark(n.drawn.style),
            n.network.name,
            rate_text(n.network.learning_rate),
            plural(len(n.network.curves), "run"),
        )
        for n in networks
    ]
    return section(
        "curves",
        "curves",
        "Learning curves",
        figure=curve_figures.learning_curves(drawn, view.model.threshold, "curves-figure", view.model.task),
        legend=legend,
        evaluation=view.model.evaluation,
        names=[d.name for d in drawn],
        rows=_step_rows(drawn),
        stopped=_stopped(sum(len(n.network.failed_runs) for n in networks)) if math.isfinite(view.floor) else "",
        floor=number(view.floor),
    )


def _stopped(runs: int) -> str:
    return (
        f"{plural(runs, 'run')} stopped early; from there {'it counts' if runs == 1 else 'they count'}" if runs else ""
    )


def _step_rows(drawn: list[curve_figures.Drawn]) -> list[tuple[str, list[str]]]:
    steps = sorted({int(s) for d in drawn for s in d.curve.env_steps})
    kept = steps[:: max(1, -(-len(steps) // MAX_ROWS))]
    kept = kept if kept[-1] == steps[-1] else [*kept, steps[-1]]
    return [(count(step), [_cell(d, step) for d in drawn]) for step in kept]


def _cell(drawn: curve_figures.Drawn, step: int) -> str:
    places = [i for i, s in enumerate(drawn.curve.env_steps) if int(s) == step]
    if not places:
        return "–"
    low, median, high = (float(c[places[0]]) for c in (drawn.curve.low, drawn.curve.median, drawn.curve.high))
    return f"{number(median, 4)} ({number(low, 4)} to {number(high, 4)})"
