"""The method and the reason for it, seed, false-alarm rate, versions, and the command that repeats the run."""

from __future__ import annotations

from symcheck_reports.templating import Section, section
from symcheck_reports.views import RunView

VERDICTS = (
    ("proved", "holds for every input: all cases were enumerated, or the weights themselves certify it"),
    ("passed", "no violation was found; the evidence says how much was tested and what could have been missed"),
    ("failed", "there is a counterexample, or a test rejects at level alpha over the whole run"),
    ("undecided", "the budget ran out, or the method cannot decide; the property says what is needed to decide"),
)


def build(run: RunView) -> Section | None:
    """The section, which is never empty, because every run has a seed and a level."""
    return section("method", f"{run.anchor}-method", "How it was tested", run=run, verdicts=VERDICTS)
