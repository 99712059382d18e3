"""Sensitivity to the learning rate: the mean return of each network at every rate that was trained."""

from __future__ import annotations

import numpy as np

from symcheck_reports import curve_figures
from symcheck_reports import curve_statistics as statistics
from symcheck_reports.curve_model import NetworkCurves
from symcheck_reports.curve_view import CurveView, steps_text
from symcheck_reports.formatting import number, rate_text
from symcheck_reports.templating import Section, section


def build(view: CurveView) -> Section | None:
    """The section, or None if every network has one learning rate only."""
    by_name: dict[str, list[NetworkCurves]] = {}
    for network in view.model.networks:
        by_name.setdefault(network.name, []).append(network)
    if all(len(found) < 2 for found in by_name.values()):
        return None
    styles = {n.network.name: n.drawn.style for n in view.networks}
    series = []
    for index, (name, found) in enumerate(by_name.items()):
        spreads = [
            (n.learning_rate, _rate_quartiles(n, view.floor)) for n in sorted(found, key=lambda n: n.learning_rate)
        ]
        points = [(rate, *spread) for rate, spread in spreads if spread is not None and rate > 0]
        series.append((name, styles.get(name, curve_figures.style(index)), points))
    drawn = [entry for entry in series if entry[2]]
    if not drawn:
        return None
    rows = [_rate_row(n, view) for found in by_name.values() for n in sorted(found, key=lambda n: n.learning_rate)]
    return section(
        "rates",
        "rates",
        "Sensitivity to the learning rate",
        figure=curve_figures.sensitivity(drawn, "rates-figure", "Mean return over training"),
        legend=[(curve_figures.legend_mark(classes), name) for name, classes, _ in drawn],
        rows=rows,
        threshold="" if view.model.threshold is None else number(view.model.threshold),
    )


def _rate_quartiles(network: NetworkCurves, floor: float) -> tuple[float, float, float] | None:
    """25%, 50% and 75% quantile of the mean return over runs; None if no run was evaluated."""
    scores = statistics.mean_return(network, floor)
    if not len(scores):
        return None
    low, median, high = np.quantile(scores, (0.25, 0.5, 0.75))
    return float(low), float(median), float(high)


def _rate_row(network: NetworkCurves, view: CurveView) -> tuple[str, str, str, str, str, bool]:
    spread = _rate_quartiles(network, view.floor)
    written, reached = "–", "–"
    if spread is not None:
        low, median, high = (number(value, 4) for value in spread)
        written = f"{median} ({low} to {high})"
    if view.model.threshold is not None and len(network.curves):
        steps = statistics.median_steps(statistics.steps_to_threshold(network, view.model.threshold))
        reached = steps_text(steps.value, view.last_step)
    return network.name, rate_text(network.learning_rate), str(len(network.curves)), written, reached, network.chosen
