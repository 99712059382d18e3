"""A network's outputs at each precision, and the decisions that flip between the deployed network and its copy."""

from __future__ import annotations

from symcheck_reports.formatting import count, percent
from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView


def build(run: RunView) -> Section | None:
    """The section, or None if no precision was measured."""
    if not run.precisions and run.decisions is None:
        return None
    return section(
        "precision",
        f"{run.anchor}-precision",
        "Precision and decisions",
        rows=run.precisions,
        sentence=decision_sentence(*run.decisions) if run.decisions is not None else "",
    )


def decision_sentence(checked: int, flips: int) -> str:
    """A sentence on the decisions of a policy that takes the largest output.

    Example:
        >>> decision_sentence(2000, 0)
        'None of 2,000 decisions flips: the largest output transforms with the input.'
    """
    if flips == 0:
        held = "the largest output transforms with the input"
        return f"None of {count(checked)} decisions flips: {held}."
    share, verb = percent(flips / checked), "flips" if flips == 1 else "flip"
    broken = "for the transformed input, the largest output is not the one that the claim requires"
    return f"{count(flips)} of {count(checked)} decisions ({share}) {verb}: {broken}."
