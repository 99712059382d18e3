"""The learning-curve page: `render_curves` turns a `CurveModel` into one self-contained HTML document."""

from __future__ import annotations

from symcheck_reports.curve_model import CurveModel, NetworkCurves
from symcheck_reports.curve_sections import comparison, failures, learning, rates, seeds, settings
from symcheck_reports.curve_view import CurveView, curve_view, verdict_on_task
from symcheck_reports.formatting import count, one_line, plural, seconds
from symcheck_reports.templating import PageHead, document

_SECTIONS = (learning, comparison, failures, rates, seeds, settings)


def render_curves(model: CurveModel) -> str:
    """The page for one task.

    Args:
        model: the curves of every network, as the trainer filled them in.

    Returns:
        A complete HTML document that makes no network requests.

    Raises:
        ValueError: `model` has no network, so there is nothing to draw.

    Example:
        >>> from symcheck_reports.curve_model import NetworkCurves, SeedCurve
        >>> mlp = NetworkCurves("mlp", 0.001, [SeedCurve(0, [500, 1000], [20.0, 480.0])])
        >>> "reaches 475 after 1,000 steps" in render_curves(CurveModel("CartPole-v1", [mlp], threshold=475.0))
        True
    """
    if not model.networks:
        raise ValueError("expected at least one network with its runs, got none")
    view = curve_view(model)
    head = PageHead("Learning curves", verdict_on_task(view), _verified_sentence(view), facts=_task_facts(view))
    sections = [built for module in _SECTIONS if (built := module.build(view)) is not None]
    return document(head, sections)


def _verified_sentence(view: CurveView) -> str:
    stopped = sum(len(network.failed_runs) for network in view.model.networks)
    early = f" {plural(stopped, 'run')} stopped early." if stopped else ""
    verdicts = [f"{n.network.name} {said}" for n in view.networks if (said := _verdict(n.network))]
    verified = f"verify-net: {one_line(', '.join(verdicts), 400)}." if verdicts else "The networks were not verified."
    return f"{verified}{early}"


def _verdict(network: NetworkCurves) -> str:
    """The verdict of verify-net, with the part of the network if it concerns only a part."""
    if network.verdict is None and network.features_verdict is not None:
        return f"features {network.features_verdict}"
    return network.verdict or ""


def _task_facts(view: CurveView) -> list[tuple[str, str]]:
    model = view.model
    shown = sum(len(network.curves) for network in model.networks)
    runs = count(shown) if model.trained in (None, shown) else f"{count(shown)} shown of {count(model.trained)} trained"
    facts = [
        ("task", model.task),
        ("networks", ", ".join(dict.fromkeys(network.name for network in model.networks))),
        ("runs", runs),
        ("env steps per run", count(view.last_step)),
    ]
    if model.duration_s is not None:
        facts.append(("wall time", f"{seconds(model.duration_s)} of training and evaluation"))
    return facts
