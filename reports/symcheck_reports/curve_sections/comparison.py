"""Compares the networks: steps to the threshold, returns, and the verdict on each network's claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from symcheck_reports import curve_statistics as statistics
from symcheck_reports.curve_view import CurveView, NetworkView, estimate_text, steps_text
from symcheck_reports.formatting import count, number, plural, rate_text
from symcheck_reports.templating import Section, section


@dataclass(frozen=True)
class Row:
    """One network of the table, as text."""

    name: str
    rate: str
    parameters: str
    runs: str
    median_curve: str
    steps: str
    steps_key: float
    interval: str
    reached: str
    final: str
    mean: str
    improvement: str
    verdict: str
    verdict_detail: str
    ran: bool


def build(view: CurveView) -> Section | None:
    """The section, or None without networks."""
    if not view.networks:
        return None
    reference = view.networks[0]
    rows = [_network_row(n, reference, view) for n in view.networks]
    threshold = "" if view.model.threshold is None else number(view.model.threshold)
    return section(
        "comparison",
        "comparison",
        "The networks side by side",
        rows=rows,
        threshold=threshold,
        reference=reference.network.name,
        last=count(view.last_step),
        resamples=count(statistics.RESAMPLES),
        least=statistics.LEAST_RUNS,
        rule=view.model.choice_rule,
    )


def _network_row(view: NetworkView, reference: NetworkView, page: CurveView) -> Row:
    network, last = view.network, page.last_step
    improvement = "–"
    if view is not reference and min(len(view.scores), len(reference.scores)) >= statistics.LEAST_RUNS:
        improvement = estimate_text(statistics.probability_of_improvement(reference.scores, view.scores), 2)
    steps = view.steps
    return Row(
        name=network.name,
        rate=rate_text(network.learning_rate),
        parameters="" if network.parameters is None else count(network.parameters),
        runs=plural(len(network.curves), "run"),
        median_curve=steps_text(view.drawn.reached, last),
        steps="–" if steps is None else steps_text(steps.value, last),
        steps_key=math.inf if steps is None else steps.value,
        interval="" if steps is None else _interval(steps.low, steps.high, last),
        reached=f"{sum(math.isfinite(r) for r in view.reached)} of {len(network.curves)}",
        final=estimate_text(view.final),
        mean=estimate_text(view.mean),
        improvement=improvement,
        verdict=network.verdict or "",
        verdict_detail=network.verdict_detail,
        ran=network.verdict is not None or network.features_verdict is not None,
    )


def _interval(low: float, high: float, last_step: int) -> str:
    """The interval of a number of steps; empty if even its lower end was never reached."""
    return f"{steps_text(low, last_step)} to {steps_text(high, last_step)}" if math.isfinite(low) else ""
