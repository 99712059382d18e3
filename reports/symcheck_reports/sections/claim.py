"""The claim: its equations, with L and K of this subject written out."""

from __future__ import annotations

from collections.abc import Sequence

from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView

_PARTS = {
    "observation": ("On observations", "L"),
    "action": ("On actions", "K"),
    "state": ("On internal states", "L"),
    "input": ("On inputs", "L"),
    "output": ("On outputs", "K"),
    "outputs": ("On outputs", "K"),
}


def build(run: RunView) -> Section | None:
    """The section, or None if the run does not describe its claim."""
    if not run.claims:
        return None
    parts = [(*_PARTS.get(part, (f"On {part}", "L")), _formulas_by_generator(texts)) for part, texts in run.claims]
    return section("claim", f"{run.anchor}-claim", "What is claimed", run=run, parts=parts)


def _formulas_by_generator(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(element, formula) per generator; a single generator is called g, as in the equations of the properties."""
    named = [split(text) for text in texts]
    return [("g", named[0][1])] if len(named) == 1 else named


def split(text: str) -> tuple[str, str]:
    """The element's name and the formula: "r: (o0) -> (-o0)" is ("r", "(o0) -> (-o0)"); no name gives "g".

    Example:
        >>> split("r: (o0) -> (-o0)"), split("unchanged")
        (('r', '(o0) -> (-o0)'), ('g', 'unchanged'))
    """
    name, colon, formula = text.partition(": ")
    return (name, formula) if colon and "(" not in name else ("g", text)
