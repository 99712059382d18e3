"""Computes the view of a `CurveModel`: statistics per network, in the given order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symcheck_reports import curve_statistics as statistics
from symcheck_reports.curve_figures import Drawn, style
from symcheck_reports.curve_model import CurveModel, NetworkCurves
from symcheck_reports.formatting import count, number, plural


@dataclass(frozen=True)
class NetworkView:
    """One network at its chosen learning rate.

    Attributes:
        network: the runs.
        drawn: its quantile curve and colours.
        reached: steps of each run to the threshold, shape (runs,); empty if there is no threshold.
        steps: median over runs of `reached`, with its interval; None if there is no threshold.
        scores: mean return over training of each run, shape (runs,).
        mean: IQM of `scores`.
        final: IQM of the last evaluation.
    """

    network: NetworkCurves
    drawn: Drawn
    reached: NDArray[np.float64]
    steps: statistics.Estimate | None
    scores: NDArray[np.float64]
    mean: statistics.Estimate
    final: statistics.Estimate


@dataclass(frozen=True)
class CurveView:
    """The whole page.

    Attributes:
        model: the model of the page.
        networks: the networks to draw.
        floor: the return of a run after it stopped early.
        last_step: the last environment step of any curve.
    """

    model: CurveModel
    networks: tuple[NetworkView, ...]
    floor: float
    last_step: int


def curve_view(model: CurveModel) -> CurveView:
    """Compute the view of the page.

    Args:
        model: the curves.

    Returns:
        The view; networks without `chosen` are left to the learning-rate section.
    """
    floor = statistics.lowest_return(model.networks)
    chosen = [network for network in model.networks if network.chosen] or list(model.networks)
    views = tuple(_network_view(network, index, floor, model.threshold) for index, network in enumerate(chosen))
    last = max((int(steps[-1]) for n in model.networks if len(steps := statistics.grid(n))), default=0)
    return CurveView(model, views, floor, last)


def _network_view(network: NetworkCurves, index: int, floor: float, threshold: float | None) -> NetworkView:
    curve = statistics.quantile_curve(network, floor)
    reached = statistics.steps_to_threshold(network, threshold) if threshold is not None else np.zeros(0)
    median = (
        statistics.first_reach(curve.env_steps, curve.median.tolist(), threshold) if threshold is not None else math.inf
    )
    scores = statistics.mean_return(network, floor)
    return NetworkView(
        network=network,
        drawn=Drawn(network.name, style(index), curve, median),
        reached=reached,
        steps=statistics.median_steps(reached) if threshold is not None else None,
        scores=scores,
        mean=statistics.interquartile_mean(scores),
        final=statistics.interquartile_mean(statistics.final_return(network, floor)),
    )


def steps_text(steps: float, last_step: int) -> str:
    """Format a number of steps; for a run that never reached the threshold, "> " and the number of trained steps.

    Example:
        >>> steps_text(9500.0, 20000), steps_text(math.inf, 20000)
        ('9,500', '> 20,000')
    """
    if math.isnan(steps):
        return "–"
    return f"> {count(last_step)}" if math.isinf(steps) else count(int(steps))


def estimate_text(estimate: statistics.Estimate, digits: int = 4) -> str:
    """Format an estimate with its interval, if it has one, for instance "480 (455 to 497)"."""
    if math.isnan(estimate.value):
        return "–"
    if math.isnan(estimate.low):
        return number(estimate.value, digits)
    return f"{number(estimate.value, digits)} ({number(estimate.low, digits)} to {number(estimate.high, digits)})"


def verdict_on_task(view: CurveView) -> str:
    """The page's heading: the network that reaches the threshold first, or a sentence that none does."""
    model, networks = view.model, view.networks
    runs = sum(len(n.network.curves) for n in networks)
    if model.threshold is None:
        names = len(networks)
        return f"{model.task}: learning curves of {plural(names, 'network')}, {plural(runs, 'run')}."
    threshold = number(model.threshold)
    ranked = sorted((n for n in networks if math.isfinite(n.drawn.reached)), key=lambda n: n.drawn.reached)
    if not ranked:
        return f"{model.task}: no network's median return reaches {threshold} within {count(view.last_step)} steps."
    first, others = ranked[0], [n for n in networks if n is not ranked[0]]
    after = steps_text(first.drawn.reached, view.last_step)
    lead = f"{model.task}: the median of {first.network.name} reaches {threshold} after {after} steps"
    if not others:
        return lead + "."
    if len(others) > 3:
        nearest = min(others, key=lambda n: n.drawn.reached)
        return f"{lead}, the next ({nearest.network.name}) {_when(nearest, view)}."
    return f"{lead}, {', '.join(f'{n.network.name} {_when(n, view)}' for n in others)}."


def _when(network: NetworkView, view: CurveView) -> str:
    reached = network.drawn.reached
    return f"after {count(int(reached))}" if math.isfinite(reached) else f"not within {count(view.last_step)}"
